//! The double write: a batch of DBWR's goes to an area of its writer first, as one sequential durable write, and to its
//! places after that, so that a block torn there by a power cut has a whole copy (as InnoDB does). The area is used
//! again when all of the batch is on stable storage. At a start, before anything is rolled forward, torn blocks are
//! restored from the areas.
//!
//! The file of the areas has one region for each writer: a header block, and [`AREA_BLOCKS`] blocks. Header: CRC32C of
//! the rest (4 bytes), magic (4), database (8), batch number (8), blocks (4), unused (4), and for each block its
//! address (8) and its checksum (4). A copy counts when it is whole and bears the header's checksum; of several, the
//! newest. A block that is whole in its place is left alone: what it lacks is in the redo.

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_io::{Arena, BlockDevice, Frame, Operation, ReadHold, Request, Submission};
use spindle_text::quantity::{size_free, size_needed};

use crate::block::{self, BlockAddress};
use crate::cache::writing::Sealed;
use crate::error::{KernelError, Result};
use crate::probe::{self, Probe};
use crate::settings::{KernelSettings, PlantedFault, WriteSync};
use crate::sga::Sga;
use crate::storage::Storage;
use crate::wait_event::{ProcessWaits, WaitEvent};

/// Blocks of a batch, at most.
pub(crate) const AREA_BLOCKS: usize = 128;
const MAGIC: u32 = 0x5350_4457;
const HEADER_BYTES: usize = 32;
const ENTRY_BYTES: usize = 12;

/// Size of the double write file for this many writers, bytes.
pub fn double_write_bytes(block_bytes: usize, writers: usize) -> u64 {
    writers as u64 * region_bytes(block_bytes)
}

fn region_bytes(block_bytes: usize) -> u64 {
    ((1 + AREA_BLOCKS) * block_bytes) as u64
}

/// A block that a header speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HeaderEntry {
    address: BlockAddress,
    checksum: [u8; 4],
}

fn seal_header(bytes: &mut [u8], database: u64, number: u64, entries: &[HeaderEntry]) {
    bytes.fill(0);
    bytes[4..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..16].copy_from_slice(&database.to_le_bytes());
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
    bytes[24..28].copy_from_slice(&(entries.len() as u32).to_le_bytes());
    let places = bytes[HEADER_BYTES..].chunks_exact_mut(ENTRY_BYTES);
    for (place, entry) in places.zip(entries) {
        place[..8].copy_from_slice(&entry.address.to_u64().to_le_bytes());
        place[8..].copy_from_slice(&entry.checksum);
    }
    let crc = crc32c::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
}

/// The batch number and the blocks of a whole header of this database.
fn read_header(bytes: &[u8], database: u64) -> Option<(u64, Vec<HeaderEntry>)> {
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let is_whole = crc32c::crc32c(&bytes[4..]).to_le_bytes() == bytes[..4];
    if !is_whole || bytes[4..8] != MAGIC.to_le_bytes() || long(8) != database {
        return None;
    }
    let count = u32::from_le_bytes(bytes[24..28].try_into().expect("four bytes")) as usize;
    let places = bytes[HEADER_BYTES..].chunks_exact(ENTRY_BYTES);
    let entries = places.take(count).map(|place| HeaderEntry {
        address: BlockAddress::from_u64(u64::from_le_bytes(
            place[..8].try_into().expect("eight bytes"),
        )),
        checksum: place[8..].try_into().expect("four bytes"),
    });
    Some((long(16), entries.collect()))
}

/// Refuses a file of areas that is too small for the writers there are.
pub(crate) fn check(storage: &Storage, settings: &KernelSettings) -> Result<()> {
    let needed = double_write_bytes(settings.block_bytes, settings.instance.writers as usize);
    let (device, reason) = match &storage.double_write {
        None => (
            "double write file".to_string(),
            "there is none, and torn_blocks is `double_write`".to_string(),
        ),
        Some(device) if device.limits().capacity_bytes < needed => (
            device.name().to_string(),
            format!(
                "{} are too few for {} writers: at least {}",
                size_free(device.limits().capacity_bytes),
                settings.instance.writers,
                size_needed(needed)
            ),
        ),
        Some(_) => return Ok(()),
    };
    Err(KernelError::Storage { device, reason })
}

fn arena(block_bytes: usize, frames: usize) -> Result<Arc<Arena>> {
    Arena::new(block_bytes, frames).map_err(|error| KernelError::Memory {
        what: "the double write",
        reason: error.to_string(),
    })
}

/// Makes areas that hold nothing, of a new database.
pub(crate) async fn create(device: &dyn BlockDevice, block_bytes: usize) -> Result<()> {
    let frame = arena(block_bytes, 1)?
        .allocate()
        .expect("the arena has a frame");
    for region in 0..device.limits().capacity_bytes / region_bytes(block_bytes) {
        let mut hold = frame.try_write_hold().expect("the frame is ours");
        hold.fill(0);
        let offset = region * region_bytes(block_bytes);
        let from = vec![hold.share(block_bytes)];
        let request = Request::write(offset, from, true, Submission::Alone);
        device.submit(request).await.result?;
    }
    Ok(())
}

/// The area of one writer.
pub(crate) struct Area {
    device: Arc<dyn BlockDevice>,
    offset: u64,
    header: Frame,
    number: u64,
    /// Datafiles that have blocks of the last batch, perhaps not yet on stable storage.
    unflushed: Vec<u16>,
}

impl Area {
    /// The area of writer number `writer`.
    pub(crate) fn new(
        device: &Arc<dyn BlockDevice>,
        block_bytes: usize,
        writer: usize,
    ) -> Result<Area> {
        let header = arena(block_bytes, 1)?.allocate();
        Ok(Area {
            device: Arc::clone(device),
            offset: writer as u64 * region_bytes(block_bytes),
            header: header.expect("the arena has a frame"),
            number: 0,
            unflushed: Vec::new(),
        })
    }

    /// Writes copies of a batch, whose redo is on stable storage; when this returns, so are they.
    pub(crate) async fn keep(
        &mut self,
        sga: &Sga,
        waits: &ProcessWaits,
        batch: &[Sealed],
    ) -> Result<()> {
        if sga.settings.has_planted(PlantedFault::DoubleWriteLeftOut) {
            return Ok(());
        }
        let wait = waits.begin(&*sga.env);
        let reused_early = sga
            .settings
            .has_planted(PlantedFault::DoubleWriteReusedEarly);
        let unflushed = std::mem::take(&mut self.unflushed);
        if !unflushed.is_empty() && !reused_early {
            let files = unflushed.iter().map(|&file| sga.storage.datafile(file));
            sga.flush(files).await?;
        }
        self.number += 1;
        let from = self.sealed(sga, batch);
        let bytes = from.iter().map(|hold| hold.len()).sum();
        let request = Request::write(self.offset, from, true, Submission::Batched);
        self.device.submit(request).await.result?;
        if sga.settings.instance.write_sync == WriteSync::Checkpoint {
            self.unflushed
                .extend(batch.iter().map(|block| block.address.file));
            self.unflushed.sort_unstable();
            self.unflushed.dedup();
        }
        sga.statistics.add_double_write(bytes);
        wait.end(WaitEvent::DoubleWrite);
        Ok(())
    }

    /// The header and the blocks, as they are written.
    fn sealed(&self, sga: &Sga, batch: &[Sealed]) -> Vec<ReadHold> {
        let entries: Vec<HeaderEntry> = batch
            .iter()
            .map(|block| HeaderEntry {
                address: block.address,
                checksum: block.bytes[..4].try_into().expect("four bytes"),
            })
            .collect();
        let mut header = self.header.try_write_hold().expect("the header is ours");
        seal_header(&mut header, sga.database_id(), self.number, &entries);
        let block_bytes = header.len();
        let blocks = batch.iter().map(|block| block.bytes.part(0, block_bytes));
        std::iter::once(header.share(block_bytes))
            .chain(blocks)
            .collect()
    }
}

/// Restores every torn block that has a copy. Returns how many.
pub(crate) async fn restore(sga: &Sga) -> Result<usize> {
    let Some(areas) = &sga.storage.double_write else {
        return Ok(0);
    };
    let block_bytes = sga.settings.block_bytes;
    let frames = arena(block_bytes, 2)?;
    let [frame, best] = [0, 1].map(|_| frames.allocate().expect("the arena has two frames"));
    let copies = find_copies(sga, &**areas, &frame).await?;
    // What a process that was killed had written may be readable and not stable: its copies will be written over soon.
    sga.flush_datafiles().await?;
    let mut restored = 0;
    for (address, places) in copies {
        let device = sga.storage.datafile(address.file);
        let offset = u64::from(address.block) * block_bytes as u64;
        read(&**device, offset, &frame).await?;
        if block::verify(&frame.try_read().expect("ours"), address).is_ok() {
            continue;
        }
        let mut newest = None;
        for (place, checksum) in places {
            read(&**areas, place, &frame).await?;
            let copy = frame.try_read().expect("ours");
            let is_whole = copy[..4] == checksum && block::verify(&copy, address).is_ok();
            if is_whole && newest < Some(block::scn(&copy)) {
                newest = Some(block::scn(&copy));
                best.try_write().expect("ours").copy_from_slice(&copy);
            }
        }
        if newest.is_none() {
            // It will be reported when it is needed.
            continue;
        }
        let from = vec![best.try_read_hold().expect("ours")];
        let request = Request::write(offset, from, true, Submission::Alone);
        device.submit(request).await.result?;
        sga.statistics.add_physical_write(block_bytes);
        probe::hit(Probe::TornBlockRestored);
        restored += 1;
    }
    Ok(restored)
}

/// Where in the file of areas there may be copies of each block, with the checksums they should bear.
async fn find_copies(
    sga: &Sga,
    areas: &dyn BlockDevice,
    frame: &Frame,
) -> Result<BTreeMap<BlockAddress, Vec<(u64, [u8; 4])>>> {
    let block_bytes = sga.settings.block_bytes;
    let mut copies: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for region in 0..areas.limits().capacity_bytes / region_bytes(block_bytes) {
        let offset = region * region_bytes(block_bytes);
        read(areas, offset, frame).await?;
        let header = read_header(&frame.try_read().expect("ours"), sga.database_id());
        let entries = header.map(|(_, entries)| entries).unwrap_or_default();
        for (place, entry) in (1..).zip(entries) {
            let at = offset + place * block_bytes as u64;
            copies
                .entry(entry.address)
                .or_default()
                .push((at, entry.checksum));
        }
    }
    Ok(copies)
}

async fn read(device: &dyn BlockDevice, offset: u64, frame: &Frame) -> Result<()> {
    let into = vec![frame.try_write_hold().expect("the frame is ours")];
    let outcome = device
        .submit(Request::read(offset, into, Submission::Alone))
        .await;
    debug_assert!(matches!(outcome.operation, Operation::Read(_)));
    Ok(outcome.result?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_known_by_its_checksum_and_its_database() {
        let entries: Vec<HeaderEntry> = (0..AREA_BLOCKS as u32)
            .map(|block| HeaderEntry {
                address: BlockAddress { file: 1, block },
                checksum: block.to_le_bytes(),
            })
            .collect();
        // The smallest block holds all there can be.
        let mut bytes = [0; 2048];
        seal_header(&mut bytes, 4711, 3, &entries);
        assert_eq!(read_header(&bytes, 4711), Some((3, entries)));
        assert_eq!(read_header(&bytes, 4712), None);
        bytes[100] ^= 1;
        assert_eq!(read_header(&bytes, 4711), None);
        assert_eq!(read_header(&[0; 2048], 0), None);
    }
}
