//! What a server's statistics tell of a column, and drawing its values in the language of scripts: whole numbers that
//! lie close together are drawn between the bounds of the histogram, all else is one of the values that the statistics
//! hold.

use spindle_workload::sql::Dialect;

/// Shares are drawn out of this total.
const CHANCE: f64 = 1_000_000.0;
/// Of a column that is drawn by its values, this many at most stand in a statement.
const VALUES_MAX: usize = 1_000;
/// And no more bytes than these.
const VALUES_BYTES_MAX: usize = 32 << 10;
/// Whole numbers are drawn between the bounds when at least this share of what lies there is in use.
const DENSITY_MIN: f64 = 0.5;
/// Neighbouring parts of a histogram are one when they are about as wide.
const ALIKE: f64 = 0.25;
/// Clients that add rows keep out of each other's way by steps of this size: there may be no more of them.
pub const CLIENTS_MAX: u32 = 256;

/// What values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Whole numbers up to `max`.
    Whole {
        /// The greatest that the column holds.
        max: i64,
    },
    /// Texts.
    Text,
    /// UUIDs.
    Uuid,
    /// Bytes, which are known by their hexadecimal digits.
    Bytes,
    /// Others, which are known by their texts.
    Other,
}

/// Where values are known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueOrigin {
    /// PostgreSQL's `pg_stats`.
    Statistics,
    /// A histogram of MariaDB's.
    Histogram,
    /// Some rows of the table.
    Rows,
}

impl ValueOrigin {
    /// Which values these are, and how there would be more.
    fn about(self) -> (&'static str, &'static str) {
        match self {
            ValueOrigin::Statistics => (
                "all that the statistics hold",
                "a greater statistics target, and ANALYZE, make them more",
            ),
            ValueOrigin::Histogram => (
                "all that its histogram holds",
                "a greater histogram_size, and ANALYZE TABLE ... PERSISTENT FOR ALL, make them more",
            ),
            ValueOrigin::Rows => (
                "those of the rows that were read",
                "in MariaDB a histogram of type JSON_HB holds up to 255, which ANALYZE TABLE ... PERSISTENT FOR ALL makes",
            ),
        }
    }
}

/// What is known of a column's values.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedColumn {
    /// For people: `table.column`.
    pub name: String,
    /// What they are.
    pub kind: ValueKind,
    /// Its type, as arrays of it are cast.
    pub type_name: String,
    /// The most common values, and which share of the rows has each.
    pub common: Vec<(String, f64)>,
    /// Bounds of parts of the others that have equally many rows.
    pub bounds: Vec<String>,
    /// Which share of the rows these parts have.
    pub rest: f64,
    /// Different values, about.
    pub distinct: f64,
    /// Rows of its table, about.
    pub rows: f64,
    /// Bytes of a value, about.
    pub width: u32,
    /// Where they are known from.
    pub origin: ValueOrigin,
}

/// A value that is drawn: commands that set a variable, and what stands in the statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// `\set` commands, a line each.
    pub sets: Vec<String>,
    /// What replaces the parameter.
    pub given: String,
}

/// Which end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Everything from it on.
    From,
    /// Everything up to it.
    To,
}

/// A share, and the expression that has it.
type Leaf = (f64, String);

impl ImportedColumn {
    /// What does not show in the drawn values; `None`: nothing that matters.
    pub fn doubt(&self) -> Option<String> {
        let (name, distinct) = (&self.name, self.distinct);
        if self.is_dense() {
            let density = self.density();
            return (density < 0.9).then(|| {
                format!(
                    "{name}: of 100 drawn numbers about {:.0} find no row, as there are gaps",
                    100.0 * (1.0 - density)
                )
            });
        }
        let known = self.values().len() as f64;
        (distinct > 2.0 * known && known > 0.0).then(|| {
            let (held, remedy) = self.origin.about();
            format!(
                "{name}: {known} of about {distinct:.0} values are drawn, {held}: caches hold them sooner; {remedy}"
            )
        })
    }

    /// It has values, and they are known.
    pub fn has_values(&self) -> bool {
        !self.common.is_empty() || !self.bounds.is_empty()
    }

    /// A value as rows have them.
    pub fn any(&self, variable: &str, dialect: Dialect) -> Drawn {
        self.drawn(variable, tree(&self.leaves()), dialect)
    }

    /// Both ends of a range of about `rows` rows.
    pub fn range(&self, rows: f64, [from, to]: [&str; 2], dialect: Dialect) -> (Drawn, Drawn) {
        let per_value = (self.rows / self.distinct.max(1.0)).max(1.0);
        if self.is_dense() {
            let more = ((rows / per_value).round() as i64 - 1).max(0);
            let second = format!("\\set {to} :{from} + {more}");
            let second = Drawn {
                sets: vec![second],
                given: format!(":{to}"),
            };
            return (self.any(from, dialect), second);
        }
        let parts = self.bounds.len().saturating_sub(1);
        if parts == 0 {
            let first = self.any(from, dialect);
            let second = Drawn {
                sets: Vec::new(),
                given: first.given.clone(),
            };
            return (first, second);
        }
        let per_part = (self.rows * self.rest / parts as f64).max(1.0);
        let more = ((rows / per_part).round() as usize).clamp(1, parts);
        let before = self.common_values();
        let values = self.values();
        let more = more.min(values.len() - before - 1);
        let first = format!("random({}, {})", before + 1, values.len() - more);
        let first = self.drawn(from, first, dialect);
        let second = self.drawn(to, format!(":{from} + {more}"), dialect);
        (first, second)
    }

    /// One end of a range that has about `rows` rows, a half more or less.
    pub fn end(&self, end: End, rows: f64, variable: &str, dialect: Dialect) -> Drawn {
        let share = (rows / self.rows.max(1.0)).min(0.6);
        let parts = self.bounds.len().saturating_sub(1);
        if parts == 0 {
            return self.any(variable, dialect);
        }
        let [low, high] = match end {
            End::To => [0.5 * share, 1.5 * share],
            End::From => [1.0 - 1.5 * share, 1.0 - 0.5 * share],
        };
        let drawn = match self.whole_bounds() {
            Some(bounds) => {
                let at = |share: f64| {
                    let place = share * parts as f64;
                    let first = (place as usize).min(parts - 1);
                    let (low, high) = (bounds[first] as f64, bounds[first + 1] as f64);
                    (low + (place - first as f64) * (high - low)).round() as i64
                };
                between(at(low), at(high))
            }
            None => {
                let (before, count) = (self.common_values(), self.values().len());
                let parts = (count - before).saturating_sub(1) as f64;
                let at = |share: f64| before as i64 + 1 + (share * parts).round() as i64;
                between(at(low), at(high))
            }
        };
        self.drawn(variable, drawn, dialect)
    }

    /// A value that no row has yet, each time another; `None`: none can be made.
    pub fn fresh(&self, variable: &str, dialect: Dialect) -> Option<Drawn> {
        let next = format!("\\set client_id :client_id + {CLIENTS_MAX}");
        match self.kind {
            ValueKind::Whole { max } => {
                let common = self.common.iter().map(|(value, _)| value);
                let values = common.chain(&self.bounds);
                let values: Vec<i64> = values.filter_map(|value| value.parse().ok()).collect();
                let last = values.iter().max().copied().unwrap_or(0).max(0);
                let first = values.iter().min().copied().unwrap_or(0).max(0);
                // The statistics have not seen every row.
                let begin = last.checked_add(last - first)?.checked_add(1_000)?;
                (begin <= max / 2).then(|| Drawn {
                    sets: vec![format!("\\set {variable} {begin} + :client_id"), next],
                    given: format!(":{variable}"),
                })
            }
            ValueKind::Uuid => Some(Drawn {
                sets: Vec::new(),
                given: match dialect {
                    Dialect::MariaDb => "uuid()".to_owned(),
                    Dialect::Postgres | Dialect::Sqlite => "gen_random_uuid()".to_owned(),
                },
            }),
            ValueKind::Text => Some(Drawn {
                sets: vec![format!("\\set {variable} :client_id"), next],
                given: match dialect {
                    Dialect::MariaDb => format!("concat('spindle ', cast(:{variable} as char))"),
                    Dialect::Postgres | Dialect::Sqlite => {
                        format!("('spindle ' || cast(:{variable} as text))")
                    }
                },
            }),
            ValueKind::Bytes => (self.width >= 16).then(|| Drawn {
                sets: Vec::new(),
                given: "unhex(md5(uuid()))".to_owned(),
            }),
            ValueKind::Other => None,
        }
    }

    /// A text as long as those of the column, where the statistics hold none.
    pub fn filler(&self, variable: &str) -> Drawn {
        let width = self.width.max(1);
        Drawn {
            sets: vec![format!("\\set {variable} random(1, 2147483647)")],
            given: format!(
                "substring(repeat(md5(cast(:{variable} as char(10))), {}), 1, {width})",
                width / 32 + 1
            ),
        }
    }

    fn drawn(&self, variable: &str, expression: String, dialect: Dialect) -> Drawn {
        let chance = expression.contains(":chance");
        let chance = chance.then(|| format!("\\set chance random(1, {CHANCE:.0})"));
        let set = format!("\\set {variable} {expression}");
        let given = match self.kind {
            ValueKind::Whole { .. } => format!(":{variable}"),
            _ => {
                let values = self.values();
                let written = |value: &&str| match self.kind {
                    ValueKind::Bytes => format!("x'{value}'"),
                    _ => literal(value, dialect),
                };
                let values: Vec<String> = values.iter().map(written).collect();
                let values = values.join(", ");
                match dialect {
                    Dialect::MariaDb => format!("elt(:{variable}, {values})"),
                    Dialect::Postgres | Dialect::Sqlite => {
                        format!("(ARRAY[{values}]::{}[])[:{variable}]", self.type_name)
                    }
                }
            }
        };
        Drawn {
            sets: chance.into_iter().chain([set]).collect(),
            given,
        }
    }

    /// The bounds, when they are whole numbers.
    fn whole_bounds(&self) -> Option<Vec<i64>> {
        let is_whole = matches!(self.kind, ValueKind::Whole { .. });
        let bounds = self.bounds.iter().map(|bound| bound.parse().ok());
        bounds.collect::<Option<Vec<i64>>>().filter(|_| is_whole)
    }

    /// Which share of the numbers between the bounds is in use.
    fn density(&self) -> f64 {
        let bounds = self.whole_bounds().unwrap_or_default();
        match (bounds.first(), bounds.last()) {
            (Some(first), Some(last)) if last > first => {
                let values = (self.distinct - self.common.len() as f64).max(0.0);
                (values / (*last as f64 - *first as f64 + 1.0)).min(1.0)
            }
            _ => 0.0,
        }
    }

    /// Whether numbers are drawn between the bounds.
    pub fn is_dense(&self) -> bool {
        self.density() >= DENSITY_MIN
    }

    /// How many of [`ImportedColumn::values`] are common ones; they come first.
    fn common_values(&self) -> usize {
        self.common.len().min(VALUES_MAX / 2)
    }

    /// The values that can stand in a statement: common ones, then bounds.
    fn values(&self) -> Vec<&str> {
        let common = self.common.iter().map(|(value, _)| value.as_str());
        let mut values: Vec<&str> = common.take(self.common_values()).collect();
        let bytes: usize = self.bounds.iter().map(String::len).sum();
        let room = VALUES_MAX - values.len();
        let step = (self.bounds.len().div_ceil(room)).max(bytes.div_ceil(VALUES_BYTES_MAX));
        values.extend(self.bounds.iter().step_by(step.max(1)).map(String::as_str));
        values
    }

    /// What is drawn, and how often.
    fn leaves(&self) -> Vec<Leaf> {
        let is_whole = matches!(self.kind, ValueKind::Whole { .. });
        let values = self.values();
        let common = self.common_values();
        let taken = self.common.iter().take(common).enumerate();
        let mut places: Vec<(i64, f64)> = taken
            .filter_map(|(place, (value, share))| match is_whole {
                true => Some((value.parse().ok()?, *share)),
                false => Some((place as i64 + 1, *share)),
            })
            .collect();
        places.sort_by_key(|(place, _)| *place);
        let mut leaves = runs(&places);
        if self.is_dense() {
            leaves.extend(self.parts());
        } else if values.len() > common {
            let others = &values[common..];
            match is_whole {
                true => {
                    let share = self.rest / others.len() as f64;
                    leaves.extend(others.iter().map(|value| (share, (*value).to_owned())));
                }
                false => leaves.push((self.rest, between(common as i64 + 1, values.len() as i64))),
            }
        }
        leaves
    }

    /// The parts of the histogram as ranges of numbers; neighbours of about the same width are one.
    fn parts(&self) -> Vec<Leaf> {
        let bounds = self.whole_bounds().unwrap_or_default();
        let share = self.rest / (bounds.len().max(2) - 1) as f64;
        let mut found: Vec<Leaf> = Vec::new();
        let mut first = 0;
        for last in 1..bounds.len() {
            let width = |at: usize| bounds[at].abs_diff(bounds[at - 1]) as f64;
            let count = (last - first) as f64;
            let mean = bounds[last].abs_diff(bounds[first]) as f64 / count;
            let goes_on =
                bounds.len() > last + 1 && (width(last + 1) - mean).abs() <= ALIKE * mean + 1.0;
            if !goes_on {
                // A bound belongs to the part that it ends.
                let begin = bounds[first] + i64::from(first > 0);
                let expression = between(begin.min(bounds[last]), bounds[last]);
                found.push((share * count, expression));
                first = last;
            }
        }
        found
    }
}

/// Numbers with their shares; neighbours of the same share are one.
fn runs(places: &[(i64, f64)]) -> Vec<Leaf> {
    let is_next = |a: &(i64, f64), b: &(i64, f64)| a.0.checked_add(1) == Some(b.0) && a.1 == b.1;
    let runs = places.chunk_by(is_next).map(|run| {
        let (first, last) = (run[0], run[run.len() - 1]);
        (first.1 * run.len() as f64, between(first.0, last.0))
    });
    runs.collect()
}

fn between(low: i64, high: i64) -> String {
    match low < high {
        true => format!("random({low}, {high})"),
        false => low.to_string(),
    }
}

/// An expression that takes one of the leaves by `:chance`.
fn tree(leaves: &[Leaf]) -> String {
    let all: f64 = leaves.iter().map(|(share, _)| share).sum();
    let mut sum = 0.0;
    let ends: Vec<(f64, &str)> = leaves
        .iter()
        .map(|(share, expression)| {
            sum += share / all.max(f64::MIN_POSITIVE);
            ((sum * CHANCE).round(), expression.as_str())
        })
        .collect();
    branch(&ends)
}

fn branch(ends: &[(f64, &str)]) -> String {
    match ends {
        [] => "0".to_owned(),
        [(_, expression)] => (*expression).to_owned(),
        _ => {
            let (low, high) = ends.split_at(ends.len() / 2);
            let end = low[low.len() - 1].0;
            format!(
                "case when :chance <= {end:.0} then {} else {} end",
                branch(low),
                branch(high)
            )
        }
    }
}

/// A text as SQL has it, in which nothing looks like a variable.
pub fn literal(text: &str, dialect: Dialect) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    let mut escapes = false;
    for letter in text.chars() {
        match letter {
            '\'' => written.push_str("''"),
            '\\' => {
                escapes = true;
                written.push_str("\\\\");
            }
            ':' if dialect == Dialect::Postgres => {
                escapes = true;
                written.push_str("\\x3a");
            }
            '\n' => {
                escapes = true;
                written.push_str("\\n");
            }
            letter => written.push(letter),
        }
    }
    match escapes && dialect == Dialect::Postgres {
        true => format!("E'{written}'"),
        false => format!("'{written}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(
        kind: ValueKind,
        common: &[(&str, f64)],
        bounds: &[&str],
        distinct: f64,
    ) -> ImportedColumn {
        let share: f64 = common.iter().map(|(_, share)| share).sum();
        ImportedColumn {
            name: "t.c".to_owned(),
            kind,
            type_name: "text".to_owned(),
            common: common
                .iter()
                .map(|(value, share)| ((*value).to_owned(), *share))
                .collect(),
            bounds: bounds.iter().map(|bound| (*bound).to_owned()).collect(),
            rest: 1.0 - share,
            distinct,
            rows: 1000.0,
            width: 10,
            origin: ValueOrigin::Statistics,
        }
    }

    const WHOLE: ValueKind = ValueKind::Whole { max: i64::MAX };

    #[test]
    fn numbers_that_lie_close_are_drawn_between_bounds() {
        let even = column(WHOLE, &[], &["1", "251", "500", "749", "1000"], 1000.0);
        assert_eq!(
            even.any("a", Dialect::Postgres).sets,
            ["\\set a random(1, 1000)"]
        );
        assert_eq!(even.doubt(), None);
        let uneven = column(WHOLE, &[("7", 0.5)], &["1", "10", "1000"], 1000.0);
        assert_eq!(
            uneven.any("a", Dialect::Postgres).sets,
            [
                "\\set chance random(1, 1000000)",
                "\\set a case when :chance <= 500000 then 7 else case when :chance <= 750000 then random(1, 10) \
                 else random(11, 1000) end end"
            ]
        );
        let (from, to) = even.range(20.0, ["a", "b"], Dialect::Postgres);
        assert_eq!(
            (from.given, to.sets),
            (":a".to_owned(), vec!["\\set b :a + 19".to_owned()])
        );
        let last = even.end(End::From, 100.0, "a", Dialect::Postgres);
        assert_eq!(last.sets, ["\\set a random(849, 950)"]);
    }

    #[test]
    fn other_values_are_those_that_the_statistics_hold() {
        let sparse = column(WHOLE, &[], &["1", "50000", "90000"], 3.0);
        let set = &sparse.any("a", Dialect::Postgres).sets[1];
        assert_eq!(
            set,
            "\\set a case when :chance <= 333333 then 1 else case when :chance <= 666667 then 50000 else 90000 end end"
        );
        let texts = column(
            ValueKind::Text,
            &[("it's", 0.9)],
            &["a:b", "c\\d", "e"],
            400.0,
        );
        let drawn = texts.any("a", Dialect::Postgres);
        assert_eq!(
            drawn.given,
            "(ARRAY['it''s', E'a\\x3ab', E'c\\\\d', 'e']::text[])[:a]"
        );
        assert_eq!(
            drawn.sets[1],
            "\\set a case when :chance <= 900000 then 1 else random(2, 4) end"
        );
        assert!(texts.doubt().unwrap().contains("4 of about 400 values"));
        let (from, to) = texts.range(30.0, ["a", "b"], Dialect::MariaDb);
        assert_eq!(
            (&from.sets[0], &to.sets[0]),
            (
                &"\\set a random(2, 3)".to_owned(),
                &"\\set b :a + 1".to_owned()
            )
        );
        assert_eq!(to.given, "elt(:b, 'it''s', 'a:b', 'c\\\\d', 'e')");
    }

    #[test]
    fn rows_that_are_added_have_keys_of_their_own_client() {
        let keys = column(WHOLE, &[], &["1", "500", "1000"], 1000.0);
        assert_eq!(
            keys.fresh("a", Dialect::Postgres).unwrap().sets,
            [
                "\\set a 2999 + :client_id",
                "\\set client_id :client_id + 256"
            ]
        );
        let small = column(ValueKind::Whole { max: 32_767 }, &[], &["1", "30000"], 9.0);
        assert_eq!(small.fresh("a", Dialect::Postgres), None);
    }
}
