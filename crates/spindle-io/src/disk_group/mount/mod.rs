//! Mounting a group: finding its disks by their headers, its newest metadata, and making copies equal that a crash may
//! have left different.
//!
//! Which metadata are the newest can be told when more than half of the disks that they call online are present. A
//! change that took disks offline is on all that stayed, never fewer than half. With fewer, the missing ones may have
//! continued alone, and the group is mounted only when the caller says so ([`MountOptions::force`]), as in Oracle.

mod create;
pub(crate) mod disks;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::device::{BlockDevice, IoError};
use crate::disk_group::disk::disk_io::Device;
use crate::disk_group::disk::format::{DiskHeader, Membership, id_words};
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::extents::map::ExtentMap;
use crate::disk_group::extents::space::Space;
use crate::disk_group::metadata::state::{Redundancy, State};
use crate::disk_group::metadata::store::{Store, age};
use crate::disk_group::mount::disks::{
    ExaminedDisk, draw, header_of, look_at, member, write_header,
};
use crate::disk_group::mounted::change_map::ChangeMap;
use crate::disk_group::mounted::core::Core;
use crate::disk_group::mounted::members::Members;
use crate::disk_group::planted::{Planted, has_planted};
use crate::disk_group::{DiskGroup, MountOptions};
use crate::env::Env;

impl DiskGroup {
    /// Mounts the group whose disks these are, in any order, and repairs what a crash left. Disks may be missing if the
    /// others have every extent and are more than half. Errors: disks that are of no group, of another, given twice,
    /// out of date or missing. The caller must make sure that the group is mounted nowhere else: a `FileDevice` holds a
    /// lock.
    pub async fn mount(
        env: &Arc<dyn Env>,
        devices: &[Arc<dyn BlockDevice>],
    ) -> Result<DiskGroup, DiskGroupError> {
        mount(env, devices, &MountOptions::default()).await
    }

    /// As [`DiskGroup::mount`], with options.
    pub async fn mount_with(
        env: &Arc<dyn Env>,
        devices: &[Arc<dyn BlockDevice>],
        options: &MountOptions,
    ) -> Result<DiskGroup, DiskGroupError> {
        mount(env, devices, options).await
    }
}

/// What the disks of a group say, before it is decided which of them to believe.
struct Disks {
    found: Vec<(ExaminedDisk, Option<(State, Store)>)>,
    /// Devices that could not be read.
    unreadable: Vec<IoError>,
}

async fn look_at_all(devices: &[Device]) -> Result<Disks, DiskGroupError> {
    let mut disks = Disks {
        found: Vec::new(),
        unreadable: Vec::new(),
    };
    for device in devices {
        let looked = match look_at(device).await {
            Ok(found) => found,
            Err(DiskGroupError::Io(error)) => {
                disks.unreadable.push(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        disks.check_new(&looked)?;
        let header = &looked.header;
        match Store::read(device, header.layout, &header.group_id).await {
            Ok(metadata) => disks.found.push((looked, metadata)),
            Err(error) => disks.unreadable.push(error),
        }
    }
    Ok(disks)
}

impl Disks {
    /// Whether a disk may be one of these.
    fn check_new(&self, new: &ExaminedDisk) -> Result<(), DiskGroupError> {
        let header = &new.header;
        if header.membership == Membership::Former {
            return Err(DiskGroupError::Invalid {
                group: header.group_name.clone(),
                what: format!(
                    "{} was its disk {} and has been dropped from it",
                    new.device.name(),
                    header.disk_name
                ),
            });
        }
        let Some((first, _)) = self.found.first() else {
            return Ok(());
        };
        if first.header.group_id != header.group_id {
            return Err(DiskGroupError::OtherGroup {
                device: new.device.name().to_owned(),
                disk: header.disk_name.clone(),
                group: header.group_name.clone(),
                id: id_words(&header.group_id),
                expected: format!(
                    "{} ({})",
                    first.header.group_name,
                    id_words(&first.header.group_id)
                ),
            });
        }
        let is_same = |other: &ExaminedDisk| other.header.incarnation == header.incarnation;
        match self.found.iter().find(|(other, _)| is_same(other)) {
            None => Ok(()),
            Some((other, _)) => Err(DiskGroupError::Twice {
                first: other.device.name().to_owned(),
                second: new.device.name().to_owned(),
                disk: header.disk_name.clone(),
                group: header.group_name.clone(),
            }),
        }
    }

    /// The newest metadata.
    fn newest(&self) -> Result<State, DiskGroupError> {
        let group = self
            .found
            .first()
            .map_or_else(String::new, |(found, _)| found.header.group_name.clone());
        let damaged = |what: &str| DiskGroupError::Damaged {
            group: group.clone(),
            what: what.to_owned(),
        };
        let states = || {
            self.found
                .iter()
                .filter_map(|(_, metadata)| Some(&metadata.as_ref()?.0))
        };
        let Some(newest) = states().max_by_key(|state| age(state)) else {
            return Err(match self.unreadable.first() {
                Some(error) => DiskGroupError::Io(error.clone()),
                None => damaged("no disk has any that can be read (was the group ever finished?)"),
            });
        };
        if states().any(|state| state.epoch == newest.epoch && state.mount != newest.mount) {
            return Err(damaged(
                "its disks were mounted in two halves and changed on both sides; mount one half by force, and add the disks \
                 of the other to it again",
            ));
        }
        Ok(newest.clone())
    }
}

/// What the disks of a group come to, before anything is written.
pub(crate) struct Assembled {
    state: State,
    space: Space,
    members: Members,
    stores: BTreeMap<u16, Store>,
    /// Headers to be mended.
    repairs: Vec<(Device, DiskHeader)>,
    /// Disks that should be online and are not there.
    missing: Vec<u16>,
}

impl Assembled {
    pub(crate) fn into_core(self, env: &Arc<dyn Env>) -> Arc<Core> {
        let core = Core::new(env, self.state, self.space, self.members);
        core.book.lock().stores = self.stores;
        core
    }
}

/// Finds out what the group of these disks is, and whether it can go without those that are missing. Writes nothing.
pub(crate) async fn assemble(
    devices: &[Device],
    options: &MountOptions,
) -> Result<Assembled, DiskGroupError> {
    let disks = look_at_all(devices).await?;
    let state = disks.newest()?;
    let (members, stores, repairs) = attach(&disks, &state, options).await?;
    let missing: Vec<u16> = state
        .disks
        .iter()
        .filter(|(disk, entry)| entry.is_online && members.get(**disk).is_none())
        .map(|(disk, _)| *disk)
        .collect();
    check_missing(&state, &members, &missing, &disks.unreadable, options)?;
    let space = state.space().map_err(|misplaced| DiskGroupError::Damaged {
        group: state.group_name.clone(),
        what: misplaced.to_string(),
    })?;
    Ok(Assembled {
        state,
        space,
        members,
        stores,
        repairs,
        missing,
    })
}

/// Mounts the group whose disks these are.
async fn mount(
    env: &Arc<dyn Env>,
    devices: &[Device],
    options: &MountOptions,
) -> Result<DiskGroup, DiskGroupError> {
    let mut assembled = assemble(devices, options).await?;
    let state = &mut assembled.state;
    for disk in &assembled.missing {
        let entry = state.disks.get_mut(disk).expect("it is one of them");
        entry.is_online = false;
    }
    state.epoch += 1;
    state.mount = draw(env, &[state.mount, state.step, env.now()]);
    let repairs = std::mem::take(&mut assembled.repairs);
    let core = assembled.into_core(env);
    core.persist(None).await?;
    for (device, header) in repairs {
        write_header(&device, &header).await?;
    }
    resync(&core).await?;
    let group = DiskGroup { core };
    group.prefer_failure_group(options.preferred_failure_group.as_deref())?;
    Ok(group)
}

type Attached = (Members, BTreeMap<u16, Store>, Vec<(Device, DiskHeader)>);

/// Attaches the disks that are online, and says which headers are to be mended.
async fn attach(
    disks: &Disks,
    state: &State,
    options: &MountOptions,
) -> Result<Attached, DiskGroupError> {
    let (mut members, mut stores, mut repairs) = (Members::default(), BTreeMap::new(), Vec::new());
    for (found, metadata) in &disks.found {
        let (header, device) = (&found.header, &found.device);
        let Some(entry) = state.disks.get(&header.number) else {
            continue;
        };
        // A disk whose addition never ended, or that is offline, is left where it is.
        if entry.incarnation != header.incarnation || !entry.is_online {
            continue;
        }
        let step = metadata.as_ref().map_or(0, |(state, _)| state.step);
        if step + 1 < state.step {
            if options.force {
                continue;
            }
            return Err(DiskGroupError::Stale {
                group: state.group_name.clone(),
                disk: entry.name.clone(),
                device: device.name().to_owned(),
                has: step,
                others: state.step,
            });
        }
        let layout = state.layout_of(entry);
        if layout != header.layout {
            return Err(DiskGroupError::Damaged {
                group: state.group_name.clone(),
                what: format!(
                    "the header of disk {} ({}) tells of other sizes than the group's metadata do",
                    entry.name,
                    device.name()
                ),
            });
        }
        if device.limits().capacity_bytes < u64::from(layout.total_aus) * layout.au_bytes {
            return Err(DiskGroupError::Damaged {
                group: state.group_name.clone(),
                what: format!("{} is smaller than disk {} was", device.name(), entry.name),
            });
        }
        let map = ChangeMap::read(device, entry.incarnation, layout).await?;
        members.set(member(state, header.number, device, map));
        let store = metadata
            .as_ref()
            .map_or(Store::blank(layout), |(_, store)| *store);
        stores.insert(header.number, store);
        if found.needs_repair {
            repairs.push((Arc::clone(device), header_of(state, header.number, entry)));
        }
    }
    Ok((members, stores, repairs))
}

/// Whether the group can go without the disks that are missing.
fn check_missing(
    state: &State,
    members: &Members,
    missing: &[u16],
    unreadable: &[IoError],
    options: &MountOptions,
) -> Result<(), DiskGroupError> {
    if missing.is_empty() {
        return Ok(());
    }
    let refused = |why: String| {
        let mut names: Vec<String> = missing
            .iter()
            .map(|disk| state.disks[disk].name.clone())
            .collect();
        names.extend(unreadable.iter().map(|error| format!("({error})")));
        Err(DiskGroupError::Missing {
            group: state.group_name.clone(),
            missing: names,
            why,
        })
    };
    if state.redundancy == Redundancy::External {
        return refused("with external redundancy every disk is needed".to_owned());
    }
    for file in state.files.values().filter(|file| file.map.copies() > 1) {
        for (number, extent) in file.map.extents().iter().enumerate() {
            if members.to_read(extent).is_none() {
                return refused(format!(
                    "they hold all copies of extent {number} of file {}",
                    file.name
                ));
            }
        }
    }
    let there = members.all().count();
    if !options.force && there <= missing.len() {
        return refused(
            "as many disks are missing as are there, and may have gone on without these; attach them, or mount by force if \
             you know that they have not"
                .to_owned(),
        );
    }
    Ok(())
}

/// Makes the copies of all extents equal that had writes under way when the group was last used.
async fn resync(core: &Arc<Core>) -> Result<(), DiskGroupError> {
    if has_planted(Planted::MountSkipsResync) {
        return Ok(());
    }
    for (map, number) in may_differ(core) {
        core.equalise(&map, number).await?;
    }
    core.clear_bits(false).await
}

/// The mirrored extents whose change map says that their copies may differ.
pub(crate) fn may_differ(core: &Core) -> Vec<(Arc<ExtentMap>, usize)> {
    let members = core.members.load_full();
    let mut found = Vec::new();
    for map in core.all_maps().iter().filter(|map| map.copies() > 1) {
        for (number, extent) in map.extents().iter().enumerate() {
            let mut copies = members.attached(extent);
            if copies.any(|(member, place)| member.map.is_set(place.au)) {
                found.push((Arc::clone(map), number));
            }
        }
    }
    found
}
