//! How blocks are changed: the one path by which sessions, roll-back and recovery of transactions alter anything. All
//! blocks of a change are held exclusively together, none is held while waiting for another; the record goes into the
//! log buffer before the blocks change; both happen or neither.

use crate::block;
use crate::buffer_cache::{ExclusiveBlock, Pin};
use crate::error::Result;
use crate::instance::Shared;
use crate::log::Append;
use crate::redo::{RecordBuilder, apply};
use crate::settings::PlantedFault;
use crate::wait_event::ProcessWaits;

/// Changes up to three blocks in one redo record. `plan` looks at the blocks (in the order of `pins`) and puts the vectors
/// of the change into the builder; it may be called again, after a wait, and must then plan afresh. Returns what `plan`
/// returned and the redo position after the record.
pub(crate) async fn change<T>(
    shared: &Shared,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    pins: &[&Pin],
    mut plan: impl FnMut(&[ExclusiveBlock<'_>], &mut RecordBuilder) -> Result<T>,
) -> Result<(T, u64)> {
    loop {
        let mut blocks = hold_all(shared, waits, pins).await?;
        builder.clear();
        let planned = plan(&blocks, builder)?;
        if builder.bytes().is_empty() {
            return Ok((planned, shared.log.end()));
        }
        match log(shared, pins, &blocks, builder) {
            Append::Done(end) => {
                carry_out(pins, &mut blocks, builder, end);
                return Ok((planned, end));
            }
            Append::BoundaryMoved => {}
            Append::Full => {
                drop(blocks);
                shared.log.wait_for_space(shared, waits).await?;
            }
        }
    }
}

/// Holds every block exclusively. While one is waited for, none is held.
async fn hold_all<'a>(
    shared: &Shared,
    waits: &ProcessWaits,
    pins: &[&'a Pin],
) -> Result<Vec<ExclusiveBlock<'a>>> {
    let mut wait_for = 0;
    loop {
        // Which block to wait for is the one that was busy last time; it is let go again unless it is the first.
        let waited = pins[wait_for].write(shared, waits).await?;
        let mut blocks = Vec::with_capacity(pins.len());
        let mut waited = Some(waited);
        let busy = pins.iter().enumerate().find_map(|(index, pin)| {
            let block = if index == wait_for {
                waited.take()
            } else {
                pin.try_write()
            };
            match block {
                Some(block) => {
                    blocks.push(block);
                    None
                }
                None => Some(index),
            }
        });
        match busy {
            None => return Ok(blocks),
            Some(index) => wait_for = index,
        }
    }
}

fn log(
    shared: &Shared,
    pins: &[&Pin],
    blocks: &[ExclusiveBlock<'_>],
    builder: &RecordBuilder,
) -> Append {
    let boundary = shared.log.image_boundary();
    let planted = shared.settings.has_planted(PlantedFault::ImagesLeftOut);
    let mut images: [Option<usize>; 3] = [None; 3];
    let mut count = 0;
    for (index, (pin, block)) in pins.iter().zip(blocks).enumerate() {
        let address = pin.address();
        let Some(first) = builder.vectors().find(|vector| vector.address == address) else {
            continue;
        };
        if block::scn(block) <= boundary && !first.kind.replaces_block() && !planted {
            images[count] = Some(index);
            count += 1;
        }
    }
    let position = shared.log.end();
    let lost = shared.settings.has_planted(PlantedFault::DirtyFlagLost);
    for pin in pins.iter().skip(usize::from(lost)) {
        if shared.cache.mark_dirty(pin, position) {
            shared.dbwr.wake_if_behind(shared, pin);
        }
    }
    let list = images.map(|image| image.map(|index| (pins[index].address(), &*blocks[index])));
    let list: Vec<_> = list.into_iter().flatten().collect();
    shared.log.append(boundary, &list, builder.bytes())
}

fn carry_out(pins: &[&Pin], blocks: &mut [ExclusiveBlock<'_>], builder: &RecordBuilder, end: u64) {
    for vector in builder.vectors() {
        let index = pins.iter().position(|pin| pin.address() == vector.address);
        let block = &mut blocks[index.expect("a vector changes one of the blocks held")];
        apply(vector, block);
        block::set_scn(block, end);
    }
}
