//! What the instance has done since it started: counters in the manner of `v$sysstat`.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! statistics {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// The running counters.
        #[derive(Default)]
        pub(crate) struct Statistics {
            $($field: AtomicU64,)*
        }

        /// The counters at one moment; subtract two to get an interval.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct StatisticsSnapshot {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl Statistics {
            /// The counters now.
            pub(crate) fn snapshot(&self) -> StatisticsSnapshot {
                StatisticsSnapshot { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }

        impl std::ops::Sub for StatisticsSnapshot {
            type Output = StatisticsSnapshot;
            fn sub(self, earlier: StatisticsSnapshot) -> StatisticsSnapshot {
                StatisticsSnapshot { $($field: self.$field - earlier.$field,)* }
            }
        }
    };
}

statistics! {
    /// Blocks looked for in the buffer cache.
    logical_reads,
    /// Read I/Os to datafiles.
    physical_read_ios,
    /// Bytes read from datafiles.
    physical_read_bytes,
    /// Write I/Os to datafiles (each of one block).
    physical_write_ios,
    /// Bytes written to datafiles.
    physical_write_bytes,
    /// Writes of redo by LGWR.
    redo_writes,
    /// Bytes of redo, batch headers included.
    redo_bytes,
    /// Bytes written to fill redo blocks up.
    redo_wastage_bytes,
    /// Log switches.
    log_switches,
    /// Checkpoints completed.
    checkpoints,
    /// Transactions committed that changed something.
    commits,
    /// Transactions rolled back that had changed something.
    rollbacks,
}

impl Statistics {
    fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn add_logical_read(&self) {
        Self::add(&self.logical_reads, 1);
    }

    pub(crate) fn add_physical_read(&self, blocks: usize, block_bytes: usize) {
        Self::add(&self.physical_read_ios, 1);
        Self::add(&self.physical_read_bytes, (blocks * block_bytes) as u64);
    }

    pub(crate) fn add_physical_write(&self, bytes: usize) {
        Self::add(&self.physical_write_ios, 1);
        Self::add(&self.physical_write_bytes, bytes as u64);
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

    pub(crate) fn add_commit(&self) {
        Self::add(&self.commits, 1);
    }

    pub(crate) fn add_rollback(&self) {
        Self::add(&self.rollbacks, 1);
    }
}
