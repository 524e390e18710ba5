//! What statements of a script make: another of its statements cannot be prepared before they were carried out.

use std::collections::BTreeSet;

/// Words that stand before the name of what is made.
const BEFORE_NAMES: [&str; 14] = [
    "add",
    "column",
    "domain",
    "function",
    "into",
    "procedure",
    "schema",
    "sequence",
    "server",
    "table",
    "to",
    "type",
    "view",
    "index",
];
/// Words that stand between.
const BETWEEN: [&str; 8] = [
    "concurrently",
    "exists",
    "if",
    "not",
    "only",
    "temp",
    "temporary",
    "unlogged",
];

/// The names of what a statement makes, in small letters; of a name in parts the last one.
pub(super) fn made_by(sql: &str) -> Vec<String> {
    let words: Vec<String> = words(sql).collect();
    let makes = match words.first().map(String::as_str) {
        Some("create" | "alter") => true,
        Some("select" | "with") => words.iter().any(|word| word == "into"),
        _ => false,
    };
    let mut names = Vec::new();
    let mut is_next = false;
    for word in words.into_iter().filter(|_| makes) {
        if BEFORE_NAMES.contains(&word.as_str()) {
            is_next = true;
        } else if is_next && !BETWEEN.contains(&word.as_str()) {
            is_next = false;
            // There is no such schema until something is in it.
            if word.starts_with("pg_temp.") {
                names.push("pg_temp".to_owned());
            }
            names.push(last_part(&word).to_owned());
        }
    }
    names
}

/// The words of a text, in small letters and without quotes; a name in parts is one.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let is_letter = |letter: char| letter.is_alphanumeric() || "_$.\"`'".contains(letter);
    text.split(move |letter| !is_letter(letter))
        .map(|word| word.replace(['"', '`', '\''], "").to_lowercase())
        .filter(|word| !word.is_empty())
}

/// Whether a text names one of these.
pub(super) fn names_any(text: &str, names: &BTreeSet<String>) -> bool {
    words(text).any(|word| names.contains(last_part(&word)))
}

fn last_part(name: &str) -> &str {
    let name = name.trim_end_matches('.');
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_known_by_its_name() {
        for (sql, names) in [
            ("CREATE TEMP TABLE IF NOT EXISTS s.W (a int)", vec!["w"]),
            ("create table \"w\" as select * from t", vec!["w"]),
            (
                "create function pg_temp.f() returns int language sql as 'select 1'",
                vec!["pg_temp", "f"],
            ),
            ("create temporary view v as select 1", vec!["v"]),
            (
                "alter table t add column if not exists c int",
                vec!["t", "c"],
            ),
            ("select a into temp w from t", vec!["w"]),
            ("insert into w values (1)", vec![]),
            ("select * from w", vec![]),
        ] {
            assert_eq!(made_by(sql), names, "{sql}");
        }
        let made = BTreeSet::from(["w".to_owned()]);
        for refusal in [
            "relation \"w\" does not exist (SQLSTATE 42P01)",
            "ERROR 1146 (42S02): Table 'spindle.w' doesn't exist",
            "no such table: w",
        ] {
            assert!(names_any(refusal, &made), "{refusal}");
        }
        assert!(!names_any("column \"missing\" does not exist", &made));
    }
}
