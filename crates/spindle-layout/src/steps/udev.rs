//! What udev does with device nodes. It sets the times of a node whenever it looks at the device again: when a
//! partition appears, when a partition table was read, and when a program that had the node open for writing closes it.
//! So a run writes by nodes that udev does not know, and waits for udev before it says that it has written until now.

use std::path::Path;

use crate::tool::Tools;

/// There while udev is at work (systemd-udevd(8)).
const CONTROL: &str = "/run/udev/control";
/// How long udev may take for what it has been told already.
const PATIENCE: &str = "--timeout=10";

/// Whether there is a udev.
pub(super) fn is_at_work() -> bool {
    Path::new(CONTROL).exists()
}

/// Waits until udev has looked at all devices that changed, a few seconds at most. Where there is no udev, at once.
pub(super) fn settle(tools: &Tools) {
    if is_at_work() {
        // Late or missing, it only makes a run that is killed soon leave more to `erase`.
        let _ = tools.run("udevadm", &["settle", PATIENCE]);
    }
}
