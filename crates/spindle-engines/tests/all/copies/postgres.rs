//! Copies of PostgreSQL's clusters.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use spindle_engines::sql::{Server, ServerKind, ServerRequest, server};
use spindle_text::load_file::{Dump, DumpForm, LoadFile};

use super::{
    Original, answers_of_copy, as_user, dump_at, load, place_of, refused, request, run, state_of,
};
use crate::sql_workloads::{databases, empty};

const USER: &str = "postgres";
/// What is in a tablespace, and what is not.
const QUESTION: &str =
    "select name from items where id < 100 union all select name from spaced order by 1";
const TABLES: &str = "create table items (id integer primary key, name text);
    insert into items values (1, 'one'), (2, 'two');
    create table spaced as select 'in space'::text as name;";

/// For a server of a test: nobody needs what it keeps, but its standby.
const QUIETLY: [&str; 6] = [
    "-c",
    "listen_addresses=",
    "-c",
    "fsync=off",
    "-c",
    "wal_keep_size=1GB",
];

/// Clusters of a test, in a directory that goes with it.
struct Scene {
    place: tempfile::TempDir,
    bin_dir: PathBuf,
}

impl Scene {
    fn of() -> Option<Scene> {
        let mut there = databases().into_iter();
        there.find(|(kind, _)| *kind == ServerKind::Postgres)?;
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter();
        let mut directories: Vec<PathBuf> = versions
            .flatten()
            .flatten()
            .map(|version| version.path().join("bin"))
            .filter(|directory| directory.join("pg_basebackup").is_file())
            .collect();
        directories.sort();
        Some(Scene {
            place: place_of(USER),
            bin_dir: directories.pop()?,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn tool(&self, name: &str) -> Command {
        as_user(USER, self.bin_dir.join(name))
    }

    fn made(&self, name: &str, arguments: &[&str]) -> PathBuf {
        let data = self.path(name);
        let mut initdb = self.tool("initdb");
        run(initdb
            .args(["--no-sync", "-U", "bob", "-D"])
            .arg(&data)
            .args(arguments));
        data
    }

    fn start(&self, data: &Path) -> Original {
        let mut command = self.tool("postgres");
        command.arg("-D").arg(data).args(QUIETLY).arg("-c");
        command.arg(format!(
            "unix_socket_directories={}",
            self.place.path().display()
        ));
        let is_ready = || {
            let mut psql = self.psql("template1");
            psql.args(["-c", "select 1"])
                .output()
                .unwrap()
                .status
                .success()
        };
        Original::start(command, is_ready)
    }

    fn psql(&self, database: &str) -> Command {
        let mut psql = self.tool("psql");
        psql.args([
            "-qAtX",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "bob",
            "-d",
            database,
            "-h",
        ]);
        psql.arg(self.place.path());
        psql
    }

    fn sql(&self, database: &str, text: &str) -> String {
        run(self.psql(database).args(["-c", text]))
    }

    /// A cluster at work whose database `shop` has a tablespace.
    fn with_shop(&self, arguments: &[&str]) -> (PathBuf, Original) {
        let data = self.made("original", arguments);
        let space = self.path("space");
        run(as_user(USER, "mkdir").arg(&space));
        let running = self.start(&data);
        self.sql("postgres", "create database shop");
        self.sql(
            "postgres",
            &format!("create tablespace s location '{}'", space.display()),
        );
        self.sql("shop", TABLES);
        self.sql("shop", "alter table spaced set tablespace s");
        (data, running)
    }

    fn base_backup(&self, name: &str, more: &[&str]) -> PathBuf {
        let backup = self.path(name);
        let mut tool = self.tool("pg_basebackup");
        tool.args(["-U", "bob", "--no-sync", "--checkpoint=fast", "-h"]);
        tool.arg(self.place.path()).arg("-D").arg(&backup);
        let (space, copy) = (self.path("space"), self.path(&format!("{name}-space")));
        tool.arg(format!(
            "--tablespace-mapping={}={}",
            space.display(),
            copy.display()
        ));
        run(tool.args(more));
        backup
    }
}

fn postgres() -> &'static dyn Server {
    server(ServerKind::Postgres)
}

fn asked(settings: &[(&str, &str)]) -> ServerRequest {
    let mut asked = request(postgres());
    let settings = settings.iter();
    asked.settings = settings
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    asked
}

fn copy(path: &Path) -> Dump {
    dump_at(path, DumpForm::PostgresFiles)
}

#[test]
fn a_stopped_cluster_is_copied_with_its_tablespaces_and_stays_as_it_is() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = Scene::of() else { return };
    let (data, running) = scene.with_shop(&["--data-checksums", "--wal-segsize=1"]);
    // A role of Spindle's own name, what no server here has, and places that are none of Spindle's.
    scene.sql("postgres", "create role spindle nologin");
    let elsewhere = scene.path("elsewhere");
    run(as_user(USER, "mkdir").arg(&elsewhere));
    let told = refused(postgres(), &asked(&[]), &copy(&data));
    assert!(told.contains("works on it: stop that server"), "{told}");
    running.stop(Signal::INT);
    let away = elsewhere.display();
    let settings = format!(
        "archive_mode = on\narchive_command = 'touch {away}/archived'\nlogging_collector = on\nlog_directory = '{away}'\n\
         external_pid_file = '{away}/pid'\nshared_preload_libraries = 'not_here'\nport = 1\n"
    );
    fs::write(data.join("postgresql.auto.conf"), settings).unwrap();
    fs::write(
        data.join("postgresql.conf"),
        "include 'not here'\nssl = on\n",
    )
    .unwrap();
    // Its log lies elsewhere, as initdb --waldir has it.
    let log = scene.path("log");
    fs::rename(data.join("pg_wal"), &log).unwrap();
    symlink(&log, data.join("pg_wal")).unwrap();
    let whole = [scene.place.path()];
    let found = answers_of_copy(postgres(), &asked(&[]), &copy(&data), &whole, QUESTION);
    assert_eq!(found, ["in space", "one", "two"]);
    let brought = postgres().examine_dump(&asked(&[]), &copy(&data)).unwrap();
    assert_eq!(brought, ["data_checksums = on", "wal_segment_size = 1MB"]);
    for (name, value) in [("data_checksums", "off"), ("wal_segment_size", "16MB")] {
        let told = refused(postgres(), &asked(&[(name, value)]), &copy(&data));
        assert!(told.contains("leave the setting out"), "{told}");
    }
    what_is_not_whole_is_refused(&scene, &data);
}

fn what_is_not_whole_is_refused(scene: &Scene, data: &Path) {
    // The tablespace of a copy is that of the original, which worked on.
    let file = scene.path("space").join("later");
    let of_version = fs::read_dir(scene.path("space")).unwrap().next().unwrap();
    fs::write(of_version.unwrap().path().join("later"), "").unwrap();
    let told = refused(postgres(), &asked(&[]), &copy(data));
    assert!(
        told.contains("written after the cluster was stopped"),
        "{told} {file:?}"
    );
    for (name, put, wanted) in [
        (
            "PG_VERSION",
            "14\n",
            "of PostgreSQL 14, and the server is PostgreSQL",
        ),
        ("PG_VERSION", "\n", "of PostgreSQL , and"),
        (
            "backup_label",
            "START\n",
            "does not say where its recovery begins",
        ),
        ("tablespace_map", "1 /x\n", "tablespaces are not unpacked"),
        ("pg_twophase/00000001", "", "prepared transaction"),
    ] {
        let path = data.join(name);
        let before = fs::read(&path);
        fs::write(&path, put).unwrap();
        if name.starts_with("pg_twophase") {
            // The tablespace is looked at first.
            fs::write(
                data.join("global/pg_control"),
                fs::read(data.join("global/pg_control")).unwrap(),
            )
            .unwrap();
        }
        let told = refused(postgres(), &asked(&[]), &copy(data));
        assert!(told.contains(wanted), "{told}");
        match before {
            Ok(before) => fs::write(&path, before).unwrap(),
            Err(_) => fs::remove_file(&path).unwrap(),
        }
    }
    let read = || {
        LoadFile::read("copy", data, 0)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let strange = data.join("base/strange");
    run(Command::new("mkfifo").arg(&strange));
    assert!(read().unwrap_err().contains("base/strange: it is a pipe"));
    fs::remove_file(&strange).unwrap();
    symlink("/", &strange).unwrap();
    assert!(
        read()
            .unwrap_err()
            .contains("base/strange: it is a symbolic link")
    );
    fs::remove_file(&strange).unwrap();
    let before = copy(data);
    fs::write(data.join("base/more"), "x").unwrap();
    let told = refused(postgres(), &asked(&[]), &before);
    assert!(
        told.contains("has changed since the experiment was read"),
        "{told}"
    );
}

#[test]
fn a_base_backup_and_a_stopped_standby_are_recovered() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = Scene::of() else { return };
    let (data, running) = scene.with_shop(&[]);
    let backup = scene.base_backup("backup", &["--wal-method=stream"]);
    let standby = scene.base_backup("standby", &["--wal-method=stream", "--write-recovery-conf"]);
    let without = scene.base_backup("without", &["--wal-method=none"]);
    let told = refused(postgres(), &asked(&[]), &copy(&without));
    assert!(
        told.contains("from which it recovers") && told.contains("--wal-method=stream"),
        "{told}"
    );
    let packed = scene.base_backup("packed", &["--format=tar"]);
    let told = LoadFile::read("packed", &packed, 0)
        .unwrap_err()
        .to_string();
    assert!(told.contains("pg_basebackup --format=plain"), "{told}");
    // Its files do not fit together: the server is killed, and has been at work.
    running.stop(Signal::QUIT);
    let told = refused(postgres(), &asked(&[]), &copy(&data));
    assert!(
        told.contains("\"in production\"") && told.contains("no backup_label"),
        "{told}"
    );
    // Nothing but its own log recovers it.
    let whole = [scene.place.path()];
    let found = answers_of_copy(postgres(), &asked(&[]), &copy(&backup), &whole, QUESTION);
    assert_eq!(found, ["in space", "one", "two"]);
    let primary = scene.start(&data);
    scene.sql("shop", "insert into items values (3, 'three')");
    let follower = follow(&scene, &standby);
    primary.stop(Signal::INT);
    follower.stop(Signal::INT);
    let found = answers_of_copy(postgres(), &asked(&[]), &copy(&standby), &whole, QUESTION);
    assert_eq!(found, ["in space", "one", "three", "two"]);
}

/// Starts a standby beside its primary, and waits until it has what that has.
fn follow(scene: &Scene, standby: &Path) -> Original {
    let sockets = scene.path("sockets");
    run(as_user(USER, "mkdir").arg(&sockets));
    let mut command = scene.tool("postgres");
    command.arg("-D").arg(standby).args(QUIETLY).arg("-c");
    command.arg(format!("unix_socket_directories={}", sockets.display()));
    Original::start(command, || {
        let mut psql = scene.tool("psql");
        psql.args([
            "-qAtX",
            "-U",
            "bob",
            "-d",
            "shop",
            "-c",
            "select count(*) from items",
            "-h",
        ]);
        psql.arg(&sockets)
            .output()
            .unwrap()
            .stdout
            .starts_with(b"3")
    })
}

#[test]
fn a_tablespace_that_came_during_a_backup_is_not_made_again() {
    let Some(scene) = Scene::of() else { return };
    let data = scene.made("original", &[]);
    let (space, backup) = (scene.path("space"), scene.path("backup"));
    run(as_user(USER, "mkdir").arg(&space));
    let running = scene.start(&data);
    scene.sql("postgres", TABLES);
    let (from, to) = (data.display(), backup.display());
    let script = format!(
        "select pg_backup_start('x', true);\n\\! cp -a {from} {to}; rm {to}/postmaster.pid\n\
         create tablespace s location '{}';\n\\o {to}/backup_label\nselect labelfile from pg_backup_stop(false);\n\\o\n\
         select pg_switch_wal();\n\\! cp {from}/pg_wal/0* {to}/pg_wal\n",
        space.display()
    );
    let file = scene.path("script.sql");
    fs::write(&file, script).unwrap();
    run(scene.psql("postgres").arg("-f").arg(&file));
    running.stop(Signal::INT);
    let before = state_of(scene.place.path());
    let (_made, directories) = empty();
    let told = load(postgres(), &asked(&[]), &directories, &copy(&backup)).unwrap_err();
    let told = told.to_string();
    assert!(
        told.contains("a tablespace was made while the backup was"),
        "{told}"
    );
    assert!(before == state_of(scene.place.path()));
}

#[test]
fn of_several_databases_one_is_named() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = Scene::of() else { return };
    let data = scene.made("original", &[]);
    let running = scene.start(&data);
    for name in ["shop", "stock"] {
        scene.sql("postgres", &format!("create database {name}"));
        scene.sql(name, TABLES);
    }
    scene.sql("stock", "update items set name = 'stocked'");
    running.stop(Signal::INT);
    let (_made, directories) = empty();
    let told = load(postgres(), &asked(&[]), &directories, &copy(&data)).unwrap_err();
    let told = told.to_string();
    assert!(
        told.contains("several databases, shop, stock, and one is measured"),
        "{told}"
    );
    let mut named = asked(&[]);
    named.database = Some("stock".to_owned());
    let found = answers_of_copy(postgres(), &named, &copy(&data), &[&data], QUESTION);
    assert_eq!(found, ["in space", "stocked", "stocked"]);
}
