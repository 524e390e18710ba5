//! Tables. Loading is a direct path: whole blocks go straight to the datafiles, without redo, and count only when the
//! control file knows them.

use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::sync::Latch;
use spindle_query::{RowLayout, RowLayoutError};

use crate::block::heap::{self, RowKind};
use crate::block::{self, BlockAddress, RowId, RowVersion};
use crate::control_file::Segment;
use crate::error::{KernelError, Result};
use crate::free_space::FreeSpace;
use crate::index::Index;
use crate::sga::Sga;
use crate::space::{Space, SpacePlan, extent_blocks, overshoot_blocks, write_extent};
use crate::transaction::undo_record::UNDO_RECORD_OVERHEAD_BYTES;

/// A table of an open database.
pub struct Table {
    pub(crate) segment: u32,
    name: String,
    row_bytes: usize,
    columns: Option<RowLayout>,
    slots_per_block: usize,
    loaded_rows: u64,
    pub(crate) space: Space,
    indexes: Latch<Arc<[Arc<Index>]>>,
    /// Where there is room for rows.
    pub(crate) free: Arc<FreeSpace>,
}

impl Table {
    /// A table of a segment; inserts begin behind the loaded rows.
    pub(crate) fn new(sga: &Sga, segment: &Segment) -> Table {
        let row_bytes = segment.row_bytes as usize;
        let slots_per_block = heap::slots_per_block(sga.settings.block_bytes, row_bytes);
        let free = sga.free_spaces.of(segment.number, || row_bytes);
        free.recall(&[], &[], segment.loaded_rows / slots_per_block as u64);
        Table {
            segment: segment.number,
            name: segment.name.clone(),
            row_bytes,
            columns: segment.columns.clone(),
            slots_per_block,
            loaded_rows: segment.loaded_rows,
            space: Space::new(segment),
            indexes: Latch::default(),
            free,
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

    /// Its columns, as the dictionary has them; `None`: its rows are bytes.
    pub fn columns(&self) -> Option<&RowLayout> {
        self.columns.as_ref()
    }

    /// What does not fit its columns, as an error that names it.
    pub(crate) fn misfit(&self, error: RowLayoutError) -> KernelError {
        KernelError::Columns {
            table: self.name.clone(),
            error,
        }
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

    /// Blocks it has; rows that were inserted may be in any of them.
    pub fn blocks(&self) -> u64 {
        self.space.blocks()
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
        self.space.run(number).map(|(address, _)| address)
    }

    /// Its index of a name.
    pub fn index(&self, name: &str) -> Result<Arc<Index>> {
        let indexes = self.indexes();
        let found = indexes.iter().find(|index| index.name() == name);
        found.cloned().ok_or_else(|| KernelError::NoSuchIndex {
            table: self.name.clone(),
            name: name.to_string(),
        })
    }

    /// Its indexes.
    pub fn indexes(&self) -> Arc<[Arc<Index>]> {
        Arc::clone(&self.indexes.lock())
    }

    /// It has another index.
    pub(crate) fn add_index(&self, index: &Arc<Index>) {
        let mut indexes = self.indexes.lock();
        *indexes = indexes.iter().chain([index]).map(Arc::clone).collect();
    }
}

/// Blocks that a segment which grows to this many may have beyond them, whole extents.
pub fn growth_blocks(block_bytes: usize, blocks: u64) -> u64 {
    overshoot_blocks(blocks, extent_blocks(block_bytes))
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

/// What the rows of a new table are.
#[derive(Debug, Clone)]
pub enum RowsOf {
    /// Up to this many bytes, of which the database knows no more.
    Bytes(usize),
    /// Columns; code that makes a row keeps to them.
    Columns(RowLayout),
}

impl From<usize> for RowsOf {
    fn from(bytes: usize) -> RowsOf {
        RowsOf::Bytes(bytes)
    }
}

impl From<RowLayout> for RowsOf {
    fn from(columns: RowLayout) -> RowsOf {
        RowsOf::Columns(columns)
    }
}

/// Makes a table and loads it: `fill` is called for each row in order with as many random
/// bytes as the longest has, and may make it shorter.
pub(crate) async fn create(
    sga: &Sga,
    name: &str,
    of: RowsOf,
    rows: u64,
    mut fill: impl FnMut(u64, &mut Vec<u8>),
    is_interrupted: impl Fn() -> bool,
) -> Result<Arc<Table>> {
    let block_bytes = sga.settings.block_bytes;
    let (row_bytes, columns) = match of {
        RowsOf::Bytes(bytes) => (bytes, None),
        RowsOf::Columns(columns) => (columns.row_bytes_max(), Some(columns)),
    };
    let row_bytes_max = row_bytes_max(block_bytes);
    if !(1..=row_bytes_max).contains(&row_bytes) {
        return Err(KernelError::RowsTooLong {
            table: name.to_string(),
            row_bytes,
            row_bytes_max,
        });
    }
    let mut plan = SpacePlan::begin(sga).await;
    let blocks = table_blocks(block_bytes, row_bytes, rows) as u32;
    let number = plan.add_segment(name, row_bytes, rows, blocks)?;
    plan.contents.segments[number].columns = columns;
    let segment = &plan.contents.segments[number];
    let table = Table::new(sga, segment);
    let mut filler = sga.env.rng(u64::from(table.segment));
    let mut first_number = 0;
    for extent in &segment.extents {
        if is_interrupted() {
            return Err(KernelError::LoadInterrupted);
        }
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
        first_number += u64::from(extent.blocks);
    }
    sga.flush_datafiles().await?;
    drop(plan.enter().await?);
    Ok(Arc::new(table))
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
            heap::put_row(bytes, slot as u16, RowKind::Row, RowVersion::LOADED, &row);
        }
    }
    block::seal(bytes);
}
