//! The access path: how blocks travel between a database and its storage.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use super::file::identify::Caching;
use super::queue::method::{Method, Queue};

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
