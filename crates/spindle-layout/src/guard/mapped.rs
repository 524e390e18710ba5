//! Tables of device-mapper, as `dmsetup table` prints them: which range of a device is which range of another. Two
//! volumes of one group lie side by side on one disk; without the tables they could not be told from two that overlap.
//! A target that is not known here leads to no mapping, and is taken to lie anywhere on what `/sys` shows beneath it.
//! Source: Linux Documentation/admin-guide/device-mapper.

use std::collections::BTreeMap;
use std::ops::Range;

use spindle_io::LINUX_SECTOR_BYTES;
use spindle_system::DeviceNumber;

/// A line of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MappedTarget {
    /// Of the device that has the table, in bytes.
    pub range: Range<u64>,
    /// What is beneath.
    pub mappings: Vec<Mapping>,
    /// Whether it is a thin volume of a pool.
    pub is_thin: bool,
}

/// What is beneath a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub lower: DeviceNumber,
    /// The bytes there.
    pub area: Range<u64>,
    /// Whether the target's range is this very area, in the same order.
    pub is_linear: bool,
}

/// All tables, by the names of the devices. A device with a line that is not understood has no table.
pub(super) fn targets(printed: &str) -> BTreeMap<String, Vec<MappedTarget>> {
    let mut tables: BTreeMap<String, Option<Vec<MappedTarget>>> = BTreeMap::new();
    for line in printed.lines() {
        let Some((name, rest)) = line.split_once(": ") else {
            continue;
        };
        let table = tables
            .entry(name.to_owned())
            .or_insert_with(|| Some(Vec::new()));
        match (target(rest), table.as_mut()) {
            (Some(target), Some(table)) => table.push(target),
            _ => *table = None,
        }
    }
    let known = |(name, table): (String, Option<Vec<MappedTarget>>)| Some((name, table?));
    tables.into_iter().filter_map(known).collect()
}

fn target(line: &str) -> Option<MappedTarget> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [start, length, kind, arguments @ ..] = words.as_slice() else {
        return None;
    };
    let start = bytes(start)?;
    let length = bytes(length)?;
    let range = start..start.checked_add(length)?;
    let at = |device: usize, offset: usize| {
        let first = bytes(arguments.get(offset)?)?;
        Some(vec![Mapping {
            lower: arguments.get(device)?.parse().ok()?,
            area: first..first.checked_add(length)?,
            is_linear: true,
        }])
    };
    let mappings = match *kind {
        "linear" | "delay" | "flakey" | "dust" => at(0, 1)?,
        "crypt" => at(3, 4)?,
        "striped" => striped(arguments, length)?,
        "thin" => vec![Mapping {
            lower: arguments.first()?.parse().ok()?,
            area: 0..u64::MAX,
            is_linear: false,
        }],
        // Nothing is beneath.
        "zero" | "error" => Vec::new(),
        _ => return None,
    };
    Some(MappedTarget {
        range,
        mappings,
        is_thin: *kind == "thin",
    })
}

/// `stripes chunk [device offset]...`: each device has its share of the volume in one piece.
fn striped(arguments: &[&str], length: u64) -> Option<Vec<Mapping>> {
    let devices = arguments.get(2..)?;
    let stripes: u64 = arguments.first()?.parse().ok()?;
    if stripes == 0 || devices.len() as u64 != stripes.checked_mul(2)? {
        return None;
    }
    let mapping = |pair: &[&str]| {
        let first = bytes(pair[1])?;
        Some(Mapping {
            lower: pair[0].parse().ok()?,
            area: first..first.checked_add(length.div_ceil(stripes))?,
            is_linear: false,
        })
    };
    devices.chunks_exact(2).map(mapping).collect()
}

fn bytes(sectors: &str) -> Option<u64> {
    sectors.parse::<u64>().ok()?.checked_mul(LINUX_SECTOR_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_in_bytes() {
        let found = targets(
            "a: 0 8 linear 7:0 16\na: 8 8 striped 2 128 7:1 0 7:2 4\nb: 0 8 raid raid1 3\nnonsense\n",
        );
        assert!(!found.contains_key("b"));
        let a = &found["a"];
        assert_eq!(
            (a[0].range.clone(), a[1].range.clone()),
            (0..4096, 4096..8192)
        );
        assert_eq!(a[0].mappings[0].area, 8192..12288);
        let areas: Vec<Range<u64>> = a[1].mappings.iter().map(|it| it.area.clone()).collect();
        assert_eq!(areas, [0..2048, 2048..4096]);
    }

    #[test]
    fn what_is_not_understood_is_no_table() {
        for line in [
            "a: 0 8 linear 7:0",
            "a: 0 8 linear x 0",
            "a: 0 8 striped 2 128 7:1 0",
            "a: 0",
            "a: 0 99999999999999999999 zero",
        ] {
            assert!(targets(line).is_empty(), "{line}");
        }
        assert!(targets("a: 0 8 zero\na: 8 8 odd\na: 16 8 zero\n").is_empty());
    }
}
