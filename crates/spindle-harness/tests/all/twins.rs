//! One word per thing: no two crates declare an enum with the same words. A setting is declared once, by the crate that
//! obeys it, and the others use that.

use std::collections::BTreeMap;

use crate::sources::{code, product};

/// Enums that have the same words and mean different things.
const NO_TWINS: [(&str, &str, &str); 3] = [
    (
        "ServerKind",
        "Dialect",
        "a server of a known dialect adds a kind and no dialect",
    ),
    (
        "Storage",
        "StorageIdentity",
        "what is known of a place before it is opened, and while it is open",
    ),
    (
        "Engine",
        "Files",
        "the database that is asked for, and what its files come to",
    ),
];

#[test]
fn no_enum_has_the_words_of_another_crates() {
    let mut by_words: BTreeMap<Vec<String>, Vec<(String, String)>> = BTreeMap::new();
    for source in product() {
        let crate_name = source.path.split('/').nth(1).expect("a crate").to_owned();
        for (name, words) in enums(&code(&source.text)) {
            if words.len() > 1 {
                let of_words = by_words.entry(words).or_default();
                of_words.push((crate_name.clone(), name));
            }
        }
    }
    let mut twins = Vec::new();
    for (words, declared) in &by_words {
        for (number, (crate_name, name)) in declared.iter().enumerate() {
            for (other_crate, other) in &declared[..number] {
                let is_allowed = NO_TWINS
                    .iter()
                    .any(|(a, b, _)| [(a, b), (b, a)].contains(&(&name.as_str(), &other.as_str())));
                if crate_name != other_crate && !is_allowed {
                    let words = words.join(", ");
                    twins.push(format!(
                        "{crate_name}: {name}, {other_crate}: {other} ({words})"
                    ));
                }
            }
        }
    }
    assert!(
        twins.is_empty(),
        "declared twice; keep the one of the crate that obeys it:\n{}",
        twins.join("\n")
    );
}

/// The enums of a file, each with its words in order of the alphabet.
fn enums(code: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("enum ") {
        let is_word = rest[..at].ends_with(|last: char| last.is_alphanumeric() || last == '_');
        rest = &rest[at + "enum ".len()..];
        let Some((head, body)) = rest.split_once('{').filter(|_| !is_word) else {
            continue;
        };
        let name: String = head
            .chars()
            .take_while(|each| each.is_alphanumeric())
            .collect();
        let mut words = variants(body);
        words.sort();
        if !name.is_empty() {
            found.push((name, words));
        }
    }
    found
}

/// The names that stand at the beginning of a variant, up to the brace that closes the enum.
fn variants(body: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut depth = 0;
    let mut is_at_begin = true;
    let mut characters = body.chars().peekable();
    while let Some(each) = characters.next() {
        match each {
            '{' | '(' | '[' => depth += 1,
            '}' if depth == 0 => break,
            '}' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => is_at_begin = true,
            first if depth == 0 && is_at_begin && first.is_ascii_uppercase() => {
                let mut word = first.to_string();
                while let Some(next) = characters.next_if(|next| next.is_alphanumeric()) {
                    word.push(next);
                }
                words.push(word);
                is_at_begin = false;
            }
            _ => {}
        }
    }
    words
}

#[test]
fn the_words_of_an_enum_are_found() {
    let code = "pub enum A { #[x(Y)] B(Vec<C>), D { e: F }, G, }\nwords! { enum H { I = \"\", J = \"\", } }\n";
    let found = enums(code);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    assert_eq!(
        found,
        [
            ("A".to_owned(), words(&["B", "D", "G"])),
            ("H".to_owned(), words(&["I", "J"]))
        ]
    );
}
