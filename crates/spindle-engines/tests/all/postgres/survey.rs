//! A look at an existing server: it tells what is there and what is missing, and changes nothing.

use spindle_engines::promise::Keeps;
use spindle_engines::sql::survey::ServerSurvey;
use spindle_engines::sql::{Address, Password, RunningServer, Scheme, ServerStop, remote_server};

use super::home::{Home, is_installed, postgres, request, start};

/// All that a server knows of what is in it, but for statistics.
const CATALOGUE: &str = "select md5(string_agg(line, '|' order by line)) from (\
    select 'class ' || concat_ws(' ', oid, relname, relnamespace, relowner, relfilenode, relkind, relacl::text) from pg_class \
    union all select 'namespace ' || concat_ws(' ', oid, nspname, nspowner, nspacl::text) from pg_namespace \
    union all select 'role ' || t::text from pg_authid t \
    union all select 'member ' || t::text from pg_auth_members t \
    union all select 'database ' || concat_ws(' ', oid, datname, datdba, datacl::text) from pg_database \
    union all select 'procedure ' || concat_ws(' ', oid, proname, proacl::text) from pg_proc \
    union all select 'setting ' || concat_ws(' ', setdatabase, setrole, setconfig::text) from pg_db_role_setting \
    union all select 'value ' || concat_ws(' ', name, setting) from pg_settings where source <> 'session' \
    union all select 'extension ' || concat_ws(' ', extname, extversion) from pg_extension) as known (line)";

fn catalogue(running: &dyn RunningServer) -> String {
    let mut known = String::new();
    let mut connection = running.connect().unwrap();
    let asked = connection.ask(CATALOGUE, &mut |row| {
        known = row.text(0)?;
        Ok(())
    });
    asked.unwrap();
    known
}

fn missing(survey: &ServerSurvey) -> Vec<&str> {
    let missing = survey.rights.iter();
    missing
        .filter_map(|right| right.missing.as_deref())
        .collect()
}

#[test]
fn a_survey_tells_what_is_there_and_changes_nothing() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[("synchronous_commit", "off")]);
    let (directories, running) = home.started(&request);
    let run = |sql: &str| running.connect().unwrap().run(sql).unwrap();
    run("create role ann login password 'open-sesame-4711'");
    run("create table wide as select repeat('x', 500) as c from generate_series(1, 2000)");
    let socket = directories.data.join("run").display().to_string();
    let url = format!("postgres://ann@localhost/postgres?host={socket}");
    let address = Address::parse(&url).unwrap();
    let password = Password::new("open-sesame-4711");
    let look = || {
        let found = remote_server(Scheme::Postgres).survey(&address, Some(&password));
        found.unwrap()
    };
    let before = catalogue(&*running);
    let survey = look();
    assert_eq!(catalogue(&*running), before);
    assert!(survey.version.starts_with("PostgreSQL"), "{survey:?}");
    assert_eq!(survey.encryption, None);
    assert!(
        survey.settings.contains(&"fsync = on".to_owned()),
        "{survey:?}"
    );
    assert_eq!(survey.promise.keeps, Keeps::AllButTheLast);
    assert!(
        survey
            .extensions
            .iter()
            .any(|name| name.starts_with("plpgsql"))
    );
    assert_eq!(survey.cache_bytes, Some(8 << 20));
    assert!(
        survey
            .databases
            .iter()
            .any(|found| found.name == "postgres" && found.bytes > Some(1 << 20))
    );
    assert_eq!(survey.tables[0].name, "public.wide");
    assert!(survey.round_trip.p50_us <= survey.round_trip.p99_us);
    assert!(survey.clock.is_some());
    let wanted = [
        "grant create on database \"postgres\" to \"ann\"",
        "alter role \"ann\" createdb",
        "grant pg_monitor to \"ann\"",
    ];
    assert_eq!(missing(&survey), wanted);
    for grant in wanted {
        run(grant);
    }
    assert_ne!(catalogue(&*running), before, "a change is seen");
    assert_eq!(missing(&look()), Vec::<&str>::new());
    running.stop(ServerStop::Kill).unwrap();
}

#[test]
fn a_reader_changes_nothing_and_leaves_no_setting_to_its_session() {
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let directories = home.directories("read");
    postgres().create(&request, &directories).unwrap();
    let running = start(&request, &directories);
    let run = |sql: &str| running.connect().unwrap().run(sql).unwrap();
    run("create role ann login password 'open-sesame-4711'");
    run("create table open (c int); grant all on open to ann");
    let socket = directories.data.join("run").display().to_string();
    let url = format!("postgres://ann@localhost/postgres?host={socket}");
    let address = Address::parse(&url).unwrap();
    let password = Password::new("open-sesame-4711");
    let reader = remote_server(Scheme::Postgres).reader(&address, Some(&password));
    let mut reader = reader.unwrap();
    let mut ask = |sql: &str| {
        let mut told = String::new();
        let asked = reader.ask(sql, &mut |row| {
            told = row.text(0)?;
            Ok(())
        });
        asked.map(|()| told).map_err(|error| error.to_string())
    };
    let refused = ask("insert into open values (1) returning c::text").unwrap_err();
    assert!(refused.contains("read-only transaction"), "{refused}");
    // After a mistake, too.
    assert!(ask("select no_such_column").is_err());
    assert_eq!(
        ask("select current_setting('transaction_read_only')").unwrap(),
        "on"
    );
    assert_eq!(
        ask("select current_setting('default_transaction_read_only')").unwrap(),
        "off"
    );
    assert_eq!(ask("select current_setting('lock_timeout')").unwrap(), "5s");
    running.stop(ServerStop::Clean).unwrap();
}
