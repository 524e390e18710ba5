//! What a server and the tables of a run keep when the power goes, asked of it in a session like its clients'.

use spindle_workload::SessionError;
use spindle_workload::sql::{Dialect, SqlConnection};

use super::connection::TOKEN;
use super::settings::in_force;
use crate::promise::innodb::TableIn;
use crate::promise::{self, CommitStorage, Promise, scripts};

/// Which databases a run works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// All but the server's own.
    Server,
    /// The one that its sessions are in.
    Database,
}

impl Where {
    fn condition(self, column: &str) -> String {
        match self {
            Where::Server => format!(
                "{column} not in ('mysql', 'information_schema', 'performance_schema', 'sys')"
            ),
            Where::Database => format!("{column} = database()"),
        }
    }
}

/// What is promised to those whose sessions are like this one; unknown when the server does not answer.
pub(super) fn promise_of(
    session: Result<Box<dyn SqlConnection>, SessionError>,
    place: Where,
    storage: &CommitStorage,
    sent: &[String],
) -> Promise {
    let Ok(mut session) = session else {
        return promise::innodb::promise(&promise::SettingsInForce::new(), storage);
    };
    let settings = in_force(&mut *session);
    let tables = tables(&mut *session, place);
    let of_tables = promise::innodb::of_tables(tables.as_deref());
    let texts = [&routines(&mut *session, place), sent].concat();
    let set = scripts::set_by(Dialect::MariaDb, &texts);
    // Existing tables tell their own engine, whatever engine others would have had.
    let are_told = tables.is_some_and(|tables| !tables.is_empty());
    let of_settings = scripts::weakest(&settings, &set, |settings| match are_told {
        true => promise::innodb::promise_beside_tables(settings, storage),
        false => promise::innodb::promise(settings, storage),
    });
    of_settings.with(of_tables)
}

/// The tables that last longer than a session, and have their own rows.
fn tables(session: &mut dyn SqlConnection, place: Where) -> Option<Vec<TableIn>> {
    let asked = format!(
        "select table_name, coalesce(engine, '') from information_schema.tables \
         where table_type not in ('VIEW', 'SYSTEM VIEW', 'TEMPORARY') and table_name <> '{TOKEN}' and {} order by 1",
        place.condition("table_schema")
    );
    let mut tables = Vec::new();
    let asked = session.ask(&asked, &mut |row| {
        tables.push(TableIn {
            name: row.text(0)?,
            engine: row.text(1)?.to_lowercase(),
        });
        Ok(())
    });
    asked.ok().map(|_| tables)
}

/// The bodies of routines, triggers and events, as far as the user may see them.
fn routines(session: &mut dyn SqlConnection, place: Where) -> Vec<String> {
    let mut bodies = Vec::new();
    for (list, body, database) in [
        ("routines", "routine_definition", "routine_schema"),
        ("triggers", "action_statement", "trigger_schema"),
        ("events", "event_definition", "event_schema"),
    ] {
        let asked = format!(
            "select coalesce({body}, '') from information_schema.{list} where {}",
            place.condition(database)
        );
        let _ = session.ask(&asked, &mut |row| {
            bodies.push(row.text(0)?);
            Ok(())
        });
    }
    bodies
}
