//! Databases made of the files of stopped servers and of backups: what was there is there again, what cannot be copied
//! is refused in words, and the original stays as it is to the last bit.

mod mariadb;
mod postgres;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use spindle_engines::EngineError;
use spindle_engines::sql::{
    Purpose, RunningServer, Server, ServerRequest, ServerStop, create_and_load,
};
use spindle_layout::{GoldenTree, TreeDirectories, TreeImage, Verify};
use spindle_text::load_file::{Dump, LoadFile};
use spindle_text::section::TextFile;
use spindle_workload::sql::{Dialect, SqlWorkload};
use spindle_workload::{MadeFor, ScriptSettings, WorkloadSettings};

use crate::dumps::dump_at;
use crate::sql_workloads::{empty, request};

const PATIENCE: Duration = Duration::from_secs(60);

/// A directory that a server's own user gets to.
fn place_of(user: &str) -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    if rustix::process::geteuid().is_root() {
        run(Command::new("chown").arg(user).arg(place.path()));
    }
    place
}

/// A program, as a server's own user where root runs the test; it ends with the test at the latest.
fn as_user(user: &str, program: impl Into<PathBuf>) -> Command {
    let mut command = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
    }
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program.into());
    command.current_dir("/").stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A server that a test runs as its owner would; it goes with the test.
struct Original(Child);

impl Original {
    fn start(mut command: Command, mut is_ready: impl FnMut() -> bool) -> Original {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Original(command.spawn().unwrap());
        let began = Instant::now();
        while !is_ready() {
            let ended = server.0.try_wait().unwrap();
            assert!(ended.is_none() && began.elapsed() < PATIENCE, "{ended:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn stop(mut self, signal: Signal) {
        self.signal(signal);
        self.0.wait().unwrap();
    }

    fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(self.0.id() as i32).unwrap();
        kill_process(id, signal).unwrap();
    }
}

impl Drop for Original {
    fn drop(&mut self) {
        if self.0.try_wait().unwrap().is_none() {
            self.signal(Signal::QUIT);
            self.0.wait().unwrap();
        }
    }
}

/// All that is below a directory: names, owners, modes, times, and what files hold.
fn state_of(directory: &Path) -> Vec<String> {
    let mut state = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        let found = std::fs::symlink_metadata(&path).unwrap();
        let held = match () {
            () if found.is_symlink() => std::fs::read_link(&path).unwrap().display().to_string(),
            () if found.is_file() => {
                let sum =
                    ring::digest::digest(&ring::digest::SHA256, &std::fs::read(&path).unwrap());
                format!("{sum:?}")
            }
            () => String::new(),
        };
        state.push(format!(
            "{} {:o} {}:{} {} {} {held}",
            path.display(),
            found.mode(),
            found.uid(),
            found.gid(),
            found.mtime_nsec(),
            found.mtime(),
        ));
        if found.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            left.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    state.sort();
    state
}

fn text(name: &str, text: &str) -> TextFile {
    TextFile {
        name: name.to_owned(),
        weight: 1,
        text: text.to_owned(),
    }
}

/// Scripts on a copy, with SQL that is carried out after it.
fn workload(dialect: Dialect, dump: Dump) -> Arc<dyn SqlWorkload> {
    let settings = ScriptSettings {
        scripts: vec![text("look.sql", "select name from items where id = 1;")],
        load: vec![
            LoadFile::Dump(dump),
            LoadFile::Text(text("more.sql", "insert into items values (100, 'more');")),
        ],
        check: vec![text("check.sql", "select count(*) from items;")],
        define: BTreeMap::new(),
    };
    let made_for = MadeFor {
        data_bytes: 1 << 20,
        block_bytes: 8 << 10,
        clients: 1,
        seed: 7,
        dialect: Some(dialect),
    };
    assert_eq!(settings.check(&made_for), []);
    settings.make(&made_for).in_sql(7)
}

/// What is told of a copy that is refused before anything is made.
fn refused(server: &dyn Server, request: &ServerRequest, dump: &Dump) -> String {
    let refused = server.examine_dump(request, dump);
    refused.expect_err("it cannot be copied").to_string()
}

fn load(
    server: &dyn Server,
    request: &ServerRequest,
    directories: &TreeDirectories,
    dump: &Dump,
) -> Result<(), EngineError> {
    let workload = workload(server.dialect(), dump.clone());
    create_and_load(server, request, directories, &*workload, &Arc::default())
}

/// The first column of an answer.
fn answer(running: &dyn RunningServer, question: &str) -> Vec<String> {
    let mut connection = running.connect().unwrap();
    let mut answers = Vec::new();
    let asked = connection.ask(question, &mut |row| {
        answers.push(row.text(0)?);
        Ok(())
    });
    asked.unwrap();
    answers
}

/// Makes a database of a copy, then changes an image of it and puts that back; what it answers to the questions each
/// time. Nothing of the originals changes.
fn answers_of_copy(
    server: &dyn Server,
    request: &ServerRequest,
    dump: &Dump,
    originals: &[&Path],
    question: &str,
) -> Vec<String> {
    let states = || -> Vec<_> { originals.iter().map(|place| state_of(place)).collect() };
    let before = states();
    server.examine_dump(request, dump).unwrap();
    let (_made, directories) = empty();
    load(server, request, &directories, dump).unwrap();
    let golden = GoldenTree::seal(directories, &Arc::default()).unwrap();
    let (_image, directories) = empty();
    let image = TreeImage::provision(&golden, directories).unwrap();
    let workload = workload(server.dialect(), dump.clone());
    let mut answers = Vec::new();
    for _ in 0..2 {
        let running = server
            .start(request, image.directories(), Purpose::Trial)
            .unwrap();
        let mut connection = running.connect().unwrap();
        workload.check(&mut *connection, &[]).unwrap();
        answers.push(answer(&*running, question));
        connection.run("delete from items where id > 1").unwrap();
        workload.check(&mut *connection, &[]).unwrap_err();
        drop(connection);
        running.stop(ServerStop::Kill).unwrap();
        image.restore(Verify::Changed).unwrap();
    }
    assert_eq!(answers[0], answers[1], "it is put back");
    let after = states();
    assert!(before == after, "an original has changed");
    answers.remove(0)
}
