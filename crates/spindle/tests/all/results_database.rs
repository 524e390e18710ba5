//! `spindle export --to`: results in a PostgreSQL of the test's own, which is left as it was but for the schema.
//! Without such a server installed a test says so and does nothing.

use std::process::Output;

use spindle_engines::sql::ServerKind;

use crate::results::journals::Run;
use crate::server_by_url::scene::{PASSWORD, Scene, told};

const DAYS: [&str; 3] = [
    "2026-01-01T12:00:00.25Z",
    "2026-01-02T12:00:00.5Z",
    "2026-01-03T12:00:00.75Z",
];
/// Everything in the schema, by number.
const COUNTS: &str = "select concat_ws(' ', (select count(*) from spindle.machines), (select count(*) from spindle.runs), \
    (select count(*) from spindle.cases), (select count(*) from spindle.trials), (select count(*) from spindle.series), \
    (select count(*) from spindle.verdicts), (select count(*) > 0 from spindle.waits))";
/// All that the server knows outside the schema. Long values of its tables lie elsewhere.
const CATALOGUE: &str = "with ours as (select oid from pg_namespace where nspname = 'spindle') \
    select md5(string_agg(line, '|' order by line)) from (\
    select 'class ' || concat_ws(' ', oid, relname, relnamespace, relowner, relfilenode, relkind, relacl::text) \
        from pg_class where relnamespace not in (select oid from ours) and relname not like 'pg\\_toast\\_%' \
    union all select 'namespace ' || concat_ws(' ', oid, nspname, nspowner, nspacl::text) \
        from pg_namespace where oid not in (select oid from ours) \
    union all select 'role ' || t::text from pg_authid t \
    union all select 'database ' || concat_ws(' ', oid, datname, datdba, datconnlimit, datacl::text) from pg_database \
    union all select 'procedure ' || concat_ws(' ', oid, proname, proacl::text) \
        from pg_proc where pronamespace not in (select oid from ours) \
    union all select 'row ' || n::text from theirs.rows) as known (line)";

/// A server, its address, and three runs `r0` to `r2` in a directory.
fn scene() -> Option<(Scene, String)> {
    let scene = Scene::of(ServerKind::Postgres)?;
    scene.run(&format!("create role lab login password '{PASSWORD}'"));
    scene.run("create schema theirs");
    scene.run("create table theirs.rows as select generate_series(1, 10) as n");
    let socket = scene.socket(".s.PGSQL.5432");
    let directory = socket.parent().unwrap().display().to_string();
    for (index, at) in DAYS.into_iter().enumerate() {
        let run = Run {
            at,
            speed_of_second: 1.0 - 0.1 * index as f64,
            ..Run::default()
        };
        run.write(&scene.place.path().join(format!("r{index}")));
    }
    let url = format!("postgres://lab@localhost/postgres?host={directory}");
    Some((scene, url))
}

fn export(scene: &Scene, url: &str, more: &[&str]) -> Output {
    let arguments = ["export", "--to", url, "--password-env", "LAB_PASSWORD"];
    scene.spindle(&[&arguments, more].concat())
}

/// One server for all, because it takes longer to make than to ask.
#[test]
fn runs_are_kept_in_a_schema_of_their_own() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some((scene, url)) = scene() else {
        return;
    };
    kept_once(&scene, &url);
    questions_of_the_documentation(&scene);
    gone_on(&scene, &url);
    refused(&scene, &url);
    planted(&scene, &url);
}

/// Runs are kept once, and nothing else is touched.
fn kept_once(scene: &Scene, url: &str) {
    // Without the right, the grant is told.
    let output = export(scene, url, &["r0"]);
    assert_eq!(output.status.code(), Some(1));
    let grant = "grant create on database \"postgres\" to \"lab\"";
    assert!(told(&output).contains(grant), "{}", told(&output));
    scene.run("grant create on database postgres to lab");
    let before = scene.ask(CATALOGUE);

    let output = export(scene, url, &["r0", "r1"]);
    assert!(output.status.success(), "{}", told(&output));
    assert_eq!(scene.ask(COUNTS), ["1 2 4 12 12 2 t"]);
    // The same again, and one more; a run in another place is the same run.
    std::fs::rename(
        scene.place.path().join("r1"),
        scene.place.path().join("moved"),
    )
    .unwrap();
    let output = export(scene, url, &["r0", "moved", "r2"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("r0: written again") && said.contains("r2: new"),
        "{said}"
    );
    assert_eq!(scene.ask(COUNTS), ["1 3 6 18 18 3 t"]);
    let moved = "select directory from spindle.runs where directory like '%moved'";
    assert_eq!(scene.ask(moved).len(), 1);
    assert_eq!(scene.ask(CATALOGUE), before);
    // A change is seen.
    scene.run("update theirs.rows set n = 11 where n = 1");
    assert_ne!(scene.ask(CATALOGUE), before);
}

/// A run that went on replaces what it was.
fn gone_on(scene: &Scene, url: &str) {
    let with = |run| export(scene, url, &["--schema", "gone_on", run]);
    let begun = Run {
        rounds: 1,
        at: "2026-02-01T12:00:00Z",
        ..Run::default()
    };
    begun.write(&scene.place.path().join("going-on"));
    let is_finished = "select is_finished::text || ' ' || (select count(*) from gone_on.trials) from gone_on.runs";
    assert!(with("going-on").status.success());
    assert_eq!(scene.ask(is_finished), ["false 2"]);
    std::fs::remove_dir_all(scene.place.path().join("going-on")).unwrap();
    let done = Run { rounds: 3, ..begun };
    done.write(&scene.place.path().join("going-on"));
    assert!(with("going-on").status.success());
    assert_eq!(scene.ask(is_finished), ["true 6"]);
    // Several at once make one schema and no run twice.
    let children: Vec<_> = (0..3)
        .map(|_| {
            let arguments = [
                "export", "--to", url, "--schema", "other", "r0", "moved", "r2",
            ];
            scene.begin(&[&arguments[..], &["--password-env", "LAB_PASSWORD"]].concat())
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", told(&output));
    }
    assert_eq!(scene.ask("select count(*)::text from other.runs"), ["3"]);
}

/// A schema of another role may have triggers that do what they like as whoever writes there.
fn planted(scene: &Scene, url: &str) {
    assert!(
        export(scene, url, &["--schema", "planted", "r0"])
            .status
            .success()
    );
    scene.run("create role other");
    scene.run("alter schema planted owner to other");
    scene.run("grant all on schema planted to lab");
    let refused = export(scene, url, &["--schema", "planted", "moved"]);
    assert_eq!(refused.status.code(), Some(1));
    let words = "belongs to the role \"other\", of which \"lab\" is no member";
    assert!(told(&refused).contains(words), "{}", told(&refused));
    let runs = "select count(*)::text from planted.runs";
    assert_eq!(scene.ask(runs), ["1"]);
    // A group that writes together has a schema in common.
    scene.run("grant other to lab");
    let taken = export(scene, url, &["--schema", "planted", "moved"]);
    assert!(taken.status.success(), "{}", told(&taken));
    assert_eq!(scene.ask(runs), ["2"]);
}

/// Schemas of others, and of other versions.
fn refused(scene: &Scene, url: &str) {
    let output = export(scene, url, &["--schema", "theirs", "r0"]);
    assert_eq!(output.status.code(), Some(1));
    let words = "does not hold results of spindle";
    assert!(told(&output).contains(words), "{}", told(&output));
    let tables = "select tablename from pg_tables where schemaname = 'theirs'";
    assert_eq!(scene.ask(tables), ["rows"]);

    let lab = |run| export(scene, url, &["--schema", "lab", run]);
    assert!(lab("r0").status.success());
    scene.run("update lab.schema_version set version = 3");
    let output = lab("r2");
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("has version 3"), "{}", told(&output));
    assert_eq!(scene.ask("select count(*)::text from lab.runs"), ["1"]);
}

/// What the documentation asks in SQL, of three runs of which the second layout becomes slower.
fn questions_of_the_documentation(scene: &Scene) {
    let document = include_str!("../../../../docs/export.md");
    let questions: Vec<&str> = document
        .split("```sql\n")
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect();
    assert_eq!(questions.len(), 3);
    let answers: Vec<Vec<String>> = questions
        .iter()
        .map(|question| {
            let as_text = format!(
                "select answer::text from ({}) as answer",
                question.trim().trim_end_matches(';')
            );
            scene.ask(&as_text)
        })
        .collect();
    // The fastest layout of the last run of one machine; a row for each run and layout; the waits of two layouts.
    assert_eq!(answers[0].len(), 1, "{answers:?}");
    assert_eq!(answers[1].len(), 6, "{answers:?}");
    assert!(answers[2].len() >= 2, "{answers:?}");
}

#[test]
fn mistakes_are_told_before_anything_is_done() {
    let place = tempfile::tempdir().unwrap();
    Run::default().write(&place.path().join("run"));
    let spindle = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_spindle"))
            .args(arguments)
            .current_dir(place.path())
            .output()
            .unwrap();
        (output.status.code(), told(&output))
    };
    let nowhere = "postgres://lab@127.0.0.1:1/lab";
    for (arguments, status, words) in [
        (&["export", "run"][..], 2, "--format"),
        (&["export", "run", "run", "--format", "csv"], 2, "one run"),
        (
            &["export", "run", "--to", "nonsense"],
            2,
            "it is not a valid address",
        ),
        (
            &["export", "run", "--to", "mysql://lab@127.0.0.1:1/lab"],
            2,
            "PostgreSQL only",
        ),
        (
            &["export", "run", "--to", nowhere, "--schema", "a b"],
            2,
            "lower-case letters",
        ),
        (
            &["export", "run", "--to", nowhere],
            1,
            "connecting to 127.0.0.1",
        ),
        (&["export", "none", "--to", nowhere], 2, "no directory none"),
        (
            &["export", "run", "--format", "csv", "--schema", "lab"],
            2,
            "--to",
        ),
    ] {
        let (ended, said) = spindle(arguments);
        assert_eq!(ended, Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
