//! Where the bytes of a volume lie on the device whose writes are logged: worked out from the tables of device-mapper
//! between the two (`dmsetup table`), so that a power cut can be replayed where there is no device-mapper.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spindle_io::LINUX_SECTOR_BYTES;

/// How deep volumes may lie above each other.
const DEPTH_MAX: u32 = 16;

/// Why a volume cannot be mapped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// A table that this program does not understand.
    #[error(
        "device {device} has a table of kind `{kind}`; power cuts can be replayed on linear and striped volumes only"
    )]
    Unsupported {
        /// `major:minor`.
        device: String,
        /// The target's name.
        kind: String,
    },
    /// A table that makes no sense.
    #[error("the table `{line}` of device {device} is not understood")]
    BadTable {
        /// `major:minor`.
        device: String,
        /// As `dmsetup` gave it.
        line: String,
    },
    /// A part of the volume lies somewhere else.
    #[error("device {device} does not lie on the logged device {bottom}")]
    Elsewhere {
        /// `major:minor`.
        device: String,
        /// `major:minor`.
        bottom: String,
    },
}

/// A part of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Run {
    /// Where it begins on the logged device.
    physical: u64,
    /// Where it begins in the volume.
    logical: u64,
    bytes: u64,
}

/// Where each byte of a volume lies on the logged device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressMap {
    capacity_bytes: u64,
    /// In the order of the logged device.
    runs: Vec<Run>,
}

impl AddressMap {
    /// A volume in one piece.
    pub fn linear(first_byte: u64, bytes: u64) -> AddressMap {
        let run = Run {
            physical: first_byte,
            logical: 0,
            bytes,
        };
        AddressMap {
            capacity_bytes: bytes,
            runs: vec![run],
        }
    }

    /// Size of the volume.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// The parts of the volume that lie in a range of the logged device: where in the range, where in the volume,
    /// bytes.
    pub fn within(&self, first_byte: u64, bytes: u64) -> impl Iterator<Item = (u64, u64, u64)> {
        let end = first_byte + bytes;
        let first = self
            .runs
            .partition_point(|run| run.physical + run.bytes <= first_byte);
        self.runs[first..]
            .iter()
            .take_while(move |run| run.physical < end)
            .map(move |run| {
                let start = run.physical.max(first_byte);
                let stop = (run.physical + run.bytes).min(end);
                let logical = run.logical + (start - run.physical);
                (start - first_byte, logical, stop - start)
            })
    }
}

/// Tables of device-mapper: for each device (`major:minor`) its lines, as `dmsetup table` gives them.
#[derive(Debug, Clone, Default)]
pub struct DeviceTables(BTreeMap<String, Vec<String>>);

impl DeviceTables {
    /// Adds the table of a device.
    pub fn add(&mut self, device: &str, table: &str) {
        let lines = table.lines().map(str::to_owned).collect();
        self.0.insert(device.to_owned(), lines);
    }

    /// Maps `volume` down to `logged`, both `major:minor`.
    pub fn map(&self, volume: &str, logged: &str) -> Result<AddressMap, MapError> {
        let bytes = self
            .table(volume, logged)?
            .iter()
            .map(|part| part.bytes)
            .sum();
        let whole = Run {
            physical: 0,
            logical: 0,
            bytes,
        };
        let mut runs = Vec::new();
        self.descend(volume, logged, whole, DEPTH_MAX, &mut runs)?;
        runs.sort_unstable();
        Ok(AddressMap {
            capacity_bytes: bytes,
            runs,
        })
    }

    /// Maps a part of a device: `part.physical` is where it begins there.
    fn descend(
        &self,
        device: &str,
        logged: &str,
        part: Run,
        depth: u32,
        runs: &mut Vec<Run>,
    ) -> Result<(), MapError> {
        if device == logged {
            runs.push(part);
            return Ok(());
        }
        let depth = depth.checked_sub(1).ok_or_else(|| MapError::Elsewhere {
            device: device.to_owned(),
            bottom: logged.to_owned(),
        })?;
        let (from, end) = (part.physical, part.physical + part.bytes);
        for segment in self.table(device, logged)? {
            let mut at = from.max(segment.first_byte);
            let stop = end.min(segment.first_byte + segment.bytes);
            while at < stop {
                let (below, physical, room_bytes) = segment.below(at - segment.first_byte);
                let piece = Run {
                    physical,
                    logical: part.logical + (at - from),
                    bytes: room_bytes.min(stop - at),
                };
                self.descend(below, logged, piece, depth, runs)?;
                at += piece.bytes;
            }
        }
        Ok(())
    }

    fn table(&self, device: &str, logged: &str) -> Result<Vec<Segment>, MapError> {
        let lines = self.0.get(device).ok_or_else(|| MapError::Elsewhere {
            device: device.to_owned(),
            bottom: logged.to_owned(),
        })?;
        lines
            .iter()
            .map(|line| Segment::read(device, line))
            .collect()
    }
}

/// A line of a table.
struct Segment {
    first_byte: u64,
    bytes: u64,
    /// Bytes on one device before the next one's turn.
    chunk_bytes: u64,
    /// Devices below, and where the segment begins there.
    below: Vec<(String, u64)>,
}

impl Segment {
    /// `START LENGTH linear DEVICE OFFSET`, or `START LENGTH striped COUNT CHUNK [DEVICE OFFSET]...`, in sectors.
    fn read(device: &str, line: &str) -> Result<Segment, MapError> {
        let bad = || MapError::BadTable {
            device: device.to_owned(),
            line: line.to_owned(),
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let sectors = |at: usize| {
            let number: Option<u64> = words.get(at).and_then(|word| word.parse().ok());
            number
                .map(|sectors| sectors * LINUX_SECTOR_BYTES)
                .ok_or_else(bad)
        };
        let (first_byte, bytes) = (sectors(0)?, sectors(1)?);
        let (chunk_bytes, devices_at, count) = match words.get(2) {
            Some(&"linear") => (bytes, 3, 1),
            Some(&"striped") => (sectors(4)?, 5, sectors(3)? / LINUX_SECTOR_BYTES),
            kind => {
                return Err(MapError::Unsupported {
                    device: device.to_owned(),
                    kind: (*kind.unwrap_or(&"")).to_owned(),
                });
            }
        };
        let below = (0..count as usize).map(|index| {
            let at = devices_at + 2 * index;
            let name = *words.get(at).ok_or_else(bad)?;
            Ok((name.to_owned(), sectors(at + 1)?))
        });
        let below: Vec<_> = below.collect::<Result<_, MapError>>()?;
        if below.is_empty() || chunk_bytes == 0 {
            return Err(bad());
        }
        Ok(Segment {
            first_byte,
            bytes,
            chunk_bytes,
            below,
        })
    }

    /// Where byte `at` of the segment lies: device, byte there, and how many bytes lie there in one piece.
    fn below(&self, at: u64) -> (&str, u64, u64) {
        let devices = self.below.len() as u64;
        let (chunk, within) = (at / self.chunk_bytes, at % self.chunk_bytes);
        let (name, first_byte) = &self.below[(chunk % devices) as usize];
        let offset = first_byte + chunk / devices * self.chunk_bytes + within;
        (name, offset, self.chunk_bytes - within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(lines: &[(&str, &str)]) -> DeviceTables {
        let mut tables = DeviceTables::default();
        lines
            .iter()
            .for_each(|(device, table)| tables.add(device, table));
        tables
    }

    /// Every byte of a volume, by asking the map for every sector of the logged device.
    fn sectors(map: &AddressMap, logged_sectors: u64) -> Vec<(u64, u64)> {
        let each = |sector: u64| {
            map.within(sector * 512, 512)
                .map(move |(at, logical, bytes)| {
                    assert_eq!((at, bytes), (0, 512));
                    (logical / 512, sector)
                })
        };
        let mut all: Vec<_> = (0..logged_sectors).flat_map(each).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn stripes_over_parts_of_the_logged_device_are_found() {
        let tables = tables(&[
            ("254:1", "0 16 linear 254:0 8"),
            ("254:2", "0 16 linear 254:0 32"),
            ("254:3", "0 16 striped 2 4 254:1 4 254:2 2"),
        ]);
        let map = tables.map("254:3", "254:0").unwrap();
        assert_eq!(map.capacity_bytes(), 16 * 512);
        let physical: Vec<_> = sectors(&map, 64).into_iter().map(|(_, at)| at).collect();
        let chunk = |from: u64| from..from + 4;
        let expected = [chunk(12), chunk(34), chunk(16), chunk(38)];
        assert_eq!(physical, expected.into_iter().flatten().collect::<Vec<_>>());
        // A write over both halves, and only what of it belongs to the volume.
        let parts: Vec<_> = map.within(14 * 512, 21 * 512).collect();
        let bytes: u64 = parts.iter().map(|(_, _, bytes)| bytes).sum();
        assert_eq!(bytes, (6 + 1) * 512);
        assert_eq!(parts[0], (0, 2 * 512, 2 * 512));
    }

    #[test]
    fn a_volume_of_two_segments_is_one_volume() {
        let tables = tables(&[("9:1", "0 4 linear 9:0 20\n4 4 linear 9:0 10")]);
        let map = tables.map("9:1", "9:0").unwrap();
        let physical: Vec<_> = sectors(&map, 64).into_iter().map(|(_, at)| at).collect();
        assert_eq!(physical, [20, 21, 22, 23, 10, 11, 12, 13]);
    }

    #[test]
    fn what_cannot_be_mapped_is_named() {
        let tables = tables(&[
            ("9:1", "0 8 raid raid1 3 0 region_size 1024 2 - 9:0 - 9:2"),
            ("9:2", "0 8 linear 8:1 0"),
            ("9:3", "0 8 striped 2 4 9:0 4"),
            ("9:4", "0 8 linear 9:4 0"),
        ]);
        let told = |device| tables.map(device, "9:0").unwrap_err().to_string();
        assert!(told("9:1").contains("`raid`"), "{}", told("9:1"));
        assert!(told("9:2").contains("8:1"), "{}", told("9:2"));
        assert!(told("9:3").contains("striped 2 4 9:0 4"), "{}", told("9:3"));
        assert!(told("9:4").contains("does not lie"), "{}", told("9:4"));
    }
}
