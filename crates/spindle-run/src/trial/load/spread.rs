//! The clients of a trial on several load machines, as one load. They begin together, at a moment given to each on its
//! own clock. They are watched over the same stretches of time, and their figures are added up.

use std::time::Duration;

use spindle_engines::EngineError;
use spindle_engines::sql::Schema;
use spindle_experiment::{LoadMachine, deal};
use spindle_io::real::facts::monotonic_ns;
use spindle_workload::driver::ClientPart;

use super::super::protocol::{Task, TrialDatabase};
use super::behind::{LoadMachineLook, behind};
use super::counts::{LoadCounts, LoadRecord};
use super::machine::MachineAtWork;
use super::words::{LoadSaid, LoadWord, Orders, Stretch, Tick};

/// What is to begin together begins this long after it was told, and longer where the way is longer.
const LEAD: Duration = Duration::from_millis(100);

/// Clients on load machines.
pub struct SpreadLoad {
    machines: Vec<MachineAtWork>,
    /// Time from the last word to what it waits for.
    after: Duration,
    first_error: Option<String>,
    record: LoadRecord,
    warnings: Vec<String>,
}

impl SpreadLoad {
    /// Comes to all machines at once, and has their clients connect.
    ///
    /// # Errors
    /// One cannot be come to, or its clients cannot connect.
    pub fn open(task: &Task, schema: &Schema) -> Result<SpreadLoad, EngineError> {
        let schema = schema.clone().with_password()?;
        let parts = parts(&task.load, task.clients);
        let opened = std::thread::scope(|scope| {
            let opening: Vec<_> = task
                .load
                .iter()
                .zip(&parts)
                .map(|(machine, &(clients, part))| {
                    let orders = orders(task, &schema, clients, part);
                    scope.spawn(move || open(machine, orders))
                })
                .collect();
            let opened = opening.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            opened.collect::<Result<Vec<_>, _>>()
        });
        Ok(SpreadLoad {
            machines: opened?,
            after: Duration::ZERO,
            first_error: None,
            record: LoadRecord::default(),
            warnings: Vec::new(),
        })
    }

    /// Begins on all machines at once.
    ///
    /// # Errors
    /// One is gone, or its clients cannot continue; so for the others.
    pub fn begin(&mut self) -> Result<(), EngineError> {
        let at_ns = self.soon_ns();
        for machine in &mut self.machines {
            let at_ns = machine.there_ns(at_ns);
            machine.tell(LoadWord::Begin { at_ns })?;
        }
        let begun = &LoadSaid::Begun;
        self.machines
            .iter_mut()
            .try_for_each(|machine| machine.hear_that(begun))
    }

    /// Has all of them watched for a stretch of time from a moment on, which it returns.
    pub fn arrange(
        &mut self,
        length_ms: u64,
        step_ms: u64,
        measured: bool,
    ) -> Result<u64, EngineError> {
        let from_ns = self.soon_ns();
        let stretch = Stretch {
            from_ns,
            length_ns: length_ms * 1_000_000,
            step_ns: step_ms * 1_000_000,
            measured,
        };
        self.after = LEAD + Duration::from_millis(step_ms);
        for machine in &mut self.machines {
            if measured {
                machine.due_ns = [from_ns, from_ns + stretch.length_ns];
            }
            let from_ns = machine.there_ns(from_ns);
            machine.tell(LoadWord::Watch(Stretch { from_ns, ..stretch }))?;
        }
        Ok(from_ns)
    }

    /// How many ticks come after the first of such a stretch.
    pub fn ticks(length_ms: u64, step_ms: u64) -> u64 {
        length_ms.div_ceil(step_ms.max(1))
    }

    /// The next tick of all.
    pub fn tick(&mut self) -> Result<Tick, EngineError> {
        let after = self.after;
        let mut all: Option<(Tick, u64)> = None;
        for machine in &mut self.machines {
            let tick = machine.tick(after)?;
            let clients = u64::from(machine.clients);
            all = Some(match all {
                None => (tick, clients),
                Some((sum, before)) => (together((sum, before), (tick, clients)), before + clients),
            });
        }
        Ok(all.expect("there are machines").0)
    }

    /// The next counts of all.
    pub fn counts(&mut self) -> Result<LoadCounts, EngineError> {
        let after = self.after;
        let counts = self.machines.iter_mut();
        let counts = counts.map(|machine| machine.take_counts(after));
        let counts: Vec<LoadCounts> = counts.collect::<Result<_, _>>()?;
        let all = counts.into_iter().reduce(LoadCounts::and);
        let all = all.expect("there are machines");
        self.first_error.clone_from(&all.first_error);
        Ok(all)
    }

    /// What the first transaction that failed for good was told, as of the last counts.
    pub fn first_error(&self) -> Option<String> {
        self.first_error.clone()
    }

    /// Lets every client end its transaction; when it returns, all have.
    pub fn stop(&mut self) -> Result<(), EngineError> {
        for machine in &mut self.machines {
            machine.tell(LoadWord::Stop)?;
        }
        let mut record = LoadRecord::default();
        let mut seen = Vec::new();
        for machine in &mut self.machines {
            record = record.and(machine.take_record()?);
            let clock = machine.clock()?;
            let counts = <[LoadCounts; 2]>::try_from(std::mem::take(&mut machine.counts)).ok();
            seen.extend(counts.map(|counts| LoadMachineLook {
                name: machine.way().to_string(),
                clients: machine.clients,
                counts,
                due_ns: machine.due_ns,
                clock,
            }));
        }
        self.record = record;
        self.warnings = behind(&seen);
        Ok(())
    }

    /// What became of all transactions; nothing before it was stopped.
    pub fn record(&self) -> &LoadRecord {
        &self.record
    }

    /// Which machines fell behind, in words.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// A moment that is far enough ahead for every machine to hear of it before.
    fn soon_ns(&self) -> u64 {
        let ways = self.machines.iter();
        let longest_ns = ways.map(|machine| machine.first.uncertainty_ns).max();
        monotonic_ns() + LEAD.as_nanos() as u64 + 4 * longest_ns.unwrap_or(0)
    }
}

/// How many clients run on each machine, and which.
fn parts(machines: &[LoadMachine], clients: u32) -> Vec<(u32, ClientPart)> {
    let mut first = 0;
    let of = |count: u32| {
        let part = ClientPart {
            first,
            all: clients as usize,
        };
        first += count as usize;
        (count, part)
    };
    deal(clients, machines).into_iter().map(of).collect()
}

/// What one machine is to do of a trial. A rate is dealt out as the clients are.
fn orders(task: &Task, schema: &Schema, clients: u32, part: ClientPart) -> Orders {
    let mut own = Task {
        clients,
        database: TrialDatabase::Remote(Box::new(schema.clone())),
        load: Vec::new(),
        ..task.clone()
    };
    if let Some(arrivals) = &mut own.workload.arrivals {
        arrivals.rate_per_s *= f64::from(clients) / f64::from(task.clients.max(1));
    }
    Orders { task: own, part }
}

fn open(machine: &LoadMachine, orders: Orders) -> Result<MachineAtWork, EngineError> {
    let (clients, part) = (orders.task.clients, orders.part);
    let mut opened = MachineAtWork::open(&machine.way, clients, part)?;
    opened.tell(LoadWord::Open(Box::new(orders)))?;
    opened.hear_that(&LoadSaid::Opened)?;
    Ok(opened)
}

/// Two ticks as one. Each stands for its moment as much as it has clients.
fn together((one, clients): (Tick, u64), (other, others): (Tick, u64)) -> Tick {
    let ahead_ns = i128::from(other.at_ns) - i128::from(one.at_ns);
    let mean_ns = ahead_ns * i128::from(others) / i128::from((clients + others).max(1));
    Tick {
        at_ns: (i128::from(one.at_ns) + mean_ns) as u64,
        committed: one.committed + other.committed,
        backlog: one.backlog + other.backlog,
    }
}

#[cfg(test)]
mod tests {
    use spindle_engines::sql::MachineAccess;

    use super::*;

    #[test]
    fn every_client_is_on_one_machine() {
        let machine = |weight| LoadMachine {
            way: MachineAccess::Here,
            weight,
        };
        let parts = parts(&[machine(1), machine(2), machine(1)], 9);
        let mut clients = Vec::new();
        for (count, part) in parts {
            assert_eq!(part.all, 9);
            clients.extend(part.first..part.first + count as usize);
        }
        assert_eq!(clients, (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn ticks_are_added_up_and_stand_for_the_mean_of_their_moments() {
        let tick = |at_ns, committed, backlog| Tick {
            at_ns,
            committed,
            backlog,
        };
        let both = together((tick(1_000, 10, 1), 3), (tick(1_400, 20, 2), 1));
        assert_eq!(both, tick(1_100, 30, 3));
        assert_eq!(
            together((tick(1_400, 20, 2), 1), (tick(1_000, 10, 1), 3)),
            both
        );
        assert_eq!(SpreadLoad::ticks(25, 10), 3);
    }
}
