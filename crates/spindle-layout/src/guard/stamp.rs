//! The stamp that a run puts on a device when it claims it: proof, after the run was killed, that what is on it now is
//! the run's. Raw devices and disk groups bear nothing that libblkid knows, so without it a database that a person put
//! there meanwhile would look the same. It lies in the last block of the first MiB, which no layout uses, and counts
//! only while the rest of that MiB is as a run leaves it: zeros, or the first blocks of a disk of the group that a run
//! makes. Other groups have disks of other names.
//!
//! | offset | bytes | what (little-endian) |
//! | --- | --- | --- |
//! | 0 | 8 | `SPNDHERE` |
//! | 8 | 36 | identity that was noted in the ledger for this device |
//! | 44 | 4 | CRC32C of the 44 bytes before |

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use spindle_io::disk_group::{backup_places, names_in_header};

use super::content::data_outside;
use super::places::{BLOCK_BYTES, EDGE_BYTES};

const MAGIC: &[u8; 8] = b"SPNDHERE";
const UUID_BYTES: usize = 36;
const SEAL_AT: usize = MAGIC.len() + UUID_BYTES;
const STAMP_AT: u64 = EDGE_BYTES - BLOCK_BYTES;
/// What a disk of a group begins with: its header and two change maps (`spindle_io::disk_group`).
const GROUP_BLOCKS: usize = 3;
const MAP_MAGIC: &[u8; 8] = b"SPNDLMAP";

/// The name of the disk group that a run makes.
pub const RUN_GROUP: &str = "spindle";

/// The name of a disk in it, counted from 0. `spindle diskgroup` gives disks the name of their group and a number.
pub fn run_disk(number: usize) -> String {
    format!("disk{}", number + 1)
}

/// Stamps a device that was claimed. One that is too small for both ends to be apart gets none. Errors: the system's.
pub(crate) fn stamp(device: &File, size_bytes: u64, uuid: &str) -> io::Result<()> {
    if size_bytes < 2 * EDGE_BYTES {
        return Ok(());
    }
    device.write_all_at(&stamp_of(uuid), STAMP_AT)?;
    device.sync_all()
}

/// Zeroes the first MiB of a device that bears the stamp and, beyond it, data of who knows whom. The stamp goes last.
/// Errors: the system's.
pub(crate) fn zero_stamped_end(device: &File) -> io::Result<()> {
    device.write_all_at(&[0; STAMP_AT as usize], 0)?;
    device.sync_all()?;
    device.write_all_at(&[0; BLOCK_BYTES as usize], STAMP_AT)?;
    device.sync_all()
}

/// Zeroes both ends of a device of ours, all but the stamp. A run may be killed at any moment, so at every moment the
/// contents say whose they are. The first block goes when nothing else but the stamp is left in the first MiB. Until
/// then it bears the signature of whatever the run made, and from then on the stamp counts. Errors: the system's.
pub(crate) fn zero_ends_but_stamp(device: &File, size_bytes: u64, uuid: &str) -> io::Result<()> {
    stamp(device, size_bytes, uuid)?;
    for range in zeroed_in_order(size_bytes) {
        let zeros = vec![0; (range.end - range.start) as usize];
        device.write_all_at(&zeros, range.start)?;
        device.sync_all()?;
    }
    Ok(())
}

/// Of a device without a stamp all of it.
fn zeroed_in_order(size_bytes: u64) -> [Range<u64>; 3] {
    if size_bytes < 2 * EDGE_BYTES {
        return [0..size_bytes, 0..0, 0..0];
    }
    [
        BLOCK_BYTES..STAMP_AT,
        0..BLOCK_BYTES,
        size_bytes - EDGE_BYTES..size_bytes,
    ]
}

/// Takes the stamp away. Errors: the system's.
pub(crate) fn unstamp(device: &File, size_bytes: u64) -> io::Result<()> {
    if size_bytes < 2 * EDGE_BYTES {
        return Ok(());
    }
    device.write_all_at(&[0; BLOCK_BYTES as usize], STAMP_AT)?;
    device.sync_all()
}

/// Whether anything but zeros is on a device beside its stamp, where it is read. Errors: the system's.
pub(crate) fn has_more_than_stamp(device: &File, size_bytes: u64) -> io::Result<bool> {
    Ok(data_outside(device, size_bytes, &(STAMP_AT..EDGE_BYTES))?.is_some())
}

/// What is before and behind the stamp of a device that is this range of a file.
pub(crate) fn beside_stamp(device: &Range<u64>) -> Vec<Range<u64>> {
    vec![
        device.start..device.start + STAMP_AT,
        device.start + EDGE_BYTES..device.end,
    ]
}

/// Whether a device bears the stamp of this identity, and nothing beside it that a run does not leave. Errors: the
/// system's.
pub(crate) fn bears_stamp(device: &File, size_bytes: u64, uuid: &str) -> io::Result<bool> {
    if size_bytes < 2 * EDGE_BYTES {
        return Ok(false);
    }
    let mut first = vec![0; EDGE_BYTES as usize];
    device.read_exact_at(&mut first, 0)?;
    let (before, stamp) = first.split_at(STAMP_AT as usize);
    Ok(stamp == stamp_of(uuid) && is_as_run_leaves_it(before))
}

/// Whether the first MiB is zeros, but for the first blocks of a disk of a run's group. While the group is made, its
/// header is the last to come.
fn is_as_run_leaves_it(before: &[u8]) -> bool {
    let mut blocks = before.chunks(BLOCK_BYTES as usize);
    let is_zero = |block: &[u8]| block.iter().all(|byte| *byte == 0);
    let is_change_map = |block: &[u8]| block.starts_with(MAP_MAGIC);
    let header = blocks.next().unwrap_or_default();
    (is_zero(header) || is_run_header(header))
        && blocks
            .by_ref()
            .take(GROUP_BLOCKS - 1)
            .all(|block| is_zero(block) || is_change_map(block))
        && blocks.all(is_zero)
}

/// Whether a block is the header of a disk of a run's group.
fn is_run_header(block: &[u8]) -> bool {
    names_in_header(block).is_some_and(|(group, disk)| {
        let number = disk.strip_prefix("disk").and_then(|text| text.parse().ok());
        let number = number.and_then(|number: usize| number.checked_sub(1));
        group == RUN_GROUP && number.is_some_and(|number| disk == run_disk(number))
    })
}

/// Zeroes the copies of the headers of a run's group, so that no group is found by them. Errors: the system's.
pub(crate) fn zero_header_copies(device: &File, size_bytes: u64) -> io::Result<()> {
    let mut block = [0; BLOCK_BYTES as usize];
    for (_, at) in backup_places(size_bytes) {
        device.read_exact_at(&mut block, at)?;
        if is_run_header(&block) {
            device.write_all_at(&[0; BLOCK_BYTES as usize], at)?;
        }
    }
    device.sync_all()
}

/// Whether any run's stamp is on it: then the first MiB is to be left as it is. Errors: the system's.
pub(crate) fn is_stamped(device: &File) -> io::Result<bool> {
    let mut magic = [0; MAGIC.len()];
    device.read_exact_at(&mut magic, STAMP_AT)?;
    Ok(magic == *MAGIC)
}

fn stamp_of(uuid: &str) -> Vec<u8> {
    let mut block = vec![0; BLOCK_BYTES as usize];
    block[..MAGIC.len()].copy_from_slice(MAGIC);
    let uuid = uuid.as_bytes();
    let length = uuid.len().min(UUID_BYTES);
    block[MAGIC.len()..][..length].copy_from_slice(&uuid[..length]);
    let seal = crc32c::crc32c(&block[..SEAL_AT]);
    block[SEAL_AT..][..4].copy_from_slice(&seal.to_le_bytes());
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 8 << 20;
    const OURS: &str = "00719742-3b09-40f7-855e-40d17be8db36";

    #[test]
    fn a_stamp_counts_while_nothing_else_is_in_the_first_mebibyte() {
        let device = tempfile::tempfile().unwrap();
        device.set_len(SIZE).unwrap();
        let bears = |uuid| bears_stamp(&device, SIZE, uuid).unwrap();
        assert!(!bears(OURS) && !is_stamped(&device).unwrap());
        stamp(&device, SIZE, OURS).unwrap();
        assert!(bears(OURS) && is_stamped(&device).unwrap());
        assert!(
            !bears("00719742-3b09-40f7-855e-40d17be8db37"),
            "another run"
        );
        // What the run's database writes lies behind it.
        device.write_all_at(&[7; 9000], EDGE_BYTES).unwrap();
        assert!(bears(OURS));
        device.write_all_at(b"SPNDLMAP", 2 * BLOCK_BYTES).unwrap();
        assert!(bears(OURS), "a group is being made");
        for at in [0, 3 * BLOCK_BYTES, STAMP_AT - 1, STAMP_AT, STAMP_AT + 50] {
            let mut byte = [0];
            device.read_exact_at(&mut byte, at).unwrap();
            device.write_all_at(&[byte[0] ^ 1], at).unwrap();
            assert!(!bears(OURS), "{at}");
            device.write_all_at(&byte, at).unwrap();
        }
    }

    #[test]
    fn a_device_that_is_being_emptied_says_whose_it_is_all_the_time() {
        let device = tempfile::tempfile().unwrap();
        let edge = [7; EDGE_BYTES as usize];
        device.write_all_at(&edge, 0).unwrap();
        device.write_all_at(&edge, SIZE - EDGE_BYTES).unwrap();
        let first_block = || {
            let mut block = [0; BLOCK_BYTES as usize];
            device.read_exact_at(&mut block, 0).unwrap();
            block
        };
        let is_proved = || {
            let bears_signature = first_block() == edge[..BLOCK_BYTES as usize];
            bears_signature || bears_stamp(&device, SIZE, OURS).unwrap()
        };
        stamp(&device, SIZE, OURS).unwrap();
        for range in zeroed_in_order(SIZE) {
            for block in range.step_by(BLOCK_BYTES as usize) {
                assert!(is_proved(), "{block}");
                device
                    .write_all_at(&[0; BLOCK_BYTES as usize], block)
                    .unwrap();
            }
        }
        assert!(bears_stamp(&device, SIZE, OURS).unwrap());
        assert!(!has_more_than_stamp(&device, SIZE).unwrap());
        device.write_all_at(&[1], SIZE - 1).unwrap();
        assert!(has_more_than_stamp(&device, SIZE).unwrap());
        zero_ends_but_stamp(&device, SIZE, OURS).unwrap();
        assert!(!has_more_than_stamp(&device, SIZE).unwrap());
        unstamp(&device, SIZE).unwrap();
        assert!(!is_stamped(&device).unwrap());
    }
}
