//! Clients on several load machines.

use std::path::Path;
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;
use spindle_engines::sql::ServerKind;

use super::port::{FarPort, Port, Way};
use super::scene::{PASSWORD, Scene, going_until, told};
use super::sshd::Sshd;

/// A clock of the other machine that is far from this one's: it was started at another time.
const OTHER_CLOCK: &str =
    "ForceCommand unshare --time --fork --monotonic 500000 sh -c \"$SSH_ORIGINAL_COMMAND\"";

/// All processors of this machine, in use until it is dropped.
struct Busy {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    fn begin() -> Busy {
        let is_over = Arc::new(AtomicBool::new(false));
        let spin = |is_over: Arc<AtomicBool>| {
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let processors = std::thread::available_parallelism().unwrap().get();
        let threads = (0..processors).map(|_| spin(Arc::clone(&is_over)));
        Busy {
            threads: threads.collect(),
            is_over,
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

/// A server behind a port, and two machines that reach it.
struct Stage {
    one: Sshd,
    two: Sshd,
    /// The long way to the second, if there is one.
    way: Option<FarPort>,
    port: Port,
    scene: Scene,
}

impl Stage {
    /// The second machine with lines in the configuration of its daemon.
    fn with(of_second: &str) -> Option<Stage> {
        let scene = Scene::of(ServerKind::Postgres)?;
        scene.let_lab_in("createdb");
        let top = scene.place.path();
        let one = Sshd::below(&top.join("machine-one"))?;
        let two = Sshd::with(&top.join("machine-two"), of_second)?;
        one.know(&two, two.port);
        Some(Stage {
            port: Port::before(&scene.socket(".s.PGSQL.5432")),
            one,
            two,
            way: None,
            scene,
        })
    }

    /// What is said to the second machine, and what it says, takes so long from now on.
    fn move_second_away(&mut self, delay: Duration) {
        let way = Way {
            delay,
            loses_one_of: 0,
        };
        let way = FarPort::before(self.two.port, way);
        self.one.know(&self.two, way.number);
        self.way = Some(way);
    }

    /// The second machine, as an experiment names it.
    fn second(&self) -> String {
        let number = self.way.as_ref().map_or(self.two.port, |way| way.number);
        format!("ssh://127.0.0.1:{number}")
    }

    /// An experiment with both machines: the second has twice as many clients.
    fn write(&self, name: &str, workload: &str, measure: &str) {
        self.write_weighed(name, workload, ("200ms", measure), 2);
    }

    /// The second has so many times as many clients. `times`: of the warm-up, and of measuring.
    fn write_weighed(&self, name: &str, workload: &str, times: (&str, &str), weight: u32) {
        let (port, key) = (self.port.number, self.two.key());
        let (warm_up, measure) = times;
        let text = format!(
            "[database]\nengine = \"postgres\"\nsize = \"4MiB\"\n[workload]\n{workload}\n\
             [plan]\nquiet = \"0s\"\nwarmup = \"{warm_up}\"\nmeasure = \"{measure}\"\nrounds = 1\n\
             [[layout]]\nname = \"there\"\n\
             database = {{ url = \"postgres://lab@127.0.0.1:{port}/postgres\", password_env = \"LAB_PASSWORD\" }}\n\
             [[load]]\nhost = \"{}\"\n\
             [[load]]\nhost = \"{}\"\nweight = {weight}\nidentity_file = \"{}\"\n",
            self.one.host(),
            self.second(),
            key.display()
        );
        self.scene.write(name, &text);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.scene.command(arguments);
        command
            .env("PATH", self.one.path())
            .env("LAB_PASSWORD", PASSWORD);
        command
    }

    fn run(&self, file: &str, out: &str) -> Output {
        let done = self.command(&["run", file, "--out", out]).output();
        done.unwrap()
    }

    /// Begins a run, and waits until clients of both machines are at work.
    fn begin(&self, file: &str, out: &str) -> Child {
        let going = self.command(&["run", file, "--out", out]).spawn().unwrap();
        let at_work = "select 'yes' from pg_stat_activity where query ~ '^(update|select number)' \
                       and application_name like 'spindle%' having count(*) > 2";
        self.scene.wait_while(going, at_work)
    }

    /// Anyone on a load machine may see what its programs were started with.
    fn assert_no_password_in_processes(&self) {
        for worker in [&self.one, &self.two].map(|host| host.wait_for_agents(1)[0]) {
            for file in ["cmdline", "environ"] {
                let text = std::fs::read(format!("/proc/{worker}/{file}")).unwrap();
                assert!(!String::from_utf8_lossy(&text).contains(PASSWORD), "{file}");
            }
        }
    }

    /// From now on the clients of the second machine have processors only when nobody else wants them.
    fn starve_second(&self) {
        let worker = self.two.wait_for_agents(1)[0];
        // Sessions that are groups of their own have their part of the processors whatever runs in them.
        let group = format!("/proc/{worker}/autogroup");
        if Path::new(&group).exists() {
            std::fs::write(&group, "19").unwrap();
        }
        let mut idle = Command::new("chrt");
        idle.args(["--all-tasks", "--idle", "--pid", "0"]);
        assert!(idle.arg(worker.to_string()).status().unwrap().success());
    }

    /// What the journal says of a trial that failed.
    fn failed_trial(&self, out: &str) -> String {
        let journal = self.scene.place.path().join(out).join("journal.jsonl");
        let journal = std::fs::read_to_string(journal).unwrap();
        let failed = journal.lines().find(|line| line.contains("trial_failed"));
        failed.expect(&journal).to_owned()
    }

    fn assert_nothing_stays(&self) {
        self.one.assert_nothing_stays();
        self.two.assert_nothing_stays();
    }
}

/// The only trial.
fn trial(result: &Value) -> Value {
    result["cases"][0]["trials"][0].clone()
}

#[test]
fn clients_on_two_machines_are_one_load() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(stage) = Stage::with(OTHER_CLOCK) else {
        return;
    };
    stage.write("two.toml", "clients = 6\nread_percent = 0", "2s");
    let plan = stage.command(&["plan", "two.toml"]).output().unwrap();
    let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
    let dealt = |host: String, clients: u32| format!("Load machine {host}: {clients} of 6 clients");
    assert!(plan.contains(&dealt(stage.one.host(), 2)), "{plan}");
    assert!(plan.contains(&dealt(stage.two.host(), 4)), "{plan}");
    let done = stage.run("two.toml", "two");
    assert!(done.status.success(), "{}", told(&done));
    stage.assert_nothing_stays();
    stage.scene.assert_no_password_in("two");
    let result = stage.scene.result("two");
    let trial = trial(&result);
    let clients = &trial["audit"]["clients"];
    assert_eq!(clients["clients"], 6, "{trial}");
    assert_all_took_part(&trial);
    // Every client's time adds up, over both machines and their clocks.
    let at_work = clients["in_transactions"].as_f64().unwrap();
    assert!((3.0..=6.1).contains(&at_work), "{trial}");
    // Each transaction changed something; the server has every one of them, and no other.
    let transactions = trial["transactions"].as_u64().unwrap();
    let check = trial["check"].as_str().unwrap();
    let numbers = check.split(|letter: char| !letter.is_ascii_digit());
    let most = numbers
        .filter_map(|number| number.parse::<u64>().ok())
        .max();
    assert!(transactions > 0 && most.unwrap() >= transactions, "{trial}");
    let notes = result["layouts"][0]["notes"].to_string();
    for host in [stage.one.host(), stage.two.host()] {
        assert!(notes.contains(&format!("load machine {host}: ")), "{notes}");
    }
    assert!(notes.contains("4 of 6 clients"), "{notes}");
}

/// A round trip takes longer than moments may differ: that is said, and all is measured as ever.
#[test]
fn a_machine_far_away_takes_part_and_is_named() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(mut stage) = Stage::with(OTHER_CLOCK) else {
        return;
    };
    stage.move_second_away(Duration::from_millis(30));
    stage.write("far.toml", "clients = 6\nread_percent = 0", "2s");
    let done = stage.run("far.toml", "far");
    assert!(done.status.success(), "{}", told(&done));
    stage.assert_nothing_stays();
    let trial = trial(&stage.scene.result("far"));
    let clients = &trial["audit"]["clients"];
    assert_all_took_part(&trial);
    let at_work = clients["in_transactions"].as_f64().unwrap();
    assert!((3.0..=6.1).contains(&at_work), "{trial}");
    let named = format!(
        "load machine {}: its clock is known to within",
        stage.second()
    );
    assert!(trial["warnings"].to_string().contains(&named), "{trial}");
}

#[test]
fn a_rate_is_dealt_out() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(stage) = Stage::with("") else { return };
    stage.write(
        "rate.toml",
        "clients = 6\nrate = \"60/s\"\narrivals = \"even\"",
        "3s",
    );
    let done = stage.run("rate.toml", "rate");
    assert!(done.status.success(), "{}", told(&done));
    let trial = trial(&stage.scene.result("rate"));
    assert_eq!(trial["arrivals"]["rate_per_s"], 60.0, "{trial}");
    // Those that were due meanwhile, but for what is under way at either end. On a busy machine some wait.
    let done = trial["transactions"].as_u64().unwrap();
    let due = done + trial["arrivals"]["backlog"].as_u64().unwrap();
    let expected = 60.0 * trial["measured_s"].as_f64().unwrap();
    assert!(done > 0 && (due as f64 - expected).abs() <= 30.0, "{trial}");
}

/// The clients of the second machine, five of six, wait for processors; the server has as many as it asks for.
#[test]
fn clients_that_are_starved_are_the_limit_and_their_machine_is_named() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(stage) = Stage::with("") else { return };
    stage.write_weighed(
        "starved.toml",
        "clients = 6\nread_percent = 100",
        ("3s", "3s"),
        5,
    );
    let going = stage.begin("starved.toml", "starved");
    stage.starve_second();
    let busy = Busy::begin();
    let done = going.wait_with_output().unwrap();
    drop(busy);
    assert!(done.status.success(), "{}", told(&done));
    let result = stage.scene.result("starved");
    let warnings = trial(&result)["warnings"].to_string();
    // Where tests beside this one take processors from the database as well, its clients wait for that, too.
    let machine = format!("load machine {}: ", stage.two.host());
    let is_named_for = |reason: &str| warnings.contains(&format!("{machine}{reason}"));
    let reasons = [
        "its clients wait for a processor",
        "its clients did 0 transactions",
        "its processors are busy",
    ];
    assert!(reasons.into_iter().any(is_named_for), "{warnings}");
    // The finding is of all clients: those of the first machine wait for the server alone.
    let of_all = &trial(&result)["audit"]["client_processors"];
    let share = |of: &str| of_all[of].as_f64().unwrap_or(0.0);
    if share("running") + share("waiting") >= 0.5 {
        let findings = result["findings"].to_string();
        assert!(findings.contains("\"client-bound\""), "{findings}");
    }
    stage.assert_nothing_stays();
}

#[test]
fn a_machine_that_is_killed_fails_its_trial_by_name() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(stage) = Stage::with("") else { return };
    stage.write("killed.toml", "clients = 6\nread_percent = 0", "60s");
    let going = stage.begin("killed.toml", "killed");
    stage.assert_no_password_in_processes();
    let worker = stage.two.wait_for_agents(1)[0];
    let worker = Pid::from_raw(worker as i32).unwrap();
    rustix::process::kill_process(worker, Signal::KILL).unwrap();
    let done = going.wait_with_output().unwrap();
    stage.assert_nothing_stays();
    stage.scene.assert_no_password_in("killed");
    let failed = stage.failed_trial("killed");
    let said = format!("load machine {}: the connection ended", stage.second());
    assert!(failed.contains(&said), "{failed}");
    assert!(told(&done).contains(&said), "{}", told(&done));
    assert!(
        stage.scene.ledgers().is_empty(),
        "{:?}",
        stage.scene.ledgers()
    );
}

#[test]
fn a_server_that_is_gone_is_said_by_a_machine_whose_clients_noticed() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(mut stage) = Stage::with("") else {
        return;
    };
    stage.write("cut.toml", "clients = 6\nread_percent = 0", "60s");
    let going = stage.begin("cut.toml", "cut");
    stage.port.cut();
    let done = going.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(3), "{}", told(&done));
    stage.assert_nothing_stays();
    let failed = stage.failed_trial("cut");
    assert!(failed.contains("load machine ssh://127.0.0.1:"), "{failed}");
    assert!(failed.contains("connection"), "{failed}");
}

#[test]
fn a_run_that_is_killed_or_interrupted_leaves_no_load_machine_at_work() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(stage) = Stage::with("") else { return };
    stage.write("gone.toml", "clients = 6\nread_percent = 0", "60s");
    for (out, signal) in [("killed", Signal::KILL), ("stopped", Signal::INT)] {
        let mut going = stage.begin("gone.toml", out);
        rustix::process::kill_process(Pid::from_child(&going), signal).unwrap();
        let ended = going.wait().unwrap();
        let code = (signal == Signal::INT).then_some(130);
        assert_eq!(ended.code(), code, "{out}");
        stage.assert_nothing_stays();
        let ours =
            "select 'gone' where not exists (select from pg_stat_activity where usename = 'lab')";
        stage.scene.wait_for(ours);
    }
    let cleaned = stage.command(&["clean"]).output().unwrap();
    assert!(cleaned.status.success(), "{}", told(&cleaned));
}

/// Whether all six clients ended a transaction, or were held in one for most of the second. How many each ended is a
/// matter of row locks and of a busy disk.
fn assert_all_took_part(trial: &Value) {
    let clients = &trial["audit"]["clients"];
    assert_eq!(clients["clients"], 6, "{trial}");
    let is_held = clients["longest_open_s"].as_f64().unwrap() > 0.5;
    assert!(
        clients["fewest"].as_u64().unwrap() > 0 || is_held,
        "{trial}"
    );
}

#[test]
fn a_run_that_was_killed_goes_on_with_its_load_machines() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(stage) = Stage::with("") else { return };
    stage.write("on.toml", "clients = 6\nread_percent = 0", "1s");
    let two_rounds = ["run", "on.toml", "--set", "plan.rounds=2", "--out", "on"];
    let going = stage.command(&two_rounds).spawn().unwrap();
    let journal = stage.scene.place.path().join("on/journal.jsonl");
    let has_finished_one = || {
        let text = std::fs::read_to_string(&journal);
        text.is_ok_and(|text| text.contains("trial_finished"))
    };
    let mut going = going_until(going, "no trial ended", has_finished_one);
    // It may have come to its end.
    let _ = going.kill();
    going.wait().unwrap();
    stage.assert_nothing_stays();
    let done = stage.command(&["resume", "on"]).output().unwrap();
    assert!(done.status.success(), "{}", told(&done));
    stage.assert_nothing_stays();
    let result = stage.scene.result("on");
    let trials = result["cases"][0]["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2, "{result}");
    for trial in trials {
        assert_all_took_part(trial);
    }
}
