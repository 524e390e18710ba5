//! Copies of MariaDB's data directories.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use spindle_engines::sql::{Server, ServerKind, server};
use spindle_text::load_file::{Dump, DumpForm, LoadFile};

use super::{Original, answers_of_copy, as_user, dump_at, load, place_of, refused, request, run};
use crate::sql_workloads::{databases, empty};

const USER: &str = "mysql";
const QUESTION: &str = "select name from items where id < 100 order by 1";
const TABLES: &str = "create database shop; use shop; create table items (id integer primary key, name varchar(20)); \
                      insert into items values (1, 'one'), (2, 'two');";

/// Servers of a test, in a directory that goes with it.
struct Scene {
    place: tempfile::TempDir,
}

impl Scene {
    fn of() -> Option<Scene> {
        let mut there = databases().into_iter();
        there.find(|(kind, _)| *kind == ServerKind::MariaDb)?;
        if request(mariadb()).bin_dir.is_some() {
            spindle_harness::skip("files are copied of the MariaDB of PATH");
            return None;
        }
        let place = place_of(USER);
        Some(Scene { place })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A program of MariaDB's. A server that starts removes what other servers have in the same temporary directory.
    fn program(&self, name: &str) -> Command {
        let mut command = as_user(USER, name);
        command.env("TMPDIR", self.place.path());
        command
    }

    fn made(&self) -> PathBuf {
        let data = self.path("original");
        let mut install = self.program("mariadb-install-db");
        install.args([
            "--no-defaults",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        ]);
        run(install.arg(format!("--datadir={}", data.display())));
        data
    }

    fn start(&self, data: &Path) -> Original {
        let mut command = self.program("mariadbd");
        command.args([
            "--no-defaults",
            "--skip-networking",
            "--innodb-undo-tablespaces=2",
        ]);
        command.arg(format!("--datadir={}", data.display()));
        command.arg(format!("--socket={}", self.path("socket").display()));
        let is_ready = || self.client("select 1").output().unwrap().status.success();
        Original::start(command, is_ready)
    }

    fn client(&self, sql: &str) -> Command {
        let mut client = self.program("mariadb");
        client.args(["--no-defaults", "-uroot", "-e", sql]);
        client.arg(format!("--socket={}", self.path("socket").display()));
        client
    }
}

fn mariadb() -> &'static dyn Server {
    server(ServerKind::MariaDb)
}

fn copy(path: &Path) -> Dump {
    dump_at(path, DumpForm::MariaDbFiles)
}

#[test]
fn a_stopped_server_is_copied_and_stays_as_it_is() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = Scene::of() else { return };
    let data = scene.made();
    let running = scene.start(&data);
    run(&mut scene.client(TABLES));
    let torn = scene.path("torn");
    run(Command::new("cp").arg("-a").arg(&data).arg(&torn));
    let told = refused(mariadb(), &request(mariadb()), &copy(&data));
    assert!(told.contains("works on it: stop that server"), "{told}");
    // Nobody may come in but by Spindle's own password, and not as anybody who is there.
    run(&mut scene.client("drop user root@localhost; flush privileges"));
    running.stop(Signal::TERM);
    fs::write(data.join("my.cnf"), "[mysqld]\nlog_error = /x\n").unwrap();
    let whole = [scene.place.path()];
    let found = answers_of_copy(
        mariadb(),
        &request(mariadb()),
        &copy(&data),
        &whole,
        QUESTION,
    );
    assert_eq!(found, ["one", "two"]);
    // Its files do not fit together, which the first start shows.
    let (_made, directories) = empty();
    let told = load(mariadb(), &request(mariadb()), &directories, &copy(&torn)).unwrap_err();
    let told = told.to_string();
    assert!(told.contains("was not stopped in order"), "{told}");
    what_is_not_whole_is_refused(&data);
}

fn what_is_not_whole_is_refused(data: &Path) {
    let prepared = "backup_type = log-applied\n";
    for (name, put, wanted) in [
        (
            "ib_logfile0",
            &b"0123456789012345MariaDB 10.4.2\0\0this is older...."[..],
            "of MariaDB 10.4.2",
        ),
        (
            "xtrabackup_checkpoints",
            b"backup_type = full-backuped\n",
            "mariadb-backup --prepare --target-dir=",
        ),
        (
            "mariadb_backup_checkpoints",
            b"backup_type = incremental\n",
            "is not prepared",
        ),
    ] {
        let path = data.join(name);
        let before = fs::read(&path);
        fs::write(&path, put).unwrap();
        let told = refused(mariadb(), &request(mariadb()), &copy(data));
        assert!(told.contains(wanted), "{told}");
        match before {
            Ok(before) => fs::write(&path, before).unwrap(),
            Err(_) => fs::write(&path, prepared).unwrap(),
        }
    }
    mariadb()
        .examine_dump(&request(mariadb()), &copy(data))
        .unwrap();
    let read = || {
        LoadFile::read("copy", data, 0)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let elsewhere = data.join("shop/far.isl");
    fs::write(&elsewhere, "/x/far.ibd").unwrap();
    assert!(
        read()
            .unwrap_err()
            .contains("outside of the data directory")
    );
    fs::remove_file(&elsewhere).unwrap();
    symlink("/", data.join("linked")).unwrap();
    assert!(
        read()
            .unwrap_err()
            .contains("linked: it is a symbolic link")
    );
    fs::remove_file(data.join("linked")).unwrap();
    fs::write(data.join("mysql.ibd"), "").unwrap();
    assert!(read().unwrap_err().contains("it is of MySQL"));
}

#[test]
fn a_prepared_backup_is_copied() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = Scene::of() else { return };
    if Command::new("mariadb-backup")
        .arg("--version")
        .output()
        .is_err()
    {
        spindle_harness::skip("mariadb-backup is not installed");
        return;
    }
    let data = scene.made();
    let running = scene.start(&data);
    run(&mut scene.client(TABLES));
    let backup = scene.path("backup");
    let tool = |how: &str| {
        let mut tool = scene.program("mariadb-backup");
        tool.args(["--no-defaults", how, "--user=root"]);
        tool.arg(format!("--target-dir={}", backup.display()));
        tool
    };
    let mut backed_up = tool("--backup");
    backed_up.arg(format!("--socket={}", scene.path("socket").display()));
    run(backed_up.arg(format!("--datadir={}", data.display())));
    running.stop(Signal::TERM);
    let told = refused(mariadb(), &request(mariadb()), &copy(&backup));
    assert!(
        told.contains("mariadb-backup --prepare --target-dir="),
        "{told}"
    );
    run(&mut tool("--prepare"));
    let found = answers_of_copy(
        mariadb(),
        &request(mariadb()),
        &copy(&backup),
        &[&backup],
        QUESTION,
    );
    assert_eq!(found, ["one", "two"]);
}
