//! The system tablespace on a raw device: a loop device, as root. Without root these tests say so and do nothing.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use spindle_engines::sql::{
    Purpose, ServerKind, ServerRequest, ServerStop, create_and_load, server,
};
use spindle_layout::{GoldenTree, RawDevice, TreeImage, TreeSite, Verify};
use spindle_workload::sql::SqlWorkload;

use super::{Ground, is_missing, oltp_mix, request, started, survives_a_kill, work};

const DEVICE_BYTES: u64 = 64 << 20;
const PAGE_BYTES: usize = 16384;
/// Of a page that belongs to an index, and where pages say so and of which one
/// (https://dev.mysql.com/doc/internals/en/innodb-page-structure.html).
const INDEX_PAGE: [u8; 2] = [0x45, 0xBF];
const TYPE_AT: usize = 24;
const INDEX_AT: usize = 66;

/// A file as a block device; detached when the test ends, however it ends.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn new(file: &Path) -> LoopDevice {
        std::fs::write(file, vec![0; DEVICE_BYTES as usize]).unwrap();
        let made = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on"])
            .arg(file)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        LoopDevice(String::from_utf8(made.stdout).unwrap().trim().into())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.0)
            .status();
    }
}

/// A loaded database whose system tablespace lies on a device. Fields are dropped in this order: the device, then the
/// directory with its file.
struct OnDevice {
    image: TreeImage,
    request: ServerRequest,
    workload: Arc<dyn SqlWorkload>,
    device: LoopDevice,
    ground: Ground,
}

impl OnDevice {
    /// `None` where it cannot be used, which is said.
    fn new() -> Option<OnDevice> {
        if is_missing() {
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            spindle_harness::skip(
                "raw devices under MariaDB need root, for a loop device and its node",
            );
            return None;
        }
        let ground = Ground::new();
        let device = LoopDevice::new(&ground.path().join("disk"));
        let asked = request(&[("innodb_data_file_path", "ibdata1:48M")]);
        let of = RawDevice::look(&device.0, DEVICE_BYTES).unwrap();
        let mariadb = server(ServerKind::MariaDb);
        let on = mariadb.on_raw_devices(&asked, &[of]).unwrap();
        mariadb.examine(&on.request).unwrap();
        let (golden, workload) = (ground.directories("golden"), oltp_mix());
        create_and_load(mariadb, &on.request, &golden, &*workload, &Arc::default()).unwrap();
        let golden = GoldenTree::seal(golden, &Arc::default()).unwrap();
        let image = TreeImage::provision(
            &golden,
            TreeSite {
                raw: on.files.clone(),
                ..ground.directories("image").into()
            },
        );
        Some(OnDevice {
            image: image.unwrap(),
            request: on.request,
            workload,
            device,
            ground,
        })
    }

    /// Flags with which the server has the device open, as the system tells (proc(5)).
    fn open_flags(&self, process: u32) -> Vec<i32> {
        let node = self.image.directories().data.join("ibdata1");
        let node = node.canonicalize().unwrap();
        let entries = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        let open = entries
            .flatten()
            .filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|file| file == node));
        let flags = open.map(|entry| {
            let number = entry.file_name().into_string().unwrap();
            let told = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")).unwrap();
            let flags = told.lines().find_map(|line| line.strip_prefix("flags:"));
            i32::from_str_radix(flags.unwrap().trim(), 8).unwrap()
        });
        flags.collect()
    }

    /// Damages a page of the table that has most pages.
    fn damage(&self) {
        let bytes = std::fs::read(&self.device.0).unwrap();
        let pages: Vec<&[u8]> = bytes.chunks_exact(PAGE_BYTES).collect();
        let index_of = |page: &[u8]| page[INDEX_AT..INDEX_AT + 8].to_vec();
        let is_index = |page: &&[u8]| page[TYPE_AT..TYPE_AT + 2] == INDEX_PAGE;
        let of_most = |wanted: &[u8]| {
            let all = pages.iter().filter(|page| is_index(page));
            all.filter(|page| index_of(page) == wanted).count()
        };
        let indexes: std::collections::BTreeSet<Vec<u8>> = pages
            .iter()
            .filter(|page| is_index(page))
            .map(|page| index_of(page))
            .collect();
        let most = indexes.iter().max_by_key(|index| of_most(index)).unwrap();
        let mut numbered = pages.iter().enumerate();
        let last = numbered.rfind(|(_, page)| is_index(page) && index_of(page) == *most);
        let at = last.unwrap().0 * PAGE_BYTES + 2000;
        let device = OpenOptions::new().write(true).open(&self.device.0).unwrap();
        device.write_all_at(&[0xA5; 4096], at as u64).unwrap();
        device.sync_all().unwrap();
    }
}

#[test]
fn a_database_on_a_raw_device_works_is_killed_and_is_put_back() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(on) = OnDevice::new() else { return };
    let (request, directories) = (&on.request, on.image.directories());
    let running = started(request, directories);
    let flags = on.open_flags(running.processes()[0]);
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    assert!(
        !flags.is_empty() && flags.iter().all(|flags| flags & direct != 0),
        "{flags:?}"
    );
    running.stop(ServerStop::Clean).unwrap();
    // Nothing else holds tables of the workload.
    let files = directories.files().unwrap();
    let has_own = |path: &PathBuf| path.extension().is_some_and(|end| end == "ibd");
    let own: Vec<_> = files.iter().filter(|path| has_own(path)).collect();
    assert!(
        own.iter()
            .all(|path| !path.to_str().unwrap().contains("spindle/")),
        "{own:?}"
    );

    let (committed, check) = work(request, directories, &on.workload);
    assert!(committed > 0 && check.is_ok(), "{committed} {check:?}");
    assert!(on.image.restore(Verify::Changed).unwrap().changed_blocks > 0);
    assert_eq!(on.image.restore(Verify::Full).unwrap().changed_blocks, 0);
    for _ in 0..2 {
        survives_a_kill(request, directories, &on.workload).unwrap();
        let found = server(ServerKind::MariaDb).verify(request, directories);
        assert!(found.unwrap().contains("nothing wrong in"));
        on.image.restore(Verify::Full).unwrap();
    }
}

#[test]
fn another_device_under_the_name_of_a_datafile_is_not_handed_to_a_server() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(on) = OnDevice::new() else { return };
    let (mariadb, directories) = (server(ServerKind::MariaDb), on.image.directories());
    let other = LoopDevice::new(&on.ground.path().join("other"));
    let number = std::fs::metadata(&other.0).unwrap().rdev();
    let node = directories.data.join("ibdata1");
    std::fs::remove_file(&node).unwrap();
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, &node, FileType::BlockDevice, mode, number).unwrap();
    let started = mariadb.start(&on.request, directories, Purpose::Trial);
    let told = started
        .err()
        .expect("another device stands there")
        .to_string();
    assert!(told.contains("changed since it was checked"), "{told}");
    let bytes = std::fs::read(&other.0).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0), "it was written to");
}

#[test]
fn a_damaged_page_on_a_raw_device_is_found_and_put_back() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(on) = OnDevice::new() else { return };
    let mariadb = server(ServerKind::MariaDb);
    mariadb.verify(&on.request, on.image.directories()).unwrap();
    on.image.restore(Verify::Full).unwrap();
    on.damage();
    let damaged = mariadb.verify(&on.request, on.image.directories());
    assert!(damaged.is_err(), "{damaged:?}");
    on.image.restore(Verify::Full).unwrap();
    mariadb.verify(&on.request, on.image.directories()).unwrap();
}
