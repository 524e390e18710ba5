//! One block device from the look at it to its release. A path is resolved once, to an open descriptor. Everything
//! after that goes through the descriptor or through a private node of the device's number, never through the path
//! again. So a path that later means another device does no harm. The kernel gives the number of a device that is open
//! to no other one. Yet each time it is opened again, its number and the number of its appearance (diskseq) are
//! compared.

use std::fs::{File, Metadata, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::Refusal;
use super::verdict::cannot_open;
use crate::known_device::{Appearance, KnownDevice};
use crate::moment;
use spindle_system::{BlockDeviceNode, DeviceNumber, SystemTree};

/// How long another program may have a device for a moment.
const PATIENCE: Duration = Duration::from_secs(1);

/// A block device that stays open, for reading, until it is released. Others may use it beside: only a
/// [`TakenDevice`](super::TakenDevice) is this program's alone.
#[derive(Debug)]
pub struct HeldDevice {
    called: PathBuf,
    appearance: Appearance,
    file: File,
}

impl HeldDevice {
    /// Resolves a path to the block device that it means now.
    ///
    /// # Errors
    /// [`Refusal::Missing`], [`Refusal::NotABlockDevice`], or [`Refusal::Unknown`] when it cannot be opened or `/sys`
    /// does not show it.
    pub fn at(tree: &SystemTree, path: &Path) -> Result<HeldDevice, Refusal> {
        moment::reached("resolve a path");
        // Opening what is no device may do something.
        device_at(path)?;
        HeldDevice::open(tree, path, path)
    }

    /// The device that has this number now, whatever paths mean; people know it as `called`.
    ///
    /// # Errors
    /// [`Refusal::Missing`]: there is none. [`Refusal::Changed`]: its name in `/dev` leads to another device. Or see
    /// [`HeldDevice::at`].
    pub(crate) fn of_number(
        tree: &SystemTree,
        number: DeviceNumber,
        called: &Path,
    ) -> Result<HeldDevice, Refusal> {
        let missing = || Refusal::Missing {
            path: called.to_owned(),
            reason: format!("the kernel has no device {number}"),
        };
        let node = BlockDeviceNode::of(tree, number).ok_or_else(missing)?;
        let path = node.path(tree);
        moment::reached("find a device by its number");
        device_at(&path)?;
        let held = HeldDevice::open(tree, &path, called)?;
        let found = held.appearance.number;
        if found != number {
            let name = path.display();
            return Err(held.changed(format!("{name} is device {found} and not {number}")));
        }
        Ok(held)
    }

    fn open(tree: &SystemTree, path: &Path, called: &Path) -> Result<HeldDevice, Refusal> {
        let unknown = |reason: String| Refusal::Unknown {
            path: called.to_owned(),
            reason,
        };
        let mut options = OpenOptions::new();
        options
            .read(true)
            // Opening a path that has just become a pipe must not block.
            .custom_flags(OFlags::NONBLOCK.bits() as i32);
        let wrong = |error: std::io::Error| cannot_open(called, &error);
        let file = options.open(path).map_err(wrong)?;
        let metadata = file.metadata().map_err(wrong)?;
        must_be_device(&metadata, called)?;
        let number = DeviceNumber::of_stat(metadata.rdev());
        // From here on the number cannot pass to another device.
        let appearance = Appearance::now(tree, number)
            .ok_or_else(|| unknown(format!("/sys does not show device {number}")))?;
        Ok(HeldDevice {
            called: called.to_owned(),
            appearance,
            file,
        })
    }

    /// The descriptor, for reading.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// What people call it: the path as written. Nothing is opened by it.
    pub fn called(&self) -> &Path {
        &self.called
    }

    /// Which device it is.
    pub fn appearance(&self) -> Appearance {
        self.appearance
    }

    /// A path that leads to the device through the descriptor. It holds for this process and those that may look into
    /// it, as long as the device is held.
    pub fn path(&self) -> PathBuf {
        let process = std::process::id();
        format!("/proc/{process}/fd/{}", self.file.as_raw_fd()).into()
    }

    /// How it is opened again, as long as it is held: through the descriptor.
    pub fn known(&self) -> KnownDevice {
        self.known_at(self.path())
    }

    /// The same, through a node of it.
    pub(crate) fn known_at(&self, node: PathBuf) -> KnownDevice {
        KnownDevice::appeared(node, &self.called, self.appearance)
    }

    /// The kernel's own name of it in `/dev`, for tools that take no other, when the run's nodes are gone.
    ///
    /// # Errors
    /// [`Refusal::Changed`]: that name leads to another device.
    pub(crate) fn kernel_path(&self, tree: &SystemTree) -> Result<PathBuf, Refusal> {
        let number = self.appearance.number;
        let gone = || self.changed("it is gone".to_owned());
        let path = BlockDeviceNode::of(tree, number)
            .ok_or_else(gone)?
            .path(tree);
        let found = DeviceNumber::of_stat(device_at(&path)?.rdev());
        self.has_number(found)?;
        Ok(path)
    }

    /// Whether this is still the device that has the number.
    ///
    /// # Errors
    /// [`Refusal::Changed`].
    pub fn check(&self, tree: &SystemTree) -> Result<(), Refusal> {
        match Appearance::now(tree, self.appearance.number) {
            Some(now) if now == self.appearance => Ok(()),
            None => Err(self.changed("it is gone".to_owned())),
            Some(now) => Err(self.changed(self.appearance.differs_from(now))),
        }
    }

    /// Whether this is the device that was looked at before.
    ///
    /// # Errors
    /// [`Refusal::Changed`].
    pub(crate) fn must_be(&self, looked_at: Appearance) -> Result<(), Refusal> {
        if self.appearance == looked_at {
            return Ok(());
        }
        Err(self.changed(looked_at.differs_from(self.appearance)))
    }

    /// Opens the device once more, for this program alone. Others may hold it the same way for a moment: programs that
    /// look for a free loop device, or at devices that change. Only for reading: when a node that was open for writing
    /// is closed, udev looks at the device again, and sets the times of the node.
    ///
    /// # Errors
    /// [`Refusal::Held`]: another has it for longer. [`Refusal::Changed`].
    pub(crate) fn open_alone(&self, tree: &SystemTree) -> Result<File, Refusal> {
        moment::reached("open a device again");
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::EXCL.bits() as i32);
        let file = self.open_with(&options)?;
        self.is_same(tree, &file)?;
        Ok(file)
    }

    /// Whether the kernel would give the device to one user alone; it is let go at once.
    ///
    /// # Errors
    /// [`Refusal::Held`].
    pub(crate) fn check_alone(&self) -> Result<(), Refusal> {
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(OFlags::EXCL.bits() as i32);
        self.open_with(options).map(drop)
    }

    /// Opens the device once more. Others may have it alone for a moment.
    fn open_with(&self, options: &OpenOptions) -> Result<File, Refusal> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let began = Instant::now();
        loop {
            match options.open(&path) {
                Ok(file) => return Ok(file),
                Err(_) if began.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => {
                    return Err(Refusal::Held {
                        path: self.called.clone(),
                        reason: format!("it cannot be opened: {error}"),
                    });
                }
            }
        }
    }

    /// Whether a descriptor that was opened elsewhere is of this very device.
    ///
    /// # Errors
    /// [`Refusal::Changed`].
    pub(crate) fn is_same(&self, tree: &SystemTree, file: &File) -> Result<(), Refusal> {
        let metadata = file.metadata();
        let metadata = metadata.map_err(|error| self.changed(error.to_string()))?;
        must_be_device(&metadata, &self.called)?;
        self.has_number(DeviceNumber::of_stat(metadata.rdev()))?;
        self.check(tree)
    }

    fn has_number(&self, number: DeviceNumber) -> Result<(), Refusal> {
        let own = self.appearance.number;
        if own == number {
            return Ok(());
        }
        Err(self.changed(format!("it was device {own} and is device {number}")))
    }

    pub(crate) fn changed(&self, what: String) -> Refusal {
        Refusal::Changed {
            path: self.called.clone(),
            what,
        }
    }
}

/// What the system says of a path that must be a block device.
pub(crate) fn device_at(path: &Path) -> Result<Metadata, Refusal> {
    let metadata = std::fs::metadata(path).map_err(|error| Refusal::Missing {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    must_be_device(&metadata, path)?;
    Ok(metadata)
}

fn must_be_device(metadata: &Metadata, path: &Path) -> Result<(), Refusal> {
    if metadata.file_type().is_block_device() {
        return Ok(());
    }
    Err(Refusal::NotABlockDevice {
        path: path.to_owned(),
    })
}
