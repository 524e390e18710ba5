//! Reads the settings of one table: for each, one line in the section's code gives its key, default and allowed range.
//!
//! A [`Reader`] remembers the keys it was asked for, so [`Reader::finish`] knows a misspelt one when it sees it, and
//! every complaint comes with the key in full, its place, what is allowed and what to do. A wrong value is noted in the
//! document, and the default is read in its place: so a person is told all mistakes at once. The sections of the
//! experiment file (database, workload, plan, layout) are read through it.

mod named_files;
mod rates;
mod stepped;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::document::{
    Document, DocumentTable, KeyValue, NAME_LENGTH_MAX, Node, SourcePlace, Value, shown,
};
use super::doubts::anywhere;
use super::error::ExperimentError;
use super::nearest::nearest;
use spindle_text::plain::{is_harmful, is_invisible};
use spindle_text::quantity::{
    duration_text, parse_duration_ms, parse_percent, parse_size, size_text,
};
use spindle_text::section::Section;
use spindle_text::word::Word;

use stepped::{NUMBERS_MAX, Stepped};

/// Help for mistakes that explain themselves.
const SEE_REFERENCE: &str = "docs/experiment-file.md describes every key";
/// `PATH_MAX` of Linux.
const TEXT_BYTES_MAX: usize = 4096;

/// The settings of one table.
pub(super) struct Reader<'a> {
    document: &'a Document,
    /// The table's name as `--set` would spell it; empty for the root.
    path: String,
    /// Where to point when a key is missing.
    place: &'a SourcePlace,
    table: &'a DocumentTable,
    known: Vec<&'static str>,
}

/// What may be written as one word or, with more to say, as a table.
pub(super) enum Item<'a> {
    /// The word.
    Text(&'a str),
    /// The table.
    Table(Reader<'a>),
}

/// The keys that `read` asks a table for.
pub(super) fn keys_asked_by<T>(read: impl FnOnce(&mut Reader<'_>) -> T) -> Vec<&'static str> {
    let nothing = Document::parse("", "", &[], None).expect("an empty document is TOML");
    let mut reader = Reader {
        document: &nothing,
        path: String::new(),
        place: &nothing.root.place,
        table: &DocumentTable::EMPTY,
        known: Vec::new(),
    };
    // Only what was asked matters here: an empty table may well lack something.
    let _ = read(&mut reader);
    reader.known
}

/// The keys of a section.
pub(super) fn keys_in<S: Section>() -> Vec<&'static str> {
    keys_asked_by(|reader| S::read(reader))
}

impl<'a> Reader<'a> {
    /// The top of the file.
    pub fn root(document: &'a Document) -> Reader<'a> {
        let Value::Table(table) = &document.root.value else {
            unreachable!("the root of a TOML document is a table")
        };
        Reader {
            document,
            path: String::new(),
            place: &document.root.place,
            table,
            known: Vec::new(),
        }
    }

    /// The same place in the file, reading `table` in the stead of what is written there.
    pub fn over<'b>(&'b self, table: &'b DocumentTable) -> Reader<'b> {
        Reader {
            document: self.document,
            path: self.path.clone(),
            place: self.place,
            table,
            known: Vec::new(),
        }
    }

    /// The table being read.
    pub fn table(&self) -> &'a DocumentTable {
        self.table
    }

    /// Says whether `key` is set.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// The name that the table gives itself, right or wrong.
    pub fn given_name(&self) -> Option<&'a str> {
        match &self.table.get("name")?.value {
            Value::Text(name) => Some(name),
            _ => None,
        }
    }

    /// Says whether `key` is set to a list.
    pub fn is_list(&self, key: &str) -> bool {
        matches!(
            self.table.get(key),
            Some(Node {
                value: Value::List(_),
                ..
            })
        )
    }

    /// Says whether the database of a layout is on an existing server.
    pub fn names_a_server(&self) -> bool {
        let database = self.table.get("database").map(|node| &node.value);
        matches!(database, Some(Value::Table(table)) if table.get("url").is_some())
    }

    /// The table under `key`; read as empty when it is left out.
    pub fn section(&mut self, key: &'static str) -> Reader<'a> {
        let path = self.full(key);
        let empty = (const { &DocumentTable::EMPTY }, self.place);
        let (table, place) = match self.node(key) {
            None => empty,
            Some(Node {
                value: Value::Table(table),
                place,
            }) => (table, place),
            Some(node) => self.refuse_value(key, node, "a table of settings", empty),
        };
        Reader {
            document: self.document,
            path,
            place,
            table,
            known: Vec::new(),
        }
    }

    /// The tables of a list of tables, `[[key]]` in the file; each is called by its name, else by its position.
    pub fn sections(&mut self, key: &'static str) -> Vec<Reader<'a>> {
        let items = match self.node(key) {
            None => return Vec::new(),
            Some(Node {
                value: Value::List(items),
                ..
            }) => items,
            Some(node) => {
                let allowed = format!("a list of tables: write [[{key}]], in two brackets");
                return self.refuse_value(key, node, allowed, Vec::new());
            }
        };
        let mut sections = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let Value::Table(table) = &item.value else {
                self.refuse_value(key, item, "a list of tables", ());
                continue;
            };
            let named = match table.get("name") {
                Some(Node {
                    value: Value::Text(name),
                    ..
                }) => Some(format!("{key}.{name:?}")),
                _ => None,
            };
            // Of several with one name, only the first is found by it.
            let is_first = |path: &String| {
                sections
                    .iter()
                    .all(|other: &Reader<'_>| other.path != *path)
            };
            let path = named
                .filter(is_first)
                .unwrap_or_else(|| format!("{key}.{index}"));
            let (document, place) = (self.document, &item.place);
            sections.push(Reader {
                document,
                path,
                place,
                table,
                known: Vec::new(),
            });
        }
        sections
    }

    /// A whole number.
    pub fn number<T>(&mut self, key: &'static str, range: RangeInclusive<T>) -> Option<T>
    where
        T: Copy + Display + PartialOrd + TryFrom<i128>,
    {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        self.within(key, &range, &allowed, whole_number)
    }

    /// A whole number, or `None` for the word `"auto"`.
    pub fn number_or_auto(
        &mut self,
        key: &'static str,
        default: u32,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        if self.is_auto(key) {
            self.known.push(key);
            return None;
        }
        let (least, most) = (range.start(), range.end());
        let allowed = format!("a whole number from {least} to {most}, or \"auto\"");
        let number = self.within(key, &range, &allowed, whole_number);
        Some(number.unwrap_or(default))
    }

    /// A duration in milliseconds, or `None` for the word `"auto"`, which is the default.
    pub fn duration_ms_or_auto(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        if !self.has(key) || self.is_auto(key) {
            self.known.push(key);
            return None;
        }
        let (least, most) = (duration_text(*range.start()), duration_text(*range.end()));
        let allowed =
            format!("\"auto\", or a duration from \"{least}\" to \"{most}\", in ms, s, m or h");
        let duration_ms = self.within(key, &range, &allowed, duration_ms);
        Some(duration_ms.unwrap_or(*range.start()))
    }

    fn is_auto(&self, key: &str) -> bool {
        matches!(self.table.get(key), Some(Node { value: Value::Text(text), .. }) if text == "auto")
    }

    /// One whole number or a list of different ones.
    pub fn numbers(&mut self, key: &'static str, range: RangeInclusive<u32>) -> Option<Vec<u32>> {
        let allowed = format!(
            "a whole number from {} to {}, a list of different ones such as [8, 16], or \"20..200 step 20\"",
            range.start(),
            range.end()
        );
        let node = self.node(key)?;
        let items = match &node.value {
            Value::List(items) if !items.is_empty() => items,
            Value::Text(text) => {
                let allowed = match Stepped::of(text, &range) {
                    None => allowed,
                    Some(stepped) if stepped.numbers().count() > NUMBERS_MAX => stepped.allowed(),
                    Some(stepped) => return Some(stepped.numbers().collect()),
                };
                return self.refuse_value(key, node, allowed, None);
            }
            _ => std::slice::from_ref(node),
        };
        let mut numbers = Vec::new();
        for item in items {
            let number =
                whole_number(&item.value).filter(|n| range.contains(n) && !numbers.contains(n));
            match number {
                Some(number) => numbers.push(number),
                None => return self.refuse_value(key, item, &allowed, None),
            }
        }
        Some(numbers)
    }

    /// A size in bytes.
    pub fn size(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let (least, most) = (size_text(*range.start()), size_text(*range.end()));
        let mut allowed = format!("a size from \"{least}\" to \"{most}\", in KiB, MiB, GiB or TiB");
        if let Some(meant) = self.node(key).and_then(|node| meant_size(&node.value)) {
            allowed = format!("{allowed}: write {meant:?}");
        }
        self.within(key, &range, &allowed, size_bytes)
    }

    /// A size in bytes out of a few.
    pub fn size_among(&mut self, key: &'static str, sizes: &[u64]) -> Option<u64> {
        let node = self.node(key)?;
        let size = size_bytes(&node.value).filter(|bytes| sizes.contains(bytes));
        size.or_else(|| {
            let text = |bytes: &u64| format!("{:?}", size_text(*bytes));
            let texts: Vec<String> = sizes.iter().map(text).collect();
            self.refuse_value(key, node, alternatives(&texts), None)
        })
    }

    /// A duration in milliseconds.
    pub fn duration_ms(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let (least, most) = (duration_text(*range.start()), duration_text(*range.end()));
        let allowed = format!("a duration from \"{least}\" to \"{most}\", in ms, s, m or h");
        self.within(key, &range, &allowed, duration_ms)
    }

    /// A percentage that needs its sign, as `"3%"`: a bare 0.03 might mean either.
    pub fn percent(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let allowed = format!(
            "a percentage with its sign, from \"{}%\" to \"{}%\"",
            range.start(),
            range.end()
        );
        self.within(key, &range, &allowed, |value| match value {
            Value::Text(text) => parse_percent(text),
            _ => None,
        })
    }

    /// A number that need not be whole.
    pub fn scale(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let allowed = format!("a number from {} to {}", range.start(), range.end());
        self.within(key, &range, &allowed, |value| match value {
            Value::Float(number) => Some(*number),
            Value::Integer(number) => Some(*number as f64),
            _ => None,
        })
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        match self.node(key)? {
            Node {
                value: Value::Bool(flag),
                ..
            } => Some(*flag),
            node => self.refuse_value(key, node, "true or false", None),
        }
    }

    /// One word out of those of `T`.
    pub fn word<T: Word>(&mut self, key: &'static str) -> Option<T> {
        let node = self.node(key)?;
        let words: Vec<String> = T::ALLOWED
            .iter()
            .map(|(word, _)| format!("{word:?}"))
            .collect();
        let Value::Text(text) = &node.value else {
            return self.refuse_value(key, node, alternatives(&words), None);
        };
        if let Some((_, value)) = T::ALLOWED.iter().find(|(word, _)| word == text) {
            return Some(*value);
        }
        if let Some(value) = T::of_other_word(text) {
            return Some(value);
        }
        if T::LATER.contains(&text.as_str()) {
            let message = format!("{} = {text:?} is not built yet", self.full(key));
            let label = format!("allowed today: {}", alternatives(&words));
            let error = self.error(&node.place, key, message, label);
            self.document.note(error.help(SEE_REFERENCE));
            return None;
        }
        let error = self.wrong(key, node, alternatives(&words));
        self.document.note(
            match nearest(text, T::ALLOWED.iter().map(|(word, _)| *word)) {
                Some(word) => error.help(format!("did you mean {word:?}?")),
                None => error,
            },
        );
        None
    }

    /// A text or a table; `allowed` says what they are.
    pub fn item(&mut self, key: &'static str, allowed: &str) -> Option<Item<'a>> {
        let path = self.full(key);
        let node = self.node(key)?;
        self.item_of(key, node, path, allowed)
    }

    /// A list of texts and tables, at least one of them; empty when the key is left out.
    pub fn items(&mut self, key: &'static str, allowed: &str) -> Vec<Item<'a>> {
        let Some(node) = self.node(key) else {
            return Vec::new();
        };
        let items = match &node.value {
            Value::List(items) if !items.is_empty() => items,
            _ => return self.refuse_value(key, node, allowed, Vec::new()),
        };
        let path_of = |index| format!("{}.{index}", self.full(key));
        items
            .iter()
            .enumerate()
            .filter_map(|(index, node)| self.item_of(key, node, path_of(index), allowed))
            .collect()
    }

    fn item_of(&self, key: &str, node: &'a Node, path: String, allowed: &str) -> Option<Item<'a>> {
        match &node.value {
            Value::Text(text) if is_plain(text) => Some(Item::Text(text)),
            Value::Table(table) => Some(Item::Table(Reader {
                document: self.document,
                path,
                place: &node.place,
                table,
                known: Vec::new(),
            })),
            _ => self.refuse_value(key, node, allowed, None),
        }
    }

    /// A text that is not empty, if the key is set.
    pub fn text(&mut self, key: &'static str, allowed: &str) -> Option<&'a str> {
        let node = self.node(key)?;
        match &node.value {
            Value::Text(text) if is_plain(text) => Some(text),
            _ => self.refuse_value(key, node, allowed, None),
        }
    }

    /// A table of settings that are none of Spindle's: any names, with texts, numbers or flags as values.
    ///
    /// `check` says what is wrong with a name and its value.
    pub fn settings<E: Display>(
        &mut self,
        key: &'static str,
        check: impl Fn(&str, &str) -> Result<(), E>,
    ) -> BTreeMap<String, String> {
        let Some(node) = self.node(key) else {
            return BTreeMap::new();
        };
        let allowed = "a table of names, each with a text, a number, true or false";
        let Value::Table(table) = &node.value else {
            return self.refuse_value(key, node, allowed, BTreeMap::new());
        };
        let setting = |entry: &KeyValue| {
            let value = match &entry.node.value {
                _ if !is_plain(&entry.key) => {
                    return self.refuse_value(key, &entry.node, allowed, None);
                }
                Value::Text(text) if !text.contains(is_harmful) => text.clone(),
                Value::Integer(number) => number.to_string(),
                Value::Float(number) => shown(*number),
                Value::Bool(true) => "on".to_owned(),
                Value::Bool(false) => "off".to_owned(),
                _ => return self.refuse_value(key, &entry.node, allowed, None),
            };
            if let Err(reason) = check(&entry.key, &value) {
                let name = format!("{key}.{}", entry.key);
                let message = format!("{} cannot be set so", self.full(&name));
                self.document.note(self.error(
                    &entry.node.place,
                    &name,
                    message,
                    reason.to_string(),
                ));
            }
            Some((entry.key.clone(), value))
        };
        table.entries.iter().filter_map(setting).collect()
    }

    /// A list of texts, none of them empty; empty when the key is left out.
    pub fn texts(&mut self, key: &'static str, allowed: &str) -> Vec<String> {
        match self.node(key) {
            None => Vec::new(),
            Some(node) => self.texts_of(key, node, allowed),
        }
    }

    /// A list of lists of texts; empty when the key is left out.
    pub fn lists_of_texts(&mut self, key: &'static str, allowed: &str) -> Vec<Vec<String>> {
        let Some(node) = self.node(key) else {
            return Vec::new();
        };
        let Value::List(lists) = &node.value else {
            return self.refuse_value(key, node, allowed, Vec::new());
        };
        lists
            .iter()
            .map(|list| self.texts_of(key, list, allowed))
            .collect()
    }

    fn texts_of(&self, key: &str, node: &Node, allowed: &str) -> Vec<String> {
        let items = match &node.value {
            Value::List(items) if !items.is_empty() => items,
            _ => return self.refuse_value(key, node, allowed, Vec::new()),
        };
        let text = |item: &Node| match &item.value {
            Value::Text(text) if is_plain(text) => Some(text.clone()),
            _ => self.refuse_value(key, item, allowed, None),
        };
        items.iter().filter_map(text).collect()
    }

    /// A name for people: some visible text on one line.
    pub fn name(&mut self, key: &'static str) -> Option<&'a str> {
        let node = self.node(key)?;
        let allowed = || {
            format!(
                "1 to {NAME_LENGTH_MAX} characters on one line, all of them visible, no space first or last"
            )
        };
        match &node.value {
            Value::Text(name) if is_name(name) => Some(name),
            _ => self.refuse_value(key, node, allowed(), None),
        }
    }

    /// An existing directory.
    pub fn directory(&mut self, key: &'static str) -> Option<PathBuf> {
        let node = self.node(key)?;
        let path = match &node.value {
            Value::Text(text) if is_plain(text) => Path::new(text),
            _ => return self.refuse_value(key, node, "the path of an existing directory", None),
        };
        if self.document.directories_must_exist && !path.is_dir() {
            let message = format!("{} is {:?}", self.full(key), path);
            let label = if path.exists() {
                "not a directory"
            } else {
                "there is no such directory"
            };
            let help = "name an existing directory on the file system to be tested, or make it first; \
                        a relative path starts where spindle is started";
            let error = self.error(&node.place, key, message, label);
            self.document.note(error.help(help));
            return None;
        }
        Some(path.to_owned())
    }

    /// Refuses what the settings say together: points at that one of `keys` which was set last (by `--set`, in a
    /// layout, further down), for it is the likeliest to be put right; at the table when none is set.
    pub fn conflict(
        &self,
        keys: &[&str],
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) -> ExperimentError {
        let entries = self.table.entries.iter().enumerate();
        let last = entries
            .filter(|(_, entry)| keys.contains(&entry.key.as_str()))
            .max_by_key(|(index, entry)| (entry.node.place.text, *index));
        let (key, place) = match last {
            Some((_, entry)) => (entry.key.as_str(), &entry.node.place),
            None => (keys[0], self.place),
        };
        let keys = keys.iter().map(|key| self.full(key));
        self.error(place, key, message, label)
            .help(help)
            .between(keys, last.is_none())
    }

    /// Notes what [`Reader::conflict`] refuses.
    pub fn refuse(
        &self,
        keys: &[&str],
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.note(self.conflict(keys, message, label, help));
    }

    /// Notes that the value of `key` is wrong: what it means cannot be known.
    pub fn refuse_meaning(
        &self,
        key: &str,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        let place = self.table.get(key).map_or(self.place, |node| &node.place);
        self.note(self.error(place, key, message, label).help(help));
    }

    /// Notes a mistake.
    pub fn note(&self, mistake: ExperimentError) {
        self.document.note(mistake);
    }

    /// These keys in full.
    pub fn keys<const COUNT: usize>(&self, keys: [&str; COUNT]) -> [String; COUNT] {
        keys.map(|key| self.full(key))
    }

    /// Knows these keys from now on, whether they are asked for or not.
    pub fn know(&mut self, keys: &[&'static str]) {
        for key in keys {
            if !self.known.contains(key) {
                self.known.push(key);
            }
        }
    }

    /// The keys that are set of those that were asked for, but for these.
    pub fn set_besides(&self, but: &[&str]) -> impl Iterator<Item = &'static str> {
        let asked = self.known.iter().filter(|key| !but.contains(*key));
        asked.filter(|key| self.has(key)).copied()
    }

    /// Refuses any key that nothing asked for.
    pub fn finish(&self) {
        self.finish_given(&[], "");
    }

    /// Refuses any key that nothing asked for, where `key` says whether there are `others`.
    pub fn finish_given(&self, others: &[&str], key: &str) {
        let is_unknown = |entry: &&KeyValue| !self.known.contains(&entry.key.as_str());
        for entry in self.table.entries.iter().filter(is_unknown) {
            let unknown = self.unknown(entry);
            self.note(match others.contains(&entry.key.as_str()) {
                true => unknown.given(self.keys([key])),
                false => unknown,
            });
        }
    }

    /// The value of `key` and its full name, `key` being known from now on.
    fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.know(&[key]);
        self.table.get(key)
    }

    /// The name of `key` as `--set` would spell it.
    fn full(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn within<T: Copy + PartialOrd>(
        &mut self,
        key: &'static str,
        range: &RangeInclusive<T>,
        allowed: &str,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        let node = self.node(key)?;
        convert(&node.value)
            .filter(|value| range.contains(value))
            .or_else(|| self.refuse_value(key, node, allowed, None))
    }

    /// Notes a value that is not `allowed`, and gives what is read in its place.
    fn refuse_value<T>(&self, key: &str, node: &Node, allowed: impl Display, instead: T) -> T {
        self.document.note(self.wrong(key, node, allowed));
        instead
    }

    fn error(
        &self,
        place: &SourcePlace,
        key: &str,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> ExperimentError {
        self.document.mark(
            ExperimentError::new(message).at_key(self.full(key)),
            place,
            label,
        )
    }

    fn wrong(&self, key: &str, node: &Node, allowed: impl Display) -> ExperimentError {
        let message = format!("{} is {}", self.full(key), node.value.found());
        self.error(&node.place, key, message, format!("allowed: {allowed}"))
            .help(SEE_REFERENCE)
    }

    fn unknown(&self, entry: &KeyValue) -> ExperimentError {
        let key = entry.key.as_str();
        let (label, meant) = if let Some(home) = (self.document.home_of)(key) {
            (format!("it belongs to {home}"), Some(anywhere(key)))
        } else if let Some(right) = nearest(key, self.known.iter().copied()) {
            (format!("did you mean {right:?}?"), Some(self.full(right)))
        } else {
            ("unknown here".to_owned(), None)
        };
        let message = format!("{} is not a setting", self.full(key));
        let here = if self.path.is_empty() {
            "at the top".to_owned()
        } else {
            format!("in {}", self.path)
        };
        let help = format!("allowed {here}: {}", self.known.join(", "));
        let error = self.error(&entry.key_place, key, message, label);
        error.help(help).doubting(meant)
    }
}

fn duration_ms(value: &Value) -> Option<u64> {
    match value {
        Value::Text(text) => parse_duration_ms(text),
        _ => None,
    }
}

fn whole_number<T: TryFrom<i128>>(value: &Value) -> Option<T> {
    match value {
        Value::Integer(number) => T::try_from(*number).ok(),
        _ => None,
    }
}

/// The size that a text such as `16MB` means to a server: its megabytes are mebibytes.
fn meant_size(value: &Value) -> Option<String> {
    let Value::Text(text) = value else {
        return None;
    };
    let unit = text.strip_suffix(['B', 'b'])?.trim_end();
    parse_size(text)
        .is_none()
        .then(|| parse_size(unit).map(size_text))?
}

/// A bare number is bytes, as in Oracle's `db_block_size`.
fn size_bytes(value: &Value) -> Option<u64> {
    match value {
        Value::Text(text) => parse_size(text),
        value => whole_number(value),
    }
}

/// A text that can be a path or an argument: not empty, not longer than a path may be, and nothing in it that a
/// terminal obeys.
fn is_plain(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= TEXT_BYTES_MAX && !text.contains(is_harmful)
}

/// Two names that are not the same do not look the same.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text == text.trim()
        && text.chars().count() <= NAME_LENGTH_MAX
        && !text.contains(is_invisible)
}

/// `a`, `a or b`, `a, b or c`.
fn alternatives(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
