//! Prose of the documents: short sentences, and no phrases that read like a translation.

use crate::sources::{Source, sources};

/// Words in a sentence at most, or in a part of it that a colon or a semicolon ends. Code counts as a word.
const SENTENCE_WORDS_MAX: usize = 25;
/// Pages that programs write.
const WRITTEN_BY_PROGRAMS: [&str; 4] = [
    "docs/findings-planted.md",
    "docs/powercut.md",
    "docs/soak-verdicts.md",
    "docs/soak.md",
];

/// Phrases that are banned in documents, outside what is shown as typed, and what to write instead.
const BANNED_IN_DOCUMENTS: [(&str, &str); 14] = [
    (
        "today",
        "what holds; lists of what there is come from the code",
    ),
    ("not yet implemented", "a line in docs/limits.md"),
    ("is not built yet", "a line in docs/limits.md"),
    ("at the moment of writing", "what holds"),
    ("for the time being", "what holds"),
    ("anew", "again, new"),
    ("of its own", "its own, separate"),
    ("of their own", "their own, separate"),
    ("takes away", "removes"),
    ("taken away", "removed"),
    ("in the end", "at the end"),
    ("everybody", "all, every client"),
    ("quicker", "faster"),
    ("be had", "is possible, available"),
];

/// README and the pages that people write. A decision tells of the day when it was made.
fn pages() -> Vec<Source> {
    let mut pages = sources(&["README.md", "CONTRIBUTING.md", "docs"], "md");
    pages.retain(|page| {
        !page.path.starts_with("docs/decisions/0")
            && !WRITTEN_BY_PROGRAMS.contains(&page.path.as_str())
    });
    pages
}

#[test]
fn sentences_of_documents_are_short() {
    let mut long = Vec::new();
    for page in pages() {
        let paragraphs = paragraphs(&page.text);
        let sentences = paragraphs.iter().flat_map(|paragraph| sentences(paragraph));
        long.extend(sentences.filter_map(|sentence| {
            let words = sentence.split(' ').count();
            (words > SENTENCE_WORDS_MAX).then(|| format!("{}: {words}: {sentence}", page.path))
        }));
    }
    let count = long.len();
    assert!(
        long.is_empty(),
        "{count} of more than {SENTENCE_WORDS_MAX} words:\n{}",
        long.join("\n")
    );
}

#[test]
fn documents_are_plain() {
    let mut found = Vec::new();
    for page in pages() {
        let paragraphs = paragraphs(&page.text);
        for sentence in paragraphs.iter().flat_map(|paragraph| sentences(paragraph)) {
            let text = sentence.to_lowercase();
            let words = BANNED_IN_DOCUMENTS
                .iter()
                .filter(|(phrase, _)| text.contains(phrase));
            found.extend(words.map(|(phrase, better)| {
                format!("{}: {phrase:?}: write {better}: {sentence}", page.path)
            }));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Paragraphs, items and cells of a page, without headings and what is shown as typed.
fn paragraphs(page: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut is_verbatim = false;
    for line in page.lines() {
        let text = line.trim_start();
        let is_item = text.starts_with("- ")
            || text
                .split_once(". ")
                .is_some_and(|(number, _)| number.parse::<u8>().is_ok());
        if text.starts_with("```") {
            is_verbatim = !is_verbatim;
            continue;
        }
        if is_verbatim {
            continue;
        }
        if text.starts_with('|') {
            found.extend(text.split('|').map(str::to_owned));
        } else if text.is_empty() || text.starts_with('#') {
            found.push(String::new());
        } else if is_item {
            found.push(format!("{text} "));
        } else if let Some(last) = found.last_mut() {
            last.push_str(text);
            last.push(' ');
        }
    }
    found
}

/// The sentences of a paragraph: code is one word, and a link reads without its target.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut read: String = paragraph
        .split('`')
        .enumerate()
        .map(|(index, part)| if index % 2 == 1 { "`...`" } else { part })
        .collect();
    while let Some(begin) = read.find("](") {
        let end = read[begin..]
            .find(')')
            .map_or(read.len(), |end| begin + end + 1);
        read.replace_range(begin..end, "]");
    }
    let mut found = vec![String::new()];
    for word in read.split_whitespace() {
        if let Some(last) = found.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
        if word.ends_with(['.', '!', '?', ';', ':']) {
            found.push(String::new());
        }
    }
    found
}

#[test]
fn sentences_end_where_a_reader_stops() {
    let page = "# A b\nOne `a b.\nc` [two](x.md). Three:\nfour\n\n- five\n```\nsix\n```\n| seven. eight | |\n";
    let paragraphs = paragraphs(page);
    let sentences = paragraphs.iter().flat_map(|paragraph| sentences(paragraph));
    let found: Vec<String> = sentences.filter(|each| !each.is_empty()).collect();
    assert_eq!(
        found,
        [
            "One `...` [two].",
            "Three:",
            "four",
            "- five",
            "seven.",
            "eight"
        ]
    );
}
