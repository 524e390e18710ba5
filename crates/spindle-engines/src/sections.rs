//! What `[database]` says of every database, of one that Spindle starts, and of one that runs already.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use spindle_text::quantity::{GIB, MIB, TIB};
use spindle_text::section::{Key, Keys};
use spindle_text::settings;

use crate::kernel::BUFFER_CACHE_BYTES_DEFAULT;
use crate::sql::ssh_host;

/// How much data a database may have, bytes.
pub const SIZE_BYTES: RangeInclusive<u64> = 4 * MIB..=64 * TIB;
/// How large a buffer cache may be, bytes.
pub const BUFFER_CACHE_BYTES: RangeInclusive<u64> = MIB..=16 * TIB;

/// What an address is, as messages say what is allowed.
pub const URL_ALLOWED: &str = "the address of a server that is running: \"postgres://user:password@host:port/database\", or \
                               \"mysql://user:password@host:port\"";

settings! {
    /// How much data there is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct DataSettings {
        /// Loaded data. It must be larger than the buffer cache; unless it is larger than `memory` too, caches are
        /// compared and not devices.
        size_bytes: u64 = size("size", GIB, SIZE_BYTES),
    }
}

settings! {
    /// What every database is told that Spindle starts.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StartedSettings {
        /// The database's own cache of blocks, at least 64 of them.
        buffer_cache_bytes: u64 = size("buffer_cache", BUFFER_CACHE_BYTES_DEFAULT, BUFFER_CACHE_BYTES),
        /// One budget for buffer cache and page cache together, held where permissions allow; at least `buffer_cache`.
        memory_bytes: Option<u64> = optional_size("memory", "twice `buffer_cache`", MIB..=64 * TIB),
        /// Where the redo log files are.
        redo_path: Option<PathBuf> = directory("redo_path", "beside the data"),
    }
}

settings! {
    /// What a database is told that speaks SQL and that Spindle starts, beside its own `settings`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ServerSettings {
        /// Where the server's programs are.
        bin_dir: Option<PathBuf> = directory("bin_dir", "where such programs usually are"),
        /// Which database is measured, where `load` is a [copy of a
        /// server](how-to/your-own-sql.md#a-copy-of-a-server) that has several.
        name: Option<String> = text("name", "the only one", "the name of a database"),
    }
}

settings! {
    /// What is said of a server that runs already.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RemoteSettings {
        /// An existing server, see [below](#an-existing-server).
        url: Option<String> = text("url", "a server of Spindle's own", URL_ALLOWED),
        /// The environment variable that the password for `url` is in.
        password_env: Option<String> =
            text("password_env", "where the server's own clients look", "the name of an environment variable"),
        /// Looks at the machine of the server, [below](#an-agent-on-the-servers-machine).
        agent: Option<String> = text("agent", "none", ssh_host::ALLOWED),
    }
}

/// The other key of a database that speaks SQL and that Spindle starts.
pub fn note_server_settings<K: Keys>(keys: &mut K) {
    let key = Key {
        name: "settings",
        says: "the server's own settings by its own names. Each is checked against the server before anything runs",
    };
    let allowed = "a table of names with texts, numbers, `true` or `false`";
    keys.noted(key, "none", allowed);
}

/// The other key of the embedded database.
pub fn note_redo_io<K: Keys>(keys: &mut K) {
    let key = Key {
        name: "redo_io",
        says: "how LGWR writes redo, see below",
    };
    let default = "direct, by the layout's own method";
    keys.noted(key, default, "a table, as a layout's `io`");
}
