//! Databases loaded from dumps that the real tools have made: what was dumped is there again, in the order of `load`,
//! and what a tool says when it fails is told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use spindle_engines::EngineError;
use spindle_engines::sql::{Server, ServerKind, ServerStop, create_and_load};
use spindle_text::load_file::{Dump, DumpForm, LoadFile};
use spindle_text::section::TextFile;
use spindle_workload::sql::{Dialect, SqlWorkload};
use spindle_workload::{MadeFor, ScriptSettings, WorkloadSettings};

use crate::sql_workloads::{Loaded, databases, empty, request};

/// Rows with values that each form of dump writes differently.
const ROWS: &str = "create table items (id integer not null primary key, name varchar(100), stock integer);
insert into items values (1, 'plain', 10), (2, 'a''b\\\\\\\\c', 20), (3, 'Grün\tund\nzwei; Zeilen', null);
create index items_stock on items (stock);
create view in_stock as select id, stock from items where stock > 0;\n";
/// Bodies with semicolons.
const OF_POSTGRES: &str = "create function twice(n integer) returns integer language plpgsql as $$
begin return 2 * n; end $$;\n";
const OF_MARIADB: &str = "create function twice(n integer) returns integer deterministic
begin return 2 * n\\; end;
create trigger never_less before update on items for each row
begin if new.stock < 0 then set new.stock = 0\\; end if\\; end;\n";
/// Asked of the database that was dumped and of the one that is loaded.
const QUESTIONS: [&str; 4] = [
    "select id, name, stock from items where id < 100 order by id",
    "select sum(stock) from in_stock where id < 100",
    "select length(name) from items where id < 100 order by id",
    "select count(*) from items where id < 100",
];

/// The tables of a test, with what a dialect alone has.
fn schema(kind: ServerKind) -> String {
    match kind {
        ServerKind::Postgres => format!("{ROWS}{OF_POSTGRES}"),
        ServerKind::MariaDb => format!("{ROWS}{OF_MARIADB}"),
        ServerKind::Sqlite => ROWS.to_owned(),
    }
}

fn sql(name: &str, text: &str) -> TextFile {
    TextFile {
        name: name.to_owned(),
        weight: 1,
        text: text.to_owned(),
    }
}

fn workload(dialect: Dialect, load: Vec<LoadFile>) -> Arc<dyn SqlWorkload> {
    let settings = ScriptSettings {
        scripts: vec![sql("look.sql", "select stock from items where id = 1;")],
        load,
        check: vec![sql("check.sql", "select count(*) from items;")],
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

fn made(kind: ServerKind, server: &dyn Server) -> Loaded {
    let load = LoadFile::Text(sql("schema.sql", &schema(kind)));
    Loaded::with(server, &*workload(server.dialect(), vec![load]))
}

fn answers(loaded: &Loaded) -> Vec<String> {
    let mut connection = loaded.server.connect().unwrap();
    let mut answers = Vec::new();
    for question in QUESTIONS {
        let asked = connection.ask(question, &mut |row| {
            let values: Vec<_> = (0..row.columns()).map(|at| row.value(at)).collect();
            answers.push(format!("{values:?}"));
            Ok(())
        });
        asked.unwrap();
    }
    answers
}

/// What a load takes at a path, of this form.
pub fn dump_at(path: &Path, form: DumpForm) -> Dump {
    let name = path.file_name().unwrap().to_str().unwrap();
    match LoadFile::read(name, path, 1 << 20).unwrap() {
        LoadFile::Dump(dump) => {
            assert_eq!(dump.form, form, "{name}");
            dump
        }
        LoadFile::Text(_) => panic!("{name} is taken for SQL"),
    }
}

/// Loads a dump and then SQL, and looks whether both are there.
fn is_loaded(server: &dyn Server, dump: Dump, before: &[String]) {
    server.examine_dump(&request(server), &dump).unwrap();
    let name = dump.name.clone();
    let more = sql(
        "more.sql",
        "insert into items (id, stock) select 100, count(*) from items;",
    );
    let load = vec![LoadFile::Dump(dump), LoadFile::Text(more)];
    let loaded = Loaded::with(server, &*workload(server.dialect(), load));
    assert_eq!(answers(&loaded), before, "{name}");
    let mut connection = loaded.server.connect().unwrap();
    let mut counted = Vec::new();
    let asked = connection.ask("select stock from items where id = 100", &mut |row| {
        counted.push(row.int(0)?);
        Ok(())
    });
    asked.unwrap();
    assert_eq!(counted, [3], "{name}: SQL comes after the dump");
    drop(connection);
    loaded.server.stop(ServerStop::Kill).unwrap();
}

fn not_loaded(server: &dyn Server, load: Vec<LoadFile>) -> EngineError {
    let (_place, directories) = empty();
    let workload = workload(server.dialect(), load);
    let loaded = create_and_load(
        server,
        &request(server),
        &directories,
        &*workload,
        &Arc::default(),
    );
    loaded.expect_err("it cannot be loaded")
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

fn installed(kind: ServerKind) -> Option<&'static dyn Server> {
    let mut databases = databases().into_iter();
    databases
        .find(|(of, _)| *of == kind)
        .map(|(_, server)| server)
}

/// `pg_dump` of the newest version that is installed here, as the server is.
fn pg_dump() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter();
    let programs = versions
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin/pg_dump"));
    let newest = programs.filter(|program| program.is_file()).max();
    newest.unwrap_or_else(|| "pg_dump".into())
}

#[test]
fn every_form_of_a_dump_of_postgres_is_restored() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(server) = installed(ServerKind::Postgres) else {
        return;
    };
    let original = made(ServerKind::Postgres, server);
    let before = answers(&original);
    let place = tempfile::tempdir().unwrap();
    let data = &original.directories.data;
    let password = std::fs::read_to_string(data.join("password")).unwrap();
    let mut dumps = Vec::new();
    for (name, form) in [
        ("plain", DumpForm::PostgresPlain),
        ("custom", DumpForm::PostgresCustom),
        ("directory", DumpForm::PostgresDirectory),
        ("tar", DumpForm::PostgresTar),
    ] {
        let path = place.path().join(name);
        run(Command::new(pg_dump())
            .env("PGPASSWORD", password.trim())
            .args(["-U", "spindle", "--exclude-table=spindle_answers"])
            .arg(format!("--format={name}"))
            .arg("-h")
            .arg(data.join("run"))
            .arg("-f")
            .arg(&path)
            .arg("postgres"));
        dumps.push(dump_at(&path, form));
    }
    original.server.stop(ServerStop::Kill).unwrap();
    let text = std::fs::read_to_string(&dumps[0].path).unwrap();
    assert!(text.contains("FROM stdin;"), "rows in the way of psql");
    for dump in &dumps {
        is_loaded(server, dump.clone(), &before);
    }
    postgres_tells_what_fails(server, &dumps, place.path(), &text);
}

fn postgres_tells_what_fails(server: &dyn Server, dumps: &[Dump], place: &Path, text: &str) {
    let told = not_loaded(server, vec![LoadFile::Dump(dumps[0].clone()); 2]).to_string();
    assert!(
        told.contains("restoring plain: the tool ended with"),
        "{told}"
    );
    assert!(told.contains("psql:plain:"), "{told}");
    assert!(told.contains("already exists"), "{told}");
    let told = not_loaded(server, vec![LoadFile::Dump(dumps[1].clone()); 2]).to_string();
    assert!(told.contains("pg_restore: error:"), "{told}");
    // Found before anything is made.
    let cut = place.join("cut");
    let bytes = std::fs::read(&dumps[1].path).unwrap();
    std::fs::write(&cut, &bytes[..200]).unwrap();
    let cut = dump_at(&cut, DumpForm::PostgresCustom);
    let told = server.examine_dump(&request(server), &cut).unwrap_err();
    let told = told.to_string();
    assert!(
        told.contains("cut cannot be read by pg_restore: "),
        "{told}"
    );
    // Of a role that is not here.
    let owned = text.replace("OWNER TO spindle", "OWNER TO ann");
    let path = place.join("owned");
    std::fs::write(&path, owned).unwrap();
    let owned = LoadFile::Dump(dump_at(&path, DumpForm::PostgresPlain));
    let told = not_loaded(server, vec![owned]).to_string();
    assert!(told.contains("role \"ann\" does not exist"), "{told}");
    assert!(told.contains("pg_dump --no-owner"), "{told}");
}

#[test]
fn a_dump_of_mariadb_is_restored_with_its_procedures() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(server) = installed(ServerKind::MariaDb) else {
        return;
    };
    let original = made(ServerKind::MariaDb, server);
    let before = answers(&original);
    let place = tempfile::tempdir().unwrap();
    let mut connection = original.server.connect().unwrap();
    for statement in [
        "create user ann@localhost identified by 'secret'",
        "grant all on *.* to ann@localhost",
        "drop table spindle_answers",
    ] {
        connection.run(statement).unwrap();
    }
    let mut database = String::new();
    let asked = connection.ask("select database()", &mut |row| {
        database = row.text(0)?;
        Ok(())
    });
    asked.unwrap();
    drop(connection);
    let path = place.path().join("shop.sql");
    let bin_dir = request(server).bin_dir;
    let tool = bin_dir.map_or("mariadb-dump".into(), |bin_dir| bin_dir.join("mysqldump"));
    run(Command::new(tool)
        .args(["--no-defaults", "-uann", "-psecret", "--routines"])
        .arg("--socket=spindle.sock")
        .arg(format!("--result-file={}", path.display()))
        .arg(database)
        .current_dir(&original.directories.data));
    original.server.stop(ServerStop::Kill).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("DELIMITER ;;"), "{text}");
    is_loaded(server, dump_at(&path, DumpForm::MariaDb), &before);
    std::fs::write(&path, text.replace("INSERT INTO", "INSERT INTO nowhere.")).unwrap();
    let broken = LoadFile::Dump(dump_at(&path, DumpForm::MariaDb));
    let told = not_loaded(server, vec![broken]).to_string();
    assert!(
        told.contains("restoring shop.sql: the tool ended with"),
        "{told}"
    );
    assert!(
        told.contains("ERROR 1") && told.contains("at line"),
        "{told}"
    );
}

#[test]
fn a_file_of_sqlite_is_copied_and_stays_as_it_is() {
    let Some(server) = installed(ServerKind::Sqlite) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("shop.db");
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch(ROWS).unwrap();
    drop(file);
    let bytes = std::fs::read(&path).unwrap();
    let original = made(ServerKind::Sqlite, server);
    let before = answers(&original);
    original.server.stop(ServerStop::Kill).unwrap();
    is_loaded(server, dump_at(&path, DumpForm::Sqlite), &before);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    let large = place.path().join("large.db");
    let file = rusqlite::Connection::open(&large).unwrap();
    file.execute_batch("pragma page_size = 8192; create table items (id integer, stock integer);")
        .unwrap();
    drop(file);
    let large = dump_at(&large, DumpForm::Sqlite);
    let told = server.examine_dump(&request(server), &large).unwrap_err();
    let told = told.to_string();
    assert!(told.contains("set page_size = 8192"), "{told}");
    std::fs::write(&path, &bytes[..5000]).unwrap();
    let cut = dump_at(&path, DumpForm::Sqlite);
    let told = not_loaded(server, vec![LoadFile::Dump(cut)]).to_string();
    assert!(told.contains("shop.db"), "{told}");
}
