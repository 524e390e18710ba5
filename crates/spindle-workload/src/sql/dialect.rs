//! What differs between databases that speak SQL, as far as workloads must know.

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
    /// The type of a whole number of 64 bits.
    pub fn bigint(self) -> &'static str {
        "bigint"
    }

    /// The type of so many bytes at most.
    pub fn bytes(self, bytes_max: usize) -> String {
        match self {
            Dialect::Postgres => "bytea".to_owned(),
            Dialect::MariaDb if bytes_max <= 16_000 => format!("varbinary({bytes_max})"),
            Dialect::MariaDb => "longblob".to_owned(),
            Dialect::Sqlite => "blob".to_owned(),
        }
    }

    /// A statement as this dialect takes it, and the parameters it takes, by their numbers from 0, in the order in which it
    /// takes them. In `sql` they are written `$1`, `$2` and so on.
    ///
    /// A `$` within quotes is left alone.
    pub fn placeholders(self, sql: &str) -> (String, Vec<usize>) {
        let (mut text, mut order) = (String::with_capacity(sql.len()), Vec::new());
        let (mut rest, mut quote) = (sql.chars().peekable(), None);
        while let Some(letter) = rest.next() {
            match (quote, letter) {
                (Some(open), _) if open == letter => quote = None,
                (None, '\'' | '"') => quote = Some(letter),
                _ => {}
            }
            if letter != '$' || quote.is_some() {
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
