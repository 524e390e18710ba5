//! A place for a test: a directory, the ledgers in it, its own disk, and what the machine has that belongs to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use spindle_layout::guard::{Guard, Looked, Refusal, Want};
use spindle_layout::spec::{DeviceSpec, FileSystemSpec, LayoutKind, Preparation};
use spindle_layout::tool::{Tools, find};
use spindle_layout::{Facts, LayoutSpec, Ledger, Provision, ProvisionPlan};
use spindle_system::SystemTree;

pub const MIB: u64 = 1 << 20;

/// The name of the run in every test: each has ledgers of its own.
pub const RUN: &str = "test-20260101-120000";

/// Whether this test can run here; if not, says so in one line.
pub fn can_run(test: &str, tools: &[&str]) -> bool {
    if !rustix::process::geteuid().is_root() {
        spindle_harness::skip(format_args!("{test} needs root"));
        return false;
    }
    let missing: Vec<&&str> = tools.iter().filter(|tool| find(tool).is_none()).collect();
    if !missing.is_empty() {
        spindle_harness::skip(format_args!("{test} needs {missing:?}"));
    }
    missing.is_empty()
}

/// A directory for one test.
pub struct Scene {
    directory: tempfile::TempDir,
}

impl Scene {
    pub fn new() -> Scene {
        let within = env!("CARGO_TARGET_TMPDIR");
        Scene {
            directory: tempfile::Builder::new()
                .prefix("provision")
                .tempdir_in(within)
                .unwrap(),
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn file(&self, name: &str, size_bytes: u64) -> DeviceSpec {
        DeviceSpec::File {
            path: self.path().join(name),
            size_bytes,
        }
    }

    pub fn ledgers(&self) -> PathBuf {
        self.path().join("ledgers")
    }

    pub fn carry_out(&self, specs: &[LayoutSpec]) -> Provision {
        carry_out_in(self.path(), specs).0
    }

    /// What the machine has that has to do with this directory, one line each: files, mounts, loop devices.
    pub fn state(&self) -> BTreeSet<String> {
        let mut state = BTreeSet::new();
        files_below(self.path(), &mut state);
        let here = self.path().canonicalize().unwrap();
        let here = here.to_str().unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        state.extend(
            mounts
                .lines()
                .filter(|line| line.contains(here))
                .map(str::to_owned),
        );
        for entry in fs::read_dir("/sys/block").unwrap() {
            let device = entry.unwrap().path();
            let backing = fs::read_to_string(device.join("loop/backing_file")).unwrap_or_default();
            if backing.starts_with(here) {
                let partitions = fs::read_dir(&device).unwrap();
                let partitions = partitions
                    .filter(|entry| entry.as_ref().unwrap().path().join("partition").exists());
                state.insert(format!(
                    "{} {} {}",
                    device.display(),
                    backing.trim(),
                    partitions.count()
                ));
            }
        }
        state
    }
}

impl Scene {
    /// Removes the device nodes that ledgers name.
    fn remove_nodes(&self) {
        for ledger in fs::read_dir(self.ledgers()).into_iter().flatten().flatten() {
            let text = fs::read_to_string(ledger.path()).unwrap_or_default();
            let named = text
                .split('"')
                .filter(|word| word.starts_with("/dev/spindle/"));
            for directory in named {
                let _ = fs::remove_dir_all(directory);
            }
        }
        let _ = fs::remove_dir("/dev/spindle");
    }
}

impl Drop for Scene {
    /// Lets go what a test left that failed, or that moved things away from under a ledger.
    fn drop(&mut self) {
        self.remove_nodes();
        let below = |path: &Path| path.starts_with(self.path());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let points = mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(4))
            .map(Path::new);
        for point in points.filter(|point| below(point)) {
            let _ = Command::new("umount").arg(point).status();
        }
        for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
            let backing = fs::read_to_string(entry.path().join("loop/backing_file"));
            if backing.is_ok_and(|file| below(Path::new(&file))) {
                let device = Path::new("/dev").join(entry.file_name());
                let _ = Command::new("losetup").arg("--detach").arg(device).status();
            }
        }
    }
}

fn files_below(directory: &Path, state: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            files_below(&path, state);
            // The directory of ledgers stays.
            if path.ends_with("ledgers") {
                continue;
            }
        }
        state.insert(path.display().to_string());
    }
}

pub fn plan_in(directory: &Path, specs: &[LayoutSpec]) -> ProvisionPlan {
    let mut facts = Facts::gather(specs, &SystemTree::default());
    facts.mounts_under = directory.join("mounts");
    ProvisionPlan::of(specs, &facts, RUN)
}

pub fn carry_out_in(directory: &Path, specs: &[LayoutSpec]) -> (Provision, Arc<Ledger>) {
    let tree = SystemTree::default();
    let ledger = Arc::new(Ledger::begin(&directory.join("ledgers"), RUN, &tree).unwrap());
    let plan = plan_in(directory, specs);
    let provision = Provision::carry_out(&plan, Arc::clone(&ledger), &tree, &mut |_| {}).unwrap();
    (provision, ledger)
}

pub fn layout(name: &str, devices: Vec<DeviceSpec>, kind: LayoutKind) -> LayoutSpec {
    LayoutSpec {
        name: name.to_owned(),
        devices,
        volume: None,
        kind,
        share: None,
        erase: Vec::new(),
        preparation: Preparation::default(),
        delay: None,
    }
}

pub fn file_system(type_name: &str, mkfs: &[&str], mount: &str) -> LayoutKind {
    LayoutKind::FileSystem(FileSystemSpec {
        type_name: type_name.to_owned(),
        mkfs_options: mkfs.iter().map(ToString::to_string).collect(),
        mount_options: mount.to_owned(),
    })
}

/// A block device that was there before Spindle came: a loop device that can have partitions.
pub struct Disk {
    pub path: PathBuf,
}

impl Disk {
    /// Attaches a new file of zeros in `scene`.
    pub fn new(scene: &Scene, name: &str, size_bytes: u64) -> Disk {
        let file = scene.path().join(name);
        fs::File::create(&file)
            .unwrap()
            .set_len(size_bytes)
            .unwrap();
        let path = tool(
            "losetup",
            &["--find", "--show", "--partscan", file.to_str().unwrap()],
        );
        Disk { path: path.into() }
    }

    pub fn spec(&self) -> DeviceSpec {
        DeviceSpec::Existing(self.path.clone())
    }

    pub fn look(&self, erase: &[String]) -> Result<Looked, Refusal> {
        let want = Want {
            path: &self.path,
            least_bytes: 0,
            erase,
        };
        Guard::new(&SystemTree::default(), &Tools::new()).look(&want)
    }
}

impl Drop for Disk {
    /// Another test's tool may have it open for a moment: the kernel detaches it when the last one lets it go.
    fn drop(&mut self) {
        let backing = || {
            let name = self.path.file_name()?.to_str()?;
            fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).ok()
        };
        let ours = backing();
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.path)
            .status();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while ours.is_some() && backing() == ours && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Runs a tool that must succeed. Others look at every loop device now and then, and have it open for a moment.
pub fn tool(program: &str, arguments: &[&str]) -> String {
    let mut patience = 600;
    loop {
        let output = Command::new(find(program).unwrap())
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return String::from_utf8_lossy(&output.stdout).trim().to_owned();
        }
        patience -= 1;
        let is_taken = said.contains("in use") || said.contains("busy");
        assert!(is_taken && patience > 0, "{program} {arguments:?}: {said}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
