//! Files that settings name: looked for beside the experiment file, and read with it.

use std::io;
use std::path::{Path, PathBuf};

use spindle_text::files;
use spindle_text::load_file::{LargeFile, LoadFile, TextFile};

use super::{Node, Reader, Value, is_plain};

/// No text that a setting names is larger, bytes: it is kept in the journal of the run.
const TEXT_BYTES_MAX: u64 = 4 << 20;

impl Reader<'_> {
    /// The text files that a list names, beside the experiment file if their paths are relative; none when the key is
    /// left out. Behind a name can stand a weight, if these have one.
    pub fn files(&mut self, key: &'static str, is_weighted: bool) -> Vec<TextFile> {
        let allowed = match is_weighted {
            true => {
                "a list of files such as [\"load.sql@9\", \"report.sql\"], weights up to 2147483647"
            }
            false => "a list of files such as [\"check.sql\"]",
        };
        self.each_file(key, allowed, |name, directory| {
            let (name, weight) = weight_of(name, is_weighted)?;
            let path = directory.join(name);
            let text = files::read_text(&path, TEXT_BYTES_MAX);
            let file = text.map(|text| TextFile {
                name: name.to_owned(),
                weight,
                text,
            });
            Some(file.map_err(|error| (path, error)))
        })
    }

    /// The files to load that a list names; paths are as for `files`.
    pub fn load_files(&mut self, key: &'static str) -> Vec<LoadFile> {
        let allowed = "a list of files such as [\"schema.sql\", \"shop.dump\"]";
        self.each_file(key, allowed, |name, directory| {
            let path = directory.join(name);
            let read = LoadFile::read(name, &path, TEXT_BYTES_MAX);
            Some(read.map_err(|error| (path, error)))
        })
    }

    /// The file that a key names; its path is as for `files`. It is looked at and not read.
    pub fn large_file(&mut self, key: &'static str) -> Option<LargeFile> {
        let node = self.node(key)?;
        let name = match &node.value {
            Value::Text(text) if is_plain(text) => text,
            _ => return self.refuse_value(key, node, "the name of a file, in quotes", None),
        };
        let path = self.document.directory().join(name);
        match LargeFile::find(name, &path) {
            Ok(file) => Some(file),
            Err(error) => self.no_such_file(key, node, &path, &error),
        }
    }

    /// Notes that a named file cannot be read.
    fn no_such_file<T>(
        &self,
        key: &'static str,
        node: &Node,
        path: &Path,
        error: &io::Error,
    ) -> Option<T> {
        // What the system did not refuse was read, and is not what it should be.
        let (message, help) = match error.raw_os_error() {
            Some(_) => (
                format!("cannot read {}", path.display()),
                "name an existing file; a relative path begins at the experiment file's directory",
            ),
            None => (
                format!("{} cannot be used", path.display()),
                "docs/how-to/your-own-sql.md says which files are taken",
            ),
        };
        let error = self.error(&node.place, key, message, error.to_string());
        self.document.note(error.help(help));
        None
    }

    /// What `read` makes of each name of a list and the directory where relative paths begin; `None`: the name is not
    /// allowed.
    fn each_file<T>(
        &mut self,
        key: &'static str,
        allowed: &str,
        read: impl Fn(&str, &Path) -> Option<Result<T, (PathBuf, io::Error)>>,
    ) -> Vec<T> {
        let Some(node) = self.node(key) else {
            return Vec::new();
        };
        let items = match &node.value {
            Value::List(items) => items,
            _ => return self.refuse_value(key, node, allowed, Vec::new()),
        };
        let file = |item: &Node| {
            let name = match &item.value {
                Value::Text(text) if is_plain(text) => text,
                _ => return self.refuse_value(key, item, allowed, None),
            };
            match read(name, self.document.directory()) {
                None => self.refuse_value(key, item, allowed, None),
                Some(Ok(file)) => Some(file),
                Some(Err((path, error))) => self.no_such_file(key, item, &path, &error),
            }
        };
        items.iter().filter_map(file).collect()
    }
}

/// A name and the weight behind it, 1 if there is none; `None` when that is no weight.
fn weight_of(text: &str, is_weighted: bool) -> Option<(&str, u32)> {
    match text.rsplit_once('@').filter(|_| is_weighted) {
        None => Some((text, 1)),
        Some((name, weight)) => {
            let weight: i32 = weight.parse().ok()?;
            Some((name, u32::try_from(weight).ok()?)).filter(|_| !name.is_empty())
        }
    }
}
