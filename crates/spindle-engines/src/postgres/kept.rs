//! What a server and the tables of a run keep when the power goes, asked of it in a session like its clients'.

use spindle_workload::SessionError;
use spindle_workload::sql::{Dialect, SqlConnection};

use super::connection::PostgresConnection;
use super::settings::in_force;
use crate::promise::{self, CommitStorage, Promise, scripts};
use crate::sql::SchemaKind;

/// Which schemas a run works in: all of its database, or the one that its sessions are in.
fn condition(ours: SchemaKind) -> &'static str {
    match ours {
        SchemaKind::Database => "n.nspname !~ '^pg_' and n.nspname <> 'information_schema'",
        SchemaKind::Schema => "n.nspname = current_schema()",
    }
}

/// What is promised to those whose sessions are like this one, and whose tables are in what is `ours`; unknown when the
/// server does not answer.
pub(super) fn promise_of(
    session: Result<PostgresConnection, SessionError>,
    ours: SchemaKind,
    storage: &CommitStorage,
    sent: &[String],
) -> Promise {
    let Ok(mut session) = session else {
        return promise::postgres::promise(&promise::SettingsInForce::new(), storage);
    };
    let settings = in_force(&mut session);
    let unlogged = texts(&mut session, &unlogged(ours));
    let of_tables = promise::postgres::of_tables(unlogged.as_deref());
    let functions = texts(&mut session, &functions(ours));
    let of_functions = promise::postgres::of_functions(functions.as_deref());
    let texts = [functions.as_deref().unwrap_or_default(), sent].concat();
    let set = scripts::set_by(Dialect::Postgres, &texts);
    let of_settings = scripts::weakest(&settings, &set, |settings| {
        promise::postgres::promise(settings, storage)
    });
    of_settings.with(of_tables).with(of_functions)
}

/// Tables, materialized views, and sequences that belong to no table.
fn unlogged(ours: SchemaKind) -> String {
    format!(
        "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace \
         where c.relpersistence = 'u' and c.relkind in ('r', 'm', 'S') and {} \
         and not (c.relkind = 'S' and exists (select from pg_depend d where d.classid = 'pg_class'::regclass \
         and d.objid = c.oid and d.deptype in ('a', 'i'))) order by 1",
        condition(ours)
    )
}

/// Functions and procedures that may set something, whole.
fn functions(ours: SchemaKind) -> String {
    format!(
        "select f.text from (select case when p.prokind in ('f', 'p') then pg_get_functiondef(p.oid) end as text \
         from pg_proc p join pg_namespace n on n.oid = p.pronamespace where {}) f where f.text ~* '{}'",
        condition(ours),
        scripts::words(Dialect::Postgres).join("|")
    )
}

fn texts(session: &mut PostgresConnection, sql: &str) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    let asked = session.ask(sql, &mut |row| {
        texts.push(row.text(0)?);
        Ok(())
    });
    asked.ok().map(|()| texts)
}
