//! A thousand clients start, run and stop, and what a session takes of memory stays within its bound. They have a
//! process to themselves, because the memory of the whole process is measured. The database is in memory: devices do
//! not matter here.

use std::sync::Arc;

use spindle_engines::kernel::{KernelEngine, KernelSettings, Shutdown, files_of};
use spindle_io::Env;
use spindle_io::real::facts::anonymous_bytes;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::driver::{self, Behaviour, Running};
use spindle_workload::{Acknowledged, OltpMix, OltpMixSettings, Workload};

use crate::progress::wait_for;

const CLIENTS: usize = 1000;
/// What a session may take at the most: its thread's stack as far as it is touched, its counters, the records and old
/// rows of a transaction under way.
const SESSION_BYTES_MAX: u64 = 64 << 10;
const LONG_NS: u64 = 3_600_000_000_000;

fn workload() -> Arc<dyn Workload> {
    Arc::new(OltpMix {
        data_bytes: 64 << 20,
        clients: CLIENTS as u64,
        settings: OltpMixSettings {
            read_percent: 40,
            row_operations: 10,
        },
    })
}

/// A database whose cache has four buffers for each client, so that they meet and wait.
async fn start(env: &Arc<dyn Env>) -> Arc<KernelEngine> {
    let workload = workload();
    let settings = KernelSettings {
        block_bytes: 8192,
        buffer_cache_bytes: 32 << 20,
        ..KernelSettings::default()
    };
    let shape = files_of(&*workload, CLIENTS, settings.block_bytes, 4, 3, 16 << 20);
    let engine = KernelEngine::in_memory(env, &shape, &settings, &*workload, CLIENTS);
    Arc::new(engine.await.unwrap())
}

fn clients(env: &Arc<dyn Env>, engine: &Arc<KernelEngine>, think_time_ns: u64) -> Running {
    let behaviour = Behaviour {
        clients: CLIENTS,
        think_time_ns,
        ..Behaviour::default()
    };
    driver::start(
        env,
        &workload(),
        &engine.tables(),
        behaviour,
        engine.connector(),
    )
}

/// However many sessions check the database, they find the same.
async fn check_by_one_and_by_several(
    env: &Arc<dyn Env>,
    engine: &Arc<KernelEngine>,
    acknowledged: Vec<Acknowledged>,
) {
    let together = |acknowledged: Vec<Acknowledged>, sessions: u64| async move {
        let connect = engine.connector();
        driver::check_together(env, &workload(), &acknowledged, sessions, connect).await
    };
    let mut wrong = acknowledged.clone();
    wrong[CLIENTS - 1].last += 5;
    for acknowledged in [acknowledged, wrong] {
        let mut session = engine.connector()();
        let one = driver::check(&mut session, &*workload(), acknowledged.clone()).await;
        drop(session);
        for sessions in [1, 3, 7] {
            assert_eq!(together(acknowledged.clone(), sessions).await, one);
        }
    }
}

fn per_session(before: Option<u64>) -> Option<u64> {
    Some(anonymous_bytes()?.saturating_sub(before?) / CLIENTS as u64)
}

#[test]
fn a_thousand_sessions_start_run_and_stop_in_little_memory() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let ended = spindle_harness::child!(a_thousand_sessions)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{told}");
}

#[test]
#[ignore = "a process that another test starts"]
fn a_thousand_sessions() {
    let env: Arc<dyn Env> = RealEnv::new(1);
    block_on(async {
        let engine = start(&env).await;
        let before = anonymous_bytes();

        // Everyone has done one transaction and thinks.
        let mut idle = clients(&env, &engine, LONG_NS);
        wait_for(&idle, CLIENTS as u64);
        let idle_bytes = per_session(before);
        idle.stop().await.unwrap();

        // Everyone works, and is stopped in the middle of it.
        let mut working = clients(&env, &engine, 0);
        working.measure(true);
        wait_for(&working, 5 * CLIENTS as u64);
        let working_bytes = per_session(before);
        working.stop().await.unwrap();
        assert!(working.latencies().count() > 0);

        check_by_one_and_by_several(&env, &engine, working.acknowledged()).await;
        let engine = Arc::into_inner(engine).expect("every client has gone");
        engine.stop(Shutdown::Normal).await.unwrap();
        println!("bytes a session: idle {idle_bytes:?}, working {working_bytes:?}");
        for bytes in [idle_bytes, working_bytes].into_iter().flatten() {
            assert!(
                bytes <= SESSION_BYTES_MAX,
                "a session takes {bytes} bytes, more than {SESSION_BYTES_MAX}"
            );
        }
    });
}
