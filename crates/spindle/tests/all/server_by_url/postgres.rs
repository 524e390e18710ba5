//! PostgreSQL.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use spindle_engines::sql::ServerKind;

use super::port::Port;
use super::scene::{PASSWORD, Scene, told};

const SCHEMAS: &str = "select nspname from pg_namespace where nspname like 'spindle%'";
/// Asks for schemas of such names in which clients are at work; a load changes no row.
fn at_work(names: &str) -> String {
    format!(
        "select 'yes' from pg_stat_activity join pg_namespace on nspname = application_name \
         where query like 'update%' and nspname like '{names}'"
    )
}

/// All but the layouts of an experiment whose trials take so long.
fn plan(measure: &str) -> String {
    format!(
        "[database]\nengine = \"postgres\"\nsize = \"4MiB\"\n\
         [workload]\nclients = 2\n\
         [plan]\nquiet = \"0s\"\nwarmup = \"100ms\"\nmeasure = \"{measure}\"\nrounds = 1\n"
    )
}

/// A layout by url, with a password in it or in the environment.
fn layout(name: &str, url: &str) -> String {
    format!(
        "[[layout]]\nname = \"{name}\"\ndatabase = {{ url = \"{url}\", password_env = \"LAB_PASSWORD\" }}\n"
    )
}

#[test]
fn existing_servers_are_compared_and_left_as_they_were() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = Scene::of(ServerKind::Postgres) else {
        return;
    };
    scene.let_lab_in("");
    scene.run("create schema theirs");
    scene.run("create table theirs.rows as select generate_series(1, 1000) as n");
    let socket = scene.socket(".s.PGSQL.5432");
    let port = Port::before(&socket);
    let by_port = format!(
        "postgres://lab:{PASSWORD}@127.0.0.1:{}/postgres",
        port.number
    );
    let directory = socket.parent().unwrap().display().to_string();
    let by_socket = format!("postgres://lab@localhost/postgres?host={directory}");
    compared(&scene, &by_port, &by_socket);
    untold(&scene, &by_port);
    refused(&scene, &port);
    beyond(&scene, &by_port);
    gone_and_back(&scene, &by_socket, &socket);
    killed(&scene, &by_port);
    let theirs = "select count(*)::text from theirs.rows";
    assert_eq!(scene.ask(theirs), ["1000"]);
}

fn compared(scene: &Scene, by_port: &str, by_socket: &str) {
    let layouts = [layout("by port", by_port), layout("by socket", by_socket)];
    // Sessions of PostgreSQL tell their counts once a second at most.
    let plan = plan("1500ms");
    scene.write("compared.toml", &format!("{plan}{}", layouts.concat()));
    let plan = scene.spindle(&["plan", "compared.toml"]);
    let planned = String::from_utf8_lossy(&plan.stdout);
    assert!(planned.contains("postgres://lab@127.0.0.1:"), "{planned}");
    let run = scene.spindle(&["run", "compared.toml", "--out", "compared"]);
    assert!(run.status.success(), "{}", told(&run));
    let result = scene.result("compared");
    for (case, layout) in result["cases"].as_array().unwrap().iter().zip([0, 1]) {
        assert_eq!(case["status"], "measured", "{case}");
        let trial = &case["trials"][0];
        assert!(trial["transactions"].as_u64().unwrap() > 0, "{trial}");
        assert!(trial["write_iops"].as_f64().unwrap() > 0.0, "{trial}");
        let check = trial["check"].as_str().unwrap();
        assert!(check.contains("agree with the ledger"), "{check}");
        for unknown in ["cpu", "cpu_us_per_transaction", "memory", "response_time"] {
            assert!(trial[unknown].is_null(), "{unknown}: {trial}");
        }
        assert!(trial["audit"]["device"].is_null(), "{trial}");
        let method = trial["restore"]["method"].as_str().unwrap();
        assert!(method.contains("loaded again"), "{method}");
        assert!(trial["restore"]["duration_ms"].as_u64().unwrap() > 0);
        let space = trial["space"].as_array().unwrap();
        assert!(space.iter().all(|of| of["segment"] != "rows"), "{trial}");
        let layout = &result["layouts"][layout];
        let description = layout["description"].as_str().unwrap();
        assert!(
            description.contains("shared_buffers = 8MB"),
            "{description}"
        );
        assert!(description.contains("PostgreSQL"), "{description}");
    }
    scene.assert_no_password_in("compared");
    assert_eq!(scene.ask(SCHEMAS), [""; 0]);
    assert!(scene.ledgers().is_empty());
}

/// What the server does not tell this user is unknown, and not 0.
fn untold(scene: &Scene, by_port: &str) {
    let views = ["pg_stat_database", "pg_stat_bgwriter", "pg_stat_activity"];
    for view in views {
        scene.run(&format!("revoke select on {view} from public"));
    }
    let plan = plan("800ms");
    let layouts = [layout("one", by_port), layout("other", by_port)];
    scene.write("untold.toml", &format!("{plan}{}", layouts.concat()));
    let run = scene.spindle(&["run", "untold.toml", "--out", "untold"]);
    for view in views {
        scene.run(&format!("grant select on {view} to public"));
    }
    assert!(run.status.success(), "{}", told(&run));
    let result = scene.result("untold");
    let trial = &result["cases"][0]["trials"][0];
    assert!(trial["transactions"].as_u64().unwrap() > 0, "{trial}");
    for unknown in ["read_iops", "write_iops", "kib_per_s", "io"] {
        assert!(trial[unknown].is_null(), "{unknown}: {trial}");
    }
    assert!(trial["audit"]["tool"].is_null(), "{trial}");
    assert_eq!(trial["waits"], serde_json::json!([]));
    // What the clients' own machine tells stays.
    let findings = result["findings"].as_array().unwrap();
    let of_clients = ["client-bound", "clients starve"];
    let of_server =
        |finding: &&serde_json::Value| !of_clients.iter().any(|kind| finding["kind"] == *kind);
    assert_eq!(findings.iter().find(of_server), None, "{result}");
    let notes = result["layouts"][0]["notes"].to_string();
    assert!(
        notes.contains("does not tell what it reads and writes"),
        "{notes}"
    );
    let shown = scene.spindle(&["show", "untold"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("unknown"), "{shown}");
}

fn refused(scene: &Scene, port: &Port) {
    let wrong = format!(
        "postgres://lab:wrong-{PASSWORD}@127.0.0.1:{}/postgres",
        port.number
    );
    let nobody = format!("postgres://lab:{PASSWORD}@127.0.0.1:1/postgres");
    let layouts = [layout("wrong", &wrong), layout("nobody", &nobody)];
    scene.write(
        "refused.toml",
        &format!("{}{}", plan("800ms"), layouts.concat()),
    );
    let run = scene.spindle(&["run", "refused.toml", "--out", "refused"]);
    assert_eq!(run.status.code(), Some(3), "{}", told(&run));
    let at = format!(
        "postgres://lab@127.0.0.1:{}/postgres: password authentication failed",
        port.number
    );
    assert!(told(&run).contains(&at), "{}", told(&run));
    let at = "postgres://lab@127.0.0.1:1/postgres: connecting to 127.0.0.1, port 1";
    assert!(told(&run).contains(at), "{}", told(&run));
    scene.assert_no_password_in("refused");
    assert_eq!(scene.ask(SCHEMAS), [""; 0]);
    assert!(scene.ledgers().is_empty());
}

/// Statements that would leave Spindle's schema are told before it is made.
fn beyond(scene: &Scene, by_port: &str) {
    scene.write(
        "load.sql",
        "create table t (n integer);\ninsert into theirs.rows values (1);\n",
    );
    scene.write("script.sql", "select count(*) from t;\n");
    let workload =
        "[workload]\nkind = \"script\"\nscripts = [\"script.sql\"]\nload = [\"load.sql\"]";
    let plan = plan("800ms").replace("[workload]", workload);
    scene.write(
        "beyond.toml",
        &format!("{plan}{}", layout("there", by_port)),
    );
    let planned = scene.spindle(&["plan", "beyond.toml"]);
    let said = "load.sql:2:1: the name says where it is, and that is not Spindle's";
    let planned = String::from_utf8_lossy(&planned.stdout).replace("\n", " ");
    assert!(planned.contains(said), "{planned}");
    let run = scene.spindle(&["run", "beyond.toml", "--out", "beyond"]);
    assert!(told(&run).contains(said), "{}", told(&run));
    assert_eq!(scene.ask(SCHEMAS), [""; 0]);
}

fn gone_and_back(scene: &Scene, by_socket: &str, socket: &std::path::Path) {
    let mut port = Port::before(socket);
    let url = format!(
        "postgres://lab:{PASSWORD}@127.0.0.1:{}/postgres",
        port.number
    );
    let layouts = [layout("goes", &url), layout("stays", by_socket)];
    // On a busy machine clients are looked for now and then only.
    let plan = plan("4s");
    scene.write("gone.toml", &format!("{plan}{}", layouts.concat()));
    let run = scene.begin(&["run", "gone.toml", "--out", "gone"]);
    // Clients at work in the schema of the first layout.
    let mut run = scene.wait_while(run, &at_work("%\\_1"));
    port.cut();
    // Half of the layouts were measured.
    assert_eq!(run.wait().unwrap().code(), Some(3));
    let result = scene.result("gone");
    let case = &result["cases"][0];
    assert_eq!(case["status"], "failed", "{case}");
    let reason = case["reason"].as_str().unwrap();
    assert!(reason.contains("connection"), "{reason}");
    let at = format!(
        "the server is postgres://lab@127.0.0.1:{}/postgres",
        port.number
    );
    assert!(reason.contains(&at), "{reason}");
    assert_eq!(result["cases"][1]["status"], "measured");
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("was left"), "{warnings}");
    assert_eq!(scene.ledgers().len(), 1);
    port.open();
    let resumed = scene.spindle(&["resume", "gone"]);
    assert!(resumed.status.success(), "{}", told(&resumed));
    let result = scene.result("gone");
    for case in result["cases"].as_array().unwrap() {
        assert_eq!(case["status"], "measured", "{case}");
        assert_eq!(case["trials"].as_array().unwrap().len(), 1);
    }
    scene.assert_no_password_in("gone");
    assert_eq!(scene.ask(SCHEMAS), [""; 0]);
    assert!(scene.ledgers().is_empty());
}

fn killed(scene: &Scene, by_port: &str) {
    let plan = plan("30s");
    scene.write(
        "killed.toml",
        &format!("{plan}{}", layout("by port", by_port)),
    );
    let run = scene.begin(&["run", "killed.toml", "--out", "killed"]);
    let mut run = scene.wait_while(run, &at_work("%"));
    run.kill().unwrap();
    run.wait().unwrap();
    let ledgers = scene.ledgers();
    assert_eq!((scene.ask(SCHEMAS).len(), ledgers.len()), (1, 1));
    let mode = fs::metadata(&ledgers[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let dry = scene.spindle(&["clean", "--dry-run"]);
    let said = String::from_utf8_lossy(&dry.stdout);
    assert!(
        said.contains("would be removed: the schema spindle_"),
        "{said}"
    );
    assert_eq!(scene.ask(SCHEMAS).len(), 1);
    let clean = scene.spindle(&["clean"]);
    let said = String::from_utf8_lossy(&clean.stdout);
    assert!(clean.status.success(), "{said}");
    assert!(said.contains("on postgres://lab@127.0.0.1:"), "{said}");
    assert_eq!(scene.ask(SCHEMAS), [""; 0]);
    assert!(scene.ledgers().is_empty());
    scene.assert_no_password_in("killed");
}
