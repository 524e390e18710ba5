//! A mounted group's heart: its metadata in memory, the one path by which they change ([`Core::change`]), and taking a
//! disk offline. A change is made in memory and then on every disk that is online; it counts when all of them have it.
//! A disk that cannot take it goes offline with the next change; if that would lose data, the group is dismounted.
//!
//! Tasks that wait take locks in this order: an extent's, `marking`, `flushing`, the turn of the metadata.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwap;

use crate::device::{BlockDevice, Completer, Completion, Follower, IoError, IoOutcome, Request};
use crate::disk_group::disk::disk_io;
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::extents::map::ExtentMap;
use crate::disk_group::extents::space::Space;
use crate::disk_group::metadata::state::{Change, State};
use crate::disk_group::metadata::store::{PendingRecord, Store};
use crate::disk_group::mounted::change_map::SWEEP_NS;
use crate::disk_group::mounted::members::{Member, Members};
use crate::disk_group::planted::{Planted, has_planted};
use crate::env::Env;
use crate::sync::atomic::AtomicU64;
use crate::sync::{Latch, Semaphore};

/// Metadata in memory.
pub(crate) struct Book {
    pub(crate) state: State,
    pub(crate) space: Space,
    /// Where each disk's next record goes.
    pub(crate) stores: BTreeMap<u16, Store>,
    /// Files that are open.
    pub(crate) open: BTreeMap<u32, Weak<dyn BlockDevice>>,
    /// Files being made, which are in no metadata.
    pub(crate) creations: Vec<Weak<ExtentMap>>,
}

/// A mounted group.
pub(crate) struct Core {
    me: Weak<Core>,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) name: String,
    pub(crate) au_bytes: u64,
    pub(crate) members: ArcSwap<Members>,
    pub(crate) book: Latch<Book>,
    /// The turn to change the metadata.
    turn: Semaphore,
    /// Flushes take turns: one beside a failed one would say yes.
    pub(crate) flushing: Semaphore,
    /// Change maps are written by one at a time.
    pub(crate) marking: Semaphore,
    pub(crate) next_sweep_ns: AtomicU64,
    /// One rebalance at a time.
    pub(crate) rebalancing: Semaphore,
    dismounted: OnceLock<String>,
}

impl Core {
    pub(crate) fn new(
        env: &Arc<dyn Env>,
        state: State,
        space: Space,
        members: Members,
    ) -> Arc<Core> {
        Arc::new_cyclic(|me| Core {
            me: Weak::clone(me),
            env: Arc::clone(env),
            name: state.group_name.clone(),
            au_bytes: state.au_bytes,
            members: ArcSwap::from_pointee(members),
            book: Latch::new(Book {
                state,
                space,
                stores: BTreeMap::new(),
                open: BTreeMap::new(),
                creations: Vec::new(),
            }),
            turn: Semaphore::const_new(1),
            flushing: Semaphore::const_new(1),
            marking: Semaphore::const_new(1),
            next_sweep_ns: AtomicU64::new(env.now().saturating_add(SWEEP_NS)),
            rebalancing: Semaphore::const_new(1),
            dismounted: OnceLock::new(),
        })
    }

    /// Waits for the turn to change the metadata. Errors: the group is dismounted.
    pub(crate) async fn turn(&self) -> Result<Turn<'_>, DiskGroupError> {
        let permit = self.turn.acquire().await.expect("never closed");
        self.check_mounted()?;
        Ok(Turn { _permit: permit })
    }

    pub(crate) fn check_mounted(&self) -> Result<(), DiskGroupError> {
        match self.dismounted.get() {
            None => Ok(()),
            Some(reason) => Err(DiskGroupError::Dismounted {
                group: self.name.clone(),
                reason: reason.clone(),
            }),
        }
    }

    /// No I/O from now on, and the disks are let go.
    pub(crate) fn end(&self, reason: &str) {
        // The first reason is the one to tell.
        let _ = self.dismounted.set(reason.to_owned());
        self.members.store(Arc::default());
    }

    pub(crate) fn invalid(&self, what: impl Into<String>) -> DiskGroupError {
        DiskGroupError::Invalid {
            group: self.name.clone(),
            what: what.into(),
        }
    }

    /// Replaces the list of attached disks.
    pub(crate) fn change_members(&self, change: impl Fn(&mut Members)) {
        self.members.rcu(|members| {
            let mut members = Members::clone(members);
            change(&mut members);
            members
        });
    }

    /// The maps of all files, those being made included.
    pub(crate) fn all_maps(&self) -> Vec<Arc<ExtentMap>> {
        let mut book = self.book.lock();
        book.creations.retain(|map| map.strong_count() > 0);
        let made = book.creations.iter().filter_map(Weak::upgrade);
        let files = book.state.files.values().map(|file| Arc::clone(&file.map));
        files.chain(made).collect()
    }

    /// Carries out a change, in memory and on every disk that is online; what it is, or why not, is decided when
    /// nothing can come between.
    pub(crate) async fn change(
        &self,
        _turn: &Turn<'_>,
        decide: impl FnOnce(&mut Book) -> Result<Change, DiskGroupError>,
    ) -> Result<(), DiskGroupError> {
        let change = {
            let mut book = self.book.lock();
            let change = decide(&mut book)?;
            book.apply(&self.name, &change)?;
            change
        };
        self.persist(Some(change)).await
    }

    /// Writes what the state has in memory: one change, or, when every disk is to get a snapshot, whatever it is.
    pub(crate) async fn persist(&self, change: Option<Change>) -> Result<(), DiskGroupError> {
        let mut changes = vec![change];
        while let Some(change) = changes.pop() {
            let failed = self.write_entries(change).await?;
            if failed.is_empty() {
                continue;
            }
            let disks: Vec<u16> = failed.iter().map(|(disk, _)| *disk).collect();
            if let Err(error) = self.check_redundancy(&disks) {
                let cause = &failed[0].1;
                self.end(&format!(
                    "its metadata could not be written ({cause}), and {error}"
                ));
                return self.check_mounted();
            }
            for disk in disks {
                changes.push(Some(self.note_offline(disk)?));
            }
        }
        Ok(())
    }

    /// One step of the metadata; returns the disks that did not take it.
    async fn write_entries(
        &self,
        change: Option<Change>,
    ) -> Result<Vec<(u16, IoError)>, DiskGroupError> {
        // A disk that joins comes first: if the others said that it belongs, and it did not know, it would be taken for
        // an old copy after a crash.
        let joins = match &change {
            Some(Change::DiskAdded { disk, .. }) => Some(*disk),
            _ => None,
        };
        let entries = self.book.lock().next_entries(&self.name, change);
        let entries = entries.inspect_err(|error| self.end(&error.to_string()))?;
        let (first, rest): (Vec<_>, Vec<_>) = entries
            .into_iter()
            .partition(|(disk, _)| Some(*disk) == joins);
        let mut failed = self.write_to_each(first).await;
        failed.extend(self.write_to_each(rest).await);
        Ok(failed)
    }

    /// Writes records, each to its disk; returns the disks that did not take them.
    async fn write_to_each(&self, entries: Vec<(u16, PendingRecord)>) -> Vec<(u16, IoError)> {
        let members = self.members.load_full();
        let (mut under_way, mut failed) = (Vec::new(), Vec::new());
        for (disk, entry) in entries {
            let Some(member) = members.get(disk) else {
                continue;
            };
            match disk_io::filled(&member.device, &entry.bytes) {
                Ok(from) => {
                    let write = disk_io::begin_write(&member.device, entry.offset, from, true);
                    under_way.push((disk, entry.then, write));
                }
                Err(error) => failed.push((disk, error)),
            }
        }
        for (disk, then, write) in under_way {
            match write.await.result {
                Ok(()) => drop(self.book.lock().stores.insert(disk, then)),
                Err(error) => failed.push((disk, error)),
            }
        }
        failed
    }

    /// Lets a disk go, in memory.
    fn note_offline(&self, disk: u16) -> Result<Change, DiskGroupError> {
        self.change_members(|members| members.remove(disk));
        let change = Change::DiskOffline { disk };
        self.book.lock().apply(&self.name, &change)?;
        Ok(change)
    }

    /// Takes a disk offline, durably, unless it is so already. Errors: data would be lost, or the group is dismounted.
    pub(crate) async fn take_offline(&self, member: &Member) -> Result<(), DiskGroupError> {
        let turn = self.turn().await?;
        let members = self.members.load_full();
        let attached = members.get(member.disk);
        if !attached.is_some_and(|other| Arc::ptr_eq(&other.device, &member.device)) {
            return Ok(());
        }
        self.check_redundancy(&[member.disk])?;
        let change = self.note_offline(member.disk)?;
        let persisted = self.persist(Some(change)).await;
        drop(turn);
        persisted
    }

    /// A write or a flush of a disk has failed: from this instant it is read only when no other copy can be.
    pub(crate) fn suspect(&self, member: &Member) {
        self.change_members(|members| {
            let attached = members.get(member.disk);
            if let Some(attached) =
                attached.filter(|other| Arc::ptr_eq(&other.device, &member.device))
            {
                let mut suspect = Member::clone(attached);
                suspect.is_suspect = true;
                members.set(suspect);
            }
        });
    }

    /// Whether the group has every mirrored extent without these disks.
    fn check_redundancy(&self, without: &[u16]) -> Result<(), DiskGroupError> {
        let members = self.members.load_full();
        let is_good = |disk: u16| !without.contains(&disk) && members.get(disk).is_some();
        let refused = |why: String| {
            let name = members
                .get(without[0])
                .map_or_else(String::new, |member| member.name.clone());
            Err(DiskGroupError::BeyondRedundancy {
                group: self.name.clone(),
                disk: name,
                why,
            })
        };
        if !members.all().any(|member| is_good(member.disk)) {
            return refused("no other disk is online".to_owned());
        }
        let external = self.book.lock().state.redundancy.copies() == 1;
        if external {
            return refused("with external redundancy nothing has a second copy".to_owned());
        }
        for map in self.all_maps() {
            for (number, extent) in map.extents().iter().enumerate() {
                let on_it = extent.places().any(|place| without.contains(&place.disk));
                if map.copies() > 1 && on_it && !extent.places().any(|place| is_good(place.disk)) {
                    return refused(format!(
                        "the other copies of extent {number} of {} are on disks that are offline",
                        self.file_name(&map)
                    ));
                }
            }
        }
        Ok(())
    }

    fn file_name(&self, map: &Arc<ExtentMap>) -> String {
        let book = self.book.lock();
        let file = book
            .state
            .files
            .values()
            .find(|file| Arc::ptr_eq(&file.map, map));
        file.map_or_else(
            || "a file being made".to_owned(),
            |file| format!("file {}", file.name),
        )
    }

    /// Flushes every attached disk. A disk that cannot is taken offline; where that would lose data, the group is
    /// dismounted, because what the flush was to keep may be gone, and no later flush would say so.
    pub(crate) async fn flush_disks(&self) -> Result<(), DiskGroupError> {
        let _turn = self.flushing.acquire().await.expect("never closed");
        let members = self.members.load_full();
        let reached = if has_planted(Planted::FlushesOneDisk) {
            1
        } else {
            usize::MAX
        };
        let flush = |member: &Arc<Member>| {
            let follower = Flushing {
                core: self.me.upgrade().expect("whoever calls holds it"),
                member: Arc::clone(member),
            };
            let flush = member.device.submit(Request::flush());
            let flush = match flush.already() {
                Ok(outcome) => Completion::ready(outcome),
                Err(under_way) => under_way.followed_by(Arc::new(follower), 0),
            };
            (Arc::clone(member), flush)
        };
        let under_way: Vec<_> = members.all().take(reached).map(flush).collect();
        let mut failed = Vec::new();
        for (member, flush) in under_way {
            if let Err(error) = flush.await.result {
                failed.push((member, error));
            }
        }
        for (member, error) in failed {
            if let Err(refused) = self.take_offline(&member).await {
                self.end(&format!("a flush failed ({error}), and {refused}"));
            }
        }
        self.check_mounted()
    }
}

/// Learns of the end of a flush at once: what was not flushed may be gone, and earlier contents be read again.
struct Flushing {
    core: Arc<Core>,
    member: Arc<Member>,
}

impl Follower for Flushing {
    fn ended(self: Arc<Self>, _mark: u64, outcome: IoOutcome, to: Completer) {
        if outcome.result.is_err() {
            self.core.suspect(&self.member);
        }
        to.complete(outcome);
    }
}

/// The right to change the metadata.
pub(crate) struct Turn<'a> {
    _permit: tokio::sync::SemaphorePermit<'a>,
}

impl Book {
    fn apply(&mut self, group: &str, change: &Change) -> Result<(), DiskGroupError> {
        self.state
            .apply(change)
            .ok_or_else(|| DiskGroupError::Damaged {
                group: group.to_owned(),
                what: "a change does not fit them".to_owned(),
            })
    }

    /// What the next step writes on each disk that is online.
    fn next_entries(
        &mut self,
        group: &str,
        change: Option<Change>,
    ) -> Result<Vec<(u16, PendingRecord)>, DiskGroupError> {
        self.state.step += 1;
        let bytes = change.map(|change| change.encode());
        let mut entries = Vec::new();
        for (disk, entry) in self.state.disks.iter().filter(|(_, entry)| entry.is_online) {
            let layout = self.state.layout_of(entry);
            let store = self
                .stores
                .get(disk)
                .copied()
                .unwrap_or(Store::blank(layout));
            let next = match &bytes {
                Some(bytes) => store.entry(&self.state, bytes),
                None => store.snapshot(&self.state),
            };
            let next = next.ok_or_else(|| DiskGroupError::NoSpace {
                group: group.to_owned(),
                what: format!(
                    "its metadata on disk {}, which is too small for them",
                    entry.name
                ),
                free_bytes: layout.slot_bytes(),
            })?;
            entries.push((*disk, next));
        }
        Ok(entries)
    }
}
