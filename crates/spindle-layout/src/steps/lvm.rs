//! How LVM is called. It looks at the layout's devices only (`--devices`), and finds them by the paths it is given and
//! no other (`scan`): so it writes by the run's own nodes, and the times of those in `/dev` tell what others wrote. The
//! steps that deal with volumes use it.

use std::path::{Path, PathBuf};

use crate::tool::{ToolError, Tools, argument};

/// LVM, for some devices.
#[derive(Debug)]
pub(super) struct Lvm<'a> {
    tools: &'a Tools,
    devices: String,
    settings: String,
}

impl<'a> Lvm<'a> {
    /// LVM that knows these devices by these paths.
    pub fn on(tools: &'a Tools, devices: &[PathBuf]) -> Lvm<'a> {
        let paths: Vec<&str> = devices.iter().map(|path| argument(path)).collect();
        Lvm {
            tools,
            devices: paths.join(","),
            settings: settings(devices),
        }
    }

    /// Runs a command of it; what it printed.
    ///
    /// # Errors
    /// LVM is not installed, or what it said.
    pub fn run(&self, command: &str, arguments: &[&str]) -> Result<String, ToolError> {
        let common = [
            command,
            "--quiet",
            "--config",
            &self.settings,
            "--devices",
            &self.devices,
        ];
        self.tools.run("lvm", &[&common, arguments].concat())
    }

    /// Runs a command that reports these columns, a line each, `separator` between them.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn report(
        &self,
        command: &str,
        separator: &str,
        columns: &str,
        arguments: &[&str],
    ) -> Result<String, ToolError> {
        let common = ["--noheadings", "--separator", separator, "-o", columns];
        self.run(command, &[&common, arguments].concat())
    }
}

/// Metadata are kept on the devices only, and not in `/etc`, where they would outlive the group. No daemon watches the
/// volumes, as it would continue after the run: lvm.conf(5).
fn settings(devices: &[PathBuf]) -> String {
    let mut directories: Vec<&Path> = devices.iter().filter_map(|path| path.parent()).collect();
    directories.sort_unstable();
    directories.dedup();
    let scan: Vec<String> = directories
        .iter()
        .map(|directory| format!("{:?}", argument(directory)))
        .collect();
    format!(
        "backup{{backup=0 archive=0}} activation{{monitoring=0}} devices{{scan=[{}] obtain_device_list_from_udev=0}}",
        scan.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_looked_for_where_their_nodes_are() {
        let devices = ["/dev/spindle/a.1/sda", "/dev/spindle/a.1/sdb", "/dev/sdc"];
        assert_eq!(
            settings(&devices.map(PathBuf::from)),
            "backup{backup=0 archive=0} activation{monitoring=0} \
             devices{scan=[\"/dev\",\"/dev/spindle/a.1\"] obtain_device_list_from_udev=0}"
        );
    }
}
