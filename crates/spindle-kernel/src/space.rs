//! The space of segments. Tablespaces are sets of datafiles; a segment gets extents from the files of its tablespace in
//! turn, so that a table lies evenly over all of them. Extents grow with their segment, so that the dictionary stays
//! small: it is written whole when a segment gets one. Tables and indexes come here, and undo when it grows.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::sync::{Latch, SemaphorePermit};
use spindle_io::{Arena, Request, Submission};

use crate::block::{self, BlockAddress, BlockKind, space_map};
use crate::control_file::UNDO_SEGMENT;
use crate::control_file::{Contents, Extent, Segment};
use crate::error::{KernelError, Result};
use crate::probe::{self, Probe};
use crate::settings::PlantedFault;
use crate::sga::Sga;
use crate::wait_event::{ProcessWaits, WaitEvent};

/// A segment's first extents are this long, so that multi-block reads stay within one. These two sizes are those that
/// Oracle's `AUTOALLOCATE` gives to segments from 64 KiB to 1 GiB.
const EXTENT_BYTES: usize = 1 << 20;
/// Its last ones are at most this many times as long: 8 MiB.
const EXTENT_GROWTH_MAX: u32 = 8;
/// An extent is no longer than this part of what its segment has, so that little of it is left unused.
const GROWTH: u64 = 16;
/// Blocks written in one I/O while loading.
const LOAD_BATCH_BLOCKS: usize = 64;

/// The space of a segment.
pub(crate) struct Space {
    segment: u32,
    extents: Latch<Extents>,
}

/// Extents in order, with the number of blocks up to the end of each.
struct Extents {
    list: Vec<Extent>,
    ends: Vec<u64>,
}

impl Extents {
    fn new(list: Vec<Extent>) -> Extents {
        let ends = list.iter().scan(0, |end, extent| {
            *end += u64::from(extent.blocks);
            Some(*end)
        });
        Extents {
            ends: ends.collect(),
            list,
        }
    }

    fn blocks(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }
}

impl Space {
    /// What the dictionary says that a segment has.
    pub(crate) fn new(segment: &Segment) -> Space {
        Space {
            segment: segment.number,
            extents: Latch::new(Extents::new(segment.extents.clone())),
        }
    }

    /// Blocks that it has, used or not.
    pub(crate) fn blocks(&self) -> u64 {
        self.extents.lock().blocks()
    }

    /// Address of a block, counted over the extents, and how many follow it in the same extent, itself included.
    pub(crate) fn run(&self, number: u64) -> Option<(BlockAddress, u32)> {
        let extents = self.extents.lock();
        let order = extents.ends.partition_point(|end| *end <= number);
        let (extent, end) = (extents.list.get(order)?, extents.ends[order]);
        let left = (end - number) as u32;
        let address = BlockAddress {
            file: extent.file,
            block: extent.first_block + extent.blocks - left,
        };
        Some((address, left))
    }

    /// Gives the segment another extent; safe to be asked by several sessions at once, for `number` is the block they
    /// lack. The new blocks are formatted before the control file knows them.
    pub(crate) async fn extend(&self, sga: &Sga, waits: &ProcessWaits, number: u64) -> Result<()> {
        let wait = waits.begin(&*sga.env);
        let mut plan = SpacePlan::begin(sga).await;
        let index = plan.contents.segment_index(self.segment);
        if number < plan.contents.segments[index].blocks() {
            wait.end(WaitEvent::SpaceContention);
            return Ok(());
        }
        plan.add_extent(index)?;
        let extents = plan.contents.segments[index].extents.clone();
        let added = extents.last().expect("one was added");
        format_extent(sga, *added).await?;
        let _turn = plan.enter().await?;
        // Within the turn: the next session must not find blocks in the control file that it cannot see here.
        *self.extents.lock() = Extents::new(extents);
        wait.end(WaitEvent::DataFileInitWrite);
        Ok(())
    }
}

/// Gives the undo segment an extent of the datafiles, for running transactions have all of its blocks; safe to be asked
/// by several sessions at once. Error when the datafiles have no room for one.
pub(crate) async fn extend_undo(sga: &Sga, waits: &ProcessWaits) -> Result<()> {
    let wait = waits.begin(&*sga.env);
    let mut plan = SpacePlan::begin(sga).await;
    if !sga.undo.is_full() {
        wait.end(WaitEvent::SpaceContention);
        return Ok(());
    }
    let index = plan.contents.segment_index(UNDO_SEGMENT);
    plan.add_extent(index).map_err(|_| KernelError::UndoFull {
        undo_blocks: sga.undo.undo_blocks(),
    })?;
    let extents = &plan.contents.segments[index].extents;
    let added = *extents.last().expect("one was added");
    format_extent(sga, added).await?;
    let untold = sga.settings.has_planted(PlantedFault::UndoGrownUntold);
    let _turn = match untold {
        true => None,
        false => Some(plan.enter().await?),
    };
    probe::hit(Probe::UndoGrown);
    sga.undo.add_extent(added);
    wait.end(WaitEvent::DataFileInitWrite);
    Ok(())
}

/// A change of the dictionary that takes space, worked out on a copy. There is one at a time; it counts once it is
/// entered, after its blocks were written.
pub(crate) struct SpacePlan<'a> {
    sga: &'a Sga,
    /// What the control file is to say.
    pub(crate) contents: Contents,
    turn: SemaphorePermit<'a>,
}

impl<'a> SpacePlan<'a> {
    /// Waits for the turn.
    pub(crate) async fn begin(sga: &'a Sga) -> SpacePlan<'a> {
        let turn = sga.space_turn.acquire().await;
        SpacePlan {
            turn: turn.expect("the semaphore is never closed"),
            contents: sga.control.read(Clone::clone),
            sga,
        }
    }

    /// Adds a segment with extents for `blocks` blocks; where it is in the list.
    pub(crate) fn add_segment(
        &mut self,
        name: &str,
        row_bytes: usize,
        loaded_rows: u64,
        blocks: u32,
    ) -> Result<usize> {
        let number = self.contents.segments.len();
        self.sga.free_spaces.forget(number as u32);
        self.contents.segments.push(Segment {
            number: number as u32,
            name: name.to_string(),
            row_bytes: row_bytes as u32,
            loaded_rows,
            extents: Vec::new(),
            columns: None,
        });
        let extent_blocks = self.extent_blocks();
        add_extents(&mut self.contents, number, blocks, extent_blocks)?;
        Ok(number)
    }

    /// Gives a segment, by its place in the list, another extent.
    pub(crate) fn add_extent(&mut self, segment: usize) -> Result<()> {
        let have = self.contents.segments[segment].blocks();
        let extent_blocks = self.extent_blocks();
        let blocks = next_extent_blocks(have, extent_blocks);
        add_one(&mut self.contents, segment, blocks, extent_blocks).map(drop)
    }

    fn extent_blocks(&self) -> u32 {
        extent_blocks(self.sga.settings.block_bytes)
    }

    /// Enters it in the control file. The turn lasts as long as the returned permit.
    pub(crate) async fn enter(self) -> Result<SemaphorePermit<'a>> {
        let plan = self.contents;
        let enter = |contents: &mut Contents| {
            contents.next_free = plan.next_free;
            contents.segments = plan.segments;
            contents.indexes = plan.indexes;
            Ok(())
        };
        self.sga.control.update_both(self.sga, enter).await?;
        Ok(self.turn)
    }
}

/// Blocks of a datafile that has room for `blocks`: with its header and the map of its free space.
pub fn datafile_blocks(block_bytes: usize, blocks: u64) -> u64 {
    let mut map = 1;
    while u64::from(space_map::map_blocks(
        block_bytes,
        (1 + map + blocks) as u32,
    )) > map
    {
        map += 1;
    }
    1 + map + blocks
}

/// Blocks in the smallest extent.
pub(crate) fn extent_blocks(block_bytes: usize) -> u32 {
    (EXTENT_BYTES / block_bytes) as u32
}

/// Blocks in the next extent of a segment that has this many, a power of two times those of the smallest.
fn next_extent_blocks(have: u64, extent_blocks: u32) -> u32 {
    let wished = (have / GROWTH / u64::from(extent_blocks)).max(1);
    extent_blocks * (1 << wished.ilog2().min(EXTENT_GROWTH_MAX.ilog2()))
}

/// Blocks that a segment which grows to this many may have beyond them.
pub(crate) fn overshoot_blocks(blocks: u64, extent_blocks: u32) -> u64 {
    u64::from(next_extent_blocks(blocks, extent_blocks))
}

/// Gives a segment extents for `blocks` blocks, from the data files in turn; smaller ones where the files have no more
/// room for the size that is due.
fn add_extents(
    contents: &mut Contents,
    segment: usize,
    blocks: u32,
    extent_blocks: u32,
) -> Result<()> {
    let mut added = 0;
    while added < blocks {
        let due = next_extent_blocks(contents.segments[segment].blocks(), extent_blocks);
        let left = (blocks - added).next_multiple_of(extent_blocks);
        added += add_one(contents, segment, due.min(left), extent_blocks)?;
    }
    Ok(())
}

/// Gives a segment an extent of `wished` blocks or fewer; how many it has.
fn add_one(
    contents: &mut Contents,
    segment: usize,
    wished: u32,
    extent_blocks: u32,
) -> Result<u32> {
    let extent = place_extent(contents, segment, wished, extent_blocks)?;
    contents.next_free[usize::from(extent.file)] += extent.blocks;
    contents.segments[segment].extents.push(extent);
    Ok(extent.blocks)
}

/// Where the next extent of a segment has room: of `wished` blocks, or half as many, and so on.
fn place_extent(
    contents: &Contents,
    segment: usize,
    wished: u32,
    extent_blocks: u32,
) -> Result<Extent> {
    let data_files = contents.file_blocks.len() - 1;
    let turn = contents.segments[segment].extents.len();
    let mut blocks = wished;
    while blocks >= extent_blocks {
        let files = (0..data_files).map(|step| 1 + (step + turn) % data_files);
        let has_room =
            |file: &usize| contents.next_free[*file] + blocks <= contents.file_blocks[*file];
        if let Some(file) = files.into_iter().find(has_room) {
            return Ok(Extent {
                file: file as u16,
                first_block: contents.next_free[file],
                blocks,
            });
        }
        blocks = blocks / 2 / extent_blocks * extent_blocks;
    }
    Err(KernelError::TablespaceFull {
        tablespace: "DATA",
        segment: contents.segments[segment].name.clone(),
        extent_blocks,
    })
}

/// Writes unused blocks over an extent.
async fn format_extent(sga: &Sga, extent: Extent) -> Result<()> {
    let mut filler = sga
        .env
        .rng(u64::from(extent.first_block) << 16 | u64::from(extent.file));
    write_extent(sga, extent, |_, address, bytes| {
        format_unused(address, bytes, &mut filler)
    })
    .await?;
    sga.flush_datafiles().await
}

/// An unused block: a header, and bytes that do not compress.
pub(crate) fn format_unused(
    address: BlockAddress,
    bytes: &mut [u8],
    filler: &mut Xoshiro256PlusPlus,
) {
    for word in bytes.chunks_exact_mut(8) {
        word.copy_from_slice(&filler.next_u64().to_le_bytes());
    }
    block::format(bytes, BlockKind::Unused, address, 0);
    block::seal(bytes);
}

/// Writes every block of an extent past the cache; `fill` makes the block of a number within it.
pub(crate) async fn write_extent(
    sga: &Sga,
    extent: Extent,
    mut fill: impl FnMut(u32, BlockAddress, &mut [u8]),
) -> Result<()> {
    let block_bytes = sga.settings.block_bytes;
    let arena =
        Arena::new(block_bytes, LOAD_BATCH_BLOCKS).map_err(|error| KernelError::Memory {
            what: "loading",
            reason: error.to_string(),
        })?;
    let mut done = 0;
    while done < extent.blocks {
        let count = (extent.blocks - done).min(LOAD_BATCH_BLOCKS as u32);
        let mut holds = Vec::with_capacity(count as usize);
        for step in done..done + count {
            let frame = arena
                .allocate()
                .expect("a frame for each block of the batch");
            let mut bytes = frame.try_write_hold().expect("the frame is ours");
            fill(
                step,
                BlockAddress {
                    file: extent.file,
                    block: extent.first_block + step,
                },
                &mut bytes,
            );
            holds.push(bytes.share(block_bytes));
        }
        let offset = u64::from(extent.first_block + done) * block_bytes as u64;
        let request = Request::write(offset, holds, false, Submission::Alone);
        let device = sga.storage.datafile(extent.file);
        if let Err(error) = device.submit(request).await.result {
            let error = error.into();
            sga.fail_by("", &error);
            return Err(error);
        }
        done += count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_file::{COPY_BYTES, CheckpointRecord, encode};
    use crate::log::marks::Location;

    const BLOCK_BYTES: usize = 8192;

    /// A database of two segments without space, with files of this many blocks; the first is undo's.
    fn contents(file_blocks: &[u32]) -> Contents {
        let segment = |number| Segment {
            number,
            name: format!("segment {number}"),
            row_bytes: 100,
            loaded_rows: 0,
            extents: Vec::new(),
            columns: None,
        };
        let location = Location {
            position: 0,
            file: 0,
            sequence: 1,
            offset: 0,
        };
        Contents {
            database: 1,
            block_bytes: BLOCK_BYTES as u32,
            checkpoint: CheckpointRecord {
                position: 0,
                location,
            },
            next_free: vec![1; file_blocks.len()],
            file_blocks: file_blocks.to_vec(),
            segments: vec![segment(0), segment(1)],
            indexes: Vec::new(),
            has_maps: false,
        }
    }

    /// Lets a segment grow, extent by extent, until it has this many blocks.
    fn grow(contents: &mut Contents, segment: usize, blocks: u64) {
        let smallest = extent_blocks(BLOCK_BYTES);
        while contents.segments[segment].blocks() < blocks {
            let have = contents.segments[segment].blocks();
            let next = next_extent_blocks(have, smallest);
            add_one(contents, segment, next, smallest).unwrap();
        }
    }

    #[test]
    fn a_hundred_million_rows_take_a_small_part_of_the_dictionary() {
        // Rows of 200 bytes and two keys, half of each block of an index empty.
        let blocks = 100_000_000 * 450 / BLOCK_BYTES as u64;
        let mut contents = contents(&[1, 4_000_000, 4_000_000]);
        grow(&mut contents, 1, blocks);
        let bytes = encode(&contents, 1).len() as u64;
        assert!(bytes < COPY_BYTES / 3, "{bytes} bytes");
        let unused = contents.segments[1].blocks() - blocks;
        assert!(unused < overshoot_blocks(blocks, extent_blocks(BLOCK_BYTES)));
    }

    #[test]
    fn every_block_has_one_place_and_files_take_turns() {
        let mut contents = contents(&[1, 100_000, 100_000, 100_000]);
        grow(&mut contents, 0, 30_000);
        grow(&mut contents, 1, 10_000);
        let mut places = std::collections::BTreeSet::new();
        for segment in &contents.segments {
            let space = Space::new(segment);
            for number in 0..space.blocks() {
                let (address, left) = space.run(number).unwrap();
                assert!(places.insert((address.file, address.block)));
                let (next, _) = space.run(number + u64::from(left) - 1).unwrap();
                assert_eq!(
                    (next.file, next.block),
                    (address.file, address.block + left - 1)
                );
            }
            assert!(space.run(space.blocks()).is_none());
        }
        let taken = &contents.next_free[1..];
        let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
        assert!(
            most - least <= 3 * 8 * extent_blocks(BLOCK_BYTES),
            "{taken:?}"
        );
    }

    #[test]
    fn the_last_room_is_given_in_smaller_extents() {
        let smallest = extent_blocks(BLOCK_BYTES);
        let mut contents = contents(&[1, 1 + 203 * smallest, 1 + 100 * smallest]);
        grow(&mut contents, 1, 303 * u64::from(smallest));
        assert_eq!(contents.segments[1].blocks(), 303 * u64::from(smallest));
        let error = add_one(&mut contents, 1, smallest, smallest).unwrap_err();
        assert!(
            matches!(error, KernelError::TablespaceFull { .. }),
            "{error}"
        );
    }
}
