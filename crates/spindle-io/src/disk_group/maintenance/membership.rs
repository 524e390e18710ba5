//! Disks that join a mounted group, leave it, and come back to it.

use std::sync::Arc;

use crate::device::BlockDevice;
use crate::disk_group::disk::disk_io::{self, Device};
use crate::disk_group::disk::format::{BLOCK_BYTES, Membership, backup_at, id_words};
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::extents::map::Extent;
use crate::disk_group::extents::space::DiskSpace;
use crate::disk_group::metadata::state::{Change, DiskEntry, MetadataVersion};
use crate::disk_group::metadata::store::Store;
use crate::disk_group::mount::disks::{
    check_names, header_of, look_at, member, new_entry, write_header,
};
use crate::disk_group::mounted::change_map::ChangeMap;
use crate::disk_group::mounted::core::{Book, Core};
use crate::disk_group::mounted::members::{Member, Members};
use crate::disk_group::planted::{Planted, has_planted};
use crate::disk_group::{Disk, DiskGroup};

impl DiskGroup {
    /// Adds disks; what they hold is lost. Files are spread to them by the next rebalance. Errors: names, sizes, or a
    /// disk that cannot be written.
    pub async fn add_disks(&self, disks: Vec<Disk>) -> Result<(), DiskGroupError> {
        for disk in disks {
            self.core.add_disk(disk).await?;
        }
        Ok(())
    }

    /// Has a disk leave: nothing new goes there, the next rebalance empties it, and then it is no longer of the group.
    /// It may be offline if everything has another copy. Errors: no such disk, or too few failure groups or too little
    /// space without it.
    pub async fn drop_disk(&self, name: &str) -> Result<(), DiskGroupError> {
        let turn = self.core.turn().await?;
        let decide = |book: &mut Book| {
            let disk = self.core.find_disk(book, name)?;
            self.core.check_drop(book, disk)?;
            Ok(Change::DiskLeaving { disk })
        };
        self.core.change(&turn, decide).await
    }

    /// Takes a disk back that was offline, and brings it up to date: only what has changed meanwhile is copied, unless
    /// the disk is not as it was when it went. Returns the bytes copied. Errors: another disk, one that is online, or
    /// one that fails again.
    pub async fn online_disk(&self, device: Arc<dyn BlockDevice>) -> Result<u64, DiskGroupError> {
        self.core.bring_online(&device).await
    }
}

impl Core {
    fn find_disk(&self, book: &Book, name: &str) -> Result<u16, DiskGroupError> {
        let disks = &book.state.disks;
        let found = disks.iter().find(|(_, entry)| entry.name == name);
        found
            .map(|(disk, _)| *disk)
            .ok_or_else(|| DiskGroupError::NoSuchDisk {
                group: self.name.clone(),
                disk: name.to_owned(),
                has: disks.values().map(|entry| entry.name.clone()).collect(),
            })
    }

    /// Whether the group can do without a disk, once it is empty.
    fn check_drop(&self, book: &Book, disk: u16) -> Result<(), DiskGroupError> {
        let mut rest = book.state.candidates();
        rest.retain(|candidate| candidate.disk != disk);
        let mut groups: Vec<&str> = rest
            .iter()
            .map(|candidate| &*candidate.failure_group)
            .collect();
        groups.sort_unstable();
        groups.dedup();
        let copies = book.state.files.values().map(|file| file.map.copies());
        let needed = copies
            .chain([book.state.redundancy.copies()])
            .max()
            .unwrap_or(1);
        if groups.len() < needed {
            return Err(self.invalid(format!(
                "disk {} cannot be dropped: {needed} failure groups are needed, and {} would be left",
                book.state.disks[&disk].name,
                groups.len()
            )));
        }
        let used = book.space.disks[&disk].used_aus();
        let free = rest
            .iter()
            .map(|candidate| book.space.disks[&candidate.disk].free_aus());
        let free: u64 = free.map(u64::from).sum();
        if free < u64::from(used) {
            return Err(DiskGroupError::NoSpace {
                group: self.name.clone(),
                what: format!(
                    "the {used} allocation units of disk {}",
                    book.state.disks[&disk].name
                ),
                free_bytes: free * self.au_bytes,
            });
        }
        Ok(())
    }

    async fn add_disk(&self, disk: Disk) -> Result<(), DiskGroupError> {
        let turn = self.turn().await?;
        let (number, entry, header) = {
            let book = self.book.lock();
            let state = &book.state;
            let names = state.disks.values().map(|entry| &*entry.name);
            check_names(&self.name, names.chain([&*disk.name]))?;
            let number = state.next_disk;
            let entry = new_entry(&self.env, &self.name, self.au_bytes, number, &disk)?;
            let header = header_of(state, number, &entry);
            (number, entry, header)
        };
        let device = &disk.device;
        // What an earlier group left is not to be taken for this one's.
        disk_io::write(device, 0, &[0; BLOCK_BYTES]).await?;
        disk_io::write(device, backup_at(self.au_bytes), &[0; BLOCK_BYTES]).await?;
        let map = ChangeMap::new(entry.incarnation, header.layout, false);
        map.write(device).await?;
        // Until the group's metadata know the disk, a mount passes over it.
        write_header(device, &header).await?;
        let added = |book: &mut Book| {
            book.space
                .disks
                .insert(number, DiskSpace::new(header.layout));
            book.state.disks.insert(number, entry.clone());
            let joined = member(&book.state, number, device, map);
            self.change_members(|members| members.set(joined.clone()));
            Ok(Change::DiskAdded {
                disk: number,
                entry: entry.clone(),
            })
        };
        self.change(&turn, added).await
    }

    /// Removes disks that were to leave and are empty; returns how many.
    pub(crate) async fn remove_empty_disks(&self) -> Result<u64, DiskGroupError> {
        let mut removed = 0;
        loop {
            let turn = self.turn().await?;
            let next = self.empty_disk();
            let Some((disk, mut header)) = next else {
                return Ok(removed);
            };
            let device = self
                .members
                .load()
                .get(disk)
                .map(|member| Arc::clone(&member.device));
            let decide = |book: &mut Book| {
                book.space.disks.remove(&disk);
                book.stores.remove(&disk);
                Ok(Change::DiskRemoved { disk })
            };
            self.change(&turn, decide).await?;
            self.change_members(|members: &mut Members| members.remove(disk));
            if let Some(device) = device {
                header.membership = Membership::Former;
                // The group goes on without it, whether or not it can still be written.
                let _ = write_header(&device, &header).await;
            }
            removed += 1;
        }
    }

    fn empty_disk(&self) -> Option<(u16, crate::disk_group::disk::format::DiskHeader)> {
        let book = self.book.lock();
        let is_empty = |disk: &u16| {
            book.space
                .disks
                .get(disk)
                .is_some_and(|space| space.used_aus() == 0)
        };
        let leaving = book
            .state
            .disks
            .iter()
            .filter(|(_, entry)| entry.is_leaving);
        let (disk, entry) = leaving.into_iter().find(|(disk, _)| is_empty(disk))?;
        Some((*disk, header_of(&book.state, *disk, entry)))
    }

    async fn bring_online(&self, device: &Device) -> Result<u64, DiskGroupError> {
        let (disk, entry) = self.recognise(device).await?;
        let layout = self.book.lock().state.layout_of(&entry);
        let id = self.book.lock().state.group_id;
        let metadata = Store::read(device, layout, &id).await?;
        let has = metadata.as_ref().map(|(state, _)| state.moment());
        let is_as_it_was = has.is_some_and(|has| follows(has, entry.last_online));
        let map = ChangeMap::read(device, entry.incarnation, layout)
            .await?
            .emptied(layout);
        let mut joined = {
            let turn = self.turn().await?;
            let mut joined = member(&self.book.lock().state, disk, device, map);
            joined.is_readable = false;
            self.change_members(|members| members.set(joined.clone()));
            drop(turn);
            joined
        };
        let copied = self.bring_up_to_date(disk, !is_as_it_was).await?;
        self.flush_disks().await?;
        self.carry_bits(&joined).await?;
        let turn = self.turn().await?;
        if !self.is_attached(&joined) {
            return Err(self.invalid(format!(
                "disk {} failed again while it was brought up to date",
                entry.name
            )));
        }
        let store = metadata.map_or(Store::blank(layout), |(_, store)| store.outdated());
        let back = |book: &mut Book| {
            book.stores.insert(disk, store);
            Ok(Change::DiskOnline { disk })
        };
        self.change(&turn, back).await?;
        joined.is_readable = true;
        if !self.is_attached(&joined) {
            return Err(self.invalid(format!(
                "disk {} failed again when it was to be online",
                entry.name
            )));
        }
        self.change_members(|members| members.set(joined.clone()));
        drop(turn);
        Ok(copied)
    }

    fn is_attached(&self, member: &Member) -> bool {
        let members = self.members.load();
        members
            .get(member.disk)
            .is_some_and(|other| Arc::ptr_eq(&other.device, &member.device))
    }

    /// Which offline disk of the group a device is.
    async fn recognise(&self, device: &Device) -> Result<(u16, DiskEntry), DiskGroupError> {
        self.check_mounted()?;
        let header = look_at(device).await?.header;
        let book = self.book.lock();
        if header.group_id != book.state.group_id {
            return Err(DiskGroupError::OtherGroup {
                device: device.name().to_owned(),
                disk: header.disk_name,
                group: header.group_name,
                id: id_words(&header.group_id),
                expected: format!("{} ({})", self.name, id_words(&book.state.group_id)),
            });
        }
        let entry = book.state.disks.get(&header.number);
        let entry = entry.filter(|entry| entry.incarnation == header.incarnation);
        let Some(entry) = entry else {
            return Err(self.invalid(format!(
                "{} was disk {}, which is no longer of the group; it can be added again",
                device.name(),
                header.disk_name
            )));
        };
        if entry.is_online || self.members.load().get(header.number).is_some() {
            return Err(self.invalid(format!("disk {} is online already", entry.name)));
        }
        Ok((header.number, entry.clone()))
    }

    /// Copies what a returning disk has missed, or everything; returns the bytes. It gets all new writes already.
    async fn bring_up_to_date(&self, disk: u16, everything: bool) -> Result<u64, DiskGroupError> {
        let mut copied = 0;
        if has_planted(Planted::ReturnsStale) {
            return Ok(copied);
        }
        for map in self.all_maps() {
            for (number, extent) in map.extents().iter().enumerate() {
                let lies_there = extent.places().any(|place| place.disk == disk);
                if map.copies() == 1 || !lies_there || !(everything || self.may_differ(extent)) {
                    continue;
                }
                let _locked = map.lock_writes(number).await;
                self.equalise(&map, number, Some(disk)).await?;
                copied += map.shape.extent_bytes(number);
            }
        }
        Ok(copied)
    }

    fn may_differ(&self, extent: &Extent) -> bool {
        let members = self.members.load();
        let is_marked = members
            .to_write(extent)
            .any(|(member, place)| member.map.is_set(place.au));
        extent.has_writes() || extent.has_diverged() || is_marked
    }

    /// The returning disk's change map gets the bits that other copies have: they may stand for what a further disk
    /// misses.
    async fn carry_bits(&self, joined: &Member) -> Result<(), DiskGroupError> {
        let _turn = self.marking.acquire().await.expect("never closed");
        for map in self.all_maps() {
            for extent in map.extents().iter().filter(|_| map.copies() > 1) {
                let own = extent.places().find(|place| place.disk == joined.disk);
                if let Some(own) = own.filter(|_| self.may_differ(extent)) {
                    let members = self.members.load();
                    if let Some(member) = members.get(joined.disk) {
                        member.map.want(own.au);
                    }
                }
            }
        }
        let member = self.members.load().get(joined.disk).map(Arc::clone);
        match member {
            Some(member) => Ok(member.map.write(&member.device).await?),
            None => Ok(()),
        }
    }
}

/// Whether a disk that has these metadata is as it was when the group last had it online: it may have missed the very
/// last change, and has none of its own.
fn follows(has: MetadataVersion, last: MetadataVersion) -> bool {
    has.mount == last.mount && has.step + 1 >= last.step && has.step <= last.step
}
