//! Is there a cache in the path of reads? Three witnesses: the devices' own counters beside what was asked for, blocks
//! read twice, and what lies in the page cache afterwards. None of them is always available, and what is not known is
//! said to be unknown.

use std::time::Instant;

use rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_io::real::{Caching, Queue, outcome_of};
use spindle_io::{Arena, BlockDevice, Request, Submission};
use spindle_stats::median;
use spindle_system::SystemTree;

use crate::coverage::Coverage;
use crate::error::CalibrateError;
use crate::figures::{Cached, DeviceShare, TargetKind};
use crate::point::Bench;
use crate::result::CacheFinding;
use crate::target::{ReadyTarget, Written};
use crate::unit::Unit;

/// Blocks that are read twice.
const BLOCKS: usize = 200;
/// Lengths of turns: unequal, so that they do not keep step with the slices of time in which a throttle grants reads.
const TURNS: [usize; 8] = [7, 23, 13, 31, 5, 17, 29, 11];
const BLOCK_BYTES: u64 = 8 << 10;
/// Devices that read less than this part of what was asked for: memory answered the rest.
const DEVICE_SHARE_MIN: f64 = 0.9;
/// Devices that read more than this: others read, too.
const OTHERS_SHARE: f64 = 1.1;
/// Blocks that are read again this many times faster are cached somewhere.
const REPEAT_RATIO_MIN: f64 = 2.0;
/// Requests for each block from which on a cache that holds all of it would have answered most of them.
const OFTEN: f64 = 2.0;
/// With this share in the page cache, and no other witness, reads are taken for cached.
const RESIDENT_SHARE_MIN: f64 = 0.5;
/// Of a device with fewer zeros, all over it and at its beginning, the figures are too good by a tenth at most.
const ZERO_SHARE_MIN: f64 = 0.1;
/// As many blocks as all over a device are looked at in this part at its beginning.
const BEGINNING_PART: u64 = 16;

/// What came of reading blocks twice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadTwice {
    /// Median time of the first over that of the second.
    pub(crate) ratio: f64,
    /// Share of the blocks that hold only zeros, 0 to 1; `None` where all were written as far as is known.
    pub(crate) zero_share: Option<f64>,
}

/// Reads some blocks, and the same again.
///
/// # Errors
/// A device cannot be opened, or a read failed.
pub(crate) fn read_twice(bench: &Bench<'_>) -> Result<ReadTwice, CalibrateError> {
    let devices = bench
        .targets
        .iter()
        .map(|target| target.to_read(bench.caching, Queue::sync()));
    let devices = devices.collect::<Result<_, CalibrateError>>()?;
    let unit = Unit::new(devices, bench.shape.clone());
    let places = unit.limits().capacity_bytes / BLOCK_BYTES;
    let mut rng = seeded_rng(u64::from(std::process::id()), 0xcac4e);
    let blocks: Vec<u64> = (0..BLOCKS)
        .map(|_| rng.next_u64() % places * BLOCK_BYTES)
        .collect();
    let (mut first_ns, mut again_ns, mut zeros) = (Vec::new(), Vec::new(), 0);
    // In turns, so that a load that comes and goes meets both alike.
    let mut left = blocks.as_slice();
    for length in TURNS.into_iter().cycle() {
        let (some, rest) = left.split_at(length.min(left.len()));
        if some.is_empty() {
            break;
        }
        zeros += read(&unit, some, &mut first_ns)?;
        read(&unit, some, &mut again_ns)?;
        left = rest;
    }
    let middle =
        |times_ns: Vec<u64>| median(times_ns.into_iter().map(|ns| ns as f64)).unwrap_or(1.0);
    // Large requests begin at the beginning.
    let first_places = (places / BEGINNING_PART).max(1);
    let beginning: Vec<u64> = (0..BLOCKS)
        .map(|_| rng.next_u64() % first_places * BLOCK_BYTES)
        .collect();
    let zeros = zeros.max(read(&unit, &beginning, &mut Vec::new())?);
    let tree = SystemTree::default();
    let is_told = |made: &ReadyTarget| is_written(made, &tree);
    Ok(ReadTwice {
        ratio: middle(first_ns) / middle(again_ns).max(1.0),
        zero_share: (!bench.targets.iter().all(is_told)).then_some(zeros as f64 / BLOCKS as f64),
    })
}

/// Whether all of a target is known to have been written: a file system tells of files, and devices may be filled.
fn is_written(made: &ReadyTarget, tree: &SystemTree) -> bool {
    let target = made.target();
    target.kind() != TargetKind::Device
        || made.is_writable()
        || target.written(tree) == Written::Whole
}

/// Reads blocks one by one and adds the time that each took. Returns how many hold only zeros.
fn read(unit: &Unit, blocks: &[u64], times_ns: &mut Vec<u64>) -> Result<usize, CalibrateError> {
    let arena = Arena::new(BLOCK_BYTES as usize, 1)?;
    let mut zeros = 0;
    for offset in blocks {
        let frame = arena.allocate().expect("the frame came back");
        let hold = frame.try_write_hold().expect("the frame is nobody else's");
        drop(frame);
        let began = Instant::now();
        let read = unit.submit(Request::read(*offset, vec![hold], Submission::Alone));
        let outcome = outcome_of(read);
        times_ns.push(began.elapsed().as_nanos() as u64);
        outcome.result.map_err(CalibrateError::Request)?;
        // The buffer goes with the operation, and the frame comes back.
        drop(outcome.operation);
        let frame = arena.allocate().expect("the frame came back");
        let read = frame.try_read().expect("the read is over");
        zeros += usize::from(read.iter().all(|byte| *byte == 0));
    }
    Ok(zeros)
}

impl CacheFinding {
    /// Nothing was read.
    pub(crate) fn without_reads() -> CacheFinding {
        CacheFinding {
            cached: Cached::Unknown,
            because: "no reads were measured".to_owned(),
            device: None,
            repeat_ratio: None,
            zero_share: None,
            resident_share: None,
            coverage: None,
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// What the witnesses say together.
pub(crate) fn judge(
    device: Option<DeviceShare>,
    read_twice: ReadTwice,
    resident_share: Option<f64>,
    (caching, coverage): (Caching, Option<Coverage>),
) -> CacheFinding {
    let (cached, because) =
        zeros(read_twice).unwrap_or_else(|| weigh(device, read_twice.ratio, resident_share));
    let spread = match cached {
        Cached::NotSeen => coverage.map_or_else(String::new, spread),
        Cached::Yes | Cached::Zeros | Cached::Unknown => String::new(),
    };
    let is_asked_for = cached == Cached::Yes && caching == Caching::Buffered;
    let asked_for = match is_asked_for {
        true => " (the page cache was asked for)",
        false => "",
    };
    CacheFinding {
        cached,
        because: format!("{because}{asked_for}{spread}"),
        device,
        repeat_ratio: Some(read_twice.ratio),
        zero_share: read_twice.zero_share,
        resident_share,
        coverage,
    }
}

/// What the spread of requests says of a cache that cannot be seen.
fn spread(coverage: Coverage) -> String {
    let reached = match coverage.reached_share < 1.0 {
        true => format!(
            "Small requests reached {} of what is measured",
            percent(coverage.reached_share)
        ),
        false => "Small requests reached all of what is measured".to_owned(),
    };
    let often = match coverage.requests_per_block {
        times if times >= OFTEN => format!(
            ", and read each block {times:.0} times on average: a cache as large as that would have answered. Measure more \
             data to be sure"
        ),
        _ => String::new(),
    };
    format!(". {reached}{often}")
}

/// What zeros say, whatever counters do: reads of what was never written are counted, too.
fn zeros(read_twice: ReadTwice) -> Option<(Cached, String)> {
    let share = read_twice.zero_share?;
    (share >= ZERO_SHARE_MIN).then(|| {
        let because = format!(
            "{} of the blocks that were looked at hold only zeros. A sparse, thin or discarded device reads what was \
             never written from nowhere. The figures may be too good: write the device with other data, or name a \
             directory on it",
            percent(share)
        );
        (Cached::Zeros, because)
    })
}

/// The answer, and why.
fn weigh(device: Option<DeviceShare>, times: f64, resident_share: Option<f64>) -> (Cached, String) {
    let ratio = device.map(|device| device.ratio());
    let of_disks = device.and_then(|device| device.disks_ratio());
    let is_repeated = times >= REPEAT_RATIO_MIN;
    let resident = resident_share.filter(|share| *share >= RESIDENT_SHARE_MIN);
    match (ratio, resident) {
        (Some(ratio), _) if ratio < DEVICE_SHARE_MIN => (
            Cached::Yes,
            format!(
                "the device read {} of the bytes that were asked for; memory answered the rest",
                percent(ratio)
            ),
        ),
        (Some(_), _) if of_disks.is_some_and(|ratio| ratio < DEVICE_SHARE_MIN) => (
            Cached::Yes,
            format!(
                "the disks beneath read {} of the bytes that were asked for; memory between them and the device answered \
                 the rest",
                percent(of_disks.unwrap_or_default())
            ),
        ),
        (None, Some(share)) => (
            Cached::Yes,
            format!(
                "{} of it lies in the page cache, and no device's counters say otherwise",
                percent(share)
            ),
        ),
        _ if is_repeated => (
            Cached::Yes,
            format!(
                "blocks read again took 1/{times:.1} of the time: something beneath keeps them"
            ),
        ),
        (Some(ratio), _) if ratio > OTHERS_SHARE => (
            Cached::Unknown,
            format!(
                "the device read {} of the bytes that were asked for: other programs read from it, too, and may hide a cache",
                percent(ratio)
            ),
        ),
        (Some(ratio), _) => (
            Cached::NotSeen,
            format!(
                "the device read {} of the bytes that were asked for, and blocks read again were not faster; a cache \
                 inside the device or its host that already held them cannot be seen from here",
                percent(ratio)
            ),
        ),
        (None, None) => (
            Cached::Unknown,
            "no device's counters are known, and blocks read again were not faster".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second time took as long as the first, and what a file system wrote was read.
    const ONCE: ReadTwice = ReadTwice {
        ratio: 1.0,
        zero_share: None,
    };

    fn found(device: Option<u64>, repeat: f64, resident: Option<f64>) -> Cached {
        let device = device.map(|device_bytes| DeviceShare {
            asked_bytes: 1000,
            device_bytes,
            disks_bytes: None,
        });
        let read_twice = ReadTwice {
            ratio: repeat,
            zero_share: None,
        };
        judge(device, read_twice, resident, (Caching::Direct, None)).cached
    }

    #[test]
    fn counters_decide_where_there_are_some() {
        assert_eq!(found(Some(10), 1.0, None), Cached::Yes);
        assert_eq!(found(Some(1000), 1.1, Some(1.0)), Cached::NotSeen);
        assert_eq!(found(Some(1500), 1.1, None), Cached::Unknown);
    }

    #[test]
    fn zeros_are_read_from_nowhere_whatever_counters_say() {
        let found = |zero_share, device_bytes| {
            let device = DeviceShare {
                asked_bytes: 1000,
                device_bytes,
                disks_bytes: None,
            };
            let read_twice = ReadTwice { zero_share, ..ONCE };
            judge(Some(device), read_twice, None, (Caching::Direct, None)).cached
        };
        for device_bytes in [0, 1000] {
            assert_eq!(found(Some(0.9), device_bytes), Cached::Zeros);
            assert_eq!(found(Some(0.11), device_bytes), Cached::Zeros);
        }
        assert_eq!(found(Some(0.09), 1000), Cached::NotSeen);
        assert_eq!(found(Some(0.09), 0), Cached::Yes);
    }

    #[test]
    fn a_device_that_read_all_may_have_read_it_from_memory() {
        let found = |disks_bytes| {
            let device = DeviceShare {
                asked_bytes: 1000,
                device_bytes: 1000,
                disks_bytes,
            };
            judge(Some(device), ONCE, None, (Caching::Direct, None))
        };
        assert_eq!(found(Some(950)).cached, Cached::NotSeen);
        assert_eq!(found(Some(0)).cached, Cached::Yes);
        assert_eq!(
            found(Some(120)).because,
            "the disks beneath read 12 % of the bytes that were asked for; memory between them and the device answered the \
             rest"
        );
    }

    #[test]
    fn requests_that_come_back_to_each_block_doubt_an_unseen_cache() {
        let told = |requests_per_block, reached_share| {
            let device = DeviceShare {
                asked_bytes: 1000,
                device_bytes: 1000,
                disks_bytes: None,
            };
            let coverage = Coverage {
                regions: 1024,
                reached_share,
                most_over_mean: 1.1,
                requests_per_block,
            };
            let how = (Caching::Direct, Some(coverage));
            judge(Some(device), ONCE, None, how).because
        };
        let often = told(17.2, 1.0);
        assert!(
            often.contains("reached all of what is measured, and read each block 17 times"),
            "{often}"
        );
        let rare = told(0.01, 0.62);
        assert!(
            rare.ends_with("Small requests reached 62 % of what is measured"),
            "{rare}"
        );
    }

    #[test]
    fn without_counters_residency_and_repetition_speak() {
        assert_eq!(found(None, 1.0, Some(1.0)), Cached::Yes);
        assert_eq!(found(None, 3.0, Some(0.0)), Cached::Yes);
        assert_eq!(found(Some(1000), 3.0, None), Cached::Yes);
        assert_eq!(found(None, 1.0, None), Cached::Unknown);
    }
}
