//! Disk groups: what their mapping costs, what four disks bring, and how a group compares with other ways to put the
//! same files on the same disks.

mod beside_device;
mod beside_volume;
mod four_disks;
mod mapping;

use std::path::Path;
use std::sync::Arc;

use spindle_io::disk_group::{Disk, DiskGroup, DiskGroupOptions, Redundancy, Striping, Template};
use spindle_io::real::{RealEnv, block_on};
use spindle_io::{BlockDevice, Env};

use crate::Pace;
use crate::figures::Figures;

pub use beside_volume::{IN_VIRTUAL_MACHINE, in_virtual_machine, run as beside_volume};

/// What a disk needs beside its share of a file: metadata, and space that does not come out even.
const MEMBER_OVERHEAD_BYTES: u64 = 16 << 20;

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    mapping::run(pace, figures);
    four_disks::run(pace, figures);
    beside_device::run(pace, directory, figures);
}

/// A group with one file in it.
struct Group {
    file: Arc<dyn BlockDevice>,
    /// Kept mounted.
    _group: DiskGroup,
}

impl Group {
    fn of(
        devices: impl Iterator<Item = Arc<dyn BlockDevice>>,
        striping: Striping,
        file_bytes: u64,
    ) -> Group {
        let env: Arc<dyn Env> = RealEnv::new(1);
        let disks = (0..).zip(devices).map(|(number, device)| Disk {
            name: format!("d{number}"),
            failure_group: None,
            device,
        });
        let options = DiskGroupOptions {
            allocation_unit_bytes: 1 << 20,
            redundancy: Redundancy::External,
            identity: None,
        };
        let template = Template {
            striping,
            redundancy: None,
        };
        block_on(async {
            let group = DiskGroup::create(&env, "bench", disks.collect(), options)
                .await
                .expect("a group can be made");
            let creation = group
                .begin_file("file", file_bytes, template)
                .await
                .expect("it has room");
            creation.commit().await.expect("no disk fails");
            Group {
                file: group.open_file("file").expect("it was committed"),
                _group: group,
            }
        })
    }
}
