//! A server that a test runs as its owner would, and runs of the program beside it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use spindle_engines::sql::{Purpose, RunningServer, ServerKind, ServerRequest, ServerStop, server};
use spindle_layout::TreeDirectories;
use tempfile::TempDir;

/// What the user of these tests is let in by. Nowhere but in experiment files and ledgers may it be.
pub const PASSWORD: &str = "open-sesame-4711";
/// On a machine whose processors others take.
const PATIENCE: Duration = Duration::from_secs(240);

pub struct Scene {
    running: Arc<dyn RunningServer>,
    directories: TreeDirectories,
    /// Of the server, and of runs.
    pub place: TempDir,
}

/// What has this name somewhere below a directory.
fn below(top: &Path, name: &str) -> Option<PathBuf> {
    let mut left = vec![top.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            if entry.file_name() == name {
                return Some(entry.path());
            }
            if entry.file_type().unwrap().is_dir() {
                left.push(entry.path());
            }
        }
    }
    None
}

impl Scene {
    /// A server of this kind; `None`, and says so, when there is none.
    pub fn of(kind: ServerKind) -> Option<Scene> {
        Scene::with(kind, &[])
    }

    /// The same with settings of the server's. Those that no experiment may set stand in PostgreSQL's own file.
    pub fn with(kind: ServerKind, settings: &[(&str, &str)]) -> Option<Scene> {
        let named = settings.iter().copied();
        let (of_request, of_file): (Vec<_>, Vec<_>) =
            named.partition(|(name, value)| server(kind).check_setting(name, value).is_ok());
        let of_request = of_request.into_iter();
        let request = ServerRequest {
            settings: of_request
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            bin_dir: None,
            buffer_cache_bytes: 8 << 20,
            data_bytes: 8 << 20,
            clients: 16,
            io: None,
            database: None,
        };
        if let Err(error) = server(kind).examine(&request) {
            spindle_harness::skip(error);
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        // The server may run as another user.
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let top = place.path().join("server");
        fs::create_dir(&top).unwrap();
        let directories = TreeDirectories::within(|_| top.clone());
        directories.make().unwrap();
        server(kind).create(&request, &directories).unwrap();
        if !of_file.is_empty() {
            let file = below(&top, "postgresql.auto.conf").expect("PostgreSQL's own file");
            let lines = of_file.iter();
            let lines: String = lines
                .map(|(name, value)| format!("{name} = '{value}'\n"))
                .collect();
            let mut file = OpenOptions::new().append(true).open(file).unwrap();
            file.write_all(lines.as_bytes()).unwrap();
        }
        let running = server(kind).start(&request, &directories, Purpose::Trial);
        Some(Scene {
            running: running.unwrap(),
            directories,
            place,
        })
    }

    /// The server and its directories, for clients of the test's own.
    pub fn server(&self) -> (Arc<dyn RunningServer>, TreeDirectories) {
        (Arc::clone(&self.running), self.directories.clone())
    }

    /// The server's socket, which has this name somewhere below its directory.
    pub fn socket(&self, name: &str) -> PathBuf {
        let found = below(&self.place.path().join("server"), name);
        found.unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// Has the server do this, as whoever runs it.
    pub fn run(&self, sql: &str) {
        self.running.connect().unwrap().run(sql).unwrap();
    }

    /// PostgreSQL lets a user `lab` in by [`PASSWORD`], who may make schemas and has these `attributes`, too.
    pub fn let_lab_in(&self, attributes: &str) {
        self.run(&format!(
            "create role lab login {attributes} password '{PASSWORD}'"
        ));
        self.run("grant create on database postgres to lab");
    }

    /// The first column of an answer.
    pub fn ask(&self, sql: &str) -> Vec<String> {
        let mut answers = Vec::new();
        let mut connection = self.running.connect().unwrap();
        let asked = connection.ask(sql, &mut |row| {
            answers.push(row.text(0)?);
            Ok(())
        });
        asked.unwrap();
        answers
    }

    /// Waits until an answer has rows.
    pub fn wait_for(&self, sql: &str) {
        wait_until(&format!("in vain: {sql}"), || !self.ask(sql).is_empty());
    }

    /// As [`Scene::wait_for`], while a run goes on. One that has ended is told with its own words.
    pub fn wait_while(&self, going: Child, sql: &str) -> Child {
        going_until(going, &format!("in vain: {sql}"), || {
            !self.ask(sql).is_empty()
        })
    }

    /// What has the program do this.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        command
            .args(arguments)
            .current_dir(self.place.path())
            .env("SPINDLE_LEDGER_DIRECTORY", self.place.path().join("ledger"))
            .env("HOME", self.place.path())
            .env_remove("PGPASSWORD")
            .env_remove("MYSQL_PWD")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Has the program do this, with a password in the environment variable `LAB_PASSWORD`.
    pub fn spindle(&self, arguments: &[&str]) -> Output {
        let output = self
            .command(arguments)
            .env("LAB_PASSWORD", PASSWORD)
            .output();
        let output = output.unwrap();
        for said in [&output.stdout, &output.stderr] {
            let said = String::from_utf8_lossy(said);
            assert!(!said.contains(PASSWORD), "{said}");
        }
        output
    }

    /// Begins it.
    pub fn begin(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .env("LAB_PASSWORD", PASSWORD)
            .spawn()
            .unwrap()
    }

    /// Writes an experiment file of that name.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.place.path().join(name), text).unwrap();
    }

    pub fn result(&self, run: &str) -> Value {
        let path = self.place.path().join(run).join("result.json");
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    /// Nothing in a run's directory may hold the password.
    pub fn assert_no_password_in(&self, run: &str) {
        assert_no_password_below(&self.place.path().join(run));
    }

    /// The ledgers that are left.
    pub fn ledgers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.place.path().join("ledger")).into_iter();
        entries
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Its directory goes after it.
        let _ = self.running.stop(ServerStop::Kill);
    }
}

fn assert_no_password_below(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            assert_no_password_below(&entry.path());
            continue;
        }
        let text = fs::read(entry.path()).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(PASSWORD), "{}", entry.path().display());
    }
}

pub fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn wait_until(in_vain: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{in_vain}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until something is so while a program is at work. One that has ended is told with its own words.
pub fn going_until(mut going: Child, in_vain: &str, mut is_so: impl FnMut() -> bool) -> Child {
    let mut has_ended = false;
    wait_until(in_vain, || {
        is_so() || {
            has_ended = going.try_wait().unwrap().is_some();
            has_ended
        }
    });
    if has_ended {
        panic!(
            "it ended before: {}",
            told(&going.wait_with_output().unwrap())
        );
    }
    going
}
