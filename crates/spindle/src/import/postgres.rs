//! What PostgreSQL tells: the statements that `pg_stat_statements` has counted, and of tables what `pg_stats` holds. It
//! is asked in transactions that may do nothing else, and changes nothing.

use spindle_engines::sql::{OWN_STATEMENT, Reader};
use spindle_workload::SessionError;
use spindle_workload::sql::SqlRow;

use super::column::{ImportedColumn, ValueKind, ValueOrigin};
use super::error::ImportError;
use super::mix::{Counted, StatementForm};
use super::server::{CountingServer, texts};
use super::statement::TEXT_BYTES_MAX;
use super::table::{ImportedTable, Known};

/// Where the extension lies, quoted.
const HOME: &str = "select quote_ident(n.nspname)::text from pg_extension e \
                    join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'";

/// A server of PostgreSQL.
pub struct PostgresSource {
    connection: Box<dyn Reader>,
}

impl PostgresSource {
    /// The one, and the database there, that is read from.
    pub fn new(connection: Box<dyn Reader>) -> PostgresSource {
        PostgresSource { connection }
    }
}

impl CountingServer for PostgresSource {
    fn statements(&mut self) -> Result<Vec<Counted>, ImportError> {
        let connection = &mut *self.connection;
        let home = texts(connection, HOME)?.pop();
        let home = home.ok_or(ImportError::NoExtension)?;
        let asked = format!(
            "select attname::text from pg_attribute where attrelid = '{}.pg_stat_statements'::regclass and attnum > 0",
            home.replace('\'', "''")
        );
        let columns = texts(connection, &asked)?;
        let has = |name: &str| columns.iter().any(|column| column == name);
        let time = match has("total_exec_time") {
            true => "total_exec_time",
            // Before version 13.
            false => "total_time",
        };
        let only_top = if has("toplevel") { "and toplevel" } else { "" };
        let asked = format!(
            "select left(query, {}), sum(calls)::float8, sum({time})::float8, sum(rows)::float8 \
             from {home}.pg_stat_statements where query is not null \
             and position('{OWN_STATEMENT}' in query) = 0 \
             and dbid = (select oid from pg_database where datname = current_database()) {only_top} group by queryid, query",
            TEXT_BYTES_MAX + 1
        );
        let mut found = Vec::new();
        let told = connection.ask(&asked, &mut |row| {
            found.push(Counted {
                text: row.text(0)?,
                form: StatementForm::Statement,
                calls: row.float(1)?,
                time_ms: row.float(2)?,
                rows: row.float(3)?,
                examined: None,
            });
            Ok(())
        });
        told?;
        Ok(found)
    }

    fn size_bytes(&mut self) -> Option<u64> {
        let mut found = None;
        let asked = "select pg_database_size(current_database())";
        let told = self.connection.ask(asked, &mut |row| {
            found = u64::try_from(row.int(0)?).ok();
            Ok(())
        });
        told.ok().and(found)
    }

    /// The schemas there are, for a server of another user has another `"$user"`.
    fn search_path(&mut self) -> Result<Option<String>, SessionError> {
        let asked = "select coalesce(string_agg(quote_ident(name), ', '), '') \
                     from unnest(current_schemas(false)) as path (name)";
        let path = texts(&mut *self.connection, asked)?.pop();
        Ok(path.filter(|path| !path.is_empty() && path != "public"))
    }

    fn table(&mut self, name: &[String]) -> Result<Option<ImportedTable>, SessionError> {
        let quoted: Vec<String> = name
            .iter()
            .map(|part| format!("\"{}\"", part.replace('"', "\"\"")))
            .collect();
        let quoted = text(&quoted.join("."));
        let mut found = None;
        let asked = format!(
            "select quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.oid::int8, greatest(c.reltuples, 0)::float8 \
             from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass({quoted})"
        );
        self.connection.ask(&asked, &mut |row| {
            found = Some((row.text(0)?, row.int(1)?, row.float(2)?));
            Ok(())
        })?;
        let Some((name, oid, rows)) = found else {
            return Ok(None);
        };
        let mut numbers = Vec::new();
        let mut columns = Vec::new();
        let asked = format!(
            "select a.attnum::int8, a.attname::text, case t.typnamespace when 'pg_catalog'::regnamespace \
             then format_type(a.atttypid, -1) else quote_ident(n.nspname) || '.' || quote_ident(t.typname) end, \
             t.typcategory::text, a.atttypid::int8 from pg_attribute a join pg_type t on t.oid = a.atttypid \
             join pg_namespace n on n.oid = t.typnamespace \
             where a.attrelid = {oid} and a.attnum > 0 and not a.attisdropped order by a.attnum"
        );
        self.connection.ask(&asked, &mut |row| {
            numbers.push(row.int(0)?);
            columns.push(known(row)?);
            Ok(())
        })?;
        let mut unique = Vec::new();
        let asked = format!(
            "select array_to_string(indkey::int2[], ' ') from pg_index where indrelid = {oid} and indisunique and indislive"
        );
        self.connection.ask(&asked, &mut |row| {
            let keys = row.text(0)?;
            let places = keys.split(' ').map(|key| {
                let number = key.parse::<i64>().ok()?;
                numbers.iter().position(|known| *known == number)
            });
            // An index of an expression has no column there.
            unique.extend(places.collect::<Option<Vec<usize>>>());
            Ok(())
        })?;
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
        let Known {
            name,
            kind,
            type_name,
        } = &table.columns[place];
        let of = format!(
            "from pg_stats where (quote_ident(schemaname) || '.' || quote_ident(tablename)) = {} and attname = {} \
             order by inherited desc limit 1",
            text(&table.name),
            text(name)
        );
        let mut column = None;
        let asked = format!("select null_frac::float8, avg_width, n_distinct::float8 {of}");
        self.connection.ask(&asked, &mut |row| {
            let distinct = row.float(2)?;
            column = Some(ImportedColumn {
                name: format!("{}.{name}", table.name),
                kind: *kind,
                type_name: type_name.clone(),
                common: Vec::new(),
                bounds: Vec::new(),
                rest: 1.0 - row.float(0)?,
                distinct: match distinct < 0.0 {
                    true => -distinct * table.rows,
                    false => distinct,
                },
                rows: table.rows,
                width: row.int(1)?.clamp(0, 1 << 20) as u32,
                origin: ValueOrigin::Statistics,
            });
            Ok(())
        })?;
        let Some(mut column) = column else {
            return Ok(None);
        };
        let asked = format!(
            "select v, f::float8 from (select most_common_vals::text::text[] as vs, most_common_freqs as fs {of}) s, \
             unnest(vs, fs) as u (v, f) where v is not null"
        );
        self.connection.ask(&asked, &mut |row| {
            column.common.push((row.text(0)?, row.float(1)?));
            Ok(())
        })?;
        let asked = format!(
            "select v from (select histogram_bounds::text::text[] as vs {of}) s, unnest(vs) with ordinality as u (v, n) \
             where v is not null order by n"
        );
        self.connection.ask(&asked, &mut |row| {
            column.bounds.push(row.text(0)?);
            Ok(())
        })?;
        let common: f64 = column.common.iter().map(|(_, share)| share).sum();
        column.rest = (column.rest - common).max(0.0);
        Ok(Some(column))
    }

    fn check(&mut self, statements: &[String]) -> Result<(), SessionError> {
        self.connection.check(statements)
    }
}

/// A column by its number, name, type, the type's category and the type's number.
fn known(row: &dyn SqlRow) -> Result<Known, SessionError> {
    let kind = match (row.int(4)?, row.text(3)?.as_str()) {
        (21, _) => ValueKind::Whole {
            max: i16::MAX.into(),
        },
        (23, _) => ValueKind::Whole {
            max: i32::MAX.into(),
        },
        (20, _) => ValueKind::Whole { max: i64::MAX },
        (2950, _) => ValueKind::Uuid,
        (_, "S") => ValueKind::Text,
        _ => ValueKind::Other,
    };
    Ok(Known {
        name: row.text(1)?,
        type_name: row.text(2)?,
        kind,
    })
}

/// A text as SQL has it; the session takes backslashes as they are.
fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
