//! Where things lie on a disk of a group, and the blocks that do not depend on the group's state: disk header and
//! change map. Pure functions on bytes. The disk header in block 0 of allocation unit 0, metadata blocks of 4 KB and
//! the copy of the header in allocation unit 1 are as in Oracle's ASM (Automatic Storage Management Administrator's
//! Guide 12.1; public dumps of `kfed`); the encoding is our own.
//!
//! All numbers are little-endian. A disk is divided into allocation units (AU) of 1 to 64 MiB:
//!
//! | where | what |
//! | --- | --- |
//! | AU 0, block 0 | disk header |
//! | AU 0, blocks 1 and 2 | change map, the newer valid one counts; written in turn |
//! | AU 1, last block | copy of the disk header |
//! | from AU 2, `slot_aus` AUs | metadata slot A: a snapshot of the group's state, then a log of changes to it |
//! | then `slot_aus` AUs | metadata slot B |
//! | the rest | extents of files |
//!
//! Blocks are of 4096 bytes. Disk header:
//!
//! | offset | bytes | what |
//! | --- | --- | --- |
//! | 0 | 8 | `SPNDLDSK` |
//! | 8 | 4 | CRC32C of the block, with this field zero |
//! | 12 | 4 | version of the format, 1 |
//! | 16 | 16 | identity of the group |
//! | 32 | 32 | name of the group, padded with zeros |
//! | 64 | 32 | name of the disk |
//! | 96 | 32 | failure group |
//! | 128 | 8 | incarnation: drawn when the disk joined |
//! | 136 | 2 | number of the disk in the group, never used again |
//! | 138 | 2 | status: 1 member, 2 former member |
//! | 140 | 4 | bytes of an allocation unit |
//! | 144 | 4 | allocation units on the disk |
//! | 148 | 4 | allocation units of a metadata slot |
//!
//! Change map: `SPNDLMAP` (8), CRC32C (4), log2 of the allocation units for each bit (4), incarnation of the disk (8),
//! step of the map (8), zeros to 64, then a bit for each group of allocation units: extents that begin in them have had
//! writes under way.
//!
//! Metadata records (snapshots and changes) are in `store`.

use spindle_text::quantity::{size, size_free, size_needed};

use crate::disk_group::error::DiskGroupError;

/// Bytes of a metadata block [OSTMG: 4 KB].
pub(crate) const BLOCK_BYTES: usize = 4096;
/// Smallest allocation unit, bytes.
pub const ALLOCATION_UNIT_BYTES_MIN: u64 = 1 << 20;
/// Largest allocation unit, bytes.
pub const ALLOCATION_UNIT_BYTES_MAX: u64 = 64 << 20;
/// Longest name of a group, disk or failure group, bytes, as in Oracle.
pub(crate) const NAME_BYTES_MAX: usize = 30;
/// Most disks a group can ever have had.
pub(crate) const DISKS_MAX: u16 = 1024;
/// AUs before the metadata slots.
const FIRST_SLOT_AU: u32 = 2;
/// A slot takes this part of its disk: 6 bytes for each copy of an extent make it enough for a group of over a hundred
/// disks of this size.
const SLOT_PART: u32 = 1024;
/// A disk has to have room for this many AUs of data.
const DATA_AUS_MIN: u32 = 4;

const HEADER_MAGIC: &[u8; 8] = b"SPNDLDSK";
const MAP_MAGIC: &[u8; 8] = b"SPNDLMAP";
const VERSION: u32 = 1;
const CRC_AT: usize = 8;
const NAME_FIELD_BYTES: usize = 32;
const MAP_BITS_AT: usize = 64;
/// Bits of a change map.
pub(crate) const MAP_BITS: u32 = ((BLOCK_BYTES - MAP_BITS_AT) * 8) as u32;
/// Words of a change map in memory.
pub(crate) const MAP_WORDS: usize = MAP_BITS as usize / 64;

/// Whether a disk belongs to its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Membership {
    Member,
    Former,
}

/// Where things lie on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskLayout {
    pub(crate) au_bytes: u64,
    pub(crate) total_aus: u32,
    pub(crate) slot_aus: u32,
}

/// A disk without room for metadata and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it holds {}; a disk needs at least {} with allocation units of {}",
    size_free(*capacity_bytes), size_needed(*needed_bytes), size(*au_bytes)
)]
pub(crate) struct TooSmall {
    capacity_bytes: u64,
    needed_bytes: u64,
    au_bytes: u64,
}

impl DiskLayout {
    /// The layout of a disk of that size.
    pub(crate) fn new(capacity_bytes: u64, au_bytes: u64) -> Result<DiskLayout, TooSmall> {
        let total_aus = u32::try_from(capacity_bytes / au_bytes).unwrap_or(u32::MAX);
        let slot_aus = (total_aus / SLOT_PART).max(1);
        let layout = DiskLayout {
            au_bytes,
            total_aus,
            slot_aus,
        };
        if total_aus < layout.first_data_au() + DATA_AUS_MIN {
            let needed_bytes = u64::from(FIRST_SLOT_AU + 2 + DATA_AUS_MIN) * au_bytes;
            return Err(TooSmall {
                capacity_bytes,
                needed_bytes,
                au_bytes,
            });
        }
        Ok(layout)
    }

    /// Whether there is room for extents behind the metadata.
    pub(crate) fn is_sane(self) -> bool {
        let metadata_aus = u64::from(FIRST_SLOT_AU) + 2 * u64::from(self.slot_aus);
        self.slot_aus >= 1 && u64::from(self.total_aus) > metadata_aus
    }

    /// First byte of the copy of the disk header.
    pub(crate) fn backup_at(self) -> u64 {
        backup_at(self.au_bytes)
    }

    /// First byte of metadata slot 0 or 1.
    pub(crate) fn slot_at(self, slot: usize) -> u64 {
        (u64::from(FIRST_SLOT_AU) + slot as u64 * u64::from(self.slot_aus)) * self.au_bytes
    }

    /// Bytes of a metadata slot.
    pub(crate) fn slot_bytes(self) -> u64 {
        u64::from(self.slot_aus) * self.au_bytes
    }

    /// First AU for extents.
    pub(crate) fn first_data_au(self) -> u32 {
        FIRST_SLOT_AU + 2 * self.slot_aus
    }

    /// AUs for extents.
    pub(crate) fn data_aus(self) -> u32 {
        self.total_aus - self.first_data_au()
    }

    /// Log2 of the AUs that share a bit of the change map.
    pub(crate) fn map_shift(self) -> u32 {
        let each = self.total_aus.div_ceil(MAP_BITS);
        each.next_power_of_two().trailing_zeros()
    }
}

/// Bytes that a disk of this size has for files in a group with such allocation units; 0 when it is too small to be in
/// one.
pub fn room_bytes(capacity_bytes: u64, au_bytes: u64) -> u64 {
    DiskLayout::new(capacity_bytes, au_bytes)
        .map_or(0, |layout| u64::from(layout.data_aus()) * au_bytes)
}

/// Where the copy of the header lies on a disk with such allocation units.
fn backup_at(au_bytes: u64) -> u64 {
    2 * au_bytes - BLOCK_BYTES as u64
}

/// Where the copies of headers may lie on a device of this size, whatever the allocation unit: unit and place.
pub fn backup_places(capacity_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let units = std::iter::successors(Some(ALLOCATION_UNIT_BYTES_MIN), |unit| Some(2 * unit));
    units
        .take_while(move |unit| *unit <= ALLOCATION_UNIT_BYTES_MAX && 2 * unit <= capacity_bytes)
        .map(|unit| (unit, backup_at(unit)))
}

/// First byte of change map 0 or 1.
pub(crate) fn map_at(which: u64) -> u64 {
    (1 + which % 2) * BLOCK_BYTES as u64
}

/// Who a disk is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskHeader {
    pub(crate) group_id: [u8; 16],
    pub(crate) group_name: String,
    pub(crate) disk_name: String,
    pub(crate) failure_group: String,
    pub(crate) incarnation: u64,
    pub(crate) number: u16,
    pub(crate) membership: Membership,
    pub(crate) layout: DiskLayout,
}

impl DiskHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut block = vec![0; BLOCK_BYTES];
        block[..8].copy_from_slice(HEADER_MAGIC);
        block[12..16].copy_from_slice(&VERSION.to_le_bytes());
        block[16..32].copy_from_slice(&self.group_id);
        let names = [&self.group_name, &self.disk_name, &self.failure_group];
        for (name, at) in names.into_iter().zip([32, 64, 96]) {
            block[at..at + name.len()].copy_from_slice(name.as_bytes());
        }
        block[128..136].copy_from_slice(&self.incarnation.to_le_bytes());
        block[136..138].copy_from_slice(&self.number.to_le_bytes());
        let status: u16 = match self.membership {
            Membership::Member => 1,
            Membership::Former => 2,
        };
        block[138..140].copy_from_slice(&status.to_le_bytes());
        block[140..144].copy_from_slice(&(self.layout.au_bytes as u32).to_le_bytes());
        block[144..148].copy_from_slice(&self.layout.total_aus.to_le_bytes());
        block[148..152].copy_from_slice(&self.layout.slot_aus.to_le_bytes());
        seal(&mut block);
        block
    }

    /// `None` when the block is no header, or not as it was written.
    pub(crate) fn decode(block: &[u8]) -> Option<DiskHeader> {
        if !is_sealed(block) || &block[..8] != HEADER_MAGIC || u32_at(block, 12) != VERSION {
            return None;
        }
        let name = |at: usize| {
            let field = &block[at..at + NAME_FIELD_BYTES];
            let end = field.iter().position(|byte| *byte == 0)?;
            Some(std::str::from_utf8(&field[..end]).ok()?.to_owned())
        };
        let header = DiskHeader {
            group_id: block[16..32].try_into().ok()?,
            group_name: name(32)?,
            disk_name: name(64)?,
            failure_group: name(96)?,
            incarnation: u64_at(block, 128),
            number: u16::from_le_bytes([block[136], block[137]]),
            membership: match block[138] {
                1 => Membership::Member,
                2 => Membership::Former,
                _ => return None,
            },
            layout: DiskLayout {
                au_bytes: u64::from(u32_at(block, 140)),
                total_aus: u32_at(block, 144),
                slot_aus: u32_at(block, 148),
            },
        };
        let sane = is_allocation_unit(header.layout.au_bytes)
            && header.number < DISKS_MAX
            && header.layout.is_sane();
        sane.then_some(header)
    }
}

/// The names of the group and of the disk in the first 4096 bytes of a disk, or in the copy of them; `None` when they
/// are no header of a disk.
pub fn names_in_header(block: &[u8]) -> Option<(String, String)> {
    let block = block.get(..BLOCK_BYTES)?;
    let header = DiskHeader::decode(block)?;
    Some((header.group_name, header.disk_name))
}

/// Whether an allocation unit may have that size.
pub(crate) fn is_allocation_unit(bytes: u64) -> bool {
    bytes.is_power_of_two()
        && (ALLOCATION_UNIT_BYTES_MIN..=ALLOCATION_UNIT_BYTES_MAX).contains(&bytes)
}

/// The group's identity as people read it.
pub(crate) fn id_words(id: &[u8; 16]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A name that fits its field and is safe to print: letters, digits, `_`, `-`, `.`.
pub(crate) fn check_name(group: &str, kind: &str, name: &str) -> Result<(), DiskGroupError> {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if fits && name.bytes().all(plain) {
        return Ok(());
    }
    Err(DiskGroupError::Invalid {
        group: group.to_owned(),
        what: format!(
            "`{name}` cannot be the name of a {kind}: 1 to {NAME_BYTES_MAX} letters, digits, `_`, `-` or `.` are allowed"
        ),
    })
}

/// A change map as it lies on its disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MapBlock {
    pub(crate) incarnation: u64,
    pub(crate) step: u64,
    pub(crate) shift: u32,
    pub(crate) words: Vec<u64>,
}

impl MapBlock {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut block = vec![0; BLOCK_BYTES];
        block[..8].copy_from_slice(MAP_MAGIC);
        block[12..16].copy_from_slice(&self.shift.to_le_bytes());
        block[16..24].copy_from_slice(&self.incarnation.to_le_bytes());
        block[24..32].copy_from_slice(&self.step.to_le_bytes());
        let bits = block[MAP_BITS_AT..].chunks_exact_mut(8);
        for (field, word) in bits.zip(&self.words) {
            field.copy_from_slice(&word.to_le_bytes());
        }
        seal(&mut block);
        block
    }

    /// `None` when the block is no change map, or not as it was written.
    pub(crate) fn decode(block: &[u8]) -> Option<MapBlock> {
        if !is_sealed(block) || &block[..8] != MAP_MAGIC {
            return None;
        }
        let bits = block[MAP_BITS_AT..].chunks_exact(8);
        Some(MapBlock {
            incarnation: u64_at(block, 16),
            step: u64_at(block, 24),
            shift: u32_at(block, 12),
            words: bits.map(|field| u64_at(field, 0)).collect(),
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Enters the checksum.
pub(crate) fn seal(bytes: &mut [u8]) {
    bytes[CRC_AT..CRC_AT + 4].fill(0);
    let crc = crc32c::crc32c(bytes);
    bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Whether the checksum is right.
pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    let before = crc32c::crc32c(&bytes[..CRC_AT]);
    let blank = crc32c::crc32c_append(before, &[0; 4]);
    crc32c::crc32c_append(blank, &bytes[CRC_AT + 4..]) == u32_at(bytes, CRC_AT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> DiskHeader {
        DiskHeader {
            group_id: *b"0123456789abcdef",
            group_name: "data".to_owned(),
            disk_name: "n".repeat(NAME_BYTES_MAX),
            failure_group: "left".to_owned(),
            incarnation: u64::MAX - 1,
            number: 7,
            membership: Membership::Former,
            layout: DiskLayout::new(100 << 20, 1 << 20).unwrap(),
        }
    }

    #[test]
    fn a_header_is_read_as_it_was_written_and_a_flipped_bit_shows() {
        let header = header();
        let block = header.encode();
        assert_eq!(DiskHeader::decode(&block), Some(header));
        for at in 0..BLOCK_BYTES {
            let mut damaged = block.clone();
            damaged[at] ^= 0x10;
            assert_eq!(DiskHeader::decode(&damaged), None, "byte {at}");
        }
        assert_eq!(DiskHeader::decode(&[0; BLOCK_BYTES]), None);
    }

    #[test]
    fn a_change_map_is_read_as_it_was_written() {
        let mut words = vec![0; MAP_WORDS];
        (words[0], words[MAP_WORDS - 1]) = (1, 1 << 63);
        let map = MapBlock {
            incarnation: 3,
            step: 9,
            shift: 2,
            words,
        };
        let block = map.encode();
        assert_eq!(MapBlock::decode(&block), Some(map));
        let mut damaged = block;
        damaged[BLOCK_BYTES - 1] ^= 1;
        assert_eq!(MapBlock::decode(&damaged), None);
    }

    #[test]
    fn nothing_overlaps_whatever_the_size() {
        for (capacity_bytes, au_bytes) in
            [(8 << 20, 1 << 20), (1 << 40, 1 << 20), (10 << 30, 64 << 20)]
        {
            let layout = DiskLayout::new(capacity_bytes, au_bytes).unwrap();
            assert_eq!(layout.backup_at() + BLOCK_BYTES as u64, layout.slot_at(0));
            assert_eq!(layout.slot_at(0) + layout.slot_bytes(), layout.slot_at(1));
            let data_at = u64::from(layout.first_data_au()) * au_bytes;
            assert_eq!(layout.slot_at(1) + layout.slot_bytes(), data_at);
            assert!(layout.total_aus >> layout.map_shift() <= MAP_BITS);
        }
        let too_small = DiskLayout::new(7 << 20, 1 << 20).unwrap_err();
        assert_eq!(too_small.needed_bytes, 8 << 20);
    }

    #[test]
    fn names_are_plain() {
        assert!(check_name("g", "disk", "DATA_0001").is_ok());
        for wrong in ["", "a b", "ä", &"x".repeat(31)] {
            let error = check_name("g", "disk", wrong).unwrap_err().to_string();
            assert!(error.contains("1 to 30 letters"), "{error}");
        }
    }
}
