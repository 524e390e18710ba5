//! What is wrong with an experiment file, said so that a person can put it right without opening the manual.
//!
//! An [`ExperimentError`] is made by the reader of the experiment file and shown once, by the program, through
//! [`miette`]: message, the place in the file (or in a `--set` argument), what is allowed there, what to do.

use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, SourceCode};

use super::shown::{self, Shown};

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
    source: Shown,
    label: String,
}

impl ExperimentError {
    /// `message` says what is wrong, in one line.
    pub(super) fn new(message: impl Into<String>) -> ExperimentError {
        ExperimentError(Box::new(Details {
            message: shown::message(&message.into()),
            key: None,
            help: None,
            mark: None,
        }))
    }

    /// The key that is wrong, in full: `database.writers`.
    pub(super) fn at_key(mut self, key: impl Into<String>) -> ExperimentError {
        self.0.key = Some(key.into());
        self
    }

    /// What to do about it.
    pub(super) fn help(mut self, help: impl Into<String>) -> ExperimentError {
        self.0.help = Some(shown::message(&help.into()));
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
        self.0.mark = Some(Mark {
            source: Shown::new(name, text, span),
            label: shown::message(&label.into()),
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
        let source = &self.0.mark.as_ref()?.source;
        Some((source.name(), source.line, source.column))
    }
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
        let label =
            LabeledSpan::new_primary_with_span(Some(mark.label.clone()), mark.source.span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}
