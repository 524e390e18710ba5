//! Which allocation units are free, and which disk the next extent goes to. Every file is spread evenly over all disks
//! by their size; copies of an extent go to partner disks in other failure groups (OSTMG 12.1, "Mirroring and Failure
//! Groups"). The allocation table is kept in memory: it is what the extent maps say, and is made of them at each mount.

use std::collections::BTreeMap;

use crate::disk_group::disk::format::DiskLayout;
use crate::disk_group::extents::map::UnitPlace;

/// Most partners of a disk; few, so that a second failure rarely meets both copies of an extent.
const PARTNERS_MAX: usize = 8;

/// Allocation units of one disk.
#[derive(Clone)]
pub(crate) struct DiskSpace {
    first_au: u32,
    total_aus: u32,
    /// A bit for each AU of the disk; those before `first_au` are never looked at.
    used: Vec<u64>,
    used_aus: u32,
}

impl DiskSpace {
    pub(crate) fn new(layout: DiskLayout) -> DiskSpace {
        DiskSpace {
            first_au: layout.first_data_au(),
            total_aus: layout.total_aus,
            used: vec![0; layout.total_aus.div_ceil(64) as usize],
            used_aus: 0,
        }
    }

    fn is_used(&self, au: u32) -> bool {
        self.used[au as usize / 64] >> (au % 64) & 1 == 1
    }

    /// AUs in use.
    pub(crate) fn used_aus(&self) -> u32 {
        self.used_aus
    }

    /// AUs for extents that are free.
    pub(crate) fn free_aus(&self) -> u32 {
        self.total_aus - self.first_au - self.used_aus
    }

    /// Takes `count` AUs that follow each other, the outermost there are.
    fn allocate(&mut self, count: u32) -> Option<u32> {
        if count > self.free_aus() {
            return None;
        }
        let mut au = self.first_au;
        while u64::from(au) + u64::from(count) <= u64::from(self.total_aus) {
            if self.used[au as usize / 64] == u64::MAX {
                au = (au / 64 + 1) * 64;
                continue;
            }
            let Some(taken) = (au..au + count).find(|at| self.is_used(*at)) else {
                let is_taken = self.take(au, count);
                debug_assert!(is_taken);
                return Some(au);
            };
            au = taken + 1;
        }
        None
    }

    /// Marks these AUs as used; false, and nothing done, when one is used already or does not exist.
    pub(crate) fn take(&mut self, au: u32, count: u32) -> bool {
        let exists =
            au >= self.first_au && u64::from(au) + u64::from(count) <= u64::from(self.total_aus);
        if !exists || (au..au + count).any(|at| self.is_used(at)) {
            return false;
        }
        for at in au..au + count {
            self.used[at as usize / 64] |= 1 << (at % 64);
        }
        self.used_aus += count;
        true
    }

    fn free(&mut self, au: u32, count: u32) {
        for at in au..au + count {
            debug_assert!(self.is_used(at));
            self.used[at as usize / 64] &= !(1 << (at % 64));
        }
        self.used_aus -= count;
    }
}

impl PartialEq for DiskSpace {
    fn eq(&self, other: &DiskSpace) -> bool {
        (self.first_au, self.total_aus, &self.used)
            == (other.first_au, other.total_aus, &other.used)
    }
}

/// The allocation table of the group.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Space {
    pub(crate) disks: BTreeMap<u16, DiskSpace>,
}

impl Space {
    pub(crate) fn allocate(&mut self, disk: u16, count: u32) -> Option<u32> {
        self.disks.get_mut(&disk)?.allocate(count)
    }

    pub(crate) fn take(&mut self, place: UnitPlace, count: u32) -> bool {
        let disk = self.disks.get_mut(&place.disk);
        disk.is_some_and(|disk| disk.take(place.au, count))
    }

    pub(crate) fn free(&mut self, place: UnitPlace, count: u32) {
        // A disk that has left the group has taken its space with it.
        if let Some(disk) = self.disks.get_mut(&place.disk) {
            disk.free(place.au, count);
        }
    }
}

/// A disk that extents may go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) disk: u16,
    pub(crate) failure_group: String,
    /// AUs for extents, used or not: its share of every file.
    pub(crate) data_aus: u32,
}

/// For each disk the disks that hold the other copies of its extents: up to 8, in other failure groups, mutual.
pub(crate) fn partners(disks: &[Candidate]) -> BTreeMap<u16, Vec<u16>> {
    // Failure groups in turn, so that neighbours are of different ones.
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut row: Vec<(usize, &Candidate)> = disks
        .iter()
        .map(|disk| {
            let place = seen.entry(&disk.failure_group).or_default();
            *place += 1;
            (*place, disk)
        })
        .collect();
    row.sort_by_key(|(place, disk)| (*place, disk.failure_group.clone(), disk.disk));
    let mut partners: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for disk in disks {
        partners.insert(disk.disk, Vec::new());
    }
    for distance in 1..row.len() {
        for (at, (_, one)) in row.iter().enumerate() {
            let (_, other) = row[(at + distance) % row.len()];
            let room = |disk: u16| partners[&disk].len() < PARTNERS_MAX;
            let new = !partners[&one.disk].contains(&other.disk);
            if one.failure_group != other.failure_group && new && room(one.disk) && room(other.disk)
            {
                partners.entry(one.disk).or_default().push(other.disk);
                partners.entry(other.disk).or_default().push(one.disk);
            }
        }
    }
    partners
}

/// How much of one file lies on each disk, by copy number: what keeps it even.
pub(crate) struct Spread<'a> {
    candidates: &'a [Candidate],
    partners: BTreeMap<u16, Vec<u16>>,
    /// AUs by copy number and place in `candidates`.
    loads: Vec<Vec<u64>>,
    /// Where ties begin, so that small files do not all begin on the same disk.
    turn: usize,
}

impl<'a> Spread<'a> {
    pub(crate) fn new(candidates: &'a [Candidate], copies: usize, turn: usize) -> Spread<'a> {
        Spread {
            candidates,
            partners: partners(candidates),
            loads: vec![vec![0; candidates.len()]; copies],
            turn,
        }
    }

    /// Places one extent of `aus` AUs, `copies` times; `None`, with nothing taken, when there is no room.
    pub(crate) fn place(&mut self, space: &mut Space, aus: u32) -> Option<Vec<UnitPlace>> {
        let mut places: Vec<UnitPlace> = Vec::new();
        for copy in 0..self.loads.len() {
            let found = self.order(copy, &places).into_iter().find_map(|at| {
                let disk = self.candidates[at].disk;
                Some((at, space.allocate(disk, aus)?))
            });
            let Some((at, au)) = found else {
                for place in places {
                    space.free(place, aus);
                }
                return None;
            };
            self.loads[copy][at] += u64::from(aus);
            places.push(UnitPlace {
                disk: self.candidates[at].disk,
                au,
            });
        }
        self.turn += 1;
        Some(places)
    }

    /// Candidates for a copy, best first: partners of the primary before others, then those with the least of this file
    /// for their size, all of them in failure groups that have no copy yet.
    fn order(&self, copy: usize, places: &[UnitPlace]) -> Vec<usize> {
        let count = self.candidates.len();
        let group_of = |disk: u16| {
            let of = |candidate: &&Candidate| candidate.disk == disk;
            &self
                .candidates
                .iter()
                .find(of)
                .expect("placed there")
                .failure_group
        };
        let taken: Vec<&String> = places.iter().map(|place| group_of(place.disk)).collect();
        let mut order: Vec<usize> = (0..count).map(|at| (at + self.turn) % count).collect();
        order.retain(|at| !taken.contains(&&self.candidates[*at].failure_group));
        // The sort is stable: the turn decides ties.
        order.sort_by_key(|at| {
            let candidate = &self.candidates[*at];
            let primary = places.first().map(|place| place.disk);
            let is_partner =
                primary.is_none_or(|primary| self.partners[&primary].contains(&candidate.disk));
            let load = (self.loads[copy][*at] << 24) / u64::from(candidate.data_aus.max(1));
            (!is_partner, load)
        });
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(groups: &[&str], aus: &[u32]) -> (Vec<Candidate>, Space) {
        let mut space = Space::default();
        let list = (0..)
            .zip(groups.iter().zip(aus))
            .map(|(disk, (group, aus))| {
                let layout = DiskLayout::new(u64::from(aus + 4) << 20, 1 << 20).unwrap();
                assert_eq!(layout.data_aus(), *aus);
                space.disks.insert(disk, DiskSpace::new(layout));
                Candidate {
                    disk,
                    failure_group: (*group).to_owned(),
                    data_aus: *aus,
                }
            });
        (list.collect(), space)
    }

    fn counts(places: &[Vec<UnitPlace>], disks: u16) -> Vec<usize> {
        let of = |disk| {
            places
                .iter()
                .flatten()
                .filter(|place| place.disk == disk)
                .count()
        };
        (0..disks).map(of).collect()
    }

    #[test]
    fn files_are_even_over_disks_by_their_size() {
        let (candidates, mut space) = candidates(&["a", "b", "c", "d"], &[100, 100, 200, 400]);
        let mut spread = Spread::new(&candidates, 1, 3);
        let places: Vec<_> = (0..400)
            .map(|_| spread.place(&mut space, 1).unwrap())
            .collect();
        assert_eq!(counts(&places, 4), [50, 50, 100, 200]);
    }

    #[test]
    fn copies_lie_in_different_failure_groups_on_partners() {
        let (candidates, mut space) = candidates(&["a", "a", "b", "b", "c", "c"], &[200; 6]);
        let mut spread = Spread::new(&candidates, 3, 0);
        let places: Vec<_> = (0..300)
            .map(|_| spread.place(&mut space, 1).unwrap())
            .collect();
        for places in &places {
            let mut groups: Vec<_> = places.iter().map(|place| place.disk / 2).collect();
            groups.sort_unstable();
            assert_eq!(groups, [0, 1, 2]);
        }
        assert_eq!(counts(&places, 6), [150; 6]);
    }

    #[test]
    fn partners_are_few_and_mutual_and_elsewhere() {
        let groups: Vec<String> = (0..30).map(|disk| format!("g{}", disk % 5)).collect();
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let (candidates, _) = candidates(&groups, &[10; 30]);
        let partners = partners(&candidates);
        for (disk, of) in &partners {
            assert!(
                (6..=PARTNERS_MAX).contains(&of.len()),
                "disk {disk} has {of:?}"
            );
            for partner in of {
                assert!(partners[partner].contains(disk));
                assert_ne!(disk % 5, partner % 5);
            }
        }
    }

    #[test]
    fn a_full_group_says_so_and_gives_back_what_it_took() {
        let (candidates, mut space) = candidates(&["a", "b"], &[10, 4]);
        let mut spread = Spread::new(&candidates, 2, 0);
        for _ in 0..4 {
            assert!(spread.place(&mut space, 1).is_some());
        }
        let before = space.clone();
        assert!(spread.place(&mut space, 1).is_none());
        assert!(space == before);
    }

    #[test]
    fn large_extents_find_runs_of_free_units() {
        let (_, mut space) = candidates(&["a"], &[100]);
        let first = space.allocate(0, 4).unwrap();
        let gap = space.allocate(0, 3).unwrap();
        assert_eq!((first, gap), (4, 8));
        space.free(UnitPlace { disk: 0, au: first }, 4);
        assert_eq!(space.allocate(0, 16), Some(11));
        assert_eq!(space.allocate(0, 4), Some(4));
        assert!(!space.take(UnitPlace { disk: 0, au: 5 }, 1), "it is used");
        assert!(
            !space.take(UnitPlace { disk: 0, au: 103 }, 2),
            "the disk ends there"
        );
    }
}
