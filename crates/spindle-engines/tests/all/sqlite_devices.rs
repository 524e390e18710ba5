//! SQLite on a raw device: a loop device, as root; without root these tests say so and do nothing. And in a disk group
//! of files. Built with the feature `sqlite-devices`.
#![cfg(feature = "sqlite-devices")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{
    Purpose, Server, ServerKind, ServerRequest, ServerStop, SqlUnderTest, create_and_load, server,
};
use spindle_io::real::{Caching, FileDevice, IoCounts, Queue, RealEnv, block_on};
use spindle_io::{Env, disk_group};
use spindle_layout::{
    GoldenTree, GroupedFile, KnownDevice, RawDevice, TreeDirectories, TreeImage, TreeSite, Verify,
};
use spindle_workload::driver::Behaviour;
use spindle_workload::sql::{RowsInSql, SqlConnection, SqlWorkload};
use spindle_workload::{Acknowledged, OltpMix, OltpMixSettings};

use crate::progress::wait_for;

const CLIENTS: u32 = 3;
const DEVICE_BYTES: u64 = 16 << 20;
/// The longest time until a victim has committed something.
const PATIENCE: Duration = Duration::from_secs(120);
/// Set in the process that is to be killed, to the directories of its database.
const VICTIM: &str = "SPINDLE_TEST_SQLITE_DEVICES_VICTIM";
/// How its journal is kept, there.
const MODE: &str = "SPINDLE_TEST_SQLITE_DEVICES_MODE";

/// A file as a block device; detached when the test ends, however it ends.
struct LoopDevice(PathBuf);

impl LoopDevice {
    fn new(file: &Path) -> LoopDevice {
        std::fs::write(file, vec![0x5A; DEVICE_BYTES as usize]).unwrap();
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

fn sqlite() -> &'static dyn Server {
    server(ServerKind::Sqlite)
}

fn request(journal_mode: &str) -> ServerRequest {
    let settings = [("journal_mode", journal_mode), ("wal_autocheckpoint", "20")];
    let owned = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    ServerRequest {
        settings: BTreeMap::from(owned),
        bin_dir: None,
        buffer_cache_bytes: 1 << 20,
        data_bytes: 2 << 20,
        clients: CLIENTS,
        io: None,
        database: None,
    }
}

fn workload() -> Arc<dyn SqlWorkload> {
    let mix = OltpMix {
        data_bytes: 2 << 20,
        clients: CLIENTS.into(),
        settings: OltpMixSettings {
            read_percent: 40,
            row_operations: 5,
        },
    };
    Arc::new(RowsInSql::new(Arc::new(mix), 7))
}

fn directories(place: &Path, name: &str) -> TreeDirectories {
    let root = place.join(name);
    std::fs::create_dir(&root).unwrap();
    let directories = TreeDirectories::within(|_| root.clone());
    directories.make().unwrap();
    directories
}

/// A loaded database on a device, or in a disk group. Fields are dropped in this order: the device, then the directory
/// with its file.
struct OnDevice {
    image: TreeImage,
    request: ServerRequest,
    device: Option<LoopDevice>,
    place: tempfile::TempDir,
}

/// A disk group of two files, each a failure group.
fn disk_group(place: &Path) -> Vec<KnownDevice> {
    let disks = ["disk1", "disk2"].map(|name| place.join(name));
    let member = |disk: &PathBuf| {
        std::fs::write(disk, vec![0; 3 * DEVICE_BYTES as usize]).unwrap();
        let device = FileDevice::open(disk, Caching::Direct, Queue::sync()).unwrap();
        disk_group::Disk {
            name: disk.file_name().unwrap().to_str().unwrap().to_owned(),
            failure_group: None,
            device: Arc::new(device),
        }
    };
    let members = disks.iter().map(member).collect();
    let options = disk_group::DiskGroupOptions {
        allocation_unit_bytes: 1 << 20,
        redundancy: disk_group::Redundancy::Normal,
        ..disk_group::DiskGroupOptions::default()
    };
    let env: Arc<dyn Env> = RealEnv::new(1);
    block_on(async {
        let made = disk_group::DiskGroup::create(&env, "spindle", members, options).await;
        made.unwrap().dismount().await.unwrap();
    });
    let known = disks.each_ref().map(|disk| KnownDevice::look(disk));
    known.map(Result::unwrap).to_vec()
}

impl OnDevice {
    /// `None` without root, which is said.
    fn new(journal_mode: &str) -> Option<OnDevice> {
        if !rustix::process::geteuid().is_root() {
            spindle_harness::skip(
                "raw devices under SQLite need root, for a loop device and its node",
            );
            return None;
        }
        // Beside the program: /tmp may be a tmpfs.
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let device = LoopDevice::new(&place.path().join("disk"));
        let of = RawDevice::look(&device.0, DEVICE_BYTES).unwrap();
        let on = sqlite()
            .on_raw_devices(&request(journal_mode), &[of])
            .unwrap();
        sqlite().examine(&on.request).unwrap();
        let golden = directories(place.path(), "golden");
        create_and_load(
            sqlite(),
            &on.request,
            &golden,
            &*workload(),
            &Arc::default(),
        )
        .unwrap();
        let golden = GoldenTree::seal(golden, &Arc::default()).unwrap();
        let image = directories(place.path(), "image");
        let image = TreeImage::provision(
            &golden,
            TreeSite {
                raw: on.files.clone(),
                ..image.into()
            },
        )
        .unwrap();
        Some(OnDevice {
            image,
            request: on.request,
            device: Some(device),
            place,
        })
    }

    fn in_group(journal_mode: &str) -> OnDevice {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let disks = disk_group(place.path());
        let within = sqlite().in_disk_group(&request(journal_mode), &disks);
        let within = within.unwrap();
        let golden = directories(place.path(), "golden");
        create_and_load(
            sqlite(),
            &within.request,
            &golden,
            &*workload(),
            &Arc::default(),
        )
        .unwrap();
        let golden = GoldenTree::seal(golden, &Arc::default()).unwrap();
        let file = |(name, bytes): &(String, u64)| GroupedFile {
            name: name.clone(),
            disks: disks.clone(),
            bytes: *bytes,
            fine_stripes: false,
            preferred_failure_group: None,
        };
        let files: Vec<GroupedFile> = within.files.iter().map(file).collect();
        let image = directories(place.path(), "image");
        let image = TreeImage::provision(
            &golden,
            TreeSite {
                grouped: files,
                prefix: "1-".to_owned(),
                ..image.into()
            },
        )
        .unwrap();
        OnDevice {
            image,
            request: within.request,
            device: None,
            place,
        }
    }

    fn node(&self) -> PathBuf {
        self.image.directories().data.join("spindle.db")
    }

    /// Flags with which this process has the device open, as the system tells (proc(5)).
    fn open_flags(&self) -> Vec<i32> {
        let node = self.node().canonicalize().unwrap();
        let entries = std::fs::read_dir("/proc/self/fd").unwrap();
        let open = entries
            .flatten()
            .filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|file| file == node));
        let flags = open.map(|entry| {
            let number = entry.file_name().into_string().unwrap();
            let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap();
            let flags = told.lines().find_map(|line| line.strip_prefix("flags:"));
            i32::from_str_radix(flags.unwrap().trim(), 8).unwrap()
        });
        flags.collect()
    }
}

fn under_test(request: &ServerRequest, directories: &TreeDirectories) -> Arc<SqlUnderTest> {
    let started = sqlite().start(request, directories, Purpose::Trial);
    let engine = SqlUnderTest::new(started.unwrap(), workload(), directories.clone());
    Arc::new(engine)
}

fn behaviour() -> Behaviour {
    Behaviour {
        clients: CLIENTS as usize,
        ..Behaviour::default()
    }
}

/// Lets clients work, and looks at the engine meanwhile; twice.
fn works_and_is_put_back(on: &OnDevice, look: impl Fn(&SqlUnderTest)) {
    for verify in [Verify::Changed, Verify::Full] {
        let env: Arc<dyn Env> = RealEnv::new(1);
        let engine = under_test(&on.request, on.image.directories());
        let mut running = engine.start_clients(&env, behaviour());
        std::thread::sleep(Duration::from_millis(250));
        wait_for(&running, 20);
        block_on(running.stop()).unwrap();
        look(&engine);
        let counts = engine.counters().counts().expect("counted");
        assert!(counts.data.reads > 0, "{counts:?}");
        assert!(counts.redo.writes > 0, "{counts:?}");
        assert!(counts.redo.flushes > 0, "{counts:?}");
        block_on(engine.check(running.acknowledged())).unwrap();
        block_on(engine.stop()).unwrap();
        assert!(running.committed() > 0);
        assert!(on.image.restore(verify).unwrap().changed_blocks > 0);
        assert_eq!(on.image.restore(Verify::Full).unwrap().changed_blocks, 0);
    }
    let told = sqlite().verify(&on.request, on.image.directories());
    assert!(told.unwrap().contains("nothing wrong"));
}

#[test]
fn a_database_in_a_disk_group_works_and_is_put_back() {
    let on = OnDevice::in_group("wal");
    works_and_is_put_back(&on, |engine| {
        let counts = engine.counters().counts().expect("counted");
        assert_eq!(counts.grouped, counts.data);
        // Both copies.
        assert!(
            counts.disks.write_bytes >= 2 * counts.data.write_bytes,
            "{counts:?}"
        );
    });
}

#[test]
fn a_database_on_a_raw_device_works_and_is_put_back() {
    for journal_mode in ["wal", "delete"] {
        let Some(on) = OnDevice::new(journal_mode) else {
            return;
        };
        let kind = std::fs::symlink_metadata(on.node()).unwrap().file_type();
        assert!(kind.is_block_device());
        works_and_is_put_back(&on, |engine| {
            let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
            let flags = on.open_flags();
            // One process has it open, once for all connections.
            assert!(flags.len() == 1 && flags[0] & direct != 0, "{flags:?}");
            let counts = engine.counters().counts().expect("counted");
            assert_eq!(counts.grouped, IoCounts::default());
        });
    }
}

#[test]
fn a_damaged_page_on_a_raw_device_is_found_and_put_back() {
    use std::os::unix::fs::FileExt;
    let Some(on) = OnDevice::new("delete") else {
        return;
    };
    let device = &on.device.as_ref().unwrap().0;
    let device = std::fs::OpenOptions::new().write(true).open(device);
    let device = device.unwrap();
    // Of a table's page, by the end of the loaded rows: what it says it holds.
    for page in 100..110 {
        device.write_all_at(&[0xA5; 512], page * 4096).unwrap();
    }
    device.sync_all().unwrap();
    drop(device);
    let verify = || sqlite().verify(&on.request, on.image.directories());
    assert!(verify().is_err(), "{:?}", verify());
    on.image.restore(Verify::Full).unwrap();
    verify().unwrap();
}

#[test]
fn another_device_under_the_name_of_the_database_is_not_opened() {
    let Some(on) = OnDevice::new("wal") else {
        return;
    };
    let other = LoopDevice::new(&on.place.path().join("other"));
    let number = std::fs::metadata(&other.0).unwrap().rdev();
    std::fs::remove_file(on.node()).unwrap();
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, on.node(), FileType::BlockDevice, mode, number).unwrap();
    let opened = sqlite().start(&on.request, on.image.directories(), Purpose::Trial);
    let told = opened
        .err()
        .expect("another device stands there")
        .to_string();
    assert!(told.contains("changed since it was checked"), "{told}");
    // Nor what nobody has told of.
    let mut directories = on.image.directories().clone();
    directories.devices.clear();
    let opened = sqlite().start(&on.request, &directories, Purpose::Trial);
    let told = opened
        .err()
        .expect("a device that was not examined")
        .to_string();
    assert!(told.contains("was not examined"), "{told}");
    let bytes = std::fs::read(&other.0).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0x5A), "it was written to");
}

/// The process that is killed: works until then, and tells on its output what was acknowledged.
#[test]
#[ignore = "a process that another test starts and kills"]
fn victim() {
    let Ok(made) = std::env::var(VICTIM) else {
        return;
    };
    let made: TreeDirectories = serde_json::from_str(&made).unwrap();
    let env: Arc<dyn Env> = RealEnv::new(std::process::id().into());
    let engine = under_test(&request(&std::env::var(MODE).unwrap()), &made);
    let running = engine.start_clients(&env, behaviour());
    loop {
        let promised: Vec<u64> = running.acknowledged().iter().map(|of| of.last).collect();
        println!("acknowledged {promised:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What a victim that was started and killed had acknowledged to each client. The time until then begins with its first
/// acknowledged commit: a busy machine takes long to come that far.
fn killed(on: &OnDevice, journal_mode: &str, after: Duration) -> Vec<u64> {
    let made = serde_json::to_string(on.image.directories()).unwrap();
    let mut victim = spindle_harness::child!(victim)
        .env(VICTIM, made)
        .env(MODE, journal_mode)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(victim.stdout.take().unwrap()).lines();
    let mut acknowledged = vec![0; CLIENTS as usize];
    let (begin, begun) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // One that commits nothing, or has ended, is killed as well.
            let _ = begun.recv_timeout(PATIENCE);
            std::thread::sleep(after);
            victim.kill().unwrap();
            victim.wait().unwrap();
        });
        for line in output.map_while(Result::ok) {
            let Some(numbers) = told(&line) else {
                continue;
            };
            if numbers.iter().any(|number| *number > 0) {
                // It is heard once.
                let _ = begin.send(());
            }
            acknowledged = numbers;
        }
        drop(begin);
    });
    acknowledged
}

/// What a whole line of a victim tells; the first one stands behind the name of its test.
fn told(line: &str) -> Option<Vec<u64>> {
    let (_, list) = line.strip_suffix(']')?.split_once("acknowledged [")?;
    let numbers = list.split(", ").map(|number| number.parse().ok());
    numbers.collect()
}

/// Each client's transactions that the database has.
fn kept(connection: &mut dyn SqlConnection) -> Vec<u64> {
    let mut kept = Vec::new();
    let asked = connection.ask("select number from ledger order by id", &mut |row| {
        kept.push(row.int(0)?.unsigned_abs());
        Ok(())
    });
    asked.unwrap();
    kept
}

/// Kills it so often, and looks each time for what it had acknowledged; how much that was in all.
fn survives(on: &OnDevice, journal_mode: &str, kills: u64) -> u64 {
    let mut acknowledged_in_all = 0;
    for kill in 0..kills {
        let after = Duration::from_millis(250 + 37 * kill % 300);
        let promised = killed(on, journal_mode, after);
        acknowledged_in_all += promised.iter().sum::<u64>();
        let started = sqlite().start(&on.request, on.image.directories(), Purpose::Trial);
        let started = started.unwrap();
        let mut connection = started.connect().unwrap();
        let kept = kept(&mut *connection);
        for (client, (kept, promised)) in kept.iter().zip(&promised).enumerate() {
            assert!(
                kept >= promised,
                "{journal_mode}, kill {kill}, client {client}: {kept} of {promised}"
            );
        }
        let all: Vec<Acknowledged> = kept.iter().copied().map(Acknowledged::up_to).collect();
        workload().check(&mut *connection, &all).unwrap();
        drop(connection);
        started.stop(ServerStop::Clean).unwrap();
        sqlite()
            .verify(&on.request, on.image.directories())
            .unwrap();
        on.image.restore(Verify::Full).unwrap();
    }
    println!(
        "{journal_mode}: {kills} kills, {acknowledged_in_all} commits acknowledged before them"
    );
    acknowledged_in_all
}

fn kills() -> u64 {
    std::env::var("SPINDLE_KILLS").map_or(4, |kills| kills.parse().unwrap())
}

#[test]
fn killed_under_load_on_a_raw_device_it_keeps_what_it_acknowledged() {
    for journal_mode in ["wal", "delete"] {
        let Some(on) = OnDevice::new(journal_mode) else {
            return;
        };
        assert!(survives(&on, journal_mode, kills() / 2) > 0);
    }
}

#[test]
fn killed_under_load_in_a_disk_group_it_keeps_what_it_acknowledged() {
    for journal_mode in ["wal", "delete"] {
        let on = OnDevice::in_group(journal_mode);
        assert!(survives(&on, journal_mode, kills() / 2) > 0);
    }
}
