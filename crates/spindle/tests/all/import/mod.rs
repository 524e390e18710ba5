//! Mixes that are made of what a server has counted, and replays of what it logged: they come near to that load, on a
//! server of the test's own, which is left as it was.

mod mariadb;
mod postgres;
mod replay;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::SqlUnderTest;
use spindle_experiment::{Changes, Experiment};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::driver::Behaviour;
use spindle_workload::sql::Dialect;
use spindle_workload::{MadeFor, Transactions};

use crate::server_by_url::scene::Scene;

/// What a load took, each for a transaction.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    pub reads: f64,
    pub writes: f64,
    pub log_bytes: f64,
}

impl Taken {
    /// Whether another load took the same within 10 %.
    pub fn is_near(&self, other: &Taken) -> bool {
        let all = [
            ("reads", self.reads, other.reads),
            ("writes", self.writes, other.writes),
            ("log", self.log_bytes, other.log_bytes),
        ];
        all.iter().all(|(what, own, others)| {
            let ratio = others / own;
            println!("{what}: {own:.2} and {others:.2}, {ratio:.3}");
            (0.9..=1.1).contains(&ratio)
        })
    }
}

/// Numbers drawn by a rule of the test's own, from 0 to below `end`.
pub struct Chance(u64);

impl Chance {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Carries out the scripts of an imported experiment on the scene's server, with one client.
pub fn carry_out(scene: &Scene, experiment: &Path, dialect: Dialect, transactions: u64) {
    let read = Experiment::read_changed(experiment, Changes::default());
    let experiment = read.unwrap_or_else(|error| panic!("{error:?}"));
    let Transactions::Script(_) = &experiment.workload.transactions else {
        panic!("{:?}", experiment.workload.transactions);
    };
    let made_for = MadeFor {
        data_bytes: 8 << 20,
        block_bytes: 8 << 10,
        clients: 1,
        seed: 7,
        dialect: Some(dialect),
    };
    let made = experiment.workload.transactions.settings().make(&made_for);
    let (server, directories) = scene.server();
    let engine = SqlUnderTest::new(server, made.in_sql(7), directories);
    let env: Arc<dyn Env> = RealEnv::new(1);
    let behaviour = Behaviour {
        clients: 1,
        transactions: Some(transactions),
        ..Behaviour::default()
    };
    let mut running = engine.start_clients(&env, behaviour);
    while !running.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    block_on(running.stop()).unwrap();
    assert_eq!(running.committed(), transactions);
    assert_eq!(running.failure(), None);
}

/// Has an imported experiment carry out its transaction far more often than it was.
pub fn make_weights_wrong(experiment: &Path) {
    let right = fs::read_to_string(experiment).unwrap();
    let wrong = right.replace("transaction.sql@", "transaction.sql@1");
    fs::write(experiment, wrong).unwrap();
}

/// The files of a directory that an import made, one after the other: they are for its user alone.
pub fn all_of(directory: &Path) -> String {
    let entries = fs::read_dir(directory).unwrap();
    let texts = entries.map(|entry| {
        let path = entry.unwrap().path();
        let mode = fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        fs::read_to_string(path).unwrap()
    });
    texts.collect()
}

/// That a mix covers this many percent of the calls at least, but for those that ask the server about itself: the tests
/// look at it every few milliseconds, which are more the slower the machine is.
pub fn covers(said: &str, least: f64) {
    let (_, share) = said.split_once("The mix covers ").unwrap();
    let share: f64 = share.split(' ').next().unwrap().parse().unwrap();
    let own = said
        .lines()
        .find(|line| line.contains("what the server knows of itself"));
    let own = own.map_or("0", |line| line.trim_start_matches([' ', '-']));
    let own: f64 = own.split(' ').next().unwrap().parse().unwrap();
    assert!(share / (100.0 - own) >= least / 100.0, "{said}");
}
