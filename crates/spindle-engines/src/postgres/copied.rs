//! A cluster made of the files of another one: a stopped cluster, or a base backup with its write-ahead log. It is
//! looked at before anything is made. Then its files are copied, recovered if they must be, and given a superuser of
//! Spindle's own. None of its settings are taken: what they name may lie anywhere.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::AtomicBool;

use spindle_text::files;
use spindle_text::load_file::Dump;
use spindle_text::load_file::server_files::{self, DatabaseFile, DatabasePart, LABEL};
use spindle_workload::sql::SqlConnection;

use super::cluster::{Cluster, SUPERUSER};
use super::connection::PostgresConnection;
use super::control::Control;
use super::programs::Programs;
use super::settings::PostgresSettings;
use crate::EngineError;
use crate::sql::Purpose;
use crate::sql::copied_files::{chosen, files_at_rest, last_name, refused};
use crate::sql::restore::{failed, run};

/// What a server is called whose files these may be.
const PROGRAMS: [&str; 2] = ["postgres", "postmaster"];
/// The database that every cluster has.
pub(super) const TEMPLATE: &str = "template1";
/// A label of a base backup has a few lines.
const LABEL_BYTES_MAX: u64 = 64 << 10;
/// Digits of a piece of the write-ahead log that are its timeline's.
const TIMELINE: usize = 8;
/// How to have files that fit together.
const REMEDY: &str = "stop the server and copy its data directory, or make a base backup: pg_basebackup --format=plain \
                      --wal-method=stream";

/// A copy that was looked at.
pub(super) struct Looked {
    pub found: Vec<DatabaseFile>,
    pub control: Control,
    /// The piece of the write-ahead log that recovery begins with; `None`: it was stopped in order.
    pub recovers_from: Option<String>,
}

/// Looks whether a cluster can be made of these files; what of its settings is that of the files.
///
/// # Errors
/// `Unavailable`: why not, and what to do.
pub(super) fn examine(
    programs: &Programs,
    settings: &PostgresSettings,
    dump: &Dump,
) -> Result<Vec<String>, EngineError> {
    let Looked { control, .. } = look(programs, settings, dump)?;
    let checksums = if control.has_checksums { "on" } else { "off" };
    Ok(vec![
        format!("data_checksums = {checksums}"),
        format!("wal_segment_size = {}MB", control.segment_mib),
    ])
}

/// Looks at the files. Errors: as for [`examine`].
pub(super) fn look(
    programs: &Programs,
    settings: &PostgresSettings,
    dump: &Dump,
) -> Result<Looked, EngineError> {
    let version = server_files::version(&dump.path).map_err(|error| refused(dump, error))?;
    if version != programs.major.to_string() {
        let reason = format!(
            "its files are of PostgreSQL {version}, and the server is {} ({}): set bin_dir in [database] to the programs of \
             version {version}",
            programs.version,
            programs.path("postgres").display()
        );
        return Err(refused(dump, reason));
    }
    let found = files_at_rest(dump, &PROGRAMS, |found| places(dump, found))?;
    let control = Control::read(programs, &dump.path)?;
    let recovers_from = recovers_from(dump, &control)?;
    let first = recovers_from.as_ref().unwrap_or(&control.log_piece);
    let mut pieces = found.iter().filter(|file| file.part == DatabasePart::Log);
    if !pieces.any(|piece| last_name(piece) == first.as_str()) {
        let reason = format!("its pg_wal has no {first}, from which it recovers: {REMEDY}");
        return Err(refused(dump, reason));
    }
    if recovers_from.is_none() {
        check_tablespaces(dump, &found)?;
    }
    check_prepared(dump, &found)?;
    check_settings(dump, settings, &control)?;
    Ok(Looked {
        found,
        control,
        recovers_from,
    })
}

/// Where a server that works on the files has them, from its data directory, and where they are.
fn places(dump: &Dump, found: &[DatabaseFile]) -> Vec<(PathBuf, PathBuf)> {
    let mut names = vec![PathBuf::new(), PathBuf::from("pg_wal")];
    for file in found {
        if let DatabasePart::Tablespace(number) = &file.part {
            names.push(Path::new("pg_tblspc").join(number));
        }
    }
    names.dedup();
    let places = names.into_iter();
    places
        .map(|name| (name.clone(), dump.path.join(name)))
        .collect()
}

/// The piece of the write-ahead log that recovery begins with; `None`: the cluster was stopped in order.
fn recovers_from(dump: &Dump, control: &Control) -> Result<Option<String>, EngineError> {
    let no = |reason: String| Err(refused(dump, reason));
    if dump.path.join("tablespace_map").exists() {
        return no(format!(
            "its tablespaces are not unpacked, as its tablespace_map says. Make it in the plain form, with \
             --tablespace-mapping: {REMEDY}"
        ));
    }
    let label = dump.path.join(LABEL);
    match std::fs::symlink_metadata(&label) {
        Ok(_) if dump.path.join("postmaster.pid").exists() => no(format!(
            "it has a {LABEL} and a postmaster.pid, so it is of a server at work: {REMEDY}"
        )),
        Ok(_) => {
            let label = files::read_text(&label, LABEL_BYTES_MAX);
            let label = label.map_err(|error| refused(dump, error))?;
            match first_piece(&label) {
                Some(piece) => Ok(Some(piece.to_owned())),
                None => no(format!(
                    "its {LABEL} does not say where its recovery begins"
                )),
            }
        }
        Err(_) if control.is_stopped() => Ok(None),
        Err(_) if control.is_stopped_standby() => Ok(Some(control.log_piece.clone())),
        Err(_) => no(format!(
            "its state is \"{}\", and it has no {LABEL}: files of a server at work do not fit together, and one that has \
             crashed looks the same. Damage would show late, or never: {REMEDY}",
            control.state
        )),
    }
}

/// The file in `START WAL LOCATION: 0/2000028 (file 000000010000000000000002)`.
fn first_piece(label: &str) -> Option<&str> {
    let mut lines = label.lines();
    let line = lines.find(|line| line.starts_with("START WAL LOCATION: "))?;
    line.split_once("(file ")?.1.strip_suffix(')')
}

/// That tablespaces behind links are of the same moment: the links of a copied cluster may lead to the tablespaces of
/// the original, which has worked on. Stopping a server writes the control file last.
fn check_tablespaces(dump: &Dump, found: &[DatabaseFile]) -> Result<(), EngineError> {
    let modified = |file: &DatabaseFile| file.metadata.modified().ok();
    let mut files = found.iter();
    let control = files.find(|file| file.name == Path::new("global/pg_control"));
    let stopped = control.and_then(modified);
    let of_spaces = found
        .iter()
        .filter(|file| matches!(file.part, DatabasePart::Tablespace(_)));
    let mut newer = of_spaces.filter(|file| !file.is_directory() && modified(file) > stopped);
    match newer.next() {
        None => Ok(()),
        Some(file) => Err(refused(
            dump,
            format!(
                "{} was written after the cluster was stopped: its tablespaces are those of a server that went on. Copy \
                 both together, with their times (cp -a), and have pg_tblspc link to the copies",
                file.path.display()
            ),
        )),
    }
}

/// That no transaction is prepared: it would keep its locks in every trial.
fn check_prepared(dump: &Dump, found: &[DatabaseFile]) -> Result<(), EngineError> {
    let mut files = found.iter().filter(|file| !file.is_directory());
    match files.any(|file| file.name.starts_with("pg_twophase")) {
        false => Ok(()),
        true => Err(refused(dump, PREPARED)),
    }
}

const PREPARED: &str = "a prepared transaction is open in it: commit it or roll it back on the original, and copy that again";

/// That the experiment asks for nothing that the files decide.
fn check_settings(
    dump: &Dump,
    settings: &PostgresSettings,
    control: &Control,
) -> Result<(), EngineError> {
    let has = |wanted: bool| if wanted { "on" } else { "off" };
    let other = match (settings.checksums, settings.segment_mib) {
        (Some(wanted), _) if wanted != control.has_checksums => Some(format!(
            "data_checksums = {} is set, and its files have them {}",
            has(wanted),
            has(control.has_checksums)
        )),
        (_, Some(mib)) if mib != control.segment_mib => Some(format!(
            "wal_segment_size = {mib}MB is set, and its log has pieces of {}MB",
            control.segment_mib
        )),
        _ => None,
    };
    match other {
        None => Ok(()),
        Some(reason) => Err(refused(dump, format!("{reason}: leave the setting out"))),
    }
}

/// Recovers copied files, if they must be, and makes a superuser for Spindle: in single-user mode, which needs no
/// authentication (https://www.postgresql.org/docs/current/app-postgres.html).
///
/// # Errors
/// `Failed`, in the server's own words; `Interrupted`.
pub(super) fn open_up(
    programs: &Programs,
    settings: &PostgresSettings,
    (cluster, looked): (&Cluster, &Looked),
    dump: &Dump,
    interrupted: &AtomicBool,
) -> Result<(), EngineError> {
    cluster.make_ready(settings, Purpose::Load, programs)?;
    if let Some(first) = &looked.recovers_from {
        check_log(programs, cluster, first, dump)?;
    }
    let mut server = programs.command_of_thread("postgres");
    server.args(["--single", "-D"]).arg(cluster.data());
    for (name, value) in [
        // All that it recovers from is in its own log.
        ("restore_command", "false".to_owned()),
        ("hot_standby", "off".to_owned()),
        ("max_replication_slots", "1024".to_owned()),
        (
            "max_prepared_transactions",
            looked.control.prepared_max.to_string(),
        ),
    ] {
        server.arg("-c").arg(format!("{name}={value}"));
    }
    let sql = superuser(&cluster.password(programs)?);
    let said = spoken(&sql).map_err(|error| failed(dump, error))?;
    server.arg(TEMPLATE).stdin(said).stdout(Stdio::null());
    run(server, dump, interrupted)?;
    let prepared = cluster.data().join("pg_twophase");
    let mut prepared = programs
        .as_server(|| std::fs::read_dir(prepared))?
        .map_err(|error| failed(dump, error))?;
    match prepared.next() {
        None => Ok(()),
        Some(_) => Err(failed(dump, PREPARED)),
    }
}

/// That recovery makes no tablespace: the log says where, and that is where the original has it
/// (`tblspc_redo` of PostgreSQL's commands/tablespace.c).
fn check_log(
    programs: &Programs,
    cluster: &Cluster,
    first: &str,
    dump: &Dump,
) -> Result<(), EngineError> {
    for piece in first_of_timelines(cluster.log_pieces(programs)?, first) {
        let mut dumper = programs.command("pg_waldump");
        dumper.args(["--rmgr=Tablespace", "--path"]);
        // It fails where the log ends.
        let said = programs.output_of(dumper.arg(cluster.log_directory()).arg(&piece))?;
        if String::from_utf8_lossy(&said.stdout).contains("desc: CREATE") {
            let reason = "a tablespace was made while the backup was, and recovery would make it in the same place again: \
                          make another backup";
            return Err(failed(dump, reason));
        }
    }
    Ok(())
}

/// Of each timeline the first piece of the log that recovery may read.
fn first_of_timelines(mut pieces: Vec<String>, first: &str) -> Vec<String> {
    let place = |piece: &str| piece.get(TIMELINE..).map(str::to_owned);
    pieces.retain(|piece| piece.len() == first.len() && place(piece) >= place(first));
    pieces.sort();
    pieces.dedup_by(|later, earlier| later.get(..TIMELINE) == earlier.get(..TIMELINE));
    pieces
}

/// The statement, in the one line that single-user mode takes.
fn superuser(password: &str) -> String {
    format!(
        "do $$ begin if not exists (select from pg_roles where rolname = '{SUPERUSER}') then create role {SUPERUSER}; \
         end if; alter role {SUPERUSER} superuser login connection limit -1 valid until 'infinity' password '{password}'; \
         end $$\n"
    )
}

/// A text as the input of a program.
fn spoken(text: &str) -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// The database that is measured: `wanted`, or the only one that people have made.
///
/// # Errors
/// `Unavailable`: there is none, or there are several.
pub(super) fn database(
    connection: &mut PostgresConnection,
    wanted: Option<&str>,
    dump: &Dump,
) -> Result<String, EngineError> {
    let asked =
        "select datname from pg_database where datallowconn and not datistemplate order by datname";
    let mut names = Vec::new();
    connection.ask(asked, &mut |row| {
        names.push(row.text(0)?);
        Ok(())
    })?;
    chosen(&names, "postgres", wanted, dump)
}
