//! What is wrong with an experiment file, said so that a person can put it right without opening the manual.
//!
//! An [`ExperimentError`] is made by the reader of the experiment file and shown once, by the program, through
//! [`miette`]: message, the place in the file (or in a `--set` argument), what is allowed there, what to do.

use std::io;
use std::ops::Range;
use std::path::Path;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

/// One mistake in an experiment file or in a `--set` argument. The first one found is reported.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct ExperimentError(Box<Details>);

#[derive(Debug)]
struct Details {
    message: String,
    key: Option<String>,
    help: Option<String>,
    mark: Option<Mark>,
}

#[derive(Debug)]
struct Mark {
    source: NamedSource<String>,
    span: Range<usize>,
    label: String,
}

impl ExperimentError {
    /// `message` says what is wrong, in one line.
    pub(super) fn new(message: impl Into<String>) -> ExperimentError {
        ExperimentError(Box::new(Details {
            message: without_passwords(&message.into()),
            key: None,
            help: None,
            mark: None,
        }))
    }

    /// The file could not be read at all.
    pub(super) fn unreadable(path: &Path, error: &io::Error) -> ExperimentError {
        ExperimentError::new(format!(
            "cannot read the experiment file {}: {error}",
            path.display()
        ))
        .help("name an existing file; examples/quickstart.toml is one to copy")
    }

    /// The key that is wrong, in full: `database.writers`.
    pub(super) fn at_key(mut self, key: impl Into<String>) -> ExperimentError {
        self.0.key = Some(key.into());
        self
    }

    /// What to do about it.
    pub(super) fn help(mut self, help: impl Into<String>) -> ExperimentError {
        self.0.help = Some(help.into());
        self
    }

    /// Where it is: `span` of `text`, which people know as `name`, and what to say beneath it.
    pub(super) fn mark(
        mut self,
        name: &str,
        text: &str,
        span: Range<usize>,
        label: impl Into<String>,
    ) -> ExperimentError {
        let source = NamedSource::new(name, without_passwords(text));
        self.0.mark = Some(Mark {
            source,
            span,
            label: without_passwords(&label.into()),
        });
        self
    }

    /// The key that is wrong, in full and as `--set` would spell it; `None` when no single key is (a syntax error).
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// The name of the file (or "command line" for a `--set`), with line and column counted from 1; `None` when the file
    /// could not be read at all.
    pub fn place(&self) -> Option<(&str, usize, usize)> {
        let mark = self.0.mark.as_ref()?;
        let before = &mark.source.inner()[..mark.span.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        Some((
            mark.source.name(),
            line,
            before[line_start..].chars().count() + 1,
        ))
    }
}

/// A text in which the passwords of addresses (`://user:password@`) are stars, as long as they were, so that places in it stay
/// what they are.
fn without_passwords(text: &str) -> String {
    let mut hidden = text.to_owned().into_bytes();
    let is_end = |character: char| character.is_whitespace() || "\"'`".contains(character);
    for (start, scheme_end) in text.match_indices("://") {
        let authority = start + scheme_end.len();
        let rest = &text[authority..];
        let address = &rest[..rest.find(is_end).unwrap_or(rest.len())];
        // What a person forgot to encode may hold a sign that ends it; so it goes to the last one.
        if let (Some(colon), Some(at)) = (address.find(':'), address.rfind('@'))
            && colon < at
        {
            hidden[authority + colon + 1..authority + at].fill(b'*');
        }
    }
    for (start, key) in text.match_indices("password=") {
        let value = start + key.len();
        let rest = &text[value..];
        let end = rest.find(|character| is_end(character) || character == '&');
        hidden[value..value + end.unwrap_or(rest.len())].fill(b'*');
    }
    String::from_utf8(hidden)
        .expect("whole characters were replaced by as many stars as they had bytes")
}

impl Diagnostic for ExperimentError {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.0.help.as_ref().map(|help| Box::new(help) as _)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.mark.as_ref().map(|mark| &mark.source as _)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let mark = self.0.mark.as_ref()?;
        let label = LabeledSpan::new_primary_with_span(Some(mark.label.clone()), mark.span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_addresses_are_not_shown() {
        for (text, shown) in [
            (
                "url = \"postgres://a:bc@h/d\"",
                "url = \"postgres://a:**@h/d\"",
            ),
            (
                "url=postgres://a:b@c/e@h:5/d x",
                "url=postgres://a:*****@h:5/d x",
            ),
            (
                "'mysql://a:é@h' \"b://c:d@e\"",
                "'mysql://a:**@h' \"b://c:*@e\"",
            ),
            ("postgres://a@h:5432/d", "postgres://a@h:5432/d"),
            (
                "postgres://a@h/d?password=b&c=d",
                "postgres://a@h/d?password=*&c=d",
            ),
            ("path = \"a:b@c\"", "path = \"a:b@c\""),
        ] {
            assert_eq!(without_passwords(text), shown);
            assert_eq!(shown.len(), text.len());
        }
    }
}
