//! SQLite on devices of memory: in every journal mode, by several threads, full, and after power cuts.

mod medium;
mod power_cuts;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use medium::{Handed, Medium, TestDevice};
use rusqlite::Connection;
use spindle_io::real::FileDevice;
use tempfile::TempDir;

use super::*;

const MODES: [&str; 5] = ["delete", "truncate", "persist", "wal", "memory"];

fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// A directory for what lies beside the database: in memory, where it can be used, as tests flush often.
fn directory() -> TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).unwrap()
}

/// The bytes of a database that was made in a file.
fn made(sql: &str) -> Vec<u8> {
    let directory = directory();
    let file = directory.path().join("made.db");
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
    std::fs::read(file).unwrap()
}

/// Where a database stands: the name is that of the device's node.
fn node(directory: &Path) -> PathBuf {
    let node = directory.join("spindle.db");
    std::fs::write(&node, "").unwrap();
    node
}

fn attach(node: &Path, device: &Arc<TestDevice>) -> Attached {
    let device = Arc::new(Handed(Arc::clone(device)));
    let database = Database::open(node.to_str().unwrap(), device).unwrap();
    Attached::of(database, Mounted(None)).unwrap()
}

fn connect(attached: &Attached, mode: &str) -> rusqlite::Result<Connection> {
    let connection = attached.connect(flags())?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "max_page_count", attached.pages_max() as i64)?;
    connection.pragma_update(None, "journal_mode", mode)?;
    connection.pragma_update(None, "synchronous", "full")?;
    // So that changed pages go to the device before the commit, too.
    connection.pragma_update(None, "cache_size", 5)?;
    Ok(connection)
}

fn number(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection.query_row(sql, [], |row| row.get(0))
}

fn integrity(connection: &Connection) -> Result<(), String> {
    let found: rusqlite::Result<String> =
        connection.query_row("pragma integrity_check", [], |row| row.get(0));
    match found {
        Ok(found) if found == "ok" => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// The database on a device, as a file.
fn as_file(device: &TestDevice, directory: &Path) -> Connection {
    let bytes = device.bytes();
    let header = header::Header::read(&bytes[..header::HEADER_BYTES]).unwrap();
    let length = header.pages as usize * header.page_bytes as usize;
    let file = directory.join("copy.db");
    std::fs::write(&file, &bytes[..length]).unwrap();
    Connection::open(&file).unwrap()
}

#[test]
fn a_database_works_on_a_device_in_every_journal_mode() {
    for mode in MODES {
        for (page_bytes, block_bytes) in [(512, 512), (4096, 4096), (65536, 4096)] {
            let directory = directory();
            let begin = made(&format!(
                "pragma page_size = {page_bytes}; create table t (n integer primary key, b blob)"
            ));
            let medium = Medium {
                bytes: 16 << 20,
                block_bytes,
                ..Medium::default()
            };
            let device = TestDevice::new(medium, &begin, Vec::new());
            let attached = attach(&node(directory.path()), &device);
            let connection = connect(&attached, mode).unwrap();
            connection
                .execute_batch(
                    "begin;
                     with recursive c (n) as (select 1 union all select n + 1 from c where n < 1000)
                     insert into t select n, randomblob(n % 700) from c;
                     commit;
                     begin; delete from t; rollback;
                     delete from t where n % 2 = 0;
                     create index i on t (b);
                     vacuum;",
                )
                .unwrap();
            integrity(&connection).unwrap();
            connection.close().unwrap();
            let again = connect(&attached, mode).unwrap();
            assert_eq!(number(&again, "select count(*) from t").unwrap(), 500);
            again.close().unwrap();
            let copy = as_file(&device, directory.path());
            integrity(&copy).unwrap();
            assert_eq!(number(&copy, "select sum(n) from t").unwrap(), 500 * 500);
            let EngineCounts { data, redo, .. } = attached.counts();
            assert!(data.reads > 0 && data.writes > 0, "{mode} {data:?}");
            assert_eq!(data.write_bytes, data.writes * page_bytes);
            assert_eq!(redo.writes > 0, mode != "memory", "{mode} {redo:?}");
            assert_eq!(attached.failure(), None);
        }
    }
}

#[test]
fn a_full_device_is_told_and_what_was_promised_is_kept() {
    for mode in ["delete", "wal"] {
        let directory = directory();
        let begin = made("create table t (n integer primary key, b blob)");
        let medium = Medium {
            // And a part of a page.
            bytes: (256 << 10) + 512,
            ..Medium::default()
        };
        let device = TestDevice::new(medium, &begin, Vec::new());
        let attached = attach(&node(directory.path()), &device);
        let connection = connect(&attached, mode).unwrap();
        let mut inserted = 0;
        let refused = loop {
            match connection.execute("insert into t (b) values (randomblob(3000))", []) {
                Ok(_) => inserted += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(
            refused.sqlite_error_code(),
            Some(rusqlite::ErrorCode::DiskFull)
        );
        assert!((50..64).contains(&inserted), "{mode}: {inserted}");
        connection.close().unwrap();
        let again = connect(&attached, mode).unwrap();
        assert_eq!(number(&again, "select count(*) from t").unwrap(), inserted);
        integrity(&again).unwrap();
    }
}

#[test]
fn what_holds_no_database_to_work_with_is_refused() {
    let refused = |begin: &[u8], medium: Medium| {
        let device = Handed(TestDevice::new(medium, begin, Vec::new()));
        match Database::open("x", Arc::new(device)) {
            Err(reason) => reason.to_string(),
            Ok(_) => panic!("it was opened"),
        }
    };
    assert!(refused(&[], Medium::default()).contains("no SQLite database"));
    let small_pages = made("pragma page_size = 512; create table t (n)");
    let blocks = Medium {
        block_bytes: 4096,
        ..Medium::default()
    };
    let told = refused(&small_pages, blocks);
    assert!(told.contains("set page_size = 4096 or more"), "{told}");
    let large = made("create table t (b); insert into t values (randomblob(100000))");
    let small = Medium {
        bytes: 64 << 10,
        ..Medium::default()
    };
    let told = refused(&large[..64 << 10], small);
    assert!(told.contains("room for 16"), "{told}");
}

#[test]
fn a_device_has_one_owner_and_one_that_is_gone_is_not_connected_to() {
    let directory = directory();
    let file = directory.path().join("spindle.db");
    std::fs::write(&file, made("create table t (n)")).unwrap();
    let device = || {
        let opened = FileDevice::open(&file, Caching::Buffered, Queue::sync());
        opened.map(|device| Arc::new(device) as Arc<dyn BlockDevice>)
    };
    let database = Database::open(file.to_str().unwrap(), device().unwrap()).unwrap();
    let attached = Attached::of(database, Mounted(None)).unwrap();
    assert!(device().is_err(), "it has an owner");
    let connection = connect(&attached, "wal").unwrap();
    connection.execute("insert into t values (1)", []).unwrap();
    drop(attached);
    let gone = Connection::open_with_flags_and_vfs(&file, flags(), NAME);
    assert!(gone.is_err());
    // Who was connected may end his work.
    connection.execute("insert into t values (2)", []).unwrap();
    connection.close().unwrap();
    assert!(device().is_ok());
}

#[test]
fn io_that_ends_later_is_waited_for_also_within_a_future() {
    let directory = directory();
    let medium = Medium {
        ends_later: true,
        ..Medium::default()
    };
    let device = TestDevice::new(medium, &made("create table t (n)"), Vec::new());
    let attached = attach(&node(directory.path()), &device);
    let count = block_on(async {
        let connection = connect(&attached, "delete").unwrap();
        connection.execute("insert into t values (1)", []).unwrap();
        number(&connection, "select count(*) from t").unwrap()
    });
    assert_eq!(count, 1);
}

/// Several connections add to one number and to a list of rows; what is wrong in the end.
fn add_up(mode: &str, plant: impl Fn(&Database)) -> Result<(), String> {
    const THREADS: i64 = 4;
    const ADDITIONS: i64 = 40;
    let directory = directory();
    let begin = made("create table t (n integer); insert into t values (0); create table r (b)");
    let device = TestDevice::new(Medium::default(), &begin, Vec::new());
    let attached = attach(&node(directory.path()), &device);
    let first = connect(&attached, mode).unwrap();
    plant(&attached.database);
    let work = || -> rusqlite::Result<()> {
        let connection = attached.connect(flags())?;
        connection.busy_timeout(Duration::from_secs(60))?;
        connection.pragma_update(None, "wal_autocheckpoint", 5)?;
        for _ in 0..ADDITIONS {
            connection.execute_batch("begin immediate")?;
            let found = number(&connection, "select n from t")?;
            connection.execute("insert into r values (randomblob(900))", [])?;
            std::thread::yield_now();
            connection.execute("update t set n = ?1", [found + 1])?;
            connection.execute_batch("commit")?;
        }
        Ok(())
    };
    let ended: Vec<rusqlite::Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.collect()
    });
    let told = |error: rusqlite::Error| error.to_string();
    for end in ended {
        end.map_err(told)?;
    }
    integrity(&first)?;
    let sum = number(&first, "select n from t").map_err(told)?;
    let rows = number(&first, "select count(*) from r").map_err(told)?;
    match (sum, rows) == (THREADS * ADDITIONS, THREADS * ADDITIONS) {
        true => Ok(()),
        false => Err(format!("{sum} and {rows} of {}", THREADS * ADDITIONS)),
    }
}

#[test]
fn connections_lock_each_other_out() {
    for mode in ["delete", "persist", "wal"] {
        add_up(mode, |_| ()).unwrap();
    }
}

#[test]
fn locks_that_lock_nobody_out_are_found() {
    // Threads may happen to come one after the other.
    let nobody = |database: &Database| {
        let planted = &database.locks.lock_nobody_out;
        planted.store(true, Ordering::Relaxed);
    };
    assert!((0..20).any(|_| add_up("delete", nobody).is_err()));
}
