//! The experiment file as a tree in which every value knows where it was written: in the file or in a `--set` argument.
//!
//! TOML comes in here, and `--set key=value` is applied here, before anything is validated; what follows
//! (`Reader`) sees one tree and can point at the right place for both.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};

use super::command_line::CommandLine;
use super::doubts::Doubts;
use super::error::ExperimentError;
use super::matrix::FactorMatrix;

/// What people read as the file name of a mistake in a `--set` argument.
const COMMAND_LINE: &str = "command line";
/// Names longer than this do not fit the tables they are shown in.
pub const NAME_LENGTH_MAX: usize = 100;
/// How `--set` is written, for a person who wrote it otherwise.
const SET_EXAMPLE: &str =
    "write it like --set database.writers=4 or --set 'layout.\"odm\".path=fast'";

/// A place in one of the texts of a [`Document`].
#[derive(Clone, Debug)]
pub(super) struct SourcePlace {
    /// 0 is the file; the others are parts of the command line.
    pub text: usize,
    span: Range<usize>,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub value: Value,
    pub place: SourcePlace,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    /// Wider than TOML asks for, so that a number too big for its setting can be shown as it was written.
    Integer(i128),
    Float(f64),
    Bool(bool),
    Date,
    List(Vec<Node>),
    Table(DocumentTable),
}

/// The entries of a table in the order of the file; those added by `--set` follow.
#[derive(Clone, Debug)]
pub(super) struct DocumentTable {
    pub entries: Vec<KeyValue>,
}

/// One `key = value`.
#[derive(Clone, Debug)]
pub(super) struct KeyValue {
    pub key: String,
    pub key_place: SourcePlace,
    pub node: Node,
}

impl DocumentTable {
    /// A table without entries, which is what a section left out is read as.
    pub const EMPTY: DocumentTable = DocumentTable {
        entries: Vec::new(),
    };

    /// The value of `key`, if it is set.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.node)
    }

    /// This table with the entries of `over` replacing its own.
    pub fn overridden_by(&self, over: &DocumentTable) -> DocumentTable {
        let kept = self
            .entries
            .iter()
            .filter(|entry| over.get(&entry.key).is_none());
        DocumentTable {
            entries: kept.chain(&over.entries).cloned().collect(),
        }
    }
}

impl DocumentTable {
    /// Takes the entry of `key` out.
    pub fn take(&mut self, key: &str) -> Option<KeyValue> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(index))
    }

    /// Sets `key` to a value that is said to stand at `place`.
    pub fn put(&mut self, key: &str, value: Value, place: &SourcePlace) {
        self.take(key);
        self.entries.push(KeyValue {
            key: key.to_owned(),
            key_place: place.clone(),
            node: Node {
                value,
                place: place.clone(),
            },
        });
    }
}

impl Node {
    /// A table in which `key` holds the entries of both, those of `over` where both have one.
    pub fn merged_with(&self, over: &Node, key: &str) -> DocumentTable {
        let mut merged = over.clone();
        if let (Value::Table(shared), Value::Table(own)) = (&self.value, &over.value) {
            merged.value = Value::Table(shared.overridden_by(own));
        }
        let entry = KeyValue {
            key: key.to_owned(),
            key_place: over.place.clone(),
            node: merged,
        };
        DocumentTable {
            entries: vec![entry],
        }
    }
}

impl Value {
    /// The value as an error message names it.
    pub fn found(&self) -> String {
        match self {
            Value::Text(text) => format!("the text {text:?}"),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => shown(*number),
            Value::Bool(flag) => flag.to_string(),
            Value::Date => "a date".to_owned(),
            Value::List(items) if items.is_empty() => "an empty list".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }
}

/// A number as people write it: those of many digits with an exponent.
pub(super) fn shown(number: f64) -> String {
    match number.abs() {
        size if size != 0.0 && !(1e-6..1e16).contains(&size) => format!("{number:e}"),
        _ => number.to_string(),
    }
}

/// The file with its `--set` arguments applied.
pub(super) struct Document {
    /// Name and text of the file, then of each part of the command line.
    texts: Vec<(String, String)>,
    /// What the text was written for, if it was not written as a file. Its texts follow the file's.
    written_for: Option<CommandLine>,
    /// The root table.
    pub root: Node,
    /// Whether directories named by the experiment are looked for while it is read.
    pub directories_must_exist: bool,
    /// Tells the section that a key belongs to, for a person who wrote it in another.
    pub home_of: fn(&str) -> Option<String>,
    /// What was varied, if the layouts are those of a matrix.
    pub matrix: Option<FactorMatrix>,
    /// Whether the plan was cut down to a first look.
    pub is_quick: bool,
    /// What was found wrong while it was read.
    mistakes: RefCell<Vec<ExperimentError>>,
    /// What could not be read as it was meant, beside what these mistakes say.
    doubts: RefCell<Doubts>,
}

/// An argument of the command line that gives a key a value.
pub(super) struct Assignment {
    /// The parts of the key.
    pub keys: Vec<String>,
    pub key_place: SourcePlace,
    /// What stands behind the `=`, and where.
    pub value: String,
    pub value_place: SourcePlace,
}

/// This many mistakes are remembered. Each layout repeats those of `[database]`.
const MISTAKES_MAX: usize = 2000;

impl Document {
    /// Parses `text`, known to people as `name` or as the command line that it was written for, and applies `sets` in
    /// their order.
    pub fn parse(
        name: &str,
        text: &str,
        sets: &[String],
        written_for: Option<&CommandLine>,
    ) -> Result<Document, ExperimentError> {
        let last_line = text.trim_end().rfind('\n').map_or(0, |newline| newline + 1);
        let end = SourcePlace {
            text: 0,
            span: last_line..text.trim_end().len(),
        };
        let arguments = written_for.into_iter().flat_map(CommandLine::texts);
        let arguments = arguments.map(|argument| (COMMAND_LINE.to_owned(), argument.to_owned()));
        let file = (name.to_owned(), text.to_owned());
        let mut document = Document {
            texts: std::iter::once(file).chain(arguments).collect(),
            written_for: written_for.cloned(),
            root: Node {
                value: Value::Table(DocumentTable::EMPTY),
                place: end,
            },
            directories_must_exist: false,
            home_of: |_| None,
            matrix: None,
            is_quick: false,
            mistakes: RefCell::default(),
            doubts: RefCell::default(),
        };
        let parsed = DeTable::parse(text).map_err(|error| document.syntax_error(&error))?;
        document.root.value = Value::Table(table_of(parsed.get_ref()));
        let mut earlier: Vec<Vec<String>> = Vec::new();
        for set in sets {
            let given = match document.assignment("--set", set, SET_EXAMPLE) {
                Ok(given) => given,
                Err(mistake) => {
                    document.note(mistake);
                    continue;
                }
            };
            let applied = match earlier.iter().find(|other| other.starts_with(&given.keys)) {
                Some(other) => Err(document.set_twice(&given, other)),
                None => document.apply(set, &given),
            };
            if let Err(mistake) = applied {
                document.note(mistake);
            }
            earlier.push(given.keys);
        }
        Ok(document)
    }

    fn at_root(&self, key: &str) -> Option<&Node> {
        match &self.root.value {
            Value::Table(root) => root.get(key),
            _ => None,
        }
    }

    /// A table at the top of the file.
    pub fn table(&self, key: &str) -> Option<DocumentTable> {
        match &self.at_root(key)?.value {
            Value::Table(table) => Some(table.clone()),
            _ => None,
        }
    }

    /// A list at the top of the file.
    pub fn list(&self, key: &str) -> Option<&[Node]> {
        match &self.at_root(key)?.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// Replaces the list of this key at the top of the file.
    pub fn put_list(&mut self, key: &str, items: Vec<Node>) {
        self.put_at_root(key, Value::List(items));
    }

    /// Replaces the table of this key at the top of the file.
    pub fn put_table(&mut self, key: &str, table: DocumentTable) {
        self.put_at_root(key, Value::Table(table));
    }

    fn put_at_root(&mut self, key: &str, value: Value) {
        let place = self
            .at_root(key)
            .map_or_else(|| self.root.place.clone(), |node| node.place.clone());
        if let Value::Table(root) = &mut self.root.value {
            root.put(key, value, &place);
        }
    }

    /// Remembers a mistake, and lets reading continue.
    pub fn note(&self, mistake: ExperimentError) {
        let mut mistakes = self.mistakes.borrow_mut();
        if mistakes.len() < MISTAKES_MAX {
            mistakes.push(mistake);
        }
    }

    /// Doubts a key, in full: nothing is told that rests on it.
    pub fn doubt(&self, key: String) {
        self.doubts.borrow_mut().add(key);
    }

    /// How many mistakes are known by now.
    pub fn count_of_mistakes(&self) -> usize {
        self.mistakes.borrow().len()
    }

    /// Forgets the mistakes after this many, and returns them.
    pub fn take_mistakes_after(&self, count: usize) -> Vec<ExperimentError> {
        self.mistakes.borrow_mut().split_off(count)
    }

    /// All mistakes so far as one error.
    pub fn mistakes(&self) -> Option<ExperimentError> {
        ExperimentError::all(self.mistakes.take(), self.doubts.take())
    }

    /// Where files that the experiment names are looked for: beside its own.
    pub fn directory(&self) -> &Path {
        let name = &self.texts[0].0;
        Path::new(name).parent().unwrap_or(Path::new(""))
    }

    /// The error with the text around `place`, `label` beneath it.
    pub fn mark(
        &self,
        error: ExperimentError,
        place: &SourcePlace,
        label: impl Into<String>,
    ) -> ExperimentError {
        if place.text == 0
            && let Some(written_for) = &self.written_for
        {
            let number = 1 + written_for.text_for(place.span.start);
            let (name, text) = &self.texts[number];
            return error.mark(number, name, text, 0..text.len(), label);
        }
        let (name, text) = &self.texts[place.text];
        error.mark(place.text, name, text, place.span.clone(), label)
    }

    fn syntax_error(&self, error: &toml::de::Error) -> ExperimentError {
        let wrong = "the experiment file is not TOML";
        let marked = match error.span() {
            Some(span) => {
                let place = SourcePlace { text: 0, span };
                self.mark(ExperimentError::new(wrong), &place, error.message())
            }
            None => {
                let (name, _) = &self.texts[0];
                ExperimentError::new(format!("{wrong}: {name}: {}", error.message()))
            }
        };
        marked.help("texts stand in quotes, tables in [brackets], each layout under its own [[layout]]: https://toml.io")
    }

    /// That one `--set` takes back what one before it said.
    fn set_twice(&self, given: &Assignment, other: &[String]) -> ExperimentError {
        let key = given.keys.join(".");
        let error = match other == given.keys {
            true => ExperimentError::new(format!("{key} is set twice")),
            false => ExperimentError::new(format!(
                "{key} is set after {}, which is a part of it",
                other.join(".")
            )),
        };
        let error = error.at_key(key).help("keep one of them");
        self.mark(
            error,
            &given.key_place,
            "this --set would undo the one before it",
        )
    }

    /// Puts the value of one `--set key=value` into the tree.
    fn apply(&mut self, argument: &str, given: &Assignment) -> Result<(), ExperimentError> {
        let value = value_of(&given.value, &given.value_place);
        match set(&mut self.root, &given.keys, value, &given.key_place) {
            Ok(()) => Ok(()),
            Err(why) => {
                let error = ExperimentError::new(format!("--set {argument} leads nowhere"))
                    .help(SET_EXAMPLE);
                Err(self.mark(
                    error.at_key(given.keys.join(".")),
                    &given.key_place,
                    why.to_string(),
                ))
            }
        }
    }

    /// Remembers an argument of the command line, so that mistakes in it can be shown. Returns its place.
    pub fn argument(&mut self, option: &str, argument: &str) -> SourcePlace {
        let text = format!("{option} {argument}");
        let span = option.len() + 1..text.len();
        self.texts.push((COMMAND_LINE.to_owned(), text));
        SourcePlace {
            text: self.texts.len() - 1,
            span,
        }
    }

    /// Takes `key=value` apart, the argument of `option`; `example` shows how it is written.
    pub fn assignment(
        &mut self,
        option: &str,
        argument: &str,
        example: &str,
    ) -> Result<Assignment, ExperimentError> {
        let whole = self.argument(option, argument);
        let wrong =
            |what: &str| ExperimentError::new(format!("{option} {argument} {what}")).help(example);
        let Some(equals) = equals_sign(argument) else {
            return Err(self.mark(wrong("sets nothing"), &whole, "no '=' in it"));
        };
        let key_place = whole.part(0..equals);
        let Some(keys) = keys_of(&argument[..equals]) else {
            return Err(self.mark(wrong("names no key"), &key_place, "not a key"));
        };
        Ok(Assignment {
            keys,
            key_place,
            value: argument[equals + 1..].to_owned(),
            value_place: whole.part(equals + 1..argument.len()),
        })
    }
}

impl SourcePlace {
    /// A part of this place, counted from its start.
    pub fn part(&self, range: Range<usize>) -> SourcePlace {
        SourcePlace {
            text: self.text,
            span: self.span.start + range.start..self.span.start + range.end,
        }
    }
}

/// Keys that lead to no place in the tree: where they end, and what there is.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct LeadsNowhere(String);

/// Walks down `keys`, making tables that are not there, and leaves `value` at their end.
pub(super) fn set(
    root: &mut Node,
    keys: &[String],
    value: Node,
    key_place: &SourcePlace,
) -> Result<(), LeadsNowhere> {
    let mut here = root;
    for (depth, key) in keys.iter().enumerate() {
        let parent = keys[..depth].join(".");
        here = match &mut here.value {
            Value::Table(table) => {
                let index = table
                    .entries
                    .iter()
                    .position(|entry| entry.key == *key)
                    .unwrap_or_else(|| {
                        let node = Node {
                            value: Value::Table(DocumentTable::EMPTY),
                            place: key_place.clone(),
                        };
                        table.entries.push(KeyValue {
                            key: key.clone(),
                            key_place: key_place.clone(),
                            node,
                        });
                        table.entries.len() - 1
                    });
                &mut table.entries[index].node
            }
            Value::List(items) => {
                let index = index_in(items, key)
                    .ok_or_else(|| nothing_of_that_name(&parent, key, items))?;
                &mut items[index]
            }
            other => {
                let found = other.found();
                return Err(LeadsNowhere(format!(
                    "{parent} is {found}, which has no keys"
                )));
            }
        };
    }
    *here = value;
    Ok(())
}

/// Which item of a list `key` means: the one of that name, else the one at that position, counted from 0.
fn index_in(items: &[Node], key: &str) -> Option<usize> {
    let named = items.iter().position(|item| name_of(item) == Some(key));
    named.or_else(|| key.parse().ok().filter(|index| *index < items.len()))
}

/// The name of a table that has one.
pub(super) fn name_of(item: &Node) -> Option<&str> {
    match &item.value {
        Value::Table(table) => match &table.get("name")?.value {
            Value::Text(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

fn nothing_of_that_name(parent: &str, key: &str, items: &[Node]) -> LeadsNowhere {
    let names: Vec<String> = items
        .iter()
        .filter_map(name_of)
        .map(|name| format!("{name:?}"))
        .collect();
    let positions = match items.len() {
        0 => "it is empty".to_owned(),
        1 => "allowed: 0".to_owned(),
        count => format!("allowed: 0 to {}", count - 1),
    };
    let or_names = if names.is_empty() {
        String::new()
    } else {
        format!(", or a name: {}", names.join(", "))
    };
    LeadsNowhere(format!("{parent} has no {key:?}; {positions}{or_names}"))
}

/// Where the key of a `--set` argument ends: the first `=` outside quotes.
fn equals_sign(argument: &str) -> Option<usize> {
    let mut quote = None;
    argument.char_indices().find_map(|(index, c)| {
        match (quote, c) {
            (None, '=') => return Some(index),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        None
    })
}

/// The parts of a dotted key, by TOML's own rules for quotes.
pub(super) fn keys_of(dotted: &str) -> Option<Vec<String>> {
    if dotted.contains('\n') {
        return None;
    }
    let text = format!("{dotted} = 0");
    let parsed = DeTable::parse(&text).ok()?;
    let mut keys = Vec::new();
    let mut table = parsed.get_ref();
    loop {
        let (key, value) = table.iter().next()?;
        keys.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(keys),
        }
    }
}

/// Whether a text is a value as TOML has it.
pub fn is_value(text: &str) -> bool {
    DeValue::parse(text).is_ok()
}

/// The value of a `--set` argument: TOML if it is, else the text itself, so that a shell's quotes need no second pair.
pub(super) fn value_of(text: &str, place: &SourcePlace) -> Node {
    let value = match DeValue::parse(text.trim()) {
        Ok(parsed) => node_of(&parsed).value,
        Err(_) => Value::Text(text.to_owned()),
    };
    let mut node = Node {
        value,
        place: place.clone(),
    };
    put_everything_at(&mut node, place);
    node
}

fn put_everything_at(node: &mut Node, place: &SourcePlace) {
    node.place = place.clone();
    match &mut node.value {
        Value::List(items) => items
            .iter_mut()
            .for_each(|item| put_everything_at(item, place)),
        Value::Table(table) => {
            for entry in &mut table.entries {
                entry.key_place = place.clone();
                put_everything_at(&mut entry.node, place);
            }
        }
        _ => {}
    }
}

fn table_of(parsed: &DeTable<'_>) -> DocumentTable {
    let mut entries: Vec<KeyValue> = parsed
        .iter()
        .map(|(key, value)| KeyValue {
            key: key.get_ref().to_string(),
            key_place: SourcePlace {
                text: 0,
                span: key.span(),
            },
            node: node_of(value),
        })
        .collect();
    // The parser sorts by name; people read from the top.
    entries.sort_by_key(|entry| entry.key_place.span.start);
    DocumentTable { entries }
}

fn node_of(parsed: &Spanned<DeValue<'_>>) -> Node {
    let value = match parsed.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => integer_of(number),
        DeValue::Float(number) => float_of(number),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => Value::List(items.iter().map(node_of).collect()),
        DeValue::Table(table) => Value::Table(table_of(table)),
    };
    Node {
        value,
        place: SourcePlace {
            text: 0,
            span: parsed.span(),
        },
    }
}

fn integer_of(number: &DeInteger<'_>) -> Value {
    match i128::from_str_radix(number.as_str(), number.radix()) {
        Ok(value) => Value::Integer(value),
        Err(_) => Value::Text(number.as_str().to_owned()),
    }
}

fn float_of(number: &DeFloat<'_>) -> Value {
    match number.as_str().parse() {
        Ok(value) => Value::Float(value),
        Err(_) => Value::Text(number.as_str().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::Experiment;

    const ONE_LAYOUT: &str = "[[layout]]\nname = \"only\"\n";

    fn told(text: &str, set: &str) -> String {
        let sets = [set.to_owned()];
        let wrong = Experiment::parse("test.toml", text, &sets).expect_err("a wrong experiment");
        wrong.to_string()
    }

    #[test]
    fn a_number_of_many_digits_is_told_with_its_exponent() {
        assert_eq!(
            told(ONE_LAYOUT, "workload.clients=1e308"),
            "workload.clients is 1e308"
        );
        assert_eq!(
            told(ONE_LAYOUT, "workload.clients=0.25"),
            "workload.clients is 0.25"
        );
    }

    #[test]
    fn a_mistake_without_a_place_is_told_all_the_same() {
        let keys = vec!["a"; 100_000].join(".");
        let told = told(&format!("{keys} = 1\n{ONE_LAYOUT}"), "seed=1");
        assert!(told.contains("not TOML: test.toml: "), "{told}");
    }
}
