//! The options a server is started with: Spindle's own, what the layout's `io` asks for, and the experiment's settings
//! as they are written, in this order, so that the last word is the experiment's
//! (https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-system-variables).

use spindle_io::real::{Caching, Method};
use spindle_layout::TreeDirectories;
use spindle_workload::sql::SqlConnection;

use super::programs::{Make, Programs};
use super::raw;
use crate::EngineError;
use crate::promise;
use crate::sql::{Purpose, ServerIo, ServerRequest, check_connections, no_method};

/// The smallest buffer pool that is asked for: MariaDB 10.11.12 and newer refuse less than 6 MiB, MySQL less than 5.
const BUFFER_POOL_MIN_BYTES: u64 = 8 << 20;
/// Buffer pool while loading, at least: what is loaded is no trial's.
const LOAD_BUFFER_POOL_BYTES: u64 = 256 << 20;
/// Connections beside the clients': those that load, the one that counts, and one to look in.
const OTHER_CONNECTIONS: u32 = 16;
/// Tables that a client may have open at once.
const TABLES_PER_CLIENT: u32 = 16;
/// Sizes that InnoDB's pages may have. Only a start would find another.
const PAGE_SIZES_BYTES: [u64; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
/// InnoDB's own limits of its I/O threads.
const IO_THREADS_MAX: u32 = 64;

/// What Spindle sets itself: where files are, who may connect, what another part of the experiment says.
const OWN: [(&str, &str); 28] = [
    ("basedir", "bin_dir says it"),
    ("bind_address", "only Spindle connects"),
    ("bootstrap", "Spindle makes the database"),
    ("datadir", "the layout says where data goes"),
    (
        "debug_no_sync",
        "the server does not report skipped flushes, so its durability would be unknown",
    ),
    ("defaults_file", "only what is in the experiment counts"),
    ("init_file", "Spindle sets it"),
    ("innodb_buffer_pool_size", "buffer_cache says it"),
    ("innodb_data_home_dir", "the layout says where data goes"),
    ("innodb_doublewrite_dir", "the layout says where data goes"),
    (
        "innodb_fast_shutdown",
        "trials end at once, and loading ends in order",
    ),
    ("innodb_log_group_home_dir", "the layout's redo says it"),
    ("innodb_read_only", "a workload writes"),
    ("innodb_temp_data_file_path", "the layout's temp says it"),
    ("innodb_temp_tablespaces_dir", "the layout's temp says it"),
    ("innodb_tmpdir", "the layout's temp says it"),
    ("innodb_undo_directory", "the layout's undo says it"),
    ("log_error", "Spindle reads it"),
    ("performance_schema", "waits are counted with it"),
    ("pid_file", "Spindle sets it"),
    ("port", "only Spindle connects"),
    ("read_only", "a workload writes"),
    ("skip_grant_tables", "only Spindle connects"),
    ("skip_networking", "only Spindle connects"),
    ("socket", "only Spindle connects"),
    ("tmpdir", "the layout's temp says it"),
    ("user", "as root it is mysql or nobody"),
    ("wsrep_on", "there is one server"),
];
/// Settings that take part in how the files are, beside those whose names say so.
const SHAPING: [&str; 14] = [
    "character_set_server",
    "collation_server",
    "default_storage_engine",
    "innodb_checksum_algorithm",
    "innodb_data_file_path",
    "innodb_default_row_format",
    "innodb_file_per_table",
    "innodb_fill_factor",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_page_size",
    "innodb_redo_log_capacity",
    "innodb_undo_tablespaces",
    "lower_case_table_names",
];
const SHAPING_PARTS: [&str; 4] = ["encrypt", "compress", "innodb_stats", "innodb_file_format"];

/// A name as the server's own lists write it.
pub(super) fn plain(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// Whether a setting takes part in how the files are.
pub(super) fn shapes_files(name: &str) -> bool {
    let name = plain(name);
    SHAPING.contains(&name.as_str()) || SHAPING_PARTS.iter().any(|part| name.contains(part))
}

/// What redo takes by default: 96 MiB in MariaDB, 100 MiB in MySQL.
const REDO_BYTES: u64 = 100 << 20;

/// Bytes of the redo log: of MySQL's since 8.0.30, or of all files of MariaDB's.
pub(super) fn redo_bytes(request: &ServerRequest) -> u64 {
    let asked = |wanted: &str| {
        let mut settings = request.settings.iter();
        let (_, value) = settings.find(|(name, _)| plain(name) == wanted)?;
        bytes_of(value)
    };
    let files = asked("innodb_log_files_in_group").unwrap_or(1);
    let of_files = asked("innodb_log_file_size").map(|bytes| bytes.saturating_mul(files));
    let bytes = asked("innodb_redo_log_capacity").or(of_files);
    bytes.unwrap_or(REDO_BYTES)
}

/// A number with a unit of InnoDB's, such as `512M`.
fn bytes_of(value: &str) -> Option<u64> {
    let value = value.trim();
    let digits = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match value[digits.len()..].to_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// How asynchronous I/O is done in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Native {
    IoUring,
    Libaio,
}

/// Options by name, and what is to be known of them.
#[derive(Debug, Clone)]
pub(super) struct MariaDbSettings {
    /// In the order in which they are given.
    options: Vec<(String, String)>,
    pub notes: Vec<String>,
    /// What the layout asks for, to be made sure of when the server runs.
    pub native: Option<Native>,
}

/// What decides what a commit is worth, as it is in force for this session; empty when the server does not tell.
pub(super) fn in_force(session: &mut dyn SqlConnection) -> promise::SettingsInForce {
    let names = promise::innodb::ASKED.join("', '");
    let mut told = promise::SettingsInForce::new();
    // A status variable of MySQL's is among them.
    for list in ["variables", "global status"] {
        let asked = format!("show {list} where variable_name in ('{names}')");
        let _ = session.ask(&asked, &mut |row| {
            told.insert(row.text(0)?.to_lowercase(), row.text(1)?.to_lowercase());
            Ok(())
        });
    }
    told
}

impl MariaDbSettings {
    /// What is asked for, in options of these programs.
    ///
    /// # Errors
    /// `Unavailable`: it cannot be used.
    pub fn of(
        request: &ServerRequest,
        programs: &Programs,
    ) -> Result<MariaDbSettings, EngineError> {
        let mut settings = MariaDbSettings {
            options: Vec::new(),
            notes: Vec::new(),
            native: None,
        };
        settings.own(request);
        if let Some(io) = request.io {
            check_io(io)?;
            settings.access_path(io, programs)?;
        }
        let chosen = settings.options.len();
        for (name, value) in &request.settings {
            check_name(name)?;
            let plain = plain(name);
            if plain == "max_connections" {
                // It admits one more, of an administrator: Spindle's own.
                check_connections(value, request.clients)?;
            }
            let of_io = settings.options[..chosen].iter();
            if request.io.is_some()
                && ACCESS_PATH.contains(&plain.as_str())
                && of_io.clone().any(|(own, _)| *own == plain)
            {
                return Err(EngineError::refused(format!(
                    "io and the setting {name} say the same thing: leave one of them out"
                )));
            }
            settings.set(&plain, value);
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str) {
        self.options.retain(|(own, _)| own != name);
        self.options.push((name.to_owned(), value.to_owned()));
    }

    fn own(&mut self, request: &ServerRequest) {
        let buffer_pool = request.buffer_cache_bytes.max(BUFFER_POOL_MIN_BYTES);
        if buffer_pool > request.buffer_cache_bytes {
            self.notes.push(
                "InnoDB's buffer pool is 8 MiB at least, which is more than buffer_cache says"
                    .to_owned(),
            );
        }
        let connections = request.clients + OTHER_CONNECTIONS;
        let tables = (request.clients * TABLES_PER_CLIENT).max(2000);
        self.set("innodb_buffer_pool_size", &buffer_pool.to_string());
        self.set("max_connections", &connections.to_string());
        self.set("table_open_cache", &tables.to_string());
        // Every trial starts as cold as the others.
        self.set("innodb_buffer_pool_load_at_startup", "OFF");
        self.set("innodb_buffer_pool_dump_at_shutdown", "OFF");
    }

    /// The layout's `io`.
    fn access_path(&mut self, io: ServerIo, programs: &Programs) -> Result<(), EngineError> {
        if let Some(caching) = io.caching {
            let direct = caching == Caching::Direct;
            match (programs.make, programs.version) {
                // innodb_flush_method is on its way out since 11.0.
                (Make::MariaDb, version) if version >= (11, 0) => {
                    let buffering = if direct { "OFF" } else { "ON" };
                    self.set("innodb_data_file_buffering", buffering);
                }
                _ => {
                    let method = if direct { "O_DIRECT" } else { "fsync" };
                    self.set("innodb_flush_method", method);
                }
            }
        }
        match io.method {
            None => Ok(()),
            Some(Method::Slaves) => self.io_threads(io.slaves),
            Some(Method::Async) => self.native(Native::IoUring, programs),
            Some(Method::Libaio) => self.native(Native::Libaio, programs),
            Some(_) => check_io(io),
        }
    }

    /// InnoDB's own threads, which make blocking calls ("simulated" asynchronous I/O).
    fn io_threads(&mut self, slaves: u32) -> Result<(), EngineError> {
        if slaves == 1 {
            self.notes
                .push("InnoDB has 2 threads that write at least".to_owned());
        }
        self.set("innodb_use_native_aio", "OFF");
        self.set("innodb_read_io_threads", &slaves.to_string());
        self.set("innodb_write_io_threads", &slaves.max(2).to_string());
        self.notes.push(format!(
            "slaves = {slaves}: innodb_use_native_aio = OFF and as many threads for reading ahead, and as many for writing; a \
             session that needs a page reads it itself"
        ));
        Ok(())
    }

    /// The system's asynchronous I/O of that kind, if the server was built with it.
    fn native(&mut self, wanted: Native, programs: &Programs) -> Result<(), EngineError> {
        let no = |reason: &str| {
            let title = &programs.title;
            Err(EngineError::refused(format!("{title}: {reason}")))
        };
        // MariaDB 10.11.14, 11.4.8 and 11.8.3 let one choose.
        let chooses = programs.mentions("which Linux AIO implementation");
        let has_uring = programs.mentions("io_uring_queue_init");
        let has_libaio = programs.mentions("libaio");
        match wanted {
            Native::IoUring if !has_uring => {
                return no(
                    "it was built without io_uring; choose method = \"libaio\" or \"slaves\"",
                );
            }
            Native::Libaio if !has_libaio => {
                return no("it was built without libaio; choose method = \"async\" or \"slaves\"");
            }
            Native::Libaio if has_uring && !chooses => {
                return no(
                    "it takes io_uring and leaves no choice; choose method = \"async\" or \"slaves\"",
                );
            }
            _ => {}
        }
        self.set("innodb_use_native_aio", "ON");
        if chooses {
            let kind = match wanted {
                Native::IoUring => "io_uring",
                Native::Libaio => "aio",
            };
            self.set("innodb_linux_aio", kind);
        }
        self.notes.push(
            "asynchronous I/O is what InnoDB reads ahead and writes with; a session that needs a page reads it itself"
                .to_owned(),
        );
        self.native = Some(wanted);
        Ok(())
    }

    /// For loading: durable when it is stopped in order.
    pub fn purpose(&mut self, purpose: Purpose, request: &ServerRequest) {
        if purpose == Purpose::Trial {
            return;
        }
        let buffer_pool = request.buffer_cache_bytes.max(LOAD_BUFFER_POOL_BYTES);
        self.set("innodb_buffer_pool_size", &buffer_pool.to_string());
        self.set("innodb_flush_log_at_trx_commit", "0");
        self.set("innodb_doublewrite", "OFF");
        // Purges and merges all that is left to do, so that no trial does.
        self.set("innodb_fast_shutdown", "0");
    }

    /// Says of datafiles that they are raw where a device has their name in the data directory.
    ///
    /// # Errors
    /// `Failed`: that device was not examined.
    pub fn find_raw_files(&mut self, directories: &TreeDirectories) -> Result<(), EngineError> {
        let mut options = self.options.iter_mut();
        if let Some((_, list)) = options.find(|(name, _)| name == raw::DATA_FILE_PATH) {
            *list = raw::with_raw_marked(list, directories)?;
        }
        Ok(())
    }

    /// The options as arguments.
    pub fn arguments(&self) -> impl Iterator<Item = String> {
        let options = self.options.iter();
        options.map(|(name, value)| format!("--{name}={value}"))
    }

    /// Those that the database must be made with.
    pub fn shaping_arguments(&self) -> impl Iterator<Item = String> {
        let options = self.options.iter();
        let shaping = options.filter(|(name, _)| shapes_files(name) && name.starts_with("innodb"));
        shaping.map(|(name, value)| format!("--{name}={value}"))
    }

    /// `name = value`, in words.
    pub fn described(&self) -> Vec<String> {
        let options = self.options.iter();
        options
            .map(|(name, value)| format!("{name} = {value}"))
            .collect()
    }
}

/// What the layout's `io` decides.
const ACCESS_PATH: [&str; 6] = [
    "innodb_data_file_buffering",
    "innodb_flush_method",
    "innodb_linux_aio",
    "innodb_read_io_threads",
    "innodb_use_native_aio",
    "innodb_write_io_threads",
];

/// Why it cannot make every call itself.
const NO_SYNC: &str = "InnoDB always has I/O threads: choose \"slaves\" for its own threads (innodb_use_native_aio = OFF), \"async\" or \"libaio\"";

/// What is wrong with an access path in every version.
pub(super) fn check_io(io: ServerIo) -> Result<(), EngineError> {
    match io.method {
        Some(Method::Sync) => Err(EngineError::refused(NO_SYNC)),
        Some(Method::Slaves) if io.slaves > IO_THREADS_MAX => Err(EngineError::refused(format!(
            "InnoDB has {IO_THREADS_MAX} I/O threads of each kind at most, not {}",
            io.slaves
        ))),
        None | Some(Method::Slaves | Method::Async | Method::Libaio) => Ok(()),
        Some(other) => Err(EngineError::refused(no_method(other))),
    }
}

/// What is wrong with a setting in every version.
pub(super) fn check_setting(name: &str, value: &str) -> Result<(), EngineError> {
    check_name(name)?;
    let sizes = PAGE_SIZES_BYTES;
    if plain(name) != "innodb_page_size" || bytes_of(value).is_some_and(|it| sizes.contains(&it)) {
        return Ok(());
    }
    Err(EngineError::misspelt(format!(
        "InnoDB has no pages of {value}; allowed: 4k, 8k, 16k, 32k, 64k"
    )))
}

/// What is wrong with the name of a setting in every version.
fn check_name(name: &str) -> Result<(), EngineError> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_word) || name.starts_with('-') {
        return Err(EngineError::refused(format!(
            "{name:?} cannot be the name of a setting"
        )));
    }
    let plain = plain(name);
    // What is loose is set all the same, where the server knows it.
    let plain = plain.strip_prefix("loose_").unwrap_or(&plain);
    match OWN.iter().find(|(own, _)| *own == plain) {
        None => Ok(()),
        Some((_, reason)) => Err(EngineError::refused(format!(
            "{name} is not for an experiment to set: {reason}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn what_spindle_sets_and_what_the_server_hides_is_refused_however_it_is_written() {
        for name in [
            "port",
            "debug_no_sync",
            "Debug-No-Sync",
            "loose_debug_no_sync",
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("loose_innodb_read_io_threads").is_ok());
    }

    #[test]
    fn pages_have_one_of_five_sizes() {
        for size in ["4096", "8k", "16K", "32k", "65536"] {
            assert_eq!(
                check_setting("innodb-page-size", size).err(),
                None,
                "{size}"
            );
        }
        for size in ["5000", "2k", "128k", "16MB", "-1", ""] {
            let why = check_setting("innodb_page_size", size).unwrap_err();
            assert!(why.to_string().contains("no pages of"), "{size}: {why}");
        }
    }

    fn programs(make: Make, version: (u32, u32)) -> Programs {
        Programs {
            server: PathBuf::from("/dev/null"),
            install: None,
            client: None,
            make,
            version,
            title: "a server".to_owned(),
            base: None,
        }
    }

    fn request(settings: &[(&str, &str)], io: Option<ServerIo>) -> ServerRequest {
        let settings = settings.iter();
        ServerRequest {
            settings: settings
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect::<BTreeMap<_, _>>(),
            bin_dir: None,
            buffer_cache_bytes: 64 << 20,
            data_bytes: 1 << 30,
            clients: 8,
            io,
            database: None,
        }
    }

    fn of(settings: &[(&str, &str)], io: Option<ServerIo>) -> Result<MariaDbSettings, EngineError> {
        MariaDbSettings::of(&request(settings, io), &programs(Make::MariaDb, (10, 11)))
    }

    fn io(caching: Option<Caching>, method: Option<Method>) -> Option<ServerIo> {
        Some(ServerIo {
            caching,
            method,
            slaves: 8,
        })
    }

    #[test]
    fn the_access_path_becomes_settings() {
        let asked = io(Some(Caching::Direct), Some(Method::Slaves));
        let described = of(&[], asked).unwrap().described();
        for expected in [
            "innodb_flush_method = O_DIRECT",
            "innodb_use_native_aio = OFF",
            "innodb_read_io_threads = 8",
            "innodb_write_io_threads = 8",
            "innodb_buffer_pool_size = 67108864",
        ] {
            assert!(
                described.iter().any(|line| line == expected),
                "{expected}: {described:?}"
            );
        }
        let buffered = request(&[], io(Some(Caching::Buffered), None));
        let newer = MariaDbSettings::of(&buffered, &programs(Make::MariaDb, (11, 4))).unwrap();
        let described = newer.described();
        assert!(
            described.contains(&"innodb_data_file_buffering = ON".to_owned()),
            "{described:?}"
        );
    }

    #[test]
    fn what_cannot_be_had_is_refused_with_the_way_out() {
        let refused = |settings: &[(&str, &str)], asked: Option<ServerIo>| {
            of(settings, asked).unwrap_err().to_string()
        };
        let sync = refused(&[], io(None, Some(Method::Sync)));
        assert!(sync.contains("\"slaves\""), "{sync}");
        // The program of these tests mentions no kind.
        let uring = refused(&[], io(None, Some(Method::Async)));
        assert!(uring.contains("built without io_uring"), "{uring}");
        let twice = refused(
            &[("innodb-flush-method", "fsync")],
            io(Some(Caching::Direct), None),
        );
        assert!(twice.contains("say the same thing"), "{twice}");
        let own = refused(&[("datadir", "/")], None);
        assert!(own.contains("the layout says where"), "{own}");
        assert!(refused(&[("a b", "1")], None).contains("cannot be the name"));
    }

    #[test]
    fn settings_that_shape_files_are_known() {
        for name in [
            "innodb-page-size",
            "innodb_data_file_path",
            "innodb_encrypt_tables",
        ] {
            assert!(shapes_files(name), "{name}");
        }
        assert!(!shapes_files("innodb_flush_method"));
    }
}
