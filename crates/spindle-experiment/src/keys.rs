//! The sections that other crates declare, read from the experiment file: a [`Reader`] as the [`Keys`] that they ask.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use spindle_text::load_file::{LargeFile, LoadFile};
use spindle_text::rate::AskedRate;
use spindle_text::section::{Key, Keys, Section, TextFile};
use spindle_text::word::Word;

use super::reader::Reader;

impl Keys for Reader<'_> {
    fn is_given(&self) -> bool {
        !self.table().entries.is_empty()
    }

    fn number<T>(&mut self, key: Key, default: T, range: RangeInclusive<T>) -> T
    where
        T: Copy + Display + PartialOrd + TryFrom<i128>,
    {
        Reader::number(self, key.name, range).unwrap_or(default)
    }

    fn optional_number<T>(&mut self, key: Key, _: &str, range: RangeInclusive<T>) -> Option<T>
    where
        T: Copy + Display + PartialOrd + TryFrom<i128>,
    {
        Reader::number(self, key.name, range)
    }

    fn number_or_auto(
        &mut self,
        key: Key,
        default: u32,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        Reader::number_or_auto(self, key.name, default, range)
    }

    fn percent(&mut self, key: Key, default: f64, range: RangeInclusive<f64>) -> f64 {
        Reader::percent(self, key.name, range).unwrap_or(default)
    }

    fn optional_percent(&mut self, key: Key, _: &str, range: RangeInclusive<f64>) -> Option<f64> {
        Reader::percent(self, key.name, range)
    }

    fn scale(&mut self, key: Key, default: f64, range: RangeInclusive<f64>) -> f64 {
        Reader::scale(self, key.name, range).unwrap_or(default)
    }

    fn flag(&mut self, key: Key, default: bool) -> bool {
        Reader::flag(self, key.name).unwrap_or(default)
    }

    fn size(&mut self, key: Key, default_bytes: u64, range: RangeInclusive<u64>) -> u64 {
        Reader::size(self, key.name, range).unwrap_or(default_bytes)
    }

    fn optional_size(&mut self, key: Key, _: &str, range: RangeInclusive<u64>) -> Option<u64> {
        Reader::size(self, key.name, range)
    }

    fn size_among(&mut self, key: Key, default_bytes: u64, sizes: &[u64]) -> u64 {
        Reader::size_among(self, key.name, sizes).unwrap_or(default_bytes)
    }

    fn duration_ms(&mut self, key: Key, default_ms: u64, range: RangeInclusive<u64>) -> u64 {
        Reader::duration_ms(self, key.name, range).unwrap_or(default_ms)
    }

    fn optional_duration_ms(
        &mut self,
        key: Key,
        _: &str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        Reader::duration_ms(self, key.name, range)
    }

    fn duration_ms_or_auto(&mut self, key: Key, range: RangeInclusive<u64>) -> Option<u64> {
        Reader::duration_ms_or_auto(self, key.name, range)
    }

    fn word<W: Word>(&mut self, key: Key, default: W) -> W {
        Reader::word(self, key.name).unwrap_or(default)
    }

    fn optional_word<W: Word>(&mut self, key: Key, _: &str) -> Option<W> {
        Reader::word(self, key.name)
    }

    fn text(&mut self, key: Key, _: &str, allowed: &'static str) -> Option<String> {
        Reader::text(self, key.name, allowed).map(str::to_owned)
    }

    fn texts(&mut self, key: Key, allowed: &'static str) -> Vec<String> {
        Reader::texts(self, key.name, allowed)
    }

    fn lists_of_texts(&mut self, key: Key, allowed: &'static str) -> Vec<Vec<String>> {
        Reader::lists_of_texts(self, key.name, allowed)
    }

    fn directory(&mut self, key: Key, _: &str) -> Option<PathBuf> {
        Reader::directory(self, key.name)
    }

    fn rates(&mut self, key: Key, range: RangeInclusive<f64>) -> Option<AskedRate> {
        Reader::rates(self, key.name, range)
    }

    fn optional_numbers(
        &mut self,
        key: Key,
        _: &str,
        range: RangeInclusive<u32>,
    ) -> Option<Vec<u32>> {
        Reader::numbers(self, key.name, range)
    }

    fn numbers(&mut self, key: Key, all: RangeInclusive<u32>) -> Vec<u32> {
        let is_set = self.has(key.name);
        let given = Reader::numbers(self, key.name, all.clone());
        match given {
            Some(given) => given,
            // Where the value is wrong, nothing rests on how many there are.
            None if is_set => vec![*all.start()],
            None => all.collect(),
        }
    }

    fn files(&mut self, key: Key) -> Vec<TextFile> {
        Reader::files(self, key.name, false)
    }

    fn load_files(&mut self, key: Key) -> Vec<LoadFile> {
        Reader::load_files(self, key.name)
    }

    fn large_file(&mut self, key: Key) -> Option<LargeFile> {
        Reader::large_file(self, key.name)
    }

    fn weighted_files(&mut self, key: Key) -> Vec<TextFile> {
        Reader::files(self, key.name, true)
    }

    fn values(&mut self, key: Key) -> BTreeMap<String, String> {
        let is_letter =
            |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii();
        Reader::settings(self, key.name, |name, _| {
            let begins_well = !name.starts_with(|letter: char| letter.is_ascii_digit());
            match begins_well && name.chars().all(is_letter) {
                true => Ok(()),
                false => Err("allowed: letters, digits and _, no digit first"),
            }
        })
    }

    fn noted(&mut self, key: Key, _: &str, _: &str) {
        self.know(&[key.name]);
    }

    fn table<S: Section>(&mut self, key: Key) -> Option<S> {
        let is_set = self.has(key.name);
        let section = read_section(self, key);
        is_set.then_some(section)
    }

    fn table_or<S: Section>(&mut self, key: Key, _: &'static str) -> S {
        read_section(self, key)
    }
}

fn read_section<S: Section>(reader: &mut Reader<'_>, key: Key) -> S {
    let mut table = reader.section(key.name);
    let section = S::read(&mut table);
    table.finish();
    section
}
