//! Workloads from scripts: pgbench's own ones run unchanged on every database that is installed here, what a check
//! script looks at is found when it changes, and expressions give what pgbench itself gives.

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{Server, ServerKind, ServerStop, SqlUnderTest, create_and_load};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_text::load_file::LoadFile;
use spindle_text::section::TextFile;
use spindle_workload::driver::{Behaviour, Running};
use spindle_workload::sql::{Dialect, SqlWorkload};
use spindle_workload::{MadeFor, ScriptSettings, WorkloadSettings};

use crate::sql_workloads::{Loaded, databases, works_and_faults_are_found};

const TABLES: &str = include_str!("../../../../workloads/pgbench/tables.sql");
const CHECK: &str = include_str!("../../../../workloads/pgbench/check.sql");
/// As pgbench shows them.
const BUILT_IN: [(&str, &str); 3] = [
    (
        "tpcb-like",
        include_str!("../../../../workloads/pgbench/tpcb-like.sql"),
    ),
    (
        "simple-update",
        include_str!("../../../../workloads/pgbench/simple-update.sql"),
    ),
    (
        "select-only",
        include_str!("../../../../workloads/pgbench/select-only.sql"),
    ),
];

/// Answers become variables, which conditions ask and statements write back.
const KEEPS: &str = "\\set aid random(1, 100)
SELECT abalance AS balance, aid FROM pgbench_accounts WHERE aid = :aid \\gset of_
\\if :of_aid <> :aid
INSERT INTO pgbench_branches (bid, bbalance) VALUES (:scale, :of_balance);
\\else
SELECT d FROM digits WHERE d = :client_id + 0 \\aset
\\sleep 10 us
\\endif
";

pub fn file(name: &str, weight: u32, text: &str) -> TextFile {
    TextFile {
        name: name.to_owned(),
        weight,
        text: text.to_owned(),
    }
}

fn settings(scripts: Vec<TextFile>) -> ScriptSettings {
    ScriptSettings {
        scripts,
        load: vec![LoadFile::Text(file("tables.sql", 1, TABLES))],
        check: vec![file("check.sql", 1, CHECK)],
        define: BTreeMap::new(),
    }
}

pub fn made(settings: &ScriptSettings, dialect: Dialect, clients: u64) -> Arc<dyn SqlWorkload> {
    let made_for = MadeFor {
        data_bytes: 64 << 20,
        block_bytes: 8 << 10,
        clients,
        seed: 7,
        dialect: Some(dialect),
    };
    assert_eq!(settings.check(&made_for), []);
    settings.make(&made_for).in_sql(7)
}

#[test]
fn scripts_of_pgbench_run_unchanged_and_checks_find_what_changed() {
    let built_in = BUILT_IN.map(|(name, text)| file(name, 2, text));
    let scripts: Vec<TextFile> = built_in
        .into_iter()
        .chain([file("keeps.sql", 1, KEEPS)])
        .collect();
    for (_, server) in databases() {
        let workload = made(&settings(scripts.clone()), server.dialect(), 4);
        works_and_faults_are_found(
            server,
            &workload,
            &[
                (
                    &["update pgbench_accounts set abalance = abalance + 1 where aid = 7"],
                    "check.sql:2:1: (",
                ),
                (
                    &["delete from pgbench_tellers where tid = 4"],
                    "(9), and (10) after the load",
                ),
            ],
        );
    }
}

/// The files of a folder of ready scripts: those that clients carry out, and the others.
fn ready(folder: &str) -> (Vec<TextFile>, BTreeMap<String, TextFile>) {
    let folder = format!("{}/../../workloads/{folder}", env!("CARGO_MANIFEST_DIR"));
    let (mut scripts, mut others) = (Vec::new(), BTreeMap::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".sql") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let is_other = ["tables", "rows", "check", "postgres", "mariadb", "sqlite"]
            .iter()
            .any(|other| name == format!("{other}.sql"));
        match is_other {
            true => _ = others.insert(name.clone(), file(&name, 1, &text)),
            false => scripts.push(file(&name, 1, &text)),
        }
    }
    (scripts, others)
}

/// Carries a workload out with one client, in which each of this many scripts takes part; the transactions of each
/// kind.
fn carried_out(
    loaded: &Loaded,
    workload: &Arc<dyn SqlWorkload>,
    scripts: usize,
) -> Vec<(String, u64)> {
    let (running, failure) = run(loaded, Arc::clone(workload), 80 + 15 * scripts as u64);
    assert_eq!(failure, None);
    assert_eq!(running.errors(), 0);
    let by_kind = running.by_kind();
    let counts = by_kind
        .iter()
        .map(|kind| (kind.kind.clone(), kind.latencies.count()));
    counts.collect()
}

#[test]
fn ready_scripts_run_on_every_database_and_their_checks_find_a_loss() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (kind, server) in databases() {
        let of_kind = format!("{}.sql", spindle_text::word::Word::as_word(kind));
        for (folder, load, count, fault, says) in [
            (
                "sysbench",
                [of_kind.as_str(), "rows.sql"].as_slice(),
                8,
                "update sbtest1 set pad = 'short' where id between 1 and 300",
                "and (0) after the load",
            ),
            (
                "ycsb",
                ["tables.sql"].as_slice(),
                6,
                "delete from usertable where ycsb_key = 'user1000000007'",
                "(999), and (1000) after the load",
            ),
            (
                "as3ap",
                ["tables.sql"].as_slice(),
                31,
                "delete from tenpct where col_key = 77",
                "(9999, 1000), and (10000, 1000) after the load",
            ),
            (
                "scalable-hardware",
                ["tables.sql"].as_slice(),
                4,
                "update disk_rows set filler = 'b' where id = 77",
                "(1), and (0) after the load",
            ),
        ] {
            let (scripts, others) = ready(folder);
            assert_eq!(scripts.len(), count, "{folder}");
            let settings = ScriptSettings {
                scripts,
                load: load
                    .iter()
                    .map(|name| LoadFile::Text(others[*name].clone()))
                    .collect(),
                check: vec![others["check.sql"].clone()],
                define: BTreeMap::new(),
            };
            let workload = made(&settings, server.dialect(), 1);
            let loaded = Loaded::with(server, &*workload);
            for (script, count) in carried_out(&loaded, &workload, count) {
                assert!(count > 2, "{kind:?}: {folder}: {script} {count}");
            }
            let mut connection = loaded.server.connect().unwrap();
            let checked = workload.check(&mut *connection, &[]);
            checked.unwrap_or_else(|loss| panic!("{kind:?}: {folder}: {loss}"));
            connection.run(fault).unwrap();
            let found = workload
                .check(&mut *connection, &[])
                .expect_err(fault)
                .to_string();
            assert!(found.contains(says), "{kind:?}: {found}");
            drop(connection);
            loaded.server.stop(ServerStop::Kill).unwrap();
        }
    }
}

#[test]
fn scripts_that_pgbench_has_built_in_are_those_of_this_test() {
    let Some(pgbench) = pgbench() else {
        return;
    };
    for (name, text) in BUILT_IN {
        let asked = format!("--show-script={name}");
        let shown = Command::new(&pgbench).arg(asked).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&shown.stderr), text);
    }
}

#[test]
fn statements_that_cannot_be_prepared_are_told_with_their_place_when_the_load_has_ended() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (kind, server) in databases() {
        let bad = file(
            "bad.sql",
            1,
            "select 1;\n\n  select missing from digits where d = :scale;",
        );
        let workload = made(&settings(vec![bad]), server.dialect(), 1);
        let told = refused(server, &*workload);
        assert!(told.contains("bad.sql:3:3: "), "{kind:?}: {told}");
        let mut broken = settings(vec![file("good.sql", 1, "select 1;")]);
        broken.load.push(LoadFile::Text(file(
            "more.sql",
            1,
            "select 1;\ninsert into nowhere values (1);",
        )));
        let told = refused(server, &*made(&broken, server.dialect(), 1));
        assert!(told.contains("more.sql:2:1: "), "{kind:?}: {told}");
    }
}

pub fn refused(server: &dyn Server, workload: &dyn SqlWorkload) -> String {
    let (place, directories) = crate::sql_workloads::empty();
    let request = crate::sql_workloads::request(server);
    let loaded = create_and_load(server, &request, &directories, workload, &Arc::default());
    drop(place);
    loaded.expect_err("it cannot be loaded").to_string()
}

fn pgbench() -> Option<std::path::PathBuf> {
    let places = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut programs = places.map(|entry| entry.path().join("bin/pgbench"));
    let found = programs.find(|program| program.is_file());
    if found.is_none() {
        spindle_harness::skip("pgbench is not installed");
    }
    found
}

/// PostgreSQL with a table for results, and pgbench beside it.
struct Beside {
    loaded: Loaded,
    pgbench: std::path::PathBuf,
    place: tempfile::TempDir,
}

impl Beside {
    fn new() -> Option<Beside> {
        let (_, server) = databases()
            .into_iter()
            .find(|(kind, _)| *kind == ServerKind::Postgres)?;
        let table = "create table results (who text, number integer, value text, primary key (who, number));
            create function twice(a integer) returns integer begin atomic select 1; select case when true then 2 * a end; end;
            create type mood as enum ('sad', 'glad');";
        let mut settings = settings(vec![file("x.sql", 1, "select 1;")]);
        let table = LoadFile::Text(file("results.sql", 1, table));
        settings.load.push(table);
        let loaded = Loaded::with(server, &*made(&settings, Dialect::Postgres, 1));
        Some(Beside {
            loaded,
            pgbench: pgbench()?,
            place: tempfile::tempdir().unwrap(),
        })
    }

    /// Has pgbench carry a script out once.
    fn theirs(&self, script: &str) -> Output {
        let path = self.place.path().join("script.sql");
        std::fs::write(&path, script).unwrap();
        let data = &self.loaded.directories.data;
        let password = std::fs::read_to_string(data.join("password")).unwrap();
        let command = Command::new(&self.pgbench)
            .env("PGPASSWORD", password.trim())
            .args([
                "-n", "-M", "prepared", "-t", "1", "-U", "spindle", "-D", "half=0.5",
            ])
            .args(["-D", "word=blue", "-D", "yes=ye", "-h"])
            .arg(data.join("run"))
            .arg("-f")
            .arg(&path)
            .arg("postgres")
            .output();
        command.unwrap()
    }

    /// Carries a script out once, with Spindle's client; what was wrong, if anything was.
    fn ours(&self, script: &str) -> Option<String> {
        let mut settings = settings(vec![file("script.sql", 1, script)]);
        let define = [("half", "0.5"), ("word", "blue"), ("yes", "ye")];
        settings.define = define
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into();
        let workload = made(&settings, Dialect::Postgres, 1);
        failure(&self.loaded, workload, 1)
    }

    /// Carries a script out in both; what each left in the table of results, by number.
    fn both(&self, script: impl Fn(&str) -> String) -> BTreeMap<i64, [String; 2]> {
        let output = self.theirs(&script("theirs"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(self.ours(&script("ours")), None);
        let mut values: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        let mut connection = self.loaded.server.connect().unwrap();
        let asked = connection.ask(
            "select number, value from results order by who",
            &mut |row| {
                values.entry(row.int(0)?).or_default().push(row.text(1)?);
                Ok(())
            },
        );
        asked.unwrap();
        let values = values.into_iter();
        values
            .map(|(number, pair)| (number, pair.try_into().unwrap()))
            .collect()
    }
}

/// Carries a workload out with one client; what went wrong, if anything did.
fn failure(loaded: &Loaded, workload: Arc<dyn SqlWorkload>, transactions: u64) -> Option<String> {
    run(loaded, workload, transactions).1
}

/// The same; what was counted, too.
fn run(
    loaded: &Loaded,
    workload: Arc<dyn SqlWorkload>,
    transactions: u64,
) -> (Running, Option<String>) {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let (server, directories) = (Arc::clone(&loaded.server), loaded.directories.clone());
    let engine = SqlUnderTest::new(server, workload, directories);
    let behaviour = Behaviour {
        clients: 1,
        transactions: Some(transactions),
        ..Behaviour::default()
    };
    let mut running = engine.start_clients(&env, behaviour);
    running.measure(true);
    while !running.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let failure = running
        .failure()
        .map(|error| error.to_string())
        .or(running.first_error());
    block_on(running.stop()).ok();
    (running, failure)
}

/// Expressions, each with one value.
const EXPRESSIONS: [&str; 66] = [
    "1 + 2 * 3 - 4",
    "-2 * 3 % 4",
    "7 / 2",
    "-7 / 2",
    "-7 % 3",
    "7 % -3",
    "7.0 / 2",
    "1 / 3.0",
    "2 - -3",
    "~5",
    "~1 + 2",
    "~1 | 2",
    "6 & 3 | 8 # 1",
    "1 << 3 + 1",
    "1 << 65",
    "-17 >> 2",
    "not 1 = 2",
    "not false and false",
    "true or 1 / 0 = 1",
    "1 < 2",
    "2 >= 2",
    "1 <> 1.0",
    "1 != 2",
    "1.5 <= 1",
    "null is null is null",
    "1 + null is null",
    "(null and true) is null",
    "1 is true",
    "false is not true",
    "2 isnull",
    "2 notnull",
    "-9223372036854775808",
    "9223372036854775807",
    "1e3",
    ".5e-7",
    "1e15 + 0.3",
    "123456789012345678.0",
    "0.1 + 0.2",
    "2.5e300 * 3",
    "abs(-5) + abs(2.5)",
    "abs(-9223372036854775808)",
    "least(3, 2.5, 7)",
    "greatest(3, 2, 7)",
    "least(5)",
    "int(2.5) + int(3.5) + int(-2.5)",
    "double(7) / 2",
    "mod(54, 32)",
    "mod(54.6, 32)",
    "pow(2, 0.5)",
    "power(-2, 3)",
    "sqrt(2)",
    "ln(10)",
    "exp(1)",
    "pi()",
    "case when 1 > 2 then 1 when null then 2 when 0.5 then 3 else 4 end",
    "hash(10, 5432)",
    "hash_fnv1a(-10, 5432)",
    "hash_murmur2(2.6, -1)",
    "permute(123456789, 9000000000000000000, 42)",
    "permute(-1, 1000, 7)",
    ":half * 3",
    ":yes",
    "1.0 / 0",
    "-1.0 / 0",
    "0.0 / 0",
    "-0.0 * 1",
];

/// Expressions that have none, and what both say.
const WITHOUT_VALUE: [(&str, &str); 18] = [
    ("9223372036854775807 + 1", "bigint add out of range"),
    ("-9223372036854775808 - 1", "bigint sub out of range"),
    ("9223372036854775807 * 2", "bigint mul out of range"),
    ("-9223372036854775808 / -1", "bigint div out of range"),
    ("1 / 0", "division by zero"),
    ("int(1e100)", "double to int overflow for"),
    ("int(1.0 / 0)", "double to int overflow for Infinity"),
    ("true + 1", "cannot coerce boolean to int"),
    ("1.5 + false", "cannot coerce boolean to double"),
    ("not 1", "cannot coerce int to boolean"),
    ("1 = 2 is null = false", "cannot coerce boolean to int"),
    ("random(5, 1)", "empty range given to random"),
    (
        "random(-9223372036854775808, 9223372036854775807)",
        "random range is too large",
    ),
    (
        "random_gaussian(1, 2, 1.5)",
        "gaussian parameter must be at least 2.000000 (not 1.500000)",
    ),
    (
        "random_exponential(1, 2, 0)",
        "exponential parameter must be greater than zero (not 0.000000)",
    ),
    (
        "random_zipfian(1, 2, 1)",
        "zipfian parameter must be in range [1.001, 1000] (not 1.000000)",
    ),
    (
        "permute(1, 0, 1)",
        "permute size parameter must be greater than zero",
    ),
    (":word + 1", "malformed variable \"word\" value: \"blue\""),
];

#[test]
fn expressions_give_what_pgbench_gives() {
    let Some(beside) = Beside::new() else {
        return;
    };
    let script = |who: &str| -> String {
        let line = |(number, expression): (usize, &&str)| {
            format!("\\set x {expression}\ninsert into results values ('{who}', {number}, :x);\n")
        };
        EXPRESSIONS.iter().enumerate().map(line).collect()
    };
    let values = beside.both(script);
    assert_eq!(values.len(), EXPRESSIONS.len());
    for (expression, pair) in EXPRESSIONS.iter().zip(values.values()) {
        assert_eq!(pair[0], pair[1], "{expression}: ours, and pgbench's");
    }
    for (expression, message) in WITHOUT_VALUE {
        let script = format!("\\set x {expression}\nselect :x + 0;");
        let output = beside.theirs(&script);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(message), "{expression}: pgbench says {said}");
        let failure = beside.ours(&script).expect(expression);
        assert!(failure.contains("script.sql:1:1: "), "{failure}");
        assert!(failure.contains(message), "{expression}: {failure}");
    }
    beside.loaded.server.stop(ServerStop::Kill).unwrap();
}

#[test]
fn pipelines_do_their_statements_and_tell_what_fails() {
    let Some(beside) = Beside::new() else {
        return;
    };
    let rows = "\\startpipeline\nbegin;\ninsert into results values ('p', 1, :half);\n\\syncpipeline\n\
                insert into results values ('p', 2, :word);\ncommit;\n\\endpipeline\n";
    assert_eq!(beside.ours(rows), None);
    let failure = beside.ours(rows).expect("the rows are there already");
    assert!(
        failure.contains("script.sql:3:1: duplicate key"),
        "{failure}"
    );
    let later = "\\startpipeline\nselect 1;\n\\syncpipeline\nselect 2;\nselect 1 / (2 - 2);\nselect 3;\n\\endpipeline\n";
    let failure = beside.ours(later).expect("a division by zero");
    assert!(
        failure.contains("script.sql:5:1: division by zero"),
        "{failure}"
    );
    // What follows a failure is in order again.
    assert_eq!(beside.ours("select 1;"), None);
    let mut connection = beside.loaded.server.connect().unwrap();
    let mut kept = Vec::new();
    let asked = connection.ask(
        "select value from results where who = 'p' order by number",
        &mut |row| {
            kept.push(row.text(0)?);
            Ok(())
        },
    );
    asked.unwrap();
    assert_eq!(kept, ["0.5", "blue"]);
    drop(connection);
    beside.loaded.server.stop(ServerStop::Kill).unwrap();
}

/// What answers hold that become variables, of every kind that a server writes in its own way.
const KEPT: [&str; 30] = [
    "0.1::float8 + 0.2",
    "0.1::float4",
    "1e300::float8",
    "123456789012345678901234567890123456789012.5",
    "1.10",
    "true",
    "'NaN'::float8",
    "'-Infinity'::float8",
    "'Infinity'::numeric",
    "9223372036854775807",
    "7::int2",
    "'007'",
    "'blue'",
    "null::text",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
    "'{\"b\": 1,  \"a\": [1]}'::json",
    "'{\"b\": 1,  \"a\": [1]}'::jsonb",
    "array[1, null, 3]",
    "array['a b', 'c']",
    "interval '1 year 2 days 03:04:05.6'",
    "'192.168.0.0/16'::inet",
    "time '12:30:01.5'",
    "timestamp '2026-11-21 23:07:01.000001'",
    "timestamptz '2026-11-21 23:07:01+00'",
    "date '2026-11-21'",
    "'infinity'::date",
    "'\\xdeadbeef'::bytea",
    "'glad'::mood",
    "int4range(1, 5)",
    "twice(21)",
];

#[test]
fn answers_become_variables_as_the_server_writes_them() {
    let Some(beside) = Beside::new() else {
        return;
    };
    let script = |who: &str| -> String {
        let line = |(number, expression): (usize, &&str)| {
            format!(
                "select {expression} as x \\gset\ninsert into results values ('{who}', {number}, :x);\n"
            )
        };
        let kept: String = KEPT.iter().enumerate().map(line).collect();
        format!(
            "{kept}begin;\ndeclare c cursor for select 42 as f;\nfetch all from c \\gset\ncommit;\n\\set f :f + 1\n\
             insert into results values ('{who}', 100, :f);\n"
        )
    };
    let values = beside.both(script);
    assert_eq!(values.len(), KEPT.len() + 1);
    for (number, [ours, theirs]) in &values {
        let of = KEPT.get(*number as usize).unwrap_or(&"fetch");
        assert_eq!(ours, theirs, "{of}: ours, and pgbench's");
    }
    assert_eq!(values[&0][0], "0.30000000000000004");
    assert_eq!(values[&100][0], "43");
    // They are sent back as they came, whatever the type.
    let back = "select 0.1::float8 + 0.2 as f, array[1, 2] as a, true as t \\gset\n\
                select 1 / (:f = 0.1::float8 + 0.2 and :a = array[1, 2] and :t)::integer;";
    assert_eq!(beside.ours(back), None);
    beside.loaded.server.stop(ServerStop::Kill).unwrap();
}

#[test]
fn variables_within_any_quotes_fail_in_pgbench_and_are_refused_here() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(beside) = Beside::new() else {
        return;
    };
    for quoted in ["':x'", "$$:x$$", "\":x\""] {
        for set in ["\\set x 1", "select 1 as x \\gset"] {
            let script = format!("{set}\nselect {quoted};");
            let output = beside.theirs(&script);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("aborted"), "{script}: {said}");
            let settings = settings(vec![file("script.sql", 1, &script)]);
            let made_for = MadeFor {
                data_bytes: 64 << 20,
                block_bytes: 8 << 10,
                clients: 1,
                seed: 7,
                dialect: Some(Dialect::Postgres),
            };
            let refusal = settings.check(&made_for).remove(0);
            assert!(refusal.label.contains("within quotes"), "{refusal:?}");
        }
    }
    beside.loaded.server.stop(ServerStop::Kill).unwrap();
}

#[test]
fn a_transaction_that_a_script_leaves_open_is_no_success() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (kind, server) in databases() {
        let workload = |text: &str| {
            let settings = settings(vec![file("open.sql", 1, text)]);
            made(&settings, server.dialect(), 1)
        };
        let loaded = Loaded::with(server, &*workload("select 1;"));
        let begins: &[&str] = match kind {
            ServerKind::Sqlite => &["begin", "savepoint s"],
            ServerKind::MariaDb => &["begin", "set autocommit = 0"],
            _ => &["begin", "start transaction read only"],
        };
        for begin in begins {
            let insert = "insert into digits values (:client_id + 77)";
            let insert = match begin.ends_with("only") {
                true => "select 1",
                false => insert,
            };
            let open = format!("select 1;\n {begin};\n{insert};\n");
            let told = failure(&loaded, workload(&open), 2).expect(begin);
            let reason = "end of script reached without completing the last transaction";
            assert!(
                told.contains(reason) && told.contains("open.sql:"),
                "{kind:?}: {told}"
            );
            let ended = match *begin {
                "set autocommit = 0" => format!("{open}rollback;\nset autocommit = 1;"),
                _ => format!("{open}rollback;"),
            };
            assert_eq!(
                failure(&loaded, workload(&ended), 3),
                None,
                "{kind:?}: {begin}"
            );
        }
        loaded.server.stop(ServerStop::Kill).unwrap();
    }
}

#[test]
fn statements_wait_for_the_tables_that_their_script_makes() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (kind, server) in databases() {
        let workload = |text: &str| {
            let settings = settings(vec![file("makes.sql", 1, text)]);
            made(&settings, server.dialect(), 1)
        };
        let temporary = "begin;\ncreate temporary table w (a integer);\ninsert into w values (:client_id + 2);\n\
                         select a from w \\gset\ninsert into w values (:a);\ndrop table w;\ncommit;\n";
        let loaded = Loaded::with(server, &*workload(temporary));
        assert_eq!(failure(&loaded, workload(temporary), 3), None, "{kind:?}");
        let wrong = "create temporary table w (a integer);\n select missing from w;";
        let told = failure(&loaded, workload(wrong), 1).expect("there is no such column");
        assert!(
            told.contains("makes.sql:2:2: ") && told.contains("missing"),
            "{kind:?}: {told}"
        );
        loaded.server.stop(ServerStop::Kill).unwrap();
    }
}

#[test]
fn what_stands_in_a_branch_is_prepared_when_it_is_taken() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (kind, server) in databases() {
        let workload = |least: u32| {
            let text = format!(
                "\\if :scale > {least}\nselect missing from nowhere;\n\\else\nselect :scale + 1;\n\\endif\n"
            );
            made(
                &settings(vec![file("branches.sql", 1, &text)]),
                server.dialect(),
                1,
            )
        };
        let loaded = Loaded::with(server, &*workload(1));
        assert_eq!(failure(&loaded, workload(1), 3), None, "{kind:?}");
        let told = failure(&loaded, workload(0), 1).expect("there is no such table");
        assert!(
            told.contains("branches.sql:2:1: ") && told.contains("nowhere"),
            "{kind:?}: {told}"
        );
        loaded.server.stop(ServerStop::Kill).unwrap();
    }
}

#[test]
fn databases_without_texts_of_their_own_keep_what_they_answer_exactly() {
    for (kind, server) in databases() {
        let (columns, values): (&[&str], &str) = match kind {
            ServerKind::Sqlite => (
                &["f real", "b blob", "t text"],
                "0.1 + 0.2, x'00ff27', '0.10'",
            ),
            ServerKind::MariaDb => (
                &[
                    "f double",
                    "b blob",
                    "t time(6)",
                    "m datetime(6)",
                    "u bigint unsigned",
                    "d decimal(40, 2)",
                ],
                "0.1e0 + 0.2e0, x'00ff27', '-26:00:01.5', '2026-11-21 23:07:01.000001', 18446744073709551615, \
                 12345678901234567890123456789012345678.25",
            ),
            _ => continue,
        };
        let mut settings = settings(vec![]);
        let table = format!(
            "create table kinds (hits integer, {});\ninsert into kinds values (0, {values});",
            columns.join(", ")
        );
        settings
            .load
            .push(LoadFile::Text(file("kinds.sql", 1, &table)));
        let names: Vec<&str> = columns
            .iter()
            .filter_map(|of| of.split_once(' '))
            .map(|of| of.0)
            .collect();
        let all: Vec<String> = names
            .iter()
            .map(|name| format!("{name} = :of_{name}"))
            .collect();
        let script = format!(
            "select {} from kinds \\gset of_\nupdate kinds set hits = hits + 1 where {};",
            names.join(", "),
            all.join(" and ")
        );
        settings.scripts = vec![file("keep.sql", 1, &script)];
        let workload = made(&settings, server.dialect(), 1);
        let loaded = Loaded::with(server, &*workload);
        assert_eq!(failure(&loaded, workload, 2), None, "{kind:?}");
        let mut connection = loaded.server.connect().unwrap();
        let asked = connection.ask("select hits from kinds", &mut |row| {
            assert_eq!(row.int(0)?, 2, "{kind:?}");
            Ok(())
        });
        asked.unwrap();
        drop(connection);
        loaded.server.stop(ServerStop::Kill).unwrap();
    }
}
