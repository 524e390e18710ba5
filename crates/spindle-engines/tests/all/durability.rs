//! Durability on equal terms: a buffered case whose writes are not flushed must show, by pages of its files that are
//! dirty in the page cache when it has stopped.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use spindle_engines::kernel::{Shutdown, WriteSync};
use spindle_io::Env;
use spindle_io::real::{Caching, Method};
use spindle_io::real::{RealEnv, block_on, facts};
use spindle_workload::driver::{self, Behaviour};

use crate::small;

/// Runs clients for a while on buffered files and returns the dirty pages of the datafiles afterwards.
fn dirty_pages(write_sync: WriteSync, method: Method) -> Option<u64> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let env: Arc<dyn Env> = RealEnv::new(3);
    block_on(async {
        let files = small::load(&env, directory.path()).await;
        let engine = small::start(
            &env,
            &files,
            small::path(Caching::Buffered, method),
            write_sync,
        )
        .await;
        let workload = small::workload();
        let behaviour = Behaviour {
            clients: small::CLIENTS,
            ..Behaviour::default()
        };
        let mut running = driver::start(
            &env,
            &workload,
            &engine.tables(),
            behaviour,
            engine.connector(),
        );
        while engine.statistics().physical_write_ios < 300 {
            std::thread::sleep(Duration::from_millis(5));
        }
        running.stop().await.unwrap();
        Arc::into_inner(engine)
            .unwrap()
            .stop(Shutdown::Abort)
            .await
            .unwrap();
        files
            .data
            .iter()
            .map(|place| {
                let file = File::open(place.path()).unwrap();
                facts::cached(&file, 0, file.metadata().unwrap().len())
                    .map(|state| state.dirty_pages)
            })
            .sum()
    })
}

#[test]
fn skipped_flushes_are_seen_and_durable_writes_leave_nothing() {
    for method in [Method::Sync, Method::Slaves, Method::Async] {
        let Some(durable) = dirty_pages(WriteSync::Dsync, method) else {
            spindle_harness::skip("this kernel does not tell dirty pages (cachestat, Linux 6.5)");
            return;
        };
        assert_eq!(durable, 0, "{method:?}");
    }
    // Writes are left to the checkpoint, and the instance is stopped before it comes: what a skipped flush looks like.
    // Where CKPT flushed after DBWR's last write there is none, and another instance is tried.
    let is_skipped = |_| dirty_pages(WriteSync::Checkpoint, Method::Sync) > Some(0);
    assert!((0..100).any(is_skipped), "no skipped flush was seen");
}
