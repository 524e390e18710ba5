//! What the instance has done since it started: counters in the manner of `v$sysstat`.

use std::sync::atomic::{AtomicU64, Ordering};

use spindle_io::ProcessorUse;

use crate::wait_event::Reads;

macro_rules! statistics {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// The running counters, but for those of reads, which are counted by each process for itself.
        #[derive(Default)]
        pub(crate) struct Statistics {
            $($field: AtomicU64,)*
        }

        /// The counters at one moment; subtract two to get an interval.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct StatisticsSnapshot {
            /// Blocks looked for in the buffer cache.
            pub logical_reads: u64,
            /// Read I/Os to datafiles.
            pub physical_read_ios: u64,
            /// Bytes read from datafiles.
            pub physical_read_bytes: u64,
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Statistics {
            /// The counters now, together with what all processes have read.
            pub(crate) fn snapshot(&self, reads: Reads, block_bytes: usize) -> StatisticsSnapshot {
                StatisticsSnapshot {
                    logical_reads: reads.logical,
                    physical_read_ios: reads.physical_ios,
                    physical_read_bytes: reads.physical_blocks * block_bytes as u64,
                    $($field: self.$field.load(Ordering::Relaxed),)*
                }
            }
        }

        impl std::ops::Sub for StatisticsSnapshot {
            type Output = StatisticsSnapshot;
            fn sub(self, earlier: StatisticsSnapshot) -> StatisticsSnapshot {
                StatisticsSnapshot {
                    logical_reads: self.logical_reads - earlier.logical_reads,
                    physical_read_ios: self.physical_read_ios - earlier.physical_read_ios,
                    physical_read_bytes: self.physical_read_bytes - earlier.physical_read_bytes,
                    $($field: self.$field - earlier.$field,)*
                }
            }
        }
    };
}

statistics! {
    /// Undo records read to show a row as it was when a statement began (Oracle's `undo records applied`).
    undo_records_applied,
    /// Write I/Os to datafiles (each of one block) and to the double write areas.
    physical_write_ios,
    /// Bytes written to datafiles and double write areas.
    physical_write_bytes,
    /// Writes of batches to the double write areas; these and their bytes are among the write I/Os to datafiles.
    double_write_ios,
    /// Bytes of them.
    double_write_bytes,
    /// Write I/Os to tempfiles (Oracle's `physical writes direct temporary tablespace`, which counts blocks).
    temp_write_ios,
    /// Bytes written to tempfiles.
    temp_write_bytes,
    /// Read I/Os from tempfiles.
    temp_read_ios,
    /// Bytes read from tempfiles.
    temp_read_bytes,
    /// Time on a processor of query slaves that have ended, nanoseconds.
    slave_running_ns,
    /// Their time in the run queue, nanoseconds.
    slave_run_queue_ns,
    /// Writes of redo by LGWR.
    redo_writes,
    /// Bytes of redo, batch headers included.
    redo_bytes,
    /// Bytes written to fill redo blocks up.
    redo_wastage_bytes,
    /// Log switches.
    log_switches,
    /// Full checkpoints completed: at a shutdown, on demand, and when the ring of log files had no room.
    checkpoints,
    /// Checkpoint positions entered in the control file, those of full checkpoints included.
    checkpoint_positions,
    /// Transactions committed that changed something.
    commits,
    /// Transactions rolled back that had changed something.
    rollbacks,
    /// Deadlocks found, each told to one of the transactions in it.
    deadlocks,
}

impl Statistics {
    fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn add_undo_record_applied(&self) {
        Self::add(&self.undo_records_applied, 1);
    }

    pub(crate) fn add_physical_write(&self, bytes: usize) {
        Self::add(&self.physical_write_ios, 1);
        Self::add(&self.physical_write_bytes, bytes as u64);
    }

    pub(crate) fn add_double_write(&self, bytes: usize) {
        Self::add(&self.double_write_ios, 1);
        Self::add(&self.double_write_bytes, bytes as u64);
        self.add_physical_write(bytes);
    }

    pub(crate) fn add_temp_write(&self, bytes: u64) {
        Self::add(&self.temp_write_ios, 1);
        Self::add(&self.temp_write_bytes, bytes);
    }

    pub(crate) fn add_temp_read(&self, bytes: u64) {
        Self::add(&self.temp_read_ios, 1);
        Self::add(&self.temp_read_bytes, bytes);
    }

    pub(crate) fn add_slave(&self, had: ProcessorUse) {
        Self::add(&self.slave_running_ns, had.running_ns);
        Self::add(&self.slave_run_queue_ns, had.run_queue_ns);
    }

    pub(crate) fn add_redo_write(&self, bytes: usize, padded: usize) {
        Self::add(&self.redo_writes, 1);
        Self::add(&self.redo_bytes, bytes as u64);
        Self::add(&self.redo_wastage_bytes, (padded - bytes) as u64);
    }

    pub(crate) fn add_log_switch(&self) {
        Self::add(&self.log_switches, 1);
    }

    pub(crate) fn add_checkpoint(&self) {
        Self::add(&self.checkpoints, 1);
    }

    pub(crate) fn add_checkpoint_position(&self) {
        Self::add(&self.checkpoint_positions, 1);
    }

    pub(crate) fn add_commit(&self) {
        Self::add(&self.commits, 1);
    }

    pub(crate) fn add_rollback(&self) {
        Self::add(&self.rollbacks, 1);
    }

    pub(crate) fn add_deadlock(&self) {
        Self::add(&self.deadlocks, 1);
    }
}
