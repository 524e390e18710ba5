//! Servers that load `junk` by a loop of their own, which commits as it goes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_engines::sql::{Purpose, ServerKind, create_and_load, server};
use spindle_workload::sql::SqlConnection;

use super::embedded::junk;
use super::{C6, C7, CACHE_BYTES, COMMIT_EVERY, Loader};
use crate::private_server::Private;

/// About what a row takes in table and keys, with room to spare.
const ROW_BYTES: u64 = 500;

struct Server {
    kind: ServerKind,
    private: Private,
}

/// The servers that are installed, each with its table.
pub fn found(directory: &Path, rows: u64) -> Vec<Box<dyn Loader>> {
    let of = |kind| Some(Box::new(Server::start(kind, directory, rows)?) as Box<dyn Loader>);
    let kinds = [ServerKind::Postgres, ServerKind::MariaDb];
    kinds.into_iter().filter_map(of).collect()
}

impl Server {
    fn start(kind: ServerKind, directory: &Path, rows: u64) -> Option<Server> {
        let request = Private::request(kind, 1, CACHE_BYTES, rows * ROW_BYTES)?;
        // Beside the bench's directory: the server's user must get there.
        let home = directory.with_file_name(format!("junk-{kind}"));
        std::fs::create_dir(&home).expect("a directory for the server");
        let directories = Private::directories(&home);
        let no_rows = junk(rows);
        let made = create_and_load(
            server(kind),
            &request,
            &directories,
            &no_rows,
            &Arc::default(),
        );
        made.expect("a database with the table");
        let private = Private::start(kind, &request, directories, Purpose::Trial);
        let server = Server { kind, private };
        if kind == ServerKind::MariaDb {
            server.connect().run(&mariadb()).expect("the procedure");
        }
        Some(server)
    }

    fn connect(&self) -> Box<dyn SqlConnection> {
        self.private.running.connect().expect("a connection")
    }
}

impl Loader for Server {
    fn name(&self) -> &'static str {
        match self.kind {
            ServerKind::Postgres => "PostgreSQL, PL/pgSQL loop",
            _ => "MariaDB, procedure",
        }
    }

    fn goal(&self) -> f64 {
        match self.kind {
            ServerKind::Postgres => 1.5,
            _ => 2.0,
        }
    }

    fn load(&mut self, rows: u64) -> Duration {
        let mut connection = self.connect();
        let (empty, load) = match self.kind {
            ServerKind::Postgres => (vec!["truncate junk", "checkpoint"], postgres(rows)),
            _ => (vec!["truncate junk"], format!("call load_junk({rows})")),
        };
        for statement in empty {
            connection.run(statement).expect("an empty table");
        }
        let began = Instant::now();
        connection.run(&load).expect("it is loaded");
        let took = began.elapsed();
        let mut found = 0;
        let asked = connection.ask("select count(*) from junk", &mut |row| {
            found = row.int(0)?;
            Ok(())
        });
        asked.expect("the rows are counted");
        assert_eq!(found as u64, rows);
        took
    }
}

fn postgres(rows: u64) -> String {
    format!(
        "do $body$ begin for n in 1 .. {rows} loop \
         insert into junk values (n, 0, n, 0, current_date, '{C6}', '{C7}'); \
         if n % {COMMIT_EVERY} = 0 then commit; end if; end loop; end $body$"
    )
}

fn mariadb() -> String {
    format!(
        "create procedure load_junk(row_count bigint) begin declare n bigint default 1; \
         start transaction; while n <= row_count do \
         insert into junk values (n, 0, n, 0, current_date, '{C6}', '{C7}'); \
         if n % {COMMIT_EVERY} = 0 then commit; start transaction; end if; \
         set n = n + 1; end while; commit; end"
    )
}
