//! What a run will take of the machine, reckoned from the experiment and what was looked up, before anything is made:
//! room on each file system and device, memory, time. `plan` shows it, `run` says it first, and both refuse what cannot
//! fit. Only sums that are sure refuse; what trials may add is warned of. `plan` calls this.

mod databases;
mod destination;
mod memory;
mod process;
mod room;
mod time;

use std::fmt;
use std::io;
use std::path::Path;

use spindle_experiment::DatabaseSpec;
use spindle_io::real::facts::{self, FsFacts};
use spindle_layout::plan::LookedAt;

pub use databases::Databases;
pub use destination::Destinations;
pub use memory::{MachineMemory, RunMemory};
pub(crate) use process::short_of;
pub use process::{ProcessNeeds, try_out};
pub use room::RoomAtPlace;
pub use time::Time;
use time::trials_of;

use room::Rooms;
use spindle_text::quantity::{size_free, size_needed};

/// A column that is wider than this is not filled up with blanks.
const WIDEST: usize = 1_000;

/// What is reckoned from.
#[derive(Clone, Copy)]
pub struct ReckoningInput<'a> {
    /// The experiment, and what is made for it.
    pub destinations: Destinations<'a>,
    /// Whether a layout can be used here, as far as was looked.
    pub can_be_used: &'a dyn Fn(usize) -> bool,
    /// The file system of a directory.
    pub file_system: &'a dyn Fn(&Path) -> Option<FsFacts>,
    /// The machine's memory, if it tells.
    pub memory: Option<MachineMemory>,
    /// Takes this many threads and files for a moment, see [`try_out`].
    pub try_out: &'a dyn Fn(ProcessNeeds) -> [io::Result<()>; 2],
    /// Where the run's directory will be: an existing directory.
    pub results: &'a Path,
}

/// What a run takes.
pub struct Reckoning {
    /// The databases that are made; `None` when existing servers hold them.
    pub databases: Option<Databases>,
    rooms: Vec<RoomAtPlace>,
    misfits: Vec<String>,
    /// The devices that were looked at for it.
    pub looked_at: LookedAt,
    memory: Option<RunMemory>,
    short_of: Vec<String>,
    time: Time,
    /// How many cases can be measured here, as far as was looked.
    pub cases: usize,
    /// Fewest and most trials of them that the plan allows; its time may allow less.
    pub trials: (u64, u64),
}

impl Reckoning {
    /// Reckons.
    pub fn of(seen: ReckoningInput<'_>) -> Reckoning {
        let experiment = seen.destinations.experiment;
        let databases = Databases::of(seen.destinations, seen.can_be_used);
        let layouts = experiment.candidates();
        let layouts = layouts.filter(|layout| (seen.can_be_used)(*layout)).count();
        let cases = layouts * experiment.workload.loads().len();
        let trials = trials_of(experiment, cases);
        let (rooms, misfits) = Rooms::of(seen, &databases, trials.1);
        let has_databases = !databases.goldens.is_empty();
        let memory = seen.memory.filter(|_| has_databases);
        Reckoning {
            memory: memory.map(|machine| RunMemory::of(machine, experiment, &databases, &rooms)),
            short_of: process::shortages(experiment, seen.try_out),
            time: Time::of(seen, &databases, trials),
            cases,
            trials,
            databases: match experiment.spec() {
                DatabaseSpec::Kernel(_) | DatabaseSpec::Server(_) => Some(databases),
                DatabaseSpec::Remote(_) => None,
            },
            rooms,
            misfits,
            looked_at: seen.destinations.plan.looked_at(),
        }
    }

    /// Rounds that are expected at most, and milliseconds that they take with all else.
    pub fn most(&self) -> (u32, u64) {
        self.time.most(self.cases)
    }

    /// Why it cannot be run here, in words; a line for each reason.
    pub fn refusal(&self) -> Option<String> {
        let is_short = |room: &&RoomAtPlace| room.sure_bytes() > room.free_bytes;
        let mut reasons: Vec<String> = self.rooms.iter().filter(is_short).map(too_little).collect();
        if reasons.is_empty() {
            reasons.extend(self.misfits.iter().cloned());
        }
        if !reasons.is_empty() {
            reasons.push(
                "Free some, choose other places or larger devices, or make the database (database.size, or the workload's scale) or \
                 its log smaller"
                    .to_owned(),
            );
        }
        reasons.extend(self.memory.as_ref().and_then(RunMemory::refusal));
        reasons.extend(self.short_of.iter().cloned());
        (!reasons.is_empty()).then(|| {
            format!(
                "this machine has too little for the experiment, and nothing was made.\n{}",
                reasons.join("\n")
            )
        })
    }

    /// What may go wrong, in words.
    pub fn warnings(&self) -> Vec<String> {
        let is_tight = |room: &&RoomAtPlace| {
            room.sure_bytes() <= room.free_bytes && room.all_bytes() > room.free_bytes
        };
        let tight = self.rooms.iter().filter(is_tight).map(|room| {
            format!(
                "room on {} may run out in trials: {} are free, and with what trials may add {} are taken ({})",
                room.place,
                size_free(room.free_bytes),
                size_needed(room.all_bytes()),
                room.parts()
            )
        });
        let refused = self.memory.as_ref().and_then(RunMemory::refusal);
        let memory = self.memory.as_ref().filter(|_| refused.is_none());
        tight.chain(memory.and_then(RunMemory::warning)).collect()
    }

    /// The sums, a line each.
    pub fn lines(&self) -> Vec<String> {
        let rows: Vec<[String; 4]> = self.rooms.iter().map(row).collect();
        let head = ["Room", "needs", "free", "for"].map(str::to_owned);
        let table: Vec<&[String; 4]> = std::iter::once(&head).chain(&rows).collect();
        let width = |column: usize| {
            let cells = table.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).min(WIDEST)
        };
        let [place, needs, free] = [0, 1, 2].map(width);
        let line = |row: &&[String; 4]| {
            let [of, needed, there, parts] = row;
            format!("{of:place$}  {needed:>needs$}  {there:>free$}  {parts}")
        };
        let mut lines: Vec<String> = table.iter().map(line).collect();
        lines.extend(self.memory.as_ref().map(|memory| format!("{memory}.")));
        if self.cases > 0 {
            lines.push(format!("{}.", self.time));
        }
        lines
    }
}

fn row(room: &RoomAtPlace) -> [String; 4] {
    let (sure, free) = (size_needed(room.sure_bytes()), size_free(room.free_bytes));
    [room.place.clone(), sure, free, room.parts()]
}

fn too_little(room: &RoomAtPlace) -> String {
    format!(
        "Room on {}: {} are needed ({}), and {} are free",
        room.place,
        size_needed(room.sure_bytes()),
        room.parts(),
        size_free(room.free_bytes)
    )
}

impl fmt::Display for Reckoning {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.lines() {
            writeln!(text, "{line}")?;
        }
        for warning in self.warnings() {
            writeln!(text, "Warning: {warning}.")?;
        }
        Ok(())
    }
}

/// The file system of a directory, or of the nearest existing one above it; `None` for one that holds no files of ours,
/// such as `/proc`. What is wrong with that is said when it is tried.
pub fn file_system_of(directory: &Path) -> Option<FsFacts> {
    let there = std::path::absolute(directory).ok()?;
    let holds_files = |path: &Path| rustix::fs::statvfs(path).is_ok_and(|found| found.f_blocks > 0);
    let mut above = there.ancestors();
    let (path, found) = above.find_map(|path| Some((path, facts::file_system(path).ok()?)))?;
    holds_files(path).then_some(found)
}
