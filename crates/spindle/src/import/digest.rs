//! Digests of MariaDB and MySQL as SQL again. A digest has `?` for each constant and cuts lists of constants short; its
//! words stand apart, and of words that mean the same it takes one (`sql/sql_digest.cc` of their sources). What it has
//! forgotten is restored from the columns of the table and from the rows of a call, or the statement is left out. Only
//! `mix` calls it.

use std::borrow::Cow;

use super::error::LeftOutStatement;
use super::mix::Counted;
use super::statement::{PARAMETERS_MAX, TEXT_BYTES_MAX};
use super::table::Tables;
use spindle_text::quantity::size;

/// A list of constants.
const LIST: &str = "?, ...";
/// A row of several constants, and several such rows.
const ROW: &str = "(...)";
const ROWS: &str = "(...) /* , ... */";
/// A constant in brackets, and several of them.
const ONE: &str = "(?)";
const ONES: &str = "(?) /* , ... */";
/// A constant in hexadecimal digits, and others that MariaDB has no word for.
const UNKNOWN: &str = "(unknown)";
/// The longest come first.
const LISTS: [&str; 5] = [ROWS, ONES, ROW, ONE, LIST];
/// What a table's name follows.
const BEFORE_TABLES: [&str; 6] = ["FROM", "JOIN", "STRAIGHT_JOIN", "INTO", "REPLACE", "UPDATE"];
/// Functions that are written without brackets, too, and then have the name of one that is not.
const WITHOUT_BRACKETS: [&str; 3] = ["CURDATE", "CURTIME", "NOW"];
/// A sign behind one of these belongs to the constant.
const COMPARISONS: [&str; 7] = ["=", "<", ">", "<=", ">=", "!=", "<=>"];
/// What may stand before a constant to say its type.
const TYPES: [&str; 3] = ["DATE", "TIME", "TIMESTAMP"];

/// A digest as SQL, with a parameter for each constant.
///
/// # Errors
/// Why the statement is left out.
pub fn restored(counted: &Counted, tables: &mut dyn Tables) -> Result<String, LeftOutStatement> {
    if counted.text.len() > TEXT_BYTES_MAX {
        let most = size(TEXT_BYTES_MAX as u64);
        return Err(LeftOutStatement::Statement(
            format!("it is longer than {most}").into(),
        ));
    }
    let words = words(&counted.text);
    if words.last() == Some(&"...") {
        return Err(LeftOutStatement::Statement(
            "the server has cut its text: set max_digest_length and performance_schema_max_digest_length to more, and \
             restart it"
                .into(),
        ));
    }
    let rows = counted.rows_of_call().found.round().max(1.0) as usize;
    let mut restoring = Restoring {
        words: &words,
        at: 0,
        depth: 0,
        written: String::with_capacity(counted.text.len()),
        tables,
    };
    let adds = matches!(words.first(), Some(&("INSERT" | "REPLACE")));
    while restoring.word(0).is_some() {
        let opens_rows = adds && restoring.depth == 0 && restoring.is_before_rows();
        restoring.next()?;
        if opens_rows {
            restoring.rows(rows)?;
        }
    }
    Ok(restoring.written)
}

/// The words of a digest; each name in quotes, and each list that is cut short, is one.
fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let list = LISTS.iter().find(|list| rest.starts_with(**list));
        let length = match (list, rest.strip_prefix('`')) {
            (Some(list), _) => list.len(),
            (None, Some(name)) => name.find('`').map_or(rest.len(), |end| end + 2),
            (None, None) => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        let (word, behind) = rest.split_at(length);
        found.push(word);
        rest = behind.trim_start();
    }
    found
}

fn forgotten(list: &str) -> LeftOutStatement {
    LeftOutStatement::Statement(
        format!("how long a list in it is, {list:?}, the server does not tell").into(),
    )
}

fn is_bare(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Constants as parameters, with commas between them.
fn parameters(count: usize) -> String {
    vec!["?"; count].join(", ")
}

struct Restoring<'a> {
    words: &'a [&'a str],
    at: usize,
    /// Brackets that are open.
    depth: usize,
    written: String,
    tables: &'a mut dyn Tables,
}

impl<'a> Restoring<'a> {
    /// The word this many places from here.
    fn word(&self, places: usize) -> Option<&'a str> {
        self.words.get(self.at + places).copied()
    }

    fn before(&self) -> &'a str {
        match self.at {
            0 => "",
            at => self.words[at - 1],
        }
    }

    fn write(&mut self, word: &str) {
        // Behind a space a bracket would not be that of a function.
        let joins = word.starts_with('(') && self.at > 0 && is_bare(self.before());
        if !self.written.is_empty() && !joins {
            self.written.push(' ');
        }
        self.written.push_str(word);
        self.at += 1;
    }

    /// Whether rows that are added follow this word.
    fn is_before_rows(&self) -> bool {
        let opens = matches!(self.word(0), Some("VALUES" | "VALUE"));
        let follows = self.word(1).is_some_and(|word| word.starts_with('('));
        opens && follows && !self.words[..self.at].contains(&"ON")
    }

    /// The next word, as SQL has it.
    fn next(&mut self) -> Result<(), LeftOutStatement> {
        let word = self.words[self.at];
        let follows = self.word(1).unwrap_or_default();
        let before = self.before();
        match word {
            "(" => self.depth += 1,
            ")" => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        let written: Cow<'_, str> = match word {
            ROW if before == "IN" => ONE.into(),
            LIST if before == "LIMIT" || self.is_told() => parameters(2).into(),
            LIST | ROW | ROWS | ONES => return Err(forgotten(word)),
            "DISTINCTROW" => "DISTINCT".into(),
            UNKNOWN => "?".into(),
            "SYSTEM_USER" if BEFORE_TABLES.contains(&before) || !follows.starts_with('(') => {
                "`user`".into()
            }
            "-" | "+" if COMPARISONS.contains(&before) && follows == "?" => {
                self.at += 1;
                "?".into()
            }
            _ if TYPES.contains(&word) && follows == "?" => {
                self.at += 1;
                "?".into()
            }
            _ if WITHOUT_BRACKETS.contains(&word) && !follows.starts_with('(') => {
                format!("{word}()").into()
            }
            _ if WITHOUT_BRACKETS.contains(&word) && follows == ONE => {
                self.at += 1;
                format!("{word}()").into()
            }
            _ => match (
                word.strip_prefix("SQL_TSI_"),
                BEFORE_TABLES.contains(&before),
            ) {
                (Some(unit), _) => unit.into(),
                (None, true) => self.table_name(word)?.map_or(word.into(), Cow::Owned),
                (None, false) => word.into(),
            },
        };
        self.write(&written);
        Ok(())
    }

    /// Whether constants here are told back.
    fn is_told(&self) -> bool {
        let is_of_list =
            |word: &&&str| matches!(**word, "SELECT" | "FROM" | "WHERE" | "LIMIT" | "BY");
        let last = self.words[..self.at].iter().rev().find(is_of_list);
        self.depth == 0 && last == Some(&"SELECT")
    }

    /// The name of a table in quotes, where the digest has taken it for a keyword: those are in capitals.
    fn table_name(&mut self, word: &str) -> Result<Option<String>, LeftOutStatement> {
        let name = word.trim_matches('`');
        let is_of_word = |letter: char| letter.is_ascii_uppercase() || letter == '_';
        if !name.chars().all(is_of_word) {
            return Ok(None);
        }
        let found = self.tables.table(&[name.to_owned()])?;
        Ok(found.map(|table| quoted(&table.name)))
    }

    /// The rows of an INSERT, as many as are added by a call.
    fn rows(&mut self, rows: usize) -> Result<(), LeftOutStatement> {
        loop {
            match self.word(0) {
                Some(word @ (ROW | ROWS | ONE | ONES)) => {
                    let columns = match word {
                        ONE | ONES => 1,
                        _ => self.columns()?,
                    };
                    let count = match word {
                        ROW | ONE => 1,
                        _ => rows.max(2),
                    };
                    if columns * count > PARAMETERS_MAX {
                        return Err(LeftOutStatement::Statement(
                            format!("it adds {count} rows at once, which are more values than a script holds").into(),
                        ));
                    }
                    let row = format!("({})", parameters(columns));
                    self.write(&vec![row; count].join(", "));
                }
                Some("(") => self.row()?,
                _ => return Ok(()),
            }
            if self.word(0) != Some(",") {
                return Ok(());
            }
            self.write(",");
        }
    }

    /// A row of which not all constants are one list.
    fn row(&mut self) -> Result<(), LeftOutStatement> {
        let words = &self.words[self.at..];
        let (mut depth, mut values, mut lists, mut length) = (0, 1, 0, 0);
        for word in words {
            match *word {
                "(" => depth += 1,
                ")" => depth -= 1,
                "," if depth == 1 => values += 1,
                LIST if depth == 1 => lists += 1,
                _ => {}
            }
            length += 1;
            if depth == 0 {
                break;
            }
        }
        let is_constant = |word: &&str| matches!(*word, "?" | "," | LIST | UNKNOWN);
        if lists > 0 && length > 2 && words[1..length - 1].iter().all(is_constant) {
            let row = format!("({})", parameters(self.columns()?));
            self.write(&row);
            self.at += length - 1;
            return Ok(());
        }
        let listed = match lists {
            0 => 0,
            1 => (self.columns()? + 1).saturating_sub(values),
            _ => return Err(forgotten(LIST)),
        };
        let depth = self.depth;
        loop {
            match self.word(0) {
                Some(LIST) if self.depth == depth + 1 => self.write(&parameters(listed)),
                Some(_) => self.next()?,
                None => return Ok(()),
            }
            if self.depth == depth {
                return Ok(());
            }
        }
    }

    /// How many values a row that is added has: as many as columns are named, or as the table has.
    fn columns(&mut self) -> Result<usize, LeftOutStatement> {
        let begins = |word: &&str| matches!(*word, "INTO" | "REPLACE" | "INSERT" | "IGNORE");
        let begins = self.words[..self.at].iter().rposition(begins);
        let table = begins.map_or(0, |place| place + 1);
        let named = &self.words[table + 1..];
        if named.first() == Some(&"(") {
            let names = named.iter().take_while(|word| **word != ")");
            return Ok(names.filter(|word| **word == ",").count() + 1);
        }
        let name = self.words[table].trim_matches('`').to_owned();
        let known = self.tables.table(&[name])?;
        known
            .map(|known| known.columns.len())
            .ok_or_else(|| forgotten(ROW))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::rc::Rc;

    use super::super::column::{ImportedColumn, ValueKind};
    use super::super::mix::StatementForm;
    use super::super::table::{ImportedTable, Known, NoTables};
    use super::*;

    /// There are `status`, `user` and `items`, each of three columns.
    struct Three;

    impl Tables for Three {
        fn table(
            &mut self,
            name: &[String],
        ) -> Result<Option<Rc<ImportedTable>>, LeftOutStatement> {
            let name = name[0].to_lowercase();
            let is_there = ["status", "user", "items"].contains(&name.as_str());
            let column = |name: &str| Known {
                name: name.to_owned(),
                kind: ValueKind::Text,
                type_name: "text".to_owned(),
            };
            let table = ImportedTable {
                name,
                rows: 1.0,
                columns: ["id", "a", "b"].map(column).into(),
                unique: Vec::new(),
            };
            Ok(is_there.then(|| Rc::new(table)))
        }

        fn column(
            &mut self,
            _: &ImportedTable,
            _: usize,
        ) -> Result<Option<ImportedColumn>, LeftOutStatement> {
            Ok(None)
        }

        fn check(&mut self, _: &[String]) -> Result<(), LeftOutStatement> {
            Ok(())
        }

        fn read_from_rows(&self) -> BTreeSet<String> {
            BTreeSet::new()
        }
    }

    /// Of 10 calls, which found or added 30 rows.
    fn counted(text: &str) -> Counted {
        Counted {
            text: text.to_owned(),
            form: StatementForm::Digest,
            calls: 10.0,
            time_ms: 1.0,
            rows: 30.0,
            examined: None,
        }
    }

    #[test]
    fn digests_become_sql_again() {
        for (digest, sql) in [
            (
                "SELECT COUNT ( * ) , `upper` (?) FROM `odd  name` WHERE ID IN (...) AND `a` IN (?) ",
                "SELECT COUNT( * ) , `upper` (?) FROM `odd  name` WHERE ID IN(?) AND `a` IN(?)",
            ),
            (
                "SELECT DISTINCTROW VALUE FROM STATUS WHERE `status` . `id` = - ? LIMIT ?, ...",
                "SELECT DISTINCT VALUE FROM `status` WHERE `status` . `id` = ? LIMIT ?, ?",
            ),
            (
                "UPDATE SYSTEM_USER SET `a` = NOW (?) , `b` = CURDATE WHERE DATE > DATE ? AND SYSTEM_USER = ?",
                "UPDATE `user` SET `a` = NOW() , `b` = CURDATE() WHERE DATE > ? AND `user` = ?",
            ),
            (
                "DELETE FROM `t` WHERE ID = (unknown)",
                "DELETE FROM `t` WHERE ID = ?",
            ),
            (
                "SELECT ?, ... , `x` - ? FROM `t` WHERE SQL_TSI_DAY = NOW ( )",
                "SELECT ?, ? , `x` - ? FROM `t` WHERE DAY = NOW( )",
            ),
            (
                "INSERT INTO `t` ( `a` , `b` ) VALUES (...)",
                "INSERT INTO `t` ( `a` , `b` ) VALUES(?, ?)",
            ),
            (
                "INSERT INTO `t` ( `a` , `b` ) VALUES (...) /* , ... */ ON DUPLICATE KEY UPDATE `a` = VALUES ( `a` ) + ?",
                "INSERT INTO `t` ( `a` , `b` ) VALUES(?, ?), (?, ?), (?, ?) ON DUPLICATE KEY UPDATE `a` = VALUES( `a` ) + ?",
            ),
            (
                "INSERT INTO `items` VALUES (...)",
                "INSERT INTO `items` VALUES(?, ?, ?)",
            ),
            (
                "REPLACE INTO `t` ( `a` ) VALUES (?) /* , ... */",
                "REPLACE INTO `t` ( `a` ) VALUES(?), (?), (?)",
            ),
            (
                "INSERT INTO `t` ( `a` , `b` , `c` , `d` , `e` ) VALUES ( ?, ... , (unknown) , ?, ... )",
                "INSERT INTO `t` ( `a` , `b` , `c` , `d` , `e` ) VALUES(?, ?, ?, ?, ?)",
            ),
            (
                "INSERT INTO `items` VALUES ( ?, ... , NOW ( ) ) , ( DEFAULT , ? , ? )",
                "INSERT INTO `items` VALUES( ?, ? , NOW( ) ) , ( DEFAULT , ? , ? )",
            ),
        ] {
            let told = restored(&counted(digest), &mut Three);
            assert_eq!(told.unwrap(), sql, "{digest}");
        }
    }

    #[test]
    fn what_a_digest_has_forgotten_leaves_the_statement_out() {
        let many = format!(
            "INSERT INTO `t` ( `a`{} ) VALUES (...) /* , ... */",
            " , `b`".repeat(400)
        );
        let long = format!("SELECT {}", "`a` , ".repeat(3000));
        for (digest, why) in [
            ("SELECT `a` , `b` ...", "the server has cut its text"),
            (
                "SELECT `a` FROM `t` WHERE `f` (...)",
                "how long a list in it is",
            ),
            (
                "SELECT COALESCE ( `a` , ?, ... )",
                "how long a list in it is",
            ),
            (
                "SELECT * FROM `t` WHERE ( `a` , `b` ) IN ( (...) /* , ... */ )",
                "how long a list in it is",
            ),
            ("INSERT INTO `t` VALUES (...)", "how long a list in it is"),
            (
                "INSERT INTO `items` VALUES ( ?, ... , NOW ( ) , ?, ... )",
                "how long a list in it is",
            ),
            (&many, "it adds 3 rows at once"),
            (&long, "it is longer than 16 KiB"),
        ] {
            match restored(&counted(digest), &mut Three) {
                Ok(sql) => panic!("{digest}: {sql}"),
                Err(said) => assert!(said.to_string().contains(why), "{digest}: {said}"),
            }
        }
        let without = restored(&counted("INSERT INTO `items` VALUES (...)"), &mut NoTables);
        assert_eq!(without, Err(LeftOutStatement::NoStatistics));
        // Whatever stands there, it is read to its end.
        for odd in [
            "",
            "`",
            "(",
            "VALUES (",
            "INSERT VALUES (",
            "INSERT INTO",
            "INSERT VALUES (...)",
            ") ) (",
            "INSERT VALUES ( ?, ...",
        ] {
            let _ = restored(&counted(odd), &mut Three);
        }
    }
}
