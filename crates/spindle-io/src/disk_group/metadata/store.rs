//! The metadata on one disk: two slots, of which one holds the newest snapshot and the log of changes since. A change
//! is written behind the last one; when the log is full, or long, the next step is a snapshot into the other slot. So
//! whatever a crash tears is newer than a state that is whole. A record (snapshot or change) takes whole blocks:
//!
//! | offset | bytes | what |
//! | --- | --- | --- |
//! | 0 | 8 | `SPNDLMET` |
//! | 8 | 4 | CRC32C of the record, with this field zero |
//! | 12 | 4 | kind: 1 snapshot, 2 change |
//! | 16 | 16 | identity of the group |
//! | 32 | 8 | step: number of the change, or of the last change in the snapshot |
//! | 40 | 8 | step of the snapshot whose log this is |
//! | 48 | 8 | bytes from offset 64 on (`state` says which) |
//! | 56 | 8 | identity of the mount that wrote it |
//!
//! Steps of a log follow each other without a gap, under one snapshot and one mount; the first block that is not so
//! ends it: what an earlier use of the slot left behind is never taken for a change.

use crate::device::IoError;
use crate::disk_group::disk::disk_io::{self, Device};
use crate::disk_group::disk::format::{BLOCK_BYTES, DiskLayout, is_sealed, seal};
use crate::disk_group::metadata::state::{Change, State};

const MAGIC: &[u8; 8] = b"SPNDLMET";
const SNAPSHOT: u32 = 1;
const CHANGE: u32 = 2;
const PREFIX_BYTES: usize = 64;
/// Changes in a log: more would only make mounting slower.
const LOG_CHANGES_MAX: u32 = 256;

/// Where the next record goes on one disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Store {
    layout: DiskLayout,
    /// The slot in use, and within it where the next change goes.
    slot: usize,
    next_at: u64,
    base_step: u64,
    changes: u32,
}

/// A record to be written, and the store when it has been.
pub(crate) struct PendingRecord {
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) then: Store,
}

impl Store {
    /// A disk without metadata.
    pub(crate) fn blank(layout: DiskLayout) -> Store {
        Store {
            layout,
            slot: 1,
            next_at: u64::MAX,
            base_step: 0,
            changes: 0,
        }
    }

    /// The record that notes `change`, which `state` contains already; a snapshot when there is no room for a change.
    /// `None` when the state is too large for the disk.
    pub(crate) fn entry(&self, state: &State, change: &[u8]) -> Option<PendingRecord> {
        let bytes = record(CHANGE, state, self.base_step, change);
        let end = self.next_at.checked_add(bytes.len() as u64);
        let fits = end.is_some_and(|end| end <= self.layout.slot_bytes());
        if !fits || self.changes >= LOG_CHANGES_MAX {
            return self.snapshot(state);
        }
        let mut then = *self;
        then.next_at += bytes.len() as u64;
        then.changes += 1;
        Some(PendingRecord {
            offset: self.layout.slot_at(self.slot) + self.next_at,
            bytes,
            then,
        })
    }

    /// The record that holds all of `state`, in the slot that is not in use.
    pub(crate) fn snapshot(&self, state: &State) -> Option<PendingRecord> {
        let bytes = record(SNAPSHOT, state, state.step, &state.encode());
        let slot = 1 - self.slot;
        let then = Store {
            layout: self.layout,
            slot,
            next_at: bytes.len() as u64,
            base_step: state.step,
            changes: 0,
        };
        (then.next_at <= self.layout.slot_bytes()).then_some(PendingRecord {
            offset: self.layout.slot_at(slot),
            bytes,
            then,
        })
    }

    /// The newest state that a disk holds, if it holds any.
    pub(crate) async fn read(
        device: &Device,
        layout: DiskLayout,
        group_id: &[u8; 16],
    ) -> Result<Option<(State, Store)>, IoError> {
        let mut newest: Option<(State, Store)> = None;
        for slot in [0, 1] {
            let found = read_slot(device, layout, slot, group_id).await?;
            if let Some((state, store)) = found
                && newest
                    .as_ref()
                    .is_none_or(|(other, _)| age(&state) > age(other))
            {
                newest = Some((state, store));
            }
        }
        Ok(newest)
    }
}

/// What orders states of one disk.
pub(crate) fn age(state: &State) -> (u64, u64) {
    (state.epoch, state.step)
}

fn record(kind: u32, state: &State, base_step: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; (PREFIX_BYTES + payload.len()).next_multiple_of(BLOCK_BYTES)];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[12..16].copy_from_slice(&kind.to_le_bytes());
    bytes[16..32].copy_from_slice(&state.group_id);
    let numbers = [state.step, base_step, payload.len() as u64, state.mount];
    for (number, at) in numbers.into_iter().zip([32, 40, 48, 56]) {
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    bytes[PREFIX_BYTES..PREFIX_BYTES + payload.len()].copy_from_slice(payload);
    seal(&mut bytes);
    bytes
}

struct Record {
    step: u64,
    base_step: u64,
    mount: u64,
    payload: Vec<u8>,
    blocks_bytes: u64,
}

/// The record at byte `at` of a slot, if there is one of that kind.
async fn read_record(
    device: &Device,
    layout: DiskLayout,
    slot: usize,
    at: u64,
    kind: u32,
    group_id: &[u8; 16],
) -> Result<Option<Record>, IoError> {
    let slot_bytes = layout.slot_bytes();
    if at + BLOCK_BYTES as u64 > slot_bytes {
        return Ok(None);
    }
    let offset = layout.slot_at(slot) + at;
    let mut bytes = disk_io::read(device, offset, BLOCK_BYTES).await?;
    let number = |bytes: &[u8], at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    };
    let payload_bytes = number(&bytes, 48);
    let is_ours =
        &bytes[..8] == MAGIC && bytes[12..16] == kind.to_le_bytes() && &bytes[16..32] == group_id;
    if !is_ours || payload_bytes > slot_bytes {
        return Ok(None);
    }
    let payload_bytes = payload_bytes as usize;
    let blocks_bytes = (PREFIX_BYTES + payload_bytes).next_multiple_of(BLOCK_BYTES);
    if at + blocks_bytes as u64 > slot_bytes {
        return Ok(None);
    }
    if blocks_bytes > BLOCK_BYTES {
        bytes = disk_io::read(device, offset, blocks_bytes).await?;
    }
    Ok(is_sealed(&bytes).then(|| Record {
        step: number(&bytes, 32),
        base_step: number(&bytes, 40),
        mount: number(&bytes, 56),
        payload: bytes[PREFIX_BYTES..PREFIX_BYTES + payload_bytes].to_vec(),
        blocks_bytes: blocks_bytes as u64,
    }))
}

async fn read_slot(
    device: &Device,
    layout: DiskLayout,
    slot: usize,
    group_id: &[u8; 16],
) -> Result<Option<(State, Store)>, IoError> {
    let Some(snapshot) = read_record(device, layout, slot, 0, SNAPSHOT, group_id).await? else {
        return Ok(None);
    };
    let Some(mut state) = State::decode(&snapshot.payload) else {
        return Ok(None);
    };
    let mut store = Store {
        layout,
        slot,
        next_at: snapshot.blocks_bytes,
        base_step: snapshot.step,
        changes: 0,
    };
    while let Some(record) =
        read_record(device, layout, slot, store.next_at, CHANGE, group_id).await?
    {
        let follows = record.step == state.step + 1
            && record.base_step == store.base_step
            && record.mount == state.mount;
        let change = Change::decode(&record.payload, state.au_bytes);
        let Some(change) = change.filter(|_| follows) else {
            break;
        };
        if state.apply(&change).is_none() {
            break;
        }
        state.step = record.step;
        store.next_at += record.blocks_bytes;
        store.changes += 1;
    }
    Ok(Some((state, store)))
}
