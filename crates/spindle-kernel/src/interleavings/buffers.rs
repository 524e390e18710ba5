//! Sessions that wait for a buffer: one is woken for one, none is forgotten, whichever goes away in between.

use super::*;
use crate::cache::{LOOKS_THEN_UNPINS, LOOKS_THEN_WAITS};
use crate::processes::{dbwr, lgwr};
use crate::wait_event::WaitEvent;
use spindle_io::explore::{Shows, explore, must_find};
use spindle_io::sync::timeout;

/// Buffers of the cache: the fewest that one has.
const BUFFERS: u32 = 16;

async fn pinned(sga: &Sga, waits: &ProcessWaits, block: u32) -> Pin {
    let found = sga.cache.get_new(sga, waits, data_block(block)).await;
    found.unwrap()
}

/// Three sessions, two of which want the same block, share the one buffer that is not kept. Nothing is dirty, and there
/// is no writer that could help.
fn one_for_all() {
    let sga = new_sga(settings());
    let waits = sga.waits.register();
    let kept: Vec<Pin> = (1..BUFFERS)
        .map(|block| block_on(pinned(&sga, &waits, block)))
        .collect();
    let sessions = [[16, 17], [17, 16], [18, 17]].map(|blocks| {
        session(&sga, async move |sga, waits| {
            for block in blocks {
                let pin = pinned(&sga, &waits, block).await;
                assert_eq!(pin.address(), data_block(block));
            }
        })
    });
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
    let totals = sga.waits.totals();
    let of_writers = totals[WaitEvent::FreeBufferWaits as usize];
    assert_eq!(
        of_writers.count, 0,
        "a wait for a writer, and nothing is dirty"
    );
    drop(kept);
}

/// The same, and one of them gives up waiting at any moment.
fn one_gives_up() {
    let sga = new_sga_in(ExploredEnv::new(2), settings());
    let waits = sga.waits.register();
    let kept: Vec<Pin> = (1..BUFFERS)
        .map(|block| block_on(pinned(&sga, &waits, block)))
        .collect();
    let last = block_on(pinned(&sga, &waits, 16));
    let sessions = [17, 17, 18].map(|block| {
        session(&sga, async move |sga, waits| {
            let gets = pinned(&sga, &waits, block);
            match block {
                17 => drop(timeout(&*sga.env, 1, gets).await),
                _ => drop(gets.await),
            }
        })
    });
    drop(last);
    // Those for whom time stands still.
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
    drop(kept);
}

/// Every buffer is dirty, and sessions want others: a writer makes room, for one after the other.
fn written_for_all() {
    let sga = new_sga(settings());
    let waits = sga.waits.register();
    let processes = [
        process(&sga, lgwr::run),
        process(&sga, |sga| dbwr::run(sga, 0)),
    ];
    for block in 1..=BUFFERS {
        block_on(formatted(&sga, &waits, block));
    }
    (17..20).for_each(|block| store(&sga, block));
    let sessions = [[17, 18], [18, 19]].map(|blocks| {
        session(&sga, async move |sga, waits| {
            let [first, second] = blocks.map(data_block);
            for addresses in [[first, second], [second, first]] {
                let pins = sga.cache.get_two(&sga, &waits, addresses).await;
                assert_eq!(pins.unwrap().map(|pin| pin.address()), addresses);
            }
        })
    });
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
    stop(&sga, processes);
}

#[test]
fn a_buffer_let_go_is_passed_on() {
    explore(500, one_for_all);
    must_find(LOOKS_THEN_UNPINS, Shows::Deadlock, 5_000, one_for_all);
    must_find(LOOKS_THEN_WAITS, Shows::Deadlock, 5_000, one_for_all);
}

#[test]
fn a_session_that_gives_up_takes_no_buffer_with_it() {
    explore(500, one_gives_up);
}

#[test]
fn writers_make_room_for_everybody() {
    explore(100, written_for_all);
}
