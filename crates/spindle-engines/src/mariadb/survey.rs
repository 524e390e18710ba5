//! A look at an existing MariaDB or MySQL, for [`ServerSurvey`].

use spindle_workload::sql::SqlConnection;

use super::connection::{MariaDbConnection, READ_ONLY};
use super::hindrances::{answers_commits, limits, takes_changes};
use super::settings::in_force;
use crate::EngineError;
use crate::promise::{self, CommitStorage};
use crate::sql::Address;
use crate::sql::survey::{LARGEST, Right, ServerSurvey, clock, number, round_trip, texts, volumes};

const TIME: &str = "select cast(unix_timestamp(now(6)) * 1000000 as signed)";
const CACHE: &str = "select cast(@@innodb_buffer_pool_size as signed)";
const VERSION: &str = "select concat(version(), ' (', @@version_comment, ')')";
const PLUGINS: &str = "select concat(plugin_name, ' ', plugin_version) from information_schema.plugins \
                       where plugin_library is not null order by 1";
/// What a run does in its own database.
const NEEDED: [&str; 8] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "INDEX", "ALTER",
];
/// As grants name all databases, or those of runs.
const PLACES: [&str; 4] = [
    " ON *.* TO ",
    " ON `spindle\\_%`.* TO ",
    " ON `spindle_%`.* TO ",
    " ON `%`.* TO ",
];

/// Looks at a server; `settings` asks for those that matter to storage.
pub(super) fn survey(
    connection: &mut MariaDbConnection,
    address: &Address,
    encryption: Option<String>,
    settings: &str,
) -> Result<ServerSurvey, EngineError> {
    let refused = |error| EngineError::unavailable(format!("{address}: {error}"));
    let hindrances = vec![takes_changes(connection), answers_commits(connection)];
    connection.run(READ_ONLY).map_err(refused)?;
    let version = texts(connection, VERSION).pop();
    let mut told = Vec::new();
    // One that does not know the question has none to tell.
    let _ = connection.ask(settings, &mut |row| {
        told.push(format!("{} = {}", row.text(0)?, row.text(1)?));
        Ok(())
    });
    let in_force = in_force(connection);
    Ok(ServerSurvey {
        version: version.unwrap_or_else(|| "a server of an unknown version".to_owned()),
        encryption,
        settings: told,
        promise: promise::innodb::promise(&in_force, &CommitStorage::default()),
        extensions: texts(connection, PLUGINS),
        cache_bytes: number(connection, CACHE).and_then(|bytes| bytes.try_into().ok()),
        databases: volumes(connection, &largest("table_schema")),
        tables: volumes(
            connection,
            &largest("concat(table_schema, '.', table_name)"),
        ),
        rights: [hindrances, rights(connection, address)].concat(),
        limits: limits(connection),
        round_trip: round_trip(connection).map_err(refused)?,
        clock: clock(connection, TIME),
    })
}

fn largest(name: &str) -> String {
    format!(
        "select {name}, cast(sum(coalesce(data_length, 0) + coalesce(index_length, 0)) as signed) from information_schema.tables \
         where table_schema not in ('mysql', 'information_schema', 'performance_schema', 'sys') \
         group by 1 order by 2 desc, 1 limit {LARGEST}"
    )
}

/// What an administrator has to say for a run to work, of the account that a connection is for.
pub(super) fn grant_for_runs(connection: &mut MariaDbConnection, address: &Address) -> String {
    format!(
        "grant all on `spindle\\_%`.* to {}",
        account(connection, address)
    )
}

/// The account that the server takes the user for, as SQL names it.
fn account(connection: &mut MariaDbConnection, address: &Address) -> String {
    let user = texts(connection, "select current_user()").pop();
    let user = user.unwrap_or_else(|| address.user.clone());
    let (name, host) = user.rsplit_once('@').unwrap_or((&user, "%"));
    let quoted = |part: &str| format!("'{}'", part.replace('\'', "''"));
    format!("{}@{}", quoted(name), quoted(host))
}

fn rights(connection: &mut MariaDbConnection, address: &Address) -> Vec<Right> {
    let user = account(connection, address);
    let grant = grant_for_runs(connection, address);
    let grants = texts(connection, "show grants");
    let may_work = grants.iter().any(|grant| is_enough(grant));
    let mut is_on = |name: &str| {
        let told = number(connection, &format!("select @@global.{name}"));
        told.map(|told| told == 1)
    };
    let (takes_files, has_schema) = (is_on("local_infile"), is_on("performance_schema"));
    let sees = number(
        connection,
        "select count(*) from performance_schema.threads",
    )
    .is_some();
    vec![
        Right::of(
            "may make databases of runs, and work in them",
            "no run is possible",
            (!grants.is_empty()).then_some(may_work),
            || grant,
        ),
        Right::of(
            "takes rows that a client sends (local_infile)",
            "no run is possible",
            takes_files,
            || "set global local_infile = on".to_owned(),
        ),
        Right::of(
            "has performance_schema",
            "waits are not told",
            has_schema,
            || "set performance_schema = on in its options, and restart the server".to_owned(),
        ),
        Right::of(
            "may read performance_schema",
            "waits are not told",
            has_schema.map(|has_schema| !has_schema || sees),
            || format!("grant select on performance_schema.* to {user}"),
        ),
    ]
}

/// Whether a grant alone lets a run work.
fn is_enough(grant: &str) -> bool {
    let Some(place) = PLACES.iter().find_map(|place| grant.find(place)) else {
        return false;
    };
    let given = grant[..place].trim_start_matches("GRANT ");
    let words: Vec<&str> = given.split(", ").collect();
    given == "ALL PRIVILEGES" || NEEDED.iter().all(|needed| words.contains(needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_enough_or_not() {
        for (grant, enough) in [
            (
                "GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION",
                true,
            ),
            ("GRANT ALL PRIVILEGES ON `spindle\\_%`.* TO `ann`@`%`", true),
            ("GRANT ALL PRIVILEGES ON `lab`.* TO `ann`@`%`", false),
            (
                "GRANT USAGE ON *.* TO `ann`@`%` IDENTIFIED BY PASSWORD '*1'",
                false,
            ),
            (
                "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER ON *.* TO `ann`@`%`",
                true,
            ),
            (
                "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, INDEX, ALTER ON *.* TO `ann`@`%`",
                false,
            ),
        ] {
            assert_eq!(is_enough(grant), enough, "{grant}");
        }
    }
}
