//! "client-bound" for real: clients that are starved of processors are named, and those that wait for the database are
//! not.

use std::process::{Command, Stdio};

use serde_json::Value;
use spindle_engines::sql::ServerKind;

use super::burners::{BURNERS, Burners};
use super::scene::{PASSWORD, Scene};

/// Runs of each kind in the thorough form; usually one.
const TRIES: usize = 10;

fn scene() -> Option<Scene> {
    let scene = Scene::of(ServerKind::Postgres)?;
    scene.run(&format!(
        "create role lab login createdb password '{PASSWORD}'"
    ));
    scene.run("grant create on database postgres to lab");
    scene.write("wait.sql", "select pg_sleep(0.05);\n");
    let socket = scene.socket(".s.PGSQL.5432");
    let directory = socket.parent().unwrap().display();
    for (name, workload) in [
        ("starved.toml", "read_percent = 100"),
        (
            "waiting.toml",
            "kind = \"script\"\nscripts = [\"wait.sql\"]",
        ),
    ] {
        scene.write(
            name,
            &format!(
                "[database]\nengine = \"postgres\"\nsize = \"4MiB\"\n[workload]\nclients = 4\n{workload}\n\
                 [plan]\nquiet = \"0s\"\nwarmup = \"200ms\"\nmeasure = \"4s\"\nrounds = 1\n\
                 [[layout]]\nname = \"there\"\n\
                 database = {{ url = \"postgres://lab@localhost/postgres?host={directory}\", \
                 password_env = \"LAB_PASSWORD\" }}\n"
            ),
        );
    }
    Some(scene)
}

/// Clients at work in the run's database.
const AT_WORK: &str = "select 'yes' from pg_stat_activity where query ~ '^select (number|pg_sleep)' \
     and application_name like 'spindle%'";

/// Whether a run of that file names it, whose program is started by these words, with so many processes beside its
/// clients.
fn is_named(scene: &Scene, (file, out): (&str, &str), by: &[&str], burners: usize) -> bool {
    let of_scene = scene.command(&["run", file, "--out", out]);
    let mut words = by.iter().map(std::ffi::OsStr::new).collect::<Vec<_>>();
    words.push(of_scene.get_program());
    words.extend(of_scene.get_args());
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(scene.place.path());
    for (key, value) in of_scene.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    let piped = command.env("LAB_PASSWORD", PASSWORD).stdin(Stdio::null());
    let going = piped
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    scene.wait_for(AT_WORK);
    let burners = Burners::start(burners);
    let done = going.wait_with_output().unwrap();
    drop(burners);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    let result: Value = scene.result(out);
    result["cases"][0]["findings"]
        .to_string()
        .contains("client-bound")
        || result["findings"].to_string().contains("client-bound")
}

#[test]
fn clients_without_processors_are_named_and_those_that_wait_for_the_database_are_not() {
    let Some(scene) = scene() else { return };
    for number in (0..TRIES).step_by(spindle_harness::stride(TRIES)) {
        let out = (format!("starved{number}"), format!("waiting{number}"));
        let starved = ["nice", "-n", "19", "taskset", "-c", "0"];
        let named = is_named(&scene, ("starved.toml", &out.0), &starved, BURNERS);
        assert!(named, "starved, try {number}");
        let named = is_named(&scene, ("waiting.toml", &out.1), &["env"], 0);
        assert!(!named, "waiting for the database, try {number}");
    }
}
