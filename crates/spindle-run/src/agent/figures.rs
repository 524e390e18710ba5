//! What an agent saw, put into the figures and the series that a trial on this machine has. A look belongs to the
//! moment at which it was made by this machine's clock. Of a moment the nearest look is taken; what lies between two
//! looks is divided by the time between them, so that rates are true though looks come a little early or late.

use spindle_result::{CpuMicroseconds, IoCounts, SystemSeries};
use spindle_system::sampler::Sample;

use super::connection::Watched;
use super::protocol::AgentLook;
use crate::observe::series::{SeriesBuilder, SeriesLook};
use crate::trial::counter_snapshot::{
    cpu_per_transaction, cpu_shares, device_counts, fetched_bytes,
};
use crate::trial::outside::ServerMachine;
use crate::trial::protocol::{Span, TrialOutcome};

/// Samples that are this many intervals away from a moment say nothing about it.
const INTERVALS_MAX: u64 = 4;

/// What the machine of a server did in the measured time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    machine: ServerMachine,
    steal_percent: f64,
    /// Over time.
    pub system: SystemSeries,
}

/// Looks with their moments on this machine's clock.
struct Looks<'a> {
    looks: Vec<(u64, &'a AgentLook)>,
    /// Times are accurate to within this.
    tolerance_ns: u64,
}

impl<'a> Looks<'a> {
    fn of(watched: &'a Watched) -> Looks<'a> {
        let seen = watched.seen.iter();
        Looks {
            looks: seen
                .map(|seen| (watched.line.here_ns(seen.at_ns), seen))
                .collect(),
            tolerance_ns: INTERVALS_MAX * watched.interval_ms * 1_000_000,
        }
    }

    /// The look that is nearest to a moment, if it is near.
    fn near(&self, moment_ns: u64) -> Option<(u64, &'a AgentLook)> {
        let after = self.looks.partition_point(|(at_ns, _)| *at_ns < moment_ns);
        let around = [after.checked_sub(1), Some(after)].into_iter().flatten();
        let around = around.filter_map(|number| self.looks.get(number));
        let nearest = around.min_by_key(|(at_ns, _)| at_ns.abs_diff(moment_ns))?;
        (nearest.0.abs_diff(moment_ns) <= self.tolerance_ns).then_some(*nearest)
    }
}

/// The figures of a measured time in which `transactions` were done, with a series of steps.
pub fn figures(watched: &Watched, span: Span, transactions: u64, step_ms: u64) -> Figures {
    let looks = Looks::of(watched);
    let system = series(&looks, span, step_ms);
    let (Some((from_ns, first)), Some((to_ns, last))) =
        (looks.near(span.begin_ns), looks.near(span.end_ns))
    else {
        return Figures {
            system,
            ..Figures::default()
        };
    };
    if to_ns <= from_ns {
        return Figures {
            system,
            ..Figures::default()
        };
    }
    let share = (span.end_ns - span.begin_ns) as f64 / (to_ns - from_ns) as f64;
    let scaled = |count: u64| (count as f64 * share).round() as u64;
    let (begin, end): (&Sample, &Sample) = (&first.system, &last.system);
    let (cpu, steal_percent) = cpu_shares(begin, end);
    let machine = ServerMachine {
        cpu,
        cpu_us_per_transaction: cpu_per_transaction(begin, end, transactions).map(|us| {
            CpuMicroseconds {
                user: us.user * share,
                system: us.system * share,
            }
        }),
        device: device_counts(begin, end).map(|did| IoCounts {
            reads: scaled(did.reads),
            writes: scaled(did.writes),
            read_bytes: scaled(did.read_bytes),
            write_bytes: scaled(did.write_bytes),
        }),
        fetched_bytes: fetched_bytes(begin, end).map(scaled),
    };
    Figures {
        machine,
        steal_percent,
        system,
    }
}

/// The columns of the looks nearest to the steps of the measured time.
fn series(looks: &Looks<'_>, span: Span, step_ms: u64) -> SystemSeries {
    let look = |moment_ns: u64| {
        let (at_ns, seen) = looks.near(moment_ns)?;
        let mut system = seen.system.clone();
        system.elapsed_us = at_ns / 1_000;
        Some(SeriesLook {
            system,
            database: None,
            writers_waiting: None,
            own_cpu_ns: seen.own_cpu_ns,
        })
    };
    let Some(first) = look(span.begin_ns) else {
        return SystemSeries::default();
    };
    let step_ns = step_ms.max(1) * 1_000_000;
    let mut builder = SeriesBuilder::new(first);
    let steps = (span.end_ns - span.begin_ns + step_ns / 10) / step_ns;
    for step in 1..=steps {
        match look(span.begin_ns + step * step_ns) {
            Some(look) => builder.add(look),
            None => builder.add_unknown(),
        }
    }
    builder.finish(step_ms)
}

impl Figures {
    /// Adds them to what a trial on an existing server found.
    pub fn add_to(self, outcome: TrialOutcome) -> TrialOutcome {
        TrialOutcome {
            figures: self.machine.added_to(outcome.figures),
            steal_percent: outcome.steal_percent.max(self.steal_percent),
            system: self.system,
            ..outcome
        }
    }
}

#[cfg(test)]
mod tests {
    use spindle_system::DeviceNumber;
    use spindle_system::cpu::{CpuTimes, ProcessCpu};
    use spindle_system::disk::DiskCounters;
    use spindle_system::sampler::{DiskSample, MemoryState};

    use super::*;
    use crate::far::clock::{ClockLine, ClockReading};

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MS;
    /// The other machine was started later.
    const AHEAD_NS: i64 = -500 * SECOND as i64;
    const SPAN: Span = Span {
        begin_ns: 1_000 * SECOND,
        end_ns: 1_010 * SECOND,
    };

    /// A machine of which a hundredth of a device's reads and of a processor's time are done in each hundredth of a
    /// second.
    fn seen(here_ns: u64) -> AgentLook {
        let done = (here_ns - 990 * SECOND) / (10 * MS);
        AgentLook {
            at_ns: here_ns.wrapping_add_signed(AHEAD_NS),
            own_cpu_ns: done * 1_000,
            system: Sample {
                // By a clock that counts from another moment.
                elapsed_us: 7,
                cpu: Some(CpuTimes {
                    user_us: done * 5_000,
                    idle_us: done * 15_000,
                    ..CpuTimes::default()
                }),
                process_cpu: Some(ProcessCpu {
                    user_us: done * 4_000,
                    system_us: done * 1_000,
                }),
                process_io: None,
                disks: vec![DiskSample {
                    device: DeviceNumber { major: 8, minor: 0 },
                    counters: Some(DiskCounters {
                        reads: done,
                        read_bytes: done * 8_192,
                        ..DiskCounters::default()
                    }),
                }],
                memory: Some(MemoryState {
                    cached_bytes: 3 << 20,
                    ..MemoryState::default()
                }),
                scheduler: None,
                cpu_throttled_us: None,
                cpu_pressure: None,
                memory_pressure: None,
                io_pressure: None,
            },
        }
    }

    fn watched(looks: impl Iterator<Item = u64>) -> Watched {
        let reading = ClockReading {
            there_ns: (995 * SECOND).wrapping_add_signed(AHEAD_NS),
            ahead_ns: AHEAD_NS,
            uncertainty_ns: 50_000,
        };
        Watched {
            line: ClockLine {
                first: reading,
                last: reading,
            },
            seen: looks.map(seen).collect(),
            interval_ms: 250,
            gone: None,
        }
    }

    /// Every quarter of a second and a little off.
    fn looks(until_s: u64) -> impl Iterator<Item = u64> {
        (0..)
            .map(|number| 995 * SECOND + 130 * MS + number * 250 * MS)
            .take_while(move |at_ns| *at_ns < until_s * SECOND)
    }

    #[test]
    fn looks_that_come_early_or_late_give_the_true_rates() {
        let figures = figures(&watched(looks(1_015)), SPAN, 1_000, 1_000);
        let machine = figures.machine;
        let device = machine.device.expect("it was seen");
        assert_eq!((device.reads, device.read_bytes), (1_000, 1_000 * 8_192));
        let cpu = machine.cpu.expect("they were seen");
        assert_eq!((cpu.user, cpu.idle), (25.0, 75.0));
        let each = machine.cpu_us_per_transaction.expect("there were some");
        assert_eq!((each.user, each.system), (4_000.0, 1_000.0));
        assert_eq!(machine.fetched_bytes, None);
        let of = |name: &str| figures.system.column(&name.into()).map(<[_]>::to_vec);
        assert_eq!(of("device_reads_per_s"), Some(vec![Some(100.0); 10]));
        assert_eq!(of("page_cache_mib"), Some(vec![Some(3.0); 10]));
        // What an agent cannot know is no column, and not 0.
        for unknown in ["checkpoints", "dirty_buffers_mib", "fetched_mib_per_s"] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_clock_taken_for_this_machines_gives_nothing() {
        let mut wrong = watched(looks(1_015));
        wrong.line.first.ahead_ns = 0;
        wrong.line.last.ahead_ns = 0;
        assert_eq!(figures(&wrong, SPAN, 1_000, 1_000), Figures::default());
    }

    #[test]
    fn after_an_agent_is_gone_nothing_is_known() {
        let figures = figures(&watched(looks(1_004)), SPAN, 1_000, 1_000);
        assert_eq!(figures.machine, ServerMachine::default());
        let reads = figures.system.column(&"device_reads_per_s".into()).unwrap();
        assert_eq!(reads[..4], [Some(100.0); 4]);
        assert_eq!(reads[5..], [None; 5]);
        let cached = figures.system.column(&"page_cache_mib".into()).unwrap();
        assert_eq!(cached[5..], [None; 5]);
        assert_eq!(
            super::figures(&watched([].into_iter()), SPAN, 1, 1_000),
            Figures::default()
        );
    }
}
