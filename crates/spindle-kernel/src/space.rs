//! The space of segments. Tablespaces are sets of datafiles; a segment gets extents from the files of its tablespace in
//! turn, so that a table lies evenly over all of them. Tables and indexes come here.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::sync::{Latch, SemaphorePermit};
use spindle_io::{Arena, Request, Submission};

use crate::block::{self, BlockAddress, BlockKind};
use crate::control_file::{Contents, Extent, Segment};
use crate::error::{KernelError, Result};
use crate::sga::Sga;

/// Extents are this long, so that multi-block reads stay within one (1 MiB, as Oracle's `AUTOALLOCATE` soon gives).
const EXTENT_BYTES: usize = 1 << 20;
/// Blocks written in one I/O while loading.
const LOAD_BATCH_BLOCKS: usize = 64;

/// The space of a segment.
pub(crate) struct Space {
    segment: u32,
    extents: Latch<Vec<Extent>>,
    extent_blocks: u32,
}

impl Space {
    /// What the dictionary says that a segment has.
    pub(crate) fn new(segment: &Segment, block_bytes: usize) -> Space {
        Space {
            segment: segment.number,
            extents: Latch::new(segment.extents.clone()),
            extent_blocks: extent_blocks(block_bytes),
        }
    }

    /// Blocks in each extent.
    pub(crate) fn extent_blocks(&self) -> u32 {
        self.extent_blocks
    }

    /// Blocks that it has, used or not.
    pub(crate) fn blocks(&self) -> u64 {
        let extents = self.extents.lock();
        extents.iter().map(|extent| u64::from(extent.blocks)).sum()
    }

    /// Address of a block, counted over the extents, and how many follow it in the same extent, itself included.
    pub(crate) fn run(&self, number: u64) -> Option<(BlockAddress, u32)> {
        // Every extent but a segment's last is of the same size.
        let extents = self.extents.lock();
        let extent = extents.get((number / u64::from(self.extent_blocks)) as usize)?;
        let within = (number % u64::from(self.extent_blocks)) as u32;
        let address = BlockAddress {
            file: extent.file,
            block: extent.first_block + within,
        };
        (within < extent.blocks).then_some((address, extent.blocks - within))
    }

    /// Gives the segment another extent; safe to be asked by several sessions at once, for `number` is the block they
    /// lack. The new blocks are formatted before the control file knows them.
    pub(crate) async fn extend(&self, sga: &Sga, number: u64) -> Result<()> {
        let mut plan = SpacePlan::begin(sga).await;
        let index = plan.contents.segment_index(self.segment);
        let have = plan.contents.segments[index].extents.len();
        if number < have as u64 * u64::from(self.extent_blocks) {
            return Ok(());
        }
        add_extents(
            &mut plan.contents,
            index,
            self.extent_blocks,
            self.extent_blocks,
        )?;
        let extents = plan.contents.segments[index].extents.clone();
        for extent in &extents[have..] {
            format_extent(sga, *extent).await?;
        }
        plan.enter().await?;
        *self.extents.lock() = extents;
        Ok(())
    }
}

/// A change of the dictionary that takes space, worked out on a copy. There is one at a time; it counts once it is
/// entered, after its blocks were written.
pub(crate) struct SpacePlan<'a> {
    sga: &'a Sga,
    /// What the control file is to say.
    pub(crate) contents: Contents,
    _turn: SemaphorePermit<'a>,
}

impl<'a> SpacePlan<'a> {
    /// Waits for the turn.
    pub(crate) async fn begin(sga: &'a Sga) -> SpacePlan<'a> {
        let turn = sga.space_turn.acquire().await;
        SpacePlan {
            _turn: turn.expect("the semaphore is never closed"),
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
        self.contents.segments.push(Segment {
            number: number as u32,
            name: name.to_string(),
            row_bytes: row_bytes as u32,
            loaded_rows,
            extents: Vec::new(),
        });
        let extent_blocks = extent_blocks(self.sga.settings.block_bytes);
        add_extents(&mut self.contents, number, blocks, extent_blocks)?;
        Ok(number)
    }

    /// Gives a segment, by its place in the list, another extent.
    pub(crate) fn add_extent(&mut self, segment: usize) -> Result<()> {
        let extent_blocks = extent_blocks(self.sga.settings.block_bytes);
        add_extents(&mut self.contents, segment, extent_blocks, extent_blocks)
    }

    /// Enters it in the control file.
    pub(crate) async fn enter(self) -> Result<()> {
        let plan = self.contents;
        let enter = |contents: &mut Contents| {
            contents.next_free = plan.next_free;
            contents.segments = plan.segments;
            contents.indexes = plan.indexes;
            Ok(())
        };
        self.sga.control.update_both(self.sga, enter).await
    }
}

/// Blocks in an extent.
pub(crate) fn extent_blocks(block_bytes: usize) -> u32 {
    (EXTENT_BYTES / block_bytes) as u32
}

/// Gives a segment extents for `blocks` blocks, from the data files in turn.
fn add_extents(
    contents: &mut Contents,
    segment: usize,
    blocks: u32,
    extent_blocks: u32,
) -> Result<()> {
    let data_files = 1..contents.file_blocks.len();
    let mut added = 0;
    while added < blocks {
        let turn = contents.segments[segment].extents.len();
        let fits =
            |file: &usize| contents.next_free[*file] + extent_blocks <= contents.file_blocks[*file];
        let file = data_files
            .clone()
            .map(|step| 1 + (step + turn - 1) % data_files.len())
            .find(fits)
            .ok_or_else(|| KernelError::TablespaceFull {
                tablespace: "DATA",
                segment: contents.segments[segment].name.clone(),
                extent_blocks,
            })?;
        let first_block = contents.next_free[file];
        contents.next_free[file] += extent_blocks;
        let extent = Extent {
            file: file as u16,
            first_block,
            blocks: extent_blocks,
        };
        contents.segments[segment].extents.push(extent);
        added += extent_blocks;
    }
    Ok(())
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
    filler.fill_bytes(bytes);
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
            sga.fail(error.to_string());
            return Err(error.into());
        }
        done += count;
    }
    Ok(())
}
