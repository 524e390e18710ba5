//! How blocks are changed: the one path by which sessions, roll-back and recovery of transactions alter anything. All
//! blocks of a change are held exclusively together, none is held while waiting for another; they are marked dirty, the
//! record goes into the log buffer, the blocks change: all of it happens or nothing. Which blocks need their image in
//! the record is said in [`crate::processes::checkpoint`].

use smallvec::SmallVec;

use crate::block::{self, BlockAddress};
use crate::buggify::Switch;
use crate::cache::{Begun, ExclusiveBlock, Pin};
use crate::error::Result;
use crate::log::buffer::{Append, record_bytes};
use crate::log::redo::{RecordBuilder, apply};
use crate::log::room::Room;
use crate::settings::{PlantedFault, TornBlocks};
use crate::sga::Sga;
use crate::wait_event::ProcessWaits;

/// Blocks that one record changes at most: the split of a node changes it, its new neighbour, the branch above, and the
/// index's header.
pub(crate) const BLOCKS_MAX: usize = 4;

/// Changes up to [`BLOCKS_MAX`] blocks in one redo record. `plan` looks at the blocks (in the order of `pins`) and
/// puts the vectors of the change into the builder; it may be called again, after a wait, and must then plan afresh.
/// Returns what `plan` returned and the redo position after the record.
pub(crate) async fn change<T>(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    pins: &[&Pin],
    plan: impl FnMut(&[ExclusiveBlock<'_>], &mut RecordBuilder) -> Result<T>,
) -> Result<(T, u64)> {
    change_and_note(sga, waits, builder, pins, plan, |_| ()).await
}

/// The same. Once the blocks are changed, and before they are let go, `note` gets what `plan` returned, to remember it
/// in memory.
pub(crate) async fn change_and_note<T>(
    sga: &Sga,
    waits: &ProcessWaits,
    builder: &mut RecordBuilder,
    pins: &[&Pin],
    mut plan: impl FnMut(&[ExclusiveBlock<'_>], &mut RecordBuilder) -> Result<T>,
    note: impl FnOnce(&T),
) -> Result<(T, u64)> {
    let mut room = None;
    loop {
        sga.pause(Switch::SessionPausesBeforeChange).await;
        let mut blocks = hold_all(sga, waits, pins).await?;
        sga.pause(Switch::SessionPausesInChange).await;
        builder.clear();
        let planned = plan(&blocks, builder)?;
        if builder.bytes().is_empty() {
            return Ok((planned, sga.log.end()));
        }
        match log(sga, pins, &blocks, builder, &mut room) {
            Append::Done { start, end } => {
                let planted = sga.settings.has_planted(PlantedFault::ScnHandedOutTwice);
                let end = if planted { start } else { end };
                check_newer(sga, pins, &blocks, end)?;
                carry_out(pins, &mut blocks, builder, end);
                note(&planned);
                if sga.buggify.fires(Switch::LgwrEager) {
                    sga.log.request(end);
                }
                return Ok((planned, end));
            }
            Append::Full { bytes } => {
                drop(blocks);
                room = Some(sga.log.wait_for_room(sga, waits, bytes, room).await?);
            }
        }
    }
}

/// Holds every block exclusively. While one is waited for, none is held.
async fn hold_all<'a>(
    sga: &Sga,
    waits: &ProcessWaits,
    pins: &[&'a Pin],
) -> Result<SmallVec<[ExclusiveBlock<'a>; BLOCKS_MAX]>> {
    let mut wait_for = 0;
    loop {
        // Which block to wait for is the one that was busy last time; it is let go again unless it is the first.
        let waited = pins[wait_for].write(sga, waits).await?;
        let mut blocks = SmallVec::new();
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

/// Marks the blocks dirty and puts the record into the log buffer, with an image of every block that needs one. When
/// there is no room the blocks are what they were.
fn log(
    sga: &Sga,
    pins: &[&Pin],
    blocks: &[ExclusiveBlock<'_>],
    builder: &RecordBuilder,
    room: &mut Option<Room<'_>>,
) -> Append {
    let lost = sga.settings.has_planted(PlantedFault::DirtyFlagLost);
    let left_out = sga.settings.has_planted(PlantedFault::ImagesLeftOut);
    let mut begun = [None; BLOCKS_MAX];
    let mut is_whole = [false; BLOCKS_MAX];
    let mut images: [Option<(BlockAddress, &[u8])>; BLOCKS_MAX] = [None; BLOCKS_MAX];
    for (index, (pin, block)) in pins.iter().zip(blocks).enumerate() {
        let address = pin.address();
        let Some(first) = builder.vectors().find(|vector| vector.address == address) else {
            continue;
        };
        is_whole[index] = first.kind.replaces_block();
        if lost && index == 0 {
            continue;
        }
        let before = sga
            .cache
            .begin_change(sga, sga.log_files.images_from(), pin);
        begun[index] = Some(before);
        if before == Begun::Unprotected && !is_whole[index] && !left_out {
            is_whole[index] = true;
            images[index] = Some((address, block));
        }
    }
    let mut list = [(BlockAddress::from_u64(0), &[][..]); BLOCKS_MAX];
    let mut count = 0;
    for image in images.into_iter().flatten() {
        list[count] = image;
        count += 1;
    }
    let outcome = match sga.buggify.fires(Switch::LogBufferFull) {
        true => Append::Full {
            bytes: record_bytes(&list[..count], builder.bytes()),
        },
        false => sga.log.append(&list[..count], builder.bytes(), room),
    };
    for ((pin, begun), is_whole) in pins.iter().zip(begun).zip(is_whole) {
        let was_clean = begun.is_some_and(|begun| begun != Begun::AlreadyDirty);
        match outcome {
            Append::Done { start, .. } => {
                if is_whole && sga.settings.instance.torn_blocks == TornBlocks::Images {
                    sga.cache.note_image(pin, start);
                }
                if was_clean {
                    sga.cache.wake_if_behind(pin);
                }
            }
            Append::Full { .. } if was_clean => sga.cache.give_up_change(pin),
            Append::Full { .. } => {}
        }
    }
    outcome
}

/// A change makes its blocks newer: the redo up to `end` holds more changes of them than they have.
fn check_newer(sga: &Sga, pins: &[&Pin], blocks: &[ExclusiveBlock<'_>], end: u64) -> Result<()> {
    for (pin, block) in pins.iter().zip(blocks) {
        let scn = block::scn(block);
        sga.require(
            || scn < end,
            || format!("block {} of SCN {scn} would go to {end}", pin.address()),
        )?;
    }
    Ok(())
}

fn carry_out(pins: &[&Pin], blocks: &mut [ExclusiveBlock<'_>], builder: &RecordBuilder, end: u64) {
    for vector in builder.vectors() {
        let index = pins.iter().position(|pin| pin.address() == vector.address);
        let block = &mut blocks[index.expect("a vector changes one of the blocks held")];
        apply(vector, block, end);
        block::set_scn(block, end);
    }
}
