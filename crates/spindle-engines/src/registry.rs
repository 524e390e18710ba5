//! Which databases that speak SQL there are. A new one is its folder and a line here.

use crate::mariadb::MariaDb;
use crate::postgres::Postgres;
use crate::sql::{ForeignServer, Server, ServerKind};
use crate::sqlite::Sqlite;

/// The one of this kind.
pub fn server(kind: ServerKind) -> &'static dyn Server {
    match kind {
        ServerKind::Sqlite => &Sqlite,
        ServerKind::Postgres => &Postgres,
        ServerKind::MariaDb => &MariaDb,
    }
}

/// Those that can be an existing server, reached by its address; `None` for the others.
pub fn foreign_server(kind: ServerKind) -> Option<&'static dyn ForeignServer> {
    match kind {
        ServerKind::Sqlite => None,
        ServerKind::Postgres => Some(&Postgres),
        ServerKind::MariaDb => Some(&MariaDb),
    }
}
