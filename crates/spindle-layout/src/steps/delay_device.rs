//! A device made slower: dm-delay takes its place, and whatever is made of it (volume, file system with its journal,
//! disk group) waits as on a slower disk.

use std::fmt;
use std::path::Path;

use spindle_io::LINUX_SECTOR_BYTES;

use super::error::{DeviceName, StepError};
use super::workshop::{Workshop, run_on_devices};
use crate::record::MappedDevice;
use crate::spec::Delay;

/// Puts a dm-delay in place of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayDevice {
    /// The device, by whose name the slower one is known afterwards.
    pub device: DeviceName,
    /// What device-mapper is to call it.
    pub mapped_name: String,
    /// How much longer each I/O is to take: whole milliseconds.
    pub delay: Delay,
}

impl fmt::Display for DelayDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delay {} with dm-delay ({})", self.device, self.delay)
    }
}

impl DelayDevice {
    pub(super) fn written_bytes(&self) -> u64 {
        0
    }

    pub(super) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
        workshop.site.tools.load_device_mapper(&workshop.site.tree);
        let ready = workshop.device(&self.device)?.clone();
        let size_bytes = workshop.look(&self.device)?.size_bytes;
        let mapped = MappedDevice::new(&workshop.site.tree, &self.mapped_name)?;
        workshop.note(mapped.clone())?;
        let below = workshop.path_for("dmsetup", &self.device)?;
        let table = self.table(&below, size_bytes);
        let device = std::slice::from_ref(&self.device);
        run_on_devices(workshop, device, |tools| mapped.create(tools, &table))?;
        let made = mapped.hold(&workshop.site.tree)?;
        workshop.ready(&self.device, made, ready.uuid)
    }

    /// The table of a dm-delay with separate times for reads, writes and flushes (Linux
    /// Documentation/admin-guide/device-mapper/delay.rst).
    fn table(&self, below: &Path, size_bytes: u64) -> String {
        let Delay {
            read_us,
            write_us,
            flush_us,
        } = self.delay;
        let below = below.display();
        let times = [read_us, write_us, flush_us].map(|time_us| time_us / 1000);
        let kinds = times.map(|time_ms| format!("{below} 0 {time_ms}"));
        format!(
            "0 {} delay {}",
            size_bytes / LINUX_SECTOR_BYTES,
            kinds.join(" ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_io_has_its_time() {
        let step = DelayDevice {
            device: "disk1.img".to_owned(),
            mapped_name: "spindle-r-1-disk1".to_owned(),
            delay: Delay {
                read_us: 5000,
                write_us: 0,
                flush_us: 8000,
            },
        };
        assert_eq!(
            step.table(Path::new("/dev/loop3"), 1 << 20),
            "0 2048 delay /dev/loop3 0 5 /dev/loop3 0 0 /dev/loop3 0 8"
        );
        assert_eq!(
            step.to_string(),
            "delay disk1.img with dm-delay (read 5 ms, flush 8 ms)"
        );
    }
}
