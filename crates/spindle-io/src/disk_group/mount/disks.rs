//! What a disk of a group looks like: its header on a device, its entry in the metadata, and the disk as it is
//! attached.

use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use spindle_text::quantity::size;

use crate::device::IoError;
use crate::disk_group::Disk;
use crate::disk_group::disk::disk_io::{self, Device};
use crate::disk_group::disk::format::{
    ALLOCATION_UNIT_BYTES_MIN, BLOCK_BYTES, DISKS_MAX, DiskHeader, DiskLayout, Membership,
    backup_places, check_name, id_words,
};
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::metadata::state::{DiskEntry, State};
use crate::disk_group::mounted::change_map::ChangeMap;
use crate::disk_group::mounted::members::Member;
use crate::env::Env;

/// The world's stream of chance for identities.
const STREAM: u64 = 0x0044_4953_4B47_5250;

/// A number that no other group, disk or mount is likely to have: the world's chance, its time, and what is known here.
pub(crate) fn draw(env: &Arc<dyn Env>, known: &[u64]) -> u64 {
    let mut drawn = env.rng(STREAM ^ env.now()).next_u64();
    for value in known {
        drawn = (drawn ^ value)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(31);
    }
    drawn
}

/// A device that has been looked at.
pub(crate) struct ExaminedDisk {
    pub(crate) device: Device,
    pub(crate) header: DiskHeader,
    /// One of the two copies of the header is not as it should be.
    pub(crate) needs_repair: bool,
}

/// What is on a device. Errors: it is no disk of a group, or cannot be read.
pub(crate) async fn look_at(device: &Device) -> Result<ExaminedDisk, DiskGroupError> {
    let capacity_bytes = device.limits().capacity_bytes;
    let no_disk = || DiskGroupError::NoDisk {
        device: device.name().to_owned(),
    };
    if capacity_bytes < 2 * ALLOCATION_UNIT_BYTES_MIN {
        return Err(no_disk());
    }
    let first = DiskHeader::decode(&disk_io::read(device, 0, BLOCK_BYTES).await?);
    let found = |header, needs_repair| ExaminedDisk {
        device: Arc::clone(device),
        header,
        needs_repair,
    };
    if let Some(header) = first {
        let backup = disk_io::read(device, header.layout.backup_at(), BLOCK_BYTES).await?;
        let is_same = DiskHeader::decode(&backup).as_ref() == Some(&header);
        return Ok(found(header, !is_same));
    }
    let mut copies: Vec<DiskHeader> = Vec::new();
    for (au_bytes, place) in backup_places(capacity_bytes) {
        let backup = disk_io::read(device, place, BLOCK_BYTES).await?;
        let header = DiskHeader::decode(&backup);
        copies.extend(header.filter(|header| header.layout.au_bytes == au_bytes));
    }
    if copies.len() > 1 {
        let named = copies.iter().map(|header| {
            let (disk, group) = (&header.disk_name, &header.group_name);
            format!("{disk} of {group} ({})", id_words(&header.group_id))
        });
        return Err(DiskGroupError::Several {
            device: device.name().to_owned(),
            copies: named.collect(),
        });
    }
    if let Some(header) = copies.pop() {
        return Ok(found(header, true));
    }
    Err(no_disk())
}

/// Removes whatever header a disk bears, and the copies of those of all groups that it may have been in: where a copy
/// lies depends on the allocation unit.
pub(crate) async fn wipe_headers(device: &Device) -> Result<(), IoError> {
    disk_io::write(device, 0, &[0; BLOCK_BYTES]).await?;
    for (_, place) in backup_places(device.limits().capacity_bytes) {
        disk_io::write(device, place, &[0; BLOCK_BYTES]).await?;
    }
    Ok(())
}

/// Writes both copies of a header; the first one last, by which a disk is found.
pub(crate) async fn write_header(device: &Device, header: &DiskHeader) -> Result<(), IoError> {
    let block = header.encode();
    disk_io::write(device, header.layout.backup_at(), &block).await?;
    disk_io::write(device, 0, &block).await
}

/// The header of a disk of the group.
pub(crate) fn header_of(state: &State, disk: u16, entry: &DiskEntry) -> DiskHeader {
    DiskHeader {
        group_id: state.group_id,
        group_name: state.group_name.clone(),
        disk_name: entry.name.clone(),
        failure_group: entry.failure_group.clone(),
        incarnation: entry.incarnation,
        number: disk,
        membership: Membership::Member,
        layout: state.layout_of(entry),
    }
}

/// The layout of a new disk. Errors: its name, its failure group, its size, or its device's alignment.
pub(crate) fn new_layout(
    group: &str,
    au_bytes: u64,
    number: u16,
    disk: &Disk,
) -> Result<DiskLayout, DiskGroupError> {
    let invalid = |what: String| DiskGroupError::Invalid {
        group: group.to_owned(),
        what,
    };
    check_name(group, "disk", &disk.name)?;
    check_name(group, "failure group", failure_group_of(disk))?;
    if number >= DISKS_MAX {
        return Err(invalid(format!(
            "it has had {DISKS_MAX} disks, which is the most"
        )));
    }
    let limits = disk.device.limits();
    if limits.alignment_bytes as usize > BLOCK_BYTES {
        return Err(invalid(format!(
            "{} wants I/O aligned to {}; at most {} is allowed",
            disk.device.name(),
            size(limits.alignment_bytes.into()),
            size(BLOCK_BYTES as u64)
        )));
    }
    DiskLayout::new(limits.capacity_bytes, au_bytes)
        .map_err(|why| invalid(format!("{} is too small: {why}", disk.device.name())))
}

/// The entry of a new disk. Errors: see [`new_layout`].
pub(crate) fn new_entry(
    env: &Arc<dyn Env>,
    group: &str,
    au_bytes: u64,
    number: u16,
    disk: &Disk,
) -> Result<DiskEntry, DiskGroupError> {
    let layout = new_layout(group, au_bytes, number, disk)?;
    let capacity_bytes = disk.device.limits().capacity_bytes;
    Ok(DiskEntry {
        name: disk.name.clone(),
        failure_group: failure_group_of(disk).to_owned(),
        incarnation: draw(env, &[u64::from(number), capacity_bytes]),
        total_aus: layout.total_aus,
        slot_aus: layout.slot_aus,
        is_online: true,
        is_leaving: false,
    })
}

/// A disk of which no failure group is said is one.
pub(crate) fn failure_group_of(disk: &Disk) -> &str {
    disk.failure_group.as_deref().unwrap_or(&disk.name)
}

/// Errors: two of the names are the same.
pub(crate) fn check_names<'a>(
    group: &str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), DiskGroupError> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(DiskGroupError::Invalid {
            group: group.to_owned(),
            what: format!("two disks are called {}: each needs its own name", pair[0]),
        }),
    }
}

/// A disk as it is attached.
pub(crate) fn member(state: &State, disk: u16, device: &Device, map: ChangeMap) -> Member {
    let entry = &state.disks[&disk];
    Member {
        disk,
        name: entry.name.clone(),
        failure_group: entry.failure_group.clone(),
        device: Arc::clone(device),
        layout: state.layout_of(entry),
        is_suspect: false,
        is_preferred: false,
        map: Arc::new(map),
    }
}
