//! What an existing server knows of everything but Spindle's schema, or its databases, stays as it is, whenever a run
//! is killed.

use std::time::Duration;

use spindle_engines::sql::ServerKind;

use super::scene::{PASSWORD, Scene};

/// All that a server knows outside Spindle's schemas, but for statistics. Long values of Spindle's tables lie elsewhere
/// while its schemas are there, in tables named so.
const CATALOGUE: &str = "with ours as (select oid from pg_namespace where nspname like 'spindle\\_%') \
    select md5(string_agg(line, '|' order by line)) from (\
    select 'class ' || concat_ws(' ', oid, relname, relnamespace, relowner, relfilenode, relkind, relacl::text) \
        from pg_class where relnamespace not in (select oid from ours) and relname not like 'pg\\_toast\\_%' \
    union all select 'namespace ' || concat_ws(' ', oid, nspname, nspowner, nspacl::text) \
        from pg_namespace where oid not in (select oid from ours) \
    union all select 'role ' || t::text from pg_authid t \
    union all select 'member ' || t::text from pg_auth_members t \
    union all select 'database ' || concat_ws(' ', oid, datname, datdba, datconnlimit, datacl::text) \
        from pg_database where datname not like 'spindle\\_%' \
    union all select 'procedure ' || concat_ws(' ', oid, proname, proacl::text) \
        from pg_proc where pronamespace not in (select oid from ours) \
    union all select 'rule ' || concat_ws(' ', setdatabase, setrole, setconfig::text) from pg_db_role_setting \
    union all select 'setting ' || concat_ws(' ', name, setting) from pg_settings where source <> 'session' \
    union all select 'extension ' || concat_ws(' ', extname, extversion) from pg_extension \
    union all select 'row ' || n::text from theirs.rows) as known (line)";
const SCHEMAS: &str = "select nspname from pg_namespace where nspname like 'spindle%'";
const TABLES: &str = "select tablename from pg_tables where schemaname like 'spindle%'";
const AT_WORK: &str = "select 'yes' from pg_stat_activity where application_name like 'spindle\\_%' and query like 'update%'";
const DATABASES: &str = "select datname from pg_database where datname like 'spindle\\_%'";
const COPYING: &str = "select 'yes' from pg_stat_activity where state = 'active' and query like 'create database%template spindle%'";

#[test]
fn killed_runs_change_nothing_outside_their_schema() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    killed_runs(
        "grant create on database postgres to lab",
        SCHEMAS,
        &[(SCHEMAS, "30s"), (TABLES, "30s"), (AT_WORK, "30s")],
    );
}

#[test]
fn killed_runs_change_nothing_outside_their_databases() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    // Copies are made before each trial: of many short ones, one is seen in the end.
    let stages = [(DATABASES, "30s"), (COPYING, "100ms"), (AT_WORK, "30s")];
    killed_runs("alter role lab createdb", DATABASES, &stages);
}

/// Kills runs of a user with this right, and looks for what `left` asks for. `stages`: what is waited for before a run
/// is killed, and how long its trials are.
fn killed_runs(right: &str, left: &str, stages: &[(&str, &str)]) {
    let Some(scene) = Scene::of(ServerKind::Postgres) else {
        return;
    };
    scene.run(&format!("create role lab login password '{PASSWORD}'"));
    scene.run(right);
    scene.run("create schema theirs");
    scene.run("create table theirs.rows as select generate_series(1, 1000) as n");
    let socket = scene.socket(".s.PGSQL.5432");
    let directory = socket.parent().unwrap().display().to_string();
    scene.write(
        "killed.toml",
        &format!(
            "[database]\nengine = \"postgres\"\nsize = \"8MiB\"\n[workload]\nclients = 2\n\
             [plan]\nquiet = \"0s\"\nwarmup = \"100ms\"\nrounds = 100\n\
             [[layout]]\nname = \"there\"\ndatabase = {{ url = \"postgres://lab@localhost/postgres?host={directory}\", \
             password_env = \"LAB_PASSWORD\" }}\n"
        ),
    );
    let before = scene.ask(CATALOGUE);
    for kill in (0..20).step_by(spindle_harness::stride(7)) {
        let out = format!("killed-{kill}");
        let (stage, measure) = stages[kill % stages.len()];
        let measure = format!("plan.measure={measure}");
        let run = ["run", "killed.toml", "--out", &out, "--set", &measure];
        let mut run = scene.wait_while(scene.begin(&run), stage);
        std::thread::sleep(Duration::from_millis(13 * kill as u64));
        run.kill().unwrap();
        run.wait().unwrap();
        assert_eq!(scene.ask(CATALOGUE), before, "after kill {kill}");
        let clean = scene.spindle(&["clean"]);
        assert!(clean.status.success(), "kill {kill}");
        assert_eq!(scene.ask(left), [""; 0], "kill {kill}");
        assert_eq!(scene.ask(CATALOGUE), before, "cleaned after kill {kill}");
        assert!(scene.ledgers().is_empty(), "kill {kill}");
    }
    // A change is seen.
    for change in [
        "create table theirs.more (n int)",
        "update theirs.rows set n = 1001 where n = 1",
        "alter role lab set work_mem = '1MB'",
        "create database theirs",
    ] {
        let before = scene.ask(CATALOGUE);
        scene.run(change);
        assert_ne!(scene.ask(CATALOGUE), before, "{change}");
    }
}
