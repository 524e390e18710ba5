//! What a server has counted as a file: `pg_stat_statements` of one database, or the digests of one, as `how` of
//! [`ExportedColumns`] says. Counts of one statement by several users are added up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use csv::StringRecord;
use spindle_text::files;
use spindle_workload::sql::Dialect;

use super::error::{BadExport, ImportError};
use super::mix::{Counted, StatementForm};
use super::own_names::without_own;

/// No larger file is read, bytes.
const BYTES_MAX: u64 = 256 << 20;

/// The columns of such a file.
pub struct ExportedColumns {
    text: &'static str,
    form: StatementForm,
    calls: &'static str,
    /// By one of these names.
    time: &'static [&'static str],
    /// This many of these units are a millisecond.
    time_units: f64,
    /// Rows that were found and those that were changed.
    rows: &'static [&'static str],
    examined: Option<&'static str>,
    database: &'static str,
    /// Whether a client sent the statement, if that is told.
    top: &'static str,
    /// How such a file is written.
    how: &'static str,
}

/// Those of `pg_stat_statements`.
pub const PG_STAT_STATEMENTS: ExportedColumns = ExportedColumns {
    text: "query",
    form: StatementForm::Statement,
    calls: "calls",
    time: &["total_exec_time", "total_time"],
    time_units: 1.0,
    rows: &["rows"],
    examined: None,
    database: "dbid",
    top: "toplevel",
    how: "write the file by \\copy (select * from pg_stat_statements where dbid = (select oid from pg_database \
          where datname = current_database())) to 'FILE' csv header",
};

/// Those of `events_statements_summary_by_digest`. Its times are picoseconds.
pub const DIGESTS: ExportedColumns = ExportedColumns {
    text: "digest_text",
    form: StatementForm::Digest,
    calls: "count_star",
    time: &["sum_timer_wait"],
    time_units: 1e9,
    rows: &["sum_rows_sent", "sum_rows_affected"],
    examined: Some("sum_rows_examined"),
    database: "schema_name",
    top: "toplevel",
    how: "write the file by mariadb --batch DATABASE -e \"select * from \
          performance_schema.events_statements_summary_by_digest where schema_name = database() or digest is null\" > FILE",
};

/// The statements of a file.
///
/// # Errors
/// The file cannot be read, or is not such a one, with the line.
pub fn statements(path: &Path, columns: &ExportedColumns) -> Result<Vec<Counted>, ImportError> {
    let text = files::read_text(path, BYTES_MAX).map_err(|source| ImportError::NotRead {
        path: path.to_owned(),
        source,
    })?;
    of_text(&text, columns).map_err(|mistake| ImportError::Export {
        path: path.to_owned(),
        mistake,
    })
}

/// The places of the columns in a file.
struct Places {
    text: usize,
    calls: usize,
    time: usize,
    rows: Vec<usize>,
    examined: Option<usize>,
    database: Option<usize>,
    top: Option<usize>,
}

impl ExportedColumns {
    fn places(&self, header: &StringRecord) -> Result<Places, BadExport> {
        let place = |name: &str| {
            let mut columns = header.iter();
            columns.position(|column| column.trim().eq_ignore_ascii_case(name))
        };
        let needed = |names: &[&str]| {
            let found = names.iter().find_map(|name| place(name));
            found.ok_or_else(|| BadExport {
                line: 1,
                what: format!("there is no column {}: {}", names[0], self.how),
            })
        };
        let rows = self.rows.iter().map(|name| needed(&[*name]));
        Ok(Places {
            text: needed(&[self.text])?,
            calls: needed(&[self.calls])?,
            time: needed(self.time)?,
            rows: rows.collect::<Result<_, _>>()?,
            examined: self.examined.map(|name| needed(&[name])).transpose()?,
            database: place(self.database),
            top: place(self.top),
        })
    }
}

fn of_text(text: &str, columns: &ExportedColumns) -> Result<Vec<Counted>, BadExport> {
    let header = text.lines().next().unwrap_or_default();
    // As the client of MariaDB and MySQL writes: tabs between fields, and backslashes for what would look like them.
    let is_of_client = columns.form == StatementForm::Digest && header.contains('\t');
    let mut reader = csv::ReaderBuilder::new();
    if is_of_client {
        reader.delimiter(b'\t').quoting(false);
    }
    let mut reader = reader.from_reader(text.as_bytes());
    let broken = |error: csv::Error| BadExport {
        line: error.position().map_or(1, csv::Position::line),
        what: error.to_string(),
    };
    let places = columns.places(reader.headers().map_err(broken)?)?;
    let mut databases = BTreeSet::new();
    let mut found: Vec<Counted> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let is_top = places.top.is_none_or(|top| record.get(top) != Some("f"));
        if !is_top {
            continue;
        }
        let line = record.position().map_or(0, csv::Position::line);
        let of = places.database.and_then(|database| record.get(database));
        let of = of.filter(|of| !is_null(of, columns));
        databases.extend(of.map(str::to_owned));
        if databases.len() > 1 {
            return Err(BadExport {
                line,
                what: format!(
                    "statements of several databases are counted here: {}",
                    columns.how
                ),
            });
        }
        let mut counted = counted(&record, line, &places, columns)?;
        if counted.form == StatementForm::Digest {
            if is_of_client {
                counted.text = unescaped(&counted.text);
            }
            let own = without_own(&counted.text, of.unwrap_or_default(), Dialect::MariaDb);
            counted.text = own.into_owned();
        }
        let place = *known.entry(counted.text.clone()).or_insert(found.len());
        match found.get_mut(place) {
            Some(before) => before.add(&counted),
            None => found.push(counted),
        }
    }
    Ok(found)
}

/// Whether a field of MariaDB and MySQL has no value.
fn is_null(field: &str, columns: &ExportedColumns) -> bool {
    columns.form == StatementForm::Digest && matches!(field, "" | "NULL" | "\\N")
}

fn counted(
    record: &StringRecord,
    line: u64,
    places: &Places,
    columns: &ExportedColumns,
) -> Result<Counted, BadExport> {
    let number = |column: usize| {
        let field = record.get(column).unwrap_or_default();
        let number = field.parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| BadExport {
            line,
            what: format!("{field:.40?} is not a number that a server counts"),
        })
    };
    let text = record.get(places.text).unwrap_or_default();
    let (calls, time_ms) = (
        number(places.calls)?,
        number(places.time)? / columns.time_units,
    );
    if is_null(text, columns) {
        return Ok(Counted::without_digest(calls, time_ms));
    }
    let rows = places.rows.iter().map(|place| number(*place));
    Ok(Counted {
        text: text.to_owned(),
        form: columns.form,
        calls,
        time_ms,
        rows: rows.sum::<Result<f64, _>>()?,
        examined: places.examined.map(number).transpose()?,
    })
}

/// A field as the client of MariaDB and MySQL writes it with `--batch`.
fn unescaped(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut letters = field.chars();
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('0') => '\0',
                Some(other) => other,
                None => '\\',
            },
            letter => letter,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read_by_the_names_of_columns() {
        let text = "userid,toplevel,query,calls,total_exec_time,rows\n10,t,\"select $1,\n2\",5,1.5,7\n10,f,x,1,1,1\n";
        let counted = Counted {
            text: "select $1,\n2".to_owned(),
            form: StatementForm::Statement,
            calls: 5.0,
            time_ms: 1.5,
            rows: 7.0,
            examined: None,
        };
        assert_eq!(of_text(text, &PG_STAT_STATEMENTS).unwrap(), [counted]);
    }

    #[test]
    fn users_are_added_up_and_databases_are_not() {
        let head = "userid,dbid,query,calls,total_exec_time,rows\n";
        let found = of_text(
            &format!("{head}10,5,a,1,2,3\n11,5,a,10,20,30\n"),
            &PG_STAT_STATEMENTS,
        )
        .unwrap();
        assert_eq!(
            (found.len(), found[0].calls, found[0].rows),
            (1, 11.0, 33.0)
        );
        let told = of_text(
            &format!("{head}10,5,a,1,2,3\n10,6,b,1,1,1\n"),
            &PG_STAT_STATEMENTS,
        );
        let told = told.unwrap_err().to_string();
        assert!(
            told.starts_with(":3: statements of several databases"),
            "{told}"
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, told) in [
            ("", ":1: there is no column query"),
            (
                "query,calls,rows\n",
                ":1: there is no column total_exec_time",
            ),
            (
                "query,calls,total_time,rows\na,1,1,1\nb,-1,1,1\n",
                ":3: \"-1\" is not a number",
            ),
            ("query,calls,total_time,rows\na,1,1\n", ":2: CSV error"),
            (
                "query,calls,total_time,rows\na,NaN,1,1\n",
                ":2: \"NaN\" is not a number",
            ),
        ] {
            let found = of_text(text, &PG_STAT_STATEMENTS).unwrap_err().to_string();
            assert!(found.starts_with(told), "{found}");
        }
    }

    const HEAD: &str = "SCHEMA_NAME,DIGEST,DIGEST_TEXT,COUNT_STAR,SUM_TIMER_WAIT,SUM_ROWS_AFFECTED,SUM_ROWS_SENT,\
                        SUM_ROWS_EXAMINED\n";

    #[test]
    fn digests_are_read_in_both_forms_of_a_file() {
        let rows = "shop,ab,\"SELECT `a\\\\b` , `c` FROM `shop` . `t`\",4,2000000000,1,7,9\n\
                    NULL,NULL,NULL,3,1000000000,0,0,0\n";
        let with_commas = of_text(&format!("{HEAD}{rows}"), &DIGESTS).unwrap();
        let with_tabs = "shop\tab\tSELECT `a\\\\b` , `c` FROM `shop` . `t`\t4\t2000000000\t1\t7\t9\n\
                         NULL\tNULL\tNULL\t3\t1000000000\t0\t0\t0\n";
        let head = HEAD.replace(',', "\t");
        let with_tabs = of_text(&format!("{head}{with_tabs}"), &DIGESTS).unwrap();
        let counted = Counted {
            text: "SELECT `a\\b` , `c` FROM `t`".to_owned(),
            form: StatementForm::Digest,
            calls: 4.0,
            time_ms: 2.0,
            rows: 8.0,
            examined: Some(9.0),
        };
        assert_eq!(with_tabs, [counted, Counted::without_digest(3.0, 1.0)]);
        assert_eq!(with_commas[1], with_tabs[1]);
        assert_eq!(with_commas[0].text, "SELECT `a\\\\b` , `c` FROM `t`");
    }

    #[test]
    fn a_bad_file_of_digests_is_told_with_its_line() {
        for (text, told) in [
            (
                "",
                ":1: there is no column digest_text: write the file by mariadb",
            ),
            ("a,b\n1,2\n", ":1: there is no column digest_text"),
            (
                &HEAD.replace("SUM_ROWS_EXAMINED", "X"),
                ":1: there is no column sum_rows_examined",
            ),
            (
                &format!("{HEAD}s,d,SELECT ?,1,x,1,1,1\n"),
                ":2: \"x\" is not a number",
            ),
            (&format!("{HEAD}s,d,SELECT ?,1\n"), ":2: CSV error"),
            (
                &format!("{HEAD}s,d,SELECT ?,1,1,1,1,1\nt,e,SELECT ?,1,1,1,1,1\n"),
                ":3: statements of several databases",
            ),
        ] {
            let found = of_text(text, &DIGESTS).unwrap_err().to_string();
            assert!(found.starts_with(told), "{found}");
        }
    }
}
