//! Stands before every block device that is to be written to. [`Guard::look`] says whether a device may be used and
//! changes nothing; [`Guard::claim`] resolves its path once to a [`HeldDevice`], opens that for this program alone
//! (`O_EXCL`) and asks everything again on that very descriptor, which then stays open while Spindle writes. Steps call
//! it; nothing else opens a device for writing.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::tool::Tools;
use spindle_system::{DeviceNumber, StoragePlace, SystemTree};

mod beneath;
mod content;
mod files;
mod held;
mod left;
mod mapped;
mod nodes;
mod offered;
mod places;
mod stack;
pub(crate) mod stamp;
mod survey;
mod verdict;

pub use crate::known_device::Appearance;
pub(crate) use content::signature_within;
pub use content::{DeviceContent, ProbeError, Signature, probe};
pub use files::FileUses;
pub use held::HeldDevice;
pub(crate) use held::device_at;
pub(crate) use nodes::{NoNode, NodeDirectory};
pub use offered::{EmptyDevice, empty_devices};
pub use places::EDGE_BYTES;
pub use stack::Footprint;
pub use stamp::{RUN_GROUP, run_disk};
pub use survey::GuardSurvey;
pub use verdict::{DeviceState, Permit, Refusal, Use, Want, check_free, verdict};

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

/// A block device that only this program has.
#[derive(Debug)]
pub struct TakenDevice {
    held: Arc<HeldDevice>,
    file: File,
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
        self.look_in(&mut self.survey(want.path)?, want)
    }

    /// As [`Guard::look`], by a survey that answers for all devices of a plan. It is taken again only for a device that
    /// a process has open. Enough for a plan, which writes nothing: before each write a device is surveyed again.
    pub fn look_in(&self, survey: &mut GuardSurvey, want: &Want<'_>) -> Result<Looked, Refusal> {
        let (held, looked) = self.hold(survey, want)?;
        // An exclusive user is not always seen: the device may be mounted where no process looks any more.
        held.check_alone()?;
        Ok(looked)
    }

    /// Resolves the path of a device, once, and says whether the device may be used. Reads it, changes nothing.
    fn hold(
        &self,
        survey: &mut GuardSurvey,
        want: &Want<'_>,
    ) -> Result<(HeldDevice, Looked), Refusal> {
        let (held, state) = self.hold_unused(survey, want)?;
        let content = self.content(held.file(), &state, want.path)?;
        let permit = verdict(self.tree, want, &state, &content)?;
        Ok((held, Looked { state, permit }))
    }

    /// As [`Guard::hold`], whatever the device bears.
    fn hold_unused(
        &self,
        survey: &mut GuardSurvey,
        want: &Want<'_>,
    ) -> Result<(HeldDevice, DeviceState), Refusal> {
        // Before it is opened: who uses it says more than that it cannot be opened.
        let number = DeviceNumber::of_stat(device_at(want.path)?.rdev());
        let before = DeviceState::read(self.tree, survey, number, want.path)?;
        check_free(want, &before)?;
        self.check_beneath(&before, want.path)?;
        let held = HeldDevice::at(self.tree, want.path)?;
        held.check(self.tree)?;
        let number = held.appearance().number;
        let state = DeviceState::of(self.tree, survey, number, want.path)?;
        must_be_same(&held, &before, &state)?;
        Ok((held, state))
    }

    /// Takes a device for this program alone, and judges it again through the descriptor that holds it.
    pub fn claim(&self, want: &Want<'_>) -> Result<TakenDevice, Refusal> {
        let (held, looked) = self.hold(&mut self.survey(want.path)?, want)?;
        let taken = TakenDevice {
            file: held.open_alone(self.tree)?,
            held: Arc::new(held),
            state: looked.state,
            permit: looked.permit,
        };
        self.check_again(&taken, want)?;
        Ok(taken)
    }

    /// Takes a device for this program alone whose data are to be worked on, such as a disk of a disk group. Whatever
    /// it bears, it must not be in use.
    ///
    /// # Errors
    /// Those of [`Guard::claim`], but for [`Refusal::NotEmpty`].
    pub fn claim_with_data(&self, path: &Path) -> Result<TakenDevice, Refusal> {
        let want = Want {
            path,
            least_bytes: 0,
            erase: &[],
        };
        let (held, before) = self.hold_unused(&mut self.survey(path)?, &want)?;
        let file = held.open_alone(self.tree)?;
        let state = self.same_device(&held, &before)?;
        check_free(&want, &state)?;
        self.check_beneath(&state, path)?;
        Ok(TakenDevice {
            held: Arc::new(held),
            file,
            state,
            permit: Permit::Empty,
        })
    }

    /// Asks everything again on the descriptor: the same device, still free, and nothing on it that was not there. To
    /// be called just before the first write.
    pub fn check_again(&self, taken: &TakenDevice, want: &Want<'_>) -> Result<(), Refusal> {
        let state = self.same_device(&taken.held, &taken.state)?;
        let content = self.content(&taken.file, &state, taken.path())?;
        let permit = verdict(self.tree, want, &state, &content)?;
        self.check_beneath(&state, taken.path())?;
        if permit != taken.permit {
            return Err(taken.held.changed(format!("there is now {content} on it")));
        }
        Ok(())
    }

    /// Takes a device that this run has made or claimed before, for this program alone, to be written to now: not in
    /// use, and without any signature. (A device that was overwritten to precondition it is not zero.)
    pub(crate) fn take(&self, held: &Arc<HeldDevice>) -> Result<TakenDevice, Refusal> {
        let (taken, content) = self.take_whatever_it_bears(held)?;
        without_signature(&taken, content)?;
        Ok(taken)
    }

    /// As [`Guard::take`], for a device that is taken already: it must still be the same.
    pub(crate) fn check_own(&self, taken: &TakenDevice) -> Result<(), Refusal> {
        let state = self.same_device(&taken.held, &taken.state)?;
        without_signature(taken, self.content_if_free(taken, &state)?)
    }

    /// Takes a device of the run that is not in use, and says what is on it.
    pub(crate) fn take_whatever_it_bears(
        &self,
        held: &Arc<HeldDevice>,
    ) -> Result<(TakenDevice, DeviceContent), Refusal> {
        let file = held.open_alone(self.tree)?;
        let taken = TakenDevice {
            held: Arc::clone(held),
            file,
            state: self.state(held)?,
            permit: Permit::Empty,
        };
        let content = self.content_if_free(&taken, &taken.state)?;
        Ok((taken, content))
    }

    fn content_if_free(
        &self,
        taken: &TakenDevice,
        state: &DeviceState,
    ) -> Result<DeviceContent, Refusal> {
        let want = Want {
            path: taken.path(),
            least_bytes: 0,
            erase: &[],
        };
        check_free(&want, state)?;
        self.check_beneath(state, taken.path())?;
        self.content(&taken.file, state, taken.path())
    }

    /// What a device is, and what is on it, even if it is in use. Reads it, changes nothing.
    pub(crate) fn identify(
        &self,
        held: &HeldDevice,
    ) -> Result<(DeviceState, DeviceContent), Refusal> {
        let state = self.state(held)?;
        let content = self.content(held.file(), &state, held.called())?;
        Ok((state, content))
    }

    fn same_device(&self, held: &HeldDevice, before: &DeviceState) -> Result<DeviceState, Refusal> {
        let state = self.state(held)?;
        must_be_same(held, before, &state)?;
        Ok(state)
    }

    /// What the system says of a device now, which must still be the one that is held.
    pub(crate) fn state(&self, held: &HeldDevice) -> Result<DeviceState, Refusal> {
        held.check(self.tree)?;
        let mut survey = self.survey(held.called())?;
        let number = held.appearance().number;
        DeviceState::read(self.tree, &mut survey, number, held.called())
    }

    pub(super) fn survey(&self, path: &Path) -> Result<GuardSurvey, Refusal> {
        GuardSurvey::take(self.tree).map_err(|error| Refusal::Unknown {
            path: path.to_owned(),
            reason: error.to_string(),
        })
    }

    fn content(
        &self,
        file: &File,
        state: &DeviceState,
        path: &Path,
    ) -> Result<DeviceContent, Refusal> {
        let unknown = |reason: String| Refusal::Unknown {
            path: path.to_owned(),
            reason,
        };
        let content = probe(self.tools, file, state.size_bytes)
            .map_err(|error| unknown(error.to_string()))?;
        if content != DeviceContent::Empty || state.size_bytes <= places::WHOLE_BYTES {
            return Ok(content);
        }
        // What lies in a file is known better than by samples.
        let beneath = data_beneath(file, &state.footprint, |range| vec![range.clone()]);
        match beneath.map_err(|error| unknown(error.to_string()))? {
            Some(words) => Ok(DeviceContent::Unknown(words)),
            None => Ok(DeviceContent::Empty),
        }
    }

    /// Replaces the stamp by the mark on a device that is about to be given back, its ends zero, when there is anything
    /// left between them. So the next run knows it for Spindle's own. Where there is not, the stamp goes.
    pub(crate) fn leave_mark(&self, device: &File, state: &DeviceState) -> io::Result<()> {
        match has_more_than_stamp(device, state)? {
            true => left::leave_mark(device, state.size_bytes, content::seed()?),
            false => stamp::unstamp(device, state.size_bytes),
        }
    }
}

impl TakenDevice {
    /// The descriptor that holds it exclusively, for reading.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The device, opened for writing: by the run's own node where there is one, so that the time of the node in `/dev`
    /// still tells when others wrote last.
    ///
    /// # Errors
    /// The system's; or the node leads to another device.
    pub fn to_write(&self, own_node: Option<&Path>) -> io::Result<File> {
        let descriptor = PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        let path = own_node.unwrap_or(&descriptor);
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        // It is held, so its number is no other one's.
        let found = DeviceNumber::of_stat(file.metadata()?.rdev());
        match found == self.state.number {
            true => Ok(file),
            false => Err(io::Error::other(format!(
                "{} leads to another device",
                path.display()
            ))),
        }
    }

    /// The device, which stays held when it is no longer taken.
    pub fn held(&self) -> &Arc<HeldDevice> {
        &self.held
    }

    /// As written.
    pub fn path(&self) -> &Path {
        self.held.called()
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

/// Whether what the system said of a device before and says now is of the device that is held.
fn must_be_same(held: &HeldDevice, before: &DeviceState, now: &DeviceState) -> Result<(), Refusal> {
    if now.number != before.number || now.sequence != before.sequence {
        return Err(held.changed(format!(
            "it was device {} and is device {}",
            before.number, now.number
        )));
    }
    let renamed = !before.identities.is_empty() && !now.has_identity_of(&before.identities);
    if now.size_bytes != before.size_bytes || renamed {
        return Err(held.changed("its size or its names differ".to_owned()));
    }
    Ok(())
}

fn without_signature(taken: &TakenDevice, content: DeviceContent) -> Result<(), Refusal> {
    match content {
        DeviceContent::Empty | DeviceContent::Left | DeviceContent::Unknown(_) => Ok(()),
        DeviceContent::Signature(_) => Err(Refusal::NotEmpty {
            path: taken.path().to_owned(),
            content: content.to_string(),
            identities: taken.state.identities.clone(),
        }),
    }
}

/// Whether anything but zeros is on a device beside its stamp, by samples and by the file beneath, if there is one.
fn has_more_than_stamp(device: &File, state: &DeviceState) -> io::Result<bool> {
    if stamp::has_more_than_stamp(device, state.size_bytes)? {
        return Ok(true);
    }
    if state.size_bytes <= places::WHOLE_BYTES {
        return Ok(false);
    }
    // Where the device is not one piece of its file, the stamp itself is found, and a mark takes its place.
    let beside = |range: &Range<u64>| match range.end - range.start == state.size_bytes {
        true => stamp::beside_stamp(range),
        false => vec![range.clone()],
    };
    Ok(data_beneath(device, &state.footprint, beside)?.is_some())
}

/// Data in the files that a device comes down to, in words, as far as their paths lead to them here; of each range in
/// such a file, in `parts` of it.
fn data_beneath(
    device: &File,
    footprint: &Footprint,
    parts: impl Fn(&Range<u64>) -> Vec<Range<u64>>,
) -> io::Result<Option<String>> {
    // What is written to the device may not have come to the file yet.
    let _ = device.sync_all();
    for (storage, path, ranges) in footprint.files() {
        let is_it = |metadata: &Metadata| StoragePlace::of(metadata) == Some(storage);
        if !std::fs::metadata(path).is_ok_and(|metadata| is_it(&metadata)) {
            continue;
        }
        let Ok(file) = File::open(path) else {
            continue;
        };
        if !is_it(&file.metadata()?) {
            continue;
        }
        for range in ranges.iter().flat_map(&parts) {
            if let Some(at) = content::data_in_file(&file, &range)? {
                let file = path.display();
                return Ok(Some(format!(
                    "data of an unknown kind (at byte {at} of {file})"
                )));
            }
        }
    }
    Ok(None)
}
