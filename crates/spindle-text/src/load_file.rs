//! Files that settings name. A database is loaded from texts, which are kept, and from dumps, which its own tools
//! restore: what a file is, its first bytes say. A dump stays where it is, and is known again by its size and its age.

pub mod server_files;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files;
use server_files::{DatabaseFile, age_ns, invalid};

/// The first bytes of a file, in which its form is looked for.
const HEAD_BYTES: u64 = 64 << 10;
/// The table of contents of pg_dump's directory form, and the first member of its tar form.
const CONTENTS: &str = "toc.dat";
/// The last bytes of a file, in which its end is looked for.
const TAIL_BYTES: u64 = 4 << 10;
/// What compressed files begin with, and the tools' names.
const COMPRESSED: [(&[u8], &str); 5] = [
    (&[0x1f, 0x8b], "gzip"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    (b"BZh", "bzip2"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
];

/// A file that a setting names, as it was when the settings were read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextFile {
    /// Its name as the setting spells it, without a weight.
    pub name: String,
    /// How often it is drawn, beside others.
    pub weight: u32,
    /// All of its text.
    pub text: String,
}

/// A file of `load`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LoadFile {
    /// A dump.
    Dump(Dump),
    /// SQL.
    Text(TextFile),
}

/// A dump, where it lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dump {
    /// Its name as the setting spells it.
    pub name: String,
    /// Where it is, absolute.
    pub path: PathBuf,
    /// What it is.
    pub form: DumpForm,
    /// Its bytes; of a directory, those of all its files.
    pub bytes: u64,
    /// When it was changed last, nanoseconds since 1970; of a directory, the latest of its files.
    pub changed_ns: i64,
}

/// What a dump is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DumpForm {
    /// `pg_dump --format=custom`.
    PostgresCustom,
    /// `pg_dump --format=directory`.
    PostgresDirectory,
    /// `pg_dump --format=tar`.
    PostgresTar,
    /// `pg_dump` without a format: SQL with `COPY` and commands of `psql`.
    PostgresPlain,
    /// The data directory of a stopped PostgreSQL, or a base backup.
    PostgresFiles,
    /// The data directory of a stopped MariaDB, or a prepared `mariadb-backup`.
    MariaDbFiles,
    /// `mariadb-dump` and `mysqldump`: SQL with commands of their client.
    MariaDb,
    /// A database file of SQLite.
    Sqlite,
}

impl DumpForm {
    /// Whether it is the directory of a server, which a database is made of instead of loading it.
    pub fn is_of_files(self) -> bool {
        matches!(self, DumpForm::PostgresFiles | DumpForm::MariaDbFiles)
    }

    /// How the last comment of a dump begins that its tool has written to the end; `None`: its own reader sees whether
    /// it is whole.
    fn last_line(self) -> Option<&'static str> {
        match self {
            DumpForm::PostgresPlain => Some("-- PostgreSQL database dump complete"),
            DumpForm::MariaDb => Some("-- Dump completed"),
            _ => None,
        }
    }
}

/// A file that is too large to be kept with the settings, where it lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeFile {
    /// Its name as the setting spells it.
    pub name: String,
    /// Where it is, absolute.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// When it was changed last, nanoseconds since 1970.
    pub changed_ns: i64,
}

impl LargeFile {
    /// Looks at a file. `name` is as people spell it, `path` where it is.
    ///
    /// # Errors
    /// It is not there, or is no file.
    pub fn find(name: &str, path: &Path) -> io::Result<LargeFile> {
        let path = std::path::absolute(path)?;
        if !fs::metadata(&path)?.is_file() {
            return Err(invalid("it is not a file"));
        }
        let (bytes, changed_ns) = size_and_age(&path)?;
        Ok(LargeFile {
            name: name.to_owned(),
            path,
            bytes,
            changed_ns,
        })
    }

    /// Opens it; it must still be what it was.
    ///
    /// # Errors
    /// It is another one by now, or is gone.
    pub fn open(&self) -> io::Result<File> {
        is_unchanged(size_and_age(&self.path)? == (self.bytes, self.changed_ns))?;
        files::open_named(&self.path)
    }
}

impl LoadFile {
    /// Its name as the setting spells it.
    pub fn name(&self) -> &str {
        match self {
            LoadFile::Dump(dump) => &dump.name,
            LoadFile::Text(file) => &file.name,
        }
    }

    /// The dump that it is, if it is one.
    pub fn as_dump(&self) -> Option<&Dump> {
        match self {
            LoadFile::Dump(dump) => Some(dump),
            LoadFile::Text(_) => None,
        }
    }

    /// Looks at a file or directory, and keeps its text if it is SQL of at most `bytes_max`. `name` is as people spell
    /// it, `path` where it is.
    ///
    /// # Errors
    /// It is not there, cannot be read, or is nothing that can be loaded, in words.
    pub fn read(name: &str, path: &Path, bytes_max: u64) -> io::Result<LoadFile> {
        let path = std::path::absolute(path)?;
        if let Some(dump) = Dump::find(name, &path)? {
            return Ok(LoadFile::Dump(dump));
        }
        let text = files::read_text(&path, bytes_max)?;
        let name = name.to_owned();
        Ok(LoadFile::Text(TextFile {
            name,
            weight: 1,
            text,
        }))
    }
}

impl Dump {
    fn find(name: &str, path: &Path) -> io::Result<Option<Dump>> {
        let Some(form) = form_of(path)? else {
            return Ok(None);
        };
        if let Some(last) = form.last_line() {
            check_end(path, last)?;
        }
        let mut dump = Dump {
            name: name.to_owned(),
            path: path.to_owned(),
            form,
            bytes: 0,
            changed_ns: 0,
        };
        (dump.bytes, dump.changed_ns) = dump.size_and_age()?;
        Ok(Some(dump))
    }

    /// The files and directories that are copied, of a form that [`DumpForm::is_of_files`]; none of others.
    ///
    /// # Errors
    /// It contains something that no server makes, in words; or the system's.
    pub fn files(&self) -> io::Result<Vec<DatabaseFile>> {
        match self.form {
            DumpForm::PostgresFiles => server_files::of_cluster(&self.path),
            DumpForm::MariaDbFiles => server_files::of_mariadb(&self.path),
            _ => Ok(Vec::new()),
        }
    }

    fn size_and_age(&self) -> io::Result<(u64, i64)> {
        match self.form.is_of_files() {
            true => Ok(server_files::size_and_age(&self.files()?)),
            false => size_and_age(&self.path),
        }
    }

    /// Opens its file, which must still be what it was.
    ///
    /// # Errors
    /// It is another one by now, or is gone.
    pub fn open(&self) -> io::Result<File> {
        self.check()?;
        files::open_named(&self.path)
    }

    /// Whether it is still what it was.
    ///
    /// # Errors
    /// As for [`Dump::open`].
    pub fn check(&self) -> io::Result<()> {
        is_unchanged(self.size_and_age()? == (self.bytes, self.changed_ns))
    }
}

fn is_unchanged(is_so: bool) -> io::Result<()> {
    match is_so {
        true => Ok(()),
        false => Err(invalid("it has changed since the experiment was read")),
    }
}

fn size_and_age(path: &Path) -> io::Result<(u64, i64)> {
    let found = fs::metadata(path)?;
    if !found.is_dir() {
        return Ok((found.len(), age_ns(&found)));
    }
    let (mut bytes, mut changed_ns) = (0, 0);
    for entry in fs::read_dir(path)? {
        let found = fs::metadata(entry?.path())?;
        bytes += found.len();
        changed_ns = changed_ns.max(age_ns(&found));
    }
    Ok((bytes, changed_ns))
}

/// The form of a dump; `None`: it is none.
fn form_of(path: &Path) -> io::Result<Option<DumpForm>> {
    let found = fs::metadata(path)?;
    if found.is_dir() {
        return directory(path).map(Some);
    }
    // The code that reads texts refuses what is no file.
    let kind = found.file_type();
    if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
        return Ok(None);
    }
    let mut head = Vec::new();
    files::open_named(path)?
        .take(HEAD_BYTES)
        .read_to_end(&mut head)?;
    let compressed = COMPRESSED.iter().find(|(magic, _)| head.starts_with(magic));
    if let Some((_, tool)) = compressed {
        return Err(invalid(format!("it is compressed: unpack it with {tool}")));
    }
    let is_tar = head.get(257..262) == Some(b"ustar");
    match &head[..] {
        // src/bin/pg_dump/pg_backup_archiver.c of PostgreSQL
        head if head.starts_with(b"PGDMP") => Ok(Some(DumpForm::PostgresCustom)),
        head if is_tar && head.starts_with(CONTENTS.as_bytes()) => Ok(Some(DumpForm::PostgresTar)),
        _ if is_tar => Err(invalid("it is an archive of tar: unpack it")),
        // https://www.sqlite.org/fileformat.html
        head if head.starts_with(b"SQLite format 3\0") => Ok(Some(DumpForm::Sqlite)),
        head => text_form(&String::from_utf8_lossy(head)),
    }
}

/// Whether a dump that is text is whole: what is cut at the end of a line loads without an error.
fn check_end(path: &Path, last: &str) -> io::Result<()> {
    let mut file = files::open_named(path)?;
    let bytes = file.metadata()?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    match String::from_utf8_lossy(&tail)
        .lines()
        .any(|line| line.starts_with(last))
    {
        true => Ok(()),
        false => Err(invalid(format!(
            "it is cut off: a whole dump ends with \"{last}\". Dump it again"
        ))),
    }
}

fn directory(path: &Path) -> io::Result<DumpForm> {
    if server_files::is_cluster(path) {
        return Ok(DumpForm::PostgresFiles);
    }
    if server_files::is_mariadb(path) {
        return Ok(DumpForm::MariaDbFiles);
    }
    if let Some(reason) = server_files::packed(path) {
        return Err(invalid(reason));
    }
    if !path.join(CONTENTS).is_file() {
        return Err(invalid(format!(
            "it is a directory, and neither a dump of pg_dump --format=directory, which has a {CONTENTS}, nor the data \
             directory of a stopped server, which has a PG_VERSION (PostgreSQL) or an ibdata1 (MariaDB)"
        )));
    }
    for entry in fs::read_dir(path)? {
        let file = entry?.path();
        files::open_named(&file).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", file.display()))
        })?;
    }
    Ok(DumpForm::PostgresDirectory)
}

/// The form of what may be SQL, by the comments that the tools begin with. What would go to another database than the
/// one that is measured is refused.
fn text_form(head: &str) -> io::Result<Option<DumpForm>> {
    let is_data = |line: &&str| line.starts_with("COPY ") || line.starts_with("INSERT ");
    let lines = || head.lines().take_while(|line| !is_data(line));
    let has = |start: &str| lines().any(|line| line.starts_with(start));
    if has("-- PostgreSQL database cluster dump") {
        let reason =
            "it is a dump of all databases, and one is measured: dump it alone, with pg_dump";
        return Err(invalid(reason));
    }
    if has("-- PostgreSQL database dump") {
        return match has("\\connect ") {
            false => Ok(Some(DumpForm::PostgresPlain)),
            true => Err(invalid(
                "it makes its own database, and Spindle gives it one: dump it without --create",
            )),
        };
    }
    if has("-- MariaDB dump ") || has("-- MySQL dump ") {
        return match has("USE `") {
            false => Ok(Some(DumpForm::MariaDb)),
            true => Err(invalid(
                "it names its database, and Spindle gives it one: dump it without --databases and --all-databases",
            )),
        };
    }
    // `--xml` of both, and what databases that speak XML write.
    if head
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with("<?xml")
    {
        let reason = "it is XML, and SQL is loaded: dump it without --xml";
        return Err(invalid(reason));
    }
    // MySQL's begins with SQL, and may be carried out as that.
    if has("/*M!999999\\- ") {
        return Err(invalid(
            "it is a dump of MariaDB without comments, which does not tell whether it is whole: dump it without \
             --skip-comments and --compact",
        ));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Result<Option<DumpForm>, String> {
        text_form(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_dump_without_comments_is_refused_in_words() {
        let head = "/*M!999999\\- enable the sandbox mode */ \ncreate table t (a int);\n";
        assert!(told(head).unwrap_err().contains("--skip-comments"));
        let of_mysql = "\n/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;\n";
        assert_eq!(told(of_mysql), Ok(None));
    }

    #[test]
    fn texts_are_known_by_what_their_tools_write_first() {
        let plain = "--\n-- PostgreSQL database dump\n--\n\n\\restrict x\n";
        assert_eq!(told(plain), Ok(Some(DumpForm::PostgresPlain)));
        let data = format!("{plain}COPY public.t (a) FROM stdin;\n\\connect x\n\\.\n");
        assert_eq!(told(&data), Ok(Some(DumpForm::PostgresPlain)));
        let created = format!("{plain}CREATE DATABASE x;\n\\connect x\n");
        assert!(told(&created).unwrap_err().contains("without --create"));
        let all = "--\n-- PostgreSQL database cluster dump\n--\n";
        assert!(told(all).unwrap_err().contains("all databases"));
        let maria =
            "/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump 10.19  Distrib 10.11\n";
        assert_eq!(told(maria), Ok(Some(DumpForm::MariaDb)));
        assert_eq!(told("-- MySQL dump 10.13\n"), Ok(Some(DumpForm::MariaDb)));
        let named = format!("{maria}USE `shop`;\n");
        assert!(told(&named).unwrap_err().contains("without --databases"));
        assert_eq!(told("create table t (a int);\n"), Ok(None));
        let xml = "<?xml version=\"1.0\"?>\n<mysqldump xmlns:xsi=\"x\">\n";
        assert!(told(xml).unwrap_err().contains("without --xml"));
    }

    #[test]
    fn what_is_no_dump_says_what_it_is() {
        let place = tempfile::tempdir().unwrap();
        let read = |name: &str| {
            let read = LoadFile::read(name, &place.path().join(name), 20);
            read.map_err(|error| error.to_string())
        };
        let write = |name: &str, bytes: &[u8]| fs::write(place.path().join(name), bytes).unwrap();
        write("a.sql", b"select 1;");
        assert!(matches!(read("a.sql"), Ok(LoadFile::Text(file)) if file.text == "select 1;"));
        write("a.sql.gz", &[0x1f, 0x8b, 8, 0]);
        assert!(read("a.sql.gz").unwrap_err().contains("with gzip"));
        write("long.sql", &[b' '; 21]);
        assert!(read("long.sql").unwrap_err().contains("more than"));
        write("binary", &[b'a', 0xff]);
        assert!(read("binary").unwrap_err().contains("byte 1 "));
        fs::create_dir(place.path().join("d")).unwrap();
        assert!(read("d").unwrap_err().contains("has a toc.dat"));
        assert!(read("none").unwrap_err().contains("No such file"));
    }

    #[test]
    fn a_dump_that_is_cut_off_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = place.path().join("shop.sql");
            fs::write(&path, text).unwrap();
            LoadFile::read("shop.sql", &path, 0).map_err(|error| error.to_string())
        };
        let data = "1\n".repeat(TAIL_BYTES as usize);
        for (head, last) in [
            (
                "-- PostgreSQL database dump\n",
                "-- PostgreSQL database dump complete\n--\n\n\\unrestrict x\n",
            ),
            (
                "-- MariaDB dump 10.19\n",
                "-- Dump completed on 2026-11-24 13:00:00\n",
            ),
        ] {
            let whole = read(&format!("{head}{data}{last}"));
            assert!(matches!(whole, Ok(LoadFile::Dump(_))), "{whole:?}");
            let cut = read(&format!("{head}{data}")).unwrap_err();
            assert!(cut.contains("it is cut off"), "{cut}");
        }
    }

    #[test]
    fn a_dump_that_has_changed_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("shop.dump");
        fs::write(&path, "PGDMP1").unwrap();
        let Ok(LoadFile::Dump(dump)) = LoadFile::read("shop.dump", &path, 0) else {
            panic!("a dump")
        };
        assert_eq!((dump.form, dump.bytes), (DumpForm::PostgresCustom, 6));
        let kept = serde_json::to_string(&LoadFile::Dump(dump.clone())).unwrap();
        let again: LoadFile = serde_json::from_str(&kept).unwrap();
        assert_eq!(again, LoadFile::Dump(dump.clone()));
        dump.open().unwrap();
        fs::write(&path, "PGDMP12").unwrap();
        assert!(dump.open().unwrap_err().to_string().contains("has changed"));
    }
}
