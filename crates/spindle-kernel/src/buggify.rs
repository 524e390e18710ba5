//! Switches for behaviour that is legal but rare, in FoundationDB's manner (`BUGGIFY`: Zhou et al., "FoundationDB: A
//! Distributed Unbundled Transactional Key Value Store", SIGMOD 2021, section 4). A process that is slow at the worst
//! moment, a read that brings less than it was asked for, a buffer that is not free at once: correct code bears
//! them all, and few runs meet them by themselves. Each switch is on or off for a whole run; one that is on fires now
//! and then, by a seeded stream of the world. Without the feature `planted` nothing fires and nothing is compiled in.

use std::cell::Cell;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::Env;
use spindle_io::sync::Latch;

macro_rules! switches {
    ($($(#[$doc:meta])* $variant:ident,)*) => {
        /// A rare behaviour.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Switch {
            $($(#[$doc])* $variant,)*
        }

        impl Switch {
            /// Every switch, in the order of the enumeration.
            pub const ALL: &'static [Switch] = &[$(Switch::$variant,)*];
        }
    };
}

switches! {
    /// LGWR is slow to take a batch.
    LgwrTakesLate,
    /// LGWR has taken a batch, or handed over a piece of it, and is slow to continue.
    LgwrPausesInBatch,
    /// LGWR is asked to write after a single record.
    LgwrEager,
    /// DBWR has sealed a block and is slow to write it.
    DbwrPausesBeforeWrite,
    /// DBWR writes although hardly anything is dirty.
    DbwrEager,
    /// CKPT begins the next checkpoint when the last has ended.
    CheckpointAtOnce,
    /// CKPT is slow from one step of a checkpoint to the next.
    CheckpointPauses,
    /// A multi-block read comes short.
    ShortMultiblockRead,
    /// No free buffer is found at the first look.
    NoFreeBuffer,
    /// A session has found its blocks and is slow to take them.
    SessionPausesBeforeChange,
    /// A session has its blocks exclusively and is slow to change them.
    SessionPausesInChange,
    /// The log buffer has no room for a record.
    LogBufferFull,
    /// A session's commit is in the log buffer, and the session slow to wait for it.
    CommitPauses,
    /// A session has the address of a node and is slow to go there.
    SessionPausesOnItsWay,
    /// A row and its entries are put in one after another, where one record could hold them all.
    RowInSteps,
}

/// Out of this many chances a switch that is on fires once.
const FIRES_ONCE_IN: u64 = 6;
/// Pauses are at most this long, virtual nanoseconds: several I/Os of a usual disk.
const PAUSE_NS_MAX: u64 = 1_500_000;
/// The world's stream of chance for this.
const STREAM: u64 = 0x0042_5547_4749_4659;

thread_local! {
    static FIRED: [Cell<u64>; Switch::ALL.len()] = const { [const { Cell::new(0) }; Switch::ALL.len()] };
}

/// The switches that are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Switches(u64);

impl Switches {
    /// None.
    pub const OFF: Switches = Switches(0);

    /// These.
    pub fn of(switches: &[Switch]) -> Switches {
        let bit = |bits, switch: &Switch| bits | 1 << *switch as u64;
        Switches(switches.iter().fold(0, bit))
    }

    fn has(self, switch: Switch) -> bool {
        self.0 >> switch as u64 & 1 == 1
    }

    /// Those that are on.
    pub fn list(self) -> Vec<Switch> {
        let all = Switch::ALL.iter().copied();
        all.filter(|switch| self.has(*switch)).collect()
    }
}

/// The switches of an instance, and their chance.
pub(crate) struct Buggify {
    switches: Switches,
    chance: Latch<Xoshiro256PlusPlus>,
}

impl Buggify {
    /// With `switches` on.
    pub(crate) fn new(env: &dyn Env, switches: Switches) -> Buggify {
        Buggify {
            switches,
            chance: Latch::new(env.rng(STREAM)),
        }
    }

    /// True when the rare thing shall happen here and now.
    pub(crate) fn fires(&self, switch: Switch) -> bool {
        cfg!(feature = "planted") && self.switches.has(switch) && {
            let fires = self.chance.lock().next_u64().is_multiple_of(FIRES_ONCE_IN);
            if fires {
                FIRED.with(|fired| fired[switch as usize].set(fired[switch as usize].get() + 1));
            }
            fires
        }
    }

    /// A number from 1 to `most`, less than it when the switch fires.
    pub(crate) fn shorten(&self, switch: Switch, most: u32) -> u32 {
        if most > 1 && self.fires(switch) {
            1 + (self.chance.lock().next_u64() % u64::from(most - 1)) as u32
        } else {
            most
        }
    }

    /// Waits a while when the switch fires.
    pub(crate) async fn pause(&self, env: &dyn Env, switch: Switch) {
        if self.fires(switch) {
            let pause_ns = self.chance.lock().next_u64() % PAUSE_NS_MAX;
            env.sleep(pause_ns).await;
        }
    }
}

#[cfg(feature = "planted")]
/// How often the switch has fired on this thread.
pub fn fired(switch: Switch) -> u64 {
    FIRED.with(|fired| fired[switch as usize].get())
}
