//! No dead code: what only tests call is moved to the tests or goes, and a test that nothing runs goes, too. The
//! compiler sees neither, across crates.

use std::collections::BTreeMap;

use crate::sources::{code, product, sources};

/// Public functions that only tests call, and why they stay.
const FOR_TESTS: [(&str, &str); 20] = [
    ("abandon", "leaves layouts as a killed process does"),
    (
        "compare_paired",
        "the studies compare two cases, the program ranks all",
    ),
    ("compare_unpaired", "likewise"),
    (
        "control_file_copy",
        "hostile control files begin as a whole one",
    ),
    ("cut_power_at_io", "the simulated world"),
    ("fail_io", "the simulated world"),
    ("failed_io", "the simulated world"),
    ("observe_io", "the simulated world"),
    ("submit_at_once", "the simulated world"),
    ("trace_hash", "the simulated world"),
    ("first_free_blocks", "crashes look at the disks"),
    ("odm", "devices of tests name their method"),
    ("replace_row", "histories change rows without an index"),
    (
        "take_kept_bytes_most",
        "shows that joins keep to their memory",
    ),
    ("with_sizes", "a small TPC-C has all kinds of rows"),
    ("exhaust", "the model checker"),
    ("must_find", "the model checker"),
    ("with_proc", "a machine that stands in for this one"),
    ("with_sys", "likewise"),
    ("is_map", "the fuzzer knows blocks of a map by it"),
];

#[test]
fn public_functions_are_called_by_the_program() {
    let mut words: BTreeMap<String, usize> = BTreeMap::new();
    let mut public: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in product() {
        let code = without_uses(&code(&source.text));
        for word in code.split(|each: char| !each.is_alphanumeric() && each != '_') {
            *words.entry(word.to_owned()).or_default() += 1;
        }
        for name in functions(&code) {
            public.entry(name).or_default().push(source.path.clone());
        }
    }
    let is_called = |name: &str, defined: usize| words[name] > defined;
    let is_allowed = |name: &str| FOR_TESTS.iter().any(|(allowed, _)| *allowed == name);
    let mut wrong: Vec<String> = Vec::new();
    for (name, places) in &public {
        if !is_called(name, places.len()) && !is_allowed(name) {
            wrong.push(format!("{}: only tests call {name}", places.join(", ")));
        }
    }
    for (name, _) in FOR_TESTS {
        let defined = public.get(name).map_or(0, Vec::len);
        if defined == 0 || is_called(name, defined) {
            wrong.push(format!("{name} need not be in the list of those for tests"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The code without its `use` statements: handing a function on is no call of it.
fn without_uses(code: &str) -> String {
    let mut is_within = false;
    let mut rest = String::with_capacity(code.len());
    for line in code.lines() {
        let head = line.trim_start().split("use ").next().unwrap_or_default();
        is_within |=
            line.contains("use ") && ["", "pub ", "pub(crate) ", "pub(super) "].contains(&head);
        if !is_within {
            rest.push_str(line);
            rest.push('\n');
        }
        is_within &= !line.contains(';');
    }
    rest
}

/// The public functions that a piece of code declares.
fn functions(code: &str) -> Vec<String> {
    let heads = [
        "pub fn ",
        "pub async fn ",
        "pub const fn ",
        "pub unsafe fn ",
    ];
    let lines = code.lines().map(str::trim_start);
    let rest = lines.filter_map(|line| heads.iter().find_map(|head| line.strip_prefix(head)));
    let name = |rest: &str| {
        let end = rest.find(|each: char| !each.is_alphanumeric() && each != '_');
        rest[..end.unwrap_or(rest.len())].to_owned()
    };
    rest.map(name).collect()
}

#[test]
fn a_public_function_is_seen() {
    let code = "pub fn a() {}\n    pub async fn b<T>() {}\nfn c() {}\npub(crate) fn d() {}\n";
    assert_eq!(functions(code), ["a", "b"]);
    assert_eq!(
        without_uses("pub use a::{\n    b,\n};\nuse c;\nfn d() {}\n"),
        "fn d() {}\n"
    );
}

/// Commands that run ignored tests, and the file that says so.
const RUNNERS: [(&str, &str); 5] = [
    ("make test-vm", "Makefile"),
    ("make soak", "Makefile"),
    ("make bench", "Makefile"),
    ("make pictures", "Makefile"),
    ("scripts/sanitize", "scripts/sanitize"),
];

#[test]
fn an_ignored_test_is_started_by_another_or_names_its_command() {
    let root = crate::sources::root();
    for (command, file) in RUNNERS {
        let text = std::fs::read_to_string(root.join(file)).expect("a file of the workspace");
        let target = command
            .strip_prefix("make ")
            .map(|name| format!("\n{name}:"));
        assert!(
            target.is_none_or(|target| text.contains(&target)),
            "{command} is no target"
        );
    }
    let mut wrong = Vec::new();
    for source in sources(&["crates"], "rs") {
        for (reason, test) in ignored(&source.text) {
            let is_child = source.text.contains(&format!("child!({test})"));
            let is_run = RUNNERS
                .iter()
                .any(|(command, _)| reason.ends_with(&format!(": {command}")));
            if !is_child && !is_run && !source.path.ends_with("/unreached.rs") {
                wrong.push(format!("{}: nothing runs {test}: {reason:?}", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The ignored tests of a file: why, and their names.
fn ignored(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut reason = None;
    for line in text.lines().map(str::trim_start) {
        if let Some(rest) = line.strip_prefix("#[ignore") {
            let quoted = rest.split('"').nth(1).unwrap_or_default();
            reason = Some(quoted.to_owned());
        } else if let (Some(rest), Some(_)) = (line.strip_prefix("fn "), &reason) {
            let name = rest.split('(').next().unwrap_or_default();
            found.extend(reason.take().map(|reason| (reason, name.to_owned())));
        }
    }
    found
}

#[test]
fn an_ignored_test_is_seen() {
    let text =
        "#[test]\n#[ignore = \"x: make soak\"]\nfn a() {}\nfn b() {}\n#[ignore]\nfn c() {}\n";
    let of = |reason: &str, name: &str| (reason.to_owned(), name.to_owned());
    assert_eq!(ignored(text), [of("x: make soak", "a"), of("", "c")]);
}
