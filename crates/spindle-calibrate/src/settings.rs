//! What is asked for, and what of it every calibration has alike. `calibrate` checks it, `work` carries it out.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use spindle_io::real::Caching;
use spindle_text::words;

use crate::cloud::Bought;
use crate::need::Need;
use crate::orion::Orion;
use crate::unit::Simulate;

/// Size of a file that is only flushed, such as the control's: each of the writers has its part of it.
pub(crate) const FLUSHED_BYTES: u64 = 8 << 20;
/// The part of the time in which files are filled.
pub(crate) const FILLED_AT: f64 = 0.25;

/// The usual longest mean time of a small request, microseconds.
pub const MAX_LATENCY_US: f64 = 20_000.0;

words! {
    /// Whether reads pass through the page cache.
    pub enum AskedCaching {
        /// None.
        Direct = "direct",
        /// All.
        Buffered = "buffered",
        /// Each access path twice. Limits are those of direct reads.
        Both = "both",
    }
}

impl AskedCaching {
    /// That of limits, rates and what is held.
    pub(crate) fn of_limits(self) -> Caching {
        match self {
            AskedCaching::Direct | AskedCaching::Both => Caching::Direct,
            AskedCaching::Buffered => Caching::Buffered,
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct CalibrationSettings {
    /// What is measured, as one unit.
    pub targets: Vec<PathBuf>,
    /// How several targets make one unit.
    pub simulate: Simulate,
    /// Length of a stripe, where they make one in stripes; a multiple of 1 MiB, bytes.
    pub stripe_bytes: u64,
    /// Whether reads pass through the page cache.
    pub caching: AskedCaching,
    /// Size of a file that is made in a directory, bytes.
    pub size_bytes: u64,
    /// Of 100 requests, how many write; 0 for none.
    pub write_percent: u32,
    /// Identities of devices whose content may be lost, as `erase` of a layout names them.
    pub erase: Vec<String>,
    /// How long it may take, about, milliseconds.
    pub time_ms: u64,
    /// How long the best point is held beyond that; `None` for a part of that time.
    pub hold: Option<Duration>,
    /// Points with a longer mean time do not count for the most requests, microseconds; `None`: [`MAX_LATENCY_US`], and
    /// none for a run type of ORION's.
    pub max_latency_us: Option<f64>,
    /// A run type of ORION's instead of the search for the knee.
    pub orion: Option<Orion>,
    /// Only flushes are measured: how long they take, and whether they arrive.
    pub only_flushes: bool,
    /// A directory on the disk beneath, with whose flushes those of the target are compared.
    pub control: Option<PathBuf>,
    /// What was bought, as far as a person says.
    pub bought: Bought,
    /// Whether the metadata service of a cloud is asked, where the machine is one's.
    pub may_ask_cloud: bool,
    /// What is demanded.
    pub needs: Vec<Need>,
    /// Set from outside when it is to end.
    pub interrupted: Arc<AtomicBool>,
}

impl CalibrationSettings {
    /// The longest mean time that counts, where a search ends by it.
    pub(crate) fn latency_limit_us(&self) -> f64 {
        self.max_latency_us.unwrap_or(MAX_LATENCY_US)
    }
}
