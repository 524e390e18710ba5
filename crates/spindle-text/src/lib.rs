//! Texts as people and strangers write them: what makes a text harmless to a terminal and a page ([`plain`]), and how
//! sizes, durations and percentages are spelled ([`quantity`]). Pure functions; any crate may call them.

pub mod plain;
pub mod quantity;
