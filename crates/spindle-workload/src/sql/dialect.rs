//! What differs between databases that speak SQL, as far as workloads must know.
//!
//! Exact numbers, such as amounts of money, are `numeric` and [`Value::Decimal`] where a database has them. SQLite,
//! which would make floats of them, keeps whole numbers of the last place instead (cents): sums and comparisons are the
//! same, and no workload multiplies or divides them in SQL.

use super::connection::SqlRow;
use super::value::Value;
use crate::session::SessionError;

/// What a database speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL, and what speaks its protocol.
    Postgres,
    /// MariaDB and MySQL.
    MariaDb,
    /// SQLite.
    Sqlite,
}

impl Dialect {
    /// Whether procedures can be stored.
    pub fn has_procedures(self) -> bool {
        self != Dialect::Sqlite
    }

    /// The type of a whole number of 64 bits.
    pub fn bigint(self) -> &'static str {
        "bigint"
    }

    /// The type of this many bytes at most.
    pub fn bytes(self, bytes_max: usize) -> String {
        match self {
            Dialect::Postgres => "bytea".to_owned(),
            Dialect::MariaDb if bytes_max <= 16_000 => format!("varbinary({bytes_max})"),
            Dialect::MariaDb => "longblob".to_owned(),
            Dialect::Sqlite => "blob".to_owned(),
        }
    }

    /// The type of an exact number of this many digits, `places` of them behind the point.
    pub fn exact_type(self, digits: u8, places: u8) -> String {
        match self {
            Dialect::Postgres | Dialect::MariaDb => format!("numeric({digits}, {places})"),
            Dialect::Sqlite => "bigint".to_owned(),
        }
    }

    /// An exact number on its way into a column or a parameter: `digits` of it, `places` behind the point.
    pub fn exact(self, digits: i64, places: u8) -> Value<'static> {
        match self {
            Dialect::Postgres | Dialect::MariaDb => Value::Decimal {
                digits,
                scale: places,
            },
            Dialect::Sqlite => Value::Int(digits),
        }
    }

    /// The digits of an exact number with `places` places, as [`Dialect::exact`] put them in.
    ///
    /// # Errors
    /// [`SessionError::Failed`]: it is none.
    pub fn read_exact(
        self,
        row: &dyn SqlRow,
        column: usize,
        places: u8,
    ) -> Result<i64, SessionError> {
        match self {
            Dialect::Postgres | Dialect::MariaDb => row.decimal(column, places),
            Dialect::Sqlite => row.int(column),
        }
    }

    /// The type of a moment.
    pub fn moment_type(self) -> &'static str {
        match self {
            Dialect::Postgres | Dialect::Sqlite => "timestamp",
            Dialect::MariaDb => "datetime",
        }
    }

    /// What locks the rows that a select finds. SQLite has one lock for all.
    pub fn for_update(self) -> &'static str {
        match self {
            Dialect::Postgres | Dialect::MariaDb => " for update",
            Dialect::Sqlite => "",
        }
    }

    /// Whether statements can be sent before the answers to those before have come.
    pub fn has_pipelines(self) -> bool {
        self == Dialect::Postgres
    }

    /// Whether an update can say what it has changed (`returning`).
    pub fn updates_return(self) -> bool {
        self != Dialect::MariaDb
    }

    /// Makes a table whose rows have a key. InnoDB, and SQLite where the key is one whole number, keep rows in it: it
    /// must be there before them. Where it need not be, [`Dialect::add_key`] makes it later, which is faster.
    pub fn create_table(self, name: &str, columns: &str, key: &str) -> String {
        match self.keeps_rows_in(key) {
            true => format!("create table {name} ({columns}, primary key ({key}))"),
            false => format!("create table {name} ({columns})"),
        }
    }

    /// Makes the key of a table after its rows are loaded, unless they are kept in it.
    pub fn add_key(self, name: &str, key: &str) -> Option<String> {
        match self {
            _ if self.keeps_rows_in(key) => None,
            Dialect::Sqlite => Some(format!("create unique index {name}_key on {name} ({key})")),
            _ => Some(format!("alter table {name} add primary key ({key})")),
        }
    }

    fn keeps_rows_in(self, key: &str) -> bool {
        match self {
            Dialect::Postgres => false,
            Dialect::MariaDb => true,
            Dialect::Sqlite => !key.contains(','),
        }
    }

    /// Rows of parameters, from `$first` on, as a table called `given`; each column has its name and its type.
    pub fn given_rows(self, columns: &[(&str, &str)], first: usize, rows: usize) -> String {
        let row = |number: usize| -> String {
            let column = |(place, (name, of_type)): (usize, &(&str, &str))| {
                let parameter = first + number * columns.len() + place;
                match (self, number) {
                    (Dialect::Postgres, 0) => format!("${parameter}::{of_type}"),
                    (Dialect::Postgres, _) => format!("${parameter}"),
                    (_, 0) => format!("${parameter} as {name}"),
                    _ => format!("${parameter}"),
                }
            };
            let values: Vec<String> = columns.iter().enumerate().map(column).collect();
            match self {
                Dialect::Postgres => format!("({})", values.join(", ")),
                Dialect::MariaDb | Dialect::Sqlite => format!("select {}", values.join(", ")),
            }
        };
        let rows: Vec<String> = (0..rows).map(row).collect();
        match self {
            Dialect::Postgres => {
                let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
                let (rows, names) = (rows.join(", "), names.join(", "));
                format!("(values {rows}) as given ({names})")
            }
            Dialect::MariaDb | Dialect::Sqlite => {
                format!("({}) as given", rows.join(" union all "))
            }
        }
    }

    /// Changes the rows of a table that match rows of [`Dialect::given_rows`].
    pub fn update_from(self, table: &str, set: &str, given: &str, matches: &str) -> String {
        match self {
            Dialect::Postgres | Dialect::Sqlite => {
                format!("update {table} set {set} from {given} where {matches}")
            }
            Dialect::MariaDb => format!("update {table} join {given} on {matches} set {set}"),
        }
    }

    /// A statement as this dialect takes it, and the parameters it takes, by their numbers from 0, in the order in
    /// which it takes them. In `sql` they are written `$1`, `$2` and so on.
    ///
    /// A `$` within quotes or a name is left alone.
    pub fn placeholders(self, sql: &str) -> (String, Vec<usize>) {
        let (mut text, mut order) = (String::with_capacity(sql.len()), Vec::new());
        let (mut rest, mut closes) = (sql.chars().peekable(), None);
        while let Some(letter) = rest.next() {
            match closes {
                Some(end) if end == letter => closes = None,
                None => closes = self.closes(letter),
                Some(_) => {}
            }
            let is_in_name = |before: char| before.is_alphanumeric() || matches!(before, '_' | '$');
            if letter != '$' || closes.is_some() || text.ends_with(is_in_name) {
                text.push(letter);
                continue;
            }
            let mut number = 0;
            while let Some(digit) = rest.peek().and_then(|letter| letter.to_digit(10)) {
                number = number * 10 + digit as usize;
                rest.next();
            }
            if number == 0 {
                text.push('$');
                continue;
            }
            match self {
                Dialect::MariaDb => {
                    text.push('?');
                    order.push(number - 1);
                }
                Dialect::Postgres | Dialect::Sqlite => {
                    let sign = if self == Dialect::Postgres { '$' } else { '?' };
                    text.push_str(&format!("{sign}{number}"));
                    if order.len() < number {
                        order.extend(order.len()..number);
                    }
                }
            }
        }
        (text, order)
    }

    /// What closes the quotes that a letter opens, if it does.
    fn closes(self, letter: char) -> Option<char> {
        match (letter, self) {
            ('\'' | '"', _) | ('`', Dialect::MariaDb | Dialect::Sqlite) => Some(letter),
            ('[', Dialect::Sqlite) => Some(']'),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_parameters_are_a_table_in_each_dialect() {
        let given = |dialect: Dialect| dialect.given_rows(&[("k", "integer"), ("v", "text")], 2, 2);
        assert_eq!(
            given(Dialect::Postgres),
            "(values ($2::integer, $3::text), ($4, $5)) as given (k, v)"
        );
        let selects = "(select $2 as k, $3 as v union all select $4, $5) as given";
        assert_eq!(given(Dialect::MariaDb), selects);
        assert_eq!(given(Dialect::Sqlite), selects);
    }

    #[test]
    fn what_looks_like_a_parameter_within_quotes_or_a_name_is_none() {
        let of = |dialect: Dialect, sql: &str| dialect.placeholders(sql);
        let same = |sql: &str| (sql.to_owned(), Vec::new());
        for sql in ["select `a$1`", "select d$1, \"e$1\"", "select '$1$2'"] {
            assert_eq!(of(Dialect::MariaDb, sql), same(sql));
            assert_eq!(of(Dialect::Sqlite, sql), same(sql));
        }
        assert_eq!(of(Dialect::Sqlite, "select [a$1]"), same("select [a$1]"));
        let array = ("select a[$1]".to_owned(), vec![0]);
        assert_eq!(of(Dialect::Postgres, "select a[$1]"), array);
        let beside = ("select 'a'?".to_owned(), vec![0]);
        assert_eq!(of(Dialect::MariaDb, "select 'a'$1"), beside);
    }

    #[test]
    fn parameters_are_written_as_each_dialect_wants_them() {
        let sql = "update t set a = $2, b = b + $2, c = '$3' where k = $1";
        assert_eq!(
            Dialect::Postgres.placeholders(sql),
            (sql.to_owned(), vec![0, 1])
        );
        assert_eq!(
            Dialect::Sqlite.placeholders(sql),
            (
                "update t set a = ?2, b = b + ?2, c = '$3' where k = ?1".to_owned(),
                vec![0, 1]
            )
        );
        assert_eq!(
            Dialect::MariaDb.placeholders(sql),
            (
                "update t set a = ?, b = b + ?, c = '$3' where k = ?".to_owned(),
                vec![1, 1, 0]
            )
        );
    }
}
