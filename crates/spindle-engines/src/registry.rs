//! Which databases that speak SQL there are. A new one is its folder and a line here.

use crate::mariadb::MariaDb;
use crate::postgres::Postgres;
use crate::sql::address::Scheme;
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

/// The one that speaks this, as a server that runs already.
pub fn remote_server(scheme: Scheme) -> &'static dyn ForeignServer {
    match scheme {
        Scheme::Postgres => &Postgres,
        Scheme::MySql => &MariaDb,
    }
}
