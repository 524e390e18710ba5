//! Values from the statistics that `ANALYZE TABLE ... PERSISTENT FOR ALL` makes in MariaDB, where they have a histogram
//! of type `JSON_HB`, which holds values (`sql/opt_histogram_json.cc` of its sources). The older types hold shares of
//! the way from the least value to the greatest, in which no value is.

use serde::Deserialize;
use spindle_workload::SessionError;

use super::super::column::{ImportedColumn, ValueOrigin};
use super::super::table::ImportedTable;
use super::{MariaDbSource, text};

/// What MariaDB writes.
#[derive(Deserialize)]
struct Histogram {
    histogram_hb: Vec<Bucket>,
}

#[derive(Deserialize)]
struct Bucket {
    /// `None`: it is no text, and there are its bytes.
    start: Option<String>,
    /// Of the last one.
    end: Option<String>,
    /// Its share of the rows.
    size: f64,
    /// Its different values.
    ndv: u64,
}

impl MariaDbSource {
    /// What the statistics hold of a column; `None`: no values.
    pub(super) fn of_histogram(
        &mut self,
        table: &ImportedTable,
        place: usize,
    ) -> Result<Option<ImportedColumn>, SessionError> {
        let known = &table.columns[place];
        let asked = format!(
            "select cast(histogram as char), nulls_ratio, avg_length, avg_frequency from mysql.column_stats \
             where db_name = {} and table_name = {} and column_name = {} and hist_type = 'JSON_HB'",
            text(&self.database),
            text(&table.name),
            text(&known.name)
        );
        let mut column = None;
        let told = self.connection.ask(&asked, &mut |row| {
            let nulls = row.float(1)?;
            let has = ImportedColumn {
                name: format!("{}.{}", table.name, known.name),
                kind: known.kind,
                type_name: known.type_name.clone(),
                common: Vec::new(),
                bounds: Vec::new(),
                rest: 0.0,
                distinct: table.rows * (1.0 - nulls) / row.float(3)?.max(1.0),
                rows: table.rows,
                width: row.float(2)?.clamp(0.0, 1e6) as u32,
                origin: ValueOrigin::Histogram,
            };
            column = filled(has, &row.text(0)?, 1.0 - nulls);
            Ok(())
        });
        match told {
            // There is no such table in MySQL, and not everyone may read it.
            Err(error) if !error.is_lost() => Ok(None),
            told => told.map(|()| column),
        }
    }
}

/// A column with the values of a histogram, whose rows are this share of all.
fn filled(mut column: ImportedColumn, histogram: &str, share: f64) -> Option<ImportedColumn> {
    let Histogram { histogram_hb } = serde_json::from_str(histogram).ok()?;
    for Bucket {
        start,
        end,
        size,
        ndv,
    } in histogram_hb
    {
        let size = size * share;
        let start = start?;
        match ndv {
            1 => column.common.push((start, size)),
            _ => {
                column.bounds.push(start);
                column.bounds.extend(end);
                column.rest += size;
            }
        }
    }
    Some(column)
}

#[cfg(test)]
mod tests {
    use super::super::super::column::ValueKind;
    use super::*;

    fn of(histogram: &str) -> Option<ImportedColumn> {
        let column = ImportedColumn {
            name: "t.c".to_owned(),
            kind: ValueKind::Text,
            type_name: "varchar".to_owned(),
            common: Vec::new(),
            bounds: Vec::new(),
            rest: 0.0,
            distinct: 9.0,
            rows: 100.0,
            width: 4,
            origin: ValueOrigin::Histogram,
        };
        filled(column, histogram, 0.5)
    }

    #[test]
    fn values_are_those_of_the_buckets() {
        let column = of(
            "{\"target_histogram_size\": 3, \"histogram_hb\": [{\"start\": \"a\", \"size\": 0.5, \"ndv\": 1}, \
             {\"start\": \"b\", \"size\": 0.25, \"ndv\": 4}, {\"start\": \"f\", \"end\": \"it's\", \"size\": 0.25, \"ndv\": 4}]}",
        );
        let column = column.unwrap();
        assert_eq!(column.common, [("a".to_owned(), 0.25)]);
        assert_eq!(
            (column.bounds.concat().as_str(), column.rest),
            ("bfit's", 0.25)
        );
    }

    #[test]
    fn what_holds_no_values_is_none() {
        for odd in [
            "",
            "[]",
            "{\"histogram_hb\": [{\"start_hex\": \"FF\", \"size\": 1, \"ndv\": 3}]}",
            "{\"histogram_hb\": 7}",
        ] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }
}
