//! Row locks.

use super::*;
use crate::block::RowId;
use crate::error::KernelError;
use crate::settings::PlantedFault;
use crate::transaction::row_lock::{CHECKS_THEN_QUEUES, LOOKS_THEN_LETS_GO};
use crate::transaction::wait_graph::LEAVES_WAITS_BEHIND;
use spindle_io::explore::{Shows, explore, must_find, yield_now};
use std::sync::atomic::{AtomicU64, Ordering};

const ROW: RowId = RowId {
    address: BlockAddress { file: 1, block: 1 },
    slot: 0,
};

/// Three sessions want one row, two of them twice, in its own transaction each time.
fn one_row() {
    let sga = new_sga(settings());
    let inside = Arc::new(AtomicU64::new(0));
    let sessions = [1, 2, 3].map(|number: u64| {
        let inside = Arc::clone(&inside);
        session(&sga, async move |sga, waits| {
            for turn in 0..=number % 2 {
                let owner = 10 * turn + number;
                let new = sga.locks.lock(&sga, &waits, ROW, owner).await.unwrap();
                assert!(new, "it had no lock before");
                assert_eq!(inside.swap(owner, Ordering::Relaxed), 0, "two owners");
                yield_now();
                assert_eq!(inside.swap(0, Ordering::Relaxed), owner, "two owners");
                sga.locks.release(&[ROW]);
            }
        })
    });
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
}

/// Two transactions wait for a row whose owner never ends; the instance fails.
fn failure() {
    let sga = new_sga(settings());
    let waits = sga.waits.register();
    block_on(sga.locks.lock(&sga, &waits, ROW, 9)).unwrap();
    let sessions = [1, 2].map(|owner: u64| {
        session(&sga, async move |sga, waits| {
            sga.locks.lock(&sga, &waits, ROW, owner).await.unwrap_err();
        })
    });
    stop(&sga, []);
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
}

/// Two transactions lock two rows in opposite order. The one that is told of a deadlock lets the other continue.
fn opposite_order(settings: KernelSettings) {
    let sga = new_sga(settings);
    let sessions = [1, 2].map(|owner: u64| {
        session(&sga, async move |sga, waits| {
            let mut rows = [0, 1].map(|slot| RowId { slot, ..ROW });
            if owner == 2 {
                rows.reverse();
            }
            let (mut held, mut told) = (Vec::new(), false);
            for row in rows {
                match sga.locks.lock(&sga, &waits, row, owner).await {
                    Ok(_) => held.push(row),
                    Err(KernelError::Deadlock { .. }) => told = true,
                    Err(error) => panic!("{error}"),
                }
            }
            sga.locks.release(&held);
            told
        })
    });
    let told = sessions.map(|session| session.join().unwrap());
    assert_ne!(told, [true, true], "one of them could have gone on");
}

/// A row goes from the first transaction to the second, while the third waits for it and has another that the second
/// wants then. One is told of a deadlock, or all continue.
fn handed_over() {
    let sga = new_sga(settings());
    let [row, other] = [0, 1].map(|slot| RowId { slot, ..ROW });
    let wanted = [vec![row], vec![row, other], vec![other, row]];
    let mut owner = 0;
    let sessions = wanted.map(|rows| {
        owner += 1;
        session(&sga, async move |sga, waits| {
            let mut held = Vec::new();
            for row in rows {
                match sga.locks.lock(&sga, &waits, row, owner).await {
                    Ok(_) => held.push(row),
                    Err(KernelError::Deadlock { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            yield_now();
            sga.locks.release(&held);
        })
    });
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
    assert_eq!(sga.locks.in_use(), None);
}

#[test]
fn who_waits_behind_another_is_in_no_circle_unseen() {
    explore(2_000, handed_over);
    must_find(LEAVES_WAITS_BEHIND, Shows::Deadlock, 5_000, handed_over);
}

#[test]
fn a_deadlock_is_told_to_one_and_nobody_waits_for_ever() {
    explore(2_000, || opposite_order(settings()));
    let planted = KernelSettings {
        planted: Some(PlantedFault::DeadlockUnseen),
        ..settings()
    };
    must_find("", Shows::Deadlock, 2_000, move || {
        opposite_order(planted.clone());
    });
}

#[test]
fn a_row_has_one_owner_and_all_who_wait_get_it() {
    explore(1_000, one_row);
    must_find(LOOKS_THEN_LETS_GO, Shows::Panic, 2_000, one_row);
}

#[test]
fn all_who_wait_for_a_row_hear_of_a_failure() {
    explore(1_000, failure);
    must_find(CHECKS_THEN_QUEUES, Shows::Deadlock, 2_000, failure);
}
