//! Errors have types. Where one is only words, no caller can tell a full disk from a lost row but by reading them.

use std::collections::BTreeMap;

use crate::sources::{code, product};

/// Crates whose results still have words for an error, and how many. Lower a number with them, and add none. Those of
/// the program are parsers of single words, as `clap` wants them, and of what belongs together on its command line.
const WORDS_ALONE: [(&str, usize); 1] = [("spindle", 13)];

#[test]
fn errors_have_types() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for source in product() {
        let name = source.path.split('/').nth(1).expect("a crate").to_owned();
        *found.entry(name).or_default() += words_alone(&code(&source.text));
    }
    let mut wrong = Vec::new();
    for (name, count) in found {
        let known = WORDS_ALONE.iter().find(|(known, _)| *known == name);
        let allowed = known.map_or(0, |(_, allowed)| *allowed);
        if count != allowed {
            wrong.push(format!(
                "{name}: {count} results with a String for an error, {allowed} in the list"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Types `Result<_, String>` in a piece of code.
fn words_alone(code: &str) -> usize {
    let starts = code
        .match_indices("Result<")
        .map(|(at, start)| at + start.len());
    starts
        .filter(|at| error_of(&code[*at..]) == "String")
        .count()
}

/// The last of the types between here and the bracket that closes them; empty when there is one only.
fn error_of(types: &str) -> &str {
    let (mut depth, mut from) = (0, None);
    for (at, letter) in types.char_indices() {
        match letter {
            '<' | '(' | '[' => depth += 1,
            // An arrow closes nothing.
            '>' if types[..at].ends_with('-') => {}
            '>' | ')' | ']' if depth > 0 => depth -= 1,
            '>' => {
                return from.map_or("", |from: usize| {
                    types[from..at].trim().trim_end_matches(',')
                });
            }
            ',' if depth == 0 && !types[at + 1..].trim_start().starts_with('>') => {
                from = Some(at + 1)
            }
            _ => {}
        }
    }
    ""
}

#[test]
fn words_alone_are_seen() {
    for (code, count) in [
        ("fn f() -> Result<(), String> {}", 1),
        ("Result<Vec<String>, Error>", 0),
        ("std::io::Result<String>", 0),
        ("Result<(u64, String), Error>", 0),
        ("Box<dyn Fn(&[u64]) -> Result<(), String> + Send>", 1),
        ("Option<Result<Box<dyn Fn() -> u8>,\n    String,\n>>", 1),
        ("Result<Result<u8, String>, Error>", 1),
    ] {
        assert_eq!(words_alone(code), count, "{code}");
    }
}
