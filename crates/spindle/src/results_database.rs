//! `spindle export --to`: results in PostgreSQL, many machines in one database. All is in Spindle's own schema, known
//! by its comment; nothing else of the server is touched. Each run is written in one transaction, replacing earlier
//! rows of the same run. The tables are `spindle_report::export::rows`.

use spindle_engines::sql::{Address, remote_server};
use spindle_engines::{EngineError, ErrorKind};
use spindle_report::export::rows::{ExportRows, SCHEMA, SCHEMA_VERSION};
use spindle_workload::SessionError;
use spindle_workload::sql::{SqlConnection, SqlRow, Value};

/// The comment by which the schema is known.
const MARK: &str = "results of spindle";
/// Of all that come to write, one does so at a time: the key of an advisory lock.
const LOCK: &str = "select pg_advisory_xact_lock(7310591)";
/// Others may hold what is needed, but not indefinitely.
const PATIENCE: &str = "set lock_timeout = '60s'; set standard_conforming_strings = on";

/// Why results are not kept.
#[derive(Debug, thiserror::Error)]
pub enum ResultsKeepError {
    /// The address cannot be used, or the server not be reached.
    #[error(transparent)]
    Server(#[from] EngineError),
    /// Of a name for the schema, not all characters may be used.
    #[error(
        "the schema \"{0}\" cannot be used: a name has 1 to 63 lower-case letters, digits and underscores, and begins with a letter"
    )]
    Name(String),
    /// There is one of the name, and another program's.
    #[error(
        "{address}: the schema {schema} is there, and it does not hold results of spindle: nothing was changed. Name another one: --schema NAME"
    )]
    NotOurs {
        /// The server.
        address: String,
        /// The schema.
        schema: String,
    },
    /// There is one of the name that looks like ours, and belongs to another role, which may have put anything in it.
    #[error(
        "{address}: the schema {schema} belongs to the role \"{owner}\", of which \"{user}\" is no member: nothing was \
         changed. Name another one: --schema NAME, or as an administrator: grant \"{owner}\" to \"{user}\""
    )]
    OfOther {
        /// The server.
        address: String,
        /// The schema.
        schema: String,
        /// The role that owns it.
        owner: String,
        /// The role that is connected.
        user: String,
    },
    /// Another version of this program wrote it.
    #[error(
        "{address}: the schema {schema} has version {found}, and this program writes version {SCHEMA_VERSION}: use a newer \
         version of spindle, or another schema: --schema NAME"
    )]
    Version {
        /// The server.
        address: String,
        /// The schema.
        schema: String,
        /// What was found there.
        found: i64,
    },
    /// The schema cannot be made.
    #[error(
        "{address}: the schema {schema} cannot be made: {error}. As the owner of the database: {grant}"
    )]
    Making {
        /// The server.
        address: String,
        /// The schema.
        schema: String,
        /// The server's own words.
        error: SessionError,
        /// The statement that gives the right.
        grant: String,
    },
    /// The server refused.
    #[error("{address}: {error}")]
    Refused {
        /// The server.
        address: String,
        /// Its own words.
        error: SessionError,
    },
}

impl ResultsKeepError {
    /// Whether the command line names an address or a schema that cannot be used, whatever the server holds.
    pub fn is_of_command_line(&self) -> bool {
        match self {
            Self::Name(_) => true,
            Self::Server(error) => error.kind() == ErrorKind::RefusedSetting,
            _ => false,
        }
    }
}

/// A connection to where results are kept.
pub struct ResultsDatabase {
    address: Address,
    schema: String,
    connection: Box<dyn SqlConnection>,
}

impl ResultsDatabase {
    /// Connects to a server; `password_env` names the environment variable with the password. Changes nothing yet.
    ///
    /// # Errors
    /// See [`ResultsKeepError`].
    pub fn connect(
        url: &str,
        schema: &str,
        password_env: Option<&str>,
    ) -> Result<ResultsDatabase, ResultsKeepError> {
        if !is_name(schema) {
            return Err(ResultsKeepError::Name(schema.to_owned()));
        }
        let address = Address::complete(url)?;
        let password = address.find_password(password_env)?;
        let server = remote_server(address.scheme);
        let mut connection = server.writer(&address, password.as_ref())?;
        if let Err(error) = connection.run(PATIENCE) {
            let address = address.to_string();
            return Err(ResultsKeepError::Refused { address, error });
        }
        Ok(ResultsDatabase {
            address,
            schema: schema.to_owned(),
            connection,
        })
    }

    /// Where it is, without the password.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Writes a run, replacing its earlier rows; returns whether there were any.
    ///
    /// # Errors
    /// See [`ResultsKeepError`]; nothing of the run was changed then.
    pub fn keep(&mut self, rows: &ExportRows) -> Result<bool, ResultsKeepError> {
        let kept = self.keep_in_transaction(rows);
        if kept.is_err() {
            // The first error is the one to tell.
            let _ = self.connection.rollback();
        }
        kept
    }

    fn keep_in_transaction(&mut self, rows: &ExportRows) -> Result<bool, ResultsKeepError> {
        self.begin_alone()?;
        self.find_or_make_schema()?;
        let written = self.write(rows);
        let was_there = written.map_err(|error| self.refused(error))?;
        let committed = self.connection.commit();
        committed.map_err(|error| self.refused(error))?;
        Ok(was_there)
    }

    /// Begins a transaction, alone among those that write results.
    fn begin_alone(&mut self) -> Result<(), ResultsKeepError> {
        let begun = self
            .connection
            .begin()
            .and_then(|()| self.connection.ask(LOCK, &mut |_| Ok(())));
        begun.map_err(|error| self.refused(error))
    }

    fn find_or_make_schema(&mut self) -> Result<(), ResultsKeepError> {
        let schema = self.schema.clone();
        let asked = format!(
            "select coalesce(obj_description(oid, 'pg_namespace'), ''), \
             case when pg_has_role(nspowner, 'MEMBER') then '' else pg_get_userbyid(nspowner) end, current_user::text \
             from pg_namespace where nspname = '{schema}'"
        );
        let address = self.address.to_string();
        let read = |row: &dyn SqlRow| Ok((row.text(0)?, row.text(1)?, row.text(2)?));
        match self.first(&asked, read)? {
            None => {
                let made = self.make_schema();
                return made.map_err(|error| ResultsKeepError::Making {
                    address,
                    schema,
                    error,
                    grant: format!(
                        "grant create on database \"{}\" to \"{}\"",
                        self.address.database.as_deref().unwrap_or_default(),
                        self.address.user
                    ),
                });
            }
            Some((comment, ..)) if comment != MARK => {
                return Err(ResultsKeepError::NotOurs { address, schema });
            }
            // Anyone can write a comment on their own schema, and have triggers run by any user that writes there.
            Some((_, owner, user)) if !owner.is_empty() => {
                return Err(ResultsKeepError::OfOther {
                    address,
                    schema,
                    owner,
                    user,
                });
            }
            Some(_) => {}
        }
        self.search(&schema).map_err(|error| self.refused(error))?;
        match self.first("select version from schema_version", |row| row.int(0))? {
            Some(SCHEMA_VERSION) => Ok(()),
            found => Err(ResultsKeepError::Version {
                address,
                schema,
                found: found.unwrap_or(0),
            }),
        }
    }

    fn make_schema(&mut self) -> Result<(), SessionError> {
        let schema = self.schema.clone();
        self.connection
            .run(&format!("create schema \"{schema}\""))?;
        self.connection
            .run(&format!("comment on schema \"{schema}\" is '{MARK}'"))?;
        self.search(&schema)?;
        self.connection.run(SCHEMA)
    }

    /// Names without a schema are in this one, until the transaction ends.
    fn search(&mut self, schema: &str) -> Result<(), SessionError> {
        self.connection
            .run(&format!("set local search_path = \"{schema}\""))
    }

    fn write(&mut self, rows: &ExportRows) -> Result<bool, SessionError> {
        let mut statements = vec![
            "select encode(sha256(convert_to($1::text, 'UTF8')), 'hex')".to_owned(),
            "delete from runs where run = $1::text".to_owned(),
            format!("{} on conflict do nothing", filling("machines")),
            filling("runs"),
        ];
        let (machines, runs, first) = (2, 3, statements.len());
        statements.extend(rows.tables.iter().map(|(table, _)| filling(table)));
        self.connection.prepare(&statements)?;
        let mut key = String::new();
        let facts = [Value::text(&rows.machine_facts)];
        self.connection.query(0, &facts, &mut |row| {
            key = row.text(0)?;
            Ok(())
        })?;
        let with_machine = |row: &serde_json::Value| {
            let mut row = row.clone();
            row["machine"] = key.as_str().into();
            vec![row]
        };
        self.fill(machines, &with_machine(&rows.machine))?;
        let dropped = self.connection.execute(1, &[Value::text(&rows.run)])?;
        self.fill(runs, &with_machine(&rows.of_run))?;
        for (index, (_, of_table)) in rows.tables.iter().enumerate() {
            self.fill(first + index, of_table)?;
        }
        Ok(dropped > 0)
    }

    fn fill(&mut self, statement: usize, rows: &[serde_json::Value]) -> Result<(), SessionError> {
        let text = serde_json::Value::from(rows).to_string();
        let filled = self.connection.execute(statement, &[Value::text(&text)]);
        filled.map(|_| ())
    }

    /// The first row of an answer.
    fn first<T>(
        &mut self,
        sql: &str,
        read: impl Fn(&dyn SqlRow) -> Result<T, SessionError>,
    ) -> Result<Option<T>, ResultsKeepError> {
        let mut found = None;
        let asked = self.connection.ask(sql, &mut |row| {
            if found.is_none() {
                found = Some(read(row)?);
            }
            Ok(())
        });
        asked.map_err(|error| self.refused(error))?;
        Ok(found)
    }

    fn refused(&self, error: SessionError) -> ResultsKeepError {
        ResultsKeepError::Refused {
            address: self.address.to_string(),
            error,
        }
    }
}

/// The statement that takes the rows of a table as JSON.
fn filling(table: &str) -> String {
    format!(
        "insert into {table} select * from jsonb_populate_recordset(null::{table}, $1::text::jsonb)"
    )
}

/// Whether a schema may be called so, without quotation marks.
fn is_name(name: &str) -> bool {
    let is_in = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_lowercase());
    begins && name.len() <= 63 && name.bytes().all(is_in) && !name.starts_with("pg_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_schemas_need_no_quotation_marks() {
        for name in ["spindle", "lab_2"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(64);
        for name in ["", "Lab", "2lab", "a b", "a;drop", "pg_lab", "ä", &long] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn only_postgres_keeps_results() {
        let refused = ResultsDatabase::connect("mysql://ann@db1/lab", "spindle", None);
        let error = refused.err().unwrap().to_string();
        assert!(error.contains("PostgreSQL only"), "{error}");
        let refused = ResultsDatabase::connect("postgres://ann@db1/lab", "a b", None);
        assert!(matches!(refused.err(), Some(ResultsKeepError::Name(_))));
    }
}
