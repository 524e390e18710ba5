//! Disks that join a mounted group, and leave it.

use std::sync::Arc;

use crate::disk_group::disk::format::{DiskHeader, Membership};
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::extents::space::DiskSpace;
use crate::disk_group::metadata::state::Change;
use crate::disk_group::mount::disks::{
    check_names, header_of, member, new_entry, new_layout, wipe_headers, write_header,
};
use crate::disk_group::mounted::change_map::ChangeMap;
use crate::disk_group::mounted::core::{Book, Core};
use crate::disk_group::mounted::members::Members;
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

    /// Whether these disks can be added. Reads nothing of them, and writes nothing. Errors: names, sizes.
    pub fn check_added(&self, disks: &[Disk]) -> Result<(), DiskGroupError> {
        let core = &self.core;
        let book = core.book.lock();
        let there = book.state.disks.values().map(|entry| &*entry.name);
        check_names(
            &core.name,
            there.chain(disks.iter().map(|disk| &*disk.name)),
        )?;
        for (number, disk) in (book.state.next_disk..).zip(disks) {
            new_layout(&core.name, core.au_bytes, number, disk)?;
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
        wipe_headers(device).await?;
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
                // The group continues without it, whether or not it can still be written.
                let _ = write_header(&device, &header).await;
            }
            removed += 1;
        }
    }

    fn empty_disk(&self) -> Option<(u16, DiskHeader)> {
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
}
