//! Which rare paths were reached, which rare behaviour happened, and how much work was done, over many worlds on
//! several threads.

use std::cell::Cell;

use spindle_io::Env;
use spindle_io::sim::World;
use spindle_kernel::Switch;
use spindle_kernel::buggify::fired;
use spindle_kernel::probe::{Probe, hits};

/// How often each probe was hit and each switch fired.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached(Vec<u64>);

impl Reached {
    /// Names, in the order of the counts.
    pub fn names() -> Vec<String> {
        let probes = Probe::ALL.iter().map(|probe| format!("{probe:?}"));
        let switches = Switch::ALL.iter().map(|switch| format!("{switch:?}"));
        probes.chain(switches).collect()
    }

    /// All that this thread has reached so far.
    pub fn on_this_thread() -> Reached {
        let probes = Probe::ALL.iter().map(|probe| hits(*probe));
        let switches = Switch::ALL.iter().map(|switch| fired(*switch));
        Reached(probes.chain(switches).collect())
    }

    /// What was reached since `earlier`.
    pub fn since(&self, earlier: &Reached) -> Reached {
        let counts = self.0.iter().zip(&earlier.0);
        Reached(counts.map(|(now, then)| now - then).collect())
    }

    /// Adds what was reached elsewhere.
    pub fn add(&mut self, other: &Reached) {
        self.0.resize(other.0.len(), 0);
        for (sum, count) in self.0.iter_mut().zip(&other.0) {
            *sum += count;
        }
    }

    /// The counts, in the order of [`Reached::names`].
    pub fn counts(&self) -> &[u64] {
        &self.0
    }

    /// From counts that [`Reached::counts`] gave.
    pub fn of(counts: Vec<u64>) -> Reached {
        Reached(counts)
    }

    /// Names of what was never reached. Undo that is too old takes a scan longer than any here: `consistent_reads.rs`
    /// has it.
    pub fn missing(&self) -> Vec<String> {
        let elsewhere = format!("{:?}", Probe::SnapshotTooOld);
        let names = Reached::names().into_iter().enumerate();
        let missing = names
            .filter(|(index, _)| self.0.get(*index).is_none_or(|&count| count == 0))
            .filter(|(_, name)| *name != elsewhere);
        missing.map(|(_, name)| name).collect()
    }
}

/// What worlds did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    pub ios: u64,
    pub virtual_ns: u64,
}

thread_local! {
    static WORK: Cell<Work> = const { Cell::new(Work { ios: 0, virtual_ns: 0 }) };
}

impl Work {
    /// Counts what the world did, which has come to its end.
    pub fn note(world: &World) {
        let before = WORK.get();
        WORK.set(Work {
            ios: before.ios + world.io_count(),
            virtual_ns: before.virtual_ns + world.env().now(),
        });
    }

    /// All that worlds have done on this thread so far.
    pub fn on_this_thread() -> Work {
        WORK.get()
    }

    /// What was done since `earlier`.
    pub fn since(self, earlier: Work) -> Work {
        Work {
            ios: self.ios - earlier.ios,
            virtual_ns: self.virtual_ns - earlier.virtual_ns,
        }
    }
}
