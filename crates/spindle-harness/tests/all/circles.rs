//! Circles of files: A uses B, and B, perhaps by way of others, uses A. Who changes one of them must know all. And
//! circles of folders: what lies beside each other in a folder, files or folders, of which one folder at least uses the
//! others and is used by them. A folder that is in none can be read by itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{Source, product};
use crate::uses::{Module, modules, uses_of};

/// The largest circle of files in each crate that has one. Smaller is better: lower the number with the circle.
const LARGEST: [(&str, usize); 10] = [
    ("spindle", 2),
    ("spindle-engines", 5),
    ("spindle-experiment", 3),
    ("spindle-io", 3),
    ("spindle-kernel", 4),
    ("spindle-layout", 5),
    ("spindle-report", 2),
    ("spindle-result", 2),
    ("spindle-run", 4),
    ("spindle-workload", 3),
];

#[test]
fn circles_of_files_grow_no_larger() {
    let sources = product();
    let mut wrong = Vec::new();
    for name in crates(&sources) {
        let modules = modules(&sources, name);
        let graph = graph(&modules);
        let known = LARGEST.iter().find(|(known, _)| *known == name);
        let allowed = known.map_or(0, |(_, allowed)| *allowed);
        let found = circles(&graph);
        let largest = found.iter().map(Vec::len).max().unwrap_or(0);
        let larger = found.iter().filter(|circle| circle.len() > allowed);
        wrong.extend(larger.map(|circle| {
            let (length, told) = (circle.len(), told(circle, &graph, &modules));
            format!("{name}: a circle of {length} files, {allowed} allowed:\n{told}")
        }));
        if largest < allowed {
            wrong.push(format!("{name}: allow {largest}, no longer {allowed}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The names of the crates, each once.
fn crates(sources: &[Source]) -> BTreeSet<&str> {
    let names = sources.iter().map(|source| source.path.split('/').nth(1));
    names.flatten().collect()
}

#[test]
fn no_folder_is_in_a_circle() {
    let sources = product();
    let mut found = Vec::new();
    for name in crates(&sources) {
        let modules = modules(&sources, name);
        let graph = graph(&modules);
        for folder in folders(&modules) {
            let place = folder.join("/");
            let circles = circles_within(&folder, &modules, &graph).into_iter();
            found.extend(
                circles.map(|circle| format!("{name}, in src/{place}: {}", circle.join(", "))),
            );
        }
    }
    assert!(
        found.is_empty(),
        "these use each other in a circle:\n{}",
        found.join("\n")
    );
}

/// The folders of a crate, the root first: paths of modules that others lie below.
fn folders(modules: &[Module]) -> BTreeSet<Vec<String>> {
    let above = |module: &Module| {
        let path = &module.path;
        (0..path.len())
            .map(|length| path[..length].to_vec())
            .collect::<Vec<_>>()
    };
    modules.iter().flat_map(above).collect()
}

/// The circles among what lies in a folder, of which a folder is a part. The folder's own file is called `mod`.
fn circles_within(
    folder: &[String],
    modules: &[Module],
    graph: &[BTreeSet<usize>],
) -> Vec<Vec<String>> {
    let within = |module: &Module| {
        let below = module.path.strip_prefix(folder)?;
        Some(below.first().map_or("mod", String::as_str).to_owned())
    };
    let is_folder = |name: &str| {
        let inside = |module: &Module| {
            let below = module.path.strip_prefix(folder);
            below.is_some_and(|below| below.len() > 1 && below[0] == name)
        };
        modules.iter().any(inside)
    };
    let names: BTreeSet<String> = modules.iter().filter_map(within).collect();
    let names: Vec<String> = names.into_iter().collect();
    let mut between = vec![BTreeSet::new(); names.len()];
    let place = |module: &Module| within(module).and_then(|name| names.binary_search(&name).ok());
    for (module, used) in modules.iter().zip(graph) {
        let Some(from) = place(module) else { continue };
        let to = used.iter().filter_map(|&index| place(&modules[index]));
        between[from].extend(to.filter(|&to| to != from));
    }
    let named = |circle: Vec<usize>| circle.into_iter().map(|at| names[at].clone()).collect();
    let found = circles(&between).into_iter().map(named);
    found
        .filter(|circle: &Vec<String>| circle.iter().any(|name| is_folder(name)))
        .collect()
}

/// Which file of a circle uses which others of it, a line each.
fn told(circle: &[usize], graph: &[BTreeSet<usize>], modules: &[Module]) -> String {
    let name = |at: &usize| modules[*at].path.join("::");
    let line = |at: &usize| {
        let used = graph[*at].iter().filter(|to| circle.contains(to));
        format!(
            "  {} uses {}\n",
            name(at),
            used.map(name).collect::<Vec<_>>().join(", ")
        )
    };
    circle.iter().map(line).collect()
}

/// Which file uses which, by their places in the list.
fn graph(modules: &[Module]) -> Vec<BTreeSet<usize>> {
    modules
        .iter()
        .map(|module| uses_of(module, modules))
        .collect()
}

/// The sets of two or more files each of which reaches every other.
fn circles(graph: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..graph.len())
        .map(|from| reachable(graph, from))
        .collect();
    let mut circles: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for one in 0..graph.len() {
        let first = (0..=one).find(|&other| {
            other == one || (reached[one].contains(&other) && reached[other].contains(&one))
        });
        circles.entry(first.unwrap_or(one)).or_default().push(one);
    }
    circles
        .into_values()
        .filter(|each| each.len() > 1)
        .collect()
}

fn reachable(graph: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        open.extend(graph[next].iter().filter(|to| reached.insert(**to)));
    }
    reached
}

#[test]
fn a_circle_is_found() {
    let graph = [[1].into(), [2].into(), [0].into(), [0].into()];
    assert_eq!(circles(&graph), [vec![0, 1, 2]]);
}

#[test]
fn a_circle_of_folders_is_found() {
    let module = |path: &str| Module::new(path.split('/').map(str::to_owned).collect(), "");
    let modules = [module("a/b"), module("a/c"), module("d"), module("e")];
    let root = |graph: [BTreeSet<usize>; 4]| circles_within(&[], &modules, &graph);
    let none = || BTreeSet::new();
    // By way of another file of the folder.
    let through = root([[2].into(), none(), [1].into(), none()]);
    assert_eq!(through, [["a", "d"]]);
    // Files alone are the other rule's.
    assert!(root([[1].into(), [0].into(), [3].into(), [2].into()]).is_empty());
}
