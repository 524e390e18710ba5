//! Which load machine falls behind: its clients or its processors are the limit, it does much less than its clients
//! should, it begins or ends late, or its clock is not to be relied on. One that does so makes the load another one
//! than was asked for; so it is named.

use super::counts::LoadCounts;
use crate::far::clock::ClockLine;

/// Share of a transaction's time that clients are on a processor or wait for one, from which they are the limit.
const PROCESSORS_MIN: f64 = 0.5;
/// Share of the time that the processors of a machine were idle, below which they are the limit.
const IDLE_MIN: f64 = 0.05;
/// A machine that does less than this part of what its clients should is named, if they should do at least this many
/// transactions.
const DONE_MIN: f64 = 0.75;
const TRANSACTIONS_MIN: f64 = 200.0;
/// Later than this part of the measured time, and than this many seconds, is late.
const LATE_SHARE: f64 = 0.02;
const LATE_MIN_S: f64 = 0.05;
/// A clock that is not known to within this part of the measured time and this many seconds is named, as is one that
/// gained as much in a trial.
const CLOCK_SHARE: f64 = 0.01;
const CLOCK_MIN_S: f64 = 0.02;

/// What was seen of a load machine.
#[derive(Debug, Clone)]
pub struct LoadMachineLook {
    /// Which.
    pub name: String,
    /// Its clients.
    pub clients: u32,
    /// Their counts when measuring began and when it ended, with moments of this machine's clock.
    pub counts: [LoadCounts; 2],
    /// When measuring was to begin and to end.
    pub due_ns: [u64; 2],
    /// Its clock, from when it was come to until its clients had ended.
    pub clock: ClockLine,
}

/// What is to be said of those that fall behind; nothing where none does.
pub fn behind(machines: &[LoadMachineLook]) -> Vec<String> {
    let done: u64 = machines.iter().map(LoadMachineLook::done).sum();
    let clients: u32 = machines.iter().map(|machine| machine.clients).sum();
    let each = done as f64 / f64::from(clients.max(1));
    machines
        .iter()
        .flat_map(|machine| {
            let found = [
                machine.processors(),
                machine.throughput(each * f64::from(machine.clients)),
                machine.lateness(),
                machine.clock(),
            ];
            let name = &machine.name;
            found
                .into_iter()
                .flatten()
                .map(move |what| format!("load machine {name}: {what}"))
        })
        .collect()
}

impl LoadMachineLook {
    fn done(&self) -> u64 {
        let [begin, end] = &self.counts;
        end.committed().saturating_sub(begin.committed())
    }

    fn measured_s(&self) -> f64 {
        let [begin, end] = self.due_ns;
        end.saturating_sub(begin) as f64 / 1e9
    }

    fn processors(&self) -> Option<String> {
        let [begin, end] = &self.counts;
        let in_transactions_ns = end.spent.since(&begin.spent).in_transactions();
        let threads = end.threads.zip(begin.threads);
        let used = threads.map(|(end, begin)| end.since(&begin));
        let share = |ns: u64| (ns as f64 / in_transactions_ns.max(1) as f64).min(1.0);
        let (running, waiting) = used.map_or((0.0, 0.0), |used| {
            (share(used.running_ns), share(used.run_queue_ns))
        });
        if running + waiting >= PROCESSORS_MIN {
            return Some(format!(
                "its clients wait for a processor for {:.0} % of a transaction's time, and are on one for {:.0} %: they \
                 are the limit, not the database",
                100.0 * waiting,
                100.0 * running
            ));
        }
        let shares = end.cpu.zip(begin.cpu);
        let shares = shares.and_then(|(end, begin)| end.since(&begin).shares())?;
        let idle = (shares.idle_percent + shares.iowait_percent) / 100.0;
        (idle < IDLE_MIN).then(|| {
            format!(
                "its processors are busy for {:.0} % of the time: they are at their limit",
                100.0 * (1.0 - idle)
            )
        })
    }

    fn throughput(&self, expected: f64) -> Option<String> {
        let done = self.done() as f64;
        (expected >= TRANSACTIONS_MIN && done < DONE_MIN * expected).then(|| {
            format!(
                "its clients did {done:.0} transactions, {:.0} % of the average for that many clients",
                100.0 * done / expected
            )
        })
    }

    fn lateness(&self) -> Option<String> {
        let late_s = |at: usize| {
            let late_ns = self.counts[at].at_ns.saturating_sub(self.due_ns[at]);
            late_ns as f64 / 1e9
        };
        let (begin_s, end_s) = (late_s(0), late_s(1));
        let allowed_s = (LATE_SHARE * self.measured_s()).max(LATE_MIN_S);
        (begin_s.max(end_s) > allowed_s).then(|| {
            format!(
                "it began to measure {:.0} ms late, and ended {:.0} ms late",
                1e3 * begin_s,
                1e3 * end_s
            )
        })
    }

    fn clock(&self) -> Option<String> {
        let allowed_s = (CLOCK_SHARE * self.measured_s()).max(CLOCK_MIN_S);
        let uncertain_s = self.clock.uncertainty_ns() as f64 / 1e9;
        if uncertain_s > allowed_s {
            return Some(format!(
                "its clock is known to within {:.0} ms only: what it did may be that much too early or too late",
                1e3 * uncertain_s
            ));
        }
        let gained_s = self.clock.drift_ns() as f64 / 1e9;
        (gained_s.abs() > allowed_s).then(|| {
            format!(
                "its clock is off: in this trial it {} {:.0} ms against this machine's",
                match gained_s > 0.0 {
                    true => "gained",
                    false => "lost",
                },
                1e3 * gained_s.abs()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use spindle_system::cpu::CpuTimes;
    use spindle_system::threads::ThreadTimes;
    use spindle_workload::driver::TimeSpent;

    use super::*;
    use crate::far::clock::ClockReading;

    const SECOND: u64 = 1_000_000_000;

    fn counts(at_ns: u64, committed: u64) -> LoadCounts {
        LoadCounts {
            at_ns,
            committed_by_client: vec![committed],
            spent: TimeSpent {
                in_transactions_ns: vec![committed * 1_000_000],
                ..TimeSpent::default()
            },
            retries: 0,
            deadlocks: 0,
            errors: 0,
            reconnects: 0,
            first_error: None,
            statements: Vec::new(),
            threads: Some(ThreadTimes {
                running_ns: committed * 100_000,
                run_queue_ns: committed * 100_000,
                ..ThreadTimes::default()
            }),
            cpu: Some(CpuTimes {
                user_us: committed * 10,
                idle_us: committed * 10,
                ..CpuTimes::default()
            }),
        }
    }

    /// A machine that did so many transactions in ten seconds.
    fn machine(name: &str, done: u64) -> LoadMachineLook {
        let reading = ClockReading {
            there_ns: 0,
            ahead_ns: 77 * SECOND as i64,
            uncertainty_ns: 100_000,
        };
        LoadMachineLook {
            name: name.to_owned(),
            clients: 1,
            counts: [
                counts(100 * SECOND, 1_000),
                counts(110 * SECOND, 1_000 + done),
            ],
            due_ns: [100 * SECOND, 110 * SECOND],
            clock: ClockLine {
                first: reading,
                last: reading,
            },
        }
    }

    /// What is said of two machines of which the second is changed.
    fn said(change: impl FnOnce(&mut LoadMachineLook)) -> String {
        let mut other = machine("ssh://b", 10_000);
        change(&mut other);
        let said = behind(&[machine("ssh://a", 10_000), other]);
        assert!(said.len() <= 1, "{said:?}");
        said.join("")
    }

    #[test]
    fn machines_that_do_their_part_are_not_named() {
        assert_eq!(said(|_| {}), "");
        // A clock that is ahead is no clock that is off.
        assert_eq!(
            said(|it| it.clock.first.ahead_ns = 77 * SECOND as i64 + 1_000_000),
            ""
        );
        assert_eq!(said(|it| it.counts[0].at_ns += 20_000_000), "");
        assert_eq!(behind(&[]), Vec::<String>::new());
        // Too few to tell.
        assert_eq!(
            behind(&[machine("a", 100), machine("b", 10)]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn each_way_to_fall_behind_is_named() {
        let starved = said(|it| it.counts[1].threads.as_mut().unwrap().run_queue_ns += 5 * SECOND);
        assert!(
            starved.starts_with("load machine ssh://b: its clients wait for a processor for 60 %")
        );
        let busy = said(|it| it.counts[1].cpu.as_mut().unwrap().user_us += 20_000_000);
        assert!(busy.contains("its processors are busy for 100 %"), "{busy}");
        let slow = said(|it| *it = machine("ssh://b", 5_000));
        assert!(
            slow.contains("did 5000 transactions, 67 % of the average"),
            "{slow}"
        );
        let late = said(|it| it.counts[0].at_ns += SECOND / 2);
        assert!(late.contains("began to measure 500 ms late"), "{late}");
        let ended = said(|it| it.counts[1].at_ns += SECOND);
        assert!(ended.contains("ended 1000 ms late"), "{ended}");
        let unknown = said(|it| it.clock.last.uncertainty_ns = SECOND / 4);
        assert!(unknown.contains("known to within 250 ms only"), "{unknown}");
        let off = said(|it| it.clock.last.ahead_ns -= SECOND as i64);
        assert!(
            off.contains("its clock is off: in this trial it lost 1000 ms"),
            "{off}"
        );
    }
}
