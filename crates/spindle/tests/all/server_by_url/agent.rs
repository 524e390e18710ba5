//! Agents on the machines of existing servers.

use std::fs;
use std::process::{Child, Output};

use serde_json::Value;
use spindle_engines::sql::ServerKind;

use super::scene::{PASSWORD, Scene, told};
use super::sshd::Sshd;

/// All but the layouts of an experiment whose trials take so long.
fn plan(measure: &str, rounds: u32) -> String {
    format!(
        "[database]\nengine = \"postgres\"\nsize = \"4MiB\"\n[workload]\nclients = 2\n\
         [plan]\nquiet = \"0s\"\nwarmup = \"100ms\"\nmeasure = \"{measure}\"\nrounds = {rounds}\n"
    )
}

/// A layout on the scene's server, with an agent or without.
fn layout(scene: &Scene, name: &str, agent: Option<&str>) -> String {
    let socket = scene.socket(".s.PGSQL.5432");
    let directory = socket.parent().unwrap().display();
    let agent = agent.map(|host| format!(", agent = \"{host}\""));
    let agent = agent.unwrap_or_default();
    format!(
        "[[layout]]\nname = \"{name}\"\n\
         database = {{ url = \"postgres://lab@localhost/postgres?host={directory}\", password_env = \"LAB_PASSWORD\"{agent} }}\n"
    )
}

fn scene() -> Option<Scene> {
    let scene = Scene::of(ServerKind::Postgres)?;
    scene.let_lab_in("");
    scene.run("grant pg_monitor to lab");
    Some(scene)
}

fn run(scene: &Scene, path: &str, file: &str, out: &str) -> Output {
    let mut command = scene.command(&["run", file, "--out", out]);
    command
        .env("PATH", path)
        .env("LAB_PASSWORD", PASSWORD)
        .output()
        .unwrap()
}

fn begin(scene: &Scene, path: &str, file: &str, out: &str) -> Child {
    let mut command = scene.command(&["run", file, "--out", out]);
    command
        .env("PATH", path)
        .env("LAB_PASSWORD", PASSWORD)
        .spawn()
        .unwrap()
}

/// The trials of a case.
fn trials(result: &Value, case: usize) -> Vec<Value> {
    result["cases"][case]["trials"].as_array().unwrap().clone()
}

/// Figures over time that are known of a case.
fn figures_over_time(result: &Value, case: usize) -> Vec<&str> {
    let means = result["cases"][case]["system"].as_array().unwrap().iter();
    means.map(|mean| mean["name"].as_str().unwrap()).collect()
}

#[test]
fn an_agent_tells_of_the_machine_and_leaves_nothing() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = scene() else { return };
    let Some(sshd) = Sshd::below(scene.place.path()) else {
        return;
    };
    let layouts = [
        layout(&scene, "seen", Some(&sshd.host())),
        layout(&scene, "not seen", None),
    ];
    scene.write(
        "seen.toml",
        &format!("{}{}", plan("1500ms", 1), layouts.concat()),
    );
    let done = run(&scene, &sshd.path(), "seen.toml", "seen");
    assert!(done.status.success(), "{}", told(&done));
    let result = scene.result("seen");
    let (seen, not_seen) = (&trials(&result, 0)[0], &trials(&result, 1)[0]);
    let share = |of: &str| seen["cpu"][of].as_f64().unwrap();
    // Interrupts and other guests of the host have the rest.
    let all = share("user") + share("system") + share("iowait") + share("idle");
    assert!((50.0..=100.1).contains(&all), "{seen}");
    let used = seen["cpu_us_per_transaction"]["user"].as_f64().unwrap();
    assert!(used > 0.0, "{seen}");
    for unknown in ["cpu", "cpu_us_per_transaction", "memory", "response_time"] {
        assert!(not_seen[unknown].is_null(), "{unknown}: {not_seen}");
    }
    let notes = result["layouts"][0]["notes"].to_string();
    assert!(notes.contains("seen by an agent: Linux "), "{notes}");
    assert!(notes.contains("its clock is known to within"), "{notes}");
    let figures = figures_over_time(&result, 0);
    for figure in [
        "cpu_user_percent",
        "page_cache_mib",
        "context_switches_per_s",
    ] {
        assert!(figures.contains(&figure), "{figure} of {figures:?}");
    }
    assert!(!figures.contains(&"checkpoints"), "{figures:?}");
    assert!(figures_over_time(&result, 1).is_empty(), "{result}");
    sshd.assert_nothing_stays();
}

#[test]
fn a_trial_whose_agent_is_gone_is_marked_and_the_run_goes_on() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = scene() else { return };
    let Some(sshd) = Sshd::below(scene.place.path()) else {
        return;
    };
    let layouts = layout(&scene, "seen", Some(&sshd.host()));
    scene.write("gone.toml", &format!("{}{layouts}", plan("4s", 2)));
    let mut going = begin(&scene, &sshd.path(), "gone.toml", "gone");
    // Clients at work in the run's schema; a load changes no row.
    scene.wait_for(
        "select 'yes' from pg_stat_activity join pg_namespace on nspname = application_name \
         where query like 'update%'",
    );
    let agents = sshd.wait_for_agents(1);
    let agent = rustix::process::Pid::from_raw(agents[0] as i32).unwrap();
    rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
    assert!(going.wait().unwrap().success());
    let result = scene.result("gone");
    let kept = trials(&result, 0);
    assert_eq!(kept.len(), 2, "{result}");
    // On a busy machine the trial may have been set aside, and measured again with another agent.
    let set_aside = result["cases"][0]["set_aside"].as_array();
    let set_aside = set_aside
        .into_iter()
        .flatten()
        .map(|of| of["trial"].clone());
    let all: Vec<Value> = kept.into_iter().chain(set_aside).collect();
    let is_marked = |trial: &Value| trial["warnings"].to_string().contains("the agent was lost");
    for trial in &all {
        assert_eq!(is_marked(trial), trial["cpu"].is_null(), "{trial}");
    }
    let marked: Vec<&Value> = all.iter().filter(|trial| is_marked(trial)).collect();
    assert_eq!(marked.len(), 1, "{all:?}");
    assert_eq!(marked[0]["round"], 1, "{all:?}");
    sshd.assert_nothing_stays();
}

#[test]
fn a_run_that_is_killed_leaves_nothing_there() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = scene() else { return };
    let Some(sshd) = Sshd::below(scene.place.path()) else {
        return;
    };
    let layouts = layout(&scene, "seen", Some(&sshd.host()));
    scene.write("killed.toml", &format!("{}{layouts}", plan("30s", 1)));
    let mut going = begin(&scene, &sshd.path(), "killed.toml", "killed");
    sshd.wait_for_agents(1);
    going.kill().unwrap();
    going.wait().unwrap();
    sshd.assert_nothing_stays();
    // While it is being brought there, too.
    let mut going = begin(&scene, &sshd.path(), "killed.toml", "copied");
    while sshd.files().is_empty() {
        assert!(going.try_wait().unwrap().is_none(), "it ended");
    }
    going.kill().unwrap();
    going.wait().unwrap();
    sshd.assert_nothing_stays();
}

/// What a client that stands for `ssh` says, by the host that it is to come to.
const CLIENT: &str = "#!/bin/sh\n\
    machine() { echo \"welcome\"; echo \"spindle: machine $1\"; read -r go || exit 0; }\n\
    case \"$*\" in\n\
    *unknown*) echo 'ssh: Could not resolve hostname unknown: Name or service not known' >&2; exit 255;;\n\
    *locked*) echo 'ann@locked: Permission denied (publickey).' >&2; exit 255;;\n\
    *foreign*) machine 'Linux m68k'; exit 1;;\n\
    *full*) machine \"Linux $(uname -m)\"; echo 'spindle: no-place'; exit 0;;\n\
    *later*) machine \"Linux $(uname -m)\"; echo 'spindle: place /x'; head -c 1000 >/dev/null;\n\
      echo '{\"hello\":{\"protocol\":99,\"version\":\"9.9.9\",\"machine\":\"x\",\"more\":1}}'; cat >/dev/null;;\n\
    *endless*) machine \"Linux $(uname -m)\"; echo 'spindle: place /x'; tr '\\0' x </dev/zero;;\n\
    *odd*) machine \"Linux $(uname -m)\"; echo 'spindle: place /x'; head -c 1000 >/dev/null;\n\
      printf '\\377\\376 odd\\n'; cat >/dev/null;;\n\
    *) exit 1;;\n\
    esac\n";

#[test]
fn what_is_wrong_is_told_and_its_layout_skipped() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = scene() else { return };
    let client = scene.place.path().join("bin/ssh");
    fs::create_dir_all(client.parent().unwrap()).unwrap();
    spindle_harness::write_program(&client, CLIENT);
    let hosts = [
        ("unknown", "there is no host of that name"),
        ("ann@locked", "ssh -oBatchMode=yes ann@locked true"),
        (
            "foreign",
            "it is Linux m68k, and this program runs on Linux",
        ),
        ("full", "no place for the program there"),
        ("later", "Spindle 9.9.9, protocol 99, and this is"),
        ("endless", "it says a line of more than 1 MiB"),
        ("odd", "is not understood: \"\u{fffd}\u{fffd} odd\""),
    ];
    let layouts: Vec<String> = hosts
        .iter()
        .map(|(host, _)| layout(&scene, host, Some(&format!("ssh://{host}"))))
        .collect();
    scene.write(
        "wrong.toml",
        &format!("{}{}", plan("1s", 1), layouts.concat()),
    );
    let path = format!("{}:/usr/bin:/bin", client.parent().unwrap().display());
    let done = run(&scene, &path, "wrong.toml", "wrong");
    assert_eq!(done.status.code(), Some(3), "{}", told(&done));
    let result = scene.result("wrong");
    for (case, (host, said)) in result["cases"].as_array().unwrap().iter().zip(hosts) {
        assert_eq!(case["status"], "skipped", "{case}");
        let reason = case["reason"].as_str().unwrap();
        let of_agent = format!("agent: ssh://{host}: ");
        assert!(
            reason.starts_with(&of_agent) && reason.contains(said),
            "{reason}"
        );
    }
    fs::remove_file(&client).unwrap();
    let alone = client.parent().unwrap().display().to_string();
    let done = run(&scene, &alone, "wrong.toml", "none");
    assert!(
        told(&done).contains("ssh is not installed"),
        "{}",
        told(&done)
    );
}
