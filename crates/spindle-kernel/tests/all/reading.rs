//! Sessions that only read wait for reads, and for nothing else: nothing is dirty, so nobody may wait for a writer,
//! however little of the data the cache holds and however hot what it holds is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand_xoshiro::rand_core::RngCore;
use spindle_io::Env;
use spindle_io::env::seeded_rng;
use spindle_io::real::block_on;
use spindle_kernel::{Instance, Shutdown, WaitEvent};

use crate::files::{CLIENTS, Files, Way, methods, watched};
use crate::simulated::live::Live;
use crate::simulated::{Scenario, loaded};

/// Looks at a row in a row: more than a buffer's touch count goes up to, so that every buffer is as hot as can be.
const LOOKS: u64 = 5;

fn of(instance: &Instance, event: WaitEvent) -> (u64, u64) {
    let totals = instance.wait_events();
    let total = totals.iter().find(|total| total.event == event).unwrap();
    (total.count, total.total_ns)
}

/// Reads rows, each [`LOOKS`] times, and goes on to one in another block.
async fn read_hotly(instance: &Instance, rows: u64, step: u64, rounds: u64) {
    let (table, mut session) = (instance.table("accounts").unwrap(), instance.session());
    for _ in 0..rounds {
        for row in (0..rows).step_by(step as usize) {
            for _ in 0..LOOKS {
                let row = table.row_id(row);
                session.read_row(row, |_| ()).await.unwrap();
            }
        }
    }
}

#[test]
fn a_session_that_reads_waits_for_reads_alone() {
    let scenario = Scenario {
        cache_blocks: 64,
        ..Scenario::plain(31)
    };
    let mut live = Live::on(scenario, &loaded(scenario));
    let instance = Arc::new(live.start().unwrap());
    let began_ns = live.world.env().now();
    let reads = |instance: &Instance| of(instance, WaitEvent::DbFileSequentialRead);
    let before = reads(&instance);
    let shared = Arc::clone(&instance);
    live.run(async move { read_hotly(&shared, 3000, 20, 3).await });
    let (count, waited_ns) = reads(&instance);
    assert!(count - before.0 > 64, "the cache held everything");
    // In virtual time nothing else takes any.
    assert_eq!(live.world.env().now() - began_ns, waited_ns - before.1);
}

#[test]
fn sessions_that_read_wait_for_no_writer() {
    let read = Arc::new(AtomicU64::new(0));
    for method in methods() {
        let way = Way::plain(method);
        let read = Arc::clone(&read);
        watched(format!("{way:?}"), move || {
            let Some(bank) = Files::new().create(way) else {
                return;
            };
            block_on(bank.instance.checkpoint()).unwrap();
            let before = of(&bank.instance, WaitEvent::FreeBufferWaits);
            std::thread::scope(|scope| {
                for client in 0..CLIENTS as u64 {
                    let bank = &bank;
                    scope.spawn(move || {
                        let (mut rng, mut session) =
                            (seeded_rng(3, client), bank.instance.session());
                        block_on(async {
                            read_hotly(&bank.instance, 3000, 10, 1).await;
                            for _ in 0..2000 {
                                let row = bank.accounts.row_id(rng.next_u64() % 3000);
                                session.read_row(row, |_| ()).await.unwrap();
                            }
                        });
                    });
                }
            });
            let waits = of(&bank.instance, WaitEvent::FreeBufferWaits);
            assert_eq!(waits, before, "a wait for a writer, and nothing is dirty");
            let (reads, _) = of(&bank.instance, WaitEvent::DbFileSequentialRead);
            read.fetch_add(reads, Ordering::Relaxed);
            block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
        });
    }
    assert!(
        read.load(Ordering::Relaxed) > 1000,
        "the cache held everything"
    );
}
