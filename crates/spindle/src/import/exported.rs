//! A file of `pg_stat_statements` of one database, as `\copy (select * from pg_stat_statements where dbid = ...) to
//! 'FILE' csv header` makes it. Counts of one statement by several users are added up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use spindle_text::files;

use super::error::{BadExport, ImportError};
use super::mix::Counted;

/// How such a file is written.
const WRITE: &str = "write the file by \\copy (select * from pg_stat_statements where dbid = (select oid from pg_database \
                     where datname = current_database())) to 'FILE' csv header";
/// No larger file is read, bytes.
const BYTES_MAX: u64 = 256 << 20;

/// The statements of a file.
///
/// # Errors
/// The file cannot be read, or is not such a one, with the line.
pub fn statements(path: &Path) -> Result<Vec<Counted>, ImportError> {
    let text = files::read_text(path, BYTES_MAX).map_err(|source| ImportError::NotRead {
        path: path.to_owned(),
        source,
    })?;
    of_text(&text).map_err(|mistake| ImportError::Export {
        path: path.to_owned(),
        mistake,
    })
}

fn of_text(text: &str) -> Result<Vec<Counted>, BadExport> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let broken = |error: csv::Error| BadExport {
        line: error.position().map_or(1, csv::Position::line),
        what: error.to_string(),
    };
    let header = reader.headers().map_err(broken)?.clone();
    let place = |names: &[&str]| {
        let mut columns = header.iter();
        columns.position(|column| names.contains(&column.trim()))
    };
    let needed = |names: &[&str]| {
        place(names).ok_or_else(|| BadExport {
            line: 1,
            what: format!("there is no column {}: {WRITE}", names[0]),
        })
    };
    let (query, calls) = (needed(&["query"])?, needed(&["calls"])?);
    let (time, rows) = (
        needed(&["total_exec_time", "total_time"])?,
        needed(&["rows"])?,
    );
    let (top, database) = (place(&["toplevel"]), place(&["dbid"]));
    let mut databases = BTreeSet::new();
    let mut found: Vec<Counted> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(0, csv::Position::line);
        let number = |column: usize| {
            let field = record.get(column).unwrap_or_default();
            let number = field.parse::<f64>().ok();
            let number = number.filter(|number| number.is_finite() && *number >= 0.0);
            number.ok_or_else(|| BadExport {
                line,
                what: format!("{field:.40?} is not a number that a server counts"),
            })
        };
        let is_top = top.is_none_or(|top| record.get(top) != Some("f"));
        if !is_top {
            continue;
        }
        let id = database.and_then(|database| record.get(database));
        databases.extend(id.map(str::to_owned));
        if databases.len() > 1 {
            return Err(BadExport {
                line,
                what: format!("statements of several databases are counted here: {WRITE}"),
            });
        }
        let text = record.get(query).unwrap_or_default();
        let (calls, time_ms, rows) = (number(calls)?, number(time)?, number(rows)?);
        let place = *known.entry(text.to_owned()).or_insert_with(|| {
            found.push(Counted {
                text: text.to_owned(),
                calls: 0.0,
                time_ms: 0.0,
                rows: 0.0,
            });
            found.len() - 1
        });
        let counted = &mut found[place];
        counted.calls += calls;
        counted.time_ms += time_ms;
        counted.rows += rows;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read_by_the_names_of_columns() {
        let text = "userid,toplevel,query,calls,total_exec_time,rows\n10,t,\"select $1,\n2\",5,1.5,7\n10,f,x,1,1,1\n";
        let counted = Counted {
            text: "select $1,\n2".to_owned(),
            calls: 5.0,
            time_ms: 1.5,
            rows: 7.0,
        };
        assert_eq!(of_text(text).unwrap(), [counted]);
    }

    #[test]
    fn users_are_added_up_and_databases_are_not() {
        let head = "userid,dbid,query,calls,total_exec_time,rows\n";
        let found = of_text(&format!("{head}10,5,a,1,2,3\n11,5,a,10,20,30\n")).unwrap();
        assert_eq!(
            (found.len(), found[0].calls, found[0].rows),
            (1, 11.0, 33.0)
        );
        let told = of_text(&format!("{head}10,5,a,1,2,3\n10,6,b,1,1,1\n"));
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
            let found = of_text(text).unwrap_err().to_string();
            assert!(found.starts_with(told), "{found}");
        }
    }
}
