//! Plain English: phrases that a native reader stumbles over do not come back. Use what stands beside each.

use crate::sources::sources;

/// A phrase, and what to write instead.
const BANNED: [(&str, &str); 10] = [
    (
        "somebody",
        "who it is: another program, a session, a caller",
    ),
    ("to be had", "available"),
    ("lest ", "so that ... not"),
    ("as many as it takes", "until the ratio is known"),
    ("by what these rounds show", "not clear yet"),
    ("is none of the", "is not one of the"),
    ("so many as", "as many as"),
    ("beyond doubt", "certain"),
    ("which is there", "existing"),
    ("be it ", "whether"),
];

#[test]
fn phrases_that_stumble_stay_away() {
    let mut found = Vec::new();
    let documents = sources(&["README.md", "CONTRIBUTING.md", "docs", "examples"], "md");
    let examples = sources(&["examples"], "toml");
    let code = sources(&["crates", "fuzz"], "rs");
    let others = |path: &str| !path.ends_with("/words.rs") && !path.starts_with("docs/decisions/");
    for source in documents
        .iter()
        .chain(&examples)
        .chain(&code)
        .filter(|source| others(&source.path))
    {
        for (number, line) in source.text.lines().enumerate() {
            let line = line.to_lowercase();
            let words = BANNED.iter().filter(|(phrase, _)| {
                line.match_indices(phrase)
                    .any(|(at, _)| !line[..at].ends_with(char::is_alphanumeric))
            });
            found.extend(words.map(|(phrase, better)| {
                format!("{}:{}: {phrase:?}: write {better}", source.path, number + 1)
            }));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn each_file_opens_with_a_paragraph_that_says_what_lives_there() {
    let mut found = sources(&["crates", "fuzz"], "rs");
    found.retain(|source| source.path.contains("/src/") && !source.text.starts_with("//!"));
    let names: Vec<&str> = found.iter().map(|source| source.path.as_str()).collect();
    assert!(names.is_empty(), "no paragraph: {}", names.join(", "));
}
