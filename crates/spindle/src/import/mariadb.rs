//! What MariaDB and MySQL tell: the statements that `performance_schema` has counted, and samples of columns. Digests
//! of MariaDB leave prepared statements out. Those of sessions that are still open are in another table; of the others
//! only the number is known. It is asked in a session that may only read.

use std::collections::BTreeMap;
use std::rc::Rc;

use spindle_workload::SessionError;
use spindle_workload::sql::SqlConnection;

use super::column::{Column, Kind};
use super::mix::{Counted, UNTOLD};
use super::statement::TEXT_BYTES_MAX;
use super::table::{Known, Table, Tables};

/// Values of a column that are sampled.
const SAMPLES: u64 = 100;
/// And without a key of numbers, by which rows can be found anywhere.
const FIRST_ROWS: usize = 1_000;
/// Values that a list is taken to have, where the digest has forgotten how many.
const LISTED: usize = 10;
const DIGESTS: &str =
    "from performance_schema.events_statements_summary_by_digest where schema_name = database()";

/// The statements of this database.
///
/// # Errors
/// Why they are not told, for people.
pub fn statements(connection: &mut dyn SqlConnection) -> Result<Vec<Counted>, String> {
    let failed = |error: SessionError| error.to_string();
    if texts(connection, "select database()")
        .map_err(failed)?
        .is_empty()
    {
        return Err("the address names no database".to_owned());
    }
    let is_on = texts(connection, "select cast(@@performance_schema as char)").map_err(failed)?;
    if is_on != ["1"] {
        return Err(
            "performance_schema is off on this server: set performance_schema = ON in its configuration, restart it, and \
             let the load run for a while"
                .to_owned(),
        );
    }
    let most = TEXT_BYTES_MAX + 1;
    let mut found = counted(
        connection,
        &format!(
            "select left(digest_text, {most}), count_star, sum_timer_wait / 1e9, sum_rows_sent + sum_rows_affected \
             {DIGESTS} and digest_text is not null"
        ),
    )?;
    let lost = "select count_star, sum_timer_wait / 1e9 from \
                performance_schema.events_statements_summary_by_digest where digest is null";
    found.extend(untold(connection, lost, 0.0, 0.0)?);
    let is_mariadb = "select version() from dual where version() like '%mariadb%'";
    if !texts(connection, is_mariadb).map_err(failed)?.is_empty() {
        let prepared = counted(
            connection,
            &format!(
                "select left(sql_text, {most}), sum(count_execute), sum(sum_timer_execute) / 1e9, \
                 sum(sum_rows_sent + sum_rows_affected) from performance_schema.prepared_statements_instances \
                 join performance_schema.threads on thread_id = owner_thread_id \
                 where processlist_db = database() and count_execute > 0 group by sql_text"
            ),
        )?;
        let (calls, time_ms) = prepared.iter().fold((0.0, 0.0), |(calls, time_ms), each| {
            (calls + each.calls, time_ms + each.time_ms)
        });
        found.extend(prepared);
        let all = "select count_star, sum_timer_wait / 1e9 from \
                   performance_schema.events_statements_summary_global_by_event_name \
                   where event_name = 'statement/com/Execute'";
        found.extend(untold(connection, all, calls, time_ms)?);
    }
    for each in &mut found {
        each.text = expanded(&each.text, connection).map_err(failed)?;
    }
    Ok(found)
}

fn counted(connection: &mut dyn SqlConnection, asked: &str) -> Result<Vec<Counted>, String> {
    let mut found = Vec::new();
    let told = connection.ask(asked, &mut |row| {
        found.push(Counted {
            text: row.text(0)?,
            calls: row.float(1)?,
            time_ms: row.float(2)?,
            rows: row.float(3)?,
        });
        Ok(())
    });
    told.map_err(|error| error.to_string())?;
    Ok(found)
}

/// What is left of calls and time without those that are known.
fn untold(
    connection: &mut dyn SqlConnection,
    asked: &str,
    calls: f64,
    time_ms: f64,
) -> Result<Option<Counted>, String> {
    let mut found = None;
    let told = connection.ask(asked, &mut |row| {
        found = Some((row.float(0)? - calls, row.float(1)? - time_ms));
        Ok(())
    });
    told.map_err(|error| error.to_string())?;
    let found = found.filter(|(calls, _)| *calls > 0.0);
    Ok(found.map(|(calls, time_ms)| Counted {
        text: UNTOLD.to_owned(),
        calls,
        time_ms: time_ms.max(0.0),
        rows: 0.0,
    }))
}

fn texts(connection: &mut dyn SqlConnection, sql: &str) -> Result<Vec<String>, SessionError> {
    let mut found = Vec::new();
    connection.ask(sql, &mut |row| {
        if !row.is_null(0)? {
            found.push(row.text(0)?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// A digest with its lists written out, which it shortens to `(...)`: of an INSERT as many values as columns,
/// elsewhere ten.
fn expanded(text: &str, connection: &mut dyn SqlConnection) -> Result<String, SessionError> {
    if !text.contains("(...)") {
        return Ok(text.to_owned());
    }
    let listed = |count: usize| format!("({})", vec!["?"; count].join(", "));
    let (before, after) = match text.split_once("VALUES (...)") {
        Some((before, after)) => (before, after),
        None => return Ok(text.replace("(...)", &listed(LISTED))),
    };
    let named = before
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'));
    let count = match named {
        Some((columns, _)) => columns.split(',').count(),
        None => {
            let table = before.split('`').nth_back(1).unwrap_or_default();
            let asked = format!(
                "select column_name from information_schema.columns where table_schema = database() and table_name = {}",
                literal(table)
            );
            texts(connection, &asked)?.len()
        }
    };
    let after = after.replace("(...)", &listed(LISTED));
    Ok(format!("{before}VALUES {}{after}", listed(count.max(1))))
}

/// A text as SQL has it.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A name as SQL has it.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Bytes of this database, by the server's estimates.
pub fn size_bytes(connection: &mut dyn SqlConnection) -> Option<u64> {
    let asked = "select cast(sum(data_length + index_length) as char) from information_schema.tables \
                 where table_schema = database()";
    let told = texts(connection, asked).ok()?;
    told.first()?.parse().ok()
}

/// Its tables.
pub struct MariaDbTables<'a> {
    connection: &'a mut dyn SqlConnection,
    tables: BTreeMap<Vec<String>, Option<Rc<Table>>>,
    columns: BTreeMap<(String, usize), Option<Column>>,
}

impl<'a> MariaDbTables<'a> {
    /// Those that a connection sees.
    pub fn new(connection: &'a mut dyn SqlConnection) -> MariaDbTables<'a> {
        MariaDbTables {
            connection,
            tables: BTreeMap::new(),
            columns: BTreeMap::new(),
        }
    }

    fn look_up(&mut self, name: &[String]) -> Result<Option<Rc<Table>>, SessionError> {
        let [.., table] = name else {
            return Ok(None);
        };
        // Another database of the server is not the one that is measured.
        let own = texts(self.connection, "select database()")?;
        if name.len() > 2 || name.len() == 2 && own.first() != Some(&name[0]) {
            return Ok(None);
        }
        let of = format!(
            "where table_schema = database() and table_name = {}",
            literal(table)
        );
        let mut rows = None;
        let asked = format!("select coalesce(table_rows, 0) from information_schema.tables {of}");
        self.connection.ask(&asked, &mut |row| {
            rows = Some(row.float(0)?);
            Ok(())
        })?;
        let Some(rows) = rows else {
            return Ok(None);
        };
        let mut columns = Vec::new();
        let asked = format!(
            "select column_name, data_type from information_schema.columns {of} order by ordinal_position"
        );
        self.connection.ask(&asked, &mut |row| {
            let type_name = row.text(1)?;
            columns.push(Known {
                name: row.text(0)?,
                kind: kind_of(&type_name),
                type_name,
            });
            Ok(())
        })?;
        let mut indexes: BTreeMap<String, Vec<Option<usize>>> = BTreeMap::new();
        let asked = format!(
            "select index_name, column_name from information_schema.statistics {of} and non_unique = 0 \
             order by index_name, seq_in_index"
        );
        self.connection.ask(&asked, &mut |row| {
            let column = row.text(1)?;
            let place = columns.iter().position(|known| known.name == column);
            indexes.entry(row.text(0)?).or_default().push(place);
            Ok(())
        })?;
        let unique = indexes.into_values();
        Ok(Some(Rc::new(Table {
            name: quoted(table),
            rows,
            columns,
            unique: unique
                .filter_map(|places| places.into_iter().collect())
                .collect(),
        })))
    }

    /// Values of a column: of rows anywhere, where a key of numbers finds them, else of the first ones.
    fn sampled(&mut self, table: &Table, name: &str) -> Result<Vec<String>, SessionError> {
        let (of, column) = (&table.name, quoted(name));
        let key = table.unique.iter().find_map(|places| match places[..] {
            [place] if matches!(table.columns[place].kind, Kind::Whole { .. }) => Some(place),
            _ => None,
        });
        let mut ends = Vec::new();
        if let Some(place) = key {
            let key = quoted(&table.columns[place].name);
            let asked = format!(
                "select cast(min({key}) as char) from {of} union all select cast(max({key}) as char) from {of}"
            );
            let told = texts(self.connection, &asked)?;
            ends = told
                .iter()
                .filter_map(|end| end.parse::<i128>().ok())
                .collect();
        }
        let (Some(place), [low, high]) = (key, &ends[..]) else {
            let asked = format!("select cast({column} as char) from {of} limit {FIRST_ROWS}");
            return texts(self.connection, &asked);
        };
        let key = quoted(&table.columns[place].name);
        let parts = i128::from(SAMPLES - 1);
        let one = |number: i128| {
            let from = low + (high - low) * number / parts;
            format!(
                "(select cast({column} as char) from {of} where {key} >= {from} order by {key} limit 1)"
            )
        };
        let all: Vec<String> = (0..=parts).map(one).collect();
        texts(self.connection, &all.join(" union all "))
    }

    fn values(&mut self, table: &Table, place: usize) -> Result<Option<Column>, SessionError> {
        let Known {
            name,
            kind,
            type_name,
        } = &table.columns[place];
        let sampled = self.sampled(table, name)?;
        if sampled.is_empty() {
            return Ok(None);
        }
        let is_whole = matches!(kind, Kind::Whole { .. });
        let count = sampled.len() as f64;
        let bytes: usize = sampled.iter().map(String::len).sum();
        let mut often: BTreeMap<(i128, String), f64> = BTreeMap::new();
        for value in sampled {
            let number = value.parse().ok().filter(|_| is_whole).unwrap_or(0);
            *often.entry((number, value)).or_default() += 1.0;
        }
        let different = often.len() as f64;
        let is_unique = table.unique.iter().any(|places| places[..] == [place]);
        let is_common = !is_unique && different < 0.5 * count;
        let shares = often
            .iter()
            .map(|((_, value), times)| (value.clone(), times / count));
        Ok(Some(Column {
            name: format!("{}.{name}", table.name),
            kind: *kind,
            type_name: type_name.clone(),
            common: shares.filter(|_| is_common).collect(),
            bounds: match is_common {
                true => Vec::new(),
                false => often.keys().map(|(_, value)| value.clone()).collect(),
            },
            rest: if is_common { 0.0 } else { 1.0 },
            distinct: match (is_unique, is_common) {
                (true, _) => table.rows,
                (false, true) => different,
                (false, false) => table.rows * different / count,
            },
            rows: table.rows,
            width: (bytes as f64 / count).ceil() as u32,
        }))
    }
}

fn kind_of(type_name: &str) -> Kind {
    match type_name {
        "tinyint" => Kind::Whole {
            max: i8::MAX.into(),
        },
        "smallint" => Kind::Whole {
            max: i16::MAX.into(),
        },
        "mediumint" => Kind::Whole { max: (1 << 23) - 1 },
        "int" => Kind::Whole {
            max: i32::MAX.into(),
        },
        "bigint" => Kind::Whole { max: i64::MAX },
        "uuid" => Kind::Uuid,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => Kind::Text,
        _ => Kind::Other,
    }
}

impl Tables for MariaDbTables<'_> {
    fn table(&mut self, name: &[String]) -> Result<Option<Rc<Table>>, String> {
        if let Some(known) = self.tables.get(name) {
            return Ok(known.clone());
        }
        let found = self.look_up(name).map_err(|error| error.to_string())?;
        self.tables.insert(name.to_vec(), found.clone());
        Ok(found)
    }

    fn column(&mut self, table: &Table, place: usize) -> Result<Option<Column>, String> {
        let key = (table.name.clone(), place);
        if let Some(known) = self.columns.get(&key) {
            return Ok(known.clone());
        }
        let found = self.values(table, place);
        let found = found.map_err(|error| error.to_string())?;
        self.columns.insert(key, found.clone());
        Ok(found)
    }

    fn check(&mut self, statements: &[String]) -> Result<(), String> {
        let prepared = self.connection.prepare(statements);
        prepared
            .map_err(|error| format!("the server does not take it with these parameters: {error}"))
    }
}
