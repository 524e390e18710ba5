//! Whether the kernel has device-mapper, and what it can make with it. A module that exists but is not loaded counts:
//! it is loaded when it is needed.

use super::{SystemTree, text};

/// What the kernel has of device-mapper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceMapper {
    /// It is loaded.
    Loaded,
    /// Its module exists for the running kernel, and is not loaded yet.
    Loadable,
    /// Neither.
    #[default]
    Missing,
}

impl SystemTree {
    /// What the kernel has of device-mapper: proc_devices(5), and the list of modules that depmod(8) keeps.
    pub fn device_mapper(&self) -> DeviceMapper {
        let devices = text(&self.proc.join("devices")).unwrap_or_default();
        let is_mapper = |line: &str| line.split_whitespace().nth(1) == Some("device-mapper");
        if devices.lines().any(is_mapper) {
            DeviceMapper::Loaded
        } else if self.has_module("dm-mod") {
            DeviceMapper::Loadable
        } else {
            DeviceMapper::Missing
        }
    }

    /// Whether device-mapper has its own target module, such as `delay`, or will have it when it is asked for.
    pub fn has_mapped_target(&self, target: &str) -> bool {
        let loaded = self.sys.join(format!("module/dm_{target}")).exists();
        loaded || self.has_module(&format!("dm-{target}"))
    }

    /// Whether a module is built into the running kernel, or can be loaded.
    fn has_module(&self, name: &str) -> bool {
        let Some(release) = text(&self.proc.join("sys/kernel/osrelease")) else {
            return false;
        };
        let file = format!("/{name}.ko");
        // Modules may be compressed: .ko.xz, .ko.zst.
        let names_it = |line: &str| {
            let path = line.split(':').next().unwrap_or_default();
            path.rfind(&file)
                .is_some_and(|at| !path[at + 1..].contains('/'))
        };
        ["modules.dep", "modules.builtin"].iter().any(|list| {
            let list = text(&self.modules.join(&release).join(list)).unwrap_or_default();
            list.lines().any(names_it)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn device_mapper_is_loaded_or_can_be_or_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let tree = SystemTree {
            proc: at("proc"),
            sys: at("sys"),
            modules: at("modules"),
            ..SystemTree::default()
        };
        assert_eq!(tree.device_mapper(), DeviceMapper::Missing);
        fs::create_dir_all(at("proc/sys/kernel")).unwrap();
        fs::create_dir_all(at("modules/6.1.0")).unwrap();
        fs::write(at("proc/sys/kernel/osrelease"), "6.1.0\n").unwrap();
        fs::write(at("proc/devices"), "Block devices:\n  7 loop\n").unwrap();
        let modules = "kernel/drivers/md/not-dm-mod.ko:\nkernel/drivers/md/dm-delay.ko.xz: kernel/drivers/md/dm-mod.ko\n";
        fs::write(at("modules/6.1.0/modules.dep"), modules).unwrap();
        assert_eq!(tree.device_mapper(), DeviceMapper::Missing);
        assert!(tree.has_mapped_target("delay") && !tree.has_mapped_target("thin-pool"));
        fs::write(
            at("modules/6.1.0/modules.builtin"),
            "kernel/drivers/md/dm-mod.ko\n",
        )
        .unwrap();
        assert_eq!(tree.device_mapper(), DeviceMapper::Loadable);
        fs::write(at("proc/devices"), "Block devices:\n254 device-mapper\n").unwrap();
        assert_eq!(tree.device_mapper(), DeviceMapper::Loaded);
        fs::create_dir_all(at("sys/module/dm_flakey")).unwrap();
        assert!(tree.has_mapped_target("flakey"));
    }
}
