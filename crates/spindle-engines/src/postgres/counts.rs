//! What the server counts: reads and writes of its blocks and of its write-ahead log, checkpoints, sizes. Where it
//! counts them has moved from version to version; each statement here names the views of those that it is for
//! (https://www.postgresql.org/docs/current/monitoring-stats.html).

use std::sync::{Mutex, PoisonError};

use spindle_io::real::IoCounts;
use spindle_workload::SessionError;
use spindle_workload::sql::SqlConnection;

use super::connection::PostgresConnection;
use crate::engine::{CacheCounts, EngineCounts, Housekeeping, SegmentSize};

/// Blocks found in the buffer cache, blocks read, size of a block.
const CACHE_OF_ALL: &str = "select coalesce(sum(blks_hit), 0)::int8, coalesce(sum(blks_read), 0)::int8, \
     current_setting('block_size')::int8 from pg_stat_database";

/// Numbers of statements.
const DATA: usize = 0;
const REDO: usize = 1;
const CHECKPOINTS: usize = 2;
const SEGMENTS: usize = 3;
const CACHE: usize = 4;

const SEGMENT_SIZES: &str = "select c.relname, pg_relation_size(c.oid) from pg_class c \
     join pg_namespace n on n.oid = c.relnamespace \
     where n.nspname = current_schema() and c.relkind in ('r', 'i', 'm') order by 1";

/// Reads, bytes read, writes, bytes written.
fn data_of(major: u32) -> &'static str {
    match major {
        18.. => {
            "select sum(reads)::int8, sum(read_bytes)::int8, sum(coalesce(writes, 0) + coalesce(extends, 0))::int8, \
             sum(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0))::int8 from pg_stat_io where object <> 'wal'"
        }
        16..18 => {
            "select sum(reads)::int8, sum(reads * op_bytes)::int8, \
             sum(coalesce(writes, 0) + coalesce(extends, 0))::int8, \
             sum((coalesce(writes, 0) + coalesce(extends, 0)) * op_bytes)::int8 from pg_stat_io"
        }
        _ => {
            "select r, r * b, w, w * b from \
             (select sum(blks_read)::int8 r from pg_stat_database) d, \
             (select buffers_checkpoint + buffers_clean + buffers_backend w from pg_stat_bgwriter) g, \
             (select current_setting('block_size')::int8 b) s"
        }
    }
}

/// Writes, bytes written. Before version 18 the server counts what is new in its log, and not what it writes: whole
/// pages, the last of which is written again when more has come. A write, wherever it begins, touches one page more
/// than its bytes fill, on average.
fn redo_of(major: u32) -> &'static str {
    match major {
        18.. => {
            "select sum(writes)::int8, sum(write_bytes)::int8 from pg_stat_io where object = 'wal'"
        }
        14..18 => {
            "select wal_write, (wal_bytes + wal_write * current_setting('wal_block_size')::int8)::int8 from pg_stat_wal"
        }
        // It counts no writes; what it has written it knows.
        _ => "select 0::int8, (pg_current_wal_lsn() - '0/0')::int8",
    }
}

fn checkpoints_of(major: u32) -> &'static str {
    match major {
        18.. => "select num_done from pg_stat_checkpointer",
        17 => "select num_timed + num_requested from pg_stat_checkpointer",
        _ => "select checkpoints_timed + checkpoints_req from pg_stat_bgwriter",
    }
}

/// Asks the server for its counts, on its own connection. When it is gone, the last sizes stand.
pub(super) struct Statistics {
    connection: Mutex<Option<PostgresConnection>>,
    segments: Mutex<Vec<SegmentSize>>,
}

impl Statistics {
    /// Asks through `connection`.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn new(mut connection: PostgresConnection, major: u32) -> Result<Statistics, SessionError> {
        let statements = [
            data_of(major),
            redo_of(major),
            checkpoints_of(major),
            SEGMENT_SIZES,
            CACHE_OF_ALL,
        ];
        connection.prepare(&statements.map(str::to_owned))?;
        Ok(Statistics {
            connection: Mutex::new(Some(connection)),
            segments: Mutex::default(),
        })
    }

    /// Reads and writes. Blocks that the page cache gave count as read.
    pub fn io(&self) -> Option<EngineCounts> {
        let [reads, read_bytes, writes, write_bytes] = self.numbers(DATA)?;
        let [log_writes, log_bytes] = self.numbers(REDO)?;
        Some(EngineCounts {
            data: IoCounts {
                reads,
                writes,
                read_bytes,
                write_bytes,
                ..IoCounts::default()
            },
            redo: IoCounts {
                writes: log_writes,
                write_bytes: log_bytes,
                ..IoCounts::default()
            },
            ..EngineCounts::default()
        })
    }

    /// Checkpoints.
    pub fn housekeeping(&self) -> Option<Housekeeping> {
        let [checkpoints] = self.numbers(CHECKPOINTS)?;
        Some(Housekeeping {
            checkpoints,
            log_switches: None,
        })
    }

    /// Blocks looked for in the buffer cache. A session tells its own about once a second.
    pub fn cache(&self) -> Option<CacheCounts> {
        let [hit, missed, block_bytes] = self.numbers(CACHE)?;
        Some(CacheCounts {
            wanted: hit + missed,
            missed,
            read_in: missed,
            block_bytes,
        })
    }

    /// Sizes of tables and indexes.
    pub fn segments(&self) -> Vec<SegmentSize> {
        let mut segments = Vec::new();
        let asked = self.ask(SEGMENTS, |row| {
            segments.push(SegmentSize {
                name: row.text(0)?,
                extents: 1,
                bytes: row.int(1)?.unsigned_abs(),
            });
            Ok(())
        });
        let mut last = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.is_some() {
            *last = segments;
        }
        last.clone()
    }

    /// Ends the connection.
    pub fn stop(&self) {
        let mut connection = self.connection.lock();
        connection
            .as_mut()
            .unwrap_or_else(|poisoned| poisoned.get_mut())
            .take();
    }

    fn numbers<const N: usize>(&self, statement: usize) -> Option<[u64; N]> {
        let mut numbers = [0; N];
        self.ask(statement, |row| {
            for (column, number) in numbers.iter_mut().enumerate() {
                *number = row.int(column)?.unsigned_abs();
            }
            Ok(())
        })?;
        Some(numbers)
    }

    fn ask(
        &self,
        statement: usize,
        mut visit: impl FnMut(&dyn spindle_workload::sql::SqlRow) -> Result<(), SessionError>,
    ) -> Option<()> {
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let asked = connection
            .as_mut()?
            .query(statement, &[], &mut |row| visit(row));
        asked.ok().map(|_| ())
    }
}
