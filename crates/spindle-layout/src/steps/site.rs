//! Where what was made is undone, and what that came to. The steps and [`clean`](crate::clean()) use it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use spindle_system::{BlockDeviceNode, DeviceNumber, SystemTree};

use super::error::StepError;
use super::udev;
use crate::guard::{Appearance, HeldDevice, NodeDirectory, Refusal};
use crate::record::ServerSchema;
use crate::tool::Tools;

/// How long something that is just being let go may take: a mount whose last process is ending, a loop device.
const PATIENCE: Duration = Duration::from_secs(5);

/// What undoing found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Undone {
    /// It existed, and is gone.
    Removed,
    /// It existed, and is gone but for this, in words.
    RemovedBut(String),
    /// It did not exist.
    WasNot,
    /// Something else is in its place, for this reason.
    NotOurs(String),
}

/// Drops a schema, if it exists and is the run's.
///
/// # Errors
/// [`StepError::Schema`].
pub type DropSchema = fn(&ServerSchema) -> Result<SchemaGone, StepError>;

/// What became of a schema that was to be dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaGone {
    /// It is gone.
    Dropped,
    /// There was none.
    WasNot,
    /// There is another one of the name.
    NotOurs,
}

/// Longest time for the tools that write a partition table and make the nodes of partitions.
const TABLE_TIME: Duration = Duration::from_secs(10);

/// Where steps are undone.
#[derive(Debug)]
pub(crate) struct Site {
    pub tree: SystemTree,
    pub tools: Tools,
    /// The start of the system during which the run lived.
    pub boot_id: Option<String>,
    /// Whether it is the run itself that undoes what it made, and not `clean` after its death.
    pub is_of_living_run: bool,
    /// Whether the run of the ledger is living, or is being resumed.
    pub is_going_on: bool,
    /// Of a dead run: since when it has written to no device by a node that others use.
    pub last_touched: Option<SystemTime>,
    /// The run's own directory of device nodes, as long as it has one.
    pub nodes: Option<PathBuf>,
    /// What drops schemas of servers; `None` where there are none to drop.
    pub drop_schema: Option<DropSchema>,
    /// Devices from which the run's own physical volumes were removed here: nothing on them says any more whose they
    /// are, and after a start of the system no time does.
    pub emptied: RefCell<BTreeSet<DeviceNumber>>,
}

impl Site {
    /// Whether the system has not been started again since the run.
    pub fn boot_is_the_same(&self) -> bool {
        self.boot_id.is_some() && self.boot_id == self.tree.boot_id()
    }

    /// The run's own node of a device that is held; `None` where there is none.
    pub fn own_node(&self, held: &HeldDevice) -> Option<PathBuf> {
        let nodes = NodeDirectory::of_run(self.nodes.clone()?);
        nodes.node(&self.tree, held).ok()
    }

    /// The path of a device that is held, for tools that write to it: the run's own node, so that the time of the one
    /// in `/dev` still tells what others wrote. Where there is none, the kernel's name.
    ///
    /// # Errors
    /// [`Refusal::Changed`]: that name leads to another device.
    pub fn path_for_tools(&self, held: &HeldDevice) -> Result<PathBuf, Refusal> {
        let own_node = self.own_node(held);
        own_node.map_or_else(|| held.kernel_path(&self.tree), Ok)
    }

    /// Whether no other process has written to a device since the run died, as told by the nodes that others use: those
    /// in `/dev` of the device and its partitions, and the path that was `called`. The kernel sets their times with
    /// each write, and a run writes by its own nodes. `false` where that is not known.
    ///
    /// A resumed run takes what exists where nodes can tell nothing: each start of the system makes new ones.
    pub fn is_untouched(&self, number: DeviceNumber, called: &Path) -> bool {
        let may_tell = self.nodes.is_some() && self.boot_is_the_same();
        if self.is_of_living_run || self.is_going_on && !may_tell {
            return true;
        }
        let device = BlockDeviceNode::of(&self.tree, number);
        let partitions = device.iter().flat_map(BlockDeviceNode::partitions);
        let partitions: Vec<BlockDeviceNode> = partitions.collect();
        let named = device.iter().chain(&partitions);
        let nodes = named.map(|node| (node.path(&self.tree), node.number));
        let times = nodes.chain([(called.to_owned(), number)]);
        let times = times.map(|(node, of)| written_at(&node, of));
        self.is_before_death(times.flatten().max())
    }

    /// The same of a disk that was being cut. udev sets the time of its node when the table was read, which may be
    /// after the run's last word.
    pub fn is_cut_untouched(&self, disk: &BlockDeviceNode) -> bool {
        let written = written_at(&disk.path(&self.tree), disk.number);
        let is_soon =
            || udev::is_at_work() && written.is_some_and(|at| self.is_soon_after_death(at));
        self.is_before_death(written) || self.boot_is_the_same() && is_soon()
    }

    /// The same of a partition. Its node is made while the table is written, which may be after the run's last word. So
    /// one that is that new, and unchanged, counts as well. udev sets its time, too, soon after.
    pub fn is_part_untouched(&self, node: &BlockDeviceNode) -> bool {
        let path = node.path(&self.tree);
        let written = written_at(&path, node.number);
        let is_new = || {
            let written = written?;
            let born = std::fs::metadata(&path).and_then(|found| found.created());
            let born = born.ok()?;
            let is_as_made = born == written || udev::is_at_work() && born > self.last_touched?;
            Some(is_as_made && self.is_soon_after_death(written))
        };
        self.is_before_death(written) || self.boot_is_the_same() && is_new().unwrap_or(false)
    }

    /// Whether it is so soon after the run's last word that a tool may still have been at work.
    fn is_soon_after_death(&self, written: SystemTime) -> bool {
        let touched = self.last_touched;
        let after = touched.and_then(|touched| written.duration_since(touched).ok());
        after.is_some_and(|after| after <= TABLE_TIME)
    }

    /// Times of files go in steps of some milliseconds, so what the run wrote and its ledger may have the same.
    fn is_before_death(&self, written: Option<SystemTime>) -> bool {
        matches!((written, self.last_touched), (Some(written), Some(touched)) if written <= touched)
    }

    /// The device that appeared so, whatever its path means now; when it has been away since, what its path means now.
    /// Errors: see [`HeldDevice::at`].
    pub fn find(&self, noted: Appearance, called: &Path) -> Result<HeldDevice, Refusal> {
        let stayed = noted.sequence.is_some()
            && self.boot_is_the_same()
            && Appearance::now(&self.tree, noted.number) == Some(noted);
        if stayed {
            let found = HeldDevice::of_number(&self.tree, noted.number, called);
            if let Ok(held) = found
                && held.appearance() == noted
            {
                return Ok(held);
            }
        }
        HeldDevice::at(&self.tree, called)
    }
}

/// When a device was written to by this node last; `None` where the node is not there, or another device's.
fn written_at(node: &Path, number: DeviceNumber) -> Option<SystemTime> {
    let found = std::fs::metadata(node).ok()?;
    let is_it =
        found.file_type().is_block_device() && DeviceNumber::of_stat(found.rdev()) == number;
    is_it.then(|| found.modified().ok()).flatten()
}

/// Waits until `done` says so, for a little while; whether it did.
pub(crate) fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if done() {
            return true;
        }
        if began.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
