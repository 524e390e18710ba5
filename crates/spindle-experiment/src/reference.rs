//! The tables of the reference that follow from declarations: `docs/experiment-file.md` has them as the crates that
//! obey the settings declare them. `SPINDLE_WRITE_REFERENCE=1 cargo test -p spindle-experiment reference::` writes
//! them.

use std::path::Path;

use spindle_text::section::{Listing, Row};
use spindle_text::word::Word;
use spindle_workload::{Hotspot, Transactions, WorkloadKind};

const PAGE: &str = "../../docs/experiment-file.md";

/// How the heading of a section begins in the page, and its rows.
fn sections() -> Vec<(String, Vec<Row>)> {
    let mut all: Vec<(String, Vec<Row>)> = Vec::new();
    for (word, kind) in WorkloadKind::ALLOWED {
        let rows = Listing::asked_by(|listing| {
            Transactions::read(*kind, listing);
        });
        // Kinds with the settings of another share its table.
        if all.iter().all(|(_, others)| *others != rows) {
            all.push((format!("### `[workload]` with `kind = \"{word}\"`"), rows));
        }
    }
    let hotspot = Listing::of::<Hotspot>();
    all.push(("### The `hotspot` table of `slob`".to_owned(), hotspot));
    all
}

/// The page with the rows of a section as they are declared: in their places, new ones at the end of the table.
fn with_rows(page: &str, heading: &str, rows: &[Row]) -> String {
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    let begin = lines.iter().position(|line| line.starts_with(heading));
    let begin = begin.unwrap_or_else(|| panic!("the page has no heading {heading}"));
    let table = lines[begin..].iter().position(|line| line.starts_with('|'));
    let first = begin + table.expect("a table below the heading");
    for row in rows {
        let Row {
            key,
            default,
            allowed,
            says,
        } = row;
        let line = format!("| `{key}` | {default} | {allowed} | {says} |");
        let of_table = lines[first..]
            .iter()
            .take_while(|line| line.starts_with('|'));
        let end = first + of_table.clone().count();
        let same = of_table
            .clone()
            .position(|line| line.starts_with(&format!("| `{key}` |")));
        match same {
            Some(at) => lines[first + at] = line,
            None => lines.insert(end, line),
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_reference_says_what_is_declared() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(&path).unwrap();
    let declared = sections()
        .iter()
        .fold(page.clone(), |page, (heading, rows)| {
            with_rows(&page, heading, rows)
        });
    if std::env::var_os("SPINDLE_WRITE_REFERENCE").is_some() {
        std::fs::write(&path, &declared).unwrap();
        return;
    }
    let differing = page
        .lines()
        .zip(declared.lines())
        .find(|(is, wanted)| is != wanted);
    assert!(
        page == declared,
        "docs/experiment-file.md is not as declared: {differing:?}; write it with SPINDLE_WRITE_REFERENCE=1"
    );
}

#[test]
fn rows_are_put_right_and_new_ones_are_added() {
    let row = |key, default: &str| Row {
        key,
        default: default.to_owned(),
        allowed: "1 to 2".to_owned(),
        says: "so".to_owned(),
    };
    let page = "# a\n\n| `k` | old |\n\n# b\n\ntext\n\n| key |\n| --- |\n| `k` | old |\nend\n";
    assert_eq!(
        with_rows(page, "# b", &[row("k", "1"), row("l", "2")]),
        "# a\n\n| `k` | old |\n\n# b\n\ntext\n\n| key |\n| --- |\n| `k` | 1 | 1 to 2 | so |\n| `l` | 2 | 1 to 2 | so |\nend\n"
    );
}
