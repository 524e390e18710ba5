//! Sections: groups of settings. The crate that obeys them declares them with [`settings!`](crate::settings!), each
//! with its key, its range, its default and what it means. An implementation of [`Keys`] reads them: the experiment
//! file with its places, or a [`Listing`] for the reference.

pub mod allows;
mod declaration;
mod listing;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;

pub use crate::load_file::TextFile;
use crate::load_file::{LargeFile, LoadFile};
use crate::milliseconds::MILLISECOND_NS;
use crate::rate::AskedRate;
use crate::word::Word;

pub use listing::{Listing, SettingRow, as_in_a_cell};

/// A setting's name in the experiment file, and what it means.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it means, as the comment beside its declaration says it.
    pub says: &'static str,
}

/// A group of settings.
pub trait Section: Sized {
    /// Asks for each of them.
    fn read<K: Keys>(keys: &mut K) -> Self;

    /// The key of a value that no reader gives, as a journal that was changed may hold it.
    fn outside(&self) -> Option<&'static str> {
        None
    }
}

/// Has the values of settings. A value that is not allowed is noted there, and the default is given.
pub trait Keys {
    /// Whether there is such a section at all.
    fn is_given(&self) -> bool;

    /// A whole number.
    fn number<T>(&mut self, key: Key, default: T, range: RangeInclusive<T>) -> T
    where
        T: Copy + Display + PartialOrd + TryFrom<i128>;

    /// A number that need not be whole.
    fn scale(&mut self, key: Key, default: f64, range: RangeInclusive<f64>) -> f64;

    /// A whole number that may be left out; `unless` says in the reference what holds then, as for all that follow.
    fn optional_number<T>(
        &mut self,
        key: Key,
        unless: &'static str,
        range: RangeInclusive<T>,
    ) -> Option<T>
    where
        T: Copy + Display + PartialOrd + TryFrom<i128>;

    /// A whole number that is 0 when it is left out.
    fn number_or_zero<T>(&mut self, key: Key, unless: &'static str, range: RangeInclusive<T>) -> T
    where
        T: Copy + Default + Display + PartialOrd + TryFrom<i128>,
    {
        self.optional_number(key, unless, range).unwrap_or_default()
    }

    /// A whole number, or `None` for the word `"auto"`.
    fn number_or_auto(&mut self, key: Key, default: u32, range: RangeInclusive<u32>)
    -> Option<u32>;

    /// A percentage, with its sign.
    fn percent(&mut self, key: Key, default: f64, range: RangeInclusive<f64>) -> f64;

    /// A percentage that may be left out.
    fn optional_percent(
        &mut self,
        key: Key,
        unless: &'static str,
        range: RangeInclusive<f64>,
    ) -> Option<f64>;

    /// `true` or `false`.
    fn flag(&mut self, key: Key, default: bool) -> bool;

    /// A size in bytes.
    fn size(&mut self, key: Key, default_bytes: u64, range: RangeInclusive<u64>) -> u64;

    /// A size in bytes that may be left out.
    fn optional_size(
        &mut self,
        key: Key,
        unless: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<u64>;

    /// A size in bytes out of a few.
    fn size_among(&mut self, key: Key, default_bytes: u64, sizes: &[u64]) -> u64;

    /// A duration in milliseconds.
    fn duration_ms(&mut self, key: Key, default_ms: u64, range: RangeInclusive<u64>) -> u64;

    /// A duration in milliseconds that may be left out.
    fn optional_duration_ms(
        &mut self,
        key: Key,
        unless: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<u64>;

    /// A duration in milliseconds, or `None` for the word `"auto"`, which is the default.
    fn duration_ms_or_auto(&mut self, key: Key, range: RangeInclusive<u64>) -> Option<u64>;

    /// A duration in nanoseconds; all three are whole milliseconds.
    fn duration_ns(&mut self, key: Key, default_ns: u64, range: RangeInclusive<u64>) -> u64 {
        let range_ms = range.start() / MILLISECOND_NS..=range.end() / MILLISECOND_NS;
        MILLISECOND_NS * self.duration_ms(key, default_ns / MILLISECOND_NS, range_ms)
    }

    /// One word out of those of `W`.
    fn word<W: Word>(&mut self, key: Key, default: W) -> W;

    /// One word out of those of `W`, if there is one.
    fn optional_word<W: Word>(&mut self, key: Key, unless: &'static str) -> Option<W>;

    /// A text on one line; `allowed` says what it is.
    fn text(&mut self, key: Key, unless: &'static str, allowed: &'static str) -> Option<String>;

    /// Texts, none when the key is left out; `allowed` says what they are.
    fn texts(&mut self, key: Key, allowed: &'static str) -> Vec<String>;

    /// Lists of texts, none when the key is left out.
    fn lists_of_texts(&mut self, key: Key, allowed: &'static str) -> Vec<Vec<String>>;

    /// An existing directory.
    fn directory(&mut self, key: Key, unless: &'static str) -> Option<PathBuf>;

    /// Rates, parts of a rate, or the word `"auto"`. The range is that of a rate, in transactions per second.
    fn rates(&mut self, key: Key, range: RangeInclusive<f64>) -> Option<AskedRate>;

    /// Different whole numbers, each in the range, if there are some.
    fn optional_numbers(
        &mut self,
        key: Key,
        unless: &'static str,
        range: RangeInclusive<u32>,
    ) -> Option<Vec<u32>>;

    /// Different whole numbers out of these; all of them when the key is left out.
    fn numbers(&mut self, key: Key, all: RangeInclusive<u32>) -> Vec<u32>;

    /// Text files, none when the key is left out.
    fn files(&mut self, key: Key) -> Vec<TextFile>;

    /// Files that a database is loaded from: SQL and dumps; none when the key is left out.
    fn load_files(&mut self, key: Key) -> Vec<LoadFile>;

    /// One file, which may be large and stays where it is; none when the key is left out.
    fn large_file(&mut self, key: Key) -> Option<LargeFile>;

    /// Text files, each with a weight behind its name, `name@9`, or 1; none when the key is left out.
    fn weighted_files(&mut self, key: Key) -> Vec<TextFile>;

    /// A table of variables with texts, numbers or flags; none when the key is left out.
    fn values(&mut self, key: Key) -> BTreeMap<String, String>;

    /// A setting without a plain value, which other code reads: the reference has it, with what is said here.
    fn noted(&mut self, key: Key, default: &'static str, allowed: &'static str);

    /// A nested section; `None` when it is left out.
    fn table<S: Section>(&mut self, key: Key) -> Option<S>;

    /// A nested section, which has defaults when it is left out; `whose` are they?
    fn table_or<S: Section>(&mut self, key: Key, whose: &'static str) -> S;
}

/// Why settings do not go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsRefusal {
    /// The keys that say so; the one that was set last is shown.
    pub keys: &'static [&'static str],
    /// What is wrong.
    pub title: String,
    /// What is allowed there.
    pub label: String,
    /// What to do.
    pub help: &'static str,
    /// Where, when that is in a file which a key names.
    pub shown: Option<Box<ShownPlace>>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownPlace {
    /// The name of the file.
    pub name: String,
    /// All of its text.
    pub text: String,
    /// The bytes of the place.
    pub span: Range<usize>,
}
