//! Names that say the session's own database: `shop.t` of a session that works in `shop`. A replay and a mix work in a
//! database of another name, so such a name loses its first part. The recorder of logs, `exported` and `mariadb` ask.

use std::borrow::Cow;

use spindle_workload::sql::Dialect;

use super::pieces::{comment_bytes, is_comment, is_word, quoted_bytes, until};

/// A part of a text that counts.
struct Token {
    begin: usize,
    end: usize,
    /// A name or another word, without quotes; `None`: a sign.
    word: Option<Box<str>>,
    is_quoted: bool,
}

/// The text without `database` before names of MariaDB and MySQL. Where that may be the name of something else, too,
/// the text stays as it is.
pub fn without_own<'a>(text: &'a str, database: &str, dialect: Dialect) -> Cow<'a, str> {
    let may_have = dialect == Dialect::MariaDb && !database.is_empty() && text.contains(database);
    let found = may_have.then(|| places(text, database)).flatten();
    let Some(found) = found.filter(|found| !found.is_empty()) else {
        return Cow::Borrowed(text);
    };
    let (mut written, mut done) = (String::with_capacity(text.len()), 0);
    for place in found {
        written.push_str(&text[done..place.begin]);
        match place.bare {
            // Behind a dot any word is a name.
            Some(name) => written.extend(["`", name, "`"]),
            None => written.push_str(&text[place.name..place.end]),
        }
        done = place.end;
    }
    written.push_str(&text[done..]);
    Cow::Owned(written)
}

/// A name with the database before it.
struct QualifiedName<'a> {
    begin: usize,
    /// Where the name behind the dot begins.
    name: usize,
    end: usize,
    /// That name, if it is not in quotes.
    bare: Option<&'a str>,
}

/// Where the database stands before a name; `None`: it stands elsewhere, too, or the text does not end as it should.
fn places<'a>(text: &'a str, database: &str) -> Option<Vec<QualifiedName<'a>>> {
    let tokens = tokens(text)?;
    let is_dot =
        |token: Option<&Token>| token.is_some_and(|token| &text[token.begin..token.end] == ".");
    let mut found = Vec::new();
    for (number, token) in tokens.iter().enumerate() {
        if token.word.as_deref() != Some(database) {
            continue;
        }
        let is_part = number > 0 && is_dot(tokens.get(number - 1));
        let name = tokens.get(number + 2).filter(|name| name.word.is_some());
        match name.filter(|_| !is_part && is_dot(tokens.get(number + 1))) {
            None => return None,
            Some(name) => found.push(QualifiedName {
                begin: token.begin,
                name: name.begin,
                end: name.end,
                bare: (!name.is_quoted).then(|| &text[name.begin..name.end]),
            }),
        }
    }
    Some(found)
}

/// Names, words and signs; texts in quotes are signs, and comments are nothing.
fn tokens(text: &str) -> Option<Vec<Token>> {
    let dialect = Dialect::MariaDb;
    let mut tokens = Vec::new();
    let mut place = 0;
    while let Some(letter) = text[place..].chars().next() {
        let rest = &text[place..];
        let (length, word) = match letter {
            '`' => {
                let length = quoted_bytes(text, place, dialect)?;
                (length, Some(rest[1..length - 1].replace("``", "`")))
            }
            '\'' | '"' => (quoted_bytes(text, place, dialect)?, None),
            '-' if is_comment(rest, dialect) => {
                place += until(rest, "\n").unwrap_or(rest.len());
                continue;
            }
            '#' => {
                place += until(rest, "\n").unwrap_or(rest.len());
                continue;
            }
            '/' if rest.starts_with("/*") => {
                place += comment_bytes(rest, dialect)?;
                continue;
            }
            letter if letter.is_whitespace() => {
                place += letter.len_utf8();
                continue;
            }
            letter if is_word(letter) => {
                let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
                (end, Some(rest[..end].to_owned()))
            }
            letter => (letter.len_utf8(), None),
        };
        tokens.push(Token {
            begin: place,
            end: place + length,
            word: word.map(String::into_boxed_str),
            is_quoted: letter == '`',
        });
        place += length;
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> Cow<'_, str> {
        without_own(text, "shop", Dialect::MariaDb)
    }

    #[test]
    fn the_own_database_goes_from_names_alone() {
        for (text, without) in [
            ("select * from shop.t", "select * from `t`"),
            (
                "insert into `shop`.`t`(a) values ('shop.t')",
                "insert into `t`(a) values ('shop.t')",
            ),
            (
                "update shop . t set shop.t.a = \"shop.t\"",
                "update `t` set `t`.a = \"shop.t\"",
            ),
            (
                "select x.a from shop.order x, other.shop_t /* shop */ -- shop.t\n where shop.f(1)",
                "select x.a from `order` x, other.shop_t /* shop */ -- shop.t\n where `f`(1)",
            ),
            (
                "delete from shop.`a``b` where c = 'it\\'s shop.t'",
                "delete from `a``b` where c = 'it\\'s shop.t'",
            ),
            (
                "create table shop.shop_2 (a int)",
                "create table `shop_2` (a int)",
            ),
        ] {
            assert_eq!(rewritten(text), without, "{text}");
        }
    }

    #[test]
    fn what_may_be_another_name_stays() {
        for text in [
            "select shop.id from shop.shop",
            "select shop.id from shop join t on shop.a = t.b",
            "select a from t where b = 'shop.t'",
            "select * from other.shop",
            "select * from workshop.t",
            "select * from Shop.t",
            "select shop.* from t shop",
            "select * from shop.t where a = 'cut",
        ] {
            assert!(matches!(rewritten(text), Cow::Borrowed(_)), "{text}");
        }
        assert_eq!(
            without_own("select shop.t", "shop", Dialect::Postgres),
            "select shop.t"
        );
        assert_eq!(without_own("select .t", "", Dialect::MariaDb), "select .t");
    }
}
