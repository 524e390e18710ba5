//! A server at the end of a long way that loses some of what is sent: it is measured as its clients see it, and nothing
//! stays there.

use std::time::Duration;

use spindle_engines::sql::ServerKind;

use super::port::{FarPort, Port, SENT_AGAIN, Way};
use super::scene::{Scene, told};

/// There and back takes twice as long, and so does each of a transaction's statements.
const DELAY: Duration = Duration::from_millis(15);
const LOSES_ONE_OF: u32 = 50;
const CLIENTS: u32 = 4;

#[test]
fn a_server_far_away_is_measured_as_its_clients_see_it() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = Scene::of(ServerKind::Postgres) else {
        return;
    };
    scene.let_lab_in("createdb");
    let port = Port::before(&scene.socket(".s.PGSQL.5432"));
    let way = FarPort::before(
        port.number,
        Way {
            delay: DELAY,
            loses_one_of: LOSES_ONE_OF,
        },
    );
    let layout = |name: &str, port: u16| {
        format!(
            "[[layout]]\nname = \"{name}\"\n\
             database = {{ url = \"postgres://lab@127.0.0.1:{port}/postgres\", password_env = \"LAB_PASSWORD\" }}\n"
        )
    };
    let text = format!(
        "[database]\nengine = \"postgres\"\nsize = \"4MiB\"\n[workload]\nclients = {CLIENTS}\nread_percent = 100\n\
         [plan]\nquiet = \"0s\"\nwarmup = \"500ms\"\nmeasure = \"3s\"\nrounds = 2\n{}{}",
        layout("near", port.number),
        layout("far", way.number)
    );
    scene.write("far.toml", &text);
    let done = scene.spindle(&["run", "far.toml", "--out", "far"]);
    assert!(done.status.success(), "{}", told(&done));
    let result = scene.result("far");
    let case = |at: usize| &result["cases"][at];
    let mut longest_us = 0.0_f64;
    for trial in case(1)["trials"].as_array().unwrap() {
        let transactions = trial["transactions"].as_f64().unwrap();
        // Nobody is quicker than the way; what was lost came later, and was waited for.
        let most = f64::from(CLIENTS) * trial["measured_s"].as_f64().unwrap()
            / (2.0 * DELAY.as_secs_f64());
        assert!(transactions > 0.0 && transactions <= most, "{trial}");
        let at_work = trial["audit"]["clients"]["in_transactions"]
            .as_f64()
            .unwrap();
        assert!((3.0..=4.1).contains(&at_work), "{trial}");
        let [p50_us, max_us] = ["p50", "max"].map(|of| trial["latency_us"][of].as_f64().unwrap());
        longest_us = longest_us.max(max_us);
        assert!(p50_us >= 2e6 * DELAY.as_secs_f64(), "{trial}");
    }
    assert!(
        longest_us >= SENT_AGAIN.as_secs_f64() * 1e6,
        "{longest_us}: nothing was lost"
    );
    assert_eq!(case(0)["status"], "measured");
    assert_eq!(
        scene.ask("select nspname::text from pg_namespace where nspname like 'spindle%'"),
        [""; 0]
    );
    assert!(scene.ledgers().is_empty());
}
