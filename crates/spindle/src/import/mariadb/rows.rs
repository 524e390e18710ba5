//! Values from rows, where no histogram holds them: of about 100 rows anywhere in the table. They are found along the
//! key, each by a few looks into its index. Where no key begins with a number, and in small tables, they are the first
//! rows.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use spindle_workload::SessionError;

use super::super::column::{ImportedColumn, ValueKind, ValueOrigin};
use super::super::table::ImportedTable;
use super::{MariaDbSource, quoted};

/// Places along the key that are looked at.
const PLACES: usize = 100;
/// Rows that are read where they cannot be found by a key.
const FIRST_ROWS: usize = 1_000;
/// Longer values are not read, bytes.
const VALUE_BYTES_MAX: usize = 1_024;
/// A value is common if this share of the rows that were read has it.
const COMMON: f64 = 0.05;
/// Parts of a histogram of this few rows.
const PARTS: usize = 10;
/// Behind a gap, one of this many rows is taken.
const STEP_ROWS: usize = 10;
/// Fewer numbers of a key that are in use do not tell how many are.
const USED_MIN: usize = 10;

/// Which rows of a table are read.
#[derive(Debug)]
pub(super) struct Sample {
    /// The numbers that the key begins with, of each row; empty: the first rows are read.
    rows: BTreeSet<Vec<i64>>,
    /// Rows of the table, where its key tells.
    count: Option<f64>,
}

/// A place in the index of a key.
struct IndexPosition {
    /// What its first columns are.
    row: Vec<i64>,
    /// And the next one, at least.
    at: i64,
    /// Rows that are passed over from there.
    passed: usize,
}

/// Two numbers, where there are some.
type Pair = Option<(i64, i64)>;

/// A value as it was read.
struct Read {
    /// `None`: there is none, or it is too long.
    value: Option<String>,
    /// Its length; `None`: there is none.
    bytes: Option<f64>,
}

impl MariaDbSource {
    /// What rows hold of a column; `None`: no rows.
    pub(super) fn of_rows(
        &mut self,
        table: &ImportedTable,
        place: usize,
    ) -> Result<Option<ImportedColumn>, SessionError> {
        let sample = self.sample(table)?;
        let known = &table.columns[place];
        let read = self.read(table, &sample, place)?;
        let name = quoted(&known.name);
        let first = self
            .indexes
            .get(&table.name)
            .and_then(|indexes| indexes.first.get(&place).copied());
        let mut ends = None;
        if first.is_some() && matches!(known.kind, ValueKind::Whole { .. }) {
            let asked = format!("min({name}), max({name}) from {}", self.name_of(table));
            ends = self.each(&[asked])?.pop().flatten();
        }
        let is_unique = table.unique.iter().any(|places| places[..] == [place]);
        let column = ImportedColumn {
            name: format!("{}.{}", table.name, known.name),
            kind: known.kind,
            type_name: known.type_name.clone(),
            common: Vec::new(),
            bounds: Vec::new(),
            rest: 0.0,
            distinct: first.unwrap_or_default(),
            rows: sample.count.unwrap_or(table.rows),
            width: 0,
            origin: ValueOrigin::Rows,
        };
        Ok((!read.is_empty()).then(|| filled(column, read, is_unique, ends)))
    }

    /// The table with its database, in SQL.
    fn name_of(&self, table: &ImportedTable) -> String {
        format!("{}.{}", quoted(&self.database), quoted(&table.name))
    }

    /// The columns of the key of a table, and how many of the first ones are numbers.
    fn key_of(&self, table: &ImportedTable) -> (Vec<String>, usize) {
        let key = self
            .indexes
            .get(&table.name)
            .map(|indexes| &indexes.key[..]);
        let key = key.unwrap_or_default();
        let is_whole =
            |place: &&usize| matches!(table.columns[**place].kind, ValueKind::Whole { .. });
        let numbers = key.iter().take_while(is_whole).count();
        let names = key.iter().map(|place| quoted(&table.columns[*place].name));
        (names.collect(), numbers)
    }

    /// Which rows of a table are read. It is decided once.
    fn sample(&mut self, table: &ImportedTable) -> Result<Rc<Sample>, SessionError> {
        if let Some(known) = self.samples.get(&table.name) {
            return Ok(Rc::clone(known));
        }
        let (key, numbers) = self.key_of(table);
        let mut sample = Sample {
            rows: BTreeSet::new(),
            count: None,
        };
        if table.rows > FIRST_ROWS as f64 && numbers > 0 {
            let mut rows = vec![Vec::new(); PLACES];
            for level in 0..numbers {
                let (found, count) = self.next(table, &key[..=level], rows)?;
                rows = found;
                sample.count = count.filter(|_| key.len() == 1);
            }
            sample.rows = self
                .apart(table, &key[..numbers], rows)?
                .into_iter()
                .collect();
        }
        let sample = Rc::new(sample);
        self.samples.insert(table.name.clone(), Rc::clone(&sample));
        Ok(sample)
    }

    /// Continues in the index, from rows that are known by all columns of `key` but the last. Also returns how many
    /// numbers are in use, if enough of those looked for were.
    fn next(
        &mut self,
        table: &ImportedTable,
        key: &[String],
        rows: Vec<Vec<i64>>,
    ) -> Result<(Vec<Vec<i64>>, Option<f64>), SessionError> {
        let (of, name) = (self.name_of(table), &key[key.len() - 1]);
        let asked = rows
            .iter()
            .map(|row| format!("min({name}), max({name}) from {of}{}", with(key, row)));
        let ends = self.each(&asked.collect::<Vec<_>>())?;
        let places = rows.into_iter().zip(&ends).enumerate();
        let places = places.filter_map(|(number, (row, ends))| {
            let chance = chance(number, key.len());
            let share = match key.len() {
                1 => (number as f64 + chance) / PLACES as f64,
                _ => chance,
            };
            let (low, high) = (*ends)?;
            let way = (high as f64 - low as f64 + 1.0) * share;
            let at = low.saturating_add(way as i64).min(high);
            Some(IndexPosition { row, at, passed: 0 })
        });
        let places: Vec<IndexPosition> = places.collect();
        let found = self.rows_at(table, key, &places)?;
        let is_used =
            |(place, found): &(&IndexPosition, &Vec<i64>)| found.last() == Some(&place.at);
        let used = places.iter().zip(&found).filter(is_used).count();
        let count = ends.first().copied().flatten().map(|(low, high)| {
            used as f64 / places.len() as f64 * (high as f64 - low as f64 + 1.0)
        });
        Ok((found, count.filter(|_| used >= USED_MIN)))
    }

    /// Rows of which those that were found several times, behind a gap, are replaced by others after them.
    fn apart(
        &mut self,
        table: &ImportedTable,
        key: &[String],
        rows: Vec<Vec<i64>>,
    ) -> Result<Vec<Vec<i64>>, SessionError> {
        let mut often: BTreeMap<Vec<i64>, usize> = BTreeMap::new();
        let places = rows.into_iter().map(|mut row| {
            let before = often.entry(row.clone()).or_default();
            *before += 1;
            let passed = (*before - 1) * STEP_ROWS;
            let at = row.pop().unwrap_or_default();
            IndexPosition { row, at, passed }
        });
        let places: Vec<IndexPosition> = places.collect();
        self.rows_at(table, key, &places)
    }

    /// The rows at these places, by the columns of `key`; where the index ends before, there is none.
    fn rows_at(
        &mut self,
        table: &ImportedTable,
        key: &[String],
        places: &[IndexPosition],
    ) -> Result<Vec<Vec<i64>>, SessionError> {
        let (of, name) = (self.name_of(table), &key[key.len() - 1]);
        let asked = places.iter().map(|IndexPosition { row, at, passed }| {
            let joins = if row.is_empty() { "where" } else { "and" };
            format!(
                "{name}, 0 from {of}{} {joins} {name} >= {at} order by {name} limit 1 offset {passed}",
                with(key, row)
            )
        });
        let found = self.each(&asked.collect::<Vec<_>>())?;
        let rows = places.iter().zip(found);
        let rows = rows.filter_map(|(place, found)| Some([&place.row[..], &[found?.0]].concat()));
        Ok(rows.collect())
    }

    /// Asks several questions for two numbers at once.
    fn each(&mut self, asked: &[String]) -> Result<Vec<Pair>, SessionError> {
        let parts = asked
            .iter()
            .enumerate()
            .map(|(number, asked)| format!("(select {number}, {asked})"));
        let parts: Vec<String> = parts.collect();
        let mut found = vec![None; asked.len()];
        if parts.is_empty() {
            return Ok(found);
        }
        self.connection
            .ask(&parts.join(" union all "), &mut |row| {
                // There may be no row, or a number beyond 64 bits with a sign.
                if let (Ok(first), Ok(second)) = (row.int(1), row.int(2))
                    && let Some(place) = found.get_mut(row.int(0)? as usize)
                {
                    *place = Some((first, second));
                }
                Ok(())
            })?;
        Ok(found)
    }

    /// A column of these rows.
    fn read(
        &mut self,
        table: &ImportedTable,
        sample: &Sample,
        place: usize,
    ) -> Result<Vec<Read>, SessionError> {
        let known = &table.columns[place];
        let (of, name) = (self.name_of(table), quoted(&known.name));
        let value = match known.kind {
            ValueKind::Bytes => format!("hex({name})"),
            _ => format!("cast({name} as char)"),
        };
        let asked = format!(
            "select if(length({name}) <= {VALUE_BYTES_MAX}, {value}, null), length({name}) from {of}"
        );
        let (key, _) = self.key_of(table);
        let asked = match (sample.rows.is_empty(), key.is_empty()) {
            (true, true) => format!("{asked} limit {FIRST_ROWS}"),
            // Else an index of that column alone may answer, from its beginning.
            (true, false) => format!("{asked} order by {} limit {FIRST_ROWS}", key.join(", ")),
            (false, _) => {
                let rows = sample.rows.iter();
                let rows = rows.map(|row| format!("({asked}{} limit 1)", with(&key, row)));
                rows.collect::<Vec<_>>().join(" union all ")
            }
        };
        let mut found = Vec::new();
        self.connection.ask(&asked, &mut |row| {
            let value = if row.is_null(0)? {
                None
            } else {
                Some(row.text(0)?)
            };
            let bytes = if row.is_null(1)? {
                None
            } else {
                Some(row.float(1)?)
            };
            found.push(Read { value, bytes });
            Ok(())
        })?;
        Ok(found)
    }
}

/// A number from 0 on, below 1: always the same one, so that an import can be repeated (SplitMix64, of Steele, Lea and
/// Flood, 2014). Were places spread evenly, values would look more different than they are.
fn chance(number: usize, level: usize) -> f64 {
    let mut mixed = ((number * 8 + level) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// The condition that a key begins so.
fn with(key: &[String], row: &[i64]) -> String {
    let parts = key
        .iter()
        .zip(row)
        .map(|(name, value)| format!("{name} = {value}"));
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(" where {}", parts.join(" and ")),
    }
}

/// A column with values as they were read, and the ends that its index tells.
fn filled(
    mut column: ImportedColumn,
    read: Vec<Read>,
    is_unique: bool,
    ends: Pair,
) -> ImportedColumn {
    let count = read.len() as f64;
    let bytes: Vec<f64> = read.iter().filter_map(|read| read.bytes).collect();
    let there = bytes.len() as f64;
    column.width = (bytes.iter().sum::<f64>() / there.max(1.0)).ceil() as u32;
    let mut often: BTreeMap<String, usize> = BTreeMap::new();
    for value in read.into_iter().filter_map(|read| read.value) {
        *often.entry(value).or_default() += 1;
    }
    let mut values: Vec<(String, usize)> = often.into_iter().collect();
    let number = |value: &str| match column.kind {
        ValueKind::Whole { .. } | ValueKind::Other => value.parse::<f64>().unwrap_or(0.0),
        ValueKind::Text | ValueKind::Uuid | ValueKind::Bytes => 0.0,
    };
    values.sort_by(|a, b| number(&a.0).total_cmp(&number(&b.0)));
    column.distinct = match (is_unique, column.distinct > 0.0) {
        (true, _) => column.rows,
        (false, true) => column.distinct,
        (false, false) => distinct(&values, column.rows * there / count),
    };
    if is_unique {
        column.bounds = values.into_iter().map(|(value, _)| value).collect();
    } else {
        for (value, times) in values {
            match times as f64 / count > COMMON {
                true => column.common.push((value, times as f64 / count)),
                // As often as it was read.
                false => column.bounds.extend(vec![value; times]),
            }
        }
        if column.bounds.is_empty() {
            column.distinct = column.common.len() as f64;
        }
    }
    let common: f64 = column.common.iter().map(|(_, share)| share).sum();
    column.rest = (there / count - common).max(0.0);
    if let (Some((low, high)), [first, .., last]) = (ends, &mut column.bounds[..]) {
        (*first, *last) = (low.to_string(), high.to_string());
    }
    if column.is_dense() && !is_unique {
        let last = column.bounds.len() - 1;
        let places = (0..=PARTS).map(|part| part * last / PARTS);
        column.bounds = places.map(|place| column.bounds[place].clone()).collect();
    }
    column
}

/// How many different values a table has, by those of some of its rows: "Duj1" of Haas and Stokes (1998), which
/// PostgreSQL's ANALYZE takes, too.
fn distinct(values: &[(String, usize)], rows: f64) -> f64 {
    let read: usize = values.iter().map(|(_, times)| times).sum();
    let once = values.iter().filter(|(_, times)| *times == 1).count();
    let (read, once, different) = (read as f64, once as f64, values.len() as f64);
    let repeated = read - once + once * read / rows.max(read).max(1.0);
    let estimate = read * different / repeated.max(f64::MIN_POSITIVE);
    estimate.clamp(different, rows.max(different))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: ValueKind, values: &[&str], is_unique: bool, ends: Pair) -> ImportedColumn {
        let column = ImportedColumn {
            name: "t.c".to_owned(),
            kind,
            type_name: "int".to_owned(),
            common: Vec::new(),
            bounds: Vec::new(),
            rest: 0.0,
            distinct: 0.0,
            rows: 1_000.0,
            width: 0,
            origin: ValueOrigin::Rows,
        };
        let read = values.iter().map(|value| Read {
            value: Some(*value)
                .filter(|value| !matches!(*value, "" | "long"))
                .map(str::to_owned),
            bytes: match *value {
                "" => None,
                "long" => Some(9_000.0),
                value => Some(value.len() as f64),
            },
        });
        filled(column, read.collect(), is_unique, ends)
    }

    const WHOLE: ValueKind = ValueKind::Whole { max: i64::MAX };

    #[test]
    fn keys_are_drawn_between_the_ends_of_their_index() {
        let values: Vec<String> = (0..50)
            .map(|number| (number * 20 + 7).to_string())
            .collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let key = of(WHOLE, &values, true, Some((1, 1_000)));
        assert_eq!(
            (key.distinct, key.rows, key.is_dense()),
            (1_000.0, 1_000.0, true)
        );
        assert_eq!(
            (key.bounds.first().unwrap(), key.bounds.last().unwrap()),
            (&"1".to_owned(), &"1000".to_owned())
        );
        let other = of(WHOLE, &values, false, Some((1, 1_000)));
        assert!(
            other.is_dense() && other.bounds.len() <= PARTS + 1,
            "{other:?}"
        );
        assert_eq!(other.bounds.last().unwrap(), "1000");
    }

    #[test]
    fn values_that_many_rows_have_are_common() {
        let states = of(
            ValueKind::Text,
            &["new", "sent", "sent", "", "x"],
            false,
            None,
        );
        let (new, sent) = (("new".to_owned(), 0.2), ("sent".to_owned(), 0.4));
        assert_eq!(states.common, [new, sent, ("x".to_owned(), 0.2)]);
        assert!(states.rest < 1e-9 && states.distinct < 20.0, "{states:?}");
        let many: Vec<String> = (0..100)
            .map(|number| (number / 2 * 10).to_string())
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let prices = of(ValueKind::Other, &many, false, None);
        assert_eq!(
            (prices.common.len(), prices.bounds.len(), prices.rest),
            (0, 100, 1.0)
        );
        // By their numbers, not by their letters.
        assert_eq!(prices.bounds[2..5], ["10", "10", "20"]);
        assert_eq!(prices.distinct, 50.0);
        let texts = of(ValueKind::Text, &["long", "long"], false, None);
        assert!(!texts.has_values() && texts.width == 9_000, "{texts:?}");
    }
}
