//! Which file uses which: read from `use` lines and from paths that begin with `crate`, `self` or `super`.

use std::collections::BTreeSet;

use crate::sources::{Source, code};

/// A file as a module of its crate.
pub struct Module {
    /// The names on its path, such as `["run", "journal"]`; none for the root.
    pub path: Vec<String>,
    /// Absolute paths of what it uses.
    uses: Vec<Vec<String>>,
    /// Absolute paths of what it hands on from its children.
    hands_on: Vec<Vec<String>>,
}

impl Module {
    /// The module at a path, of this text.
    pub fn new(path: Vec<String>, text: &str) -> Module {
        let code = code(text);
        Module {
            uses: paths(&code, &path),
            hands_on: handed_on(&code, &path),
            path,
        }
    }
}

/// The modules of a crate.
pub fn modules(sources: &[Source], crate_name: &str) -> Vec<Module> {
    let src = format!("crates/{crate_name}/src/");
    let below = |source: &Source| {
        let file = source.path.strip_prefix(&src)?.strip_suffix(".rs")?;
        let mut path: Vec<String> = file.split('/').map(str::to_owned).collect();
        if ["mod", "lib", "main"].contains(&path.last()?.as_str()) {
            path.pop();
        }
        Some(Module::new(path, &source.text))
    };
    sources.iter().filter_map(below).collect()
}

/// The modules that one module uses, by their places in the list. What it only hands on (`pub use`) of its own
/// children, and that a child belongs to it (`mod`), is no use.
pub fn uses_of(module: &Module, modules: &[Module]) -> BTreeSet<usize> {
    let uses = module.uses.iter();
    let mut used: BTreeSet<usize> = uses.filter_map(|path| resolve(path, modules)).collect();
    used.retain(|&index| modules[index].path != module.path);
    used
}

/// The module that holds what a path names: the longest beginning of it that is one, or whom that hands it on from.
fn resolve(path: &[String], modules: &[Module]) -> Option<usize> {
    let (index, length) = modules
        .iter()
        .enumerate()
        .filter(|(_, module)| path.starts_with(&module.path))
        .map(|(index, module)| (index, module.path.len()))
        .max_by_key(|(_, length)| *length)?;
    let Some(name) = path.get(length) else {
        return Some(index);
    };
    let mut hands_on = modules[index].hands_on.iter();
    match hands_on.find(|origin| origin.last() == Some(name)) {
        Some(origin) if origin != path => resolve(origin, modules),
        _ => Some(index),
    }
}

/// Absolute paths of all that the code names in its crate, without what it hands on.
fn paths(code: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = String::with_capacity(code.len());
    for (is_public, tree, other) in statements(code) {
        rest.push_str(other);
        if !is_public {
            found.extend(expand(tree));
        }
    }
    found.extend(inline(&rest));
    found
        .into_iter()
        .filter_map(|path| absolute(&path, module))
        .collect()
}

/// Absolute paths of what the code hands on from its own children.
fn handed_on(code: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (is_public, tree, _) in statements(code) {
        if !is_public {
            continue;
        }
        for path in expand(tree) {
            let is_rooted = path
                .first()
                .is_some_and(|first| ["crate", "self", "super"].contains(&first.as_str()));
            let below = [module, &path].concat();
            found.extend(if is_rooted {
                absolute(&path, module)
            } else {
                Some(below)
            });
        }
    }
    found
}

/// The `use` statements: whether each hands on, its tree, and the code before it.
fn statements(code: &str) -> Vec<(bool, &str, &str)> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = next_use(rest) {
        let (before, from) = rest.split_at(at);
        let end = from.find(';').unwrap_or(from.len());
        let line = before.rsplit('\n').next().unwrap_or_default();
        found.push((
            line.trim_start().starts_with("pub"),
            &from["use ".len()..end],
            before,
        ));
        rest = &from[end..];
    }
    found.push((true, "", rest));
    found
}

fn next_use(code: &str) -> Option<usize> {
    let starts = code.match_indices("use ");
    let mut starts = starts.map(|(at, _)| at).filter(|&at| {
        let line = code[..at]
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .trim_start();
        line.is_empty() || (line.starts_with("pub") && line.ends_with(' ') && !line.contains("fn "))
    });
    starts.next()
}

/// The paths of a tree such as `a::{b, c::{d, e}}`.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let Some((before, inside)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or(tree);
        let names = path.split("::").map(|name| name.trim().to_owned());
        return vec![names.filter(|name| !name.is_empty()).collect()];
    };
    let prefix: Vec<String> = before
        .split("::")
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    let inside = inside.trim_end().strip_suffix('}').unwrap_or(inside);
    let branches = branches(inside).into_iter().flat_map(expand);
    branches
        .map(|branch| [prefix.clone(), branch].concat())
        .collect()
}

/// The parts between the commas that stand in no inner brace.
fn branches(inside: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, each) in inside.char_indices() {
        match each {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&inside[start..]);
    found.retain(|part| !part.trim().is_empty());
    found
}

/// Paths outside of `use` statements.
fn inline(code: &str) -> Vec<Vec<String>> {
    let is_name = |each: char| each.is_alphanumeric() || each == '_' || each == ':';
    code.split(|each: char| !is_name(each))
        .filter(|word| {
            ["crate::", "super::", "self::"]
                .iter()
                .any(|start| word.starts_with(start))
        })
        .map(|word| {
            word.split("::")
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect()
        })
        .collect()
}

/// A path from the root of the crate; `None` when it leads to another crate.
fn absolute(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let mut base = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "self" => module.to_vec(),
        "super" => module[..module.len().checked_sub(1)?].to_vec(),
        _ => return None,
    };
    for name in &path[1..] {
        if name == "super" {
            base.pop()?;
        } else {
            base.push(name.clone());
        }
    }
    Some(base)
}

#[test]
fn uses_are_resolved_through_what_is_handed_on() {
    let module = |path: &[&str], text: &str| {
        Module::new(path.iter().map(|&name| name.to_owned()).collect(), text)
    };
    let modules = [
        module(&[], "mod a;\nmod b;\n"),
        module(&["a"], "mod c;\npub use c::{C, D};\n"),
        module(&["a", "c"], "use super::E;\nuse std::fs;\n"),
        module(
            &["b"],
            "use crate::a::{self as other, C};\nfn f() { super::a::c::g() }\n",
        ),
    ];
    let of = |index: usize| uses_of(&modules[index], &modules);
    assert_eq!(of(1), BTreeSet::new());
    assert_eq!(of(2), [1].into());
    assert_eq!(of(3), [1, 2].into());
}
