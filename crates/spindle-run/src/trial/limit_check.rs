//! What devices that are held to a limit did in a trial: whether the limit held, and how much of it was used.

use std::time::Duration;

use spindle_engines::{EngineError, ErrorKind};
use spindle_result::{LimitedIo, UsedLimit};
use spindle_system::SystemTree;
use spindle_system::disk::DiskCounters;
use spindle_system::io_limit::{self, Rates};

use super::counter_snapshot::{CounterSnapshot, done_on};
use super::protocol::Limited;

/// What this process was charged with so far on each disk of the limits.
pub(super) fn charged(limited: &[Limited]) -> Vec<Option<DiskCounters>> {
    let files = SystemTree::default();
    let disks = limited.iter().map(|limited| limited.disk);
    disks
        .map(|disk| io_limit::charged_to_self(&files, disk))
        .collect()
}

/// A trial whose devices did more than the limit allows does not count for its layout.
pub(super) fn check(
    limited: &[Limited],
    begin: &CounterSnapshot,
    end: &CounterSnapshot,
) -> Result<(), EngineError> {
    for (limited, done) in done(limited, begin, end) {
        let device = limited.device;
        let Some(done) = done else {
            return Err(EngineError::other(format!(
                "what device {device} did is unknown, so it is also unknown whether its limit held"
            )));
        };
        if let Some(exceeded) = limited.rates.exceeded(&done, time(begin, end)) {
            return Err(EngineError::new(
                ErrorKind::Disturbed,
                format!(
                    "the limit was not held: device {device} did {exceeded}. Either another \
                     process wrote for it (the kernel flusher, a file system journal), or another program used the device"
                ),
            ));
        }
    }
    Ok(())
}

/// Of all limits, the one of which most was used.
pub(super) fn nearest(
    limited: &[Limited],
    begin: &CounterSnapshot,
    end: &CounterSnapshot,
) -> Option<UsedLimit> {
    let time = time(begin, end);
    let used = done(limited, begin, end)
        .filter_map(|(limited, done)| Some(used(limited.rates, done?, time)));
    used.flatten()
        .max_by(|one, other| one.share().total_cmp(&other.share()))
}

/// How much of each limited rate was used.
fn used(rates: Rates, done: DiskCounters, time: Duration) -> impl Iterator<Item = UsedLimit> {
    let counted = [
        (LimitedIo::Reads, rates.read_iops, done.reads),
        (LimitedIo::Writes, rates.write_iops, done.writes),
        (LimitedIo::BytesRead, rates.read_bps, done.read_bytes),
        (LimitedIo::BytesWritten, rates.write_bps, done.written_bytes),
    ];
    counted.into_iter().filter_map(move |(of, allowed, count)| {
        Some(UsedLimit {
            of,
            done_per_s: count as f64 / time.as_secs_f64(),
            allowed_per_s: allowed?,
        })
    })
}

fn time(begin: &CounterSnapshot, end: &CounterSnapshot) -> Duration {
    Duration::from_nanos(end.at_ns - begin.at_ns)
}

/// What each limited device did; `None` where that is not known.
fn done<'a>(
    limited: &'a [Limited],
    begin: &'a CounterSnapshot,
    end: &'a CounterSnapshot,
) -> impl Iterator<Item = (&'a Limited, Option<DiskCounters>)> {
    let charged = begin.charged.iter().zip(&end.charged);
    limited
        .iter()
        .zip(charged)
        .map(|(limited, (before, after))| {
            let charged = (*after).zip(*before).map(|(now, then)| now.since(&then));
            let done = done_on(limited.device, begin, end);
            (
                limited,
                done.map(|done| io_limit::held_to_account(done, charged)),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_of_a_limit_is_known_for_each_rate() {
        let rates = Rates {
            write_iops: Some(60),
            read_bps: Some(1 << 20),
            ..Rates::default()
        };
        let done = DiskCounters {
            reads: 900,
            writes: 100,
            read_bytes: 1 << 20,
            written_bytes: 1 << 30,
            ..DiskCounters::default()
        };
        let used: Vec<_> = used(rates, done, Duration::from_secs(2)).collect();
        let told: Vec<_> = used.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["50 of 60 writes/s", "512 KiB/s of 1 MiB/s read"]);
        assert!(used[0].share() > used[1].share());
    }
}
