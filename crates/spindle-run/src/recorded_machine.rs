//! The machine as results know it, from what the system said of it. Every field is named here: what `spindle-system`
//! adds has no way past this file. [`super::replay`] calls it.

use spindle_result::machine as recorded;
use spindle_system::block_device::BlockDevice;
use spindle_system::calibrated::CalibratedLimits;
use spindle_system::cgroup::GroupLimits;
use spindle_system::machine::{
    DataPath, FileSystem, Load, Machine, Processor, Settings, Virtualisation,
};

/// What results keep of a machine.
pub(super) fn recorded(machine: &Machine) -> recorded::Machine {
    let Machine {
        captured_at,
        spindle_version,
        host,
        distribution,
        kernel_release,
        kernel_version,
        processor,
        memory_bytes,
        swap_bytes,
        virtualisation,
        settings: kernel,
        limits: groups,
        load: busy,
        data_paths,
    } = machine.clone();
    recorded::Machine {
        captured_at: captured_at.to_string(),
        spindle_version,
        host,
        distribution,
        kernel_release,
        kernel_version,
        processor: processors(processor),
        memory_bytes,
        swap_bytes,
        virtualisation: hypervisor(virtualisation),
        settings: settings(kernel),
        limits: limits(groups),
        load: load(busy),
        data_paths: data_paths.into_iter().map(data_path).collect(),
    }
}

fn processors(processor: Processor) -> recorded::Processor {
    let Processor {
        model,
        logical_processors,
        cores,
        governor,
        idle_driver,
        turbo,
    } = processor;
    recorded::Processor {
        model,
        logical_processors,
        cores,
        governor,
        idle_driver,
        turbo,
    }
}

fn hypervisor(virtualisation: Virtualisation) -> recorded::Virtualisation {
    let Virtualisation {
        hypervisor_flag,
        product,
    } = virtualisation;
    recorded::Virtualisation {
        hypervisor_flag,
        product,
    }
}

fn settings(settings: Settings) -> recorded::Settings {
    let Settings {
        transparent_huge_pages,
        vm_dirty_ratio_percent,
        vm_dirty_bytes,
        vm_dirty_background_ratio_percent,
        vm_dirty_background_bytes,
        vm_dirty_expire_centiseconds,
        vm_dirty_writeback_centiseconds,
        vm_swappiness,
        io_uring_disabled,
    } = settings;
    recorded::Settings {
        transparent_huge_pages,
        vm_dirty_ratio_percent,
        vm_dirty_bytes,
        vm_dirty_background_ratio_percent,
        vm_dirty_background_bytes,
        vm_dirty_expire_centiseconds,
        vm_dirty_writeback_centiseconds,
        vm_swappiness,
        io_uring_disabled,
    }
}

fn limits(limits: GroupLimits) -> recorded::Limits {
    let GroupLimits {
        memory_bytes,
        cpu_processors,
        cpuset,
        block_io,
    } = limits;
    recorded::Limits {
        memory_bytes,
        cpu_processors,
        cpuset,
        block_io,
    }
}

fn load(load: Load) -> recorded::Busy {
    let Load {
        averages,
        running_tasks,
        steal_percent_since_boot,
    } = load;
    recorded::Busy {
        averages,
        running_tasks,
        steal_percent_since_boot,
    }
}

fn data_path(path: DataPath) -> recorded::DataPath {
    let DataPath {
        path,
        file_system: files,
        device,
        device_unknown_because,
        calibrated: limits,
    } = path;
    recorded::DataPath {
        path,
        file_system: files.map(file_system),
        device: device.map(block_device),
        device_unknown_because,
        calibrated: limits.map(calibrated),
    }
}

fn file_system(files: FileSystem) -> recorded::FileSystem {
    let FileSystem {
        kind,
        mount_point,
        options,
        source,
        device,
        size_bytes,
        free_bytes,
    } = files;
    recorded::FileSystem {
        kind,
        mount_point,
        options,
        source,
        device: device.to_string(),
        size_bytes,
        free_bytes,
    }
}

fn block_device(device: BlockDevice) -> recorded::BlockDevice {
    let BlockDevice {
        number,
        name,
        partition_of,
        vendor,
        model,
        size_bytes,
        rotational,
        scheduler,
        read_ahead_kib,
        write_cache,
        nr_requests,
        nomerges,
        logical_sector_bytes,
        physical_sector_bytes,
        fua,
        discard_max_bytes,
        atomic_write_max_bytes,
        loop_backing_file,
        loop_direct_io,
        stands_on,
    } = device;
    recorded::BlockDevice {
        number: number.to_string(),
        name,
        partition_of,
        vendor,
        model,
        size_bytes,
        rotational,
        scheduler,
        read_ahead_kib,
        write_cache,
        nr_requests,
        nomerges,
        logical_sector_bytes,
        physical_sector_bytes,
        fua,
        discard_max_bytes,
        atomic_write_max_bytes,
        loop_backing_file,
        loop_direct_io,
        stands_on: stands_on.into_iter().map(block_device).collect(),
    }
}

fn calibrated(limits: CalibratedLimits) -> recorded::CalibratedLimits {
    let CalibratedLimits {
        at,
        iops,
        mb_per_s,
        latency_us,
        write_percent,
    } = limits;
    recorded::CalibratedLimits {
        at: at.to_string(),
        iops,
        mb_per_s,
        latency_us,
        write_percent,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use spindle_system::{DeviceNumber, SystemTree};

    use super::*;

    /// A result tells a machine in the words in which the journal does, in the same order, whatever is known.
    #[test]
    fn a_machine_is_written_in_results_as_in_the_journal() {
        let tree = SystemTree::default();
        let mut machine = Machine::capture(&tree, &[Path::new("/").to_owned()]);
        let number = DeviceNumber { major: 8, minor: 1 };
        let device = |stands_on| BlockDevice {
            number,
            name: "sda1".to_owned(),
            partition_of: Some("sda".to_owned()),
            vendor: Some("ACME".to_owned()),
            model: Some("0001".to_owned()),
            size_bytes: Some(1 << 40),
            rotational: Some(false),
            scheduler: Some("none".to_owned()),
            read_ahead_kib: Some(128),
            write_cache: Some("write back".to_owned()),
            nr_requests: Some(256),
            nomerges: Some(0),
            logical_sector_bytes: Some(512),
            physical_sector_bytes: Some(4096),
            fua: Some(true),
            discard_max_bytes: Some(0),
            atomic_write_max_bytes: Some(0),
            loop_backing_file: Some("/image".to_owned()),
            loop_direct_io: Some(true),
            stands_on,
        };
        machine.data_paths.push(DataPath {
            path: "/srv".to_owned(),
            file_system: Some(FileSystem {
                kind: "xfs".to_owned(),
                mount_point: "/srv".to_owned(),
                options: "rw,noatime".to_owned(),
                source: "/dev/sda1".to_owned(),
                device: number,
                size_bytes: Some(1 << 40),
                free_bytes: Some(1 << 30),
            }),
            device: Some(device(vec![device(Vec::new())])),
            device_unknown_because: Some("it is not".to_owned()),
            calibrated: Some(CalibratedLimits {
                at: machine.captured_at,
                iops: 1e4,
                mb_per_s: Some(1e3),
                latency_us: Some(80.0),
                write_percent: 30,
            }),
        });
        let noted = serde_json::to_string(&machine).unwrap();
        let recorded = recorded(&machine);
        assert_eq!(serde_json::to_string(&recorded).unwrap(), noted);
        let again: recorded::Machine = serde_json::from_str(&noted).unwrap();
        assert_eq!(again, recorded);
    }
}
