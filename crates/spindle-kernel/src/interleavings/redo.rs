//! Redo: allocation in the log buffer, commits and LGWR.

use super::*;
use crate::control_file;
use crate::log::buffer;
use crate::log::redo::{RECORD_HEADER_BYTES, batch};
use crate::log::room;
use crate::processes::lgwr;
use crate::settings::PlantedFault;
use spindle_io::explore::{Shows, explore, must_find};
use spindle_io::sync::timeout;

/// What is in the first log file: the end of each record, batch after batch.
async fn ends_on_disk(sga: &Sga) -> Vec<u64> {
    let device = &sga.storage.redo[0];
    let bytes = LOG_FILE_BYTES - LOG_FILE_HEADER_BYTES;
    let file = control_file::read_bytes(&**device, LOG_FILE_HEADER_BYTES, bytes as usize);
    let file = file.await.unwrap();
    let (mut rest, mut position, mut ends) = (&file[..], FIRST_POSITION, Vec::new());
    while let Some(header) = batch::Header::read(rest, sga.database_id())
        && header.is_at(START.sequence, position)
    {
        let whole = batch::HEADER_BYTES + header.payload_bytes;
        assert!(batch::is_whole(&rest[..whole]), "a batch is torn");
        let mut records = &rest[batch::HEADER_BYTES..whole];
        while !records.is_empty() {
            let length = u32::from_le_bytes(records[..4].try_into().unwrap()) as usize;
            assert!(length > RECORD_HEADER_BYTES);
            position += length as u64;
            ends.push(position);
            records = &records[length..];
        }
        rest = &rest[whole.next_multiple_of(512)..];
    }
    ends
}

/// Two sessions change their own block and commit, twice each; LGWR writes.
fn commits_with(settings: KernelSettings) {
    let sga = new_sga(settings);
    let lgwr = process(&sga, lgwr::run);
    let sessions = [1, 2].map(|block| {
        session(&sga, async move |sga, waits| {
            let pin = formatted(&sga, &waits, block).await;
            let mut mine = Vec::new();
            for _ in 0..2 {
                let end = add_one(&sga, &waits, &[&pin]).await.unwrap();
                sga.log.flush_to(&sga, end).await.unwrap();
                assert!(sga.log.flushed() >= end, "acknowledged too early");
                assert!(
                    ends_on_disk(&sga).await.contains(&end),
                    "acknowledged, and not in the log file"
                );
                mine.push(end);
            }
            mine
        })
    });
    let mut ends: Vec<u64> = sessions
        .into_iter()
        .flat_map(|session| session.join().unwrap())
        .collect();
    stop(&sga, [lgwr]);
    let count = ends.len();
    ends.sort_unstable();
    ends.dedup();
    assert_eq!(ends.len(), count, "two records at one position");
    assert!(sga.log.flushed() <= sga.log.end());
}

fn commits() {
    commits_with(settings());
}

/// Two sessions commit together what is in the log buffer.
fn group_commit() {
    let sga = new_sga(settings());
    let waits = sga.waits.register();
    block_on(formatted(&sga, &waits, 1));
    let lgwr = process(&sga, lgwr::run);
    let sessions = [(), ()].map(|()| {
        session(&sga, async move |sga, _| {
            let end = sga.log.end();
            sga.log.flush_to(&sga, end).await.unwrap();
            assert!(sga.log.flushed() >= end, "acknowledged too early");
        })
    });
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
    stop(&sga, [lgwr]);
}

/// Two sessions write more redo than the log buffer holds.
fn full_buffer() {
    let sga = new_sga(settings());
    let lgwr = process(&sga, lgwr::run);
    let sessions = [1, 2].map(|block| {
        session(&sga, async move |sga, waits| {
            let pin = formatted(&sga, &waits, block).await;
            for _ in 0..20 {
                refill(&sga, &waits, &pin).await;
            }
        })
    });
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
    stop(&sga, [lgwr]);
}

/// Three sessions share a log buffer that takes the redo of one of them at a time; one gives up waiting at any moment.
fn one_gives_up() {
    let sga = new_sga_in(ExploredEnv::new(2), settings());
    let lgwr = process(&sga, lgwr::run);
    let sessions = [1, 2, 3].map(|number| {
        session(&sga, async move |sga, waits| {
            for _ in 0..2 {
                let most = LOG_BUFFER_BYTES * 3 / 4;
                let waits_for_room = sga.log.wait_for_room(&sga, &waits, most, None);
                let room = match number {
                    1 => timeout(&*sga.env, 1, waits_for_room).await.ok(),
                    _ => Some(waits_for_room.await),
                };
                drop(room);
            }
        })
    });
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
    stop(&sga, [lgwr]);
}

/// Two sessions wait for redo that is never written; the instance fails.
fn failure() {
    let sga = new_sga(settings());
    let waits = sga.waits.register();
    block_on(formatted(&sga, &waits, 1));
    let sessions = [(), ()].map(|()| {
        session(&sga, async move |sga, _| {
            let end = sga.log.end();
            sga.log.flush_to(&sga, end).await.unwrap_err();
        })
    });
    stop(&sga, []);
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
}

#[test]
fn every_commit_returns_when_its_redo_is_in_the_log_file() {
    explore(200, commits);
    must_find(buffer::READS_END_LATE, Shows::Panic, 2_000, commits);
    let planted = KernelSettings {
        planted: Some(PlantedFault::AcknowledgeBeforeFlush),
        ..settings()
    };
    must_find("", Shows::Panic, 100, move || commits_with(planted.clone()));
}

#[test]
fn all_commits_of_a_batch_return() {
    explore(1_000, group_commit);
    must_find(
        buffer::LOOKS_THEN_MOVES,
        Shows::Deadlock,
        10_000,
        group_commit,
    );
    must_find(
        buffer::CALLS_THEN_ASKS,
        Shows::Deadlock,
        2_000,
        group_commit,
    );
}

#[test]
fn who_waits_for_room_in_the_log_buffer_gets_it() {
    explore(100, full_buffer);
    must_find(
        room::LOOKS_THEN_QUEUES,
        Shows::Deadlock,
        10_000,
        full_buffer,
    );
}

#[test]
fn room_that_is_given_back_goes_to_who_comes_next() {
    explore(500, one_gives_up);
    must_find(
        room::GIVES_BACK_SILENTLY,
        Shows::Deadlock,
        2_000,
        one_gives_up,
    );
}

#[test]
fn every_commit_hears_of_a_failure() {
    explore(1_000, failure);
    must_find(buffer::CHECKS_THEN_ENTERS, Shows::Deadlock, 2_000, failure);
}
