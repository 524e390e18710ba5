//! Layers: the crates are the road of the data, and imports only go down it. Results and reports are pure.

use std::collections::BTreeMap;

use crate::sources::sources;

/// What each crate may import of ours (`docs/architecture.md`).
const CRATES: [(&str, &[&str]); 16] = [
    ("spindle-text", &[]),
    ("spindle-stats", &[]),
    ("spindle-query", &[]),
    ("spindle-io", &["spindle-stats", "spindle-text"]),
    ("spindle-system", &["spindle-io"]),
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
