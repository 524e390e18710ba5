//! Results are decided by types: in the crates of results and reports no comparison with a text decides anything, nor
//! does a key of a document. What is written as a word is an enum with that word, read once, where it comes in. A text
//! with a name is a text.

use std::collections::BTreeSet;

use crate::sources::{code, product, sources};

/// What stands before a text that is compared with something.
const BEFORE: [&str; 11] = [
    "== ",
    "!= ",
    "starts_with(",
    "ends_with(",
    "contains(",
    "strip_prefix(",
    "strip_suffix(",
    "split_once(",
    "rsplit_once(",
    "replace(",
    "replacen(",
];
/// What stands behind one.
const BEHIND: [&str; 6] = [" ==", " !=", " =>", ") =>", " |", ".contains("];

/// Where a text may be looked at, and why.
const ALLOWED: [(&str, &str); 7] = [
    (
        "crates/spindle-result/src/model/system.rs",
        "reads the numbers of a series, written as one text",
    ),
    (
        "crates/spindle-result/src/model/format_1.rs",
        "reads what older versions wrote",
    ),
    (
        "crates/spindle-result/src/model/any_reason.rs",
        "reads what older versions wrote",
    ),
    (
        "crates/spindle-result/src/model/wait_event.rs",
        "finds the name that stands in parentheses",
    ),
    (
        "crates/spindle-report/src/facts.rs",
        "makes paths of a document of any shape",
    ),
    (
        "crates/spindle-report/src/compare/differences.rs",
        "takes options of mounts apart",
    ),
    ("crates/spindle-report/src/export/csv.rs", "escapes texts"),
];

/// What reads a text or a number out of a document.
const READS: [&str; 7] = [
    ".as_array()",
    ".as_bool()",
    ".as_f64()",
    ".as_i64()",
    ".as_object()",
    ".as_u64()",
    ".pointer(",
];
/// What stands before a key that a document is asked for.
const ASKS: [&str; 4] = [".get(", ".get_mut(", ".remove(", ".contains_key("];

/// Where a document may be asked, and why.
const MAY_ASK: [(&str, &str); 2] = [
    (
        "crates/spindle-result/src/model/format_1.rs",
        "reads what older versions wrote",
    ),
    (
        "crates/spindle-result/src/possible.rs",
        "looks at all numbers of a trial, whatever their keys",
    ),
];

#[test]
fn no_comparison_with_a_text_decides_in_results_and_reports() {
    let found = lines_of_results(&ALLOWED, compares);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn no_key_of_a_document_decides_in_results_and_reports() {
    let found = lines_of_results(&MAY_ASK, asks_by_key);
    assert!(
        found.is_empty(),
        "a document is read by type, once:\n{}",
        found.join("\n")
    );
}

/// The lines of code of results and reports of which this is true, but for those of files that are allowed.
fn lines_of_results(
    allowed: &[(&str, &str)],
    is_so: impl Fn(&str, &BTreeSet<String>) -> bool,
) -> Vec<String> {
    let crates = ["crates/spindle-result/src/", "crates/spindle-report/src/"];
    let mut of_these = product();
    of_these.retain(|source| crates.iter().any(|one| source.path.starts_with(one)));
    let names: BTreeSet<String> = of_these
        .iter()
        .flat_map(|source| names_of_texts(&code(&source.text)))
        .collect();
    let mut found = Vec::new();
    for source in of_these {
        let is_allowed = allowed.iter().any(|(path, _)| *path == source.path);
        if !is_allowed {
            let code = code(&source.text);
            let lines = code.lines().enumerate();
            let lines = lines.filter(|(_, line)| is_so(line, &names));
            found.extend(
                lines.map(|(number, line)| format!("{}:{}: {line}", source.path, number + 1)),
            );
        }
    }
    found
}

/// Whether a line of code, its texts emptied, asks a document for a key, or reads what one holds.
fn asks_by_key(line: &str, names: &BTreeSet<String>) -> bool {
    texts_in(line, names).any(|(before, behind)| {
        let before = before.trim_end_matches(['&', '*']);
        let indexed = before.strip_suffix('[').filter(|_| behind.starts_with(']'));
        let is_index = indexed.is_some_and(|of| of.ends_with(is_end_of_value));
        is_index || ASKS.iter().any(|end| before.ends_with(end))
    }) || READS.iter().any(|reads| line.contains(reads))
}

/// Whether what an index stands behind can end so.
fn is_end_of_value(last: char) -> bool {
    last.is_alphanumeric() || "_)]?".contains(last)
}

/// Names of the texts that some code declares, and of its lists of texts.
fn names_of_texts(code: &str) -> Vec<String> {
    let declared = code.lines().filter_map(|line| {
        let (_, declared) = line.split_once("const ")?;
        let (name, of) = declared.split_once(": ")?;
        let of = of.split('=').next()?.trim_start_matches(['&', '[']);
        let of = of.trim_start_matches("'static ");
        of.starts_with("str").then(|| name.to_owned())
    });
    declared.collect()
}

/// Whether a line of code, its texts emptied, compares something with a text, or with one of these names.
fn compares(line: &str, names: &BTreeSet<String>) -> bool {
    texts_in(line, names).any(|(before, behind)| {
        let before = before.trim_end_matches(['&', '*']);
        BEFORE.iter().any(|end| before.ends_with(end))
            || BEHIND.iter().any(|begin| behind.starts_with(begin))
    })
}

/// What stands before and behind each text of a line, and each of these names.
fn texts_in<'a>(
    line: &'a str,
    names: &'a BTreeSet<String>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let literals = line
        .match_indices("\"\"")
        .map(|(at, text)| (at, text.len()));
    let named = words_of(line).filter(|(at, length)| names.contains(&line[*at..at + length]));
    let places = literals.chain(named);
    places.map(|(at, length)| (&line[..at], &line[at + length..]))
}

/// Where words begin in a line, and how long they are.
fn words_of(line: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let is_of_word = |each: char| each.is_alphanumeric() || each == '_';
    let words = line.split(move |each| !is_of_word(each));
    words.map(move |word| (word.as_ptr().addr() - line.as_ptr().addr(), word.len()))
}

#[test]
fn a_comparison_with_a_text_is_seen() {
    let declared = "pub const SAID: &str = \"\";\nconst ALL: [&'static str; 2] =\nconst FEW: &[&str] = &[\"\"];\n\
        const MAX: usize = 1;\n";
    let names: BTreeSet<String> = names_of_texts(declared).into_iter().collect();
    assert_eq!(names.iter().collect::<Vec<_>>(), ["ALL", "FEW", "SAID"]);
    for line in [
        "if part == \"\" {",
        "if \"\" != part {",
        "name.starts_with(\"\")",
        "    \"\" => 1,",
        "    Some(\"\") => 1,",
        "    \"\" | \"\" => 1,",
        "text.replace(\"\", with)",
        "if part == SAID {",
        "if *part != *SAID {",
        "text.contains(SAID)",
        "text.split_once(&SAID)",
        "    SAID => 1,",
        "if ALL.contains(&name) {",
    ] {
        assert!(compares(line, &names), "{line}");
    }
    for line in [
        "legend: Some(\"\"),",
        "format!(\"\", a)",
        "true => \"\",",
        "true => SAID,",
        "if count == MAX {",
        "if part == SAID_TOO {",
    ] {
        assert!(!compares(line, &names), "{line}");
    }
}

#[test]
fn a_key_of_a_document_is_seen() {
    let names = BTreeSet::from(["KEY".to_owned()]);
    for line in [
        "let places = machine[\"\"];",
        "let name = &place[\"\"][\"\"];",
        "row(a)[KEY]",
        "row(a)?[&KEY]",
        "settings.get(\"\")",
        "settings.get(KEY)",
        "    .get_mut(\"\")",
        "fields.remove(\"\");",
        "settings[key].as_u64()?",
        "value.pointer(path)",
    ] {
        assert!(asks_by_key(line, &names), "{line}");
    }
    for line in [
        "let words = [\"\"];",
        "of(&[\"\", \"\"])",
        "return [\"\"];",
        "json!({ \"\": [\"\"] })",
        "names.get(index)",
        "rows[0]",
        "matches!(word, KEY)",
    ] {
        assert!(!asks_by_key(line, &names), "{line}");
    }
}

/// How names of waits begin that are for storage or for locks: findings and shares of time look at these.
const LOOKED_AT: [&str; 11] = [
    "db file",
    "direct path",
    "double write",
    "log file",
    "log buffer",
    "free buffer",
    "write complete",
    "read by other session",
    "control file",
    "checkpoint",
    "enq: T",
];

#[test]
fn the_waits_of_every_engine_that_findings_look_at_have_a_type() {
    let types = sources(&["crates/spindle-result/src/model/wait_event.rs"], "rs");
    let known: Vec<&str> = types[0].text.split('"').skip(1).step_by(2).collect();
    let engines = [
        "crates/spindle-kernel/src/wait_event.rs",
        "crates/spindle-engines/src/postgres/waits.rs",
        "crates/spindle-engines/src/mariadb/waits.rs",
        "crates/spindle-engines/src/sqlite/observer.rs",
    ];
    let mut seen = 0;
    for source in sources(&engines, "rs") {
        for text in source
            .text
            .lines()
            .flat_map(|line| line.split('"').skip(1).step_by(2))
        {
            let nearest = text
                .rsplit_once(" (")
                .map_or(text, |(_, rest)| rest.trim_end_matches(')'));
            let names = [text, nearest];
            if names.iter().any(|name| is_event(name)) {
                seen += 1;
                let is_known = names.iter().any(|name| known.contains(name));
                assert!(is_known, "{}: {text:?} is no OracleEvent", source.path);
            }
        }
    }
    assert!(seen > 40, "{seen} waits found");
}

fn is_event(name: &str) -> bool {
    LOOKED_AT.iter().any(|begin| name.starts_with(begin))
}

/// Where the system's own trees may be named besides.
const NAMES_SYSTEM_TREES: [&str; 2] = ["crates/spindle-system/src/", "crates/spindle-io/src/real/"];

/// A descriptor is opened again, or handed on, by such a path: nothing is read of the system.
const OF_A_DESCRIPTOR: &str = "/fd/";

#[test]
fn one_crate_reads_what_the_system_says() {
    let mut found = Vec::new();
    for source in product() {
        if NAMES_SYSTEM_TREES
            .iter()
            .any(|place| source.path.starts_with(place))
        {
            continue;
        }
        let product = source.text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in product.lines().enumerate() {
            if reads_system_tree(line) {
                found.push(format!("{}:{}: {}", source.path, number + 1, line.trim()));
            }
        }
    }
    assert!(
        found.is_empty(),
        "what /proc and /sys say, spindle-system tells:\n{}",
        found.join("\n")
    );
}

/// Whether a line of code names a file of the system's trees; a sentence that begins with one does not.
fn reads_system_tree(line: &str) -> bool {
    if line.trim_start().starts_with("//") || line.contains(OF_A_DESCRIPTOR) {
        return false;
    }
    let texts = line.split('"').skip(1).step_by(2);
    let mut paths = texts.filter(|text| !text.contains(' '));
    paths.any(|path| path.starts_with("/proc") || path.starts_with("/sys/"))
}

#[test]
fn a_look_at_the_system_is_seen() {
    for line in [
        "fs::read(\"/proc/locks\")",
        "Path::new(\"/sys/block\")",
        "read_dir(\"/proc\")",
    ] {
        assert!(reads_system_tree(line), "{line}");
    }
    for line in [
        "// \"/proc/locks\"",
        "format!(\"/proc/self/fd/{}\", fd)",
        "format!(\"/sys does not show device {number}\")",
    ] {
        assert!(!reads_system_tree(line), "{line}");
    }
}
