//! PostgreSQL's settings: those of an experiment, checked by the server itself before anything runs, and
//! `postgresql.conf` as they make it.

use std::collections::BTreeSet;
use std::fmt::Write;

use spindle_io::real::{Caching, Method};
use spindle_text::nearest::nearest;
use spindle_workload::sql::SqlConnection;

use super::connection::PostgresConnection;
use super::programs::{Programs, last_words};
use crate::promise;
use crate::sql::{Purpose, ServerIo, ServerRequest, check_connections, no_method};
use crate::{EngineError, ErrorKind};

/// Settings that the cluster is made with, for `initdb`.
const OF_CREATION: [&str; 2] = ["data_checksums", "wal_segment_size"];
/// Settings that are Spindle's own affair.
const OWN: [&str; 12] = [
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "log_destination",
    "logging_collector",
    "port",
    "restart_after_crash",
    "temp_tablespaces",
    "unix_socket_directories",
];
/// The first version that knows a setting (release notes of PostgreSQL 14 to 18); those left out are older than any
/// that runs here.
const SINCE: [(&str, u32); 16] = [
    ("huge_page_size", 14),
    ("recovery_init_sync_method", 14),
    ("recovery_prefetch", 15),
    ("wal_decode_buffer_size", 15),
    ("debug_io_direct", 16),
    ("vacuum_buffer_usage_limit", 16),
    ("commit_timestamp_buffers", 17),
    ("io_combine_limit", 17),
    ("summarize_wal", 17),
    ("sync_replication_slots", 17),
    ("transaction_buffers", 17),
    ("file_copy_method", 18),
    ("io_max_combine_limit", 18),
    ("io_max_concurrency", 18),
    ("io_method", 18),
    ("io_workers", 18),
];
/// Values that PostgreSQL has where it was built with them.
const OF_SOME_BUILDS: [(&str, &[&str]); 4] = [
    ("default_toast_compression", &["lz4"]),
    ("io_method", &["io_uring"]),
    ("wal_compression", &["lz4", "zstd"]),
    (
        "wal_sync_method",
        &["fsync_writethrough", "open_datasync", "open_sync"],
    ),
];
/// Defaults of the settings that matter to storage, on Linux, and the first version that has each.
const DEFAULTS: [(&str, &str, u32); 5] = [
    ("fsync", "on", 13),
    ("full_page_writes", "on", 13),
    ("synchronous_commit", "on", 13),
    ("wal_sync_method", "fdatasync", 13),
    ("io_method", "worker", 18),
];
/// Connections beside the clients': those of Spindle itself, of checks, and what the server keeps for its superuser.
const MORE_CONNECTIONS: u32 = 16;
/// Those that are there while clients are: of Spindle's counts, and of what it samples.
const OWN_CONNECTIONS: u32 = 2;
/// Processes that io_method = worker may have (postgresql.org, "io_workers").
const IO_WORKERS_MAX: u32 = 32;
const NO_LIBAIO: &str = "PostgreSQL knows no libaio: choose method \"sync\", or with version 18 \"slaves\" or \"async\"";
/// The default of `max_wal_size`.
const MAX_WAL_BYTES: u64 = 1 << 30;

/// What is asked for, in PostgreSQL's words.
#[derive(Debug, Clone)]
pub(super) struct PostgresSettings {
    /// In the order in which they are written: later ones win.
    lines: Vec<(String, String)>,
    /// For the making of the cluster.
    pub checksums: Option<bool>,
    /// WAL segment size, MiB.
    pub segment_mib: Option<u32>,
    /// What is to be known of them.
    pub notes: Vec<String>,
}

/// What decides what a commit is worth, as it is in force for this session; empty when the server does not tell.
pub(super) fn in_force(session: &mut PostgresConnection) -> promise::SettingsInForce {
    let mut told = promise::SettingsInForce::new();
    for name in promise::postgres::ASKED {
        // One that a server does not know is an error of that one.
        let asked = format!("select current_setting('{name}')");
        let _ = session.ask(&asked, &mut |row| {
            told.insert(name.to_owned(), row.text(0)?.to_lowercase());
            Ok(())
        });
    }
    told
}

impl PostgresSettings {
    /// What a request says, as far as it can be judged without asking the server.
    ///
    /// # Errors
    /// `Unavailable`: a setting that is not the experiment's to make, or that this version does not
    /// know.
    pub fn of(
        request: &ServerRequest,
        programs: &Programs,
    ) -> Result<PostgresSettings, EngineError> {
        let mut settings = PostgresSettings {
            lines: vec![
                (
                    "shared_buffers".to_owned(),
                    format!("{}kB", (request.buffer_cache_bytes / 1024).max(128)),
                ),
                (
                    "max_connections".to_owned(),
                    (request.clients + MORE_CONNECTIONS).to_string(),
                ),
            ],
            checksums: None,
            segment_mib: None,
            notes: Vec::new(),
        };
        for (name, value) in io_settings(request.io, programs)? {
            settings.lines.push((name.to_owned(), value));
        }
        for (name, value) in &request.settings {
            let name = name.to_lowercase();
            if name == "max_connections" {
                check_connections(value, request.clients + OWN_CONNECTIONS)?;
            }
            settings.take(&name, value, programs)?;
        }
        Ok(settings)
    }

    fn take(&mut self, name: &str, value: &str, programs: &Programs) -> Result<(), EngineError> {
        let value = value.trim();
        check_setting(name, value)?;
        if let Some((_, since)) = SINCE.iter().find(|(known, _)| *known == name)
            && programs.major < *since
        {
            return Err(EngineError::refused(format!(
                "{name} needs PostgreSQL {since}; this is {}",
                programs.version
            )));
        }
        match name {
            "data_checksums" => self.checksums = flag_of(value),
            "wal_segment_size" => self.segment_mib = segment_mib_of(value),
            _ => self.lines.push((name.to_owned(), value.to_owned())),
        }
        Ok(())
    }

    /// `name = value`, in words: what is set, and what matters to storage when it is left as it is.
    pub fn described(&self, programs: &Programs) -> Vec<String> {
        let is_set = |name: &str| self.lines.iter().any(|(set, _)| set == name);
        let defaults = DEFAULTS.iter();
        let defaults = defaults
            .filter(|(name, _, since)| programs.major >= *since && !is_set(name))
            .map(|(name, value, _)| format!("{name} = {value}"));
        let checksums = self.checksums.unwrap_or(programs.major >= 18);
        let made = [
            Some(format!(
                "data_checksums = {}",
                if checksums { "on" } else { "off" }
            )),
            self.segment_mib
                .map(|mib| format!("wal_segment_size = {mib}MB")),
        ];
        let lines = self.lines.iter();
        lines
            .map(|(name, value)| format!("{name} = {value}"))
            .chain(defaults)
            .chain(made.into_iter().flatten())
            .collect()
    }

    /// Has the server look at every value, on an empty directory that is removed again.
    ///
    /// # Errors
    /// In its own words, and with the nearest name for one that it does not know. All slips are told, a line each.
    pub fn check(&self, programs: &Programs) -> Result<(), EngineError> {
        let mut left = self.clone();
        let mut slips: Vec<String> = Vec::new();
        // It stops at the first that it does not take. Without that one it looks at the next.
        while let Some((setting, why)) = left.first_refused(programs)? {
            if why.kind() != ErrorKind::MisspeltSetting {
                match slips.is_empty() {
                    true => return Err(why),
                    false => break,
                }
            }
            slips.push(why.to_string());
            // It names some with capitals, such as DateStyle.
            let is_it = |name: &str| {
                setting
                    .as_ref()
                    .is_some_and(|it| it.eq_ignore_ascii_case(name))
            };
            let count = left.lines.len();
            left.lines.retain(|(name, _)| !is_it(name));
            if left.lines.len() == count {
                break;
            }
        }
        match slips.is_empty() {
            true => Ok(()),
            false => Err(EngineError::misspelt(slips.join("\n"))),
        }
    }

    /// The first setting that the server does not take, where it names one, and why.
    fn first_refused(
        &self,
        programs: &Programs,
    ) -> Result<Option<(Option<String>, EngineError)>, EngineError> {
        let failed = |error| EngineError::failed("making a directory to check settings in", error);
        let scratch = tempfile::Builder::new()
            .prefix("spindle-postgres-")
            .tempdir()
            .map_err(failed)?;
        let conf = scratch.path().join("postgresql.conf");
        std::fs::write(&conf, "").map_err(failed)?;
        programs.give(&conf)?;
        programs.give(scratch.path())?;
        let mut command = programs.command("postgres");
        command
            .arg("-D")
            .arg(scratch.path())
            .args(["-C", "shared_buffers"]);
        for (name, value) in &self.lines {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let output = programs.output_of(&mut command)?;
        if output.status.success() {
            return Ok(None);
        }
        let said = last_words(&output);
        let mut reason = without_prefixes(&said);
        if let Some(name) = between(&said, "unrecognized configuration parameter \"", "\"") {
            reason = format!("{} has no setting {name:?}", programs.version);
            let known = known_names(programs);
            if let Some(near) = nearest(name, known.iter().map(String::as_str)) {
                _ = write!(reason, "; did you mean {near:?}?");
            }
            return Ok(Some((Some(name.to_owned()), EngineError::misspelt(reason))));
        }
        // Invalid value for parameter "x"; 9 is outside the valid range for parameter "x".
        let name = between(&said, "for parameter \"", "\"").map(str::to_owned);
        Ok(Some((name, self.value_refused(&said, reason))))
    }

    /// A value that the server does not take: a slip, or what only another build has, or settings that contradict each
    /// other.
    fn value_refused(&self, said: &str, mut reason: String) -> EngineError {
        let Some(name) = between(said, "invalid value for parameter \"", "\"") else {
            return match said.contains("is outside the valid range for parameter") {
                true => EngineError::misspelt(reason),
                false => EngineError::refused(reason),
            };
        };
        let mut lines = self.lines.iter();
        let value = lines.find(|(set, _)| set == name).map(|(_, value)| value);
        let value = value.map(|value| value.to_lowercase()).unwrap_or_default();
        let is_of_other_builds = |(setting, words): &(&str, &[&str])| {
            *setting == name && words.contains(&value.as_str())
        };
        if OF_SOME_BUILDS.iter().any(is_of_other_builds) {
            return EngineError::refused(reason);
        }
        let available = reason.split_once("Available values: ");
        let near = available.and_then(|(_, values)| nearest(&value, values.split(", ")));
        if let Some(near) = near.map(str::to_owned) {
            _ = write!(reason, "; did you mean {near:?}?");
        }
        EngineError::misspelt(reason)
    }

    /// `postgresql.conf`. `socket_directory` is given from the data directory.
    pub fn conf(&self, purpose: Purpose, socket_directory: &str, programs: &Programs) -> String {
        let mut conf = String::from("# Written by Spindle at every start.\n");
        let mut line = |name: &str, value: &str| {
            _ = writeln!(conf, "{name} = '{}'", value.replace('\'', "''"));
        };
        line("listen_addresses", "");
        line("unix_socket_directories", socket_directory);
        line("port", super::cluster::PORT);
        line("temp_tablespaces", super::cluster::TEMP_TABLESPACE);
        // The copy of a subscriber takes no part in replication.
        line("max_logical_replication_workers", "0");
        // A crash of one process is to be seen as what it is.
        line("restart_after_crash", "off");
        for (name, value) in &self.lines {
            line(name, value);
        }
        if purpose == Purpose::Load {
            // Commits are written to the log at once, though not flushed: vacuum cannot mark rows as visible to all
            // whose commit is still in memory, and the trials would have to.
            for (name, value) in [
                ("fsync", "off"),
                ("synchronous_commit", "on"),
                ("full_page_writes", "off"),
                ("wal_level", "minimal"),
                ("archive_mode", "off"),
                ("max_wal_senders", "0"),
                ("max_wal_size", "1GB"),
                ("checkpoint_timeout", "1h"),
                ("autovacuum", "off"),
                ("maintenance_work_mem", "256MB"),
            ] {
                line(name, value);
            }
            if programs.major >= 17 {
                line("summarize_wal", "off");
            }
        }
        conf
    }
}

/// Whether a setting takes part in how the files are.
pub(super) fn shapes_files(setting: &str) -> bool {
    OF_CREATION.contains(&setting.to_lowercase().as_str())
}

/// Bytes that the write-ahead log is held to.
pub(super) fn wal_bytes(request: &ServerRequest) -> u64 {
    let asked = request.settings.iter();
    let asked = asked
        .filter(|(name, _)| name.eq_ignore_ascii_case("max_wal_size"))
        .find_map(|(_, value)| size_of(value));
    asked.unwrap_or(MAX_WAL_BYTES)
}

/// What is wrong with a setting in every version.
pub(super) fn check_setting(name: &str, value: &str) -> Result<(), EngineError> {
    if name == "shared_buffers" {
        return Err(EngineError::refused(
            "buffer_cache in [database], or in database of a layout, says how large it is; shared_buffers is another word \
             for it there",
        ));
    }
    if OWN.contains(&name) {
        return Err(EngineError::refused(format!(
            "{name} is not the experiment's to set: Spindle runs the server and says where its files, its log and its socket are"
        )));
    }
    let (is_allowed, allowed) = match name {
        "data_checksums" => (flag_of(value).is_some(), "on, off"),
        "wal_segment_size" => (
            segment_mib_of(value).is_some(),
            "a power of two from 1MB to 1024MB",
        ),
        _ => return Ok(()),
    };
    match is_allowed {
        true => Ok(()),
        false => Err(EngineError::misspelt(format!(
            "PostgreSQL does not accept {name} = {value}; allowed: {allowed}"
        ))),
    }
}

/// What is wrong with an access path in every version.
pub(super) fn check_io(io: ServerIo) -> Result<(), EngineError> {
    match io.method {
        Some(Method::Slaves) if io.slaves > IO_WORKERS_MAX => Err(EngineError::refused(format!(
            "PostgreSQL has at most {IO_WORKERS_MAX} I/O workers, and slaves = {} asks for more",
            io.slaves
        ))),
        None | Some(Method::Sync | Method::Slaves | Method::Async) => Ok(()),
        Some(Method::Libaio) => Err(EngineError::refused(NO_LIBAIO)),
        Some(other) => Err(EngineError::refused(no_method(other))),
    }
}

fn segment_mib_of(value: &str) -> Option<u32> {
    let mib = value
        .strip_suffix("MB")
        .unwrap_or(value)
        .trim()
        .parse()
        .ok();
    mib.filter(|mib: &u32| mib.is_power_of_two() && *mib <= 1024)
}

/// A size as PostgreSQL writes it; a number alone is in MB, as `max_wal_size` is.
fn size_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "kB" => 1 << 10,
        "" | "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(unit)
}

fn flag_of(value: &str) -> Option<bool> {
    match value.to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// An access path in PostgreSQL's settings. Before version 18 it reads and writes with blocking calls, one by one.
fn io_settings(
    io: Option<ServerIo>,
    programs: &Programs,
) -> Result<Vec<(&'static str, String)>, EngineError> {
    let mut settings = Vec::new();
    let Some(io) = io else {
        return Ok(settings);
    };
    check_io(io)?;
    let needs = |what: &str, version: u32| {
        Err(EngineError::refused(format!(
            "{what} needs PostgreSQL {version}; this is {}",
            programs.version
        )))
    };
    if io.caching == Some(Caching::Direct) {
        if programs.major < 16 {
            return needs("caching = \"direct\" (debug_io_direct)", 16);
        }
        settings.push(("debug_io_direct", "data,wal".to_owned()));
    }
    match io.method {
        Some(Method::Sync) if programs.major >= 18 => {
            settings.push(("io_method", "sync".to_owned()));
        }
        Some(Method::Slaves) if programs.major < 18 => {
            return needs("method = \"slaves\" (io_method = worker)", 18);
        }
        Some(Method::Slaves) => {
            settings.push(("io_method", "worker".to_owned()));
            settings.push(("io_workers", io.slaves.to_string()));
        }
        Some(Method::Async) if programs.major < 18 => {
            return needs("method = \"async\" (io_method = io_uring)", 18);
        }
        Some(Method::Async) => settings.push(("io_method", "io_uring".to_owned())),
        // Nothing to be set; the others are refused above.
        _ => {}
    }
    Ok(settings)
}

/// Messages of the server without time and process: `FATAL:  ...`, `HINT:  ...` in one line.
fn without_prefixes(said: &str) -> String {
    let mut parts = Vec::new();
    for line in said.lines() {
        let found = ["FATAL:", "ERROR:", "HINT:", "DETAIL:"]
            .iter()
            .find_map(|mark| line.split_once(mark));
        if let Some((_, text)) = found {
            parts.push(text.trim().trim_end_matches('.').to_owned());
        }
    }
    match parts.is_empty() {
        true => said.to_owned(),
        false => parts.join(". "),
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

/// Every setting that the server lists; none when it does not.
fn known_names(programs: &Programs) -> BTreeSet<String> {
    let listed = programs.text_of(programs.command("postgres").arg("--describe-config"));
    let listed = listed.unwrap_or_default();
    let names = listed.lines().filter_map(|line| line.split('\t').next());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_words_are_told_without_its_clock() {
        let said = "2026-11-21 23:09:44.554 GMT [22209] FATAL:  invalid value for parameter \"wal_sync_method\": \"bad\"\n\
                    2026-11-21 23:09:44.554 GMT [22209] HINT:  Available values: fsync, fdatasync.";
        assert_eq!(
            without_prefixes(said),
            "invalid value for parameter \"wal_sync_method\": \"bad\". Available values: fsync, fdatasync"
        );
    }

    #[test]
    fn sizes_are_read_as_postgresql_writes_them() {
        assert_eq!(size_of("2GB"), Some(2 << 30));
        assert_eq!(size_of("512"), Some(512 << 20));
        assert_eq!(size_of("64 MB"), Some(64 << 20));
        assert_eq!(size_of("1PB"), None);
    }
}
