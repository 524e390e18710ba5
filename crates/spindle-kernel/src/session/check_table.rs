//! The check of a table's blocks, for a database that is not in use: what the maps of free space say of each block
//! agrees with it, and every migrated row is where its home says, once.

use std::collections::BTreeSet;

use super::Session;
use crate::block::heap::{self, RowKind};
use crate::block::space_map::Fill;
use crate::block::{BlockAddress, RowId};
use crate::cache::Pin;
use crate::change::space::{hear_maps, is_unused};
use crate::error::{KernelError, Result};
use crate::table::Table;

/// What a table is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableShape {
    /// Blocks that are or were in use.
    pub blocks: u64,
    /// Those that the maps say have room.
    pub with_room: u64,
    /// Rows that are not at home.
    pub migrated: u64,
}

/// Rows that have migrated: home and place of each, as both ends tell it.
#[derive(Default)]
struct Migrated {
    by_home: BTreeSet<(RowId, RowId)>,
    by_place: BTreeSet<(RowId, RowId)>,
}

impl Session {
    /// Checks the blocks of a table, which must not be in use meanwhile.
    ///
    /// # Errors
    /// [`KernelError::DamagedTable`], with the block and what is wrong with it.
    pub async fn check_table(&mut self, table: &Table) -> Result<TableShape> {
        let mut shape = TableShape::default();
        let mut migrated = Migrated::default();
        let mut number = 0;
        while let Some((first, count)) = table.space.run(number) {
            let mut fills = Vec::with_capacity(count as usize);
            let (sga, waits) = (&*self.sga, &*self.waits);
            if table.free.is_mapped() {
                hear_maps(sga, waits, first, count, |_, fill| fills.push(fill)).await?;
            }
            let (mut fills, mut block) = (fills.into_iter(), first.block);
            let end = block + count;
            while block < end {
                let wished = (end - block).min(sga.multiblock_read_blocks as u32);
                let run = BlockAddress { block, ..first };
                let pins = sga.cache.get_run(sga, waits, run, wished).await?;
                for pin in &pins {
                    let fill = fills.next();
                    let is_loaded = number < table.loaded_blocks();
                    self.check_block(table, pin, (fill, is_loaded), &mut migrated)
                        .await?;
                    number += 1;
                    shape.blocks += u64::from(fill.is_some_and(|fill| fill != Fill::Untold));
                    shape.with_room += u64::from(fill == Some(Fill::Room));
                }
                block += pins.len() as u32;
            }
        }
        let mut strays = migrated.by_home.symmetric_difference(&migrated.by_place);
        if let Some((home, place)) = strays.next() {
            let reason = format!("row {home} and its place {place} do not agree that it migrated");
            return Err(damaged(table, place.address, reason));
        }
        shape.migrated = migrated.by_home.len() as u64;
        Ok(shape)
    }

    async fn check_block(
        &self,
        table: &Table,
        pin: &Pin,
        (fill, is_loaded): (Option<Fill>, bool),
        migrated: &mut Migrated,
    ) -> Result<()> {
        let address = pin.address();
        let block = pin.read(&self.sga, &self.waits).await?;
        let agrees = match fill {
            None => true,
            Some(Fill::Untold) => is_loaded || is_unused(&block),
            Some(Fill::Full) => {
                heap::is_heap(&block) && !table.free.has_room(&block, u16::MAX, None)
            }
            Some(Fill::Room) => heap::is_heap(&block),
        };
        if !agrees {
            let (spare_bytes, _) = heap::spare(&block, u16::MAX, None);
            let reason = format!(
                "the map says {fill:?}, it is of kind {} and {spare_bytes} of its bytes are spare",
                crate::block::kind(&block)
            );
            return Err(damaged(table, address, reason));
        }
        let slots = match heap::is_heap(&block) {
            true => heap::slots(&block),
            false => 0,
        };
        for slot in 0..slots {
            let here = RowId { address, slot };
            match heap::stored(&block, slot) {
                Some((RowKind::Forward, bytes)) => {
                    let place = RowId::from_bytes(bytes);
                    migrated.by_home.insert((here, place));
                }
                Some((RowKind::Migrated, bytes)) => {
                    let home = RowId::from_bytes(bytes);
                    migrated.by_place.insert((home, here));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn damaged(table: &Table, address: BlockAddress, reason: String) -> KernelError {
    KernelError::DamagedTable {
        table: table.name().to_string(),
        address,
        reason,
    }
}
