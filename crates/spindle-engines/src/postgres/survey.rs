//! A look at an existing PostgreSQL, for [`ServerSurvey`].

use spindle_workload::sql::SqlConnection;

use super::connection::PostgresConnection;
use super::encryption::connect;
use super::hindrances::{answers_commits, limits, takes_changes};
use super::sessions::{check_kept, others_reached};
use super::settings::in_force;
use crate::EngineError;
use crate::promise::{self, CommitStorage};
use crate::sql::survey::{LARGEST, Right, ServerSurvey, clock, number, round_trip, texts, volumes};
use crate::sql::{Address, Password, tls};

/// Nothing that follows may change anything. A setting of the session would stay for its next user, behind a pool of
/// connections.
const READ_ONLY: &str = "begin transaction read only";
/// Most times that a connection is made again: each time may have taken a while.
const AGAIN_MAX: u32 = 1;
const TIME: &str = "select (extract(epoch from clock_timestamp()) * 1000000)::int8";
const CACHE: &str = "select pg_size_bytes(current_setting('shared_buffers'))";
const EXTENSIONS: &str = "select extname || ' ' || extversion from pg_extension order by 1";

/// Looks at a server; `settings` asks for those that matter to storage.
pub(super) fn survey(
    address: &Address,
    password: Option<&Password>,
    settings: &str,
) -> Result<ServerSurvey, EngineError> {
    let refused = |error| EngineError::unavailable(format!("{address}: {error}"));
    let come = || connect(address, password, "spindle doctor").map_err(refused);
    let connection = come()?;
    let encryption = connection.encryption();
    let encryption = encryption.map(|version| tls::described(&address.encryption, &version));
    let mut look = Look {
        connection,
        come,
        made_again: 0,
    };
    let round_trip = round_trip(look.again()?).map_err(refused)?;
    let clock = clock(look.again()?, TIME);
    let version = texts(look.again()?, "select version()").pop();
    let mut told = Vec::new();
    // One that does not know the question has none to tell.
    let _ = look.again()?.ask(settings, &mut |row| {
        told.push(format!("{} = {}", row.text(0)?, row.text(1)?));
        Ok(())
    });
    let in_force = in_force(look.again()?);
    let hindrances = vec![
        takes_changes(look.again()?, &address.user),
        answers_commits(look.again()?, &address.user),
    ];
    Ok(ServerSurvey {
        version: version.unwrap_or_else(|| "a server of an unknown version".to_owned()),
        encryption,
        settings: told,
        promise: promise::postgres::promise(&in_force, &CommitStorage::default()),
        extensions: texts(look.again()?, EXTENSIONS),
        cache_bytes: number(look.again()?, CACHE).and_then(|bytes| bytes.try_into().ok()),
        databases: volumes(look.again()?, &databases()),
        tables: volumes(look.again()?, &tables()),
        rights: [hindrances, rights(&mut look, address, password)?].concat(),
        limits: limits(look.again()?),
        round_trip,
        clock,
    })
}

/// A connection that is made again when the server has not come through a question, as some do that only speak the
/// protocol.
struct Look<C> {
    connection: PostgresConnection,
    come: C,
    made_again: u32,
}

impl<C: Fn() -> Result<PostgresConnection, EngineError>> Look<C> {
    /// For the next question, in a transaction that changes nothing.
    fn again(&mut self) -> Result<&mut PostgresConnection, EngineError> {
        // One that is gone is made again.
        let _ = self.connection.rollback();
        // One that is not made again answers nothing, and that is not known then.
        if self.connection.is_closed() && self.made_again < AGAIN_MAX {
            self.made_again += 1;
            self.connection = (self.come)()?;
        }
        // A server that does not know such transactions is asked without.
        let _ = self.connection.run(READ_ONLY);
        Ok(&mut self.connection)
    }
}

/// A database's size is told to who may connect to it, or may see all statistics.
fn databases() -> String {
    format!(
        "select datname::text, case when has_database_privilege(oid, 'CONNECT') \
         or pg_has_role('pg_read_all_stats', 'MEMBER') then pg_database_size(oid) end \
         from pg_database where not datistemplate order by 2 desc nulls last, 1 limit {LARGEST}"
    )
}

fn tables() -> String {
    format!(
        "select n.nspname || '.' || c.relname, pg_total_relation_size(c.oid) \
         from pg_class c join pg_namespace n on n.oid = c.relnamespace \
         where c.relkind in ('r', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' \
         order by 2 desc, 1 limit {LARGEST}"
    )
}

fn rights(
    look: &mut Look<impl Fn() -> Result<PostgresConnection, EngineError>>,
    address: &Address,
    password: Option<&Password>,
) -> Result<Vec<Right>, EngineError> {
    let user = quoted(&address.user);
    let database = quoted(address.database.as_deref().unwrap_or_default());
    let create = "select has_database_privilege(current_database(), 'CREATE')::int";
    let databases =
        "select (rolsuper or rolcreatedb)::int from pg_roles where rolname = current_user";
    let monitor = "select pg_has_role('pg_monitor', 'MEMBER')::int";
    let left = "select current_setting('max_connections')::int8 - count(*) from pg_stat_activity \
                where backend_type = 'client backend'";
    // A transaction stays in one process, whichever answers.
    let _ = look.again()?.rollback();
    let kept = check_kept(&mut look.connection, &look.come);
    let others = others_reached(look.again()?, address, password);
    let keeps_sessions = match kept {
        Ok(is_told) => is_told.then_some(true),
        Err(_) => Some(false),
    };
    let mut ask = |sql: &str| Ok::<_, EngineError>(number(look.again()?, sql));
    let is_one = |answer: Option<i64>| answer.map(|answer| answer == 1);
    let makes_databases = is_one(ask(databases)?);
    let without_schema = match makes_databases {
        Some(true) => "a run has the server copy databases, and cannot load again instead",
        _ => "no run is possible",
    };
    let mut rights = vec![
        Right::of(
            "keeps sessions",
            "no run is possible",
            keeps_sessions,
            || {
                "give the address of one server behind it, or have the pool keep sessions"
                    .to_owned()
            },
        ),
        Right::of(
            "may make a schema in this database",
            without_schema,
            is_one(ask(create)?),
            || format!("grant create on database {database} to {user}"),
        ),
        Right::of(
            "may make databases",
            "a run loads its data again before each trial",
            makes_databases,
            || format!("alter role {user} createdb"),
        ),
        Right::of(
            "may see what others wait for",
            "waits of background processes are not told",
            is_one(ask(monitor)?),
            || format!("grant pg_monitor to {user}"),
        ),
        Right::of(
            "has room for more connections",
            "a run of more than a few clients fails",
            ask(left)?.map(|left| left >= 8),
            || "raise max_connections, and restart the server".to_owned(),
        ),
    ];
    rights.extend(others.map(|reached| reaches_others(reached.is_ok())));
    Ok(rights)
}

fn reaches_others(is_reached: bool) -> Right {
    let remedy = "give the address of the server, or have the pool know all its databases";
    Right::of(
        "reaches other databases",
        "a run loads its data again before each trial",
        Some(is_reached),
        || remedy.to_owned(),
    )
}

/// A name as SQL has it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
