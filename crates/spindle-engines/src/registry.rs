//! Which databases that speak SQL there are. A new one is its file or folder, and a line here.

use spindle_text::words;

use crate::mariadb::MariaDb;
use crate::postgres::Postgres;
use crate::sql::address::{Address, Scheme};
use crate::sql::{ForeignServer, Server};

macro_rules! servers {
    ($($(#[doc = $says:literal])+ $variant:ident = $word:literal, $server:path;)+) => {
        words! {
            /// The databases that speak SQL.
            pub enum ServerKind {
                $($(#[doc = $says])+ $variant = $word,)+
            }
        }

        /// The one of this kind.
        pub fn server(kind: ServerKind) -> &'static dyn Server {
            match kind {
                $(ServerKind::$variant => &$server,)+
            }
        }
    };
}

servers! {
    /// SQLite, within Spindle's own process.
    Sqlite = "sqlite", crate::sqlite::Sqlite;
    /// PostgreSQL: an installed server that Spindle runs, or one at a URL.
    Postgres = "postgres", Postgres;
    /// MariaDB or MySQL: an installed server that Spindle runs, or one at a URL.
    MariaDb = "mariadb", MariaDb;
}

impl Scheme {
    /// The database that speaks it.
    pub fn kind(self) -> ServerKind {
        match self {
            Scheme::Postgres => ServerKind::Postgres,
            Scheme::MySql => ServerKind::MariaDb,
        }
    }
}

impl Address {
    /// Which kind of database it leads to.
    pub fn kind(&self) -> ServerKind {
        self.scheme.kind()
    }
}

/// The one that speaks this, as a server that runs already.
pub fn remote_server(scheme: Scheme) -> &'static dyn ForeignServer {
    match scheme {
        Scheme::Postgres => &Postgres,
        Scheme::MySql => &MariaDb,
    }
}
