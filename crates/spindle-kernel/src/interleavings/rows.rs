//! Row locks.

use super::*;
use crate::block::RowId;
use spindle_io::sync::explore::{Shows, WAITS_FROM_ITS_FIRST_POLL, explore, must_find, yield_now};
use std::sync::atomic::{AtomicU64, Ordering};

const ROW: RowId = RowId {
    address: BlockAddress { file: 1, block: 1 },
    slot: 0,
};

/// Three transactions want one row, one of them twice.
fn one_row() {
    let shared = sga(settings());
    let inside = Arc::new(AtomicU64::new(0));
    let sessions = [1, 2, 3].map(|owner: u64| {
        let inside = Arc::clone(&inside);
        session(&shared, async move |shared, waits| {
            for _ in 0..=owner % 2 {
                let new = shared
                    .locks
                    .lock(&shared, &waits, ROW, owner)
                    .await
                    .unwrap();
                assert!(new, "it had no lock before");
                assert_eq!(inside.swap(owner, Ordering::Relaxed), 0, "two owners");
                yield_now();
                assert_eq!(inside.swap(0, Ordering::Relaxed), owner, "two owners");
                shared.locks.release(&[ROW]);
            }
        })
    });
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
}

/// Two transactions wait for a row whose owner never ends; the instance fails.
fn failure() {
    let shared = sga(settings());
    let waits = shared.waits.register();
    block_on(shared.locks.lock(&shared, &waits, ROW, 9)).unwrap();
    let sessions = [1, 2].map(|owner: u64| {
        session(&shared, async move |shared, waits| {
            shared
                .locks
                .lock(&shared, &waits, ROW, owner)
                .await
                .unwrap_err();
        })
    });
    stop(&shared, []);
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
}

#[test]
fn a_row_has_one_owner_and_all_who_wait_get_it() {
    explore(1_000, one_row);
    must_find(WAITS_FROM_ITS_FIRST_POLL, Shows::Deadlock, 2_000, one_row);
}

#[test]
fn all_who_wait_for_a_row_hear_of_a_failure() {
    explore(1_000, failure);
    must_find(WAITS_FROM_ITS_FIRST_POLL, Shows::Deadlock, 2_000, failure);
}
