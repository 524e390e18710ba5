//! Which file uses which: read from `use` lines and from paths that begin with `crate`, `self`, `super` or a module of
//! the file's own. A `mod.rs` that only declares its children and hands on their names (`pub use`) uses none of them,
//! so it is in no circle. One that defines what its children use, and calls them by names it hands on or not, is.

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
        let place = Place {
            path: &path,
            children: declared(&code),
        };
        let (uses, hands_on) = (paths(&code, &place), handed_on(&code, &place));
        Module {
            path,
            uses,
            hands_on,
        }
    }
}

/// Where a path stands: in the module at this path, which declares these children.
struct Place<'a> {
    path: &'a [String],
    children: Vec<&'a str>,
}

impl Place<'_> {
    /// True for paths that begin within the crate.
    fn is_start(&self, name: &str) -> bool {
        ["crate", "self", "super"].contains(&name) || self.children.contains(&name)
    }

    /// A path from the root of the crate; `None` when it leads to another crate.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.path.to_vec(),
            "super" => self.path[..self.path.len().checked_sub(1)?].to_vec(),
            child if self.children.contains(&child) => [self.path, &path[..1]].concat(),
            _ => return None,
        };
        for name in rest {
            if name == "super" {
                base.pop()?;
            } else {
                base.push(name.clone());
            }
        }
        Some(base)
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

/// Absolute paths of all that the code names in its crate, without what it only hands on.
fn paths(code: &str, place: &Place) -> Vec<Vec<String>> {
    let statements = statements(code);
    let rest: String = statements.iter().map(|(_, _, before)| *before).collect();
    let is_word = |each: char| each.is_alphanumeric() || each == '_';
    let lines = rest.lines().filter(|line| declared(line).is_empty());
    let words: BTreeSet<&str> = lines
        .flat_map(|line| line.split(|each: char| !is_word(each)))
        .collect();
    let mut found = inline(&rest, place);
    for (is_public, tree, _) in statements {
        let named = expand(tree).into_iter().filter(|path| {
            let is_used = path
                .last()
                .is_some_and(|name| words.contains(name.as_str()));
            !is_public || is_used
        });
        found.extend(named);
    }
    found
        .into_iter()
        .filter_map(|path| place.absolute(&path))
        .collect()
}

/// Absolute paths of what the code hands on.
fn handed_on(code: &str, place: &Place) -> Vec<Vec<String>> {
    let statements = statements(code).into_iter();
    let public = statements.filter(|(is_public, ..)| *is_public);
    let named = public.flat_map(|(_, tree, _)| expand(tree));
    named.filter_map(|path| place.absolute(&path)).collect()
}

/// The modules of other files that the code declares.
fn declared(code: &str) -> Vec<&str> {
    let lines = code.lines().map(|line| line.trim_start());
    let declarations = lines.filter_map(|line| {
        let (before, name) = line.split_once("mod ")?;
        let is_public = before.starts_with("pub") && before.ends_with(' ');
        (before.is_empty() || is_public).then_some(name)
    });
    let named = declarations.map(|name| name.strip_suffix(';'));
    named.flatten().collect()
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

/// The code without the modules that `pub(in module)` shows a name to: it uses none of them.
fn without_audience(code: &str) -> String {
    let (before, shown) = code.split_once("(in ").unwrap_or((code, ""));
    let behind = shown
        .split("(in ")
        .filter_map(|part| part.split_once(')'))
        .map(|(_, behind)| behind);
    [before].into_iter().chain(behind).collect()
}

/// Paths outside of `use` statements.
fn inline(code: &str, place: &Place) -> Vec<Vec<String>> {
    let is_name = |each: char| each.is_alphanumeric() || each == '_' || each == ':';
    let code = without_audience(code);
    let words = code.split(|each: char| !is_name(each));
    let paths = words.filter(|word| {
        // A method with its type behind it, such as `parse::<u64>`, is no path.
        let is_path = |(start, rest): &(&str, &str)| !rest.is_empty() && place.is_start(start);
        word.split_once("::").as_ref().is_some_and(is_path)
    });
    let names = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
    paths
        .map(|path| names(path.trim_end_matches(':')))
        .collect()
}

#[test]
fn uses_are_resolved_through_what_is_handed_on() {
    let module = |path: &[&str], text: &str| {
        Module::new(path.iter().map(|&name| name.to_owned()).collect(), text)
    };
    let modules = [
        module(
            &[],
            "mod a;\nmod b;\nmod d;\nuse b::f;\nfn g() { a::c::g() }\n",
        ),
        module(&["a"], "mod c;\npub use c::{C, D};\n"),
        module(&["a", "c"], "use super::E;\nuse std::fs;\n"),
        module(
            &["b"],
            "use crate::a::{self as other, C};\npub(in crate::d) fn f() { super::a::c::g() }\n",
        ),
        module(&["d"], "mod e;\npub use e::E;\nfn f(e: E) {}\n"),
        module(&["d", "e"], ""),
    ];
    let of = |index: usize| uses_of(&modules[index], &modules);
    assert_eq!(of(0), [2, 3].into());
    assert_eq!(of(1), BTreeSet::new());
    assert_eq!(of(2), [1].into());
    assert_eq!(of(3), [1, 2].into());
    assert_eq!(of(4), [5].into());
}
