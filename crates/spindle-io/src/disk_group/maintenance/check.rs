//! Whether a group is as it should be: all copies of every extent equal, the allocation table as the extent maps say,
//! and the metadata on every disk whole and the same.

use std::fmt;
use std::sync::Arc;

use crate::disk_group::DiskGroup;
use crate::disk_group::disk::disk_io;
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::extents::map::{ExtentMap, UnitPlace};
use crate::disk_group::metadata::store::Store;
use crate::disk_group::mount::disks::look_at;
use crate::disk_group::mounted::core::Core;
use crate::disk_group::mounted::members::Member;

/// Bytes compared at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupFinding {
    /// Copies of an extent differ.
    CopiesDiffer {
        /// The file.
        file: String,
        /// Number of the extent.
        extent: usize,
        /// First byte of the file that differs.
        at: u64,
        /// Disks, by what they hold: those of one list agree. The longest list comes first.
        disks: Vec<Vec<String>>,
    },
    /// A copy could not be read.
    Unreadable {
        /// The file.
        file: String,
        /// Number of the extent.
        extent: usize,
        /// The disk, and why.
        disk: String,
        /// The system's words.
        reason: String,
    },
    /// A copy is on a disk that is offline, so that the extent has fewer than it should.
    Missing {
        /// The file.
        file: String,
        /// Extents with a copy there.
        extents: usize,
        /// The disk.
        disk: String,
    },
    /// The allocation table says otherwise than the extent maps.
    Allocation(String),
    /// Metadata of a disk are not as those in memory.
    Metadata {
        /// The disk.
        disk: String,
        /// What is wrong.
        what: String,
    },
}

impl fmt::Display for GroupFinding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupFinding::CopiesDiffer {
                file,
                extent,
                at,
                disks,
            } => {
                let lists: Vec<String> = disks.iter().map(|disks| disks.join(", ")).collect();
                let sides = lists.join(" | ");
                write!(
                    to,
                    "file {file}, extent {extent}: copies differ from byte {at} of the file on; disks {sides}"
                )
            }
            GroupFinding::Unreadable {
                file,
                extent,
                disk,
                reason,
            } => write!(
                to,
                "file {file}, extent {extent}: the copy on disk {disk} cannot be read: {reason}"
            ),
            GroupFinding::Missing {
                file,
                extents,
                disk,
            } => write!(
                to,
                "file {file}: {extents} extents have a copy on disk {disk}, which is offline"
            ),
            GroupFinding::Allocation(what) => write!(to, "allocation table: {what}"),
            GroupFinding::Metadata { disk, what } => write!(to, "disk {disk}: {what}"),
        }
    }
}

/// What a check looked at, and found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    /// Extents whose copies were compared.
    pub extents: u64,
    /// Bytes read for it.
    pub bytes: u64,
    /// What is not as it should be; empty when all is well.
    pub findings: Vec<GroupFinding>,
}

impl DiskGroup {
    /// Reads and compares every copy of every extent, and the metadata of every disk. Writes to an extent wait while it
    /// is compared. Errors: the group is dismounted.
    pub async fn check(&self) -> Result<CheckReport, DiskGroupError> {
        self.check_while(&|| true).await
    }

    /// The same, as long as `go_on` says so, which is asked before each extent. Errors: as there.
    pub async fn check_while(
        &self,
        go_on: &(dyn Fn() -> bool + Send + Sync),
    ) -> Result<CheckReport, DiskGroupError> {
        let core = &self.core;
        core.check_mounted()?;
        let mut report = CheckReport::default();
        core.check_metadata(&mut report).await?;
        let files: Vec<(String, Arc<ExtentMap>)> = {
            let book = core.book.lock();
            let files = book.state.files.values();
            files
                .map(|file| (file.name.clone(), Arc::clone(&file.map)))
                .collect()
        };
        for (name, map) in &files {
            for number in 0..map.extents().len() {
                if !go_on() {
                    return Ok(report);
                }
                let _locked = map.lock_writes(number).await;
                core.check_extent(name, map, number, &mut report).await;
            }
        }
        core.check_offline(&files, &mut report);
        Ok(report)
    }
}

impl Core {
    async fn check_metadata(&self, report: &mut CheckReport) -> Result<(), DiskGroupError> {
        let _turn = self.turn().await?;
        let (state, space, reserved) = {
            let book = self.book.lock();
            (
                book.state.clone(),
                book.space.clone(),
                book.creations.iter().any(|map| map.strong_count() > 0),
            )
        };
        match state.space() {
            Err(misplaced) => {
                report
                    .findings
                    .push(GroupFinding::Allocation(misplaced.to_string()));
            }
            // Files that are being made have space that no extent map knows.
            Ok(of_maps) if of_maps != space && !reserved => {
                let what = "it has space in use that belongs to no extent, or the other way round"
                    .to_owned();
                report.findings.push(GroupFinding::Allocation(what));
            }
            Ok(_) => {}
        }
        let expected = state.encode();
        let members = self.members.load_full();
        for member in members.all() {
            let found = Store::read(&member.device, member.layout, &state.group_id).await;
            let what = match (found, look_at(&member.device).await) {
                (Err(error), _) => Some(format!("its metadata cannot be read: {error}")),
                (_, Err(error)) => Some(format!("its header cannot be read: {error}")),
                (_, Ok(looked)) if looked.needs_repair => {
                    Some("one copy of its header is damaged; a mount repairs it".to_owned())
                }
                (Ok(Some((found, _))), _) if found.encode() == expected => None,
                _ => Some("its metadata are not those of the group".to_owned()),
            };
            let disk = member.name.clone();
            report
                .findings
                .extend(what.map(|what| GroupFinding::Metadata { disk, what }));
        }
        Ok(())
    }

    async fn check_extent(
        &self,
        file: &str,
        map: &ExtentMap,
        extent: usize,
        report: &mut CheckReport,
    ) {
        let members = self.members.load_full();
        let copies: Vec<(&Arc<Member>, UnitPlace)> =
            members.attached(&map.extents()[extent]).collect();
        report.extents += 1;
        let bytes = map.shape.extent_bytes(extent);
        for at in (0..bytes).step_by(PIECE_BYTES as usize) {
            let length = PIECE_BYTES.min(bytes - at) as usize;
            let mut read = Vec::new();
            for (member, place) in &copies {
                match disk_io::read(&member.device, member.byte_of(*place) + at, length).await {
                    Ok(hold) => read.push((&member.name, hold)),
                    Err(error) => report.findings.push(GroupFinding::Unreadable {
                        file: file.to_owned(),
                        extent,
                        disk: member.name.clone(),
                        reason: error.to_string(),
                    }),
                }
                report.bytes += length as u64;
            }
            let Some(differs) = first_difference(&read) else {
                continue;
            };
            let mut disks: Vec<(usize, Vec<String>)> = Vec::new();
            for (number, (name, hold)) in read.iter().enumerate() {
                let alike = disks
                    .iter_mut()
                    .find(|(first, _)| read[*first].1[..] == hold[..]);
                match alike {
                    Some((_, list)) => list.push((*name).clone()),
                    None => disks.push((number, vec![(*name).clone()])),
                }
            }
            disks.sort_by_key(|(_, list)| std::cmp::Reverse(list.len()));
            report.findings.push(GroupFinding::CopiesDiffer {
                file: file.to_owned(),
                extent,
                at: map.shape.byte_at(extent, at + differs),
                disks: disks.into_iter().map(|(_, list)| list).collect(),
            });
            return;
        }
    }

    fn check_offline(&self, files: &[(String, Arc<ExtentMap>)], report: &mut CheckReport) {
        let members = self.members.load_full();
        let disks = self.book.lock().state.disks.clone();
        for (number, entry) in &disks {
            if members.get(*number).is_some() {
                continue;
            }
            for (file, map) in files {
                let on_it = |extent: &&crate::disk_group::extents::map::Extent| {
                    extent.places().any(|place| place.disk == *number)
                };
                let extents = map.extents().iter().filter(on_it).count();
                if extents > 0 {
                    report.findings.push(GroupFinding::Missing {
                        file: file.clone(),
                        extents,
                        disk: entry.name.clone(),
                    });
                }
            }
        }
    }
}

fn first_difference(read: &[(&String, crate::arena::WriteHold)]) -> Option<u64> {
    let (_, first) = read.first()?;
    let differs = |(_, other): &(&String, crate::arena::WriteHold)| {
        if first[..] == other[..] {
            return None;
        }
        first
            .iter()
            .zip(other.iter())
            .position(|(one, other)| one != other)
    };
    read[1..]
        .iter()
        .filter_map(differs)
        .min()
        .map(|at| at as u64)
}
