//! `dss` on the embedded database: every answer is the right one, from memory and from temporary segments, and one that
//! is not is told.

use std::sync::Arc;

use spindle_engines::kernel::{KernelEngine, KernelSettings, Shutdown, WriteSync, files_of};
use spindle_io::Env;
use spindle_io::env::seeded_rng;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::{Client, ClientSession, MadeFor, RowOperation, Workload, WorkloadKind};

use crate::small;

const BLOCK_BYTES: usize = 8192;
const QUERIES: usize = 5;

fn workload() -> Arc<dyn Workload> {
    let made_for = MadeFor {
        data_bytes: 2 << 20,
        block_bytes: BLOCK_BYTES as u64,
        clients: 1,
        seed: 0,
        dialect: None,
    };
    let made = WorkloadKind::Dss.defaults().settings().make(&made_for);
    Arc::from(made.of_rows().expect("the embedded database has dss"))
}

#[test]
fn answers_are_right_from_memory_and_from_temporary_segments_and_a_wrong_one_is_told() {
    let (env, workload): (Arc<dyn Env>, _) = (RealEnv::new(1), workload());
    let shape = files_of(&*workload, 1, BLOCK_BYTES, 2, 3, 8 << 20);
    for (sort_area_bytes, spills) in [(128 << 10, true), (16 << 20, false)] {
        let mut settings = KernelSettings {
            block_bytes: BLOCK_BYTES,
            log_buffer_bytes: 16 * BLOCK_BYTES,
            ..small::settings(WriteSync::Dsync)
        };
        settings.instance.sort_area_bytes = sort_area_bytes;
        let started = KernelEngine::in_memory(&env, &shape, &settings, &*workload, 1);
        let engine = Arc::new(block_on(started).unwrap());
        let mut session = engine.connector()();
        let mut client = Client {
            number: 0,
            clients: 1,
            changes: 0,
            rng: seeded_rng(1, 0),
        };
        let mut spilled_bytes = 0;
        for _ in 0..QUERIES {
            let txn = workload.next(&mut client, &[]);
            let [RowOperation::Query(query)] = &txn.operations[..] else {
                panic!("dss asks queries")
            };
            block_on(session.execute(&txn.operations[0])).unwrap();
            spilled_bytes += session.temporary_bytes().unwrap();
            let mut wrong = query.clone();
            wrong.expected.rows += 1;
            let told = block_on(session.execute(&RowOperation::Query(wrong))).unwrap_err();
            assert!(told.to_string().contains("the right one"), "{told}");
        }
        assert_eq!(spilled_bytes > 0, spills);
        drop(session);
        let engine = Arc::into_inner(engine).unwrap();
        block_on(engine.stop(Shutdown::Normal)).unwrap();
    }
}
