//! Bans: every crate of the product says in its `clippy.toml` what it does not call, and what to call instead.

use std::fs;

use crate::sources::{root, sources};

/// What tests share is no part of the product.
const NOT_OF_THE_PRODUCT: &str = "crates/spindle-harness";

#[test]
fn every_crate_has_bans_with_replacements() {
    let mut wrong = Vec::new();
    for manifest in sources(&["crates"], "toml") {
        let Some(folder) = manifest.path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        if folder.starts_with(NOT_OF_THE_PRODUCT) {
            continue;
        }
        match fs::read_to_string(root().join(folder).join("clippy.toml")) {
            Ok(bans) => wrong.extend(without_reason(folder, &bans)),
            Err(error) => wrong.push(format!("{folder}/clippy.toml: {error}")),
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// What the compiler forbids a library, and those that may do it: files and C libraries take `unsafe`, with a reason.
const FORBIDDEN: [(&str, &[&str]); 2] = [
    (
        "#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]",
        &[],
    ),
    (
        "#![forbid(unsafe_code)]",
        &[
            "crates/spindle-io/src/lib.rs",
            "crates/spindle-engines/src/lib.rs",
        ],
    ),
];

#[test]
fn libraries_print_nothing_and_have_no_unsafe_code() {
    let libraries = sources(&["crates"], "rs");
    let libraries = libraries
        .iter()
        .filter(|source| source.path.ends_with("/src/lib.rs"))
        .filter(|source| !source.path.starts_with(NOT_OF_THE_PRODUCT));
    let mut wrong = Vec::new();
    for library in libraries {
        for (line, may) in FORBIDDEN {
            let has = library.text.lines().any(|found| found == line);
            if !has && !may.contains(&library.path.as_str()) {
                wrong.push(format!("{}: {line} is missing", library.path));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Bans that do not say what to do instead; the whole file when there is none.
fn without_reason(folder: &str, bans: &str) -> Vec<String> {
    let bans = bans.lines().filter(|line| line.contains("path = "));
    let bans: Vec<&str> = bans.collect();
    if bans.is_empty() {
        return vec![format!("{folder}/clippy.toml: it bans nothing")];
    }
    let says = |ban: &&str| ban.contains("reason = \"") && !ban.contains("reason = \"\"");
    let silent = bans.into_iter().filter(|ban| !says(ban));
    silent
        .map(|ban| format!("{folder}/clippy.toml: no reason: {}", ban.trim()))
        .collect()
}

#[test]
fn a_ban_without_a_replacement_is_seen() {
    let bans = "disallowed-methods = [\n  { path = \"a::b\", reason = \"use c\" },\n  { path = \"d::e\" },\n]\n";
    assert_eq!(
        without_reason("x", bans),
        ["x/clippy.toml: no reason: { path = \"d::e\" },"]
    );
    assert_eq!(without_reason("x", "# none\n").len(), 1);
}
