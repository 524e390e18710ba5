//! Libraries that load `junk` in this process, and the floor below all of them.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lmdb::{DatabaseFlags, Environment, Transaction, WriteFlags};
use rusqlite::{Connection, params};
use spindle_workload::sql::{Dialect, SqlWorkload};

use super::embedded::junk;
use super::{C6, C7, CACHE_BYTES, COMMIT_EVERY, Loader};

const DAY: &str = "2006-01-01";
/// The row of the embedded database: four numbers, a date, two texts and a length.
const ROW_BYTES: usize = 4 * 8 + 4 + C6.len() + 2 + C7.len();

/// A directory that is new for each load.
struct Place(PathBuf);

impl Place {
    fn emptied(&self) -> &Path {
        if self.0.exists() {
            std::fs::remove_dir_all(&self.0).expect("what the last load left");
        }
        std::fs::create_dir(&self.0).expect("a directory for the load");
        &self.0
    }
}

/// SQLite with its log, each commit flushed, and one prepared statement.
pub struct Sqlite(Place);

impl Sqlite {
    pub fn new(directory: &Path) -> Sqlite {
        Sqlite(Place(directory.join("sqlite")))
    }
}

impl Loader for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite, WAL, FULL"
    }

    fn goal(&self) -> f64 {
        1.2
    }

    fn load(&mut self, rows: u64) -> Duration {
        let path = self.0.emptied().join("junk.db");
        let connection = Connection::open(path).expect("a database");
        let cache_kib = CACHE_BYTES / 1024;
        let settings = format!(
            "pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -{cache_kib};"
        );
        connection.execute_batch(&settings).expect("its settings");
        for statement in junk(rows).create_tables(Dialect::Sqlite) {
            connection.execute_batch(&statement).expect("its table");
        }
        let mut insert = connection
            .prepare("insert into junk values (?1, ?2, ?1, ?2, ?3, ?4, ?5)")
            .expect("the statement");
        let every = u64::from(COMMIT_EVERY);
        let began = Instant::now();
        for first in (1..=rows).step_by(COMMIT_EVERY as usize) {
            let transaction = connection.unchecked_transaction().expect("it begins");
            for number in first..first + every {
                let inserted = insert.execute(params![number as i64, 0, DAY, C6, C7]);
                inserted.expect("a row");
            }
            transaction.commit().expect("it is committed");
        }
        began.elapsed()
    }
}

/// LMDB: the rows by the primary key, and the primary keys by the other.
pub struct Lmdb(Place);

impl Lmdb {
    pub fn new(directory: &Path) -> Lmdb {
        Lmdb(Place(directory.join("lmdb")))
    }
}

impl Loader for Lmdb {
    fn name(&self) -> &'static str {
        "LMDB, sync per commit"
    }

    fn goal(&self) -> f64 {
        1.0
    }

    fn load(&mut self, rows: u64) -> Duration {
        let environment = Environment::new()
            .set_max_dbs(2)
            .set_map_size((rows as usize * 2048).max(64 << 20))
            .open(self.0.emptied())
            .expect("an environment");
        let table = |name| environment.create_db(Some(name), DatabaseFlags::empty());
        let (by_c1_c2, by_c3_c4) = (
            table("c1_c2").expect("a key"),
            table("c3_c4").expect("a key"),
        );
        let mut row = row();
        let every = u64::from(COMMIT_EVERY);
        let began = Instant::now();
        for first in (1..=rows).step_by(COMMIT_EVERY as usize) {
            let mut transaction = environment.begin_rw_txn().expect("it begins");
            for number in first..first + every {
                count(&mut row, number);
                let (first_key, rest) = row.split_at(16);
                let second_key = &rest[..16];
                for (key, of, value) in [
                    (by_c1_c2, first_key, rest),
                    (by_c3_c4, second_key, first_key),
                ] {
                    let put = transaction.put(key, &of, &value, WriteFlags::NO_OVERWRITE);
                    put.expect("a row");
                }
            }
            transaction.commit().expect("it is committed");
        }
        began.elapsed()
    }
}

/// A file to which the rows are appended, and which is flushed for each commit.
pub struct Floor(Place);

impl Floor {
    pub fn new(directory: &Path) -> Floor {
        Floor(Place(directory.join("floor")))
    }
}

impl Loader for Floor {
    fn name(&self) -> &'static str {
        "append, fdatasync per 100"
    }

    fn goal(&self) -> f64 {
        0.5
    }

    fn load(&mut self, rows: u64) -> Duration {
        let path = self.0.emptied().join("rows");
        let mut file = File::create_new(path).expect("a file");
        let mut row = row();
        let every = u64::from(COMMIT_EVERY);
        let mut commit = Vec::with_capacity(ROW_BYTES * COMMIT_EVERY as usize);
        let began = Instant::now();
        for first in (1..=rows).step_by(COMMIT_EVERY as usize) {
            commit.clear();
            for number in first..first + every {
                count(&mut row, number);
                commit.extend_from_slice(&row);
            }
            file.write_all(&commit).expect("a write");
            file.sync_data().expect("a flush");
        }
        began.elapsed()
    }
}

/// The row as the embedded database has it, of no number yet.
fn row() -> Vec<u8> {
    let mut row = vec![0; 32];
    row.extend_from_slice(&13_149_u32.to_be_bytes());
    row.extend_from_slice(C6.as_bytes());
    row.extend_from_slice(&(C7.len() as u16).to_be_bytes());
    row.extend_from_slice(C7.as_bytes());
    assert_eq!(row.len(), ROW_BYTES);
    row
}

/// Gives the row its number.
fn count(row: &mut [u8], number: u64) {
    for at in [0, 16] {
        row[at..at + 8].copy_from_slice(&number.to_be_bytes());
    }
}
