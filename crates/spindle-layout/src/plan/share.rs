//! `share = "fair"`: the same devices cut into equal parts for all candidates that name them, so that none is favoured.
//! The outer tracks of a disk are faster than the inner ones, so places go round: of n devices cut into k parts for k
//! candidates, candidate j gets part (j + d) mod k of device d. When n is a multiple of k, everyone has every place
//! equally often: with two candidates and four disks, two outer and two inner parts each (as in the study of ASM and
//! LVM on Oracle 10g). Else each device is cut into 2k parts, and candidate j gets the j-th from outside and the j-th
//! from inside.

use std::collections::BTreeMap;
use std::path::Path;

use super::Facts;
use super::{
    LEAST_DEVICE_BYTES, Obstacle, Piece, Prepared, device_step, is_file, name_of, prepare_devices,
};
use crate::spec::{DeviceSpec, LayoutSpec};
use crate::steps::{AttachLoop, CutDevice, DeviceName, MakeFile, Step};

/// Parts begin and end at multiples of this; the first and the last of a device belong to its partition table.
const ALIGNMENT_BYTES: u64 = 1 << 20;

/// What the layouts that share get.
#[derive(Debug, Default)]
pub(super) struct Shares {
    steps: Vec<Step>,
    parts: BTreeMap<usize, Prepared>,
}

impl Shares {
    pub fn steps(self) -> Vec<Step> {
        self.steps
    }

    /// What a layout that shares stands on.
    pub fn parts_of(&mut self, layout: usize) -> Prepared {
        self.parts
            .remove(&layout)
            .unwrap_or_else(|| Ok((Vec::new(), Vec::new())))
    }
}

/// Layouts that share devices with each other, by their numbers.
fn groups(specs: &[LayoutSpec]) -> Vec<Vec<usize>> {
    let sharing: Vec<usize> = (0..specs.len())
        .filter(|index| specs[*index].share.is_some())
        .collect();
    let mut done = Vec::new();
    let mut groups = Vec::new();
    for &first in &sharing {
        if done.contains(&first) {
            continue;
        }
        let touches = |other: &&usize| {
            let names = |path: &Path| {
                specs[**other]
                    .devices
                    .iter()
                    .any(|device| device.path() == path)
            };
            specs[first]
                .devices
                .iter()
                .any(|device| names(device.path()))
        };
        let group: Vec<usize> = sharing.iter().filter(touches).copied().collect();
        done.extend(&group);
        groups.push(group);
    }
    groups
}

/// For each layout of a group, that another of it names other devices; nothing when all name the same.
fn unequal(specs: &[LayoutSpec], group: &[usize]) -> Option<Vec<(usize, Obstacle)>> {
    let first = group[0];
    let is_different = |other: &&usize| specs[**other].devices != specs[first].devices;
    let other = *group.iter().find(is_different)?;
    let obstacle = |index: &usize| {
        let other = if *index == other { first } else { other };
        let other = specs[other].name.clone();
        (*index, Obstacle::UnequalShare { other })
    };
    Some(group.iter().map(obstacle).collect())
}

/// How many parts each layout that shares gets; why it gets none.
pub(super) fn pieces_of(specs: &[LayoutSpec]) -> BTreeMap<usize, Result<usize, Obstacle>> {
    let mut pieces = BTreeMap::new();
    for group in groups(specs) {
        match unequal(specs, &group) {
            Some(unequal) => pieces.extend(
                unequal
                    .into_iter()
                    .map(|(index, obstacle)| (index, Err(obstacle))),
            ),
            None => {
                let (_, fair) = fair_parts(group.len(), specs[group[0]].devices.len());
                let counts = fair.iter().map(|parts| parts.iter().map(Vec::len).sum());
                pieces.extend(group.into_iter().zip(counts.map(Ok)));
            }
        }
    }
    pieces
}

/// Cuts the devices of all layouts that share.
pub(super) fn cut(specs: &[LayoutSpec], facts: &Facts) -> Shares {
    let mut shares = Shares::default();
    for group in groups(specs) {
        match unequal(specs, &group) {
            Some(unequal) => shares.parts.extend(
                unequal
                    .into_iter()
                    .map(|(index, obstacle)| (index, Err(vec![obstacle]))),
            ),
            None => cut_group(specs, facts, &group, &mut shares),
        }
    }
    shares
}

/// For each candidate, the parts it gets of each device, and into how many a device is cut.
pub(super) fn fair_parts(candidates: usize, devices: usize) -> (usize, Vec<Vec<Vec<usize>>>) {
    let goes_round = devices.is_multiple_of(candidates);
    let parts = if goes_round {
        candidates
    } else {
        2 * candidates
    };
    let of = |candidate: usize, device: usize| {
        if goes_round {
            vec![(candidate + device) % candidates]
        } else {
            vec![candidate, parts - 1 - candidate]
        }
    };
    let all = |candidate| (0..devices).map(|device| of(candidate, device)).collect();
    (parts, (0..candidates).map(all).collect())
}

/// Cuts devices that all layouts of `group` name in the same order.
fn cut_group(specs: &[LayoutSpec], facts: &Facts, group: &[usize], shares: &mut Shares) {
    let first = &specs[group[0]];
    let (parts, fair) = fair_parts(group.len(), first.devices.len());
    match equal_part_bytes(first, facts, parts) {
        Err(obstacles) => {
            for index in group {
                shares.parts.insert(*index, Err(obstacles.clone()));
            }
        }
        Ok(part_bytes) => {
            let devices = first.devices.iter();
            let mut of_devices: Vec<(Vec<Step>, Vec<Vec<Step>>)> = devices
                .map(|device| cut_one(device, first, facts, parts, part_bytes))
                .collect();
            for (candidate, index) in group.iter().enumerate() {
                let (mut steps, mut pieces) = (Vec::new(), Vec::new());
                for (device, mine) in fair[candidate].iter().enumerate() {
                    for part in mine {
                        steps.append(&mut of_devices[device].1[*part]);
                        let name = part_name(&first.devices[device], *part, parts);
                        pieces.push(Piece {
                            name,
                            size_bytes: part_bytes,
                        });
                    }
                }
                shares.parts.insert(*index, Ok((steps, pieces)));
            }
            shares
                .steps
                .extend(of_devices.into_iter().flat_map(|(steps, _)| steps));
        }
    }
}

/// The size of every part of every device: the smallest device decides.
fn equal_part_bytes(spec: &LayoutSpec, facts: &Facts, parts: usize) -> Result<u64, Vec<Obstacle>> {
    let (_, pieces) = prepare_devices(spec, facts)?;
    let smallest = pieces.iter().zip(&spec.devices).map(|(piece, device)| {
        // Room for a partition table at both ends.
        let table_bytes = if is_file(device) {
            0
        } else {
            2 * ALIGNMENT_BYTES
        };
        let part_bytes = piece.size_bytes.saturating_sub(table_bytes) / parts as u64;
        (part_bytes / ALIGNMENT_BYTES * ALIGNMENT_BYTES, device)
    });
    match smallest.min_by_key(|(part_bytes, _)| *part_bytes) {
        Some((part_bytes, device)) if part_bytes < LEAST_DEVICE_BYTES => {
            Err(vec![Obstacle::PartsTooSmall {
                path: device.path().to_owned(),
                parts,
                least_mib: LEAST_DEVICE_BYTES >> 20,
            }])
        }
        smallest => Ok(smallest.map_or(0, |(part_bytes, _)| part_bytes)),
    }
}

/// Steps that cut a device, and for each part the steps that make it ready. Without root a file cannot be cut: each
/// part is a file then.
fn cut_one(
    device: &DeviceSpec,
    spec: &LayoutSpec,
    facts: &Facts,
    parts: usize,
    part_bytes: u64,
) -> (Vec<Step>, Vec<Vec<Step>>) {
    let names: Vec<DeviceName> = (0..parts)
        .map(|part| part_name(device, part, parts))
        .collect();
    match device {
        DeviceSpec::File { path, .. } if !facts.is_root => {
            let make = |(part, name): (usize, &DeviceName)| {
                let mut path = path.clone().into_os_string();
                path.push(format!(".part{}", part + 1));
                vec![Step::from(MakeFile {
                    device: name.clone(),
                    path: path.into(),
                    size_bytes: part_bytes,
                })]
            };
            (Vec::new(), names.iter().enumerate().map(make).collect())
        }
        DeviceSpec::File { .. } => {
            let attach = |(part, name): (usize, &DeviceName)| {
                vec![Step::from(AttachLoop {
                    file: name_of(device),
                    device: name.clone(),
                    offset_bytes: part as u64 * part_bytes,
                    size_bytes: part_bytes,
                })]
            };
            let make = device_step(device, spec, facts).map(|(step, _)| step);
            (
                make.into_iter().collect(),
                names.iter().enumerate().map(attach).collect(),
            )
        }
        DeviceSpec::Existing(_) => {
            let claim = device_step(device, spec, facts).map(|(step, _)| step);
            let mut steps: Vec<Step> = claim.into_iter().collect();
            steps.push(Step::from(CutDevice {
                device: name_of(device),
                parts: names,
                part_bytes,
            }));
            (steps, vec![Vec::new(); parts])
        }
    }
}

fn part_name(device: &DeviceSpec, part: usize, parts: usize) -> DeviceName {
    format!("{} part {} of {parts}", name_of(device), part + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_candidates_on_four_disks_get_two_outer_and_two_inner_parts() {
        let (parts, fair) = fair_parts(2, 4);
        assert_eq!(parts, 2);
        assert_eq!(fair[0], [[0], [1], [0], [1]]);
        assert_eq!(fair[1], [[1], [0], [1], [0]]);
    }

    #[test]
    fn every_part_is_given_once_and_nobody_is_favoured() {
        for candidates in 1..6 {
            for devices in 1..9 {
                let (parts, fair) = fair_parts(candidates, devices);
                for device in 0..devices {
                    let mut given: Vec<usize> =
                        fair.iter().flat_map(|mine| mine[device].clone()).collect();
                    given.sort_unstable();
                    assert_eq!(given, (0..parts).collect::<Vec<_>>());
                }
                let distance = |mine: &Vec<Vec<usize>>| mine.iter().flatten().sum::<usize>();
                let first = distance(&fair[0]);
                assert!(
                    fair.iter().all(|mine| distance(mine) == first),
                    "{candidates} on {devices}"
                );
            }
        }
    }
}
