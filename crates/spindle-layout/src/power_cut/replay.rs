//! What a layout's devices hold after a power cut, worked out from the log of writes. Two kinds of cuts, because the
//! order of a log alone shows neither reordering nor tears:
//!
//! - *in order*: the first entries up to a point, and nothing after them;
//! - *scattered*: everything up to the last flush before the cut, and of the writes since then each kept, lost, or torn
//!   (each sector kept or lost), drawn on its own. A FUA write is kept: it was promised. The first entry after the cut
//!   was under way, FUA or not, and is kept, lost or torn as well. Of writes to the same bytes a later one that is kept
//!   stays on top, as in a write cache, which holds one copy of each sector.
//!
//! A device that *ignores flushes* is the control: its last writes are scattered whatever was promised, as they would
//! be in a cache that is never flushed. A replay that shows no loss there shows nothing anywhere.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_io::sim::DiskImage;

use super::address_map::AddressMap;
use super::log::{Content, LoggedRequest, WriteLog};

/// No disk tears within a sector.
const SECTOR_BYTES: u64 = spindle_io::WHOLE_SECTOR_BYTES as u64;

/// Writes that the cache of a device holds that ignores flushes.
const IGNORED_WRITES: usize = 128;

/// What becomes of the last writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CutKind {
    /// The log ends there.
    InOrder,
    /// What was not promised is kept, lost or torn.
    Scattered,
    /// The same, on a device that promises and does not keep: the control.
    FlushesIgnored,
}

/// A moment at which the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cut {
    /// Entries of the log that had come to the device.
    pub entries: usize,
    /// What becomes of them.
    pub kind: CutKind,
    /// Draws what is kept.
    pub seed: u64,
}

/// Draws `count` cuts of the given kinds, taken in turn, after entries `first` to `last`; sorted by kind and entry, so
/// that a replay goes forward. The same seed draws the same cuts.
pub fn draw_cuts(
    first: usize,
    last: usize,
    kinds: &[CutKind],
    count: usize,
    seed: u64,
) -> Vec<Cut> {
    let mut rng = seeded_rng(seed, 0);
    let span = (last.saturating_sub(first) + 1) as u64;
    let draw = |number: usize| Cut {
        entries: first + (rng.next_u64() % span) as usize,
        kind: kinds[number % kinds.len()],
        seed: rng.next_u64(),
    };
    let mut cuts: Vec<Cut> = (0..count).map(draw).collect();
    cuts.sort_unstable_by_key(|cut| (cut.kind, cut.entries, cut.seed));
    cuts
}

/// A log being replayed onto images of a layout's devices.
pub struct Replay<'a> {
    log: &'a WriteLog,
    maps: Vec<AddressMap>,
    /// The devices after the first `done` entries, all kept.
    images: Vec<DiskImage>,
    done: usize,
}

impl<'a> Replay<'a> {
    /// Before the first entry: devices of zeros, each where its map says on the logged device.
    pub fn new(log: &'a WriteLog, maps: Vec<AddressMap>) -> Replay<'a> {
        let images = blank(&maps);
        Replay {
            log,
            maps,
            images,
            done: 0,
        }
    }

    /// The devices after a cut. Cheap when cuts come sorted.
    pub fn after(&mut self, cut: Cut) -> Vec<DiskImage> {
        let entries = &self.log.entries[..cut.entries];
        let safe = safe_entries(entries, cut.kind);
        if safe < self.done {
            self.images = blank(&self.maps);
            self.done = 0;
        }
        for entry in &entries[self.done..safe] {
            put(
                &mut self.images,
                &self.maps,
                entry,
                0,
                entry.content.bytes(),
            );
        }
        self.done = safe;
        let mut images = self.images.clone();
        let mut chance = seeded_rng(cut.seed, 1);
        for entry in &entries[safe..] {
            let is_kept = match cut.kind {
                CutKind::InOrder => true,
                CutKind::Scattered => entry.is_durable,
                CutKind::FlushesIgnored => false,
            };
            if is_kept {
                put(&mut images, &self.maps, entry, 0, entry.content.bytes());
            } else {
                scatter(&mut images, &self.maps, entry, &mut chance);
            }
        }
        if cut.kind == CutKind::Scattered
            && let Some(under_way) = self.log.entries.get(cut.entries)
        {
            scatter(&mut images, &self.maps, under_way, &mut chance);
        }
        images
    }
}

fn blank(maps: &[AddressMap]) -> Vec<DiskImage> {
    let image = |map: &AddressMap| DiskImage::zeroed(map.capacity_bytes() as usize);
    maps.iter().map(image).collect()
}

/// How many entries a cut leaves as they are.
fn safe_entries(entries: &[LoggedRequest], kind: CutKind) -> usize {
    match kind {
        CutKind::InOrder => entries.len(),
        CutKind::Scattered => {
            let last_flush = entries.iter().rposition(|entry| entry.is_flush);
            last_flush.unwrap_or(0)
        }
        CutKind::FlushesIgnored => {
            let is_write = |(_, entry): &(usize, &LoggedRequest)| entry.content.bytes() > 0;
            let mut writes = entries.iter().enumerate().rev().filter(is_write);
            writes.nth(IGNORED_WRITES - 1).map_or(0, |(index, _)| index)
        }
    }
}

/// Kept whole, lost, or torn.
fn scatter(
    images: &mut [DiskImage],
    maps: &[AddressMap],
    entry: &LoggedRequest,
    chance: &mut Xoshiro256PlusPlus,
) {
    let bytes = entry.content.bytes();
    match chance.next_u64() % 3 {
        0 => {}
        1 => put(images, maps, entry, 0, bytes),
        _ => {
            for sector in (0..bytes).step_by(SECTOR_BYTES as usize) {
                if chance.next_u64().is_multiple_of(2) {
                    put(
                        images,
                        maps,
                        entry,
                        sector,
                        SECTOR_BYTES.min(bytes - sector),
                    );
                }
            }
        }
    }
}

/// Writes `bytes` bytes of an entry, from its byte `from` on, to the devices they belong to.
fn put(
    images: &mut [DiskImage],
    maps: &[AddressMap],
    entry: &LoggedRequest,
    from: u64,
    bytes: u64,
) {
    for (image, map) in images.iter_mut().zip(maps) {
        for (at, logical, length) in map.within(entry.first_byte + from, bytes) {
            let (start, length) = ((from + at) as usize, length as usize);
            match &entry.content {
                Content::Bytes(content) => {
                    image.write(logical as usize, &content[start..start + length]);
                }
                Content::Zeros(_) => image.zero(logical as usize, length),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const DEVICE_BYTES: usize = 64 << 10;

    fn write(sector: u64, value: u8, sectors: usize) -> LoggedRequest {
        LoggedRequest {
            is_flush: false,
            is_durable: false,
            first_byte: sector * 512,
            content: Content::of(vec![value; sectors * 512]),
            mark: None,
        }
    }

    fn flush() -> LoggedRequest {
        LoggedRequest {
            is_flush: true,
            ..write(0, 0, 0)
        }
    }

    fn whole(log: &WriteLog) -> Replay<'_> {
        Replay::new(log, vec![AddressMap::linear(0, DEVICE_BYTES as u64)])
    }

    fn cut(entries: usize, kind: CutKind, seed: u64) -> Cut {
        Cut {
            entries,
            kind,
            seed,
        }
    }

    /// The first byte of each of the first sectors.
    fn sectors(image: &DiskImage, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count * 512];
        image.read(0, &mut bytes);
        bytes.iter().step_by(512).copied().collect()
    }

    #[test]
    fn in_order_the_log_ends_at_the_cut() {
        let log = WriteLog {
            entries: vec![write(0, 1, 1), write(1, 2, 1), flush(), write(0, 0, 1)],
        };
        let mut replay = whole(&log);
        let mut after = |entries| sectors(&replay.after(cut(entries, CutKind::InOrder, 0))[0], 2);
        assert_eq!(after(0), [0, 0]);
        assert_eq!(after(1), [1, 0]);
        assert_eq!(after(3), [1, 2]);
        assert_eq!(after(4), [0, 2], "zeros are written, too");
        assert_eq!(after(2), [1, 2], "and back");
    }

    #[test]
    fn scattered_cuts_keep_what_was_promised_and_tear_the_rest() {
        let durable = LoggedRequest {
            is_durable: true,
            ..write(8, 9, 1)
        };
        let log = WriteLog {
            entries: vec![
                write(0, 1, 2),
                flush(),
                write(0, 2, 2),
                durable,
                write(4, 3, 4),
            ],
        };
        let mut replay = whole(&log);
        let mut seen = BTreeSet::new();
        for seed in 0..10_000 {
            let image = &replay.after(cut(5, CutKind::Scattered, seed))[0];
            let held = sectors(image, 9);
            assert_eq!(held[8], 9, "what FUA promised is there");
            assert!(
                held[..2].iter().all(|byte| [1, 2].contains(byte)),
                "{held:?}"
            );
            assert!(
                held[4..8].iter().all(|byte| [0, 3].contains(byte)),
                "{held:?}"
            );
            seen.insert(held);
        }
        let is = |part: &[u8]| {
            seen.iter()
                .any(|held| held[..2] == part[..2] && held[4..8] == part[2..])
        };
        assert!(
            is(&[1, 1, 3, 3, 3, 3]),
            "a later write without an earlier one"
        );
        assert!(is(&[2, 2, 0, 0, 0, 0]));
        assert!(is(&[1, 2, 3, 0, 3, 0]), "both torn");
        assert_eq!(seen.len(), 4 * 16, "every way there is");
        // What comes after the cut was under way, FUA or not; nothing of what comes after that.
        let mut held = |entries, seed| {
            let image = &replay.after(cut(entries, CutKind::Scattered, seed))[0];
            sectors(image, 9)
        };
        let under_way: BTreeSet<_> = (0..100).map(|seed| held(2, seed)).collect();
        assert!(under_way.contains(&vec![1, 2, 0, 0, 0, 0, 0, 0, 0]));
        assert!(under_way.iter().all(|held| held[2..] == [0; 7]));
        let promised_later: BTreeSet<_> = (0..100).map(|seed| held(3, seed)[8]).collect();
        assert_eq!(promised_later, BTreeSet::from([0, 9]));
    }

    #[test]
    fn who_ignores_flushes_loses_what_was_promised() {
        let entries = vec![write(0, 1, 1), flush(), write(1, 1, 1), flush()];
        let log = WriteLog { entries };
        let mut replay = whole(&log);
        let mut held = |kind, seed| sectors(&replay.after(cut(4, kind, seed))[0], 2);
        let ignored: Vec<_> = (0..50)
            .map(|seed| held(CutKind::FlushesIgnored, seed))
            .collect();
        assert!(ignored.contains(&vec![0, 1]) && ignored.contains(&vec![1, 0]));
        assert!((0..50).all(|seed| held(CutKind::Scattered, seed) == [1, 1]));
        // Its cache is not endless.
        let mut entries = vec![write(0, 1, 1)];
        entries.extend((0..IGNORED_WRITES).map(|_| write(1, 1, 1)));
        let log = WriteLog { entries };
        let mut replay = whole(&log);
        let all = log.entries.len();
        let mut first =
            |seed| sectors(&replay.after(cut(all, CutKind::FlushesIgnored, seed))[0], 1);
        assert!((0..50).all(|seed| first(seed) == [1]));
    }

    #[test]
    fn devices_get_their_own_parts_of_a_write() {
        let log = WriteLog {
            entries: vec![write(6, 5, 4)],
        };
        let maps = vec![AddressMap::linear(0, 4096), AddressMap::linear(4096, 4096)];
        let mut replay = Replay::new(&log, maps);
        let images = replay.after(cut(1, CutKind::InOrder, 0));
        assert_eq!(sectors(&images[0], 8), [0, 0, 0, 0, 0, 0, 5, 5]);
        assert_eq!(sectors(&images[1], 8), [5, 5, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn one_seed_draws_one_set_of_cuts() {
        let kinds = [CutKind::InOrder, CutKind::Scattered];
        let cuts = draw_cuts(10, 20, &kinds, 400, 3);
        assert_eq!(cuts, draw_cuts(10, 20, &kinds, 400, 3));
        assert_ne!(cuts, draw_cuts(10, 20, &kinds, 400, 4));
        for entries in 10..=20 {
            assert!(cuts.iter().any(|cut| cut.entries == entries));
        }
        let scattered = cuts.iter().filter(|cut| cut.kind == CutKind::Scattered);
        assert_eq!(scattered.count(), 200);
        assert!(cuts.iter().all(|cut| (10..=20).contains(&cut.entries)));
    }
}
