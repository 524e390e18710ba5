//! Plain English: phrases that a native reader stumbles over do not come back. Use what stands beside each.

use crate::sources::{product, sources};

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
            let words = BANNED
                .iter()
                .filter(|(phrase, _)| has_phrase(&line, phrase));
            found.extend(words.map(|(phrase, better)| {
                format!("{}:{}: {phrase:?}: write {better}", source.path, number + 1)
            }));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// What people read: documents, and the help of every command. A phrase may go on in the next line.
#[test]
fn documents_and_help_are_plain() {
    let documents = sources(&["README.md", "CONTRIBUTING.md", "docs"], "md");
    let help = sources(&["crates/spindle/tests/all/snapshots"], "snap");
    let is_help = |path: &str| path.contains("__help__");
    let mut found = Vec::new();
    for source in documents
        .iter()
        .chain(help.iter().filter(|source| is_help(&source.path)))
    {
        if source.path.starts_with("docs/decisions/") {
            continue;
        }
        found.extend(stiff_paragraphs(&source.path, &source.text));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_stiff_phrase_over_two_lines_is_seen() {
    let found = stiff_paragraphs(
        "a.md",
        "One\n\nThis means\nnothing to it.\n\nAnd means\n\nnothing to it.",
    );
    assert_eq!(
        found,
        ["a.md: \"means nothing to\": write does not apply to"]
    );
}

/// What stumbles in the paragraphs of a text.
fn stiff_paragraphs(path: &str, text: &str) -> Vec<String> {
    let paragraphs = text.split("\n\n");
    let paragraphs = paragraphs.map(|paragraph| {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        words.join(" ").to_lowercase()
    });
    let mut found = Vec::new();
    for paragraph in paragraphs {
        let banned = BANNED.iter().chain(&BANNED_IN_TEXTS);
        let words = banned.filter(|(phrase, _)| has_phrase(&paragraph, phrase));
        found.extend(words.map(|(phrase, better)| format!("{path}: {phrase:?}: write {better}")));
    }
    found
}

/// Whether a phrase is in a text in small letters, and not as the end of a longer word.
fn has_phrase(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase)
        .any(|(at, _)| !text[..at].ends_with(char::is_alphanumeric))
}

/// Phrases that are banned in texts that people see, and what to write instead.
const BANNED_IN_TEXTS: [(&str, &str); 22] = [
    ("means nothing to", "does not apply to"),
    ("mean nothing to", "do not apply to"),
    ("takes no more", "cannot write to"),
    ("that is there", "existing"),
    ("take away", "remove"),
    ("setting it right", "correcting it"),
    ("anew", "again"),
    ("taken away", "removed"),
    ("everybody", "all"),
    ("whoever", "who it is: another user, the caller"),
    ("so many ", "as many, or the number"),
    ("hangs on", "depends on"),
    ("in nobody's name", "charged to no process"),
    ("hears of", "what it learns, and how"),
    ("would tell", "a verdict needs ..."),
    ("quicker", "faster"),
    ("be had", "is possible, is available, works"),
    ("come to a", "connect to, reach"),
    ("nobody could", "what is unknown, or impossible"),
    ("nobody would", "what is pointless"),
    ("asks nobody", "does so without asking"),
    ("to be reached", "what cannot reach it"),
];

/// Phrases that are banned in comments, and what to write instead.
const BANNED_IN_COMMENTS: [(&str, &str); 10] = [
    ("be had", "be used, is possible, is available"),
    ("hears of", "learns of"),
    ("comes to a server", "connects to"),
    ("as whom", "which user"),
    ("anew", "again"),
    ("takes away", "removes"),
    ("taken away", "removed"),
    ("everybody", "everyone, all"),
    (", for people", "in words"),
    ("what it comes to", "its outcome"),
];

/// Help of the command line is written as comments, and changes only on purpose.
const HELP: &str = "crates/spindle/src/cli/";

#[test]
fn comments_are_plain() {
    let mut found = Vec::new();
    for source in sources(&["crates", "fuzz"], "rs") {
        let is_other = source.path.ends_with("/words.rs") || source.path.ends_with("/prose.rs");
        if !is_other && !source.path.starts_with(HELP) {
            found.extend(stiff_comments(&source.path, &source.text));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_stiff_comment_is_seen() {
    let found = stiff_comments(
        "a.rs",
        "let anew = 1;\n    // It is made anew.\n/// Renewed.\n",
    );
    assert_eq!(found, ["a.rs:2: \"anew\": write again"]);
}

/// What stumbles in the comments of a file.
fn stiff_comments(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start().to_lowercase();
        if !line.starts_with("//") {
            continue;
        }
        let words = BANNED_IN_COMMENTS
            .iter()
            .filter(|(phrase, _)| has_phrase(&line, phrase));
        found.extend(
            words.map(|(phrase, better)| {
                format!("{path}:{}: {phrase:?}: write {better}", index + 1)
            }),
        );
    }
    found
}

/// Texts that are no messages: what is wrong with the program itself.
const OF_THE_PROGRAM: [&str; 4] = ["expect(", "unreachable!", "assert", "panic!"];

#[test]
fn messages_are_plain() {
    let mut found = Vec::new();
    for source in product() {
        for (number, line) in without_comments(&source.text) {
            let is_message = !OF_THE_PROGRAM.iter().any(|of| line.contains(of));
            let texts = line.to_lowercase();
            let words = BANNED_IN_TEXTS
                .iter()
                .filter(|(phrase, _)| texts.contains(phrase));
            found.extend(words.filter(|_| is_message).map(|(phrase, better)| {
                format!("{}:{number}: {phrase:?}: write {better}", source.path)
            }));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The lines of the product's code with their numbers, without tests and without those that are comments.
fn without_comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let product = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = product.lines().enumerate();
    lines
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn each_file_opens_with_a_paragraph_that_says_what_lives_there() {
    let mut found = sources(&["crates", "fuzz"], "rs");
    found.retain(|source| source.path.contains("/src/") && !source.text.starts_with("//!"));
    let names: Vec<&str> = found.iter().map(|source| source.path.as_str()).collect();
    assert!(names.is_empty(), "no paragraph: {}", names.join(", "));
}
