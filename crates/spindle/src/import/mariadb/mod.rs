//! What MariaDB and MySQL tell: the statements that `performance_schema` has counted, and of tables what
//! `information_schema` knows. Values come from a `histogram` where there is one, else from `rows`. The server is asked
//! in transactions that may do nothing else, outside of the database, so that it does not count these as its load.

mod histogram;
mod rows;

use std::collections::BTreeMap;
use std::rc::Rc;

use spindle_engines::sql::{Address, Reader};
use spindle_workload::sql::Dialect;
use spindle_workload::{Complaint, SessionError};

use super::column::{ImportedColumn, ValueKind};
use super::error::ImportError;
use super::mix::{Counted, StatementForm};
use super::own_names::without_own;
use super::server::{CountingServer, texts};
use super::statement::TEXT_BYTES_MAX;
use super::table::{ImportedTable, Known};
use rows::Sample;

const DIGESTS: &str = "performance_schema.events_statements_summary_by_digest";
const PREPARED: &str = "performance_schema.prepared_statements_instances";
/// Why MariaDB does not tell which prepared statements were executed.
const ENDED: &str = "MariaDB counts prepared statements apart, and those of open sessions only: import while those of the \
                     load are open";
const NOT_COUNTED: &str = "MariaDB counts prepared statements apart, and does not do so here: as an administrator: update \
                           performance_schema.setup_consumers set enabled = 'YES' where name = \
                           'events_statements_current'; then let the load run for a while";

/// A database of a server.
pub struct MariaDbSource {
    connection: Box<dyn Reader>,
    database: String,
    is_mariadb: bool,
    /// By the names of their tables.
    indexes: BTreeMap<String, Indexes>,
    samples: BTreeMap<String, Rc<Sample>>,
}

/// The indexes of a table, by the places of its columns.
#[derive(Debug, Clone, Default)]
struct Indexes {
    /// The columns of the primary key, or of another unique one.
    key: Vec<usize>,
    /// Those that an index begins with, and how many different values they have.
    first: BTreeMap<usize, f64>,
}

impl MariaDbSource {
    /// The database of an address.
    ///
    /// # Errors
    /// There is none, or the user does not see it.
    pub fn new(
        mut connection: Box<dyn Reader>,
        address: &Address,
    ) -> Result<MariaDbSource, ImportError> {
        let named = address.database.clone();
        let database = named.ok_or_else(|| ImportError::NoDatabase(Box::new(address.clone())))?;
        let asked = format!(
            "select schema_name from information_schema.schemata where schema_name = {}",
            text(&database)
        );
        if texts(&mut *connection, &asked)?.is_empty() {
            let account = account(&mut *connection)?;
            return Err(ImportError::DatabaseNotSeen { database, account });
        }
        let is_mariadb = texts(&mut *connection, "select version()")?
            .iter()
            .any(|version| version.to_lowercase().contains("mariadb"));
        Ok(MariaDbSource {
            connection,
            database,
            is_mariadb,
            indexes: BTreeMap::new(),
            samples: BTreeMap::new(),
        })
    }

    /// Statements by a question for text, calls, milliseconds, rows and rows that were looked at.
    fn counted(&mut self, asked: &str, form: StatementForm) -> Result<Vec<Counted>, SessionError> {
        let mut found = Vec::new();
        let database = &self.database;
        self.connection.ask(asked, &mut |row| {
            let text = row.text(0)?;
            found.push(Counted {
                text: without_own(&text, database, Dialect::MariaDb).into_owned(),
                form,
                calls: row.float(1)?,
                time_ms: row.float(2)?,
                rows: row.float(3)?,
                examined: Some(row.float(4)?),
            });
            Ok(())
        })?;
        Ok(found)
    }

    /// Calls and milliseconds.
    fn totals(&mut self, asked: &str) -> Result<(f64, f64), SessionError> {
        let mut found = (0.0, 0.0);
        self.connection.ask(asked, &mut |row| {
            found = (row.float(0)?, row.float(1)?);
            Ok(())
        })?;
        Ok(found)
    }

    fn digests(&mut self) -> Result<Vec<Counted>, SessionError> {
        let asked = format!(
            "select left(digest_text, {}), count_star, sum_timer_wait / 1e9, sum_rows_sent + sum_rows_affected, \
             sum_rows_examined from {DIGESTS} where schema_name = {} and digest_text is not null and count_star > 0",
            TEXT_BYTES_MAX + 1,
            text(&self.database)
        );
        let mut found = self.counted(&asked, StatementForm::Digest)?;
        let asked = format!(
            "select coalesce(sum(count_star), 0), coalesce(sum(sum_timer_wait), 0) / 1e9 from {DIGESTS} where digest is null"
        );
        let (calls, time_ms) = self.totals(&asked)?;
        found.extend((calls > 0.0).then(|| Counted::without_digest(calls, time_ms)));
        Ok(found)
    }

    /// Prepared statements of the protocol, which MariaDB has no digests of.
    fn prepared(&mut self) -> Result<Vec<Counted>, SessionError> {
        let asked = format!(
            "select left(sql_text, {}), sum(count_execute), sum(sum_timer_execute) / 1e9, \
             sum(sum_rows_sent + sum_rows_affected), sum(sum_rows_examined) from {PREPARED} \
             join performance_schema.threads on thread_id = owner_thread_id \
             where processlist_db = {} and statement_name is null and count_execute > 0 group by sql_text",
            TEXT_BYTES_MAX + 1,
            text(&self.database)
        );
        let mut found = self.counted(&asked, StatementForm::Statement)?;
        let of = |calls: &str, time: &str| {
            format!("coalesce(sum({calls}), 0), coalesce(sum({time}), 0) / 1e9")
        };
        let asked = format!(
            "select {} from {PREPARED} where statement_name is null",
            of("count_execute", "sum_timer_execute")
        );
        let (open, open_ms) = self.totals(&asked)?;
        let asked = format!(
            "select {} from performance_schema.events_statements_summary_global_by_event_name \
             where event_name = 'statement/com/Execute'",
            of("count_star", "sum_timer_wait")
        );
        let (all, all_ms) = self.totals(&asked)?;
        if all > open {
            let what = "prepared statements of any database";
            let why = match self.consumes("events_statements_current")? {
                true => ENDED,
                false => NOT_COUNTED,
            };
            found.push(Counted::unknown(
                what,
                why,
                all - open,
                (all_ms - open_ms).max(0.0),
            ));
        }
        Ok(found)
    }

    fn all_counted(&mut self) -> Result<Vec<Counted>, ImportError> {
        self.must_count()?;
        let mut found = self.digests()?;
        if self.is_mariadb {
            found.extend(self.prepared()?);
        }
        Ok(found)
    }

    /// That the server counts statements.
    fn must_count(&mut self) -> Result<(), ImportError> {
        let is_on = "select 'on' from dual where @@global.performance_schema = 1";
        if texts(&mut *self.connection, is_on)?.is_empty() {
            return Err(ImportError::NoPerformanceSchema);
        }
        match self.consumes("statements_digest")? {
            true => Ok(()),
            false => Err(ImportError::NoDigests),
        }
    }

    /// Whether something is done with what is counted.
    fn consumes(&mut self, name: &str) -> Result<bool, SessionError> {
        let asked = format!(
            "select name from performance_schema.setup_consumers where name = '{name}' and enabled = 'YES'"
        );
        Ok(!texts(&mut *self.connection, &asked)?.is_empty())
    }

    /// `asked` of `information_schema` about a table.
    fn of_table(&self, asked: &str, table: &str) -> String {
        format!(
            "{asked} where table_schema = {} and table_name = {}",
            text(&self.database),
            text(table)
        )
    }

    /// The name of a table as it is written, and its rows.
    fn rows_of(&mut self, table: &str) -> Result<Option<f64>, SessionError> {
        let asked = "select coalesce(table_rows, 0) from information_schema.tables";
        let asked = self.of_table(asked, table) + " and table_type = 'BASE TABLE'";
        let mut rows = None;
        self.connection.ask(&asked, &mut |row| {
            rows = Some(row.float(0)?);
            Ok(())
        })?;
        Ok(rows)
    }

    fn columns_of(&mut self, table: &str) -> Result<Vec<Known>, SessionError> {
        let mut columns = Vec::new();
        let asked = "select column_name, data_type from information_schema.columns";
        let asked = self.of_table(asked, table) + " order by ordinal_position";
        self.connection.ask(&asked, &mut |row| {
            let type_name = row.text(1)?;
            columns.push(Known {
                name: row.text(0)?,
                kind: kind_of(&type_name.to_lowercase()),
                type_name,
            });
            Ok(())
        })?;
        Ok(columns)
    }

    /// The columns of each unique index; the indexes themselves are kept.
    fn unique_of(
        &mut self,
        table: &str,
        columns: &[Known],
    ) -> Result<Vec<Vec<usize>>, SessionError> {
        let mut unique: BTreeMap<(bool, String), Vec<Option<usize>>> = BTreeMap::new();
        let mut indexes = Indexes::default();
        let asked = "select index_name, column_name, non_unique, coalesce(cardinality, 0), sub_part is null, seq_in_index \
                     from information_schema.statistics";
        let asked = self.of_table(asked, table) + " order by index_name, seq_in_index";
        self.connection.ask(&asked, &mut |row| {
            // MySQL has indexes of expressions, which have no column.
            let column = if row.is_null(1)? {
                String::new()
            } else {
                row.text(1)?
            };
            let is_whole = row.int(4)? == 1;
            let place = columns
                .iter()
                .position(|known| known.name == column && is_whole);
            if let (Some(place), 1) = (place, row.int(5)?) {
                indexes.first.insert(place, row.float(3)?);
            }
            if row.int(2)? == 0 {
                let name = row.text(0)?;
                unique
                    .entry((name != "PRIMARY", name))
                    .or_default()
                    .push(place);
            }
            Ok(())
        })?;
        let unique = unique.into_values();
        let whole = |places: Vec<Option<usize>>| places.into_iter().collect::<Option<Vec<usize>>>();
        let unique: Vec<Vec<usize>> = unique.filter_map(whole).collect();
        indexes.key = unique.first().cloned().unwrap_or_default();
        self.indexes.insert(table.to_owned(), indexes);
        Ok(unique)
    }
}

impl CountingServer for MariaDbSource {
    fn statements(&mut self) -> Result<Vec<Counted>, ImportError> {
        match self.all_counted() {
            Err(ImportError::Session(SessionError::Rejected {
                complaint: Complaint::Right,
                text,
            })) => {
                let account = account(&mut *self.connection)?;
                Err(ImportError::NoRight { text, account })
            }
            found => found,
        }
    }

    fn size_bytes(&mut self) -> Option<u64> {
        let asked = format!(
            "select cast(sum(data_length + index_length) as char) from information_schema.tables where table_schema = {}",
            text(&self.database)
        );
        let told = texts(&mut *self.connection, &asked).ok()?;
        told.first()?.parse().ok()
    }

    fn search_path(&mut self) -> Result<Option<String>, SessionError> {
        Ok(None)
    }

    fn table(&mut self, name: &[String]) -> Result<Option<ImportedTable>, SessionError> {
        let [name] = name else {
            return Ok(None);
        };
        let (mut name, mut rows) = (name.clone(), self.rows_of(name)?);
        if rows.is_none() {
            let asked = format!(
                "select table_name from information_schema.tables where table_schema = {} and lower(table_name) = lower({})",
                text(&self.database),
                text(&name)
            );
            let Some(other) = texts(&mut *self.connection, &asked)?.pop() else {
                return Ok(None);
            };
            rows = self.rows_of(&other)?;
            name = other;
        }
        let Some(rows) = rows else {
            return Ok(None);
        };
        let columns = self.columns_of(&name)?;
        let unique = self.unique_of(&name, &columns)?;
        Ok(Some(ImportedTable {
            name,
            rows,
            columns,
            unique,
        }))
    }

    fn column(
        &mut self,
        table: &ImportedTable,
        place: usize,
    ) -> Result<Option<ImportedColumn>, SessionError> {
        match self.of_histogram(table, place)? {
            Some(column) => Ok(Some(column)),
            None => self.of_rows(table, place),
        }
    }

    fn check(&mut self, statements: &[String]) -> Result<(), SessionError> {
        match self.connection.check(statements) {
            // It prepares changes only for who may make them, and it is enough that this user may read.
            Err(SessionError::Rejected {
                complaint: Complaint::Right,
                ..
            }) => Ok(()),
            checked => checked,
        }
    }
}

/// The account that the server takes the user for, as a grant names it.
fn account(connection: &mut dyn Reader) -> Result<String, SessionError> {
    let told = texts(connection, "select current_user()")?.pop();
    let told = told.unwrap_or_default();
    let (name, host) = told.rsplit_once('@').unwrap_or((&told, "%"));
    Ok(format!("{}@{}", text(name), text(host)))
}

/// What values of a type are.
fn kind_of(type_name: &str) -> ValueKind {
    match type_name {
        "tinyint" => ValueKind::Whole {
            max: i8::MAX.into(),
        },
        "smallint" => ValueKind::Whole {
            max: i16::MAX.into(),
        },
        "mediumint" => ValueKind::Whole { max: (1 << 23) - 1 },
        "int" => ValueKind::Whole {
            max: i32::MAX.into(),
        },
        "bigint" => ValueKind::Whole { max: i64::MAX },
        "uuid" => ValueKind::Uuid,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => ValueKind::Text,
        "binary" | "varbinary" | "bit" | "tinyblob" | "blob" | "mediumblob" | "longblob" => {
            ValueKind::Bytes
        }
        _ => ValueKind::Other,
    }
}

/// A text as SQL has it.
fn text(text: &str) -> String {
    super::column::literal(text, Dialect::MariaDb)
}

/// A name as SQL has it.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
