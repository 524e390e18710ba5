//! Layers: the crates are the road of the data, and imports only go down it. Results and reports are pure.

use std::collections::BTreeMap;

use crate::sources::{code, product, sources};

/// What each crate may import of ours (`docs/architecture.md`).
const CRATES: [(&str, &[&str]); 11] = [
    ("spindle-text", &[]),
    ("spindle-stats", &[]),
    ("spindle-io", &["spindle-stats"]),
    ("spindle-layout", &["spindle-io"]),
    ("spindle-kernel", &["spindle-io", "spindle-stats"]),
    ("spindle-workload", &["spindle-io", "spindle-stats"]),
    (
        "spindle-engines",
        &[
            "spindle-io",
            "spindle-kernel",
            "spindle-layout",
            "spindle-stats",
            "spindle-workload",
        ],
    ),
    ("spindle-result", &["spindle-stats"]),
    (
        "spindle-report",
        &["spindle-result", "spindle-stats", "spindle-text"],
    ),
    (
        "spindle",
        &[
            "spindle-engines",
            "spindle-io",
            "spindle-layout",
            "spindle-report",
            "spindle-result",
            "spindle-stats",
            "spindle-text",
            "spindle-workload",
        ],
    ),
    ("spindle-harness", &[]),
];

/// In the program: modules, and those that they must not know.
const ROADS: [(&str, &[&str]); 1] = [("experiment", &["cli", "run", "trial", "watch"])];

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
        let table = manifest
            .text
            .split("[dependencies]")
            .nth(1)
            .unwrap_or_default();
        let table = table.split("\n[").next().unwrap_or_default();
        for line in table.lines().filter(|line| line.starts_with("spindle-")) {
            let end = line.find(['.', ' ', '=']).unwrap_or(line.len());
            assert!(
                allowed.contains(&&line[..end]),
                "{name} must not import {}",
                &line[..end]
            );
        }
    }
}

#[test]
fn modules_of_the_program_import_downwards_only() {
    let mut wrong = Vec::new();
    for (module, forbidden) in ROADS {
        let within = [
            format!("crates/spindle/src/{module}/"),
            format!("crates/spindle/src/{module}.rs"),
        ];
        for source in product() {
            if !within
                .iter()
                .any(|place| source.path.starts_with(place.as_str()))
            {
                continue;
            }
            let code = code(&source.text);
            let names = forbidden
                .iter()
                .filter(|name| code.contains(&format!("crate::{name}::")));
            wrong.extend(names.map(|name| format!("{} imports {name}", source.path)));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
