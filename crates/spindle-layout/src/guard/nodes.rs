//! The run's own directory of device nodes. Tools that resolve the path they are given (`mount`, LVM, `sfdisk`) get a
//! node in it: made for the number of a device that is held, in a directory where only root comes. It lies below
//! `/dev`, the one file system that always lets nodes be opened and where LVM looks for devices.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mknodat};
use rustix::io::Errno;

use super::HeldDevice;
use crate::moment;
use spindle_system::{BlockDeviceNode, DeviceNumber, SystemTree};

/// Below `/dev`: where the directories of runs are.
const PARENT: &str = "spindle";

/// A directory with nodes of devices that are held.
#[derive(Debug)]
pub(crate) struct NodeDirectory {
    path: PathBuf,
}

impl NodeDirectory {
    /// Where a run's nodes are to be; `unique` is new for each.
    pub fn path_for(tree: &SystemTree, run: &str, unique: &str) -> PathBuf {
        tree.dev.join(PARENT).join(format!("{run}.{unique}"))
    }

    /// Makes a directory, which must be new. Errors: the system's.
    pub fn make(path: &Path) -> io::Result<NodeDirectory> {
        if let Some(parent) = path.parent() {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o755).create(parent)?;
        }
        DirBuilder::new().mode(0o700).create(path)?;
        Ok(NodeDirectory {
            path: path.to_owned(),
        })
    }

    /// That of a run, which made it.
    pub fn of_run(path: PathBuf) -> NodeDirectory {
        NodeDirectory { path }
    }

    /// A node of a device, by the kernel's name of it.
    pub fn node(&self, tree: &SystemTree, device: &HeldDevice) -> Result<PathBuf, NoNode> {
        let number = device.appearance().number;
        let name = BlockDeviceNode::of(tree, number).map(|node| node.name);
        let path = self.path.join(name.unwrap_or_else(|| number.to_string()));
        let in_directory = self.path.display();
        make_node(&path, number).map_err(|error| {
            NoNode(format!("no node of it can be made in {in_directory} ({error}): that takes root, and a container that lets root do it"))
        })?;
        moment::reached("made a node");
        let opened = open_node(&path).map_err(|error| {
            NoNode(format!("a node of it cannot be opened in {in_directory} ({error}): mount the file system there without nodev"))
        })?;
        let same = device.is_same(tree, &opened);
        same.map_err(|refusal| NoNode(refusal.to_string()))?;
        Ok(path)
    }
}

/// Why tools can be given no node of a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoNode(pub(crate) String);

fn make_node(path: &Path, number: DeviceNumber) -> io::Result<()> {
    let device = makedev(number.major, number.minor);
    let make = || {
        mknodat(
            CWD,
            path,
            FileType::BlockDevice,
            Mode::RUSR | Mode::WUSR,
            device,
        )
    };
    match make() {
        // Of an earlier device of that name: a loop device that went and came back.
        Err(Errno::EXIST) => {
            std::fs::remove_file(path)?;
            Ok(make()?)
        }
        made => Ok(made?),
    }
}

fn open_node(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(flags.bits() as i32);
    options.open(path)
}
