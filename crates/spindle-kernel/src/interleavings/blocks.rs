//! Blocks: sessions that change them, DBWR that writes them.

use super::*;
use crate::cache::{CALLS_THEN_LETS_GO, writing::LETS_GO_THEN_NOTES};
use crate::control_file::read_bytes;
use crate::processes::{dbwr, lgwr};
use crate::settings::PlantedFault;
use spindle_io::explore::{Shows, WAITS_FROM_ITS_FIRST_POLL, explore, must_find};

/// The number in the row of a block, and its SCN, as they are in the datafile; the block is whole.
fn on_disk(sga: &Sga, number: u32) -> Option<(u64, u64)> {
    let offset = u64::from(number) * BLOCK_BYTES as u64;
    let bytes = block_on(read_bytes(&*sga.storage.data[0], offset, BLOCK_BYTES)).unwrap();
    block::verify(&bytes, data_block(number)).ok()?;
    Some((number_in(&bytes), block::scn(&bytes)))
}

/// Two sessions change two blocks together, in opposite order, while a checkpoint has them written.
fn checkpoint_with(settings: KernelSettings) {
    let sga = new_sga(settings);
    let processes = [
        process(&sga, lgwr::run),
        process(&sga, |sga| dbwr::run(sga, 0)),
    ];
    let waits = sga.waits.register();
    for number in [1, 2] {
        block_on(formatted(&sga, &waits, number));
    }
    let sessions = [[1, 2], [2, 1]].map(|order| {
        session(&sga, async move |sga, waits| {
            for _ in 0..2 {
                let addresses = order.map(data_block);
                let [first, second] = sga.cache.get_two(&sga, &waits, addresses).await.unwrap();
                add_one(&sga, &waits, &[&first, &second]).await.unwrap();
            }
        })
    });
    let position = sga.log.end();
    block_on(sga.cache.write_before(&sga.health, position)).unwrap();
    for number in [1, 2] {
        let (_, scn) = on_disk(&sga, number).expect("written by the checkpoint");
        assert!(scn <= sga.log.flushed(), "a block is ahead of its redo");
    }
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
    block_on(sga.cache.write_before(&sga.health, sga.log.end())).unwrap();
    for number in [1, 2] {
        let (in_row, _) = on_disk(&sga, number).expect("written by the checkpoint");
        assert_eq!(in_row, 4, "a change was taken for written");
    }
    assert_eq!(sga.cache.dirty_buffers(), 0);
    stop(&sga, processes);
}

fn checkpoint() {
    checkpoint_with(settings());
}

/// A session changes a block while it is written.
fn changed_meanwhile() {
    changed_meanwhile_with(settings(), false);
}

/// The same of a block that is in demand, so that a copy of it is written.
fn changed_beside_its_clone_with(settings: KernelSettings) {
    changed_meanwhile_with(settings, true);
}

fn changed_meanwhile_with(settings: KernelSettings, is_in_demand: bool) {
    let sga = new_sga(settings);
    let waits = sga.waits.register();
    let pin = block_on(formatted(&sga, &waits, 1));
    if is_in_demand {
        block_on(sga.cache.get(&sga, &waits, data_block(1))).unwrap();
    }
    let processes = [
        process(&sga, lgwr::run),
        process(&sga, |sga| dbwr::run(sga, 0)),
    ];
    let changes = session(&sga, async move |sga, waits| {
        add_one(&sga, &waits, &[&pin]).await.unwrap();
    });
    block_on(sga.cache.write_before(&sga.health, sga.log.end())).unwrap();
    changes.join().unwrap();
    block_on(sga.cache.write_before(&sga.health, sga.log.end())).unwrap();
    let (in_row, _) = on_disk(&sga, 1).expect("written by the checkpoint");
    assert_eq!(in_row, 1, "a change was taken for written");
    stop(&sga, processes);
}

/// Three sessions want the same block, which none of them has; one read serves all.
fn readers() {
    let sga = new_sga(settings());
    store(&sga, 1);
    let sessions = [(), (), ()].map(|()| {
        session(&sga, async move |sga, waits| {
            let pins = sga
                .cache
                .get_run(&sga, &waits, data_block(1), 1)
                .await
                .unwrap();
            let bytes = pins[0].read(&sga, &waits).await.unwrap();
            assert_eq!(number_in(&bytes), 5);
        })
    });
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
    let reads = sga.waits.reads();
    assert_eq!(reads.physical_ios, 1);
}

/// Two sessions change a block that two others read.
fn takers_and_sharers() {
    let sga = new_sga(settings());
    let waits = sga.waits.register();
    block_on(formatted(&sga, &waits, 1));
    let takers = [(), ()].map(|()| {
        session(&sga, async move |sga, waits| {
            let pin = sga.cache.get(&sga, &waits, data_block(1)).await;
            add_one(&sga, &waits, &[&pin.unwrap()]).await.unwrap();
        })
    });
    let sharers = [(), ()].map(|()| {
        session(&sga, async move |sga, waits| {
            let pin = sga.cache.get(&sga, &waits, data_block(1)).await;
            let in_row = number_in(&pin.unwrap().read(&sga, &waits).await.unwrap());
            assert!(in_row <= 2);
        })
    });
    let sessions = takers.into_iter().chain(sharers);
    sessions.for_each(|session| session.join().unwrap());
}

#[test]
fn who_wants_a_block_to_himself_gets_it_after_those_who_share_it() {
    explore(2_000, takers_and_sharers);
    must_find(
        CALLS_THEN_LETS_GO,
        Shows::Deadlock,
        5_000,
        takers_and_sharers,
    );
    must_find(
        WAITS_FROM_ITS_FIRST_POLL,
        Shows::Deadlock,
        20_000,
        takers_and_sharers,
    );
}

#[test]
fn what_a_checkpoint_promises_is_in_the_datafile() {
    explore(200, checkpoint);
    must_find(CALLS_THEN_LETS_GO, Shows::Deadlock, 1_000, checkpoint);
    let planted = KernelSettings {
        planted: Some(PlantedFault::WriteAheadOfRedo),
        ..settings()
    };
    must_find("", Shows::Panic, 1_000, move || {
        checkpoint_with(planted.clone())
    });
}

#[test]
fn a_change_made_while_its_block_is_written_is_not_lost() {
    explore(500, changed_meanwhile);
    must_find(LETS_GO_THEN_NOTES, Shows::Panic, 40_000, changed_meanwhile);
}

#[test]
fn a_change_made_while_a_copy_of_its_block_is_written_is_not_lost() {
    explore(500, || changed_beside_its_clone_with(settings()));
    let planted = KernelSettings {
        planted: Some(PlantedFault::CloneTakenForBlock),
        ..settings()
    };
    must_find("", Shows::Panic, 5_000, move || {
        changed_beside_its_clone_with(planted.clone())
    });
}

#[test]
fn one_read_serves_all_who_want_the_block() {
    explore(500, readers);
    must_find(WAITS_FROM_ITS_FIRST_POLL, Shows::Deadlock, 20_000, readers);
}
