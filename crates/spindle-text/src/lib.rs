//! Texts and files as people and strangers write them: what makes a text harmless to a terminal and a page ([`plain`]),
//! how sizes, durations and percentages ([`quantity`], [`milliseconds`]) and rates ([`rate`]) are spelled, how
//! paragraphs are broken into lines ([`paragraph`]), how settings are declared ([`mod@section`], [`mod@word`]), what
//! files they name ([`mod@load_file`]), what makes a text a harmless cell of a CSV file ([`cell`]), how files of run
//! directories are opened and made ([`mod@files`]), how files are locked ([`file_lock`]), what a person can do when the
//! system refuses one ([`remedy`]), the word that was meant by another one ([`mod@nearest`]), days as numbers
//! ([`calendar`]), and the words for what a database keeps when the power goes ([`keeps`]), for kinds of its files
//! ([`file_kind`]), for its log and its cache ([`vocabulary`]). Any crate may call them.

// Tests make files as they like.
#![cfg_attr(test, allow(clippy::disallowed_methods))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

pub mod calendar;
pub mod cell;
pub mod file_kind;
pub mod file_lock;
pub mod files;
pub mod keeps;
pub mod load_file;
pub mod milliseconds;
pub mod nearest;
pub mod paragraph;
pub mod plain;
pub mod price;
pub mod quantity;
pub mod rate;
pub mod remedy;
pub mod section;
pub mod vocabulary;
pub mod word;

/// For [`words!`].
#[doc(hidden)]
pub use serde;
