//! Stands before every block device that is to be written to. [`Guard::look`] says whether a device may be used and changes
//! nothing; [`Guard::claim`] opens it for this program alone (`O_EXCL`) and asks everything again on that very descriptor,
//! which then stays open while Spindle writes. Steps call it; nothing else opens a device for writing.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::system::{DeviceNumber, SystemTree};
use crate::tool::Tools;

mod content;
mod mapped;
mod stack;
mod survey;
mod verdict;

pub use content::{Content, EDGE_BYTES, ProbeError, Signature, probe};
pub use stack::Footprint;
pub use survey::Survey;
pub use verdict::{DeviceState, Permit, Refusal, Use, Want, check_free, verdict};

/// How long somebody else may have a device for a moment.
const PATIENCE: Duration = Duration::from_secs(1);

/// Judges block devices.
#[derive(Debug, Clone, Copy)]
pub struct Guard<'a> {
    tree: &'a SystemTree,
    tools: &'a Tools,
}

/// What was found on a device that may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// What the system says of it.
    pub state: DeviceState,
    /// What may be done.
    pub permit: Permit,
}

/// A block device that only this program has, held by its descriptor.
#[derive(Debug)]
pub struct HeldDevice {
    file: File,
    path: PathBuf,
    state: DeviceState,
    permit: Permit,
}

impl<'a> Guard<'a> {
    /// A guard that sees the system through `tree`.
    pub fn new(tree: &'a SystemTree, tools: &'a Tools) -> Guard<'a> {
        Guard { tree, tools }
    }

    /// Whether a device may be used. Reads it, changes nothing.
    pub fn look(&self, want: &Want<'_>) -> Result<Looked, Refusal> {
        // Before it is opened: who uses it says more than that it cannot be opened.
        let number = DeviceNumber::of_stat(device_at(want.path)?.rdev());
        let state = DeviceState::read(self.tree, number, want.path)?;
        check_free(want, &state)?;
        let file = open(want.path, OpenOptions::new().read(true))?;
        let state = self.same_device(&file, want.path, &state)?;
        let content = self.content(&file, &state, want.path)?;
        let permit = verdict(self.tree, want, &state, &content)?;
        Ok(Looked { state, permit })
    }

    /// Takes a device for this program alone, and judges it again through the descriptor that holds it.
    pub fn claim(&self, want: &Want<'_>) -> Result<HeldDevice, Refusal> {
        let looked = self.look(want)?;
        let file = open_alone(want.path)?;
        let held = HeldDevice {
            file,
            path: want.path.to_owned(),
            state: looked.state,
            permit: looked.permit,
        };
        self.check_again(&held, want)?;
        Ok(held)
    }

    /// Asks everything again on the descriptor: the same device, still free, and nothing on it that was not there. To be
    /// called just before the first write.
    pub fn check_again(&self, held: &HeldDevice, want: &Want<'_>) -> Result<(), Refusal> {
        let state = self.same_device(&held.file, &held.path, &held.state)?;
        let content = self.content(&held.file, &state, &held.path)?;
        let permit = verdict(self.tree, want, &state, &content)?;
        if permit != held.permit {
            return Err(Refusal::Changed {
                path: held.path.clone(),
                what: format!("there is now {content} on it"),
            });
        }
        Ok(())
    }

    /// Opens a device that this run has made or claimed before, for this program alone.
    pub(crate) fn open_own(&self, path: &Path) -> Result<HeldDevice, Refusal> {
        let file = open_alone(path)?;
        let state = self.state(&file, path)?;
        Ok(HeldDevice {
            file,
            path: path.to_owned(),
            state,
            permit: Permit::Empty,
        })
    }

    /// Whether a device of the run may be written to now: the same as when it was opened, used by nobody, and without any
    /// signature. (A device that was overwritten to precondition it is not zero.)
    pub(crate) fn check_own(&self, held: &HeldDevice) -> Result<(), Refusal> {
        match self.check_free_again(held)? {
            (_, Content::Empty | Content::Unknown) => Ok(()),
            (state, content @ Content::Signature(_)) => Err(Refusal::NotEmpty {
                path: held.path.clone(),
                content: content.to_string(),
                identities: state.identities,
            }),
        }
    }

    /// What is on a device that is held, which must still be the same and used by nobody.
    pub(crate) fn check_free_again(
        &self,
        held: &HeldDevice,
    ) -> Result<(DeviceState, Content), Refusal> {
        let want = Want {
            path: &held.path,
            least_bytes: 0,
            erase: &[],
        };
        let state = self.same_device(&held.file, &held.path, &held.state)?;
        check_free(&want, &state)?;
        let content = self.content(&held.file, &state, &held.path)?;
        Ok((state, content))
    }

    /// What a device is, and what is on it, whoever uses it. Reads it, changes nothing.
    pub(crate) fn identify(&self, path: &Path) -> Result<(DeviceState, Content), Refusal> {
        let file = open(path, OpenOptions::new().read(true))?;
        let state = self.state(&file, path)?;
        let content = self.content(&file, &state, path)?;
        Ok((state, content))
    }

    fn same_device(
        &self,
        file: &File,
        path: &Path,
        before: &DeviceState,
    ) -> Result<DeviceState, Refusal> {
        let state = self.state(file, path)?;
        let changed = |what: String| Refusal::Changed {
            path: path.to_owned(),
            what,
        };
        if state.number != before.number || state.sequence != before.sequence {
            let now = format!(
                "it was device {} and is device {}",
                before.number, state.number
            );
            return Err(changed(now));
        }
        let renamed = !before.identities.is_empty() && !state.has_identity_of(&before.identities);
        if state.size_bytes != before.size_bytes || renamed {
            return Err(changed("its size or its names differ".to_owned()));
        }
        Ok(state)
    }

    fn state(&self, file: &File, path: &Path) -> Result<DeviceState, Refusal> {
        let metadata = file.metadata().map_err(|error| Refusal::Unknown {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        DeviceState::read(self.tree, DeviceNumber::of_stat(metadata.rdev()), path)
    }

    fn content(&self, file: &File, state: &DeviceState, path: &Path) -> Result<Content, Refusal> {
        probe(self.tools, file, state.size_bytes).map_err(|error| Refusal::Unknown {
            path: path.to_owned(),
            reason: error.to_string(),
        })
    }
}

impl HeldDevice {
    /// The descriptor.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// As written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the system said of it.
    pub fn state(&self) -> &DeviceState {
        &self.state
    }

    /// What may be done with it.
    pub fn permit(&self) -> &Permit {
        &self.permit
    }
}

/// What the system says of a path that must be a block device.
fn device_at(path: &Path) -> Result<Metadata, Refusal> {
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

/// Opens a path that must be a block device. The descriptor, not the path, says what it is; but the path is asked before,
/// for opening other things may block, or do something.
fn open(path: &Path, options: &mut OpenOptions) -> Result<File, Refusal> {
    device_at(path)?;
    let wrong = |error: std::io::Error| Refusal::Unknown {
        path: path.to_owned(),
        reason: format!("it cannot be opened: {error}"),
    };
    let file = options.open(path).map_err(wrong)?;
    must_be_device(&file.metadata().map_err(wrong)?, path)?;
    Ok(file)
}

/// Opens a block device for reading and writing, for this program alone. Others may have it so for a moment: who looks for
/// a free loop device, or looks at devices when they change.
fn open_alone(path: &Path) -> Result<File, Refusal> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .custom_flags(OFlags::EXCL.bits() as i32);
    let began = Instant::now();
    loop {
        match open(path, &mut options) {
            Err(Refusal::Unknown { .. }) if began.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(Refusal::Unknown { path, reason }) => return Err(Refusal::Held { path, reason }),
            opened => return opened,
        }
    }
}
