//! Sections: groups of settings. The crate that obeys them declares them with [`settings!`](crate::settings!), each
//! with its key, its range, its default and what it means. An implementation of [`Keys`] reads them: the experiment
//! file with its places, or a [`Listing`] for the reference.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

pub use crate::load_file::TextFile;
use crate::load_file::{LargeFile, LoadFile};
use crate::milliseconds::MILLISECOND_NS;
use crate::quantity::{duration_text, size_text};
use crate::word::Word;

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

    /// `true` or `false`.
    fn flag(&mut self, key: Key, default: bool) -> bool;

    /// A size in bytes.
    fn size(&mut self, key: Key, default_bytes: u64, range: RangeInclusive<u64>) -> u64;

    /// A size in bytes out of a few.
    fn size_among(&mut self, key: Key, default_bytes: u64, sizes: &[u64]) -> u64;

    /// A duration in milliseconds.
    fn duration_ms(&mut self, key: Key, default_ms: u64, range: RangeInclusive<u64>) -> u64;

    /// A duration in nanoseconds; all three are whole milliseconds.
    fn duration_ns(&mut self, key: Key, default_ns: u64, range: RangeInclusive<u64>) -> u64 {
        let range_ms = range.start() / MILLISECOND_NS..=range.end() / MILLISECOND_NS;
        MILLISECOND_NS * self.duration_ms(key, default_ns / MILLISECOND_NS, range_ms)
    }

    /// One word out of those of `W`.
    fn word<W: Word>(&mut self, key: Key, default: W) -> W;

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

    /// A nested section; `None` when it is left out.
    fn table<S: Section>(&mut self, key: Key) -> Option<S>;

    /// A nested section, which has defaults when it is left out; `whose` are they?
    fn table_or<S: Section>(&mut self, key: Key, whose: &'static str) -> S;
}

/// Why settings do not go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The keys that say so; the one that was set last is shown.
    pub keys: &'static [&'static str],
    /// What is wrong.
    pub title: String,
    /// What is allowed there.
    pub label: String,
    /// What to do.
    pub help: &'static str,
    /// Where, when that is in a file which a key names.
    pub shown: Option<Box<Shown>>,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The name of the file.
    pub name: String,
    /// All of its text.
    pub text: String,
    /// The bytes of the place.
    pub span: Range<usize>,
}

/// Declares a section: a struct whose fields name how they are read, `field: type = how("key", default, range)`, `how`
/// being a method of [`Keys`]. The comment beside a field is what the reference says of it.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $says:literal])+
            $(#[serde($($serde:tt)+)])?
            $field:ident: $type:ty = $how:ident($key:literal $(, $argument:expr)*),)+
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[doc = $says])+ $(#[serde($($serde)+)])? pub $field: $type,)+
        }

        impl $crate::section::Section for $name {
            fn read<K: $crate::section::Keys>(keys: &mut K) -> Self {
                $name {
                    $($field: keys.$how(
                        $crate::section::Key {
                            name: $key,
                            says: concat!($($says),+),
                        }
                        $(, $argument)*
                    ),)+
                }
            }

            fn outside(&self) -> Option<&'static str> {
                let settings = [
                    $(($key, $crate::section::allows::$how(&self.$field $(, $argument)*)),)+
                ];
                settings.into_iter().find(|(_, is_allowed)| !is_allowed).map(|(key, _)| key)
            }
        }
    };
}

/// A setting, as the reference lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
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
    rows: Vec<Row>,
}

impl Listing {
    /// The rows of a section.
    pub fn of<S: Section>() -> Vec<Row> {
        Listing::asked_by(|listing| {
            S::read(listing);
        })
    }

    /// The rows that `read` asks for.
    pub fn asked_by(read: impl FnOnce(&mut Listing)) -> Vec<Row> {
        let mut listing = Listing::default();
        read(&mut listing);
        listing.rows
    }

    /// A section of which nothing is set.
    pub fn defaults<S: Section>() -> S {
        S::read(&mut Listing::default())
    }

    fn row(&mut self, key: Key, default: impl Into<String>, allowed: impl Into<String>) {
        self.rows.push(Row {
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
        let (least, most) = (size_text(*range.start()), size_text(*range.end()));
        let default = code(format_args!("{:?}", size_text(default_bytes)));
        self.row(key, default, format!("{least} to {most}"));
        default_bytes
    }

    fn size_among(&mut self, key: Key, default_bytes: u64, sizes: &[u64]) -> u64 {
        let sizes: Vec<String> = sizes.iter().map(|bytes| size_text(*bytes)).collect();
        let default = code(format_args!("{:?}", size_text(default_bytes)));
        self.row(key, default, sizes.join(", "));
        default_bytes
    }

    fn duration_ms(&mut self, key: Key, default_ms: u64, range: RangeInclusive<u64>) -> u64 {
        let (least, most) = (duration_text(*range.start()), duration_text(*range.end()));
        let default = code(format_args!("{:?}", duration_text(default_ms)));
        self.row(key, default, format!("{least} to {most}"));
        default_ms
    }

    fn word<W: Word>(&mut self, key: Key, default: W) -> W {
        let quoted = |word: &str| code(format_args!("{word:?}"));
        let words: Vec<String> = W::ALLOWED.iter().map(|(word, _)| quoted(word)).collect();
        self.row(key, quoted(default.as_word()), words.join(", "));
        default
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

    fn table<S: Section>(&mut self, key: Key) -> Option<S> {
        self.row(key, "none", "a table");
        None
    }

    fn table_or<S: Section>(&mut self, key: Key, whose: &'static str) -> S {
        self.row(key, whose, "a table");
        S::read(&mut Listing::default())
    }
}

/// Whether a setting may have a value, one function for each method of [`Keys`] and with its arguments.
/// [`settings!`](crate::settings!) calls them of values that came by another way than an experiment file.
pub mod allows {
    use std::ops::RangeInclusive;

    use super::Section;

    /// A whole number.
    pub fn number<T: PartialOrd>(value: &T, _default: T, range: RangeInclusive<T>) -> bool {
        range.contains(value)
    }

    /// A number that need not be whole.
    pub fn scale(value: &f64, _default: f64, range: RangeInclusive<f64>) -> bool {
        range.contains(value)
    }

    /// Either is allowed.
    pub fn flag(_value: &bool, _default: bool) -> bool {
        true
    }

    /// A size, bytes.
    pub fn size(value: &u64, _default: u64, range: RangeInclusive<u64>) -> bool {
        range.contains(value)
    }

    /// A size out of a few, bytes.
    pub fn size_among(value: &u64, _default: u64, sizes: &[u64]) -> bool {
        sizes.contains(value)
    }

    /// A duration, milliseconds.
    pub fn duration_ms(value: &u64, _default: u64, range: RangeInclusive<u64>) -> bool {
        range.contains(value)
    }

    /// A duration, nanoseconds.
    pub fn duration_ns(value: &u64, _default: u64, range: RangeInclusive<u64>) -> bool {
        range.contains(value)
    }

    /// A type holds no other words.
    pub fn word<W>(_value: &W, _default: W) -> bool {
        true
    }

    /// Whole numbers.
    pub fn numbers(values: &[u32], range: RangeInclusive<u32>) -> bool {
        !values.is_empty() && values.iter().all(|value| range.contains(value))
    }

    /// Their texts are judged where they are read.
    pub fn files<T>(_value: &T) -> bool {
        true
    }

    /// As [`files`].
    pub fn load_files<T>(_value: &T) -> bool {
        true
    }

    /// As [`files`].
    pub fn large_file<T>(_value: &T) -> bool {
        true
    }

    /// As [`files`].
    pub fn weighted_files<T>(_value: &T) -> bool {
        true
    }

    /// As [`files`].
    pub fn values<T>(_value: &T) -> bool {
        true
    }

    /// A nested section.
    pub fn table<S: Section>(value: &Option<S>) -> bool {
        value
            .as_ref()
            .is_none_or(|section| section.outside().is_none())
    }

    /// A nested section that is always there.
    pub fn table_or<S: Section>(value: &S, _whose: &str) -> bool {
        value.outside().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    settings! {
        /// How a kettle boils.
        #[derive(Debug, PartialEq)]
        pub struct Kettle {
            /// DC is possible.
            watts: u32 = number("watts", 2000, 100..=3000),
            /// Water in it, at most
            /// what it holds.
            water_bytes: u64 = size("water", 1 << 20, 1..=1 << 30),
            /// `true` where it whistles.
            whistles: bool = flag("whistles", true),
            /// How long it may take.
            limit_ms: u64 = duration_ms("limit", 60_000, 1_000..=3_600_000),
        }
    }

    #[test]
    fn a_section_is_declared_read_and_listed_from_one_place() {
        let rows = Listing::of::<Kettle>();
        let cells = |row: &Row| [row.key.to_owned(), row.default.clone(), row.allowed.clone()];
        assert_eq!(cells(&rows[0]), ["watts", "`2000`", "100 to 3000"]);
        assert_eq!(rows[1].says, "water in it, at most what it holds");
        assert_eq!(cells(&rows[1])[1], "`\"1MiB\"`");
        assert_eq!(
            (rows[0].says.as_str(), rows[2].says.as_str()),
            ("DC is possible", "`true` where it whistles")
        );
        assert_eq!(cells(&rows[3]), ["limit", "`\"1m\"`", "1s to 1h"]);
        let kettle = Kettle::read(&mut Listing::default());
        assert_eq!((kettle.watts, kettle.whistles), (2000, true));
    }
}
