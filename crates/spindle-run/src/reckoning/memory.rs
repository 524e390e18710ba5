//! The memory that a run takes: one database runs at a time, or all of a round by turns; beside golden copies that are
//! kept in memory and files on file systems that lie in it.

use std::fmt;

use spindle_engines::sql::server;

use super::databases::{Databases, Files};
use super::room::RoomAtPlace;
use crate::databases::blocks::is_kept_in_memory;
use crate::server_files::request_of;
use spindle_experiment::{DatabaseSpec, Experiment};
use spindle_system::SystemTree;
use spindle_system::cgroup::GroupLimits;
use spindle_system::sampler::MemoryState;
use spindle_text::quantity::{size, size_free, size_needed};
use spindle_text::vocabulary::Vocabulary;

/// What a trial of the embedded database takes beside its caches: its programs and threads, about.
const WORKER_BYTES: u64 = 48 << 20;
/// And each of its clients.
const CLIENT_BYTES: u64 = 128 << 10;
/// A run that takes more of the machine's memory, per cent, is warned of.
const COMFORTABLE_PERCENT: u64 = 80;

/// The machine's memory, or what control groups let this process have of it.
#[derive(Debug, Clone, Copy)]
pub struct MachineMemory {
    /// All of it.
    pub all_bytes: u64,
    /// What programs could get now.
    pub available_bytes: u64,
}

impl MachineMemory {
    /// Looks at the machine; `None` when it does not tell.
    pub fn look() -> Option<MachineMemory> {
        let files = SystemTree::default();
        let state = MemoryState::read(&files)?;
        let limit = GroupLimits::read(&files).memory_bytes.unwrap_or(u64::MAX);
        Some(MachineMemory {
            all_bytes: state.total_bytes.min(limit),
            available_bytes: state.available_bytes.min(limit),
        })
    }
}

/// What a run takes of it.
pub struct RunMemory {
    machine: MachineMemory,
    words: &'static Vocabulary,
    parts: Vec<(String, u64)>,
}

impl RunMemory {
    pub(super) fn of(
        machine: MachineMemory,
        experiment: &Experiment,
        databases: &Databases,
        rooms: &[RoomAtPlace],
    ) -> RunMemory {
        let images = databases.images.iter();
        let trials = images.map(|image| of_trial(experiment, image.layout));
        let [caches_bytes, beside_bytes] = match experiment.plan.interleave_ms {
            // All databases of a round are started at once.
            Some(_) => trials.fold([0, 0], |[sum, of], [more, beside]| {
                [sum + more, of + beside]
            }),
            None => trials
                .max_by_key(|trial| trial.iter().sum::<u64>())
                .unwrap_or_default(),
        };
        let memory = experiment.spec().memory();
        let budget_bytes = memory.map_or(0, |memory| memory.memory_bytes);
        let mut golden_bytes = 0;
        for golden in &databases.goldens {
            let bytes = golden.files.bytes();
            let available_bytes = machine.available_bytes.saturating_sub(golden_bytes);
            let is_kept = is_kept_in_memory(available_bytes, budget_bytes, bytes);
            if matches!(golden.files, Files::Kernel(_)) && is_kept {
                golden_bytes += bytes;
            }
        }
        let in_memory = rooms.iter().filter(|room| room.is_in_memory);
        let files_bytes = in_memory.map(RoomAtPlace::sure_bytes).sum();
        let words = Vocabulary::of(experiment.database.engine().as_str());
        RunMemory {
            machine,
            words,
            parts: vec![
                (format!("{} and page cache", words.cache), caches_bytes),
                ("sessions and programs".to_owned(), beside_bytes),
                ("golden copy in memory".to_owned(), golden_bytes),
                ("files in memory (tmpfs)".to_owned(), files_bytes),
            ],
        }
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Why the machine cannot have it, in words.
    pub fn refusal(&self) -> Option<String> {
        (self.bytes() > self.machine.all_bytes).then(|| {
            let key = self.words.cache_size;
            format!("{self}. Make database.memory and database.{key} smaller, or use fewer clients")
        })
    }

    /// What may go wrong, in words.
    pub fn warning(&self) -> Option<String> {
        let bytes = self.bytes();
        let is_much = bytes > self.machine.all_bytes / 100 * COMFORTABLE_PERCENT;
        let reason = match (is_much, bytes > self.machine.available_bytes) {
            (_, true) => "other programs have the rest, and the machine may swap or end a trial",
            (true, false) => "little is left for the system, which may swap or end a trial",
            (false, false) => return None,
        };
        Some(format!("{self}: {reason}"))
    }
}

/// The budget of a layout's caches, and what its trials take beside it; of a server that runs already nothing is known.
fn of_trial(experiment: &Experiment, layout: usize) -> [u64; 2] {
    match &experiment.database_of(layout).spec {
        DatabaseSpec::Kernel(kernel) => {
            let clients = experiment.workload.clients_max();
            let query_bytes = kernel.query_bytes(experiment.workload.query_processes(clients));
            let connections = u64::from(experiment.workload.connections(clients));
            let beside_bytes = WORKER_BYTES + CLIENT_BYTES * connections + query_bytes;
            [kernel.memory.memory_bytes, beside_bytes]
        }
        DatabaseSpec::Server(spec) => {
            let request = request_of(spec, experiment, layout);
            let beside_bytes = server(spec.kind).overhead_bytes(&request);
            [spec.memory.memory_bytes, beside_bytes]
        }
        DatabaseSpec::Remote(_) => [0, 0],
    }
}

impl fmt::Display for RunMemory {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts.iter().filter(|(_, bytes)| *bytes > 0);
        let parts = parts.map(|(what, bytes)| format!("{what} {}", size_needed(*bytes)));
        write!(
            text,
            "Memory: about {} of {}, of which {} are available: {}",
            size_needed(self.bytes()),
            size(self.machine.all_bytes),
            size_free(self.machine.available_bytes),
            parts.collect::<Vec<_>>().join(", ")
        )
    }
}
