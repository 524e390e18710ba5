//! How the maps of free space are told. A change of a row that leaves its block with room says so in the same redo
//! record. A session that finds a block full says that in a separate one. A map tells what a block holds, whichever
//! transaction has that locked: nothing here is undone, and a block that a map says has room may have none left.

use std::sync::Arc;

use crate::block::space_map::{self, Fill};
use crate::block::{self, BlockAddress, BlockKind, heap};
use crate::cache::{Pin, Wanted};
use crate::change::blocks::change;
use crate::error::Result;
use crate::free_space::FreeSpace;
use crate::log::redo::{RecordBuilder, VectorKind};
use crate::sga::Sga;
use crate::wait_event::ProcessWaits;

/// The blocks of a change of one block with its undo record: both, and the map when that is told.
pub(crate) struct WithUndo {
    data: Pin,
    undo: Pin,
    map: Option<Pin>,
}

impl WithUndo {
    /// Gets the blocks; the map only where it `tells_map`.
    pub(crate) async fn get(
        sga: &Sga,
        waits: &ProcessWaits,
        data: BlockAddress,
        undo: BlockAddress,
        tells_map: bool,
    ) -> Result<WithUndo> {
        if !tells_map {
            let [undo, data] = sga.cache.get_two(sga, waits, [undo, data]).await?;
            let map = None;
            return Ok(WithUndo { data, undo, map });
        }
        WithUndo::get_with_map(sga, waits, Wanted::Present(data), undo).await
    }

    /// Gets the blocks and the map.
    pub(crate) async fn get_with_map(
        sga: &Sga,
        waits: &ProcessWaits,
        data: Wanted,
        undo: BlockAddress,
    ) -> Result<WithUndo> {
        let (map, _) = space_map::place_of(sga.settings.block_bytes, data.address());
        let wanted = [Wanted::Present(undo), data, Wanted::Present(map)];
        let [undo, data, map] = sga.cache.get_all(sga, waits, wanted).await?;
        let map = Some(map);
        Ok(WithUndo { data, undo, map })
    }

    /// They in order, and how many there are: the block, the undo block, the map.
    pub(crate) fn pins(&self) -> ([&Pin; 3], usize) {
        match &self.map {
            None => ([&self.data, &self.undo, &self.undo], 2),
            Some(map) => ([&self.data, &self.undo, map], 3),
        }
    }
}

/// The room of the blocks of a segment.
pub(crate) fn free_space(sga: &Sga, segment: u32) -> Arc<FreeSpace> {
    sga.free_spaces.of(segment, || {
        sga.control.read(|contents| {
            let mut segments = contents.segments.iter();
            let found = segments.find(|found| found.number == segment);
            found.map_or(0, |found| found.row_bytes as usize)
        })
    })
}

/// Adds the vector that tells the map what a block holds.
pub(crate) fn push_fill(sga: &Sga, builder: &mut RecordBuilder, address: BlockAddress, fill: Fill) {
    let (map, place) = space_map::place_of(sga.settings.block_bytes, address);
    let payload = [&place.to_le_bytes()[..], &[fill as u8]];
    builder.push(VectorKind::SetFill, map, &payload);
}

/// A session finds no room in a block that it has inserted into. True when the block has room all the same, which
/// others have locked.
pub(crate) async fn leave(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    free: &FreeSpace,
    address: BlockAddress,
) -> Result<bool> {
    let has_room = |block: &[u8]| heap::is_heap(block) && free.has_room(block, u16::MAX, None);
    if !free.is_mapped() || !free.is_known(address) {
        return Ok(false);
    }
    tell_unless(sga, waits, builder, free, (address, Fill::Full), has_room).await
}

/// Tells the map of a block what it holds, and forgets its room, unless it has some after all, which is returned.
pub(crate) async fn tell_unless(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    free: &FreeSpace,
    (address, fill): (BlockAddress, Fill),
    has_room: impl Fn(&[u8]) -> bool,
) -> Result<bool> {
    let (map, _) = space_map::place_of(sga.settings.block_bytes, address);
    let [map, data] = sga.cache.get_two(sga, waits, [map, address]).await?;
    let (has_room, _) = change(sga, waits, builder, &[&data, &map], |blocks, builder| {
        if has_room(&blocks[0]) {
            return Ok(true);
        }
        // While the block is held: the next to make room in it must know that the map is to be told.
        free.forget(address);
        push_fill(sga, builder, address, fill);
        Ok(false)
    })
    .await?;
    Ok(has_room)
}

/// What the maps say of a run of blocks: `hear` gets each block's address and what it holds.
pub(crate) async fn hear_maps(
    sga: &Sga,
    waits: &ProcessWaits,
    first: BlockAddress,
    count: u32,
    mut hear: impl FnMut(BlockAddress, Fill),
) -> Result<()> {
    let places = space_map::places_per_block(sga.settings.block_bytes);
    let (mut block, end) = (first.block, first.block + count);
    while block < end {
        let at = |block| BlockAddress {
            file: first.file,
            block,
        };
        let (map, place) = space_map::place_of(sga.settings.block_bytes, at(block));
        let here = (places - place).min(end - block);
        let pin = sga.cache.get(sga, waits, map).await?;
        let bytes = pin.read(sga, waits).await?;
        for step in 0..here {
            hear(at(block + step), space_map::fill_at(&bytes, place + step));
        }
        block += here;
    }
    Ok(())
}

/// True when a block was never used: it is as its extent, or its table, was made.
pub(crate) fn is_unused(block: &[u8]) -> bool {
    block::kind(block) == BlockKind::Unused as u8 || heap::is_heap(block) && heap::slots(block) == 0
}
