//! Files of statements and commands in pieces: a statement ends at its semicolon, or where a command begins; a command
//! begins with a backslash and ends with its line. Quotes, comments and brackets are those of the dialect.

use std::ops::Range;

use super::lexer::is_name_letter;
use super::mistake::Mistake;
use crate::sql::Dialect;

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Statement(Statement),
    Command(Command),
}

/// A statement, without its semicolon and its comments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Statement {
    pub parts: Vec<Part>,
    /// From its first letter to its last.
    pub span: Range<usize>,
    /// What looks like variables within quotes.
    pub quoted: Vec<(String, Range<usize>)>,
    /// Where it has `\;`.
    pub joined: Option<Range<usize>>,
    /// Where it has its own parameter, such as `$1`.
    pub numbered: Option<Range<usize>>,
}

/// A part of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
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
    /// What follows, to the end of the line, or of the lines when it goes on.
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
            let goes_on = rest.find("\\\n").into_iter().chain(rest.find("\\\r\n"));
            let blank = rest.find([' ', '\t', '\r', '\n', '\x0b', '\x0c']);
            let length = goes_on.chain(blank).min().unwrap_or(rest.len());
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
/// A quote or a comment that does not end.
pub(super) fn pieces(text: &str, dialect: Dialect) -> Result<Vec<Piece>, Mistake> {
    let mut scanner = Scanner {
        text,
        dialect,
        at: 0,
        depth: 0,
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
    statement: Statement,
    pieces: Vec<Piece>,
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
        let rest = self.rest();
        let letter = rest.chars().next().unwrap_or('\0');
        match letter {
            '\'' | '"' => self.quoted(letter)?,
            '`' if self.dialect != Dialect::Postgres => self.quoted(letter)?,
            '$' => self.dollar()?,
            '\\' if rest.starts_with("\\;") || rest.starts_with("\\:") => {
                let plain = &rest[1..2];
                if plain == ";" {
                    self.statement.joined.get_or_insert(start..start + 2);
                }
                self.keep(plain, 2);
            }
            '\\' => self.command()?,
            ';' if self.depth == 0 => {
                self.end_statement();
                self.at += 1;
            }
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
                self.keep(&rest[..length], length);
                if self.rest().starts_with('$') && word > 0 {
                    self.keep("$", 1);
                }
            }
        }
        Ok(())
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
                Some(Part::Text(text)) => text.push_str(kept),
                _ => statement.parts.push(Part::Text(kept.to_owned())),
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
        if let Some(Part::Text(text)) = statement.parts.last_mut() {
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
        let rest = self.rest();
        let (mut kept, mut length, mut colons) = (quote.to_string(), 1, Vec::new());
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
                    // Whoever looks for quotes later knows no backslashes.
                    Some(escaped) if escaped == quote => kept.extend([quote, quote]),
                    escaped => kept.extend([letter].into_iter().chain(escaped)),
                }
                continue;
            }
            kept.push(letter);
            if letter == ':' && quote == '\'' {
                colons.push(self.at + length - 1);
            }
            if letter == quote {
                break;
            }
        }
        let found: Vec<(String, Range<usize>)> = colons
            .into_iter()
            .filter_map(|colon| Some((variable_at(self.text, colon)?, colon)))
            .map(|(name, colon)| (name.clone(), colon..colon + 1 + name.len()))
            .collect();
        self.statement.quoted.extend(found);
        self.keep(&kept, length);
        Ok(())
    }

    /// Whether a backslash within these quotes takes the next letter's meaning away.
    fn has_escapes(&self, quote: char) -> bool {
        match (self.dialect, quote) {
            (Dialect::MariaDb, '\'' | '"') => true,
            (Dialect::Postgres, '\'') => {
                let mut before = self.text[..self.at].chars().rev();
                matches!(before.next(), Some('e' | 'E'))
                    && !before.next().is_some_and(is_name_letter)
            }
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
        if is_number {
            self.statement
                .numbered
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
        self.keep(&rest[..length], length);
        Ok(())
    }

    /// A variable, a cast, or a colon.
    fn colon(&mut self) {
        let rest = self.rest();
        let colons = rest.len() - rest.trim_start_matches(':').len();
        match variable_at(self.text, self.at) {
            Some(name) => {
                let span = self.at..self.at + 1 + name.len();
                if self.statement.parts.is_empty() {
                    self.statement.span.start = self.at;
                }
                self.statement
                    .parts
                    .push(Part::Variable(name, span.clone()));
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
                    Part::Text(text) => text.clone(),
                    Part::Variable(name, _) => format!("<{name}>"),
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
            short("select '\\', 1; select 2", Dialect::Sqlite),
            ["select '\\', 1", "select 2"]
        );
        assert_eq!(
            short("select /*+ x(:y) */ 1", Dialect::Postgres),
            ["select /*+ x(<y>) */ 1"]
        );
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
        let all = pieces("select ':a', 'x:b', '12:30', \"c:d\"", Dialect::Postgres).unwrap();
        let [Piece::Statement(statement)] = &all[..] else {
            panic!("{all:?}");
        };
        let names: Vec<&str> = statement
            .quoted
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["a", "b"]);
    }
}
