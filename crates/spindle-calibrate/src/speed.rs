//! A load held on any file, for `benches/speed.rs`, which compares it with fio. It is the one way to measure places
//! that were never written: reads of them reach no device, and what is left is the cost of the software.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use spindle_io::real::facts::ProcessorTime;
use spindle_io::real::{Caching, Method};
use spindle_io::{Arena, BlockDevice};
use spindle_layout::KnownDevice;

use crate::coverage::CoverageCounts;
use crate::error::CalibrateError;
use crate::figures::What;
use crate::observe::{Tally, Timing};
use crate::point::{Holding, PointLoad};
use crate::slots::RequestPath;
use crate::unit::{Unit, UnitShape};

/// Reads to hold.
#[derive(Debug, Clone, Copy)]
pub struct Reads {
    /// How they are handed over.
    pub method: Method,
    /// Reads under way.
    pub depth: u32,
    /// What they are.
    pub what: What,
    /// Whether their buffers are registered with the kernel, where the method can do that.
    pub has_fixed_buffers: bool,
}

/// What they came to.
#[derive(Debug, Clone, Copy)]
pub struct Reached {
    /// Reads per second.
    pub per_s: f64,
    /// Processor time of one, of the whole process, microseconds.
    pub cpu_us: f64,
}

impl Reads {
    /// Holds them on a file for this long, direct, with latencies on.
    ///
    /// # Errors
    /// The file cannot be opened, a read failed, or the system refuses memory or threads.
    pub fn hold(&self, path: &Path, time: Duration) -> Result<Reached, CalibrateError> {
        let load = PointLoad {
            what: self.what,
            method: self.method,
            depth: self.depth,
        };
        let arena = Arena::new(self.what.length_bytes() as usize, self.depth as usize)?;
        let queue = self.method.open(self.depth as usize)?;
        let file = KnownDevice::look(path)?.open_to_read(Caching::Direct, queue)?;
        let bytes = file.limits().capacity_bytes;
        let shape = UnitShape::one_after_the_other([bytes].into_iter());
        let unit = Unit::new(vec![file], shape);
        let way = match RequestPath::to(&unit) {
            RequestPath::Rings(unit, _) => RequestPath::Rings(unit, self.has_fixed_buffers),
            way => way,
        };
        let how = Holding {
            load,
            timing: Timing::fixed(time, 100),
            write_percent: 0,
            coverage: &CoverageCounts::new(bytes),
            interrupted: &AtomicBool::new(false),
        };
        let before = ProcessorTime::now();
        let observed = how.hold(way, &arena, &Tally::new())?;
        let cpu = (ProcessorTime::now() - before).total();
        let reads = observed.all_per_s * time.as_secs_f64();
        Ok(Reached {
            per_s: observed.all_per_s,
            cpu_us: cpu.as_secs_f64() * 1e6 / reads.max(1.0),
        })
    }
}
