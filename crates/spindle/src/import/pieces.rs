//! Pieces of SQL texts that are not parsed: words, what is in quotes, and comments. `own_names` and the judges of logs
//! cut texts by them.

use spindle_workload::sql::{Dialect, continued_bytes, has_escapes_behind};

/// Whether two dashes begin a comment: in MariaDB and MySQL a space must follow.
pub fn is_comment(rest: &str, dialect: Dialect) -> bool {
    let after = rest.chars().nth(2);
    let ends = after.is_none_or(|letter| letter.is_whitespace() || letter.is_control());
    rest.starts_with("--") && (ends || dialect != Dialect::MariaDb)
}

/// Bytes up to the end of what is looked for.
pub fn until(rest: &str, what: &str) -> Option<usize> {
    rest.find(what).map(|place| place + what.len())
}

/// Whether a letter may be that of a name or another word.
pub fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || "_$@".contains(letter)
}

/// Bytes of what is quoted; a quote that is doubled does not end it, nor one behind a backslash where that counts.
pub fn quoted_bytes(text: &str, start: usize, dialect: Dialect) -> Option<usize> {
    let bytes = text.as_bytes();
    let quote = bytes[start];
    let escapes = match dialect {
        Dialect::MariaDb => quote != b'`',
        Dialect::Postgres | Dialect::Sqlite => quote == b'\'' && has_escapes_behind(&text[..start]),
    };
    let mut place = start + 1;
    loop {
        match bytes.get(place)? {
            b'\\' if escapes => place += 2,
            byte if *byte == quote && bytes.get(place + 1) == Some(&quote) => place += 2,
            byte if *byte == quote => {
                place += 1;
                let goes_on = escapes && dialect == Dialect::Postgres;
                match goes_on.then(|| continued_bytes(&text[place..])).flatten() {
                    Some(between) => place += between + 1,
                    None => return Some(place - start),
                }
            }
            _ => place += 1,
        }
    }
}

/// Bytes of a comment; PostgreSQL's may have others within them.
pub fn comment_bytes(rest: &str, dialect: Dialect) -> Option<usize> {
    if dialect == Dialect::MariaDb {
        return until(&rest[2..], "*/").map(|bytes| bytes + 2);
    }
    let (bytes, mut place, mut depth) = (rest.as_bytes(), 2, 1);
    while depth > 0 {
        match (bytes.get(place)?, bytes.get(place + 1)) {
            (b'/', Some(b'*')) => (place, depth) = (place + 2, depth + 1),
            (b'*', Some(b'/')) => (place, depth) = (place + 2, depth - 1),
            _ => place += 1,
        }
    }
    Some(place)
}
