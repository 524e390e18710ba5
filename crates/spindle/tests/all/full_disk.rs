//! A disk that fills up beneath a server in the middle of a trial: the error is told, the trial is marked as failed, no
//! server lives on, and the run goes on when there is room. On small file systems on loop devices, as root; without
//! root, or without a server, these tests say so and do nothing.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use spindle_engines::sql::{ServerKind, ServerRequest, server};

/// What the fullness leaves free: far less than the rows take that are inserted.
const LEFT_FREE_BYTES: u64 = 2 << 20;

fn experiment(engine: &str, settings: &str) -> String {
    format!(
        r#"
name = "full"
[database]
engine = "{engine}"
buffer_cache = "16MiB"
settings = {settings}
[workload]
kind = "junk"
clients = 2
rows = 60000
[plan]
quiet = "0s"
rounds = 1
[[layout]]
name = "small"
devices = [{{ file = "small.img", size = "450MiB" }}]
filesystem = "ext4"
"#
    )
}

struct Scene {
    place: tempfile::TempDir,
}

impl Scene {
    /// `None` where it cannot be used, which is said.
    fn new(kind: ServerKind, experiment: &str) -> Option<Scene> {
        if !rustix::process::geteuid().is_root() {
            spindle_harness::skip("a small file system needs root");
            return None;
        }
        let request = ServerRequest {
            settings: Default::default(),
            bin_dir: None,
            buffer_cache_bytes: 16 << 20,
            data_bytes: 8 << 20,
            clients: 1,
            io: None,
            database: None,
        };
        if let Err(error) = server(kind).examine(&request) {
            spindle_harness::skip(error);
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(place.path().join("experiment.toml"), experiment).unwrap();
        Some(Scene { place })
    }

    fn spindle(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        command
            .args(arguments)
            .current_dir(self.place.path())
            .env("SPINDLE_LEDGER_DIRECTORY", self.place.path().join("ledger"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The loop device on a file of this place.
    fn device(&self) -> Option<String> {
        let mut devices = fs::read_dir("/sys/block").unwrap().flatten();
        let found = devices.find(|device| {
            let file = fs::read_to_string(device.path().join("loop/backing_file"));
            file.is_ok_and(|file| file.starts_with(self.place.path().to_str().unwrap()))
        })?;
        Some(format!("/dev/{}", found.file_name().to_str().unwrap()))
    }

    /// Where the layout is mounted.
    fn mounted_at(&self) -> Option<PathBuf> {
        // Tools are given their own node, which keeps the device's name.
        let device = self.device()?;
        let name = Path::new(&device).file_name()?;
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut mounts = mounts.lines().map(|line| line.split(' '));
        let is_it = |source: &str| Path::new(source).file_name() == Some(name);
        let found = mounts.find_map(|mut words| words.next().is_some_and(is_it).then_some(words));
        found?.next().map(PathBuf::from)
    }

    fn journal(&self) -> String {
        fs::read_to_string(self.place.path().join("out/journal.jsonl")).unwrap_or_default()
    }

    fn result(&self) -> Value {
        let result = fs::read_to_string(self.place.path().join("out/result.json")).unwrap();
        serde_json::from_str(&result).unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind either.
        let _ = self.spindle(&["clean"]).output();
    }
}

/// Processes that work below a directory.
fn workers(directory: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let works_in = processes.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
    works_in.filter(|path| path.starts_with(directory)).count()
}

/// Whether a server below a directory takes connections: its socket is there.
fn is_open(directory: &Path) -> bool {
    let mut entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.any(|entry| {
        let kind = entry.file_type();
        kind.is_ok_and(|kind| kind.is_socket() || kind.is_dir() && is_open(&entry.path()))
    })
}

/// Takes all but a little of a file system's free space, beside a server that may take some of it at the same time.
fn fill(mount: &Path) {
    let file = fs::File::create(mount.join("filler")).unwrap();
    loop {
        let free = rustix::fs::statvfs(mount).unwrap();
        let bytes = (free.f_bfree * free.f_frsize).saturating_sub(LEFT_FREE_BYTES);
        let end = file.metadata().unwrap().len();
        // Half of it, for the file system needs some of it itself.
        let piece = (bytes / 2).next_multiple_of(1 << 20);
        let flags = rustix::fs::FallocateFlags::empty();
        if bytes == 0 || rustix::fs::fallocate(&file, flags, end, piece).is_err() {
            break;
        }
    }
}

/// The disk fills up while the server starts, or when clients work.
fn a_full_disk_fails_the_trial_and_no_more(kind: ServerKind, experiment: &str, is_started: bool) {
    let Some(scene) = Scene::new(kind, experiment) else {
        return;
    };
    let mut run = scene
        .spindle(&["run", "experiment.toml", "--out", "out"])
        .spawn()
        .unwrap();
    let began = Instant::now();
    let mount = loop {
        let mount = scene.mounted_at();
        let is_served = mount
            .as_ref()
            .is_some_and(|mount| workers(mount) > 0 && (!is_started || is_open(mount)));
        if is_served && scene.journal().contains("trial_started") {
            break mount.unwrap();
        }
        assert!(run.try_wait().unwrap().is_none(), "{}", scene.journal());
        assert!(began.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(2));
    };
    if is_started {
        std::thread::sleep(Duration::from_millis(100));
    }
    fill(&mount);
    let ended = run.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    // No case was measured.
    assert_eq!(ended.status.code(), Some(3), "{told}");
    let case = scene.result()["cases"][0].clone();
    assert_eq!(case["status"], "failed", "{case:#}");
    let reason = case["reason"].as_str().unwrap();
    println!("{reason}");
    let is_clear = [
        "No space left on device",
        "is full",
        "disk full",
        "out of disk space",
    ]
    .iter()
    .any(|words| reason.contains(words));
    assert!(is_clear, "{reason}");
    assert_eq!(workers(&mount), 0);
    assert_eq!(scene.device(), None, "{told}");

    let resumed = scene.spindle(&["resume", "out"]).output().unwrap();
    let told = String::from_utf8_lossy(&resumed.stderr).into_owned();
    assert!(resumed.status.success(), "{told}");
    assert_eq!(scene.result()["cases"][0]["status"], "measured", "{told}");
    assert_eq!(scene.device(), None, "{told}");
}

#[test]
fn a_disk_that_is_full_when_mariadb_starts() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let text = experiment("mariadb", r#"{ innodb_log_file_size = "8M" }"#);
    a_full_disk_fails_the_trial_and_no_more(ServerKind::MariaDb, &text, false);
}

#[test]
fn a_disk_that_fills_up_while_postgresql_works() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let settings = r#"{ max_wal_size = "32MB", min_wal_size = "32MB" }"#;
    let text = experiment("postgres", settings);
    a_full_disk_fails_the_trial_and_no_more(ServerKind::Postgres, &text, true);
}
