//! Every workload runs, and its check passes, on tables small enough for a test.

use std::sync::Arc;

use spindle_engines::engine::Engine;
use spindle_engines::sql::{SqlUnderTest, create_and_load};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::sql::{Junk, Mix, Sizes, SqlWorkload, Tpcb, Tpcc};

use super::home::{Home, is_installed, postgres, request, start};
use super::{clients, wait_for};

/// Loads a workload, has clients carry out so many transactions, and checks.
fn runs(workload: impl SqlWorkload + 'static, transactions: u64) {
    if !is_installed() {
        return;
    }
    let workload: Arc<dyn SqlWorkload> = Arc::new(workload);
    let home = Home::new();
    let request = request(&[]);
    let directories = home.directories("made");
    create_and_load(postgres(), &request, &directories, &*workload).unwrap();
    let server = start(&request, &directories);
    let engine = Arc::new(SqlUnderTest::new(server, workload, directories));
    let env: Arc<dyn Env> = RealEnv::new(3);
    let mut running = engine.start_clients(&env, clients());
    wait_for(&running, transactions);
    block_on(running.stop()).unwrap();
    assert_eq!(running.first_error(), None);
    let found = block_on(engine.check(running.acknowledged()));
    println!("{}", found.unwrap_or_else(|loss| panic!("{loss}")));
    block_on(engine.stop()).unwrap();
}

#[test]
fn tpcb_runs_and_its_check_passes() {
    runs(
        Tpcb {
            scale: 1,
            select_only: false,
        },
        300,
    );
}

fn tpcc(procedures: bool) -> Tpcc {
    let sizes = Sizes {
        items: 200,
        customers: 30,
    };
    Tpcc::new(2, Mix::STANDARD, procedures, 5).with_sizes(sizes)
}

#[test]
fn tpcc_runs_and_its_check_passes() {
    runs(tpcc(false), 200);
}

#[test]
fn tpcc_in_procedures_runs_and_its_check_passes() {
    runs(tpcc(true), 200);
}

#[test]
fn junk_runs_and_its_check_passes() {
    for procedure in [false, true] {
        runs(
            Junk {
                commit_every: 20,
                procedure,
            },
            50,
        );
    }
}
