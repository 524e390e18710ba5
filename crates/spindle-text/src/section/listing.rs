//! What the reference of the experiment file says of settings: a [`Listing`] asks a section for each of them, and keeps
//! a row of a table.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::{Key, Keys, Section, TextFile};
use crate::load_file::{LargeFile, LoadFile};
use crate::quantity::{duration_text, size_text};
use crate::rate::{AskedRate, PERCENT_OF_SLOWEST};
use crate::word::Word;

/// A setting, as the reference lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingRow {
    /// Its key.
    pub key: &'static str,
    /// Its default, as it is written.
    pub default: String,
    /// What it may be.
    pub allowed: String,
    /// What it means.
    pub says: String,
}

/// All settings of a section, each at its default.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    rows: Vec<SettingRow>,
}

impl Listing {
    /// The rows of a section.
    pub fn of<S: Section>() -> Vec<SettingRow> {
        Listing::asked_by(|listing| {
            S::read(listing);
        })
    }

    /// The rows that `read` asks for.
    pub fn asked_by(read: impl FnOnce(&mut Listing)) -> Vec<SettingRow> {
        let mut listing = Listing::default();
        read(&mut listing);
        listing.rows
    }

    /// A section of which nothing is set.
    pub fn defaults<S: Section>() -> S {
        S::read(&mut Listing::default())
    }

    fn row(&mut self, key: Key, default: impl Into<String>, allowed: impl Into<String>) {
        self.rows.push(SettingRow {
            key: key.name,
            default: default.into(),
            allowed: allowed.into(),
            says: as_in_a_cell(key.says),
        });
    }
}

/// A comment as a cell of a table: without its capital and its last stop.
pub fn as_in_a_cell(says: &str) -> String {
    let says = says.trim().trim_end_matches('.');
    let mut letters = says.chars();
    let (first, second) = (letters.next(), letters.next());
    match (first, second) {
        (Some(first), Some(second)) if first.is_uppercase() && !second.is_uppercase() => {
            first.to_lowercase().chain(says.chars().skip(1)).collect()
        }
        _ => says.to_owned(),
    }
}

fn code(value: impl Display) -> String {
    format!("`{value}`")
}

fn quoted(word: &str) -> String {
    code(format_args!("{word:?}"))
}

fn words_of<W: Word>() -> String {
    let words: Vec<String> = W::ALLOWED.iter().map(|(word, _)| quoted(word)).collect();
    words.join(", ")
}

/// What a message says is allowed, with what is quoted there as code.
fn in_code(allowed: &str) -> String {
    let parts = allowed.split('"').enumerate();
    let parts = parts.map(|(number, part)| match number % 2 {
        0 => part.to_owned(),
        _ => quoted(part),
    });
    parts.collect()
}

fn sizes_from(range: &RangeInclusive<u64>) -> String {
    let (least, most) = (size_text(*range.start()), size_text(*range.end()));
    format!("{least} to {most}")
}

fn durations_from(range: &RangeInclusive<u64>) -> String {
    let (least, most) = (duration_text(*range.start()), duration_text(*range.end()));
    format!("{least} to {most}")
}

impl Keys for Listing {
    fn is_given(&self) -> bool {
        false
    }

    fn number<T>(&mut self, key: Key, default: T, range: RangeInclusive<T>) -> T
    where
        T: Copy + Display + PartialOrd + TryFrom<i128>,
    {
        let allowed = format!("{} to {}", range.start(), range.end());
        self.row(key, code(default), allowed);
        default
    }

    fn optional_number<T>(
        &mut self,
        key: Key,
        unless: &'static str,
        range: RangeInclusive<T>,
    ) -> Option<T>
    where
        T: Copy + Display + PartialOrd + TryFrom<i128>,
    {
        self.row(key, unless, format!("{} to {}", range.start(), range.end()));
        None
    }

    fn number_or_auto(
        &mut self,
        key: Key,
        default: u32,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let allowed = format!("{} to {}, `\"auto\"`", range.start(), range.end());
        self.row(key, code(default), allowed);
        Some(default)
    }

    fn percent(&mut self, key: Key, default: f64, range: RangeInclusive<f64>) -> f64 {
        let default_text = code(format_args!("\"{default}%\""));
        self.row(
            key,
            default_text,
            format!("{}% to {}%", range.start(), range.end()),
        );
        default
    }

    fn optional_percent(
        &mut self,
        key: Key,
        unless: &'static str,
        range: RangeInclusive<f64>,
    ) -> Option<f64> {
        self.row(
            key,
            unless,
            format!("{}% to {}%", range.start(), range.end()),
        );
        None
    }

    fn scale(&mut self, key: Key, default: f64, range: RangeInclusive<f64>) -> f64 {
        let allowed = format!("{} to {}", range.start(), range.end());
        self.row(key, code(default), allowed);
        default
    }

    fn flag(&mut self, key: Key, default: bool) -> bool {
        self.row(key, code(default), "`true`, `false`");
        default
    }

    fn size(&mut self, key: Key, default_bytes: u64, range: RangeInclusive<u64>) -> u64 {
        let default = code(format_args!("{:?}", size_text(default_bytes)));
        self.row(key, default, sizes_from(&range));
        default_bytes
    }

    fn optional_size(
        &mut self,
        key: Key,
        unless: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        self.row(key, unless, sizes_from(&range));
        None
    }

    fn size_among(&mut self, key: Key, default_bytes: u64, sizes: &[u64]) -> u64 {
        let sizes: Vec<String> = sizes.iter().map(|bytes| size_text(*bytes)).collect();
        let default = code(format_args!("{:?}", size_text(default_bytes)));
        self.row(key, default, sizes.join(", "));
        default_bytes
    }

    fn duration_ms(&mut self, key: Key, default_ms: u64, range: RangeInclusive<u64>) -> u64 {
        let default = code(format_args!("{:?}", duration_text(default_ms)));
        self.row(key, default, durations_from(&range));
        default_ms
    }

    fn optional_duration_ms(
        &mut self,
        key: Key,
        unless: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        self.row(key, unless, durations_from(&range));
        None
    }

    fn duration_ms_or_auto(&mut self, key: Key, range: RangeInclusive<u64>) -> Option<u64> {
        let allowed = format!("`\"auto\"`, {}", durations_from(&range));
        self.row(key, "`\"auto\"`", allowed);
        None
    }

    fn word<W: Word>(&mut self, key: Key, default: W) -> W {
        self.row(key, quoted(default.as_word()), words_of::<W>());
        default
    }

    fn optional_word<W: Word>(&mut self, key: Key, unless: &'static str) -> Option<W> {
        self.row(key, unless, words_of::<W>());
        None
    }

    fn text(&mut self, key: Key, unless: &'static str, allowed: &'static str) -> Option<String> {
        self.row(key, unless, in_code(allowed));
        None
    }

    fn texts(&mut self, key: Key, allowed: &'static str) -> Vec<String> {
        self.row(key, "none", in_code(allowed));
        Vec::new()
    }

    fn lists_of_texts(&mut self, key: Key, allowed: &'static str) -> Vec<Vec<String>> {
        self.row(key, "none", in_code(allowed));
        Vec::new()
    }

    fn directory(&mut self, key: Key, unless: &'static str) -> Option<PathBuf> {
        self.row(key, unless, "a directory");
        None
    }

    fn rates(&mut self, key: Key, range: RangeInclusive<f64>) -> Option<AskedRate> {
        let (least, most) = (range.start(), range.end());
        let allowed = format!(
            "`\"{least}/s\"` to `\"{most}/s\"`, `\"{}%\"` to `\"{}%\"`, a list of different ones of one kind, `\"auto\"`",
            PERCENT_OF_SLOWEST.start(),
            PERCENT_OF_SLOWEST.end(),
        );
        self.row(key, "none", allowed);
        None
    }

    fn optional_numbers(
        &mut self,
        key: Key,
        unless: &'static str,
        range: RangeInclusive<u32>,
    ) -> Option<Vec<u32>> {
        let (least, most) = (range.start(), range.end());
        let allowed =
            format!("{least} to {most}, a list of different ones, or `\"20..200 step 20\"`");
        self.row(key, unless, allowed);
        None
    }

    fn numbers(&mut self, key: Key, all: RangeInclusive<u32>) -> Vec<u32> {
        self.row(key, "all", "a number or a list of different ones");
        all.collect()
    }

    fn files(&mut self, key: Key) -> Vec<TextFile> {
        self.row(key, "none", "a list of files");
        Vec::new()
    }

    fn load_files(&mut self, key: Key) -> Vec<LoadFile> {
        self.row(key, "none", "a list of SQL files and dumps");
        Vec::new()
    }

    fn large_file(&mut self, key: Key) -> Option<LargeFile> {
        self.row(key, "none", "the name of a file");
        None
    }

    fn weighted_files(&mut self, key: Key) -> Vec<TextFile> {
        self.row(key, "none", "a list of files, each with a weight");
        Vec::new()
    }

    fn values(&mut self, key: Key) -> BTreeMap<String, String> {
        self.row(
            key,
            "none",
            "a table of names, each with a number, a text, `true` or `false`",
        );
        BTreeMap::new()
    }

    fn noted(&mut self, key: Key, default: &'static str, allowed: &'static str) {
        self.row(key, default, allowed);
    }

    fn table<S: Section>(&mut self, key: Key) -> Option<S> {
        self.row(key, "none", "a table, see below");
        None
    }

    fn table_or<S: Section>(&mut self, key: Key, whose: &'static str) -> S {
        self.row(key, whose, "a table");
        S::read(&mut Listing::default())
    }
}
