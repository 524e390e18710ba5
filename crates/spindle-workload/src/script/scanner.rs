//! Files of statements and commands in pieces: a statement ends at its semicolon, or where a command begins; a command
//! begins with a backslash and ends with its line. Quotes, comments and brackets are those of the dialect.

use std::ops::Range;

use super::lexer::is_name_letter;
use super::mistake::{BYTE_ORDER_MARK, Mistake};
use crate::sql::{Dialect, continued_bytes, has_escapes_behind};

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Statement(Statement),
    Command(Command),
}

/// A statement, without its semicolon and its comments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Statement {
    pub parts: Vec<StatementPart>,
    /// From its first letter to its last.
    pub span: Range<usize>,
    /// What looks like variables within quotes.
    pub quoted: Vec<(String, Range<usize>)>,
    /// Where it has `\;`.
    pub joined: Option<Range<usize>>,
    /// A variable directly behind a name or a number.
    pub within: Option<(String, Range<usize>)>,
    /// Where it has a parameter that is no variable, such as `$1`, or `?` where the dialect has it.
    pub parameter: Option<Range<usize>>,
}

/// A part of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StatementPart {
    Text(String),
    /// `:name`.
    Variable(String, Range<usize>),
}

/// A command: `\name` and what follows it in its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    /// In small letters.
    pub name: String,
    /// The backslash and the name.
    pub span: Range<usize>,
    /// What follows, to the end of the line, or of the lines when it continues.
    pub arguments: Range<usize>,
}

impl Command {
    /// Its arguments, which blanks separate.
    pub fn words<'a>(&self, text: &'a str) -> Vec<(&'a str, Range<usize>)> {
        let mut words = Vec::new();
        let (end, mut at) = (self.arguments.end, self.arguments.start);
        loop {
            at = super::lexer::skip_blanks(&text[..end], at);
            let rest = &text[at..end];
            let ends = |(at, letter): (usize, char)| match letter {
                '\\' => {
                    let after = &rest[at + 1..];
                    after.starts_with('\n') || after.starts_with("\r\n")
                }
                letter => " \t\r\n\x0b\x0c".contains(letter),
            };
            let end = rest.char_indices().find(|of| ends(*of));
            let length = end.map_or(rest.len(), |(at, _)| at);
            if length == 0 {
                return words;
            }
            words.push((&rest[..length], at..at + length));
            at += length;
        }
    }
}

/// The pieces of a text.
///
/// # Errors
/// A quote or a comment that does not end, or a NUL byte, which no database takes.
pub(super) fn pieces(text: &str, dialect: Dialect) -> Result<Vec<Piece>, Mistake> {
    if let Some(at) = text.find('\0') {
        return Err(Mistake::new(
            at..at + 1,
            "a NUL byte: no statement can have one; is this file UTF-16, or no text?",
        ));
    }
    let mut scanner = Scanner {
        text,
        dialect,
        // psql passes over it, too.
        at: match text.starts_with(BYTE_ORDER_MARK) {
            true => BYTE_ORDER_MARK.len_utf8(),
            false => 0,
        },
        depth: 0,
        delimiter: ";",
        body: FunctionBody::default(),
        trigger: TriggerBody::default(),
        statement: Statement::default(),
        pieces: Vec::new(),
    };
    while scanner.at < text.len() {
        scanner.step()?;
    }
    scanner.end_statement();
    Ok(scanner.pieces)
}

struct Scanner<'a> {
    text: &'a str,
    dialect: Dialect,
    at: usize,
    /// Open brackets: a semicolon within them ends nothing.
    depth: usize,
    /// What ends a statement: a semicolon, or what `DELIMITER` of MariaDB's client has made of it.
    delimiter: &'a str,
    body: FunctionBody,
    trigger: TriggerBody,
    statement: Statement,
    pieces: Vec<Piece>,
}

/// Whether a statement is inside a body of `BEGIN ATOMIC ... END`, by the rule of psql 14 and later (psqlscan.l).
/// Within CREATE [OR REPLACE] FUNCTION or PROCEDURE, BEGIN opens one, CASE within it another, and END closes one.
#[derive(Default)]
struct FunctionBody {
    /// The first letters of the statement's first words, where these can begin such a statement.
    first: [u8; 4],
    /// How many words there were.
    words: usize,
    depth: usize,
}

impl FunctionBody {
    /// A word of the statement, outside of brackets and quotes.
    fn word(&mut self, word: &str, is_in_brackets: bool) {
        let lower = word.to_ascii_lowercase();
        let begins = ["create", "or", "replace", "function", "procedure"];
        if begins.contains(&lower.as_str())
            && let Some(first) = self.first.get_mut(self.words)
        {
            *first = lower.as_bytes()[0];
        }
        self.words += 1;
        let makes_function = matches!(
            self.first,
            [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p']
        );
        if !makes_function || is_in_brackets {
            return;
        }
        match lower.as_str() {
            "begin" => self.depth += 1,
            "case" if self.depth > 0 => self.depth += 1,
            "end" => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// Whether a statement is inside the body of a trigger of SQLite, by the rule of its shell (`sqlite3_complete`): CREATE
/// [TEMP] TRIGGER ends at a semicolon behind an END that itself follows a semicolon.
#[derive(Default)]
struct TriggerBody {
    words: usize,
    /// How many of them begin such a statement.
    begun: usize,
    is_trigger: bool,
    last: LastToken,
}

/// What a trigger's body ends with so far.
#[derive(Default, PartialEq, Eq)]
enum LastToken {
    #[default]
    Other,
    Semicolon,
    /// END behind a semicolon.
    End,
}

impl TriggerBody {
    fn word(&mut self, word: &str) {
        let is = |wanted: &str| word.eq_ignore_ascii_case(wanted);
        if self.words == self.begun {
            match self.begun {
                0 => self.begun += usize::from(is("create")),
                1 if is("temp") || is("temporary") => self.begun += 1,
                _ => self.is_trigger |= self.begun > 0 && is("trigger"),
            }
        }
        self.words += 1;
        self.last = match self.last {
            LastToken::Semicolon if is("end") => LastToken::End,
            _ => LastToken::Other,
        };
    }

    /// A semicolon. True when it ends the statement.
    fn ends(&mut self) -> bool {
        let ends = !self.is_trigger || self.last == LastToken::End;
        self.last = LastToken::Semicolon;
        ends
    }
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn step(&mut self) -> Result<(), Mistake> {
        let start = self.at;
        if let Some(length) = self.comment()? {
            // It separates words as a blank does.
            self.keep(" ", length);
            return Ok(());
        }
        if self.at_delimiter() {
            let (ends, length) = (self.ends(), self.delimiter.len());
            match ends {
                true => {
                    self.end_statement();
                    self.at += length;
                }
                false => self.keep(self.delimiter, length),
            }
            return Ok(());
        }
        if self.takes_delimiter()? {
            return Ok(());
        }
        let rest = self.rest();
        let letter = rest.chars().next().unwrap_or('\0');
        match letter {
            '\'' | '"' => self.quoted(letter)?,
            '`' if self.dialect != Dialect::Postgres => self.quoted(letter)?,
            '[' if self.dialect == Dialect::Sqlite => self.quoted(letter)?,
            '?' if self.dialect != Dialect::Postgres => self.parameter_mark(),
            '@' if self.dialect == Dialect::Sqlite => self.parameter_mark(),
            '$' => self.dollar()?,
            '\\' if rest.starts_with("\\;") || rest.starts_with("\\:") => {
                let plain = &rest[1..2];
                if plain == ";" {
                    self.statement.joined.get_or_insert(start..start + 2);
                }
                self.keep(plain, 2);
            }
            '\\' => self.command()?,
            ':' => self.colon(),
            letter => {
                match letter {
                    '(' => self.depth += 1,
                    ')' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                let word = rest
                    .find(|letter| !is_name_letter(letter))
                    .unwrap_or(rest.len());
                // Names stay whole: a dollar sign or a quote within one is not another thing.
                let length = word.max(letter.len_utf8());
                if word > 0 && !letter.is_ascii_digit() {
                    self.word(&rest[..word]);
                }
                self.keep(&rest[..length], length);
                if word > 0 && self.rest().starts_with('$') && !self.at_delimiter() {
                    self.keep("$", 1);
                }
            }
        }
        Ok(())
    }

    /// A word of the statement, outside of quotes.
    fn word(&mut self, word: &str) {
        match self.dialect {
            Dialect::Postgres => self.body.word(word, self.depth > 0),
            Dialect::Sqlite => self.trigger.word(word),
            Dialect::MariaDb => {}
        }
    }

    fn at_delimiter(&self) -> bool {
        self.rest().starts_with(self.delimiter)
    }

    /// Whether the delimiter that stands here ends the statement.
    fn ends(&mut self) -> bool {
        self.trigger.ends() && (self.delimiter != ";" || self.depth == 0) && self.body.depth == 0
    }

    /// Takes a line `DELIMITER //`, as MariaDB's client knows it, where no statement has begun. True if there was one.
    fn takes_delimiter(&mut self) -> Result<bool, Mistake> {
        const WORD: &str = "delimiter";
        let (start, rest) = (self.at, self.rest());
        let is_word = rest
            .get(..WORD.len())
            .is_some_and(|word| word.eq_ignore_ascii_case(WORD));
        let is_command = is_word
            && self.dialect == Dialect::MariaDb
            && self.statement.parts.is_empty()
            && rest[WORD.len()..]
                .chars()
                .next()
                .is_none_or(char::is_whitespace);
        if !is_command {
            return Ok(false);
        }
        let line = rest.lines().next().unwrap_or_default();
        let given = line[WORD.len()..].split_whitespace().next();
        let Some(delimiter) = given.filter(|given| !given.contains('\\')) else {
            let message =
                "DELIMITER takes what is to end statements, such as //, without a backslash";
            return Err(Mistake::new(start..start + line.len(), message));
        };
        self.delimiter = delimiter;
        self.at += line.len();
        Ok(true)
    }

    /// Adds to the statement what stands for the next `length` bytes. It does not begin with a blank.
    fn keep(&mut self, kept: &str, length: usize) {
        let is_blank = kept.chars().all(char::is_whitespace);
        let statement = &mut self.statement;
        if !(is_blank && statement.parts.is_empty()) {
            if statement.parts.is_empty() {
                statement.span.start = self.at;
            }
            match statement.parts.last_mut() {
                Some(StatementPart::Text(text)) => text.push_str(kept),
                _ => statement.parts.push(StatementPart::Text(kept.to_owned())),
            }
            if !is_blank {
                statement.span.end = self.at + length;
            }
        }
        self.at += length;
    }

    fn end_statement(&mut self) {
        let mut statement = std::mem::take(&mut self.statement);
        self.depth = 0;
        self.body = FunctionBody::default();
        self.trigger = TriggerBody::default();
        if let Some(StatementPart::Text(text)) = statement.parts.last_mut() {
            text.truncate(text.trim_end().len());
        }
        if !statement.parts.is_empty() {
            self.pieces.push(Piece::Statement(statement));
        }
    }

    /// The length of the comment that begins here, if one does. A hint is none.
    fn comment(&mut self) -> Result<Option<usize>, Mistake> {
        let rest = self.rest();
        let is_mariadb = self.dialect == Dialect::MariaDb;
        let begins_line = match rest.strip_prefix("--") {
            Some(after) => {
                !is_mariadb || after.is_empty() || after.starts_with(char::is_whitespace)
            }
            None => is_mariadb && rest.starts_with('#'),
        };
        if begins_line {
            return Ok(Some(rest.find('\n').unwrap_or(rest.len())));
        }
        let hints = ["/*+", "/*!", "/*M!"];
        if !rest.starts_with("/*") || hints.iter().any(|hint| rest.starts_with(hint)) {
            return Ok(None);
        }
        let (mut depth, mut length) = (0usize, 0);
        while length < rest.len() {
            let here = &rest[length..];
            let step = here.chars().next().map_or(1, char::len_utf8);
            if here.starts_with("/*") && (depth == 0 || self.dialect == Dialect::Postgres) {
                depth += 1;
                length += 2;
            } else if here.starts_with("*/") {
                depth -= 1;
                length += 2;
                if depth == 0 {
                    return Ok(Some(length));
                }
            } else {
                length += step;
            }
        }
        let message = "a comment begins here and does not end";
        Err(Mistake::new(self.at..self.at + 2, message))
    }

    /// A text or a name in quotes.
    fn quoted(&mut self, quote: char) -> Result<(), Mistake> {
        let escapes = self.has_escapes(quote);
        let closes = if quote == '[' { ']' } else { quote };
        let rest = self.rest();
        let (mut kept, mut length) = (quote.to_string(), 1);
        loop {
            let Some(letter) = rest[length..].chars().next() else {
                let message = format!("a quote begins here and does not end: {quote}");
                return Err(Mistake::new(self.at..self.at + 1, message));
            };
            length += letter.len_utf8();
            if letter == '\\' && escapes {
                let escaped = rest[length..].chars().next();
                length += escaped.map_or(0, char::len_utf8);
                match escaped {
                    // Code that looks for quotes later knows no backslashes.
                    Some(escaped) if escaped == quote => kept.extend([quote, quote]),
                    escaped => kept.extend([letter].into_iter().chain(escaped)),
                }
                continue;
            }
            kept.push(letter);
            if letter != closes {
                continue;
            }
            let behind = &rest[length..];
            let goes_on = escapes && self.dialect == Dialect::Postgres;
            match goes_on.then(|| continued_bytes(behind)).flatten() {
                Some(between) => {
                    kept.push_str(&behind[..=between]);
                    length += between + 1;
                }
                None => break,
            }
        }
        self.note_quoted(self.at..self.at + length);
        self.keep(&kept, length);
        Ok(())
    }

    /// Notes what looks like variables within quotes of whatever kind: pgbench makes parameters of all of it.
    fn note_quoted(&mut self, quoted: Range<usize>) {
        let mut at = quoted.start;
        while let Some(colon) = self.text[at..quoted.end].find(':') {
            let colon = at + colon;
            at = match variable_at(self.text, colon) {
                Some(name) => {
                    let span = colon..colon + 1 + name.len();
                    self.statement.quoted.push((name, span.clone()));
                    span.end
                }
                // A cast has two.
                None => {
                    let rest = &self.text[colon..quoted.end];
                    colon + rest.len() - rest.trim_start_matches(':').len()
                }
            };
        }
    }

    /// Whether a backslash within these quotes takes the next letter's meaning away.
    fn has_escapes(&self, quote: char) -> bool {
        match (self.dialect, quote) {
            (Dialect::MariaDb, '\'' | '"') => true,
            (Dialect::Postgres, '\'') => has_escapes_behind(&self.text[..self.at]),
            _ => false,
        }
    }

    /// A text between dollar signs, or a parameter.
    fn dollar(&mut self) -> Result<(), Mistake> {
        let rest = self.rest();
        let name = rest[1..]
            .find(|letter| !is_name_letter(letter))
            .unwrap_or(rest.len() - 1);
        let (tag, inner) = (&rest[..1 + name], &rest[1..1 + name]);
        let is_number = inner.starts_with(|letter: char| letter.is_ascii_digit());
        if is_number || self.dialect == Dialect::Sqlite && !inner.is_empty() {
            self.statement
                .parameter
                .get_or_insert(self.at..self.at + tag.len());
        }
        let opens = rest[tag.len()..].starts_with('$') && !is_number;
        if !opens || self.dialect != Dialect::Postgres {
            self.keep(tag, tag.len());
            return Ok(());
        }
        let delimiter = &rest[..tag.len() + 1];
        let Some(end) = rest[delimiter.len()..].find(delimiter) else {
            let message = format!("a text begins here and does not end: {delimiter}");
            return Err(Mistake::new(self.at..self.at + delimiter.len(), message));
        };
        let length = end + 2 * delimiter.len();
        self.note_quoted(self.at..self.at + length);
        self.keep(&rest[..length], length);
        Ok(())
    }

    /// `?`, `?1` or `@name`.
    fn parameter_mark(&mut self) {
        let rest = self.rest();
        let name = rest[1..].find(|letter| !is_name_letter(letter));
        let length = name.map_or(rest.len(), |name| 1 + name);
        self.statement
            .parameter
            .get_or_insert(self.at..self.at + length);
        self.keep(&rest[..length], length);
    }

    /// A variable, a cast, or a colon.
    fn colon(&mut self) {
        let rest = self.rest();
        let colons = rest.len() - rest.trim_start_matches(':').len();
        match variable_at(self.text, self.at) {
            Some(name) => {
                let span = self.at..self.at + 1 + name.len();
                let before = self.text[..self.at].chars().next_back();
                if before.is_some_and(is_name_letter) {
                    self.statement
                        .within
                        .get_or_insert((name.clone(), span.clone()));
                }
                if self.statement.parts.is_empty() {
                    self.statement.span.start = self.at;
                }
                self.statement
                    .parts
                    .push(StatementPart::Variable(name, span.clone()));
                self.statement.span.end = span.end;
                self.at = span.end;
            }
            // A cast has two, and what follows them is a type.
            None => {
                self.keep(&rest[..colons], colons);
            }
        }
    }

    fn command(&mut self) -> Result<(), Mistake> {
        self.end_statement();
        let rest = self.rest();
        let name = rest[1..]
            .find(char::is_whitespace)
            .unwrap_or(rest.len() - 1);
        let (start, name_end) = (self.at, self.at + 1 + name);
        let mut end = name_end;
        loop {
            let line = self.text[end..]
                .find('\n')
                .map_or(self.text.len(), |line| end + line);
            let goes_on = self.text[name_end..line]
                .trim_end_matches('\r')
                .ends_with('\\');
            end = line;
            if !goes_on || line == self.text.len() {
                break;
            }
            end += 1;
        }
        self.pieces.push(Piece::Command(Command {
            name: self.text[start + 1..name_end].to_ascii_lowercase(),
            span: start..name_end,
            arguments: name_end..end,
        }));
        self.at = end;
        Ok(())
    }
}

/// The name of the variable whose colon stands at a place, if one does. A name begins with a letter.
fn variable_at(text: &str, colon: usize) -> Option<String> {
    let name = &text[colon + 1..];
    let length = name
        .find(|letter| !is_name_letter(letter))
        .unwrap_or(name.len());
    let name = &name[..length];
    (!name.is_empty() && !name.starts_with(|letter: char| letter.is_ascii_digit()))
        .then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces in short: statements with their variables in angle brackets, commands with their words.
    fn short(text: &str, dialect: Dialect) -> Vec<String> {
        let pieces = pieces(text, dialect).unwrap();
        let of = |piece: &Piece| match piece {
            Piece::Statement(statement) => {
                let parts = statement.parts.iter().map(|part| match part {
                    StatementPart::Text(text) => text.clone(),
                    StatementPart::Variable(name, _) => format!("<{name}>"),
                });
                parts.collect::<String>()
            }
            Piece::Command(command) => {
                let words = command.words(text);
                let words = words.iter().map(|(word, _)| format!(" {word}"));
                format!("\\{}{}", command.name, words.collect::<String>())
            }
        };
        pieces.iter().map(of).collect()
    }

    #[test]
    fn a_text_with_escapes_has_them_in_all_its_lines() {
        let text =
            "select E'a\\'b' -- c\n, 1;\nselect e'a'\n -- c\n'b\\';', 2;\nselect 'a'\n'b\\', 3;";
        assert_eq!(
            short(text, Dialect::Postgres),
            [
                "select E'a''b'  \n, 1",
                "select e'a'\n -- c\n'b'';', 2",
                "select 'a'\n'b\\', 3"
            ]
        );
    }

    #[test]
    fn statements_end_at_semicolons_and_before_commands() {
        assert_eq!(
            short(
                "-- first\n\\set aid random(1, 5)\n BEGIN ;\nselect 1 -- one\n from t where a = :aid\\gset p_\n;;\nEND",
                Dialect::Postgres
            ),
            [
                "\\set aid random(1, 5)",
                "BEGIN",
                "select 1  \n from t where a = <aid>",
                "\\gset p_",
                "END"
            ]
        );
        assert_eq!(
            short("\\set x \\\n  1 + \\\r\n 2\nselect :x", Dialect::Sqlite),
            ["\\set x 1 + 2", "select <x>"]
        );
    }

    #[test]
    fn quotes_comments_and_brackets_hide_what_is_in_them() {
        let postgres = "select ';:a' || E'\\';' || \"b;\" || $x$ ; :c $x$, a$b, :d::int /* ; /* :e */ */ , x(1;2);";
        assert_eq!(
            short(postgres, Dialect::Postgres),
            [
                "select ';:a' || E'''; || \"b;\" || $x$ ; :c $x$, a$b, <d>::int   , x(1;2)"
                    .replace("E''';", "E''';'")
            ]
        );
        assert_eq!(
            short(
                "select 'it\\'s;', `a;b` # ; c\n, 2--1 -- ;",
                Dialect::MariaDb
            ),
            ["select 'it''s;', `a;b`  \n, 2--1"]
        );
        assert_eq!(
            short("select '\\', 1; select [a;:b`], `c;'`", Dialect::Sqlite),
            ["select '\\', 1", "select [a;:b`], `c;'`"]
        );
        assert_eq!(
            short("select a[:i] ? 'b' @> c", Dialect::Postgres),
            ["select a[<i>] ? 'b' @> c"]
        );
        assert_eq!(
            short("select /*+ x(:y) */ 1", Dialect::Postgres),
            ["select /*+ x(<y>) */ 1"]
        );
    }

    #[test]
    fn bodies_of_functions_are_one_statement() {
        let function = |begin: &str, end: &str| {
            format!(
                "{begin} function f(a int) returns int {end} begin atomic select 1; select case when a > 0 then 2 end; end"
            )
        };
        for body in [
            function("create", ""),
            function("CREATE OR REPLACE", "language sql"),
            "create procedure p() begin atomic insert into t values (1); end".to_owned(),
        ] {
            let text = format!("begin; {body}; select 1; end;");
            let wanted = ["begin", &body, "select 1", "end"];
            assert_eq!(short(&text, Dialect::Postgres), wanted);
        }
        // Elsewhere these words begin and end transactions.
        let text = "begin; create table begin_t (begin int); commit; begin; end;";
        assert_eq!(short(text, Dialect::Postgres).len(), 5);
    }

    #[test]
    fn the_delimiter_of_mariadb_is_what_its_client_takes() {
        let procedure = "create procedure p() begin insert into t values (1); select ';//'; end";
        let text = format!(
            "select 1;\nDELIMITER //\n{procedure}//\n{procedure} //\n delimiter $$\n{procedure}$$\nDelimiter ;\nselect 2;"
        );
        let wanted = ["select 1", procedure, procedure, procedure, "select 2"];
        assert_eq!(short(&text, Dialect::MariaDb), wanted);
        // A column of that name, and other dialects.
        assert_eq!(short("select delimiter from t;", Dialect::MariaDb).len(), 1);
        assert_eq!(short("delimiter //;", Dialect::Sqlite), ["delimiter //"]);
        for text in ["select 1;\ndelimiter", "select 1;\ndelimiter \\\\\n"] {
            let refused = pieces(text, Dialect::MariaDb).unwrap_err();
            assert_eq!(refused.span.start, 10);
            assert!(refused.message.contains("DELIMITER takes"), "{refused:?}");
        }
    }

    #[test]
    fn triggers_of_sqlite_are_one_statement() {
        let trigger = |begin: &str| {
            format!(
                "{begin} trigger t after insert on a begin update b set x = case when x > 0 then 1 end; delete from c; end"
            )
        };
        for body in [trigger("create"), trigger("CREATE TEMP")] {
            let text = format!("begin; {body}; create table trigger_t (a); end; select 1;");
            let wanted = [
                "begin",
                &body,
                "create table trigger_t (a)",
                "end",
                "select 1",
            ];
            assert_eq!(short(&text, Dialect::Sqlite), wanted);
        }
    }

    #[test]
    fn a_byte_order_mark_is_passed_over_and_a_nul_byte_refused() {
        assert_eq!(
            short("\u{feff}\\set x 1\nselect 1", Dialect::Sqlite),
            ["\\set x 1", "select 1"]
        );
        let refused = pieces("select 1;\n'\0'", Dialect::Postgres).unwrap_err();
        assert_eq!(refused.span, 11..12);
        assert!(refused.message.contains("NUL byte"), "{refused:?}");
    }

    #[test]
    fn what_is_left_open_is_told_where_it_begins() {
        for (text, at) in [
            ("select 'a", 7),
            ("a /* b", 2),
            ("select $x$ a $y$", 7),
            ("\"", 0),
        ] {
            assert_eq!(
                pieces(text, Dialect::Postgres).unwrap_err().span.start,
                at,
                "{text}"
            );
        }
    }

    #[test]
    fn variables_within_quotes_are_noted() {
        let text = "select ':a', 'x:b', '12:30', \"c:d\", $$:e$$, $x$ :f::g $x$, '::h', :i";
        let all = pieces(text, Dialect::Postgres).unwrap();
        let [Piece::Statement(statement)] = &all[..] else {
            panic!("{all:?}");
        };
        let names: Vec<&str> = statement
            .quoted
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["a", "b", "d", "e", "f"]);
    }
}
