//! What several of the plans have in common: days, revenues, nations and their regions.

use spindle_query::{Condition, Expr, QueryPlan, col, date, number, text};

use super::tables::scan;
use crate::sql::tpch::schema::{NATION, REGION};
use crate::sql::value::parse_decimal;

/// The names of indexes, as [`super::tables`] makes them.
pub(super) const PARTSUPP_BY_PART: &str = "partsupp_key";
pub(super) const LINES_BY_PART: &str = "l_partkey_l_suppkey";

/// A day, as ISO 8601 writes it, counted from 1970-01-01 (Hinnant, "chrono-compatible low-level date algorithms",
/// `days_from_civil`).
pub(super) fn day(written: &str) -> i32 {
    let mut parts = written.split('-').map(whole);
    let mut part = || parts.next().unwrap_or(1);
    let (year, month, day) = (part(), part(), part());
    let year = if month <= 2 { year - 1 } else { year };
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    (year.div_euclid(400) * 146_097 + days - 719_468) as i32
}

/// The first of a month, this many months later.
pub(super) fn months_later(written: &str, months: i64) -> i32 {
    let mut parts = written.split('-').map(whole);
    let mut part = || parts.next().unwrap_or(1);
    let month = part() * 12 + part() - 1 + months;
    day(&format!("{:04}-{:02}-01", month / 12, month % 12 + 1))
}

/// A whole number of a parameter.
pub(super) fn whole(written: &str) -> i64 {
    written.parse().expect("parameters are drawn as numbers")
}

/// The digits of a parameter with this many places.
pub(super) fn digits(written: &str, scale: u8) -> i128 {
    let parsed = parse_decimal(written, scale).expect("parameters are drawn with these places");
    i128::from(parsed)
}

/// From the first of a month up to this many months later.
pub(super) fn within_months(column: &str, from: &str, months: i64) -> Condition {
    let from_day = col(column).at_least(date(day(from)));
    from_day.and(col(column).less(date(months_later(from, months))))
}

/// What a line brings in.
pub(super) fn revenue() -> Expr {
    col("l_extendedprice") * (number(1) - col("l_discount"))
}

/// A line that came later than it should.
pub(super) fn is_late() -> Condition {
    col("l_commitdate").less(col("l_receiptdate"))
}

/// A nation by its name.
pub(super) fn nation(name: &str) -> QueryPlan {
    scan(&NATION).filter(col("n_name").is(text(name)))
}

/// The nations of a region.
pub(super) fn nations_of(region: &str) -> QueryPlan {
    let regions = scan(&REGION).filter(col("r_name").is(text(region)));
    scan(&NATION).semi_join(regions, &[("n_regionkey", "r_regionkey")])
}

/// Texts as values.
pub(super) fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> impl Iterator<Item = Expr> {
    texts.into_iter().map(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::value::date_text;

    #[test]
    fn days_are_read_as_they_are_written() {
        for count in (-1_000..60_000).step_by(7) {
            assert_eq!(day(&date_text(count)), count);
        }
        assert_eq!(months_later("1994-01-01", 12), day("1995-01-01"));
        assert_eq!(months_later("1994-11-01", 3), day("1995-02-01"));
        assert_eq!(months_later("1995-09-01", 1), day("1995-10-01"));
        assert_eq!(digits("0.0001000000", 10), 1_000_000);
    }
}
