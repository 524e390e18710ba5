//! Dependencies: each one is used, and their number only grows on purpose.

use std::fs;

use crate::sources::{root, sources};

/// Packages of others in the lock file. Raise it with a reason in `docs/decisions/0002-dependencies.md`.
const PACKAGES_MAX: usize = 345;

#[test]
fn the_lock_file_holds_no_more_packages_than_decided() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("a lock file");
    let packages = lock
        .lines()
        .filter(|line| line.starts_with("source = "))
        .count();
    assert!(
        packages <= PACKAGES_MAX,
        "{packages} packages, {PACKAGES_MAX} allowed"
    );
}

#[test]
fn every_dependency_is_used() {
    let mut unused = Vec::new();
    for manifest in sources(&["crates"], "toml") {
        let Some(folder) = manifest.path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        let code: String = sources(&[folder], "rs")
            .into_iter()
            .map(|source| source.text)
            .collect();
        for name in dependencies(&manifest.text) {
            let in_code = name.replace('-', "_");
            let is_used = [
                format!("{in_code}::"),
                format!("use {in_code};"),
                format!("{in_code} as "),
            ]
            .iter()
            .any(|form| code.contains(form.as_str()));
            if !is_used {
                unused.push(format!("{}: {name}", manifest.path));
            }
        }
    }
    assert_eq!(unused, Vec::<String>::new());
}

/// The names in the tables of dependencies.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_inside = line.ends_with("dependencies]");
        } else if is_inside && line.starts_with(|first: char| first.is_ascii_lowercase()) {
            let end = line.find(['.', ' ', '=']).unwrap_or(line.len());
            names.push(line[..end].to_owned());
        }
    }
    names
}

#[test]
fn names_of_dependencies_are_found() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\nb.workspace = true\n# c\nd = { version = \"1\" }\n[lints]\ne = 1\n[dev-dependencies]\nf = \"1\"\n";
    assert_eq!(dependencies(manifest), ["b", "d", "f"]);
}
