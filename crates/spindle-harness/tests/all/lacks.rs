//! What documents say the program lacks is true: such a sentence stands in the list below, beside what tells from
//! the code that it still does. One that is not in the list would stay when the program has learnt to.

use std::fs;

use crate::sources::{root, sources};

/// Words by which a document says that something is so now, and may change.
const UNTIL_LATER: [&str; 6] = [
    "today",
    "currently",
    "for now",
    "at present",
    "as of now",
    "yet",
];

/// Sentences of other things than the program.
const OF_OTHERS: [&str; 4] = [
    "there is no winner yet",
    "it has not touched yet",
    "cannot be prepared yet",
    "is not clear yet",
];

/// What is lacked, the documents' words, and where the code would tell that it no longer is: a file, and what would be
/// in it.
const LACKS: [(&str, &str, &str, &str); 1] = [(
    "Oracle",
    "cannot be measured yet",
    "crates/spindle-engines/src/registry.rs",
    "= \"oracle\"",
)];

#[test]
fn what_documents_say_is_lacking_still_is() {
    let mut wrong = Vec::new();
    for source in sources(&["README.md", "CONTRIBUTING.md", "docs"], "md") {
        let told = undue(&source.text);
        wrong.extend(told.iter().map(|line| format!("{}: {line}", source.path)));
    }
    for (what, said, file, sign) in LACKS {
        let code = fs::read_to_string(root().join(file)).expect("a file of the workspace");
        if code.contains(sign) {
            wrong.push(format!("{what} is there: no document may say {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_lack_that_is_in_no_list_is_seen() {
    let text = "Raw devices\nare not supported yet. Oracle cannot be measured\nyet.\n\nIt waits for writes not yet done.";
    assert_eq!(undue(text), ["Raw devices are not supported yet."]);
    assert_eq!(undue("Today it reads ext4.").len(), 1);
    assert!(undue("It is not clear yet: a verdict. Yesterday's todays.").is_empty());
}

/// Sentences that say what is so until later, of the program.
fn undue(text: &str) -> Vec<String> {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        words.join(" ")
    });
    paragraphs
        .flat_map(|paragraph| {
            let sentences = paragraph.split_inclusive(". ").map(str::trim);
            sentences
                .filter(|sentence| is_undue(sentence))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn is_undue(sentence: &str) -> bool {
    let lacks = LACKS.iter().map(|(_, said, ..)| said);
    let listed = lacks.chain(&OF_OTHERS).any(|said| sentence.contains(said));
    !listed
        && UNTIL_LATER
            .iter()
            .any(|word| says(&sentence.to_lowercase(), word))
}

/// Whether a sentence has a word. "Yet" counts where it ends what can or is done: "not supported yet", not "not yet
/// written", which is said of blocks and locks.
fn says(sentence: &str, word: &str) -> bool {
    sentence.match_indices(word).any(|(at, _)| {
        let (before, after) = (&sentence[..at], &sentence[at + word.len()..]);
        let is_whole =
            !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        is_whole
            && (word != "yet" || has_ability(before) && after.starts_with(['.', ',', ':', ';']))
    })
}

fn has_ability(before: &str) -> bool {
    let words = [
        "cannot",
        "supported",
        "possible",
        "implemented",
        "known",
        "there is no",
        "there are no",
    ];
    words.iter().any(|word| before.contains(word))
}
