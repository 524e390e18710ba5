//! What addresses of servers begin with, and how names and paths are written in them.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode, utf8_percent_encode};

/// What is written with a per cent sign in names: all that might mean something (RFC 3986, section 2.3).
const NOT_IN_NAMES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// And in paths.
const NOT_IN_PATHS: &AsciiSet = &NOT_IN_NAMES.remove(b'/');

/// What its address begins with: the protocol that it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// PostgreSQL's, `postgres://` or `postgresql://`.
    Postgres,
    /// That of MySQL and MariaDB, `mysql://` or `mariadb://`.
    MySql,
}

impl Scheme {
    /// The port that it listens on where none is named.
    pub(super) fn port(self) -> u16 {
        match self {
            Scheme::Postgres => 5432,
            Scheme::MySql => 3306,
        }
    }
}

/// As a name stands in an address.
pub(super) fn in_name(text: &str) -> impl fmt::Display + '_ {
    utf8_percent_encode(text, NOT_IN_NAMES)
}

/// As a path stands behind its question mark.
pub(super) fn in_query(path: &Path) -> impl fmt::Display + '_ {
    percent_encode(path.as_os_str().as_bytes(), NOT_IN_PATHS)
}
