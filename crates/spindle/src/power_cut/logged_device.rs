//! Devices whose writes are logged, made with device-mapper: one dm-log-writes below everything, so that there is one
//! log in one order, and linear parts of it that stand in for a layout's devices. They are in the ledger of their run,
//! and are removed with the layout.

use std::path::{Path, PathBuf};

use spindle_io::LINUX_SECTOR_BYTES;
use spindle_layout::Ledger;
use spindle_layout::clean::undo_everything;
use spindle_layout::power_cut::{AddressMap, DeviceTables};
use spindle_layout::record::MappedDevice;
use spindle_layout::tool::Tools;
use spindle_system::SystemTree;

use super::error::PowerCutError;

/// A part of a block device.
#[derive(Debug, Clone)]
pub struct Slice {
    /// The device.
    pub device: PathBuf,
    /// Where the part begins, a multiple of the sector size.
    pub first_byte: u64,
    /// Its size.
    pub bytes: u64,
}

/// Logged devices, for as long as they exist.
pub struct LoggedDevice<'a> {
    ledger: &'a Ledger,
    tree: &'a SystemTree,
    name: String,
    parts: usize,
}

impl<'a> LoggedDevice<'a> {
    /// Why there can be none here, if so.
    pub fn obstacle() -> Option<String> {
        let tools = Tools::new();
        // Modules are loaded if they exist; whether that worked is seen below.
        let _ = tools.run("modprobe", &["-a", "dm-mod", "dm-log-writes"]);
        match tools.run("dmsetup", &["targets"]) {
            Ok(targets) if targets.lines().any(|line| line.starts_with("log-writes")) => None,
            Ok(_) => Some(
                "this kernel's device-mapper has no log-writes (CONFIG_DM_LOG_WRITES)".to_owned(),
            ),
            Err(error) => Some(format!("this kernel has no device-mapper: {error}")),
        }
    }

    /// Makes the logged device on `origin` with its log on `log`, and `parts` parts of `part_bytes` bytes.
    pub fn make(
        ledger: &'a Ledger,
        tree: &'a SystemTree,
        name: &str,
        [origin, log]: [Slice; 2],
        parts: usize,
        part_bytes: u64,
    ) -> Result<LoggedDevice<'a>, PowerCutError> {
        let device = LoggedDevice {
            ledger,
            tree,
            name: name.to_owned(),
            parts,
        };
        let bytes = parts as u64 * part_bytes;
        let origin = device.linear("origin", &origin.device, origin.first_byte, bytes)?;
        let log = device.linear("log", &log.device, log.first_byte, log.bytes)?;
        let (origin, log) = (origin.display(), log.display());
        let sectors = bytes / LINUX_SECTOR_BYTES;
        let logged = device.one("logged", &format!("0 {sectors} log-writes {origin} {log}"))?;
        for part in 0..parts {
            let first_byte = part as u64 * part_bytes;
            device.linear(&format!("part{part}"), &logged, first_byte, part_bytes)?;
        }
        Ok(device)
    }

    fn linear(
        &self,
        part: &str,
        below: &Path,
        first_byte: u64,
        bytes: u64,
    ) -> Result<PathBuf, PowerCutError> {
        let (first, sectors) = (first_byte / LINUX_SECTOR_BYTES, bytes / LINUX_SECTOR_BYTES);
        self.one(
            part,
            &format!("0 {sectors} linear {} {first}", below.display()),
        )
    }

    fn one(&self, part: &str, table: &str) -> Result<PathBuf, PowerCutError> {
        let name = format!("{}-{part}", self.name);
        Ok(MappedDevice::make(self.ledger, self.tree, &name, table)?)
    }

    fn path(&self, part: &str) -> PathBuf {
        PathBuf::from(format!("/dev/mapper/{}-{part}", self.name))
    }

    /// The name by which device-mapper knows the device whose writes are logged.
    pub fn name(&self) -> String {
        format!("{}-logged", self.name)
    }

    /// What stands in for a layout's devices.
    pub fn parts(&self) -> Vec<PathBuf> {
        (0..self.parts)
            .map(|part| self.path(&format!("part{part}")))
            .collect()
    }

    /// Where each of these volumes (`major:minor`) lies on the logged device.
    pub fn maps(&self, volumes: &[String]) -> Result<Vec<AddressMap>, PowerCutError> {
        let tools = Tools::new();
        let dmsetup = |arguments: &[&str]| tools.run("dmsetup", arguments);
        let list = dmsetup(&[
            "info",
            "-c",
            "--noheadings",
            "-o",
            "name,major,minor",
            "--separator",
            " ",
        ])?;
        let mut tables = DeviceTables::default();
        let mut logged = String::new();
        for line in list.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, major, minor] = words[..] else {
                continue;
            };
            let number = format!("{major}:{minor}");
            if name == self.name() {
                logged.clone_from(&number);
            }
            tables.add(&number, &dmsetup(&["table", name])?);
        }
        let map = |volume: &String| Ok(tables.map(volume, &logged)?);
        volumes.iter().map(map).collect()
    }
}

impl Drop for LoggedDevice<'_> {
    /// Removes what the ledger still names: nothing, unless an error is under way.
    fn drop(&mut self) {
        undo_everything(self.ledger, self.tree);
    }
}
