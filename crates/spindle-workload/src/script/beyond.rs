//! Statements that do not stay within what is put back before each trial. Some work in the load and are missed by every
//! trial; others would stay on a server that is not Spindle's.

use super::bodies::held;
use super::elsewhere::{body_leads, uses};
use super::places::{MODIFIERS, changes_elsewhere, leaves_schema};
use super::server_wide::{
    is_heard, is_of_database, is_of_replication, is_of_server, makes_rows_elsewhere,
    works_on_all_tables,
};
use crate::sql::{Dialect, Ours};

const TABLESPACE: &str = "a tablespace lies outside of the files that are put back before each trial: leave it out; \
                          path and placement of a layout say where files lie";
const SETTING: &str = "settings of the server are the experiment's: name this one under settings in [database] or in \
                       database of a layout";
const REPLICATION: &str = "changes of another server would come into every trial: leave replication out of what is measured";
const ELSEWHERE: &str = "files of other directories are not put back before each trial: leave data directory and \
                         index directory out";
const ROWS_ELSEWHERE: &str = "the rows of such a table lie elsewhere, perhaps on another server, and are not put back before \
                              each trial: load them into a table";
const IN_MEMORY: &str = "such a table is empty in every trial, for which the server starts again: choose another engine";
const ATTACHED: &str =
    "another file is not put back before each trial: load it into the one database";
const OF_SERVER: &str = "this belongs to the whole server, which is not Spindle's: make it there before the run, and leave the statement out";
const SLOT: &str = "a replication slot belongs to the whole server, which is not Spindle's, and would stay there: leave \
                    it out";
const OF_DATABASE: &str = "this belongs to the whole database, which is not Spindle's: it has a schema there. Let the server copy \
                           databases (restore = \"copy\"), or leave the statement out";
const ALL_TABLES: &str =
    "this works on every table of the database, which is not Spindle's: name the tables";
const HEARD: &str = "sessions of others in this database would hear it. Let the server copy databases (restore = \"copy\"), or leave \
                     it out";
const UNLOGGED: &str =
    "replicas of this server would miss the changes, and stop at a later one: leave it out";
const FILES: &str = "this writes a file or starts a program on the server's machine, which is not Spindle's: leave it out";
const CALLS: &str = "this function works on the whole server or by another connection, and that is not Spindle's: leave it out";
const FORGETS: &str = "this drops the prepared statements that a script is carried out with: name what is to be reset, as in reset all";
const COPIES: &str = "rows of COPY do not go the way of answers, and pgbench does not take them either: write insert or select";
const CLIENT_ROWS: &str = "rows of COPY would come from the client, and a file of SQL has statements only: name a dump of pg_dump in \
                           load, which may hold them, or write insert";
const CHANGES: &str =
    "a check asks and changes nothing, so that trials begin with what the load left: write select";
const LEAVES: &str =
    "later statements would work outside of Spindle's schema, or as another user: leave it out";
const NAMED: &str = "the name says where it is, and that is not Spindle's: write the name alone. There a statement may only read, \
                     without locks and views";

/// How a question begins.
const QUESTIONS: [&str; 7] = [
    "select", "with", "values", "table", "show", "explain", "pragma",
];
/// Words of statements that change rows or make tables.
const CHANGING: [&str; 5] = ["insert", "update", "delete", "merge", "into"];
/// What makes, changes and drops things.
const DEFINES: [&str; 4] = ["create", "alter", "drop", "rename"];
/// What belongs to no schema.
const DATABASE_WIDE: [&str; 10] = [
    "schema",
    "extension",
    "event",
    "publication",
    "server",
    "language",
    "cast",
    "transform",
    "procedural",
    "trusted",
];
/// What belongs to the whole server, or is named so in rights, comments and labels.
const OF_SERVERS: [&str; 4] = ["role", "database", "tablespace", "parameter"];

/// Whether a statement does not stay within its database, by what it says alone.
pub fn leaves_database(sql: &str, dialect: Dialect) -> bool {
    reason(sql, dialect, Ours::Database, &[]).is_some()
}

/// Why a statement may not be carried out where `ours` is put back, or one that it holds; `None`: it may. `others` are
/// the schemas or databases there that are not Spindle's, in small letters.
pub(crate) fn reason(
    sql: &str,
    dialect: Dialect,
    ours: Ours,
    others: &[String],
) -> Option<&'static str> {
    let is_own = ours == Ours::Server;
    let elsewhere = || {
        let leads = ours == Ours::Schema && body_leads(sql, dialect);
        match leads {
            true => Some(LEAVES),
            false => uses(sql, dialect, others).then_some(NAMED),
        }
    };
    let within = |sql: &str| {
        let held = held(sql, dialect).into_iter();
        held.filter_map(|held| reason_alone(held, dialect, ours))
            .next()
    };
    reason_alone(sql, dialect, ours)
        .or_else(|| (!is_own).then(|| within(sql).or_else(elsewhere)).flatten())
}

/// The same, whatever the statement holds.
fn reason_alone(sql: &str, dialect: Dialect, ours: Ours) -> Option<&'static str> {
    let words = plain_words(sql, dialect);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    never(&words, dialect).or_else(|| match (dialect, ours) {
        (Dialect::MariaDb, Ours::Server) => is_in_memory(&words).then_some(IN_MEMORY),
        (_, Ours::Server) | (Dialect::Sqlite, _) => None,
        (Dialect::Postgres, _) => beyond_postgres(sql, &words, ours),
        (Dialect::MariaDb, _) => beyond_mariadb(sql, &words),
    })
}

/// Why a statement cannot be in a check; `None`: it can.
pub(super) fn no_question(sql: &str, dialect: Dialect) -> Option<&'static str> {
    let words = plain_words(sql, dialect);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let asks = words.first().is_some_and(|first| QUESTIONS.contains(first));
    let changes = words.iter().any(|word| CHANGING.contains(word));
    match asks && !changes {
        true => never(&words, dialect),
        false => Some(CHANGES),
    }
}

fn never(words: &[&str], dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Postgres => never_in_postgres(words),
        Dialect::MariaDb => never_in_mariadb(words),
        Dialect::Sqlite => never_in_sqlite(words),
    }
}

/// Why a statement cannot be in a script, which is prepared and carried out again and again; `None`: it can.
pub(super) fn unfit(sql: &str, dialect: Dialect) -> Option<&'static str> {
    if dialect != Dialect::Postgres {
        return None;
    }
    let words = plain_words(sql, dialect);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["discard" | "deallocate", "all"] | ["deallocate", "prepare", "all"] => Some(FORGETS),
        _ => copies_to_client(sql, &words).then_some(COPIES),
    }
}

/// Why a statement cannot be in a load; `None`: it can.
pub(super) fn no_load(sql: &str, dialect: Dialect) -> Option<&'static str> {
    let words = plain_words(sql, dialect);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let waits = dialect == Dialect::Postgres && copies_to_client(sql, &words);
    never(&words, dialect).or(waits.then_some(CLIENT_ROWS))
}

/// Whether a statement of PostgreSQL, or one of several that are joined, is a COPY from or to the client.
fn copies_to_client(sql: &str, words: &[&str]) -> bool {
    let is_joined = sql.contains(';');
    let copy = words.iter().position(|word| *word == "copy");
    let copy = copy.filter(|place| *place == 0 || is_joined);
    copy.is_some_and(|place| {
        let is_client = |pair: &[&str]| matches!(pair, ["from" | "to", "stdin" | "stdout"]);
        words[place..].windows(2).any(is_client)
    })
}

fn never_in_postgres(words: &[&str]) -> Option<&'static str> {
    match words {
        ["create" | "alter" | "drop", "tablespace", ..] => Some(TABLESPACE),
        ["alter", "system", ..] => Some(SETTING),
        ["create" | "alter", "subscription", ..] => Some(REPLICATION),
        _ => makes_rows_elsewhere(words, Dialect::Postgres).then_some(ROWS_ELSEWHERE),
    }
}

fn never_in_mariadb(words: &[&str]) -> Option<&'static str> {
    let has = |pair: [&str; 2]| words.windows(2).any(|next| next == pair);
    match words {
        ["set", more @ ..]
            if more.iter().any(|word| {
                matches!(*word, "global" | "persist" | "persist_only")
                    || word.starts_with("global.")
                    || word.starts_with("persist")
            }) =>
        {
            Some(SETTING)
        }
        ["create" | "alter" | "drop", "tablespace", ..]
        | ["create", "undo", "tablespace", ..]
        | ["create", "logfile", ..] => Some(TABLESPACE),
        ["change", "master" | "replication", ..]
        | [
            "start" | "stop",
            "slave" | "replica" | "all" | "group_replication",
            ..,
        ] => Some(REPLICATION),
        ["create" | "alter", ..] if has(["data", "directory"]) || has(["index", "directory"]) => {
            Some(ELSEWHERE)
        }
        _ => makes_rows_elsewhere(words, Dialect::MariaDb).then_some(ROWS_ELSEWHERE),
    }
}

fn is_in_memory(words: &[&str]) -> bool {
    let says = |pair: &[&str]| matches!(pair, ["engine", "memory" | "heap"]);
    matches!(words, ["create" | "alter", ..]) && words.windows(2).any(says)
}

fn never_in_sqlite(words: &[&str]) -> Option<&'static str> {
    match words {
        ["attach", ..] => Some(ATTACHED),
        ["vacuum", more @ ..] if more.contains(&"into") => Some(ATTACHED),
        _ => None,
    }
}

fn beyond_postgres(sql: &str, words: &[&str], ours: Ours) -> Option<&'static str> {
    if words.iter().any(|word| is_of_replication(word)) {
        return Some(SLOT);
    }
    let of_server = match words {
        ["create" | "alter" | "drop", "user", "mapping", ..] => false,
        [
            "create" | "alter" | "drop",
            "role" | "user" | "group" | "database",
            ..,
        ]
        | ["reassign" | "drop", "owned", ..] => true,
        // Rights are on something, but for memberships.
        ["grant" | "revoke", more @ ..] => {
            let mut behind_on = more.iter().skip_while(|word| **word != "on").skip(1);
            behind_on
                .next()
                .is_none_or(|what| OF_SERVERS.contains(what))
        }
        ["comment", "on", what, ..] => OF_SERVERS.contains(what),
        ["security", "label", more @ ..] => more.iter().any(|word| OF_SERVERS.contains(word)),
        _ => false,
    };
    if of_server {
        return Some(OF_SERVER);
    }
    // A file of the server is written, or a program started there.
    let uses_files = match words {
        ["copy", more @ ..] => {
            more.contains(&"program") || more.contains(&"to") && !more.contains(&"stdout")
        }
        _ => false,
    };
    if uses_files {
        return Some(FILES);
    }
    if words.iter().any(|word| is_of_server(word)) {
        return Some(CALLS);
    }
    if ours == Ours::Database {
        return None;
    }
    if works_on_all_tables(sql) {
        return Some(ALL_TABLES);
    }
    if is_heard(words) {
        return Some(HEARD);
    }
    let of_database = match words {
        _ if words.iter().any(|word| is_of_database(word)) => true,
        ["create" | "alter" | "drop", "foreign", "data", ..]
        | ["create" | "alter" | "drop", "access", "method", ..]
        | ["create" | "alter" | "drop", "user", "mapping", ..]
        | ["alter", "default", "privileges", ..] => true,
        ["grant" | "revoke", more @ ..] if more.iter().any(|word| DATABASE_WIDE.contains(word)) => {
            true
        }
        ["alter", more @ ..] if more.windows(2).any(|pair| pair == ["set", "schema"]) => true,
        [first, more @ ..] if DEFINES.contains(first) => {
            let what = more.iter().find(|word| !MODIFIERS.contains(word));
            what.is_some_and(|what| DATABASE_WIDE.contains(what))
        }
        _ => false,
    };
    match of_database {
        true => Some(OF_DATABASE),
        false if leaves_schema(sql, Dialect::Postgres) => Some(LEAVES),
        false => changes_elsewhere(sql, Dialect::Postgres).then_some(NAMED),
    }
}

fn beyond_mariadb(sql: &str, words: &[&str]) -> Option<&'static str> {
    match words {
        ["create" | "alter" | "drop" | "rename", more @ ..] => {
            let what = more.iter().find(|word| !MODIFIERS.contains(word));
            let is_of_server = what.is_some_and(|what| {
                ["user", "role", "database", "schema", "server"].contains(what)
            });
            // A function that a library has.
            if is_of_server || more.contains(&"soname") {
                return Some(OF_SERVER);
            }
        }
        ["set", more @ ..] if more.iter().any(|word| word.ends_with("sql_log_bin")) => {
            return Some(UNLOGGED);
        }
        ["use", ..] => return Some(LEAVES),
        _ if words
            .windows(2)
            .any(|pair| pair[0] == "into" && ["outfile", "dumpfile"].contains(&pair[1])) =>
        {
            return Some(FILES);
        }
        [
            "backup" | "grant" | "revoke" | "install" | "uninstall" | "flush" | "reset" | "purge"
            | "shutdown" | "kill",
            ..,
        ]
        | ["set", "password" | "role" | "default", ..] => {
            return Some(OF_SERVER);
        }
        _ => {}
    }
    changes_elsewhere(sql, Dialect::MariaDb).then_some(NAMED)
}

/// The words of a statement, in small letters and without those in texts; a name in parts is one.
fn plain_words(sql: &str, dialect: Dialect) -> Vec<String> {
    let mut plain = String::with_capacity(sql.len());
    let mut quote = None;
    for letter in sql.chars() {
        let opens = letter == '\'' || (letter == '"' && dialect == Dialect::MariaDb);
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if opens => {
                quote = Some(letter);
                plain.push(' ');
            }
            None => plain.push(letter),
        }
    }
    super::makes::words(&plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(sql: &str, dialect: Dialect, ours: Ours) -> &'static str {
        reason(sql, dialect, ours, &[]).unwrap_or_default()
    }

    #[test]
    fn what_no_restore_puts_back_is_refused_on_every_server() {
        for (dialect, sql, why) in [
            (
                Dialect::Postgres,
                "CREATE TABLESPACE t LOCATION '/x'",
                "tablespace",
            ),
            (
                Dialect::Postgres,
                "drop tablespace if exists t",
                "tablespace",
            ),
            (
                Dialect::Postgres,
                "alter system set fsync = off",
                "experiment's",
            ),
            (
                Dialect::Postgres,
                "create subscription s connection 'host=x' publication p",
                "another server",
            ),
            (
                Dialect::MariaDb,
                "set global max_connections = 5",
                "experiment's",
            ),
            (
                Dialect::MariaDb,
                "set sort_buffer_size = 9, @@global.x = 5",
                "experiment's",
            ),
            (Dialect::MariaDb, "set @@persist.x = 5", "experiment's"),
            (
                Dialect::MariaDb,
                "create table t (a int) engine = InnoDB data directory = '/x'",
                "data directory",
            ),
            (
                Dialect::MariaDb,
                "create table t (a int) ENGINE=Memory",
                "empty",
            ),
            (
                Dialect::MariaDb,
                "create tablespace t add datafile 'x'",
                "tablespace",
            ),
            (
                Dialect::MariaDb,
                "change master to master_host = 'x'",
                "another server",
            ),
            (
                Dialect::Sqlite,
                "attach database 'x.db' as x",
                "another file",
            ),
            (Dialect::Sqlite, "VACUUM INTO 'x.db'", "another file"),
        ] {
            assert!(told(sql, dialect, Ours::Server).contains(why), "{sql}");
        }
    }

    #[test]
    fn a_check_asks_and_changes_nothing() {
        for asks in [
            "select sum(last_update) from t",
            "with a as (select 1) select * from a",
            "values (1)",
            "(select 'delete from t')",
        ] {
            assert_eq!(no_question(asks, Dialect::Postgres), None, "{asks}");
        }
        for changes in [
            "insert into t values (1)",
            "with gone as (delete from t returning *) select count(*) from gone",
            "select * into copy from t",
            "truncate t",
            "call p()",
        ] {
            assert_eq!(
                no_question(changes, Dialect::Postgres),
                Some(CHANGES),
                "{changes}"
            );
        }
    }

    #[test]
    fn what_cannot_be_prepared_again_and_again_is_unfit() {
        for sql in [
            "DISCARD ALL",
            "deallocate all",
            "copy t from stdin",
            "copy (select 1) to STDOUT",
        ] {
            assert!(unfit(sql, Dialect::Postgres).is_some(), "{sql}");
        }
        for sql in [
            "discard temp",
            "deallocate s",
            "insert into t values ('stdin')",
            "copy t from '/x'",
        ] {
            assert_eq!(unfit(sql, Dialect::Postgres), None, "{sql}");
        }
    }

    #[test]
    fn a_load_has_no_rows_for_copy() {
        for sql in [
            "copy t from stdin",
            "COPY t (a, b) FROM STDIN WITH (format csv)",
            "copy t from stdout",
            "copy (select 1) to stdout",
            "begin; copy t from stdin; commit",
        ] {
            let reason = no_load(sql, Dialect::Postgres);
            assert_eq!(reason, Some(CLIENT_ROWS), "{sql}");
        }
        for sql in [
            "copy t from '/x'",
            "copy t (stdin) from '/x'",
            "insert into t values ('copy t from stdin')",
            "select copy from stdin",
        ] {
            assert_eq!(no_load(sql, Dialect::Postgres), None, "{sql}");
        }
    }

    #[test]
    fn what_is_put_back_may_be_loaded() {
        for (dialect, sql) in [
            (Dialect::Postgres, "create role ann"),
            (Dialect::Postgres, "create unlogged table t (a int)"),
            (
                Dialect::Postgres,
                "insert into t values ('create tablespace')",
            ),
            (Dialect::Postgres, "set work_mem = '1GB'"),
            (Dialect::MariaDb, "set foreign_key_checks = 0"),
            (
                Dialect::MariaDb,
                "create table t (a int comment 'engine = memory, data directory')",
            ),
            (Dialect::MariaDb, "create user ann@localhost"),
            (Dialect::Sqlite, "vacuum"),
        ] {
            assert_eq!(told(sql, dialect, Ours::Server), "", "{sql}");
        }
        for sql in [
            "create schema app",
            "create table app.t (a int)",
            "create extension cube",
            "grant select on t to public",
            "create user mapping for public server s",
        ] {
            assert_eq!(told(sql, Dialect::Postgres, Ours::Database), "", "{sql}");
        }
        for sql in [
            "create table t (a int)",
            "insert into t select * from other.t",
            "create index i on t (a)",
            "create temp table t as select 1.5",
            "alter table t set (fillfactor = 50)",
            "grant select on t to public",
            "do $$ begin create table t (a int); execute 'insert into t values (1)'; end $$",
            "create trigger c before insert or update or delete on t for each row execute function f()",
            "create function f() returns int language plpgsql set search_path = pg_catalog as $$ begin update t set a = 1; return 1; end $$",
            "copy t from '/tmp/x'",
            "vacuum analyze t",
            "listen x",
            "prepare p as insert into t values ($1)",
        ] {
            assert_eq!(told(sql, Dialect::Postgres, Ours::Schema), "", "{sql}");
        }
    }

    #[test]
    fn what_would_stay_on_a_foreign_server_is_refused() {
        for ours in [Ours::Database, Ours::Schema] {
            for sql in [
                "create role ann",
                "create database x",
                "alter database x set fsync = off",
                "grant ann to bob",
                "select pg_create_physical_replication_slot('s')",
                "create tablespace t location '/x'",
                "revoke all on database shop from public",
                "grant create on tablespace pg_default to eve",
                "grant set on parameter work_mem to eve",
                "do $$ begin create role r; exception when duplicate_object then null; end $$",
                "copy t to '/tmp/x'",
                "copy t from program 'touch /tmp/x'",
                "select dblink_exec('dbname=lab', 'create table public.t (a int)')",
                "select pg_catalog.pg_terminate_backend(7)",
                "create function f() returns void language sql as 'alter system set fsync = off'",
                "select pg_replication_slot_advance('s', '0/1')",
                "create foreign table f (a int) server s",
                "import foreign schema x from server s into y",
            ] {
                assert_ne!(told(sql, Dialect::Postgres, ours), "", "{sql}");
            }
            for sql in [
                "create user ann",
                "create or replace database x",
                "use x",
                "grant all on *.* to ann",
                "insert into other.t values (1)",
                "create table if not exists `other`.`t` (a int)",
                "truncate table other.t",
                "select * from t into outfile '/tmp/x'",
                "execute immediate 'create table shop.t (a int)'",
                "prepare s from 'create user u'",
                "create procedure p() begin create table shop.t (a int); end",
                "create procedure p() begin set global max_connections = 80; end",
                "begin not atomic insert into shop.t values (1); end",
                "stop slave",
                "stop all slaves",
                "backup stage start",
                "create aggregate function f returns int soname 'f.so'",
                "set session sql_log_bin = 0",
                "set statement sql_log_bin = 0 for insert into t values (1)",
                "create table t (a int) engine = FEDERATED connection = 'mysql://x'",
                "create table t (a int) engine=connect table_type=mysql",
            ] {
                assert_ne!(told(sql, Dialect::MariaDb, ours), "", "{sql}");
            }
        }
        for sql in [
            "create schema app",
            "create extension if not exists cube",
            "create event trigger e on sql_drop execute function f()",
            "create publication p",
            "create table public.t (a int)",
            "create or replace view app.v as select 1",
            "create unique index i on public.t (a)",
            "drop table if exists public.t",
            "delete from only public.t",
            "update public.t set a = 1",
            "do $$ begin create table public.t (a int); end $$",
            "create function f() returns void language sql as 'create table if not exists public.t (a int)'",
            "grant usage on schema public to bob",
            "grant select on all tables in schema public to bob",
            "vacuum (analyze)",
            "reindex system shop",
            "alter materialized view all in tablespace a set tablespace b",
            "notify orders",
            "select pg_notify('orders', '1')",
            "select lo_unlink(5)",
            "select lowrite(lo_open(5, 131072), 'x')",
            "do $$ begin perform pg_catalog.lo_put(5, 0, 'x'); end $$",
        ] {
            assert_ne!(told(sql, Dialect::Postgres, Ours::Schema), "", "{sql}");
        }
    }
}
