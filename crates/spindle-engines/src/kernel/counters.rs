//! What the embedded database tells of itself.

use std::borrow::Cow;

use spindle_io::ProcessorUse;
use spindle_io::real::{FixedBuffers, IoCounts};
use spindle_kernel::{SegmentSpace, WaitTotal};

use super::{KernelEngine, OpenFile};
use crate::EngineError;
use crate::engine::{CacheCounts, Counters, EngineCounts, EngineWait, Housekeeping, SegmentSize};
use crate::promise::{self, CommitStorage, Promise};

fn waits(totals: Vec<WaitTotal>) -> Vec<EngineWait> {
    let wait = |total: WaitTotal| EngineWait {
        event: Cow::Borrowed(total.event.name()),
        count: total.count,
        total_ns: total.total_ns,
        sampled: total.sampled,
    };
    totals.into_iter().map(wait).collect()
}

fn sum<'a>(files: impl Iterator<Item = &'a OpenFile>) -> IoCounts {
    files.fold(IoCounts::default(), |sum, open| sum + open.file.counters())
}

impl Counters for KernelEngine {
    /// As the devices counted it.
    fn counts(&self) -> Option<EngineCounts> {
        // Log files were opened first.
        let (redo, data) = self.files.list.split_at(self.redo_files);
        let all = self.files.list.iter();
        Some(EngineCounts {
            data: sum(data.iter()),
            redo: sum(redo.iter()),
            grouped: sum(all.filter(|open| open.file.is_in_group())),
            disks: self.files.opening.disk_counters(),
        })
    }

    fn waits(&self) -> Vec<EngineWait> {
        waits(self.instance.wait_events())
    }

    fn session_waits(&self) -> Vec<EngineWait> {
        waits(self.instance.session_wait_events())
    }

    fn housekeeping(&self) -> Option<Housekeeping> {
        let counters = self.statistics();
        Some(Housekeeping {
            checkpoints: counters.checkpoint_positions,
            log_switches: Some(counters.log_switches),
        })
    }

    fn cache(&self) -> Option<CacheCounts> {
        let counters = self.statistics();
        let block_bytes = self.settings.block_bytes as u64;
        let missed = counters.physical_read_bytes / block_bytes;
        Some(CacheCounts {
            wanted: counters.logical_reads,
            missed,
            read_in: missed,
            block_bytes,
        })
    }

    fn dirty_bytes(&self) -> Option<u64> {
        Some(self.instance.dirty_bytes())
    }

    fn failure(&self) -> Option<EngineError> {
        self.instance.failure().map(EngineError::from)
    }

    fn segments(&self) -> Vec<SegmentSize> {
        let size = |segment: SegmentSpace| SegmentSize {
            name: segment.name,
            extents: segment.extents as u64,
            bytes: segment.bytes,
        };
        self.instance.segments().into_iter().map(size).collect()
    }

    fn segments_bytes(&self) -> Option<u64> {
        let segments = self.instance.segments();
        Some(segments.iter().map(|segment| segment.bytes).sum())
    }

    fn ended_processes(&self) -> ProcessorUse {
        let counters = self.statistics();
        ProcessorUse {
            running_ns: counters.slave_running_ns,
            run_queue_ns: counters.slave_run_queue_ns,
        }
    }

    fn promise(&self, storage: &CommitStorage, _: &[String]) -> Promise {
        promise::kernel::promise(&self.settings, storage)
    }

    fn warnings(&self) -> Vec<String> {
        let mut rings = self.rings.iter();
        let dropped = rings.find_map(|ring| match ring.fixed_buffers() {
            FixedBuffers::Dropped { reason } => Some(reason.to_string()),
            _ => None,
        });
        let told = dropped.map(|reason| format!("fixed buffers were dropped: {reason}"));
        told.into_iter().collect()
    }
}
