//! Making a group, and mounting one: finding its disks by their headers, its newest metadata, and making copies equal
//! that a crash may have left different.
//!
//! Which metadata are the newest can be told when more than half of the disks that they call online are there: a change
//! that took disks offline is on all that stayed, never fewer than half. With fewer, the missing ones may have gone on
//! alone, and the group is mounted only when somebody says so ([`MountOptions::force`]), as in Oracle.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;

use crate::device::IoError;
use crate::disk_group::change_map::ChangeMap;
use crate::disk_group::core::Core;
use crate::disk_group::disk_io::{self, Device};
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::format::{
    ALLOCATION_UNIT_BYTES_MAX, ALLOCATION_UNIT_BYTES_MIN, BLOCK_BYTES, DISKS_MAX, DiskHeader,
    DiskLayout, Membership, backup_at, check_name, id_words, is_allocation_unit,
};
use crate::disk_group::members::{Member, Members};
use crate::disk_group::planted::{Planted, has_planted};
use crate::disk_group::state::{DiskEntry, Moment, Redundancy, State};
use crate::disk_group::store::{Store, age};
use crate::disk_group::{Disk, DiskGroup, MountOptions, Options};
use crate::env::Env;

/// The world's stream of chance for identities.
const STREAM: u64 = 0x0044_4953_4B47_5250;

/// A number that no other group, disk or mount is likely to have: the world's chance, its time, and what is known here.
pub(super) fn draw(env: &Arc<dyn Env>, known: &[u64]) -> u64 {
    let mut drawn = env.rng(STREAM ^ env.now()).next_u64();
    for value in known {
        drawn = (drawn ^ value)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(31);
    }
    drawn
}

/// A device that has been looked at.
pub(super) struct Found {
    pub(super) device: Device,
    pub(super) header: DiskHeader,
    /// One of the two copies of the header is not as it should be.
    pub(super) needs_repair: bool,
}

/// What is on a device. Errors: it is no disk of a group, or cannot be read.
pub(super) async fn look_at(device: &Device) -> Result<Found, DiskGroupError> {
    let capacity_bytes = device.limits().capacity_bytes;
    let no_disk = || DiskGroupError::NoDisk {
        device: device.name().to_owned(),
    };
    if capacity_bytes < 2 * ALLOCATION_UNIT_BYTES_MIN {
        return Err(no_disk());
    }
    let first = DiskHeader::decode(&disk_io::read(device, 0, BLOCK_BYTES).await?);
    let found = |header, needs_repair| Found {
        device: Arc::clone(device),
        header,
        needs_repair,
    };
    if let Some(header) = first {
        let backup = disk_io::read(device, header.layout.backup_at(), BLOCK_BYTES).await?;
        let is_same = DiskHeader::decode(&backup).as_ref() == Some(&header);
        return Ok(found(header, !is_same));
    }
    let mut au_bytes = ALLOCATION_UNIT_BYTES_MIN;
    while au_bytes <= ALLOCATION_UNIT_BYTES_MAX && 2 * au_bytes <= capacity_bytes {
        let backup = disk_io::read(device, backup_at(au_bytes), BLOCK_BYTES).await?;
        let header = DiskHeader::decode(&backup);
        if let Some(header) = header.filter(|header| header.layout.au_bytes == au_bytes) {
            return Ok(found(header, true));
        }
        au_bytes *= 2;
    }
    Err(no_disk())
}

/// Writes both copies of a header; the first one last, by which a disk is found.
pub(super) async fn write_header(device: &Device, header: &DiskHeader) -> Result<(), IoError> {
    let block = header.encode();
    disk_io::write(device, header.layout.backup_at(), &block).await?;
    disk_io::write(device, 0, &block).await
}

/// The header of a disk of the group.
pub(super) fn header_of(state: &State, disk: u16, entry: &DiskEntry) -> DiskHeader {
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

/// The entry of a new disk. Errors: its name, its failure group, its size, or its device's alignment.
pub(super) fn new_entry(
    env: &Arc<dyn Env>,
    group: &str,
    au_bytes: u64,
    number: u16,
    disk: &Disk,
) -> Result<DiskEntry, DiskGroupError> {
    let invalid = |what: String| DiskGroupError::Invalid {
        group: group.to_owned(),
        what,
    };
    let failure_group = disk
        .failure_group
        .clone()
        .unwrap_or_else(|| disk.name.clone());
    check_name(group, "disk", &disk.name)?;
    check_name(group, "failure group", &failure_group)?;
    if number >= DISKS_MAX {
        return Err(invalid(format!(
            "it has had {DISKS_MAX} disks, which is the most"
        )));
    }
    let limits = disk.device.limits();
    if limits.alignment_bytes as usize > BLOCK_BYTES {
        return Err(invalid(format!(
            "{} wants I/O aligned to {} bytes; at most {BLOCK_BYTES} is allowed",
            disk.device.name(),
            limits.alignment_bytes
        )));
    }
    let layout = DiskLayout::new(limits.capacity_bytes, au_bytes)
        .map_err(|why| invalid(format!("{} is too small: {why}", disk.device.name())))?;
    Ok(DiskEntry {
        name: disk.name.clone(),
        failure_group,
        incarnation: draw(env, &[u64::from(number), limits.capacity_bytes]),
        total_aus: layout.total_aus,
        slot_aus: layout.slot_aus,
        is_online: true,
        is_leaving: false,
        last_online: Moment { mount: 0, step: 0 },
    })
}

fn check_options(name: &str, disks: &[Disk], options: &Options) -> Result<(), DiskGroupError> {
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
            "an allocation unit of {au_bytes} bytes is not possible: 1, 2, 4, 8, 16, 32 or 64 MiB are"
        ));
    }
    let mut groups: Vec<&str> = disks
        .iter()
        .map(|disk| disk.failure_group.as_deref().unwrap_or(&disk.name))
        .collect();
    groups.sort_unstable();
    groups.dedup();
    let needed = options.redundancy.copies();
    if groups.len() < needed {
        return invalid(format!(
            "{} redundancy needs {needed} failure groups or more, and the disks make {}",
            options.redundancy.name(),
            groups.len()
        ));
    }
    check_names(name, disks.iter().map(|disk| &*disk.name))
}

pub(super) fn check_names<'a>(
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
pub(super) fn member(state: &State, disk: u16, device: &Device, map: ChangeMap) -> Member {
    let entry = &state.disks[&disk];
    Member {
        disk,
        name: entry.name.clone(),
        failure_group: entry.failure_group.clone(),
        device: Arc::clone(device),
        layout: state.layout_of(entry),
        is_readable: true,
        is_suspect: false,
        is_preferred: false,
        map: Arc::new(map),
    }
}

/// Makes a group; whatever the disks held is lost.
pub(super) async fn create(
    env: &Arc<dyn Env>,
    name: &str,
    disks: Vec<Disk>,
    options: Options,
) -> Result<DiskGroup, DiskGroupError> {
    check_options(name, &disks, &options)?;
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
        disk_io::write(&disk.device, 0, &[0; BLOCK_BYTES]).await?;
        disk_io::write(&disk.device, backup_at(state.au_bytes), &[0; BLOCK_BYTES]).await?;
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

/// What the disks of a group say, before it is decided which of them to believe.
struct Disks {
    found: Vec<(Found, Option<(State, Store)>)>,
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
    fn check_new(&self, new: &Found) -> Result<(), DiskGroupError> {
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
        let is_same = |other: &Found| other.header.incarnation == header.incarnation;
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
                 of the other to it anew",
            ));
        }
        Ok(newest.clone())
    }
}

/// Mounts the group whose disks these are.
pub(super) async fn mount(
    env: &Arc<dyn Env>,
    devices: &[Device],
    options: &MountOptions,
) -> Result<DiskGroup, DiskGroupError> {
    let disks = look_at_all(devices).await?;
    let mut state = disks.newest()?;
    let (members, stores, repairs) = attach(&disks, &state, options).await?;
    let missing: Vec<u16> = state
        .disks
        .iter()
        .filter(|(disk, entry)| entry.is_online && members.get(**disk).is_none())
        .map(|(disk, _)| *disk)
        .collect();
    check_missing(&state, &members, &missing, &disks.unreadable, options)?;
    let space = state.space().map_err(|what| DiskGroupError::Damaged {
        group: state.group_name.clone(),
        what,
    })?;
    let last_online = state.moment();
    for disk in missing {
        let entry = state.disks.get_mut(&disk).expect("it is one of them");
        (entry.is_online, entry.last_online) = (false, last_online);
    }
    state.epoch += 1;
    state.mount = draw(env, &[state.mount, state.step, env.now()]);
    let core = Core::new(env, state, space, members);
    core.book.lock().stores = stores;
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
    for map in core.all_maps() {
        for number in 0..map.extents().len() {
            let members = core.members.load_full();
            let mut copies = members.to_write(&map.extents()[number]);
            if map.copies() > 1 && copies.any(|(member, place)| member.map.is_set(place.au)) {
                core.equalise(&map, number, None).await?;
            }
        }
    }
    core.clear_bits(false).await
}
