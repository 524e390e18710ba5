//! Making a group.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_text::quantity::size_exact;

use crate::disk_group::disk::format::{DiskHeader, check_name, is_allocation_unit};
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::metadata::state::State;
use crate::disk_group::mount::disks::{
    check_names, draw, failure_group_of, header_of, member, new_entry, new_layout, wipe_headers,
    write_header,
};
use crate::disk_group::mounted::change_map::ChangeMap;
use crate::disk_group::mounted::core::Core;
use crate::disk_group::mounted::members::Members;
use crate::disk_group::{Disk, DiskGroup, DiskGroupOptions};
use crate::env::Env;

impl DiskGroup {
    /// Makes a group of these disks and mounts it; what the disks held is lost. Errors: names, sizes, too few failure
    /// groups, or a disk that cannot be written.
    pub async fn create(
        env: &Arc<dyn Env>,
        name: &str,
        disks: Vec<Disk>,
        options: DiskGroupOptions,
    ) -> Result<DiskGroup, DiskGroupError> {
        create(env, name, disks, options).await
    }

    /// Whether a group can be made of these disks. Reads nothing of them, and writes nothing. Errors: names, sizes, too
    /// few failure groups.
    pub fn check_new(
        name: &str,
        disks: &[Disk],
        options: &DiskGroupOptions,
    ) -> Result<(), DiskGroupError> {
        check_options(name, disks, options)?;
        let au_bytes = options.allocation_unit_bytes;
        for (number, disk) in (0..).zip(disks) {
            new_layout(name, au_bytes, number, disk)?;
        }
        Ok(())
    }
}

fn check_options(
    name: &str,
    disks: &[Disk],
    options: &DiskGroupOptions,
) -> Result<(), DiskGroupError> {
    let invalid = |what: String| {
        Err(DiskGroupError::Invalid {
            group: name.to_owned(),
            what,
        })
    };
    check_name(name, "disk group", name)?;
    let au_bytes = options.allocation_unit_bytes;
    if !is_allocation_unit(au_bytes) {
        return invalid(format!(
            "an allocation unit of {} is not possible: 1, 2, 4, 8, 16, 32 or 64 MiB are",
            size_exact(au_bytes)
        ));
    }
    let mut groups: Vec<&str> = disks.iter().map(failure_group_of).collect();
    groups.sort_unstable();
    groups.dedup();
    let needed = options.redundancy.copies();
    if groups.len() < needed {
        return invalid(format!(
            "{} redundancy needs {needed} failure groups or more, and the disks make {}",
            options.redundancy.as_str(),
            groups.len()
        ));
    }
    check_names(name, disks.iter().map(|disk| &*disk.name))
}

/// Makes a group; whatever the disks held is lost.
async fn create(
    env: &Arc<dyn Env>,
    name: &str,
    disks: Vec<Disk>,
    options: DiskGroupOptions,
) -> Result<DiskGroup, DiskGroupError> {
    DiskGroup::check_new(name, &disks, &options)?;
    let letters = name.bytes().map(u64::from);
    let known: Vec<u64> = letters
        .chain(disks.iter().map(|disk| disk.device.limits().capacity_bytes))
        .collect();
    let (left, right) = (draw(env, &known), draw(env, &[known.len() as u64, 1]));
    let drawn = (u128::from(left) << 64 | u128::from(right)).to_le_bytes();
    let mut state = State {
        group_id: options.identity.unwrap_or(drawn),
        group_name: name.to_owned(),
        au_bytes: options.allocation_unit_bytes,
        redundancy: options.redundancy,
        step: 0,
        epoch: 1,
        mount: draw(env, &[2]),
        next_disk: disks.len() as u16,
        next_file: 0,
        disks: BTreeMap::new(),
        files: BTreeMap::new(),
    };
    for (number, disk) in (0..).zip(&disks) {
        let entry = new_entry(env, name, state.au_bytes, number, disk)?;
        state.disks.insert(number, entry);
    }
    let mut members = Members::default();
    for (number, disk) in (0..).zip(&disks) {
        let entry = &state.disks[&number];
        // What an earlier group left is not to be taken for this one's, whatever happens next.
        wipe_headers(&disk.device).await?;
        let map = ChangeMap::new(entry.incarnation, state.layout_of(entry), false);
        map.write(&disk.device).await?;
        members.set(member(&state, number, &disk.device, map));
    }
    let headers: Vec<DiskHeader> = state
        .disks
        .iter()
        .map(|(disk, entry)| header_of(&state, *disk, entry))
        .collect();
    let space = state.space().expect("there are no files");
    let core = Core::new(env, state, space, members);
    core.persist(None).await?;
    for (disk, header) in disks.iter().zip(&headers) {
        write_header(&disk.device, header).await?;
    }
    Ok(DiskGroup { core })
}
