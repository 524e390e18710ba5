//! What is on a device: nothing, something with a name (file system, volume, partition table, as libblkid knows them), or
//! bytes that nobody knows. libblkid is asked through its tool `blkid`, which is wherever `mount` is: a binding would bring
//! a C library to build against, and know no more. Its probe reads the device itself and keeps no cache.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::tool::{ToolError, Tools};

/// How much of each end must be zero for a device to count as empty when libblkid knows nothing on it.
pub const EDGE_BYTES: u64 = 1 << 20;

/// What is on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// No signature, and zeros at both ends.
    Empty,
    /// A signature that libblkid knows.
    Signature(Signature),
    /// No known signature, but bytes other than zero at one of the ends.
    Unknown,
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
    /// Reads what `blkid -p -o export` printed and its exit code; `None` when it found nothing. What describes the device
    /// and not its content (its name, its entry in the partition table of its disk) is no signature; every other word is.
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

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Empty => f.write_str("nothing"),
            Content::Signature(signature) => write!(f, "{signature}"),
            Content::Unknown => f.write_str("data of an unknown kind in its first or last MiB"),
        }
    }
}

/// What the device of that size behind an open descriptor holds. Errors: there is no `blkid`, or it cannot say; the device
/// cannot be read.
pub fn probe(tools: &Tools, device: &File, size_bytes: u64) -> Result<Content, ToolError> {
    let output = tools.ask("blkid", &["-p", "-o", "export", "/dev/stdin"], device)?;
    let code = output.code;
    let printed = if output.printed.is_empty() {
        &output.said
    } else {
        &output.printed
    };
    let signature = if code == NOTHING_FOUND {
        Signature::parse(code, &output.printed)
    } else {
        Signature::parse(code, printed)
    };
    match signature {
        Ok(Some(signature)) => Ok(Content::Signature(signature)),
        Ok(None)
            if edges_are_zero(device, size_bytes)
                .map_err(|source| ToolError::unreadable("the device's ends", source))? =>
        {
            Ok(Content::Empty)
        }
        Ok(None) => Ok(Content::Unknown),
        Err(error) => Err(ToolError::failed("blkid", error.code, error.said)),
    }
}

fn edges_are_zero(device: &File, size_bytes: u64) -> std::io::Result<bool> {
    let length = EDGE_BYTES.min(size_bytes);
    let mut bytes = vec![0; length as usize];
    for offset in [0, size_bytes - length] {
        device.read_exact_at(&mut bytes, offset)?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
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
