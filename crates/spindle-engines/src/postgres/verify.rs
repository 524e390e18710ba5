//! PostgreSQL's own checkers: amcheck, which compares tables with their indexes and looks at every row's place, and
//! pg_checksums, which looks at every block of a cluster that is stopped
//! (https://www.postgresql.org/docs/current/amcheck.html).

use spindle_layout::TreeDirectories;
use spindle_workload::sql::SqlConnection;

use super::Postgres;
use super::cluster::Cluster;
use super::programs::Programs;
use crate::EngineError;
use crate::sql::{Purpose, RunningServer, Server, ServerRequest, ServerStop};

/// Tables and indexes of the workload and of the server itself. Temporary ones are their session's own.
const INDEXES: &str = "select count(*), count(bt_index_check(index => c.oid, heapallindexed => true)::text) from pg_class c \
     join pg_am a on a.oid = c.relam join pg_index i on i.indexrelid = c.oid \
     where a.amname = 'btree' and c.relkind = 'i' and c.relpersistence <> 't' and i.indisready and i.indisvalid";
const TABLES: &str = "select c.relname, h.blkno, h.msg from pg_class c, \
     lateral verify_heapam(relation => c.oid) h where c.relkind in ('r', 'm') and c.relpersistence <> 't'";
/// Since version 14.
const TABLES_SINCE: u32 = 14;

/// Looks through a cluster: recovers it if it must be, has amcheck look at it, stops it, and has pg_checksums look.
///
/// # Errors
/// `Failed`: what was found, or that it could not be looked at.
pub(super) fn verify(
    postgres: &Postgres,
    request: &ServerRequest,
    directories: &TreeDirectories,
) -> Result<String, EngineError> {
    let programs = Programs::find(request)?;
    let running = postgres.start(request, directories, Purpose::Trial)?;
    let looked = look(&*running, &programs);
    let (mut found, has_checksums) = match looked {
        Ok(looked) => looked,
        Err(error) => {
            // The first error is the one to tell.
            let _ = running.stop(ServerStop::Kill);
            return Err(error);
        }
    };
    running.stop(ServerStop::Clean)?;
    let mut looked_at = !found.is_empty();
    if has_checksums && !programs.has("pg_checksums") {
        found.push("pg_checksums is not installed, so checksums were not looked at".to_owned());
    } else if has_checksums {
        let cluster = Cluster::of(directories)?;
        let mut checksums = programs.command("pg_checksums");
        checksums.args(["--check", "-D"]).arg(cluster.data());
        programs.text_of(&mut checksums)?;
        found.push("pg_checksums found no bad block".to_owned());
        looked_at = true;
    }
    match looked_at {
        true => Ok(found.join("; ")),
        false => Err(EngineError::failed(
            "looking through the cluster",
            "this PostgreSQL has neither amcheck nor pg_checksums with checksums in the blocks",
        )),
    }
}

/// What amcheck found to be right, and whether blocks have checksums.
fn look(
    running: &dyn RunningServer,
    programs: &Programs,
) -> Result<(Vec<String>, bool), EngineError> {
    let mut connection = running.connect()?;
    let connection = &mut *connection;
    let one = |connection: &mut dyn SqlConnection, sql: &str| {
        let mut answer = 0;
        connection.ask(sql, &mut |row| {
            answer = row.int(0)?;
            Ok(())
        })?;
        Ok::<i64, EngineError>(answer)
    };
    let checksums = "select current_setting('data_checksums') = 'on'";
    let has_checksums = one(connection, checksums)? != 0;
    let amcheck = "select count(*) from pg_available_extensions where name = 'amcheck'";
    let mut found = Vec::new();
    if one(connection, amcheck)? > 0 {
        // Rolled back: the database is left as it was.
        connection.begin()?;
        connection.run("create extension amcheck")?;
        let indexes = one(connection, INDEXES)?;
        if programs.major >= TABLES_SINCE {
            let mut wrong = None;
            connection.ask(TABLES, &mut |row| {
                if wrong.is_none() {
                    wrong = Some(format!(
                        "table {}, block {}: {}",
                        row.text(0)?,
                        row.int(1)?,
                        row.text(2)?
                    ));
                }
                Ok(())
            })?;
            if let Some(wrong) = wrong {
                return Err(EngineError::failed("amcheck", wrong));
            }
        }
        connection.rollback()?;
        found.push(format!(
            "amcheck found nothing wrong in the tables and {indexes} indexes"
        ));
    }
    Ok((found, has_checksums))
}
