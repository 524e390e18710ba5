//! What is wrong with an experiment file, said so that a person can put it right without opening the manual.
//!
//! An [`ExperimentError`] is made by the reader of the experiment file and shown once, by the program, through
//! [`miette`]: message, the place in the file (or in a `--set` argument), what is allowed there, what to do.

use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, SourceCode};

use super::doubts::Doubts;
use super::shown::{self, Shown};

/// At most this many mistakes are told: more are too many to read at once.
const TOLD_MAX: usize = 20;

/// A mistake in an experiment file or in a `--set` argument, and the others that were found with it.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub struct ExperimentError(Box<Details>);

#[derive(Debug)]
struct Details {
    message: String,
    key: Option<String>,
    help: Option<String>,
    mark: Option<Mark>,
    /// For settings that contradict each other: the keys of all of them.
    between: Vec<String>,
    /// Keys that it would not be a mistake without, as they were read.
    given: Vec<String>,
    /// Keys that are not read as they were meant because of it, beside its own.
    doubting: Vec<String>,
    others: Vec<ExperimentError>,
}

#[derive(Debug)]
struct Mark {
    /// Which text it is in: 0 is the file, the others are parts of the command line.
    text: usize,
    start: usize,
    /// Whether no single setting is the place, but the table that should have one.
    is_table: bool,
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
            between: Vec::new(),
            given: Vec::new(),
            doubting: Vec::new(),
            others: Vec::new(),
        }))
    }

    /// Several mistakes as one error; `None` when there is none. What only follows from another mistake or from
    /// `doubts`, and what was found twice, is left out.
    pub(super) fn all(
        mistakes: Vec<ExperimentError>,
        mut doubts: Doubts,
    ) -> Option<ExperimentError> {
        let misread = mistakes.iter().flat_map(ExperimentError::misread);
        misread.for_each(|key| doubts.add(key.clone()));
        let (mut told, mut following): (Vec<ExperimentError>, Vec<_>) = (Vec::new(), Vec::new());
        for mistake in mistakes {
            let Details {
                between,
                given,
                doubting,
                ..
            } = &*mistake.0;
            let follows = between.iter().any(|key| doubts.is_misread(key, doubting))
                || given.iter().any(|key| doubts.touch(key, doubting));
            if follows {
                following.push(mistake);
            } else if told.iter().all(|other| !other.is_same(&mistake)) {
                told.push(mistake);
            }
        }
        // None is accepted, should each follow from another.
        if told.is_empty() {
            told.extend(following.into_iter().next());
        }
        told.sort_by_key(ExperimentError::order);
        let more = told.split_off(told.len().min(TOLD_MAX)).len();
        if more > 0 {
            let text = format!("{more} more mistakes are not shown");
            told.push(ExperimentError::new(text).help("put those above right first"));
        }
        let mut told = told.into_iter();
        let mut first = told.next()?;
        first.0.others = told.collect();
        Some(first)
    }

    /// Whether they are one mistake: a setting of `[database]` is read again for each layout, and what contradicts it
    /// there is no layout's own.
    fn is_same(&self, other: &ExperimentError) -> bool {
        match (&self.0.mark, &other.0.mark) {
            (Some(one), Some(again)) => {
                let is_same_place = (one.text, one.start) == (again.text, again.start);
                let is_same_reason = self.0.message == other.0.message || !again.is_table;
                one.label == again.label && is_same_reason && (is_same_place || again.is_table)
            }
            _ => self.0.message == other.0.message,
        }
    }

    /// Wrong values come first, then what contradicts each other or is missing; each kind in the order of the file.
    fn order(&self) -> (bool, usize, usize) {
        let mark = self.0.mark.as_ref();
        let (text, start) = mark.map_or((0, 0), |mark| (mark.text, mark.start));
        (!self.0.between.is_empty(), text, start)
    }

    /// That the settings of these keys contradict each other; `is_table` when the table sets none of them.
    pub(super) fn between(
        mut self,
        keys: impl Iterator<Item = String>,
        is_table: bool,
    ) -> ExperimentError {
        self.0.between = keys.collect();
        if let Some(mark) = &mut self.0.mark {
            mark.is_table = is_table;
        }
        self
    }

    /// That it would be none if these keys were read as they were meant, should one of them be wrong.
    pub(super) fn given(mut self, keys: impl IntoIterator<Item = String>) -> ExperimentError {
        self.0.given.extend(keys);
        self
    }

    /// That these keys are not read as they were meant because of it: what is refused for their sake only is not told.
    pub(super) fn doubting(mut self, keys: impl IntoIterator<Item = String>) -> ExperimentError {
        self.0.doubting.extend(keys);
        self
    }

    /// The keys that are not read as they were meant because of it.
    fn misread(&self) -> impl Iterator<Item = &String> {
        let own = self.0.key.iter().filter(|_| self.0.between.is_empty());
        own.chain(&self.0.doubting)
    }

    /// Whether each setting is right by itself, and they are refused together or by the engine.
    pub(super) fn is_refusal(&self) -> bool {
        !self.0.between.is_empty()
    }

    /// What is wrong, and what is said beneath its place, in one line.
    pub(super) fn reason(&self) -> String {
        match &self.0.mark {
            Some(mark) => format!("{}: {}", self.0.message, mark.label),
            None => self.0.message.clone(),
        }
    }

    /// The other mistakes that were found with this one, in the order of the file.
    pub fn others(&self) -> &[ExperimentError] {
        &self.0.others
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

    /// Where it is: `span` of `text`, the `number`-th, which people know as `name`, and what to say beneath it.
    pub(super) fn mark(
        mut self,
        number: usize,
        name: &str,
        text: &str,
        span: Range<usize>,
        label: impl Into<String>,
    ) -> ExperimentError {
        self.0.mark = Some(Mark {
            text: number,
            start: span.start,
            is_table: false,
            source: Shown::new(name, text, span),
            label: shown::message(&label.into()),
        });
        self
    }

    /// The key that is wrong, in full and as `--set` would spell it; `None` when no single key is (a syntax error).
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// The name of the file (or "command line" for a `--set`), with line and column counted from 1; `None` when the
    /// file could not be read at all.
    pub fn place(&self) -> Option<(&str, usize, usize)> {
        let source = &self.0.mark.as_ref()?.source;
        Some((source.name(), source.line, source.column))
    }
}

impl Diagnostic for ExperimentError {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.0.help.as_ref().map(|help| Box::new(help) as _)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        let others = self.0.others.iter().map(|other| other as &dyn Diagnostic);
        Some(Box::new(others))
            .filter(|_| !self.0.others.is_empty())
            .map(|others| others as _)
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
