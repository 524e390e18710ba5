//! Setting and clearing the bits of change maps: when that is due is said in [`super::change_map`].

use std::sync::Arc;

use crate::disk_group::error::DiskGroupError;
use crate::disk_group::extents::map::UnitPlace;
use crate::disk_group::mounted::change_map::SWEEP_NS;
use crate::disk_group::mounted::core::Core;
use crate::disk_group::mounted::members::Member;
use crate::disk_group::planted::{Planted, has_planted};
use crate::sync::atomic::Ordering;

impl Core {
    /// Sets the bits of copies that are about to be written, durably. A disk whose map cannot be written is taken
    /// offline.
    pub(crate) async fn mark(&self, places: &[UnitPlace]) -> Result<(), DiskGroupError> {
        let members = self.members.load_full();
        let unmarked = || {
            let of = |place: &UnitPlace| Some((members.get(place.disk)?, place.au));
            let attached = places.iter().filter_map(of);
            attached.filter(|(member, au)| !member.map.is_set(*au))
        };
        for (member, au) in unmarked() {
            member.map.want(au);
        }
        let _turn = self.marking.acquire().await.expect("never closed");
        if self.env.now() >= self.next_sweep_ns.load(Ordering::Relaxed) {
            self.sweep().await?;
        }
        let mut disks: Vec<&Arc<Member>> = Vec::new();
        for (member, _) in unmarked() {
            if !disks.iter().any(|other| other.disk == member.disk) {
                disks.push(member);
            }
        }
        self.write_maps(&disks).await
    }

    async fn write_maps(&self, members: &[&Arc<Member>]) -> Result<(), DiskGroupError> {
        let mut failed = Vec::new();
        for member in members {
            if member.map.write(&member.device).await.is_err() {
                failed.push(member);
            }
        }
        for member in failed {
            self.take_offline(member).await?;
            // This map is not used again; writes that wait for the bit may proceed without the disk.
            let block = member.map.next_block();
            member.map.has_written(&block);
        }
        Ok(())
    }

    /// Clears the bits of extents that have not been written for a while. Under the turn of `marking`.
    async fn sweep(&self) -> Result<(), DiskGroupError> {
        let next_ns = self.env.now().saturating_add(SWEEP_NS);
        self.next_sweep_ns.store(next_ns, Ordering::Relaxed);
        self.clear_bits(true).await
    }

    /// Clears every bit that need not stay; with `keep_recent` those of extents written since the last time stay, too.
    pub(crate) async fn clear_bits(&self, keep_recent: bool) -> Result<(), DiskGroupError> {
        let members = self.members.load_full();
        let mut before = Vec::new();
        for member in members.all() {
            let map = &member.map;
            let recent = map
                .touched
                .iter()
                .map(|word| word.swap(0, Ordering::Relaxed));
            let recent: Vec<u64> = recent
                .map(|bits| if keep_recent { bits } else { 0 })
                .collect();
            let cleared = map
                .set
                .iter()
                .zip(recent)
                .map(|(word, recent)| word.fetch_and(recent, Ordering::SeqCst));
            before.push(cleared.collect::<Vec<u64>>());
        }
        self.keep_needed_bits(&before);
        if !has_planted(Planted::ClearsUnflushed) {
            self.flush_disks().await?;
        }
        let mut changed = Vec::new();
        for (member, before) in members.all().zip(&before) {
            let now = member
                .map
                .set
                .iter()
                .map(|word| word.load(Ordering::SeqCst));
            if now.zip(before).any(|(now, before)| now != *before) {
                changed.push(member);
            }
        }
        self.write_maps(&changed).await
    }

    /// Sets bits again that were set `before` and whose extents are being written or may differ.
    fn keep_needed_bits(&self, before: &[Vec<u64>]) {
        let members = self.members.load_full();
        let was_set = |member: &Member, au: u32| {
            let place = members.all().position(|other| other.disk == member.disk);
            let (word, bit) = member.map.bit(au);
            place.is_some_and(|place| {
                before
                    .get(place)
                    .is_some_and(|words| words[word] & bit != 0)
            })
        };
        for map in self.all_maps() {
            for extent in map.extents().iter().filter(|_| map.copies() > 1) {
                if !extent.has_writes() && !extent.has_diverged() {
                    continue;
                }
                for (member, place) in members.attached(extent) {
                    if was_set(member, place.au) {
                        let (word, bit) = member.map.bit(place.au);
                        member.map.set[word].fetch_or(bit, Ordering::SeqCst);
                    }
                }
            }
        }
    }
}
