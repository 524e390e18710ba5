//! A name means one thing: a central word of the project is one type, a public type has its name for itself among all
//! crates, and no type has a name that says nothing where it is used.

use crate::sources::{Source, code, product};

/// Words of which there is one type at most, private ones included. Each has had several meanings.
const CENTRAL: [&str; 30] = [
    "Answer",
    "Asked",
    "BlockDevice",
    "Column",
    "Comparison",
    "Entry",
    "Found",
    "Image",
    "Kind",
    "Ledger",
    "Load",
    "Machine",
    "Made",
    "Matrix",
    "Outcome",
    "Part",
    "Place",
    "Plan",
    "Seen",
    "Settings",
    "Shape",
    "Sheet",
    "Site",
    "Storage",
    "Survey",
    "Table",
    "Target",
    "Way",
    "Workload",
    "Workshop",
];

/// Words that say nothing where a type is used.
const EMPTY: [&str; 5] = ["Grounds", "Means", "Moment", "Scene", "Standing"];

/// A name, the two crates that may both have it, and why.
type Shared = (&'static str, [&'static str; 2], &'static str);

/// Why results have forms of their own for what other crates say: they are read without those crates, and in years.
const RECORDED: &str = "what another crate says, and its form in results";

/// Names that two crates share.
const SHARED: [Shared; 20] = [
    ("Arrivals", ["spindle-result", "spindle-workload"], RECORDED),
    (
        "CalibratedLimits",
        ["spindle-result", "spindle-system"],
        RECORDED,
    ),
    ("Capacity", ["spindle-result", "spindle-workload"], RECORDED),
    ("CpuShares", ["spindle-result", "spindle-system"], RECORDED),
    ("DataPath", ["spindle-result", "spindle-system"], RECORDED),
    ("DiskFacts", ["spindle-result", "spindle-system"], RECORDED),
    ("Effect", ["spindle-result", "spindle-stats"], RECORDED),
    ("FileSystem", ["spindle-result", "spindle-system"], RECORDED),
    ("Interaction", ["spindle-result", "spindle-stats"], RECORDED),
    ("IoCounts", ["spindle-io", "spindle-result"], RECORDED),
    ("Layout", ["spindle-experiment", "spindle-result"], RECORDED),
    (
        "LeftOut",
        ["spindle-experiment", "spindle-result"],
        RECORDED,
    ),
    ("Machine", ["spindle-result", "spindle-system"], RECORDED),
    (
        "MachineSettings",
        ["spindle-result", "spindle-system"],
        RECORDED,
    ),
    ("Processor", ["spindle-result", "spindle-system"], RECORDED),
    ("Promise", ["spindle-engines", "spindle-result"], RECORDED),
    ("Ranking", ["spindle-result", "spindle-stats"], RECORDED),
    (
        "SegmentSpace",
        ["spindle-kernel", "spindle-result"],
        RECORDED,
    ),
    (
        "Virtualisation",
        ["spindle-result", "spindle-system"],
        RECORDED,
    ),
    ("WaitEvent", ["spindle-kernel", "spindle-result"], RECORDED),
];

/// A name that any crate may have for its own errors, as the standard library's modules do.
const RESULT: &str = "Result";

/// Where a type is defined.
#[derive(Debug, PartialEq)]
struct Definition {
    name: String,
    is_public: bool,
    path: String,
}

impl Definition {
    fn crate_name(&self) -> &str {
        let below = self.path.strip_prefix("crates/").unwrap_or(&self.path);
        below.split('/').next().unwrap_or(below)
    }
}

#[test]
fn a_central_word_is_one_type() {
    none(&repeated_words(&definitions(&product()), &SHARED));
}

#[test]
fn a_public_type_has_its_name_for_itself() {
    none(&repeated_names(&definitions(&product()), &SHARED));
}

#[test]
fn no_type_has_a_name_that_says_nothing() {
    none(&empty_names(&definitions(&product())));
}

#[test]
fn shared_names_are_still_shared() {
    let all = definitions(&product());
    let is_gone = |&&(name, crates, _): &&Shared| {
        let of_name = || all.iter().filter(|each| each.name == name);
        crates
            .iter()
            .any(|wanted| !of_name().any(|each| each.crate_name() == *wanted))
    };
    let gone = SHARED.iter().filter(is_gone);
    let gone: Vec<String> = gone.map(|(name, ..)| (*name).to_owned()).collect();
    none(&gone);
}

/// Fails when anything was found that breaks a rule.
fn none(found: &[String]) {
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Central words with more than one type.
fn repeated_words(all: &[Definition], shared: &[Shared]) -> Vec<String> {
    let words = CENTRAL.iter();
    let found = words.map(|word| all.iter().filter(|each| each.name == *word).collect());
    repeated(found, shared)
}

/// Names of public types that more than one crate has.
fn repeated_names(all: &[Definition], shared: &[Shared]) -> Vec<String> {
    let public = || all.iter().filter(|each| each.is_public);
    let mut names: Vec<&str> = public().map(|each| each.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| *name != RESULT);
    let found = names.into_iter().map(|name| {
        let mut of_name: Vec<&Definition> = public().filter(|each| each.name == name).collect();
        of_name.dedup_by(|one, other| one.crate_name() == other.crate_name());
        of_name
    });
    repeated(found, shared)
}

/// Those of one name that are several, unless they may share it.
fn repeated<'a>(
    of_names: impl Iterator<Item = Vec<&'a Definition>>,
    shared: &[Shared],
) -> Vec<String> {
    let may_share = |of_name: &[&Definition]| {
        let crates: Vec<&str> = of_name.iter().map(|each| each.crate_name()).collect();
        let mut pairs = shared.iter();
        pairs.any(|(name, pair, _)| of_name[0].name == *name && crates == *pair)
    };
    of_names
        .filter(|of_name| of_name.len() > 1 && !may_share(of_name))
        .map(|of_name| {
            let paths: Vec<&str> = of_name.iter().map(|each| each.path.as_str()).collect();
            let name = &of_name[0].name;
            format!(
                "{name}: name each for what it is: {}",
                paths.join(" and in ")
            )
        })
        .collect()
}

/// Types whose names say nothing.
fn empty_names(all: &[Definition]) -> Vec<String> {
    let empty = all.iter().filter(|each| EMPTY.contains(&&*each.name));
    empty
        .map(|each| format!("{}: say what a {} is", each.path, each.name))
        .collect()
}

/// All types that these sources define, in the order of their paths.
fn definitions(sources: &[Source]) -> Vec<Definition> {
    let of_source = |source: &Source| {
        let code = code(&source.text);
        let defined = code.lines().filter_map(defined);
        let of_path = defined.map(|(name, is_public)| Definition {
            name: name.to_owned(),
            is_public,
            path: source.path.clone(),
        });
        of_path.collect::<Vec<_>>()
    };
    sources.iter().flat_map(of_source).collect()
}

/// The type that a line defines, and whether other crates may see it. A `type` within a trait or its implementation
/// belongs to that.
fn defined(line: &str) -> Option<(&str, bool)> {
    let code = line.trim_start();
    let is_public = code.starts_with("pub ");
    let item = match code.strip_prefix("pub(") {
        Some(shown) => shown.split_once(") ")?.1,
        None => code.strip_prefix("pub ").unwrap_or(code),
    };
    let item = item.strip_prefix("unsafe ").unwrap_or(item);
    let (keyword, rest) = item.split_once(' ')?;
    let is_item = match keyword {
        "struct" | "enum" | "union" | "trait" => true,
        "type" => code.len() == line.len() || code.starts_with("pub"),
        _ => false,
    };
    let name = rest.split(|each: char| !each.is_alphanumeric() && each != '_');
    let name = name.into_iter().next()?;
    (is_item && !name.is_empty()).then_some((name, is_public))
}

#[test]
fn a_name_with_two_meanings_is_seen() {
    let source = |path: &str, text: &str| Source {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let all = definitions(&[
        source(
            "crates/a/src/lib.rs",
            "pub struct Plan<T> {\n}\npub trait Road {}\n",
        ),
        source(
            "crates/b/src/lib.rs",
            "enum Plan { Means }\npub(crate) struct Road;\n",
        ),
        source(
            "crates/c/src/lib.rs",
            "impl A for B {\n    type Plan = C;\n}\npub type Road = u8; // struct Means;\n#[cfg(test)]\n\
             mod tests {\n    struct Scene;\n}\n",
        ),
        source("crates/d/src/lib.rs", "    pub(super) union Means {\n"),
    ]);
    assert_eq!(
        repeated_words(&all, &[]),
        ["Plan: name each for what it is: crates/a/src/lib.rs and in crates/b/src/lib.rs"]
    );
    assert_eq!(
        repeated_names(&all, &[]),
        ["Road: name each for what it is: crates/a/src/lib.rs and in crates/c/src/lib.rs"]
    );
    assert_eq!(
        empty_names(&all),
        ["crates/d/src/lib.rs: say what a Means is"]
    );
    let pair: [Shared; 2] = [("Plan", ["a", "b"], ""), ("Road", ["a", "c"], "")];
    assert!(repeated_words(&all, &pair).is_empty());
    assert!(repeated_names(&all, &pair).is_empty());
    assert!(!repeated_names(&all, &[("Road", ["a", "b"], "")]).is_empty());
}
