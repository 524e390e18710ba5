//! Spreading every file evenly again while it is used, after disks have come, or before they go. The `power` is how
//! many extents are moved at the same time. Of an extent that is moved writes wait; reads continue. Its new place
//! counts when its bytes are on stable storage there and the move is in the metadata; only then is the old place given
//! away. So a crash at any moment leaves every copy whole at the one place or the other.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::disk_group::DiskGroup;
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::extents::map::{ExtentMap, UnitPlace};
use crate::disk_group::maintenance::plan::{Lying, Move, RebalanceDisks, plan};
use crate::disk_group::metadata::state::Change;
use crate::disk_group::mounted::copying::{self, Copy};
use crate::disk_group::mounted::core::{Book, Core};
use crate::disk_group::planted::{Planted, has_planted};
use crate::sync::Latch;

/// The highest power, as in Oracle before 11.2.0.2.
pub const POWER_MAX: u32 = 11;

/// What a rebalance did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rebalanced {
    /// Copies of extents that lie elsewhere now.
    pub extents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Disks that were to leave and have left.
    pub disks_removed: u64,
}

/// Whether to continue; asked between two extents.
pub type GoOn = Arc<dyn Fn() -> bool + Send + Sync>;

/// What the processes of a rebalance share.
#[derive(Default)]
struct Work {
    moves: VecDeque<(u32, Move)>,
    done: Rebalanced,
    error: Option<DiskGroupError>,
}

impl DiskGroup {
    /// Spreads every file evenly and empties disks that leave, `power` extents at a time (0, nothing is done, to 11);
    /// disks that are empty then leave. Dropped, it continues. Errors: no room, or a disk failed that could not be
    /// spared; what was moved stays moved, and another rebalance continues from there.
    pub async fn rebalance(&self, power: u32) -> Result<Rebalanced, DiskGroupError> {
        self.rebalance_while(power, &(Arc::new(|| true) as GoOn))
            .await
    }

    /// The same, as long as `go_on` says so: what is being moved then is moved to its end. Errors: as there.
    pub async fn rebalance_while(
        &self,
        power: u32,
        go_on: &GoOn,
    ) -> Result<Rebalanced, DiskGroupError> {
        if power > POWER_MAX {
            return Err(self.core.invalid(format!(
                "a rebalance has a power of 0 to {POWER_MAX}, not {power}"
            )));
        }
        let mut done = Rebalanced::default();
        if power == 0 {
            return Ok(done);
        }
        let _turn = self.core.rebalancing.acquire().await.expect("never closed");
        loop {
            let moves = self.core.plan_moves();
            if moves.is_empty() {
                break;
            }
            let moved = self.core.carry_out(moves, power, go_on).await?;
            done.extents += moved.extents;
            done.bytes += moved.bytes;
            if moved.extents == 0 || !go_on() {
                break;
            }
        }
        done.disks_removed = self.core.remove_empty_disks().await?;
        Ok(done)
    }
}

impl Core {
    fn plan_moves(&self) -> VecDeque<(u32, Move)> {
        let book = self.book.lock();
        let state = &book.state;
        let candidates = state.candidates();
        let leaving = state.disks.iter().filter(|(_, entry)| entry.is_leaving);
        let leaving: Vec<u16> = leaving.map(|(disk, _)| *disk).collect();
        let groups = state
            .disks
            .iter()
            .map(|(disk, entry)| (*disk, entry.failure_group.clone()));
        let failure_groups: BTreeMap<u16, String> = groups.collect();
        let disks_of_group = RebalanceDisks {
            candidates: &candidates,
            leaving: &leaving,
            failure_groups: &failure_groups,
        };
        let mut moves = VecDeque::new();
        for (number, file) in &state.files {
            let extents = file.map.extents();
            let lying = Lying {
                disks: extents
                    .iter()
                    .map(|extent| extent.places().map(|place| place.disk).collect())
                    .collect(),
                aus: (0..extents.len())
                    .map(|extent| file.map.shape.aus(extent))
                    .collect(),
            };
            moves.extend(
                plan(&disks_of_group, lying)
                    .into_iter()
                    .map(|step| (*number, step)),
            );
        }
        moves
    }

    /// Has `power` processes carry out the moves.
    async fn carry_out(
        self: &Arc<Self>,
        moves: VecDeque<(u32, Move)>,
        power: u32,
        go_on: &GoOn,
    ) -> Result<Rebalanced, DiskGroupError> {
        let work = Arc::new(Latch::new(Work {
            moves,
            ..Work::default()
        }));
        let mut processes = Vec::new();
        for _ in 0..power {
            let (core, work) = (Arc::clone(self), Arc::clone(&work));
            let go_on = Arc::clone(go_on);
            let process = async move {
                while go_on() {
                    let next = work.lock().moves.pop_front();
                    let Some((file, step)) = next else { break };
                    core.move_noting(file, step, &work).await;
                }
            };
            processes.push(
                self.env
                    .spawn("rebalance", Box::new(move || Box::pin(process))),
            );
        }
        for process in processes {
            process
                .ended()
                .await
                .map_err(|lost| self.invalid(lost.to_string()))?;
        }
        let mut work = work.lock();
        match work.error.take() {
            Some(error) => Err(error),
            None => Ok(work.done),
        }
    }

    async fn move_noting(&self, file: u32, step: Move, work: &Latch<Work>) {
        let moved = self.move_copy(file, step).await;
        let mut work = work.lock();
        match moved {
            Ok(bytes) if bytes > 0 => {
                work.done.extents += 1;
                work.done.bytes += bytes;
            }
            Ok(_) => {}
            Err(error) => {
                work.moves.clear();
                work.error.get_or_insert(error);
            }
        }
    }

    /// Moves one copy; returns its bytes, or 0 when it no longer is to be moved, or cannot be now.
    async fn move_copy(&self, file: u32, step: Move) -> Result<u64, DiskGroupError> {
        let map = {
            let book = self.book.lock();
            let Some(entry) = book.state.files.get(&file) else {
                return Ok(0);
            };
            Arc::clone(&entry.map)
        };
        let locked = map.lock_writes(step.extent).await;
        let aus = map.shape.aus(step.extent);
        let Some(new) = self.take_place(&map, step, aus) else {
            return Ok(0);
        };
        let kept = if has_planted(Planted::MovesUnlocked) {
            drop(locked);
            None
        } else {
            Some(locked)
        };
        let old = map.extents()[step.extent]
            .place(step.copy)
            .expect("it has that copy");
        if has_planted(Planted::FreesBeforeMoved) {
            self.book.lock().space.free(old, aus);
        }
        if let Err(error) = self.copy_to(&map, step, new).await {
            self.book.lock().space.free(new, aus);
            return Err(error);
        }
        if !self.enter_move(file, step, new).await? {
            self.book.lock().space.free(new, aus);
            return Ok(0);
        }
        // A read that is under way there must not see what another file puts there.
        if let Some(locked) = &kept {
            locked.keep_reads_out().await;
        }
        if !has_planted(Planted::FreesBeforeMoved) {
            self.book.lock().space.free(old, aus);
        }
        Ok(map.shape.extent_bytes(step.extent))
    }

    /// Space for the copy, if it still may lie there.
    fn take_place(&self, map: &ExtentMap, step: Move, aus: u32) -> Option<UnitPlace> {
        let mut book = self.book.lock();
        let to = book
            .state
            .disks
            .get(&step.to)
            .filter(|entry| entry.is_online && !entry.is_leaving)?;
        let extent = &map.extents()[step.extent];
        for (copy, place) in extent.places().enumerate() {
            let group = book
                .state
                .disks
                .get(&place.disk)
                .map(|entry| &entry.failure_group);
            if copy != step.copy && group == Some(&to.failure_group) {
                return None;
            }
        }
        let au = book.space.allocate(step.to, aus)?;
        Some(UnitPlace { disk: step.to, au })
    }

    /// Copies an extent to a new place: from the copy that is moved if it can be read, else from another.
    async fn copy_to(
        &self,
        map: &ExtentMap,
        step: Move,
        new: UnitPlace,
    ) -> Result<(), DiskGroupError> {
        if map.copies() > 1 {
            // Where the copies may differ, a mount after a crash has to find that out at the new place, too.
            self.mark(&[new]).await?;
        }
        let members = self.members.load_full();
        let extent = &map.extents()[step.extent];
        let readable = |place: UnitPlace| {
            let member = members.get(place.disk)?;
            Some((Arc::clone(member), place))
        };
        let source = if extent.has_diverged() {
            None
        } else {
            extent.place(step.copy).and_then(readable)
        };
        let source = source.or_else(|| extent.places().find_map(readable));
        let Some(source) = source else {
            return Err(self.invalid(format!(
                "an extent cannot be moved to disk {}: no copy of it is on a disk that is online",
                new.disk
            )));
        };
        let Some(target) = readable(new) else {
            return Err(self.invalid(format!(
                "disk {} has gone offline while extents were moved to it",
                new.disk
            )));
        };
        let to: [Copy; 1] = [target];
        let durable = !has_planted(Planted::MovesUnflushed);
        let copied =
            copying::copy(&source, &to, map.shape.extent_bytes(step.extent), durable).await;
        match copied {
            Ok(()) => Ok(()),
            Err(failed) => {
                let error = self.invalid(format!("an extent could not be moved: {}", failed.error));
                if map.copies() > 1 {
                    self.take_offline(&failed.member).await?;
                }
                Err(error)
            }
        }
    }

    /// Enters a move into the metadata; false when the file has gone, or the disk.
    async fn enter_move(
        &self,
        file: u32,
        step: Move,
        to: UnitPlace,
    ) -> Result<bool, DiskGroupError> {
        let turn = self.turn().await?;
        let is_good = {
            let book = self.book.lock();
            let is_online = book
                .state
                .disks
                .get(&to.disk)
                .is_some_and(|entry| entry.is_online);
            book.state.files.contains_key(&file) && is_online
        };
        if is_good {
            let change = Change::CopyMoved {
                file,
                extent: step.extent as u32,
                copy: step.copy as u8,
                to,
            };
            self.change(&turn, |_: &mut Book| Ok(change)).await?;
        }
        Ok(is_good)
    }
}
