//! What keeps a run from its end on an existing MariaDB or MySQL: a server that takes no changes, commits that wait for
//! a replica that is not there, and limits of time. `foreign` asks before anything is made, `survey` tells.

use std::collections::BTreeMap;

use spindle_workload::sql::SqlConnection;

use super::connection::MariaDbConnection;
use crate::EngineError;
use crate::sql::Address;
use crate::sql::survey::{Limit, Right, texts};

/// Nothing that a session does is ended for the time that it takes. MariaDB passes over comments of MySQL 5.7, and
/// MySQL over those of MariaDB. Zero is no limit; of `wait_timeout` the server's own default is long enough.
pub(super) const LIFT_LIMITS: &str = "set session wait_timeout = greatest(@@session.wait_timeout, 28800) \
     /*M!100300 , idle_transaction_timeout = 0, idle_write_transaction_timeout = 0 */ \
     /*M!100300 , idle_readonly_transaction_timeout = 0 */ \
     /*M! , max_statement_time = 0 */ /*!50708 , max_execution_time = 0 */";
/// The default of `wait_timeout`, seconds: what is shorter was set on purpose.
const WAIT_S: f64 = 28_800.0;
/// Settings that end what takes long, and what they end.
const LIMITS: [(&str, &str); 6] = [
    ("max_statement_time", "a statement that takes longer"),
    ("max_execution_time", "a query that takes longer"),
    (
        "idle_transaction_timeout",
        "a session that pauses longer in a transaction",
    ),
    (
        "idle_write_transaction_timeout",
        "a session that pauses longer in a transaction that has changed something",
    ),
    (
        "idle_readonly_transaction_timeout",
        "a session that pauses longer in a transaction that has changed nothing",
    ),
    (WAIT, "a session that pauses longer"),
];
const WAIT: &str = "wait_timeout";
/// Changes are refused where one of these is on: of the session, of all but some users, of all users.
const OF_SESSION: [&str; 2] = ["tx_read_only", "transaction_read_only"];
const OF_MANY: &str = "read_only";
const OF_ALL: &str = "super_read_only";
/// A user with one of these on all databases may make changes all the same.
const STRONGER: [&str; 5] = [
    "ALL PRIVILEGES",
    "SUPER",
    "READ_ONLY ADMIN",
    "READ ONLY ADMIN",
    "CONNECTION_ADMIN",
];
const EVERYWHERE: &str = " ON *.* TO ";
/// Names of semi-synchronous replication, old and new
/// (https://mariadb.com/docs/server/ha-and-performance/standard-replication/semisynchronous-replication).
const SIDES: [&str; 2] = ["master", "source"];
/// A commit that waits longer for a replica looks as if it waited forever, milliseconds.
const WAITS_LONG_MS: u64 = 60_000;

/// That changes are taken there, and commits answered.
///
/// # Errors
/// `Unavailable`: what is in the way, and what to do.
pub(super) fn check(
    connection: &mut MariaDbConnection,
    address: &Address,
) -> Result<(), EngineError> {
    for right in [takes_changes(connection), answers_commits(connection)] {
        if let Some(remedy) = right.missing {
            return Err(EngineError::unavailable(format!("{address}: {remedy}")));
        }
    }
    Ok(())
}

/// Whether changes are taken there, of sessions like this one, which is in no transaction.
pub(super) fn takes_changes(connection: &mut MariaDbConnection) -> Right {
    let names = [&OF_SESSION[..], &[OF_MANY, OF_ALL]].concat().join("', '");
    let told = told(
        connection,
        &format!("show variables where variable_name in ('{names}')"),
    );
    let grants = texts(connection, "show grants");
    let in_the_way = in_the_way(&told, &grants);
    let is_given = (!told.is_empty()).then_some(in_the_way.is_none());
    Right::of("takes changes", "no run is possible", is_given, || {
        in_the_way.unwrap_or_default()
    })
}

/// Why nothing can be written by who has these grants, and what to do.
fn in_the_way(told: &BTreeMap<String, String>, grants: &[String]) -> Option<String> {
    let is_on = |name: &&str| told.get(*name).is_some_and(|value| !is_off(value));
    if let Some(name) = OF_SESSION.iter().find(|name| is_on(name)) {
        return Some(format!(
            "nothing can be written there, as {name} is on: set global {name} = off"
        ));
    }
    let is_stronger = |grant: &String| {
        let given = grant.split_once(EVERYWHERE).map(|(given, _)| given);
        let given = given.and_then(|given| given.strip_prefix("GRANT "));
        given.is_some_and(|given| given.split(", ").any(|given| STRONGER.contains(&given)))
    };
    let names: &[&str] = match grants.iter().any(is_stronger) {
        true => &[OF_ALL],
        false => &[OF_ALL, OF_MANY],
    };
    names.iter().find(|name| is_on(name)).map(|name| {
        format!(
            "nothing can be written there, as {name} is on, which a replica has: give the address of its primary; or \
             where it is none: set global {name} = off"
        )
    })
}

fn is_off(value: &str) -> bool {
    ["off", "0", "no_lock"].contains(&value.to_lowercase().as_str())
}

/// Whether commits come to their end: those of semi-synchronous replication wait for a replica.
pub(super) fn answers_commits(connection: &mut MariaDbConnection) -> Right {
    let mut semi_sync = BTreeMap::new();
    for list in ["global variables", "global status"] {
        semi_sync.extend(told(
            connection,
            &format!("show {list} like 'rpl_semi_sync_%'"),
        ));
    }
    let waits = SIDES.iter().find_map(|side| waiting(&semi_sync, side));
    let without = "the load waits without end for its first commit";
    Right::of("answers commits", without, Some(waits.is_none()), || {
        waits.unwrap_or_default()
    })
}

/// Why commits wait, if they do, by the variables that bear this name.
fn waiting(told: &BTreeMap<String, String>, side: &str) -> Option<String> {
    let of = |name: &str| told.get(&format!("rpl_semi_sync_{side}_{name}"));
    let number = |name: &str| of(name).and_then(|value| value.parse::<u64>().ok());
    let is_waiting = ["enabled", "status"]
        .iter()
        .all(|name| of(name).is_some_and(|value| !is_off(value)));
    let (there, wanted) = (
        number("clients")?,
        number("wait_for_slave_count").unwrap_or(1),
    );
    let timeout_ms = number("timeout")?;
    (is_waiting && there < wanted && timeout_ms > WAITS_LONG_MS).then(|| {
        let name = format!("rpl_semi_sync_{side}_enabled");
        format!(
            "a commit waits {} s for replicas ({name}), and {there} of {wanted} are connected: have them connect, or: \
             set global {name} = off",
            timeout_ms / 1000
        )
    })
}

/// The limits of time that sessions like this one have.
pub(super) fn limits(connection: &mut MariaDbConnection) -> Vec<Limit> {
    let names: Vec<&str> = LIMITS.iter().map(|(name, _)| *name).collect();
    let told = told(
        connection,
        &format!(
            "show session variables where variable_name in ('{}')",
            names.join("', '")
        ),
    );
    let of = |(name, ends): &(&str, &'static str)| {
        let value = told.get(*name)?;
        let number: f64 = value.parse().ok()?;
        let is_limit = number > 0.0 && (*name != WAIT || number < WAIT_S);
        let setting = format!("{name} = {value}");
        is_limit.then_some(Limit { setting, ends })
    };
    LIMITS.iter().filter_map(of).collect()
}

/// Names, in small letters, and values; empty where the server does not answer.
fn told(connection: &mut MariaDbConnection, sql: &str) -> BTreeMap<String, String> {
    let mut told = BTreeMap::new();
    let _ = connection.ask(sql, &mut |row| {
        told.insert(row.text(0)?.to_lowercase(), row.text(1)?);
        Ok(())
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn who_may_write_on_a_replica_is_known() {
        let (few, all) = (
            ["GRANT ALL PRIVILEGES ON `spindle\\_%`.* TO `ann`@`%`".to_owned()],
            ["GRANT SELECT, READ_ONLY ADMIN ON *.* TO `ann`@`%`".to_owned()],
        );
        let said = |told: &[(&str, &str)], grants: &[String]| in_the_way(&of(told), grants);
        let off = [("read_only", "OFF"), ("tx_read_only", "OFF")];
        assert_eq!(said(&off, &few), None);
        let replica = [("read_only", "ON")];
        assert!(said(&replica, &few).unwrap().contains("its primary"));
        assert_eq!(said(&replica, &all), None);
        let strict = [("read_only", "ON"), ("super_read_only", "ON")];
        assert!(
            said(&strict, &all)
                .unwrap()
                .contains("super_read_only is on")
        );
        let session = [("transaction_read_only", "1")];
        assert!(
            said(&session, &all)
                .unwrap()
                .contains("set global transaction_read_only = off")
        );
    }

    #[test]
    fn commits_wait_for_a_replica_that_is_not_there() {
        let mut told = of(&[
            ("rpl_semi_sync_master_enabled", "ON"),
            ("rpl_semi_sync_master_status", "ON"),
            ("rpl_semi_sync_master_timeout", "18446744073709551615"),
            ("rpl_semi_sync_master_clients", "0"),
        ]);
        assert!(
            waiting(&told, "master")
                .unwrap()
                .contains("0 of 1 are connected")
        );
        assert_eq!(waiting(&told, "source"), None);
        for (name, value) in [
            ("rpl_semi_sync_master_clients", "1"),
            ("rpl_semi_sync_master_status", "OFF"),
            ("rpl_semi_sync_master_timeout", "10000"),
        ] {
            let before = told.insert(name.to_owned(), value.to_owned()).unwrap();
            assert_eq!(waiting(&told, "master"), None, "{name}");
            told.insert(name.to_owned(), before);
        }
    }
}
