//! The access path: how blocks travel between a database and its storage.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};
use spindle_text::{settings, words};

use super::file::identify::Caching;
use super::queue::method::{Method, Queue};

words! {
    /// Oracle's parameter of the same name: an access path in one word.
    pub enum FilesystemioOptions {
        /// Buffered, sync.
        None = "none",
        /// Direct, sync.
        Directio = "directio",
        /// Buffered, async.
        Asynch = "asynch",
        /// Direct, async.
        Setall = "setall",
    }
}

impl FilesystemioOptions {
    /// The pair of words that Oracle's word stands for.
    pub fn access_path(self) -> AccessPath {
        match self {
            FilesystemioOptions::None => AccessPath::new(Caching::Buffered, Method::Sync),
            FilesystemioOptions::Directio => AccessPath::new(Caching::Direct, Method::Sync),
            FilesystemioOptions::Asynch => AccessPath::new(Caching::Buffered, Method::Async),
            FilesystemioOptions::Setall => AccessPath::new(Caching::Direct, Method::Async),
        }
    }
}

settings! {
    /// What is said of an access path: two words, or Oracle's one word for both.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AccessPathSettings {
        /// Whether blocks pass through the page cache. With `method = "odm"` the default is `"direct"`, and only that
        /// is allowed.
        caching: Option<Caching> = optional_word("caching", "`\"buffered\"`"),
        /// How a process with several blocks hands them over, see below.
        method: Option<Method> = optional_word("method", "`\"sync\"`"),
        /// Number of I/O slaves; allowed only with that method. Slaves for datafiles serve a single DBWR (`writers =
        /// 1`), as in Oracle.
        slaves: Option<u32> = optional_number("slaves", "4 with `method = \"slaves\"`", 1..=1000),
        /// Instead of `caching` and `method`: Oracle's word for both.
        filesystemio_options: Option<FilesystemioOptions> = optional_word("filesystemio_options", "none"),
    }
}

/// How blocks are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessPath {
    /// Whether blocks pass through the page cache; always direct with a disk manager.
    pub caching: Caching,
    /// How several blocks are handed over.
    pub method: Method,
    /// Number of I/O slaves, 1 to 1000; 0 when the method has none.
    pub slaves: u32,
}

impl AccessPath {
    /// I/O slaves when nothing is said of them, as many as Oracle starts for the other background processes.
    pub const SLAVES_DEFAULT: u32 = 4;

    /// The access path of two words; with slaves, the default number of them.
    pub fn new(caching: Caching, method: Method) -> AccessPath {
        let slaves = match method.has_slaves() {
            true => AccessPath::SLAVES_DEFAULT,
            false => 0,
        };
        AccessPath {
            caching,
            method,
            slaves,
        }
    }

    /// Makes what it needs. Errors: the system's, which may refuse a thread.
    pub fn open(self) -> io::Result<Queue> {
        self.method.open(self.slaves as usize)
    }
}

impl fmt::Display for AccessPath {
    /// `direct, async`, `buffered, 4 slaves` or `odm`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.method.identifies_files() {
            return f.pad(self.method.as_str());
        }
        let slaves = match self.method.has_slaves() {
            true => format!("{} ", self.slaves),
            false => String::new(),
        };
        f.pad(&format!("{}, {slaves}{}", self.caching, self.method))
    }
}
