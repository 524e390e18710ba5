//! The access path: how blocks travel between the database and storage, as `io` and `redo_io` say it.
//!
//! Two words, caching and method; or Oracle's one word for both, `filesystemio_options`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::ExperimentError;
use super::reader::Reader;
use super::word::words;

words! {
    /// Whether blocks pass through the page cache.
    pub enum Caching {
        /// They do: the operating system keeps its own copy.
        Buffered = "buffered",
        /// They do not (`O_DIRECT`).
        Direct = "direct",
    }
    later: []
}

words! {
    /// How a process that has several blocks to read or write hands them over.
    pub enum Method {
        /// One by one, waiting for each.
        Sync = "sync",
        /// To I/O slaves, each of which reads or writes synchronously.
        Slaves = "slaves",
        /// All together (io_uring), then waits for their completions.
        Async = "async",
        /// As `async`, by the kernel's older asynchronous I/O, which Oracle and InnoDB use. Buffered I/O blocks at its
        /// submission.
        Libaio = "libaio",
        /// As Oracle Disk Manager does: direct and asynchronous, on preallocated and initialised files that are
        /// identified once for all processes, many submissions and completions in one call.
        Odm = "odm",
    }
    later: []
}

words! {
    /// Oracle's parameter of the same name.
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
    later: []
}

/// I/O slaves when `slaves` is left out, as many as Oracle starts for the other background processes.
const SLAVES_DEFAULT: u32 = 4;

/// How blocks are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessPath {
    /// Whether blocks pass through the page cache; always direct with ODM.
    pub caching: Caching,
    /// How several blocks are handed over.
    pub method: Method,
    /// Number of I/O slaves, 1 to 1000; 0 when the method is not `slaves`.
    pub slaves: u32,
}

impl AccessPath {
    /// The access path of two words; with slaves, the default number of them.
    pub(super) fn new(caching: Caching, method: Method) -> AccessPath {
        let slaves = if method == Method::Slaves {
            SLAVES_DEFAULT
        } else {
            0
        };
        AccessPath {
            caching,
            method,
            slaves,
        }
    }

    /// Reads an `io` table; whatever it leaves out is as in `default`.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        default: AccessPath,
    ) -> Result<AccessPath, ExperimentError> {
        let caching = reader.optional_word("caching");
        let method = reader.optional_word("method");
        let slaves = reader.number("slaves", SLAVES_DEFAULT, 1..=1000);
        let oracle = reader.optional_word::<FilesystemioOptions>("filesystemio_options");
        reader.finish();

        let mut path = match oracle {
            Some(_) if caching.is_some() || method.is_some() => {
                return Err(reader.conflict(
                    &["filesystemio_options"],
                    "the access path is given twice",
                    "it says both caching and method",
                    "keep filesystemio_options, or caching and method",
                ));
            }
            Some(word) => word.access_path(),
            None => {
                let method = method.unwrap_or(default.method);
                let caching_default = if method == Method::Odm {
                    Caching::Direct
                } else {
                    default.caching
                };
                AccessPath::new(caching.unwrap_or(caching_default), method)
            }
        };
        if path.method == Method::Odm && path.caching == Caching::Buffered {
            return Err(reader.conflict(
                &["caching"],
                "ODM is never buffered",
                "\"direct\" is what method = \"odm\" implies",
                "leave caching out, or compare with caching = \"buffered\", method = \"async\"",
            ));
        }
        if path.method == Method::Slaves {
            path.slaves = slaves;
        } else if reader.has("slaves") {
            return Err(reader.conflict(
                &["slaves"],
                format!("I/O slaves have nothing to do with {path} I/O"),
                "allowed only with method = \"slaves\"",
                "leave slaves out, or set method = \"slaves\"",
            ));
        }
        Ok(path)
    }
}

impl FilesystemioOptions {
    /// The pair of words that Oracle's word stands for.
    fn access_path(self) -> AccessPath {
        match self {
            FilesystemioOptions::None => AccessPath::new(Caching::Buffered, Method::Sync),
            FilesystemioOptions::Directio => AccessPath::new(Caching::Direct, Method::Sync),
            FilesystemioOptions::Asynch => AccessPath::new(Caching::Buffered, Method::Async),
            FilesystemioOptions::Setall => AccessPath::new(Caching::Direct, Method::Async),
        }
    }
}

impl fmt::Display for AccessPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.method {
            Method::Odm => f.pad("odm"),
            Method::Slaves => f.pad(&format!("{}, {} slaves", self.caching, self.slaves)),
            Method::Sync | Method::Async | Method::Libaio => {
                f.pad(&format!("{}, {}", self.caching, self.method))
            }
        }
    }
}
