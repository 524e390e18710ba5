//! Circles of files: A uses B, and B, perhaps by way of others, uses A. Who changes one of them must know all.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::product;
use crate::uses::{Module, modules, uses_of};

/// The largest circle of files in each crate as it is. Smaller is better: lower the number with the circle.
const LARGEST: [(&str, usize); 7] = [
    ("spindle", 8),
    ("spindle-engines", 4),
    ("spindle-io", 18),
    ("spindle-kernel", 25),
    ("spindle-layout", 3),
    ("spindle-stats", 4),
    ("spindle-workload", 2),
];

#[test]
fn circles_of_files_grow_no_larger() {
    let sources = product();
    let mut grown = Vec::new();
    for (name, allowed) in LARGEST {
        let modules = modules(&sources, name);
        let graph = graph(&modules);
        let largest = circles(&graph).into_iter().max_by_key(Vec::len);
        let circle = largest.unwrap_or_default();
        if circle.len() > allowed {
            grown.push(format!(
                "{name}: a circle of {} files, {allowed} allowed:\n{}",
                circle.len(),
                told(&circle, &graph, &modules)
            ));
        }
    }
    assert!(grown.is_empty(), "{}", grown.join("\n"));
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
