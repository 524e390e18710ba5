//! Whether the devices are fit for a database, and are those of this one.

use spindle_text::quantity::size;

use crate::block::{self, BlockAddress, Damage};
use crate::control_file::{ControlFile, read_bytes};
use crate::error::{KernelError, Result};
use crate::processes::double_write;
use crate::settings::{KernelSettings, TornBlocks};
use crate::sga::Sga;
use crate::storage::Storage;

pub(super) fn check_storage(storage: &Storage, settings: &KernelSettings) -> Result<()> {
    let block_bytes = settings.block_bytes;
    assert!(
        block_bytes.is_power_of_two() && (2048..=32768).contains(&block_bytes),
        "a block has 2, 4, 8, 16 or 32 KiB, not {block_bytes} bytes"
    );
    // A record holds at most four images and the vectors of one change.
    assert!(
        settings.log_buffer_bytes >= 16 * block_bytes
            && settings.log_buffer_bytes.is_multiple_of(4096),
        "a log buffer of {} bytes is too small for blocks of {block_bytes}",
        settings.log_buffer_bytes
    );
    for device in storage.datafiles() {
        let sector_bytes = device.limits().alignment_bytes;
        if sector_bytes as usize > block_bytes {
            return Err(KernelError::Storage {
                device: device.name().to_string(),
                reason: format!(
                    "blocks of {} are smaller than its sectors of {}",
                    size(block_bytes as u64),
                    size(sector_bytes.into())
                ),
            });
        }
    }
    match settings.instance.torn_blocks {
        TornBlocks::Images => {}
        TornBlocks::DoubleWrite => double_write::check(storage, settings)?,
        TornBlocks::Atomic => check_atomic(storage, block_bytes)?,
    }
    let control = storage.control.limits();
    if control.capacity_bytes < crate::CONTROL_FILE_BYTES || control.alignment_bytes > 4096 {
        return Err(KernelError::Storage {
            device: storage.control.name().to_string(),
            reason: format!("a control file takes {}", size(crate::CONTROL_FILE_BYTES)),
        });
    }
    Ok(())
}

fn check_atomic(storage: &Storage, block_bytes: usize) -> Result<()> {
    for device in storage.datafiles() {
        let promised_bytes = device.limits().atomic_write_bytes;
        if (promised_bytes as usize) < block_bytes {
            return Err(KernelError::Storage {
                device: device.name().to_string(),
                reason: format!(
                    "torn_blocks is `atomic`, but the device promises not to tear writes of up to {} only, and a block \
                     has {}: choose `images` or `double_write`",
                    size(promised_bytes.into()),
                    size(block_bytes as u64)
                ),
            });
        }
    }
    Ok(())
}

pub(super) fn check_fits(
    control: &ControlFile,
    storage: &Storage,
    settings: &KernelSettings,
) -> Result<()> {
    let (block_bytes, files) =
        control.read(|contents| (contents.block_bytes, contents.file_blocks.len()));
    let reason = if block_bytes as usize != settings.block_bytes {
        format!(
            "the database has blocks of {}, not {}",
            size(block_bytes.into()),
            size(settings.block_bytes as u64)
        )
    } else if files != storage.datafiles().count() {
        format!(
            "the database has {files} datafiles, not {}",
            storage.datafiles().count()
        )
    } else {
        return Ok(());
    };
    Err(KernelError::ControlFile {
        device: storage.control.name().to_string(),
        reason,
    })
}

pub(super) async fn check_file_headers(sga: &Sga) -> Result<()> {
    for (file, device) in sga.storage.datafiles().enumerate() {
        let address = BlockAddress {
            file: file as u16,
            block: 0,
        };
        let bytes = read_bytes(&**device, 0, sga.settings.block_bytes).await?;
        let damaged = |damage: Damage| KernelError::DamagedBlock {
            address,
            device: device.name().to_string(),
            reason: damage.to_string(),
        };
        block::verify(&bytes, address).map_err(damaged)?;
        if bytes[block::HEADER_BYTES..block::HEADER_BYTES + 8] != sga.database_id().to_le_bytes() {
            return Err(damaged(Damage(
                "it belongs to another database".to_string(),
            )));
        }
    }
    Ok(())
}
