//! The mark that Spindle leaves on a device that it gives back with its own data between the ends: a database on raw
//! devices, the blocks of a file system. Without it the next run would have to ask for `erase`, and people would write
//! that everywhere. The mark is no word to be trusted: it says from which places the rest of the device was read when
//! it was given back, and the checksum of all that was read. Only while every one of these bytes is the same does the
//! device count as empty. It lies in the last block of the first MiB, and goes with the first thing that is put there.
//!
//! | offset | bytes | what (little-endian) |
//! | --- | --- | --- |
//! | 0 | 8 | `SPNDLEFT` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | CRC32C of all places in order, the block of the mark as zeros |
//! | 16 | 8 | size of the device, bytes |
//! | 24 | 8 | seed of the places ([`places`]) |
//! | 32 | 4 | CRC32C of the 32 bytes before |

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::places::{BLOCK_BYTES, EDGE_BYTES, places};

const MAGIC: &[u8; 8] = b"SPNDLEFT";
const VERSION: u32 = 1;
const MARK_AT: u64 = EDGE_BYTES - BLOCK_BYTES;
const MARK_BYTES: usize = 36;
const PIECE_BYTES: u64 = 1 << 20;

/// Marks a device whose ends are zero as given back, with what is on it now.
pub(crate) fn leave_mark(device: &File, size_bytes: u64, seed: u64) -> io::Result<()> {
    // Both ends must be apart.
    if size_bytes < 2 * EDGE_BYTES {
        return Ok(());
    }
    let checksum = checksum(device, size_bytes, seed)?;
    let mut mark = vec![0; BLOCK_BYTES as usize];
    mark[..8].copy_from_slice(MAGIC);
    mark[8..12].copy_from_slice(&VERSION.to_le_bytes());
    mark[12..16].copy_from_slice(&checksum.to_le_bytes());
    mark[16..24].copy_from_slice(&size_bytes.to_le_bytes());
    mark[24..32].copy_from_slice(&seed.to_le_bytes());
    let seal = crc32c::crc32c(&mark[..32]);
    mark[32..MARK_BYTES].copy_from_slice(&seal.to_le_bytes());
    device.write_all_at(&mark, MARK_AT)?;
    device.sync_all()
}

/// Whether a device bears a mark, and is what it was when it was given back.
pub(super) fn is_as_left(device: &File, size_bytes: u64) -> io::Result<bool> {
    if size_bytes < 2 * EDGE_BYTES {
        return Ok(false);
    }
    let mut mark = vec![0; BLOCK_BYTES as usize];
    device.read_exact_at(&mut mark, MARK_AT)?;
    let number =
        |at: usize| u32::from_le_bytes([mark[at], mark[at + 1], mark[at + 2], mark[at + 3]]);
    let long = |at: usize| u64::from(number(at)) | u64::from(number(at + 4)) << 32;
    let is_whole = mark.starts_with(MAGIC)
        && number(8) == VERSION
        && number(32) == crc32c::crc32c(&mark[..32])
        && mark[MARK_BYTES..].iter().all(|byte| *byte == 0);
    Ok(is_whole && long(16) == size_bytes && checksum(device, size_bytes, long(24))? == number(12))
}

fn checksum(device: &File, size_bytes: u64, seed: u64) -> io::Result<u32> {
    let mut checksum = 0;
    let mut piece = vec![0; PIECE_BYTES as usize];
    for place in places(size_bytes, seed) {
        let mut at = place.start;
        while at < place.end {
            let length = (place.end - at).min(PIECE_BYTES);
            let piece = &mut piece[..length as usize];
            device.read_exact_at(piece, at)?;
            // The first MiB is read in one piece, whatever the size.
            if at == 0 {
                piece[MARK_AT as usize..][..BLOCK_BYTES as usize].fill(0);
            }
            checksum = crc32c::crc32c_append(checksum, piece);
            at += length;
        }
    }
    Ok(checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 8 << 20;

    fn device() -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        file.write_all_at(&[7; 5000], 3 << 20).unwrap();
        file
    }

    #[test]
    fn what_is_as_it_was_left_is_known_and_nothing_else_is() {
        let file = device();
        assert!(!is_as_left(&file, SIZE).unwrap(), "no mark");
        leave_mark(&file, SIZE, 5).unwrap();
        assert!(is_as_left(&file, SIZE).unwrap());
        let mut byte = [0];
        for at in [
            0,
            512,
            MARK_AT,
            MARK_AT + 16,
            MARK_AT + 33,
            MARK_AT + 4095,
            EDGE_BYTES,
            3 << 20,
            SIZE - 1,
        ] {
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 1], at).unwrap();
            assert!(!is_as_left(&file, SIZE).unwrap(), "{at}");
            file.write_all_at(&byte, at).unwrap();
        }
        assert!(is_as_left(&file, SIZE).unwrap());
    }

    #[test]
    fn another_size_is_another_device() {
        let file = device();
        leave_mark(&file, SIZE, 5).unwrap();
        file.set_len(SIZE + 512).unwrap();
        assert!(!is_as_left(&file, SIZE + 512).unwrap());
    }
}
