//! Tables and the space they take. Tablespaces are sets of datafiles; a segment gets extents from the files of its
//! tablespace in turn, so that a table lies evenly over all of them. Loading is a direct path: whole blocks go
//! straight to the datafiles, without redo, and count only when the control file knows them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::sync::Latch;
use spindle_io::{Arena, Request, Submission};

use crate::block::heap::{self, RowKind};
use crate::block::{self, BlockAddress, BlockKind, RowId, Version};
use crate::control_file::{Contents, Extent, Segment};
use crate::error::{KernelError, Result};
use crate::sga::Sga;
use crate::transaction::undo_record::UNDO_RECORD_OVERHEAD_BYTES;

/// Extents are this long, so that multi-block reads stay within one (1 MiB, as Oracle's `AUTOALLOCATE` soon gives).
const EXTENT_BYTES: usize = 1 << 20;
/// Blocks written in one I/O while loading.
const LOAD_BATCH_BLOCKS: usize = 64;

/// A table of an open database.
pub struct Table {
    pub(crate) segment: u32,
    name: String,
    row_bytes: usize,
    slots_per_block: usize,
    loaded_rows: u64,
    extents: Latch<Vec<Extent>>,
    extent_blocks: u32,
    /// The next block, counted over the extents, that a session takes for its inserts.
    pub(crate) insert_block: AtomicU64,
}

impl Table {
    pub(crate) fn new(segment: &Segment, block_bytes: usize) -> Table {
        let row_bytes = segment.row_bytes as usize;
        let slots_per_block = heap::slots_per_block(block_bytes, row_bytes);
        Table {
            segment: segment.number,
            name: segment.name.clone(),
            row_bytes,
            slots_per_block,
            loaded_rows: segment.loaded_rows,
            extents: Latch::new(segment.extents.clone()),
            extent_blocks: extent_blocks(block_bytes),
            insert_block: AtomicU64::new(segment.loaded_rows / slots_per_block as u64),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Length of the longest row it takes, bytes.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Error when a row of `row_bytes` is too long for it.
    pub(crate) fn check_row_bytes(&self, row_bytes: usize) -> Result<()> {
        if row_bytes > self.row_bytes {
            return Err(KernelError::RowTooLong {
                table: self.name.clone(),
                row_bytes,
                row_bytes_max: self.row_bytes,
            });
        }
        Ok(())
    }

    /// Rows it was loaded with; they are numbered from 0.
    pub fn loaded_rows(&self) -> u64 {
        self.loaded_rows
    }

    /// Blocks the loaded rows fill.
    pub fn loaded_blocks(&self) -> u64 {
        self.loaded_rows.div_ceil(self.slots_per_block as u64)
    }

    /// Loaded rows in a block; there may be more of those inserted later, or fewer.
    pub fn rows_per_block(&self) -> usize {
        self.slots_per_block
    }

    /// Rowid of a loaded row.
    pub fn row_id(&self, row: u64) -> RowId {
        assert!(
            row < self.loaded_rows,
            "row {row} of {} was not loaded",
            self.name
        );
        let (block, slot) = (
            row / self.slots_per_block as u64,
            row % self.slots_per_block as u64,
        );
        let address = self.block(block).expect("loaded rows have blocks");
        RowId {
            address,
            slot: slot as u16,
        }
    }

    /// Address of a block, counted over the extents; `None` beyond the last.
    pub fn block(&self, number: u64) -> Option<BlockAddress> {
        self.run(number).map(|(address, _)| address)
    }

    /// Address of a block and how many follow it in the same extent, itself included.
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

    /// Gives the table another extent; safe to be asked by several sessions at once, for `number` is the block they
    /// lack. The new blocks are formatted before the control file knows them.
    pub(crate) async fn extend(&self, sga: &Sga, number: u64) -> Result<()> {
        let _turn = sga
            .space_turn
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let mut plan = sga.control.read(Clone::clone);
        let index = plan.segment_index(self.segment);
        let have = plan.segments[index].extents.len();
        if number < have as u64 * u64::from(self.extent_blocks) {
            return Ok(());
        }
        add_extents(&mut plan, index, self.extent_blocks, self.extent_blocks)?;
        for extent in &plan.segments[index].extents[have..] {
            format_extent(sga, *extent).await?;
        }
        let extents = plan.segments[index].extents.clone();
        sga.control
            .update_both(sga, |contents| {
                contents.next_free = plan.next_free;
                contents.segments = plan.segments;
                Ok(())
            })
            .await?;
        *self.extents.lock() = extents;
        Ok(())
    }
}

/// Blocks in an extent.
pub(crate) fn extent_blocks(block_bytes: usize) -> u32 {
    (EXTENT_BYTES / block_bytes) as u32
}

/// Gives a segment extents for `blocks` blocks, from the data files in turn.
pub(crate) fn add_extents(
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

/// Blocks that `rows` loaded rows of up to `row_bytes` take, whole extents.
pub fn table_blocks(block_bytes: usize, row_bytes: usize, rows: u64) -> u64 {
    let blocks = rows
        .div_ceil(heap::slots_per_block(block_bytes, row_bytes) as u64)
        .max(1);
    blocks.next_multiple_of(u64::from(extent_blocks(block_bytes)))
}

/// The longest row a table may have: the row and its undo record must each fit into a block.
pub fn row_bytes_max(block_bytes: usize) -> usize {
    let undo_bytes_max =
        block::undo::record_bytes_max(block_bytes) - UNDO_RECORD_OVERHEAD_BYTES - RowId::BYTES;
    heap::row_bytes_max(block_bytes).min(undo_bytes_max)
}

/// Makes a table of rows of up to `row_bytes` and loads it: `fill` is called for each row in order with as many random
/// bytes as the longest has, and may make it shorter.
pub(crate) async fn create(
    sga: &Sga,
    name: &str,
    row_bytes: usize,
    rows: u64,
    mut fill: impl FnMut(u64, &mut Vec<u8>),
    is_interrupted: impl Fn() -> bool,
) -> Result<Arc<Table>> {
    let block_bytes = sga.settings.block_bytes;
    assert!(
        (1..=row_bytes_max(block_bytes)).contains(&row_bytes),
        "a row of {row_bytes} bytes does not fit a block of {block_bytes}"
    );
    let _turn = sga
        .space_turn
        .acquire()
        .await
        .expect("the semaphore is never closed");
    let mut plan = sga.control.read(Clone::clone);
    let index = plan.segments.len();
    plan.segments.push(Segment {
        number: index as u32,
        name: name.to_string(),
        row_bytes: row_bytes as u32,
        loaded_rows: rows,
        extents: Vec::new(),
    });
    let blocks = table_blocks(block_bytes, row_bytes, rows) as u32;
    add_extents(&mut plan, index, blocks, extent_blocks(block_bytes))?;
    let table = Table::new(&plan.segments[index], block_bytes);
    let mut filler = sga.env.rng(u64::from(table.segment));
    for (order, extent) in plan.segments[index].extents.iter().enumerate() {
        if is_interrupted() {
            return Err(KernelError::LoadInterrupted);
        }
        let first_number = order as u64 * u64::from(table.extent_blocks);
        write_extent(sga, *extent, |step, address, bytes| {
            fill_block(
                &table,
                first_number + u64::from(step),
                address,
                bytes,
                &mut filler,
                &mut fill,
            );
        })
        .await?;
    }
    sga.flush_datafiles().await?;
    sga.control
        .update_both(sga, |contents| {
            contents.next_free = plan.next_free;
            contents.segments = plan.segments;
            Ok(())
        })
        .await?;
    Ok(Arc::new(table))
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

fn fill_block(
    table: &Table,
    number: u64,
    address: BlockAddress,
    bytes: &mut [u8],
    filler: &mut Xoshiro256PlusPlus,
    fill: &mut impl FnMut(u64, &mut Vec<u8>),
) {
    filler.fill_bytes(bytes);
    heap::format_heap(bytes, address, table.segment);
    let mut row = Vec::new();
    for slot in 0..table.slots_per_block {
        let row_number = number * table.slots_per_block as u64 + slot as u64;
        if row_number < table.loaded_rows {
            row.resize(table.row_bytes, 0);
            filler.fill_bytes(&mut row);
            fill(row_number, &mut row);
            assert!(
                row.len() <= table.row_bytes,
                "a row shall not be longer than declared"
            );
            heap::put_row(bytes, slot as u16, RowKind::Row, Version::LOADED, &row);
        }
    }
    block::seal(bytes);
}

/// The next insert block of a session.
pub(crate) fn next_insert_block(table: &Table) -> u64 {
    table.insert_block.fetch_add(1, Ordering::Relaxed)
}
