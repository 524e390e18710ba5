//! Redo: allocation in the log buffer, commits and LGWR.

use super::*;
use crate::log;
use crate::log_room::{self, Room};
use crate::redo::{RECORD_HEADER_BYTES, batch};
use crate::settings::PlantedFault;
use crate::{control_file, lgwr};
use spindle_io::sync::explore::{Shows, explore, must_find};
use spindle_io::sync::timeout;

/// What is in the first log file: the end of each record, batch after batch.
async fn ends_on_disk(shared: &Shared) -> Vec<u64> {
    let device = &shared.storage.redo[0];
    let bytes = LOG_FILE_BYTES - LOG_FILE_HEADER_BYTES;
    let file = control_file::read_bytes(&**device, LOG_FILE_HEADER_BYTES, bytes as usize);
    let file = file.await.unwrap();
    let (mut rest, mut position, mut ends) = (&file[..], FIRST_POSITION, Vec::new());
    while let Some(header) = batch::Header::read(rest, shared.database_id())
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

/// Two sessions change a block of their own and commit, twice each; LGWR writes.
fn commits_with(settings: Settings) {
    let shared = sga(settings);
    let lgwr = process(&shared, lgwr::run);
    let sessions = [1, 2].map(|block| {
        session(&shared, async move |shared, waits| {
            let pin = formatted(&shared, &waits, block).await;
            let mut mine = Vec::new();
            for _ in 0..2 {
                let end = add_one(&shared, &waits, &[&pin]).await.unwrap();
                shared.log.flush_to(&shared, end).await.unwrap();
                assert!(shared.log.flushed() >= end, "acknowledged too early");
                assert!(
                    ends_on_disk(&shared).await.contains(&end),
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
    stop(&shared, [lgwr]);
    let count = ends.len();
    ends.sort_unstable();
    ends.dedup();
    assert_eq!(ends.len(), count, "two records at one position");
    assert!(shared.log.flushed() <= shared.log.end());
}

fn commits() {
    commits_with(settings());
}

/// Two sessions commit together what is in the log buffer.
fn group_commit() {
    let shared = sga(settings());
    let waits = shared.waits.register();
    block_on(formatted(&shared, &waits, 1));
    let lgwr = process(&shared, lgwr::run);
    let sessions = [(), ()].map(|()| {
        session(&shared, async move |shared, _| {
            let end = shared.log.end();
            shared.log.flush_to(&shared, end).await.unwrap();
            assert!(shared.log.flushed() >= end, "acknowledged too early");
        })
    });
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
    stop(&shared, [lgwr]);
}

/// Two sessions write more redo than the log buffer holds.
fn full_buffer() {
    let shared = sga(settings());
    let lgwr = process(&shared, lgwr::run);
    let sessions = [1, 2].map(|block| {
        session(&shared, async move |shared, waits| {
            let pin = formatted(&shared, &waits, block).await;
            for _ in 0..20 {
                refill(&shared, &waits, &pin).await;
            }
        })
    });
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
    stop(&shared, [lgwr]);
}

/// Three sessions share a log buffer that takes the redo of one of them at a time; one gives up waiting at any moment.
fn one_gives_up() {
    let shared = sga_in(ExploredEnv::new(2), settings());
    let lgwr = process(&shared, lgwr::run);
    let sessions = [1, 2, 3].map(|number| {
        session(&shared, async move |shared, waits| {
            for _ in 0..2 {
                let most = LOG_BUFFER_BYTES * 3 / 4;
                let waits_for_room = Room::wait(&shared, &waits, most, None);
                let room = match number {
                    1 => timeout(&*shared.env, 1, waits_for_room).await.ok(),
                    _ => Some(waits_for_room.await),
                };
                drop(room);
            }
        })
    });
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
    stop(&shared, [lgwr]);
}

/// Two sessions wait for redo that nobody writes; the instance fails.
fn failure() {
    let shared = sga(settings());
    let waits = shared.waits.register();
    block_on(formatted(&shared, &waits, 1));
    let sessions = [(), ()].map(|()| {
        session(&shared, async move |shared, _| {
            let end = shared.log.end();
            shared.log.flush_to(&shared, end).await.unwrap_err();
        })
    });
    stop(&shared, []);
    sessions
        .into_iter()
        .for_each(|session| session.join().unwrap());
}

#[test]
fn every_commit_returns_when_its_redo_is_in_the_log_file() {
    explore(200, commits);
    must_find(log::READS_END_LATE, Shows::Panic, 2_000, commits);
    let planted = Settings {
        planted: Some(PlantedFault::AcknowledgeBeforeFlush),
        ..settings()
    };
    must_find("", Shows::Panic, 100, move || commits_with(planted.clone()));
}

#[test]
fn all_commits_of_a_batch_return() {
    explore(1_000, group_commit);
    must_find(log::LOOKS_THEN_MOVES, Shows::Deadlock, 10_000, group_commit);
    must_find(log::CALLS_THEN_ASKS, Shows::Deadlock, 2_000, group_commit);
}

#[test]
fn who_waits_for_room_in_the_log_buffer_gets_it() {
    explore(100, full_buffer);
    must_find(
        log_room::LOOKS_THEN_QUEUES,
        Shows::Deadlock,
        10_000,
        full_buffer,
    );
}

#[test]
fn room_that_is_given_back_goes_to_who_comes_next() {
    explore(500, one_gives_up);
    must_find(
        log_room::GIVES_BACK_SILENTLY,
        Shows::Deadlock,
        2_000,
        one_gives_up,
    );
}

#[test]
fn every_commit_hears_of_a_failure() {
    explore(1_000, failure);
    must_find(log::CHECKS_THEN_ENTERS, Shows::Deadlock, 2_000, failure);
}
