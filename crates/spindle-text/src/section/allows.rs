//! Whether a setting may have a value, one function for each method of [`Keys`](super::Keys) and with its arguments.
//! [`settings!`](crate::settings!) calls them of values that came by another way than an experiment file.

use std::ops::RangeInclusive;

use super::Section;

/// A whole number.
pub fn number<T: PartialOrd>(value: &T, _default: T, range: RangeInclusive<T>) -> bool {
    range.contains(value)
}

/// A whole number that may be left out.
pub fn optional_number<T: PartialOrd>(
    value: &Option<T>,
    _unless: &str,
    range: RangeInclusive<T>,
) -> bool {
    value.as_ref().is_none_or(|value| range.contains(value))
}

/// A whole number that is 0 when it is left out.
pub fn number_or_zero<T: PartialOrd + Default>(
    value: &T,
    _unless: &str,
    range: RangeInclusive<T>,
) -> bool {
    *value == T::default() || range.contains(value)
}

/// A whole number, or none for `"auto"`.
pub fn number_or_auto(value: &Option<u32>, _default: u32, range: RangeInclusive<u32>) -> bool {
    value.is_none_or(|value| range.contains(&value))
}

/// A percentage.
pub fn percent(value: &f64, _default: f64, range: RangeInclusive<f64>) -> bool {
    range.contains(value)
}

/// A percentage that may be left out.
pub fn optional_percent(value: &Option<f64>, _unless: &str, range: RangeInclusive<f64>) -> bool {
    value.is_none_or(|value| range.contains(&value))
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

/// A size that may be left out, bytes.
pub fn optional_size(value: &Option<u64>, _unless: &str, range: RangeInclusive<u64>) -> bool {
    value.is_none_or(|value| range.contains(&value))
}

/// A size out of a few, bytes.
pub fn size_among(value: &u64, _default: u64, sizes: &[u64]) -> bool {
    sizes.contains(value)
}

/// A duration, milliseconds.
pub fn duration_ms(value: &u64, _default: u64, range: RangeInclusive<u64>) -> bool {
    range.contains(value)
}

/// A duration that may be left out, milliseconds.
pub fn optional_duration_ms(
    value: &Option<u64>,
    _unless: &str,
    range: RangeInclusive<u64>,
) -> bool {
    value.is_none_or(|value| range.contains(&value))
}

/// A duration, milliseconds, or none for `"auto"`.
pub fn duration_ms_or_auto(value: &Option<u64>, range: RangeInclusive<u64>) -> bool {
    value.is_none_or(|value| range.contains(&value))
}

/// A duration, nanoseconds.
pub fn duration_ns(value: &u64, _default: u64, range: RangeInclusive<u64>) -> bool {
    range.contains(value)
}

/// A type holds no other words.
pub fn word<W>(_value: &W, _default: W) -> bool {
    true
}

/// As [`word`].
pub fn optional_word<W>(_value: &Option<W>, _unless: &str) -> bool {
    true
}

/// What a text means is judged where it is read.
pub fn text(_value: &Option<String>, _unless: &str, _allowed: &str) -> bool {
    true
}

/// As [`text`].
pub fn texts(_value: &[String], _allowed: &str) -> bool {
    true
}

/// As [`text`].
pub fn lists_of_texts<T>(_value: &T, _allowed: &str) -> bool {
    true
}

/// Whether it exists is judged where it is read.
pub fn directory<T>(_value: &Option<T>, _unless: &str) -> bool {
    true
}

/// As [`text`].
pub fn rates<T>(_value: &Option<T>, _range: RangeInclusive<f64>) -> bool {
    true
}

/// Whole numbers that may be left out.
pub fn optional_numbers(
    values: &Option<Vec<u32>>,
    _unless: &str,
    range: RangeInclusive<u32>,
) -> bool {
    values.as_ref().is_none_or(|values| numbers(values, range))
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
