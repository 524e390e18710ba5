//! What keeps a run from its end on an existing PostgreSQL: a server that takes no changes, commits that wait for a
//! standby that is not there, and limits of time. `foreign` and `template` ask before anything is made, `survey` tells.

use spindle_workload::sql::SqlConnection;

use super::connection::PostgresConnection;
use super::survey::quoted;
use crate::EngineError;
use crate::sql::Address;
use crate::sql::survey::{Limit, Right, number, texts};

const IS_STANDBY: &str = "select pg_is_in_recovery()::int";
const IS_READ_ONLY: &str = "select (current_setting('default_transaction_read_only') = 'on')::int";
/// Which standbys commits wait for, whether those of this session do, how many standbys there are, of how many this
/// user may know whether commits wait for them, and how many of these answer
/// (https://www.postgresql.org/docs/current/monitoring-stats.html, `pg_stat_replication`).
const STANDBYS: &str = "select current_setting('synchronous_standby_names'), current_setting('synchronous_commit'), \
     (select count(*) from pg_stat_replication), (select count(sync_state) from pg_stat_replication), \
     (select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum'))";
/// Values of `synchronous_commit` with which a commit waits for no standby.
const WAITS_FOR_NONE: [&str; 2] = ["off", "local"];
/// Settings that end what takes long, and what they end.
const LIMITS: [(&str, &str); 5] = [
    ("statement_timeout", "a statement that takes longer"),
    ("transaction_timeout", "a transaction that takes longer"),
    ("lock_timeout", "a statement that waits longer for a lock"),
    (
        "idle_in_transaction_session_timeout",
        "a session that pauses longer in a transaction",
    ),
    ("idle_session_timeout", "a session that pauses longer"),
];

/// That changes are taken there, and commits answered.
///
/// # Errors
/// `Unavailable`: what is in the way, and what to do.
pub(super) fn check(
    connection: &mut PostgresConnection,
    address: &Address,
) -> Result<(), EngineError> {
    check_writable(connection, address)?;
    refuse(address, answers_commits(connection, &address.user))
}

/// That changes are taken there.
///
/// # Errors
/// `Unavailable`: why not, and what to do.
pub(super) fn check_writable(
    connection: &mut PostgresConnection,
    address: &Address,
) -> Result<(), EngineError> {
    refuse(address, takes_changes(connection, &address.user))
}

fn refuse(address: &Address, right: Right) -> Result<(), EngineError> {
    match right.missing {
        Some(remedy) => Err(EngineError::unavailable(format!("{address}: {remedy}"))),
        None => Ok(()),
    }
}

/// Whether changes are taken there, for sessions like this one.
pub(super) fn takes_changes(connection: &mut PostgresConnection, user: &str) -> Right {
    // Others that speak the protocol may have neither.
    let is_standby = number(connection, IS_STANDBY) == Some(1);
    let is_read_only = number(connection, IS_READ_ONLY);
    let is_given = match is_standby {
        true => Some(false),
        false => is_read_only.map(|is_read_only| is_read_only == 0),
    };
    let remedy = || {
        match is_standby {
        true => "it is a standby (pg_is_in_recovery), and nothing can be written there: give the address of its \
                 primary"
            .to_owned(),
        false => format!(
            "nothing can be written there, as default_transaction_read_only is on: alter role {} set \
             default_transaction_read_only = off",
            quoted(user)
        ),
    }
    };
    Right::of("takes changes", "no run is possible", is_given, remedy)
}

/// Whether commits of sessions like this one come to their end.
pub(super) fn answers_commits(connection: &mut PostgresConnection, user: &str) -> Right {
    let mut told = None;
    // A server that does not know the question does not tell.
    let _ = connection.ask(STANDBYS, &mut |row| {
        told = Some(Standbys {
            names: row.text(0)?,
            commit: row.text(1)?,
            connected: row.int(2)?,
            told: row.int(3)?,
            answering: row.int(4)?,
        });
        Ok(())
    });
    let is_given = told.as_ref().and_then(Standbys::answer);
    let without = "the load waits without end for its first commit";
    Right::of("answers commits", without, is_given, || {
        let Standbys {
            names, answering, ..
        } = told.unwrap_or_default();
        let wanted = wanted_of(&names);
        format!(
            "commits wait for standbys (synchronous_standby_names = {names}), and {answering} of {wanted} answer: have \
             them connect, or wait for none: alter role {} set synchronous_commit = local",
            quoted(user)
        )
    })
}

/// What is told of standbys.
#[derive(Default)]
struct Standbys {
    names: String,
    commit: String,
    connected: i64,
    told: i64,
    answering: i64,
}

impl Standbys {
    /// Whether enough of them answer; `None`: this user may not know.
    fn answer(&self) -> Option<bool> {
        let waits =
            !self.names.trim().is_empty() && !WAITS_FOR_NONE.contains(&self.commit.as_str());
        match waits {
            false => Some(true),
            true if self.connected < wanted_of(&self.names) => Some(false),
            true if self.told == 0 => None,
            true => Some(self.answering >= wanted_of(&self.names)),
        }
    }
}

/// For how many standbys a commit waits: `FIRST 2 (a, b)`, `ANY 2 (a, b)`, `2 (a, b)`, or a list of which one is enough
/// (https://www.postgresql.org/docs/current/runtime-config-replication.html).
fn wanted_of(names: &str) -> i64 {
    let before = names.split_once('(').map_or("", |(before, _)| before);
    let number = before.split_whitespace().find_map(|word| word.parse().ok());
    number.unwrap_or(1)
}

/// The limits of time that sessions like this one have.
pub(super) fn limits(connection: &mut PostgresConnection) -> Vec<Limit> {
    let asked = format!(
        "select name || ' = ' || current_setting(name) from pg_settings where {}",
        that_limit()
    );
    let told = texts(connection, &asked);
    let of = |setting: String| {
        let (_, ends) = LIMITS.iter().find(|(name, _)| setting.starts_with(name))?;
        Some(Limit { setting, ends })
    };
    told.into_iter().filter_map(of).collect()
}

/// Nothing that this session does is ended for the time that it takes.
pub(super) fn lift_limits(connection: &mut PostgresConnection) {
    let lift = format!(
        "select set_config(name, '0', false) from pg_settings where {}",
        that_limit()
    );
    // Others that speak the protocol may have none.
    let _ = connection.ask(&lift, &mut |_| Ok(()));
}

/// The condition for settings that limit something. Later versions have more of them.
fn that_limit() -> String {
    let names: Vec<&str> = LIMITS.iter().map(|(name, _)| *name).collect();
    format!("name in ('{}') and setting <> '0'", names.join("', '"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_wait_for_as_many_standbys_as_are_named() {
        for (names, wanted) in [
            ("s1, s2", 1),
            ("*", 1),
            ("FIRST 2 (s1, s2, s3)", 2),
            ("any 3 (s1,s2,s3)", 3),
            ("2 (\"a b\")", 2),
        ] {
            assert_eq!(wanted_of(names), wanted, "{names}");
        }
    }

    #[test]
    fn standbys_answer_or_not() {
        let of = |names: &str, commit: &str, [connected, told, answering]: [i64; 3]| {
            let (names, commit) = (names.to_owned(), commit.to_owned());
            Standbys {
                names,
                commit,
                connected,
                told,
                answering,
            }
            .answer()
        };
        assert_eq!(of("", "on", [0, 0, 0]), Some(true));
        assert_eq!(of("s1", "local", [0, 0, 0]), Some(true));
        assert_eq!(of("s1", "on", [0, 0, 0]), Some(false));
        assert_eq!(of("s1", "on", [1, 1, 0]), Some(false));
        assert_eq!(of("s1", "remote_apply", [1, 1, 1]), Some(true));
        assert_eq!(of("ANY 2 (s1, s2)", "on", [1, 0, 0]), Some(false));
        assert_eq!(of("s1", "on", [1, 0, 0]), None);
    }
}
