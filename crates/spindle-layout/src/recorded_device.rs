//! A device as a journal keeps it, so that a later process of the same run, perhaps after a restart of the machine,
//! takes this device again and no other. Names below `/dev` may mean other devices by then.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::guard::{Refusal, device_at};
use crate::known_device::Appearance;
use spindle_system::node::by_id_names;
use spindle_system::{BlockDeviceNode, DeviceNumber, SystemTree};

/// What a device is known by. [`RecordedDevice::find`] says when another one is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedDevice {
    path: PathBuf,
    appearance: Appearance,
    /// The start of the system that the appearance is of.
    boot_id: Option<String>,
    lasting: Option<Lasting>,
}

/// What stays over a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Lasting {
    size_bytes: Option<u64>,
    /// Where a partition begins on its disk: it has its disk's serial number.
    start_bytes: Option<u64>,
    /// Serial numbers, world-wide names, names below `/dev/disk/by-id`.
    identities: Vec<String>,
    /// The file behind a loop device, and where in it the device begins.
    backing: Option<(PathBuf, u64, u64)>,
}

impl Lasting {
    fn of(tree: &SystemTree, number: DeviceNumber) -> Option<Lasting> {
        let node = BlockDeviceNode::of(tree, number)?;
        let mut identities = by_id_names(tree, &node.name);
        identities.extend(node.hardware_names());
        let backing = node.loop_backing().and_then(|backing| {
            let inode = std::fs::metadata(&backing.file).ok()?.ino();
            Some((backing.file, inode, backing.offset_bytes))
        });
        Some(Lasting {
            size_bytes: node.size_bytes(),
            start_bytes: node.start_bytes(),
            identities,
            backing,
        })
    }

    fn is_the_device_of(&self, before: &Lasting) -> bool {
        let mut identities = before.identities.iter();
        let is_named_so = identities.any(|identity| self.identities.contains(identity));
        let is_that_file = before.backing.is_some() && self.backing == before.backing;
        let is_as_large =
            self.size_bytes == before.size_bytes && self.start_bytes == before.start_bytes;
        is_as_large && (is_named_so || is_that_file)
    }
}

impl RecordedDevice {
    /// The device that appeared so, to which `path` leads.
    pub fn of(tree: &SystemTree, path: &Path, appearance: Appearance) -> RecordedDevice {
        RecordedDevice {
            path: path.to_owned(),
            appearance,
            boot_id: tree.boot_id(),
            lasting: Lasting::of(tree, appearance.number),
        }
    }

    /// Leads to it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The device that its path leads to now, if it is the same one: it never went away, or it has the same size and a
    /// serial number (or a file behind it) in common.
    ///
    /// # Errors
    /// [`Refusal::Changed`]: it is another one, or nothing shows that it is the same. [`Refusal::Missing`] or
    /// [`Refusal::NotABlockDevice`]: it is not there.
    pub fn find(&self, tree: &SystemTree) -> Result<Appearance, Refusal> {
        let number = DeviceNumber::of_stat(device_at(&self.path)?.rdev());
        let now = Appearance::now(tree, number).ok_or_else(|| Refusal::Unknown {
            path: self.path.clone(),
            reason: format!("/sys does not show device {number}"),
        })?;
        let is_one_start = self.boot_id.is_some() && self.boot_id == tree.boot_id();
        let lasting = Lasting::of(tree, number);
        let size = |of: &Option<Lasting>| of.as_ref().and_then(|of| of.size_bytes);
        let never_went_away =
            is_one_start && now == self.appearance && size(&lasting) == size(&self.lasting);
        let is_known_again = match (&self.lasting, &lasting) {
            (Some(before), Some(now)) => now.is_the_device_of(before),
            _ => false,
        };
        if never_went_away || is_known_again {
            return Ok(now);
        }
        Err(Refusal::Changed {
            path: self.path.clone(),
            what: self.difference(is_one_start, now, lasting),
        })
    }

    fn difference(&self, is_one_start: bool, now: Appearance, lasting: Option<Lasting>) -> String {
        let text = |lasting: &Option<Lasting>| match lasting {
            Some(Lasting { identities, .. }) if !identities.is_empty() => identities.join(", "),
            Some(Lasting {
                backing: Some((file, ..)),
                ..
            }) => format!("a loop device over {}", file.display()),
            _ => "without a serial number".to_owned(),
        };
        let size = |lasting: &Option<Lasting>| match lasting.as_ref().and_then(|of| of.size_bytes) {
            Some(bytes) => spindle_text::quantity::size_exact(bytes),
            None => "of unknown size".to_owned(),
        };
        let since = if is_one_start {
            ""
        } else {
            "; the machine was restarted since"
        };
        format!(
            "{}: before {}, {}; now {}, {}{since}",
            self.appearance.differs_from(now),
            size(&self.lasting),
            text(&self.lasting),
            size(&lasting),
            text(&lasting),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(identities: &[&str], backing: Option<(&str, u64)>) -> Lasting {
        Lasting {
            size_bytes: Some(1 << 30),
            start_bytes: None,
            identities: identities.iter().map(ToString::to_string).collect(),
            backing: backing.map(|(file, inode)| (file.into(), inode, 0)),
        }
    }

    #[test]
    fn a_disk_is_known_by_a_name_of_its_hardware() {
        let before = disk(&["wwn-0x5000c500a1b2c3d4", "S1AB"], None);
        assert!(disk(&["S1AB"], None).is_the_device_of(&before));
        assert!(!disk(&["S1AC"], None).is_the_device_of(&before));
        let grown = Lasting {
            size_bytes: Some(2 << 30),
            ..before.clone()
        };
        assert!(!grown.is_the_device_of(&before));
        let partition = Lasting {
            start_bytes: Some(1 << 20),
            ..before.clone()
        };
        assert!(!partition.is_the_device_of(&before));
    }

    #[test]
    fn what_has_no_name_is_not_known_again_but_a_file() {
        assert!(!disk(&[], None).is_the_device_of(&disk(&[], None)));
        let before = disk(&[], Some(("/srv/a.img", 12)));
        assert!(before.is_the_device_of(&before));
        assert!(!disk(&[], Some(("/srv/a.img", 13))).is_the_device_of(&before));
        assert!(!disk(&[], Some(("/srv/b.img", 12))).is_the_device_of(&before));
    }
}
