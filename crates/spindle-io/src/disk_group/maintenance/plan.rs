//! Which copies of extents a rebalance moves, and where to: a pure function of what lies where. Every file is to lie on
//! each disk in proportion to its size, primary copies and others each for themselves, so that reads are even, too;
//! copies of an extent stay in different failure groups; disks that leave are emptied. The copy that weighs most is
//! moved to where least is, until no move makes it more even.

use std::collections::BTreeMap;

use crate::disk_group::extents::space::Candidate;

/// Moves one copy of an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) extent: usize,
    pub(crate) copy: usize,
    pub(crate) to: u16,
}

/// One file, as the plan sees it.
pub(crate) struct Lying {
    /// The disks of each extent's copies.
    pub(crate) disks: Vec<Vec<u16>>,
    /// AUs of each extent.
    pub(crate) aus: Vec<u32>,
}

/// The disks of the group.
pub(crate) struct RebalanceDisks<'a> {
    /// Disks that stay.
    pub(crate) candidates: &'a [Candidate],
    /// Disks to be emptied.
    pub(crate) leaving: &'a [u16],
    /// Failure group of every disk.
    pub(crate) failure_groups: &'a BTreeMap<u16, String>,
}

/// The moves that make one file even.
pub(crate) fn plan(disks_of_group: &RebalanceDisks<'_>, mut lying: Lying) -> Vec<Move> {
    let copies = lying.disks.iter().map(Vec::len).max().unwrap_or(0);
    let mut moves = Vec::new();
    for copy in 0..copies {
        Role::new(disks_of_group, &lying, copy).level(&mut lying, &mut moves);
    }
    moves
}

/// The copies of one number: all primary ones, all second ones.
struct Role<'a> {
    disks_of_group: &'a RebalanceDisks<'a>,
    copy: usize,
    /// AUs more than its share, of each disk that takes part.
    excess: BTreeMap<u16, f64>,
    /// Extents with this copy on a disk.
    on: BTreeMap<u16, Vec<usize>>,
}

impl<'a> Role<'a> {
    fn new(disks_of_group: &'a RebalanceDisks<'a>, lying: &Lying, copy: usize) -> Role<'a> {
        let mut excess: BTreeMap<u16, f64> = disks_of_group
            .candidates
            .iter()
            .map(|disk| (disk.disk, 0.0))
            .collect();
        excess.extend(disks_of_group.leaving.iter().map(|disk| (*disk, 0.0)));
        let mut on: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        let mut total = 0.0;
        for (extent, disks) in lying.disks.iter().enumerate() {
            // Copies on disks that are offline stay there.
            if let Some(of_disk) = excess.get_mut(&disks[copy]) {
                *of_disk += f64::from(lying.aus[extent]);
                total += f64::from(lying.aus[extent]);
                on.entry(disks[copy]).or_default().push(extent);
            }
        }
        let all: f64 = disks_of_group
            .candidates
            .iter()
            .map(|disk| f64::from(disk.data_aus))
            .sum();
        for disk in disks_of_group.candidates {
            *excess.entry(disk.disk).or_default() -= total * f64::from(disk.data_aus) / all;
        }
        Role {
            disks_of_group,
            copy,
            excess,
            on,
        }
    }

    fn level(&mut self, lying: &mut Lying, moves: &mut Vec<Move>) {
        while let Some((from, to, at)) = self.next(lying) {
            let extent = self
                .on
                .get_mut(&from)
                .expect("it lies there")
                .swap_remove(at);
            let aus = f64::from(lying.aus[extent]);
            lying.disks[extent][self.copy] = to;
            self.on.entry(to).or_default().push(extent);
            *self.excess.entry(from).or_default() -= aus;
            *self.excess.entry(to).or_default() += aus;
            moves.push(Move {
                extent,
                copy: self.copy,
                to,
            });
        }
    }

    /// The best move: from where, to where, and which of the extents there.
    fn next(&self, lying: &Lying) -> Option<(u16, u16, usize)> {
        let is_leaving = |disk: u16| self.disks_of_group.leaving.contains(&disk);
        let mut from: Vec<(u16, f64)> = self
            .excess
            .iter()
            .map(|(disk, excess)| (*disk, *excess))
            .collect();
        let mut to: Vec<(u16, f64)> = from
            .iter()
            .copied()
            .filter(|(disk, _)| !is_leaving(*disk))
            .collect();
        from.sort_by(|one, other| {
            (!is_leaving(one.0), other.1)
                .partial_cmp(&(!is_leaving(other.0), one.1))
                .expect("numbers")
        });
        to.sort_by(|one, other| one.1.total_cmp(&other.1));
        for (source, above) in from {
            let Some(extents) = self.on.get(&source).filter(|extents| !extents.is_empty()) else {
                continue;
            };
            for (target, below) in &to {
                let gains = |extent: usize| {
                    is_leaving(source) || above - below > f64::from(lying.aus[extent]) + 1e-6
                };
                let fits = |extent: &usize| {
                    gains(*extent) && self.is_allowed(&lying.disks[*extent], *target)
                };
                if source != *target
                    && let Some(at) = extents.iter().position(fits)
                {
                    return Some((source, *target, at));
                }
            }
        }
        None
    }

    /// Whether the copy may lie there beside the others.
    fn is_allowed(&self, disks: &[u16], to: u16) -> bool {
        let group = |disk: u16| self.disks_of_group.failure_groups.get(&disk);
        let others = disks
            .iter()
            .enumerate()
            .filter(|(copy, _)| *copy != self.copy);
        others
            .map(|(_, disk)| *disk)
            .all(|disk| disk != to && group(disk) != group(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Group {
        candidates: Vec<Candidate>,
        groups: BTreeMap<u16, String>,
    }

    fn group(failure_groups: &[&str], leaving: &[u16]) -> Group {
        let all = || (0..).zip(failure_groups);
        let stays = all().filter(|(disk, _)| !leaving.contains(disk));
        Group {
            candidates: stays
                .map(|(disk, group)| Candidate {
                    disk,
                    failure_group: (*group).to_owned(),
                    data_aus: 1000,
                })
                .collect(),
            groups: all()
                .map(|(disk, group)| (disk, (*group).to_owned()))
                .collect(),
        }
    }

    fn planned(group: &Group, leaving: &[u16], disks: Vec<Vec<u16>>) -> (Vec<Move>, Vec<Vec<u16>>) {
        let disks_of_group = RebalanceDisks {
            candidates: &group.candidates,
            leaving,
            failure_groups: &group.groups,
        };
        let mut after = disks.clone();
        let aus = vec![1; disks.len()];
        let moves = plan(&disks_of_group, Lying { disks, aus });
        for step in &moves {
            after[step.extent][step.copy] = step.to;
        }
        (moves, after)
    }

    fn counts(disks: &[Vec<u16>], count: u16) -> Vec<usize> {
        let of = |disk| {
            disks
                .iter()
                .flatten()
                .filter(|other| **other == disk)
                .count()
        };
        (0..count).map(of).collect()
    }

    #[test]
    fn a_new_disk_gets_its_share_and_no_more_is_moved() {
        let group = group(&["a", "b", "c", "d"], &[]);
        let disks = (0..300).map(|extent| vec![extent % 3]).collect();
        let (moves, after) = planned(&group, &[], disks);
        assert_eq!(counts(&after, 4), [75; 4]);
        assert_eq!(moves.len(), 75);
        assert!(planned(&group, &[], after).0.is_empty(), "it is even");
    }

    #[test]
    fn copies_stay_in_different_failure_groups() {
        let names = ["a", "a", "b", "b", "a", "b"];
        let group = group(&names, &[]);
        let disks: Vec<Vec<u16>> = (0..200)
            .map(|extent| vec![extent % 2, 2 + extent / 2 % 2])
            .collect();
        let (_, after) = planned(&group, &[], disks);
        for disks in &after {
            assert_ne!(names[usize::from(disks[0])], names[usize::from(disks[1])]);
        }
        // Primaries stay in `a`, second copies in `b`: one of the two has to stay where it is while the other moves.
        for count in counts(&after, 6) {
            assert!((66..=67).contains(&count), "{:?}", counts(&after, 6));
        }
    }

    #[test]
    fn a_leaving_disk_is_emptied() {
        let group = group(&["a", "b", "c", "d"], &[2]);
        let disks = (0..90)
            .map(|extent| vec![extent % 4, (extent + 1) % 4])
            .collect();
        let (_, after) = planned(&group, &[2], disks);
        let counts = counts(&after, 4);
        assert_eq!(counts[2], 0);
        assert_eq!(counts.iter().sum::<usize>(), 180);
        assert!(
            [0, 1, 3]
                .iter()
                .all(|disk| (59..=61).contains(&counts[*disk])),
            "{counts:?}"
        );
        assert!(after.iter().all(|disks| disks[0] != disks[1]));
    }

    #[test]
    fn what_may_go_nowhere_stays() {
        let group = group(&["a", "b"], &[1]);
        let (moves, _) = planned(&group, &[1], vec![vec![0, 1]]);
        assert!(moves.is_empty());
    }
}
