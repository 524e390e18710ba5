//! Devices that a person can be offered: those that the guard would let be used as they are. Called by the code that
//! asks where layouts are to be made; nothing is taken here.

use std::path::PathBuf;

use super::{Guard, GuardSurvey, Permit, Want};
use crate::tool::Tools;
use spindle_system::SystemTree;
use spindle_system::node::{BlockDeviceNode, by_id_names};

/// Devices that are memory: a layout on one says nothing of storage.
const MEMORY: [&str; 2] = ["ram", "zram"];

/// An unused, empty device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmptyDevice {
    /// Its most lasting name: below `/dev/disk/by-id` where it has one.
    pub path: PathBuf,
    /// What the kernel calls it.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
}

/// The devices of `least_bytes` or more that the guard finds empty and free, in the order of their names. Reads devices
/// and changes nothing. A user who may not open devices is offered none.
pub fn empty_devices(tree: &SystemTree, least_bytes: u64) -> Vec<EmptyDevice> {
    let Ok(mut survey) = GuardSurvey::take(tree) else {
        return Vec::new();
    };
    let tools = Tools::new();
    let guard = Guard::new(tree, &tools);
    let mut nodes = BlockDeviceNode::all(tree);
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    let offered = |node: BlockDeviceNode| {
        let size_bytes = node.size_bytes().filter(|bytes| *bytes >= least_bytes)?;
        let letters = node
            .name
            .trim_end_matches(|letter: char| letter.is_ascii_digit());
        if MEMORY.contains(&letters) {
            return None;
        }
        let want = Want {
            path: &node.path(tree),
            least_bytes,
            erase: &[],
        };
        let looked = guard.look_in(&mut survey, &want).ok()?;
        let by_id = by_id_names(tree, &node.name).into_iter().min();
        let by_id = by_id.map(|name| tree.dev.join("disk/by-id").join(name));
        (looked.permit == Permit::Empty).then(|| EmptyDevice {
            path: by_id.unwrap_or_else(|| want.path.to_owned()),
            name: node.name.clone(),
            size_bytes,
        })
    };
    nodes.into_iter().filter_map(offered).collect()
}
