//! Making a new database: control file, log files, datafiles and their headers, undo segment.

use std::sync::Arc;

use spindle_io::{Arena, BlockDevice, Env, Request, Submission};

use crate::block::{self, BlockAddress, BlockKind, space_map, transaction_table};
use crate::control_file::{CheckpointRecord, Contents, ControlFile, Extent, Segment};
use crate::error::{KernelError, Result};
use crate::log::buffer::FIRST_POSITION;
use crate::log::files::{LOG_FILE_HEADER_BYTES, seal_file_header};
use crate::log::marks::Location;
use crate::processes::double_write;
use crate::settings::KernelSettings;
use crate::sga::Sga;
use crate::space::{format_unused, write_extent};
use crate::storage::{Storage, UNDO_FILE};

use crate::control_file::UNDO_SEGMENT;
use crate::transaction::undo_segment::table_blocks;

use super::devices::check_storage;

/// Formats the devices as a new, empty database. Whatever they held is lost. `database` is the number by which the
/// files will know each other; `transactions` at once can change data.
pub async fn create_database(
    env: &Arc<dyn Env>,
    storage: &Storage,
    settings: &KernelSettings,
    database: u64,
    transactions: usize,
) -> Result<()> {
    check_storage(storage, settings)?;
    let block_bytes = settings.block_bytes;
    let blocks_of = |device: &Arc<dyn BlockDevice>| {
        (device.limits().capacity_bytes / block_bytes as u64) as u32
    };
    let file_blocks: Vec<u32> = storage.datafiles().map(blocks_of).collect();
    let table_blocks = table_blocks(block_bytes, transactions);
    let undo_extent = Extent {
        file: UNDO_FILE,
        first_block: 1,
        blocks: file_blocks[0] - 1,
    };
    if undo_extent.blocks < table_blocks + transactions as u32 {
        return Err(KernelError::Storage {
            device: storage.undo.name().to_string(),
            reason: format!(
                "{} blocks of undo are too few for {transactions} transactions",
                undo_extent.blocks
            ),
        });
    }
    let start = Location {
        position: FIRST_POSITION,
        file: 0,
        sequence: 1,
        offset: LOG_FILE_HEADER_BYTES,
    };
    let undo_segment = Segment {
        number: UNDO_SEGMENT,
        name: "undo".to_string(),
        row_bytes: table_blocks,
        loaded_rows: 0,
        extents: vec![undo_extent],
        columns: None,
    };
    let contents = Contents {
        database,
        block_bytes: block_bytes as u32,
        checkpoint: CheckpointRecord {
            position: FIRST_POSITION,
            location: start,
        },
        next_free: first_free(&file_blocks, block_bytes),
        file_blocks,
        segments: vec![undo_segment],
        indexes: Vec::new(),
        has_maps: true,
    };
    write_log_headers(storage, database).await?;
    let control = ControlFile::create(Arc::clone(&storage.control), contents);
    let sga = Sga::new(env, storage, settings, control)?;
    write_file_headers(&sga).await?;
    if let Some(areas) = &storage.double_write {
        double_write::create(&**areas, block_bytes).await?;
    }
    format_undo_file(&sga, undo_extent, table_blocks).await?;
    format_maps(&sga).await?;
    sga.flush_datafiles().await?;
    // Both copies, so that none of an earlier database's control file is left.
    sga.control.update_both(&sga, |_| Ok(())).await
}

async fn write_log_headers(storage: &Storage, database: u64) -> Result<()> {
    for (index, device) in storage.redo.iter().enumerate() {
        // Only the first file is in use; the others bear a number that no later one continues.
        let (sequence, position) = if index == 0 {
            (1, FIRST_POSITION)
        } else {
            (0, 0)
        };
        write_header(&**device, LOG_FILE_HEADER_BYTES as usize, |bytes| {
            seal_file_header(bytes, database, sequence, position);
        })
        .await?;
    }
    Ok(())
}

async fn write_file_headers(sga: &Sga) -> Result<()> {
    for (file, device) in sga.storage.datafiles().enumerate() {
        let address = BlockAddress {
            file: file as u16,
            block: 0,
        };
        write_header(&**device, sga.settings.block_bytes, |bytes| {
            bytes.fill(0);
            block::format(bytes, BlockKind::FileHeader, address, 0);
            bytes[block::HEADER_BYTES..block::HEADER_BYTES + 8]
                .copy_from_slice(&sga.database_id().to_le_bytes());
            block::seal(bytes);
        })
        .await?;
    }
    Ok(())
}

async fn write_header(
    device: &dyn BlockDevice,
    length: usize,
    fill: impl FnOnce(&mut [u8]),
) -> Result<()> {
    let arena = Arena::new(length, 1).map_err(|error| KernelError::Memory {
        what: "a file header",
        reason: error.to_string(),
    })?;
    let frame = arena.allocate().expect("the arena has a frame");
    let mut hold = frame.try_write_hold().expect("the frame is ours");
    fill(&mut hold);
    let request = Request::write(0, vec![hold.share(length)], true, Submission::Alone);
    Ok(device.submit(request).await.result?)
}

/// The first block of each datafile that segments may have. Behind the header lies the map of free space; all of the
/// undo file is the undo segment's.
fn first_free(file_blocks: &[u32], block_bytes: usize) -> Vec<u32> {
    let first = |blocks: &u32| 1 + space_map::map_blocks(block_bytes, *blocks);
    let data = file_blocks[1..].iter().map(first);
    file_blocks[..1].iter().copied().chain(data).collect()
}

async fn format_maps(sga: &Sga) -> Result<()> {
    let file_blocks = sga.control.read(|contents| contents.file_blocks.clone());
    for (file, blocks) in file_blocks.into_iter().enumerate().skip(1) {
        let map = Extent {
            file: file as u16,
            first_block: 1,
            blocks: space_map::map_blocks(sga.settings.block_bytes, blocks),
        };
        write_extent(sga, map, |_, address, bytes| {
            space_map::format_map(bytes, address, 0);
            block::seal(bytes);
        })
        .await?;
    }
    Ok(())
}

async fn format_undo_file(sga: &Sga, extent: Extent, table_blocks: u32) -> Result<()> {
    let mut filler = sga.env.rng(u64::from(UNDO_SEGMENT));
    write_extent(sga, extent, |step, address, bytes| {
        if step < table_blocks {
            transaction_table::format_table(bytes, address, UNDO_SEGMENT);
            block::seal(bytes);
        } else {
            format_unused(address, bytes, &mut filler);
        }
    })
    .await
}
