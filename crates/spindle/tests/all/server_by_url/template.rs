//! Databases that an existing PostgreSQL copies before each trial.

use spindle_engines::sql::ServerKind;

use super::scene::{PASSWORD, Scene, told};

const OURS: &str = "select datname from pg_database where datname like 'spindle\\_%' \
     union all select nspname from pg_namespace where nspname like 'spindle%'";

fn experiment(directory: &str, users: &[&str]) -> String {
    let layout = |user: &&str| {
        format!(
            "[[layout]]\nname = \"{user}\"\ndatabase = {{ url = \"postgres://{user}@localhost/postgres?host={directory}\", \
             password_env = \"LAB_PASSWORD\" }}\n"
        )
    };
    let layouts: String = users.iter().map(layout).collect();
    format!(
        "[database]\nengine = \"postgres\"\nsize = \"4MiB\"\n[workload]\nclients = 2\n\
         [plan]\nquiet = \"0s\"\nwarmup = \"100ms\"\nmeasure = \"1500ms\"\nrounds = 1\n{layouts}"
    )
}

#[test]
fn who_may_make_databases_has_them_copied_and_who_may_not_is_told_the_grant() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = Scene::of(ServerKind::Postgres) else {
        return;
    };
    scene.let_lab_in("createdb");
    scene.run(&format!("create role poor login password '{PASSWORD}'"));
    scene.run("grant create on database postgres to poor");
    let socket = scene.socket(".s.PGSQL.5432");
    let directory = socket.parent().unwrap().display().to_string();
    scene.write("copied.toml", &experiment(&directory, &["lab"]));
    let planned = planned(&scene, &["plan", "copied.toml"]);
    assert!(
        planned.contains("two databases of Spindle's own"),
        "{planned}"
    );
    assert!(
        planned.contains("by a copy made in the server"),
        "{planned}"
    );
    assert_eq!(scene.ask(OURS), [""; 0]);
    for method in restored(&scene, "copied.toml", "copied", &["plan.rounds=2"]) {
        assert!(
            method.contains("made again from its loaded template"),
            "{method}"
        );
    }
    for method in restored(&scene, "copied.toml", "asked", &["plan.restore=reload"]) {
        assert!(method.contains("loaded again"), "{method}");
    }
    // Both are on equal terms.
    scene.write("both.toml", &experiment(&directory, &["lab", "poor"]));
    let planned = self::planned(&scene, &["plan", "both.toml"]);
    assert!(
        planned.contains("alter role \"poor\" createdb"),
        "{planned}"
    );
    for method in restored(&scene, "both.toml", "both", &[]) {
        assert!(method.contains("loaded again"), "{method}");
    }
    let notes = scene.result("both")["layouts"][1]["notes"].to_string();
    assert!(notes.contains("loaded again before each trial"), "{notes}");
    let notes = scene.result("both")["layouts"][0]["notes"].to_string();
    assert!(!notes.contains("loaded again"), "{notes}");
    cannot_share_blocks(&scene);
}

fn planned(scene: &Scene, arguments: &[&str]) -> String {
    let plan = scene.spindle(arguments);
    String::from_utf8_lossy(&plan.stdout).into_owned()
}

/// How each trial's database was put back; every one was checked, and nothing is left.
fn restored(scene: &Scene, file: &str, out: &str, sets: &[&str]) -> Vec<String> {
    let mut arguments = vec!["run", file, "--out", out];
    arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
    let run = scene.spindle(&arguments);
    assert!(run.status.success(), "{}", told(&run));
    let result = scene.result(out);
    let mut methods = Vec::new();
    for case in result["cases"].as_array().unwrap() {
        for trial in case["trials"].as_array().unwrap() {
            assert!(trial["transactions"].as_u64().unwrap() > 0, "{trial}");
            let check = trial["check"].as_str().unwrap();
            assert!(check.contains("agree with the ledger"), "{check}");
            let space = trial["space"].to_string();
            assert!(space.contains("bytes"), "{space}");
            methods.push(trial["restore"]["method"].as_str().unwrap().to_owned());
        }
    }
    assert!(!methods.is_empty());
    assert_eq!(scene.ask(OURS), [""; 0]);
    assert!(scene.ledgers().is_empty());
    methods
}

/// Before PostgreSQL 18 no server shares blocks: its layouts are skipped, and nothing else is done instead.
fn cannot_share_blocks(scene: &Scene) {
    let version = scene.ask("select (current_setting('server_version_num')::int / 10000)::text");
    if version[0].parse::<u32>().unwrap() >= 18 {
        return;
    }
    let run = [
        "run",
        "copied.toml",
        "--out",
        "cloned",
        "--set",
        "plan.restore=reflink",
    ];
    let run = scene.spindle(&run);
    assert_eq!(run.status.code(), Some(3), "{}", told(&run));
    assert!(
        told(&run).contains("came with PostgreSQL 18"),
        "{}",
        told(&run)
    );
    assert_eq!(scene.ask(OURS), [""; 0]);
}
