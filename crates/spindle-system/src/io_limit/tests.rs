//! Tests of the limit against fixture trees for both interfaces. What the running kernel holds is in `tests/limits.rs`.

use super::super::fixture::Fixture;
use super::*;

const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 0 };
const PARTITION: DeviceNumber = DeviceNumber { major: 8, minor: 1 };
const RATES: Rates = Rates {
    read_iops: Some(500),
    write_iops: None,
    read_bps: None,
    write_bps: Some(41_943_040),
};

/// A tree with a disk and its partition, and these mounts, own groups and files.
fn tree(mounts: &str, own: &str, files: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::with(&[
        ("proc/self/mountinfo", mounts),
        ("proc/self/cgroup", own),
        ("sys/devices/sda/dev", "8:0\n"),
        ("sys/devices/sda/sda1/dev", "8:1\n"),
        ("sys/devices/sda/sda1/partition", "1\n"),
    ]);
    fixture.link("sys/dev/block/8:0", "sys/devices/sda");
    fixture.link("sys/dev/block/8:1", "sys/devices/sda/sda1");
    for (path, text) in files {
        fixture.write(path, text);
    }
    fixture
}

fn v1_tree() -> Fixture {
    let mounts = "1 0 0:4 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n";
    let fixture = tree(mounts, "4:blkio:/mine\n", &[]);
    fixture.directory("sys/fs/cgroup/blkio/mine");
    fixture
}

/// A version 2 tree: the top hands `hands_down` down, our scope holds us.
fn v2_tree(hands_down: &str) -> Fixture {
    let mounts = "1 0 0:4 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    let files = [
        ("sys/fs/cgroup/cgroup.controllers", "io memory\n"),
        ("sys/fs/cgroup/cgroup.subtree_control", hands_down),
        ("sys/fs/cgroup/scope/cgroup.type", "domain\n"),
        ("sys/fs/cgroup/scope/cgroup.controllers", "memory\n"),
        ("sys/fs/cgroup/scope/cgroup.procs", "77\n"),
    ];
    tree(mounts, "0::/scope\n", &files)
}

#[test]
fn a_partition_is_limited_by_its_disk_once() {
    let fixture = v1_tree();
    let devices = [PARTITION, DISK];
    let limit = IoLimit::available(&fixture.files(), RATES, &devices).unwrap();
    assert_eq!(limit.disks(), [(DISK, RATES)]);
    assert_eq!(limit.parent, fixture.path("sys/fs/cgroup/blkio/mine"));
    let unknown = DeviceNumber { major: 9, minor: 9 };
    assert_eq!(
        IoLimit::available(&fixture.files(), RATES, &[unknown]),
        Err(NoLimit::NoDevice(unknown))
    );
}

#[test]
fn two_limits_hold_each_its_own_disks_and_cannot_differ_on_one() {
    let fixture = v1_tree();
    let limit = |rates| IoLimit::available(&fixture.files(), rates, &[DISK]).unwrap();
    let other = DeviceNumber {
        major: 8,
        minor: 16,
    };
    let slow = Rates {
        read_iops: Some(20),
        ..Rates::default()
    };
    let elsewhere = IoLimit {
        disks: vec![(other, slow)],
        ..limit(RATES)
    };
    let both = limit(RATES).and(&elsewhere).unwrap();
    assert_eq!(both.disks(), [(DISK, RATES), (other, slow)]);
    assert_eq!(both.clone().and(&limit(RATES)), Ok(both.clone()));
    assert_eq!(both.and(&limit(slow)), Err(DISK));
}

#[test]
fn version_1_gets_a_line_in_the_file_of_each_rate_that_is_set() {
    let fixture = v1_tree();
    let limit = IoLimit::available(&fixture.files(), RATES, &[DISK]).unwrap();
    // A kernel would put the files there.
    let files = Rates::default().version_1().map(|(file, _)| file);
    for file in files {
        fixture.write(&format!("sys/fs/cgroup/blkio/mine/group/{file}"), "");
    }
    let group = fixture.path("sys/fs/cgroup/blkio/mine/group");
    limit.throttle(&group).unwrap();
    let lines = files.map(|file| fixture.read(group.join(file)));
    assert_eq!(lines, ["8:0 500", "", "", "8:0 41943040"]);
}

#[test]
fn version_2_limits_the_group_that_holds_the_memory() {
    let fixture = v2_tree("memory\n");
    let limit = IoLimit::available(&fixture.files(), RATES, &[PARTITION]).unwrap();
    assert_eq!(limit.version, CgroupVersion::V2);
    assert_eq!(limit.parent, fixture.path("sys/fs/cgroup"));
    let group = "sys/fs/cgroup/spindle-1-0";
    fixture.write(&format!("{group}/io.max"), "");
    let path = fixture.path(group);
    let held = limit.hold(42, Some((CgroupVersion::V2, &path))).unwrap();
    let line = "8:0 riops=500 wbps=41943040";
    assert_eq!(fixture.read(path.join("io.max")), line);
    let control = fixture.read("sys/fs/cgroup/cgroup.subtree_control");
    assert_eq!(control, "+io");
    drop(held);
    assert!(path.exists(), "it is the memory's, who removes it");
}

#[test]
fn without_a_controller_there_is_no_limit() {
    assert_eq!(
        IoLimit::available(&Fixture::empty().files(), RATES, &[DISK]),
        Err(NoLimit::Unavailable(GroupsUnavailable::NoController(
            Controller::BlockIo
        )))
    );
    let fixture = v2_tree("");
    fixture.write("sys/fs/cgroup/cgroup.type", "domain\n");
    fixture.write("sys/fs/cgroup/cgroup.procs", "1\n");
    assert_eq!(
        IoLimit::available(&fixture.files(), RATES, &[DISK]),
        Err(NoLimit::Unavailable(GroupsUnavailable::NotHandedDown(
            Controller::BlockIo,
            fixture.path("sys/fs/cgroup/scope")
        )))
    );
    fixture.write("sys/fs/cgroup/cgroup.controllers", "memory\n");
    assert_eq!(
        IoLimit::available(&fixture.files(), RATES, &[DISK]),
        Err(NoLimit::Unavailable(GroupsUnavailable::NoController(
            Controller::BlockIo
        )))
    );
}

#[test]
fn a_group_that_cannot_be_limited_is_an_error_that_names_the_file() {
    let fixture = v1_tree();
    let limit = IoLimit::available(&fixture.files(), RATES, &[DISK]).unwrap();
    // No kernel puts the files there.
    let error = limit.hold(42, None).unwrap_err().to_string();
    assert!(error.contains("blkio.throttle.read_iops_device"), "{error}");
    let groups = fs::read_dir(fixture.path("sys/fs/cgroup/blkio/mine")).unwrap();
    assert_eq!(groups.count(), 0, "nothing is left");
}

#[test]
fn a_rate_is_exceeded_beyond_a_twentieth_and_a_slice_of_time() {
    let time = Duration::from_secs(10);
    let reads = |reads| DiskCounters {
        reads,
        ..DiskCounters::default()
    };
    // 500 in a second, for 10.1 s, and a twentieth: 5302.5.
    assert_eq!(RATES.exceeded(&reads(5302), time), None);
    let text = RATES.exceeded(&reads(5303), time).unwrap();
    assert_eq!(text, "530 reads per second where 500 are allowed");
    let others = DiskCounters {
        writes: u64::MAX,
        read_bytes: u64::MAX,
        ..DiskCounters::default()
    };
    assert_eq!(RATES.exceeded(&others, time), None);
    let written = DiskCounters {
        written_bytes: 500 << 20,
        ..DiskCounters::default()
    };
    let text = RATES.exceeded(&written, time).unwrap();
    assert!(text.contains("bytes written per second"), "{text}");
}

#[test]
fn a_process_reads_the_account_of_its_own_group() {
    let serviced = "8:0 Read 3\n8:0 Write 7\n8:0 Total 10\n8:16 Read 9\nTotal 19\n";
    let bytes = "8:0 Read 30\n8:0 Write 70\n";
    let v1 = v1_tree();
    let group = "sys/fs/cgroup/blkio/mine/blkio.throttle";
    v1.write(&format!("{group}.io_serviced"), serviced);
    v1.write(&format!("{group}.io_service_bytes"), bytes);
    let v2 = v2_tree("io\n");
    let stat =
        "8:16 rbytes=1 wbytes=1 rios=1 wios=1\n8:0 rbytes=30 wbytes=70 rios=3 wios=7 dbytes=0\n";
    v2.write("sys/fs/cgroup/scope/io.stat", stat);
    for fixture in [v1, v2] {
        let charged = charged_to_self(&fixture.files(), DISK).expect("an account");
        assert_eq!((charged.reads, charged.writes), (3, 7));
        assert_eq!((charged.read_bytes, charged.written_bytes), (30, 70));
        assert_eq!(charged_to_self(&fixture.files(), PARTITION), None);
    }
}

#[test]
fn flushes_of_the_kernel_are_not_held_against_a_trial_but_bytes_are() {
    let counters = |writes, written_bytes| DiskCounters {
        writes,
        written_bytes,
        ..DiskCounters::default()
    };
    let compared = |device, charged| held_to_account(device, charged).writes;
    let device = counters(800, 1000);
    assert_eq!(compared(device, Some(counters(400, 1000))), 400);
    assert_eq!(compared(device, Some(counters(400, 960))), 400);
    assert_eq!(compared(device, Some(counters(400, 940))), 800);
    assert_eq!(compared(device, Some(counters(0, 0))), 800);
    assert_eq!(compared(device, None), 800);
}
