//! Layers: the crates are the road of the data, and imports only go down it. Results and reports are pure.

use std::collections::BTreeMap;

use crate::sources::sources;

/// What each crate may import of ours (`docs/architecture.md`).
const CRATES: [(&str, &[&str]); 16] = [
    ("spindle-text", &[]),
    ("spindle-stats", &[]),
    ("spindle-query", &[]),
    ("spindle-io", &["spindle-stats", "spindle-text"]),
    ("spindle-system", &["spindle-io", "spindle-text"]),
    (
        "spindle-layout",
        &["spindle-io", "spindle-system", "spindle-text"],
    ),
    (
        "spindle-calibrate",
        &[
            "spindle-io",
            "spindle-layout",
            "spindle-stats",
            "spindle-system",
            "spindle-text",
        ],
    ),
    (
        "spindle-kernel",
        &[
            "spindle-io",
            "spindle-query",
            "spindle-stats",
            "spindle-text",
        ],
    ),
    (
        "spindle-workload",
        &[
            "spindle-io",
            "spindle-query",
            "spindle-stats",
            "spindle-text",
        ],
    ),
    (
        "spindle-engines",
        &[
            "spindle-io",
            "spindle-kernel",
            "spindle-layout",
            "spindle-query",
            "spindle-stats",
            "spindle-system",
            "spindle-text",
            "spindle-workload",
        ],
    ),
    (
        "spindle-experiment",
        &[
            "spindle-engines",
            "spindle-io",
            "spindle-layout",
            "spindle-stats",
            "spindle-text",
            "spindle-workload",
        ],
    ),
    ("spindle-result", &["spindle-stats", "spindle-text"]),
    (
        "spindle-run",
        &[
            "spindle-engines",
            "spindle-experiment",
            "spindle-io",
            "spindle-layout",
            "spindle-result",
            "spindle-stats",
            "spindle-system",
            "spindle-text",
            "spindle-workload",
        ],
    ),
    (
        "spindle-report",
        &["spindle-result", "spindle-stats", "spindle-text"],
    ),
    (
        "spindle",
        &[
            "spindle-calibrate",
            "spindle-engines",
            "spindle-experiment",
            "spindle-io",
            "spindle-layout",
            "spindle-report",
            "spindle-result",
            "spindle-run",
            "spindle-stats",
            "spindle-system",
            "spindle-text",
            "spindle-workload",
        ],
    ),
    ("spindle-harness", &[]),
];

/// Which crates of ours a manifest names, and in which of its tables.
fn imports(manifest: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut table = "";
    for line in manifest.lines() {
        if line.starts_with('[') {
            table = line.trim();
        } else if line.starts_with("spindle-") && table.ends_with("dependencies]") {
            let end = line.find(['.', ' ', '=']).unwrap_or(line.len());
            found.push((table, &line[..end]));
        }
    }
    found
}

#[test]
fn imports_of_every_table_are_seen() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\nspindle-io.workspace = true\nserde = \"1\"\n\
                    [target.'cfg(unix)'.dependencies]\nspindle-run = { path = \"a\" }\n\
                    [features]\nspindle-x = []\n[dev-dependencies]\nspindle-text.workspace = true\n";
    let expected = [
        ("[dependencies]", "spindle-io"),
        ("[target.'cfg(unix)'.dependencies]", "spindle-run"),
        ("[dev-dependencies]", "spindle-text"),
    ];
    assert_eq!(imports(manifest), expected);
}

/// What tests of a crate may import beside that: all of them what tests share, and these what stands above.
const BY_TESTS: [(&str, &str, &str); 1] = [(
    "spindle-engines",
    "spindle-experiment",
    "scenarios of the simulated world are written as experiments",
)];

#[test]
fn crates_import_downwards_only() {
    let allowed: BTreeMap<&str, &[&str]> = CRATES.into_iter().collect();
    for manifest in sources(&["crates"], "toml") {
        let Some(name) = manifest
            .path
            .strip_prefix("crates/")
            .and_then(|path| path.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        let allowed = allowed
            .get(name)
            .unwrap_or_else(|| panic!("{name} has no place on the road: add it to CRATES"));
        for (table, import) in imports(&manifest.text) {
            let is_by_tests = || {
                let may = |(of, what, _): &(&str, &str, &str)| *of == name && *what == import;
                import == name || import == "spindle-harness" || BY_TESTS.iter().any(may)
            };
            let is_allowed =
                allowed.contains(&import) || table == "[dev-dependencies]" && is_by_tests();
            assert!(is_allowed, "{name} must not import {import} in {table}");
        }
    }
}
