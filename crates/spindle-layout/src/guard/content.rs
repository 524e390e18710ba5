//! What is on a device or in a file: nothing, something with a name (file system, volume, partition table, as libblkid
//! knows them; a disk of a Spindle disk group), or unknown bytes. Where it is read, [`places`] says; of a file, all
//! that was ever written in it is read, as far as `SEEK_DATA` tells. libblkid is asked through its tool `blkid`, which
//! is wherever `mount` is: a binding would bring a C library to build against, and know no more. Its probe reads the
//! device itself and keeps no cache.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rustix::fs::{Advice, SeekFrom};
use rustix::io::Errno;
use spindle_io::disk_group::names_in_header;

use super::left::is_as_left;
use super::places::{BLOCK_BYTES, merged, places};
use crate::tool::{ToolError, Tools};

/// Of a file with more written data than this, this much is read, spread over all of it.
const DATA_BYTES_MAX: u64 = 1 << 30;

/// Read in pieces of this size.
const PIECE_BYTES: u64 = 1 << 20;

/// What is on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceContent {
    /// No signature, and zeros wherever it was read.
    Empty,
    /// What an earlier run of Spindle left between the ends, unchanged since.
    Left,
    /// A signature that libblkid knows.
    Signature(Signature),
    /// No signature that libblkid knows, but bytes other than zero: what they are, in words.
    Unknown(String),
}

/// What libblkid says of a device, by its own keys: `TYPE`, `UUID`, `LABEL`, `PTTYPE`, ...
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signature {
    tags: BTreeMap<String, String>,
    /// Several signatures contradict each other, and libblkid names none.
    ambivalent: bool,
}

/// An answer of `blkid` that has no meaning known here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("blkid ended with code {code} and said: {said}")]
pub struct ProbeError {
    /// Its exit code.
    pub code: i32,
    /// Its words.
    pub said: String,
}

/// Exit codes of blkid(8) with `-p`.
const FOUND: i32 = 0;
const NOTHING_FOUND: i32 = 2;
const AMBIVALENT: i32 = 8;

impl Signature {
    /// Reads what `blkid -p -o export` printed and its exit code; `None` when it found nothing. What describes the
    /// device and not its content (its name, its entry in the partition table of its disk) is no signature; every other
    /// word is.
    pub fn parse(code: i32, printed: &[u8]) -> Result<Option<Signature>, ProbeError> {
        let printed = String::from_utf8_lossy(printed);
        let describes_device = |key: &str| key == "DEVNAME" || key.starts_with("PART_ENTRY_");
        let tags: BTreeMap<String, String> = printed
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| line.split_once('=').unwrap_or((line, "")))
            .filter(|(key, _)| !describes_device(key))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        match code {
            AMBIVALENT => Ok(Some(Signature {
                tags,
                ambivalent: true,
            })),
            FOUND | NOTHING_FOUND if tags.is_empty() => Ok(None),
            FOUND | NOTHING_FOUND => Ok(Some(Signature {
                tags,
                ambivalent: false,
            })),
            _ => Err(ProbeError {
                code,
                said: printed.trim().to_owned(),
            }),
        }
    }

    /// A value by libblkid's key.
    pub fn tag(&self, key: &str) -> Option<&str> {
        self.tags.get(key).map(String::as_str)
    }

    /// Whether this is a file system, a volume or a partition table of this identity, and nothing else.
    pub fn has_uuid(&self, uuid: &str) -> bool {
        let is = |key: &str| {
            self.tag(key)
                .is_some_and(|found| found.eq_ignore_ascii_case(uuid))
        };
        let is_other = |key: &str| {
            self.tag(key)
                .is_some_and(|found| !found.eq_ignore_ascii_case(uuid))
        };
        !self.ambivalent && (is("UUID") || is("PTUUID")) && !is_other("UUID") && !is_other("PTUUID")
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ambivalent {
            return write!(f, "several signatures that contradict each other");
        }
        let mut words = Vec::new();
        match (self.tag("TYPE"), self.tag("PTTYPE")) {
            (Some(kind), _) => words.push(format!("a signature of {kind}")),
            (None, Some(kind)) => words.push(format!("a partition table ({kind})")),
            (None, None) => words.push("a signature".to_owned()),
        }
        if let Some(label) = self.tag("LABEL") {
            words.push(format!("label {label:?}"));
        }
        if let Some(uuid) = self.tag("UUID").or_else(|| self.tag("PTUUID")) {
            words.push(format!("UUID {uuid}"));
        }
        f.write_str(&words.join(", "))
    }
}

impl fmt::Display for DeviceContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceContent::Empty => f.write_str("nothing"),
            DeviceContent::Left => f.write_str("what an earlier run of Spindle left"),
            DeviceContent::Signature(signature) => write!(f, "{signature}"),
            DeviceContent::Unknown(words) => f.write_str(words),
        }
    }
}

/// What the device or file of that size behind an open descriptor holds. Errors: there is no `blkid`, or it cannot say;
/// the device cannot be read.
pub fn probe(tools: &Tools, device: &File, size_bytes: u64) -> Result<DeviceContent, ToolError> {
    if let Some(signature) = signature(tools, device)? {
        return Ok(DeviceContent::Signature(signature));
    }
    let unreadable = |source| ToolError::unreadable("the device", source);
    let written = written(device, size_bytes).map_err(unreadable)?;
    let Some(at) = first_data(device, &written).map_err(unreadable)? else {
        return Ok(DeviceContent::Empty);
    };
    if is_as_left(device, size_bytes).map_err(unreadable)? {
        return Ok(DeviceContent::Left);
    }
    let kind = described(device, at).map_err(unreadable)?;
    Ok(DeviceContent::Unknown(kind))
}

/// What libblkid knows on a device.
pub(super) fn signature(tools: &Tools, device: &File) -> Result<Option<Signature>, ToolError> {
    probed(tools, device, &[])
}

fn probed(tools: &Tools, device: &File, options: &[&str]) -> Result<Option<Signature>, ToolError> {
    let arguments = [&["-p", "-o", "export"], options, &["/dev/stdin"]].concat();
    let output = tools.ask("blkid", &arguments, device)?;
    let code = output.code;
    let printed = match code != NOTHING_FOUND && output.printed.is_empty() {
        true => &output.said,
        false => &output.printed,
    };
    Signature::parse(code, printed)
        .map_err(|error| ToolError::failed("blkid", error.code, error.said))
}

/// What libblkid knows in a part of a device.
pub(crate) fn signature_within(
    tools: &Tools,
    device: &File,
    part: Range<u64>,
) -> Result<Option<Signature>, ToolError> {
    let (offset, bytes) = (part.start.to_string(), (part.end - part.start).to_string());
    let of_part = ["--offset", &offset, "--size", &bytes];
    probed(tools, device, &of_part)
}

/// Where a device has data outside of a range, as far as it is read; `None` when it has none.
pub(super) fn data_outside(
    device: &File,
    size_bytes: u64,
    left_out: &Range<u64>,
) -> io::Result<Option<u64>> {
    let read = written(device, size_bytes)?;
    let before = |range: &Range<u64>| range.start..range.end.min(left_out.start);
    let after = |range: &Range<u64>| range.start.max(left_out.end)..range.end;
    let parts = read.iter().flat_map(|range| [before(range), after(range)]);
    let parts: Vec<Range<u64>> = parts.filter(|part| !part.is_empty()).collect();
    first_data(device, &parts)
}

/// Data in a range of a file that stands behind a device; `None` when there are none.
pub(super) fn data_in_file(file: &File, range: &Range<u64>) -> io::Result<Option<u64>> {
    let end = range.end.min(file.metadata()?.len());
    first_data(file, &data_of_file(file, range.start..end)?)
}

/// Where a device is read; of a file, all that was written.
fn written(device: &File, size_bytes: u64) -> io::Result<Vec<Range<u64>>> {
    if device.metadata()?.is_file() {
        return data_of_file(device, 0..size_bytes);
    }
    Ok(places(size_bytes, seed()?))
}

/// The parts of a range of a file that are no holes; when these are too many, pieces of them, spread evenly.
fn data_of_file(file: &File, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let mut data = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start.min(range.end),
            // Nothing but a hole follows.
            Err(Errno::NXIO) => break,
            // A file system that cannot tell: all of it may be data.
            Err(_) => at,
        };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(range.end);
        at = end.clamp(start + 1, range.end.max(start + 1));
        if start < range.end {
            data.push(start..at);
        }
    }
    let total: u64 = data.iter().map(|part| part.end - part.start).sum();
    if total <= DATA_BYTES_MAX {
        return Ok(data);
    }
    let pieces = DATA_BYTES_MAX / PIECE_BYTES;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed()?);
    let stretch = total / pieces;
    let drawn = (0..pieces)
        .map(|piece| piece * stretch + random.next_u64() % (stretch - PIECE_BYTES).max(1));
    Ok(merged(
        drawn.filter_map(|offset| piece_at(&data, offset)).collect(),
    ))
}

/// The piece that begins so far into the data, or what there is of it in one part.
fn piece_at(data: &[Range<u64>], mut offset: u64) -> Option<Range<u64>> {
    for part in data {
        let length = part.end - part.start;
        if offset < length {
            let start = part.start + offset;
            return Some(start..(start + PIECE_BYTES).min(part.end));
        }
        offset -= length;
    }
    None
}

/// Where to read is drawn again for each look.
pub(super) fn seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The first byte in these ranges that is not zero. What the page cache kept from an earlier look is read again.
fn first_data(device: &File, ranges: &[Range<u64>]) -> io::Result<Option<u64>> {
    let (mut bytes, zeros) = (vec![0; PIECE_BYTES as usize], vec![0; PIECE_BYTES as usize]);
    let _ = rustix::fs::fadvise(device, 0, None, Advice::DontNeed);
    let _ = rustix::fs::fadvise(device, 0, None, Advice::Random);
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let length = (range.end - at).min(PIECE_BYTES) as usize;
            device.read_exact_at(&mut bytes[..length], at)?;
            if bytes[..length] != zeros[..length] {
                let first = bytes.iter().position(|byte| *byte != 0);
                return Ok(Some(at + first.unwrap_or(0) as u64));
            }
            at += length as u64;
        }
    }
    Ok(None)
}

/// What bytes that libblkid does not know are, as far as Spindle knows them.
fn described(device: &File, at_bytes: u64) -> io::Result<String> {
    let mut block = vec![0; BLOCK_BYTES as usize];
    let is_header = device.read_exact_at(&mut block, 0).is_ok();
    if let Some((group, disk)) = names_in_header(&block).filter(|_| is_header) {
        return Ok(format!("disk {disk} of the Spindle disk group {group}"));
    }
    Ok(format!("data of an unknown kind (at byte {at_bytes})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_without_content_is_empty() {
        let printed = b"DEVNAME=/dev/stdin\nPART_ENTRY_SCHEME=gpt\nPART_ENTRY_UUID=1-2\n";
        assert_eq!(Signature::parse(0, printed), Ok(None));
        assert_eq!(Signature::parse(2, b""), Ok(None));
    }

    #[test]
    fn everything_else_is_a_signature_or_an_error() {
        let found = Signature::parse(0, b"DEVNAME=/dev/stdin\nUUID=ab-1\nTYPE=ext4\n");
        let signature = found.unwrap().expect("a file system");
        assert!(signature.has_uuid("AB-1") && !signature.has_uuid("ab-2"));
        assert_eq!(signature.to_string(), "a signature of ext4, UUID ab-1");
        assert!(Signature::parse(0, b"SOMETHING_NEW=1\n").unwrap().is_some());
        assert!(Signature::parse(0, b"no equals sign\n").unwrap().is_some());
        let ambivalent = Signature::parse(8, b"").unwrap().expect("something");
        assert!(!ambivalent.has_uuid(""));
        assert!(Signature::parse(4, b"usage").is_err());
        assert!(Signature::parse(-1, b"").is_err());
    }

    #[test]
    fn a_partition_table_beside_a_file_system_is_not_only_ours() {
        let both = Signature::parse(0, b"UUID=mine\nTYPE=ext4\nPTUUID=other\nPTTYPE=gpt\n");
        assert!(!both.unwrap().expect("both").has_uuid("mine"));
    }
}
