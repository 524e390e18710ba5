//! The text of the 22 queries (clause 2.4), one file each, as the standard writes them, and query 13 of TPC-D. `:1`,
//! `:2` stand for parameters. What databases write differently stands in brackets, and is written out here, in one
//! place:
//!
//! | in brackets | is |
//! | --- | --- |
//! | `[date D]` | a day |
//! | `[date D + 3 month]` | a day and a number of days, months or years, added or removed |
//! | `[year C]` | the year of a day, a number |
//! | `[first 2 of C]` | the first letters of a text |
//! | `[C within 0.01 of N]` | an exact number that is so near to another |
//!
//! Two of the texts are variants that appendix B allows or databases demand: query 15 names its view in the query
//! itself (variant A), and query 13 names the columns of its derived table within it.

use crate::sql::Dialect;
use crate::sql::value::{decimal_text, parse_decimal};

const TEXTS: [&str; 22] = [
    include_str!("q01.sql"),
    include_str!("q02.sql"),
    include_str!("q03.sql"),
    include_str!("q04.sql"),
    include_str!("q05.sql"),
    include_str!("q06.sql"),
    include_str!("q07.sql"),
    include_str!("q08.sql"),
    include_str!("q09.sql"),
    include_str!("q10.sql"),
    include_str!("q11.sql"),
    include_str!("q12.sql"),
    include_str!("q13.sql"),
    include_str!("q14.sql"),
    include_str!("q15.sql"),
    include_str!("q16.sql"),
    include_str!("q17.sql"),
    include_str!("q18.sql"),
    include_str!("q19.sql"),
    include_str!("q20.sql"),
    include_str!("q21.sql"),
    include_str!("q22.sql"),
];
const CLERK: &str = include_str!("tpcd_q13.sql");

/// A query, its number from 1, in a dialect.
pub(super) fn text(query: u8, dialect: Dialect, parameters: &[String]) -> String {
    written_out(TEXTS[usize::from(query) - 1], dialect, parameters)
}

/// Query 13 of TPC-D, what a clerk lost to the business in returned goods, in a dialect.
pub(super) fn of_clerk(dialect: Dialect, parameters: &[String]) -> String {
    written_out(CLERK, dialect, parameters)
}

fn written_out(text: &str, dialect: Dialect, parameters: &[String]) -> String {
    let mut filled = text.trim_end().to_owned();
    // From the last, so that :1 is not found in :10.
    for (place, value) in parameters.iter().enumerate().rev() {
        filled = filled.replace(&format!(":{}", place + 1), value);
    }
    let mut written = String::with_capacity(filled.len());
    let mut rest = filled.as_str();
    while let Some((before, after)) = rest.split_once('[') {
        let (inner, behind) = after.split_once(']').expect("a bracket is closed");
        written.push_str(before);
        written.push_str(&expression(inner, dialect));
        rest = behind;
    }
    written.push_str(rest);
    written
}

fn expression(inner: &str, dialect: Dialect) -> String {
    let words: Vec<&str> = inner.split_whitespace().collect();
    let is_sqlite = dialect == Dialect::Sqlite;
    match words[..] {
        ["date", day] if is_sqlite => format!("'{day}'"),
        ["date", day] => format!("date '{day}'"),
        ["date", day, sign, count, unit] if is_sqlite => {
            format!("date('{day}', '{sign}{count} {unit}')")
        }
        ["date", day, sign, count, unit] => {
            format!("date '{day}' {sign} interval '{count}' {unit}")
        }
        ["year", column] if is_sqlite => format!("cast(substr({column}, 1, 4) as integer)"),
        ["year", column] => format!("extract(year from {column})"),
        ["first", count, "of", column] if is_sqlite => format!("substr({column}, 1, {count})"),
        ["first", count, "of", column] => format!("substring({column} from 1 for {count})"),
        // SQLite calculates in binary, where 0.06 + 0.01 is less than 0.07.
        [column, "within", by, "of", number] if is_sqlite => {
            let hundredths = |text| parse_decimal(text, 2).expect("hundredths");
            let (number, by) = (hundredths(number), hundredths(by));
            let [least, most] = [number - by, number + by].map(|end| decimal_text(end, 2));
            format!("{column} between {least} and {most}")
        }
        [column, "within", by, "of", number] => {
            format!("{column} between {number} - {by} and {number} + {by}")
        }
        _ => unreachable!("no dialect has [{inner}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parameters::validation;
    use super::*;

    const DIALECTS: [Dialect; 3] = [Dialect::Postgres, Dialect::MariaDb, Dialect::Sqlite];

    #[test]
    fn every_query_can_be_written_in_every_dialect() {
        for (query, dialect) in (1..=22).flat_map(|query| DIALECTS.map(|of| (query, of))) {
            let sql = text(query, dialect, &validation(query, 1.0));
            for sign in [":", "[", "]", ";"] {
                assert!(!sql.contains(sign), "query {query}: {sql}");
            }
            // A table's name in capitals would be another table to some.
            assert!(sql.contains("select") && sql.contains("from"), "{sql}");
        }
    }

    #[test]
    fn dialects_differ_where_they_must() {
        let of = |inner| DIALECTS.map(|dialect| expression(inner, dialect));
        assert_eq!(
            of("date 1994-01-01 + 3 month"),
            [
                "date '1994-01-01' + interval '3' month",
                "date '1994-01-01' + interval '3' month",
                "date('1994-01-01', '+3 month')",
            ]
        );
        assert_eq!(of("date 1994-01-01")[2], "'1994-01-01'");
        assert_eq!(of("year o_orderdate")[0], "extract(year from o_orderdate)");
        assert_eq!(of("first 2 of c_phone")[2], "substr(c_phone, 1, 2)");
        assert_eq!(
            of("l_discount within 0.01 of 0.06")[2],
            "l_discount between 0.05 and 0.07"
        );
    }
}
