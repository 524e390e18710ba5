//! Links between documents lead somewhere, the book has every page, and the page of the architecture names every crate.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::sources::{root, sources};

/// Where documents are.
const DOCUMENTS: [&str; 4] = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs"];
/// What `scripts/book` takes into the book beside them.
const BESIDE_PAGES: [&str; 3] = ["examples/", "LICENSE-APACHE", "LICENSE-MIT"];
/// The book's list of contents.
const CONTENTS: &str = "docs/SUMMARY.md";

#[test]
fn links_lead_to_files_and_headings_that_are_there() {
    let root = root();
    let mut dead = Vec::new();
    for document in sources(&DOCUMENTS, "md") {
        let folder = root.join(&document.path);
        let folder = folder.parent().expect("a document lies in a folder");
        for link in links(&document.text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file.is_empty() {
                true => root.join(&document.path),
                false => folder.join(file),
            };
            let is_alive = is_in_the_book(&target, &root)
                && (heading.is_empty() || has_heading(&target, heading));
            if !is_alive {
                dead.push(format!("{}: {link}", document.path));
            }
        }
    }
    assert!(
        dead.is_empty(),
        "links to no file of the book, or no heading:\n{}",
        dead.join("\n")
    );
}

/// The page that names the central types, and their heading there.
const TYPES: (&str, &str) = ("docs/architecture.md", "## Central types");

#[test]
fn central_types_are_in_their_crates() {
    let page = fs::read_to_string(root().join(TYPES.0)).expect("the page of the architecture");
    let named = types_of(&page);
    assert!(named.len() > 20, "{named:?}");
    let code = sources(&["crates"], "rs");
    let mut missing = Vec::new();
    for (name, folder) in named {
        let place = format!("crates/spindle-{folder}/src/");
        let declares = |text: &str| {
            ["struct", "enum", "trait", "type"].iter().any(|word| {
                let declared = format!("pub {word} {name}");
                text.match_indices(&declared).any(|(at, _)| {
                    !text[at + declared.len()..].starts_with(|next: char| next.is_alphanumeric())
                })
            })
        };
        let mut of_crate = code.iter().filter(|source| source.path.starts_with(&place));
        if !of_crate.any(|source| declares(&source.text)) {
            missing.push(format!("{name} in {folder}"));
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

/// Names of types with their crates, of the table of central types.
fn types_of(page: &str) -> Vec<(&str, &str)> {
    let section = page.split(TYPES.1).nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let mut named = Vec::new();
    for row in rows {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (Some(types), Some(folder)) = (cells.next(), cells.next()) else {
            continue;
        };
        named.extend(
            types
                .split(", ")
                .map(|name| (name.trim_matches('`'), folder)),
        );
    }
    named
}

/// Whether a link may lead there: to a page, or what the book has beside pages. A folder opens on the forge only.
fn is_in_the_book(target: &Path, root: &Path) -> bool {
    let Ok(target) = target.canonicalize() else {
        return false;
    };
    let path = target.strip_prefix(root).unwrap_or(&target);
    let is_below = |place: &&str| path.to_string_lossy().starts_with(*place);
    target.is_file() && DOCUMENTS.iter().chain(&BESIDE_PAGES).any(is_below)
}

#[test]
fn the_book_lists_every_page_once() {
    let contents = fs::read_to_string(root().join(CONTENTS)).expect("the list of contents");
    let mut listed: Vec<String> = links(&contents)
        .into_iter()
        .map(|link| match link.strip_prefix("../") {
            Some(path) => path.to_owned(),
            None => format!("docs/{link}"),
        })
        .collect();
    listed.sort();
    // `scripts/book` lists the decisions.
    let mut pages: Vec<String> = sources(&DOCUMENTS, "md")
        .into_iter()
        .map(|page| page.path)
        .filter(|path| path != CONTENTS && !path.starts_with("docs/decisions/0"))
        .collect();
    pages.sort();
    assert_eq!(listed, pages, "{CONTENTS} lists each page once");
}

/// As the book's list of contents wants it.
#[test]
fn decisions_open_with_their_number_and_title() {
    for decision in sources(&["docs/decisions"], "md") {
        let name = decision.path.rsplit('/').next().unwrap_or_default();
        let Some(number) = name.get(..4).and_then(|digits| digits.parse::<u16>().ok()) else {
            continue;
        };
        let begin = format!("# {number}. ");
        assert!(
            decision.text.starts_with(&begin),
            "{name} opens with {begin:?}"
        );
    }
}

#[test]
fn the_page_of_the_architecture_names_every_crate() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).expect("the page");
    let crates = fs::read_dir(root().join("crates")).expect("the crates");
    for entry in crates {
        let name = entry.expect("an entry").file_name();
        let row = format!("| `{}` |", name.to_string_lossy());
        assert!(page.contains(&row), "no row for {row}");
    }
}

#[test]
fn paths_of_code_in_documents_are_there() {
    let root = root();
    let mut gone = Vec::new();
    for document in sources(&["README.md", "CONTRIBUTING.md", "docs"], "md") {
        // A decision tells of the day when it was made.
        if document.path.starts_with("docs/decisions/") {
            continue;
        }
        let quoted = document.text.split('`').skip(1).step_by(2);
        let paths = quoted.filter(|text| text.starts_with("crates/") && !text.contains(' '));
        let missing = paths.filter(|path| !root.join(path).exists());
        gone.extend(missing.map(|path| format!("{}: {path}", document.path)));
    }
    assert!(
        gone.is_empty(),
        "paths that lead nowhere:\n{}",
        gone.join("\n")
    );
}

/// The targets of the inline links of a text, those in code left out.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let mut rest = if is_code { "" } else { line };
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let end = rest.find(')').unwrap_or(rest.len());
            found.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
    }
    found
}

/// Whether a document has a heading whose anchor, as GitHub makes it, is this.
fn has_heading(document: &Path, anchor: &str) -> bool {
    let text = fs::read_to_string(document).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchors: BTreeSet<String> = headings.map(anchor_of).collect();
    anchors.contains(anchor)
}

fn anchor_of(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn dead_links_are_found() {
    let text = "see [a](b.md#c) and [d](e)\n```\n[no](link)\n```\n";
    assert_eq!(links(text), ["b.md#c", "e"]);
    assert_eq!(
        anchor_of("## The `io` table, of a layout"),
        "the-io-table-of-a-layout"
    );
}
