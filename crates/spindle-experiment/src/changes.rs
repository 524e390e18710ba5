//! What the command line changes of an experiment file: settings, what is varied, which layouts are measured, and
//! whether it is a first look. Done to the tree of the file before it is read.

use super::aliases;
use super::command_line::CommandLine;
use super::document::{Document, DocumentTable, KeyValue, Node, Value, name_of};
use super::error::ExperimentError;
use super::vary;

/// What a first look does instead of the plan.
const QUICK: [(&str, QuickValue); 3] = [
    ("warmup", QuickValue::Text("1s")),
    ("measure", QuickValue::Text("2s")),
    ("rounds", QuickValue::Number(3)),
];
/// Keys of a plan that a first look leaves out.
const NOT_QUICK: [&str; 8] = [
    "precision",
    "max",
    "time",
    "warmup_max",
    "runs",
    "max_runs",
    "pause",
    "noise_check",
];

#[derive(Clone, Copy)]
enum QuickValue {
    Text(&'static str),
    Number(i128),
}

/// What is changed of an experiment file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes<'a> {
    /// Each `KEY=VALUE`, applied in this order.
    pub sets: &'a [String],
    /// Each `KEY=A,B`.
    pub vary: &'a [String],
    /// Each the name of a layout to be measured, or several with commas between them; empty: all are.
    pub only: &'a [String],
    /// Whether few short rounds are wanted, whatever the plan says.
    pub is_quick: bool,
    /// The command line that the text was written for, where it was not written as a file.
    pub written_for: Option<&'a CommandLine>,
}

impl Changes<'_> {
    /// Whether the experiment stays as it is.
    pub fn is_nothing(&self) -> bool {
        self.sets.is_empty() && self.vary.is_empty() && self.only.is_empty() && !self.is_quick
    }
}

/// What the sections of the file know, and their tree does not.
pub(super) struct Known {
    /// The keys that a layout understands.
    pub layout_keys: Vec<&'static str>,
    /// The keys of `[database]`.
    pub database_keys: Vec<&'static str>,
    /// The kinds of workload whose trials end with their work, not after a time.
    pub counted: Vec<&'static str>,
}

/// Makes the changes that are not settings, and notes what is wrong with them.
pub(super) fn make(document: &mut Document, changes: Changes<'_>, known: &Known) {
    aliases::put_right(document);
    // Layouts of the file are chosen before they are taken with all that is varied, those of the matrix after.
    let is_of_file = names_layouts_of(document, changes.only);
    if is_of_file {
        keep_only(document, changes.only);
    }
    let keys = (&known.layout_keys[..], &known.database_keys[..]);
    let is_expanded = vary::expand(document, (changes.vary, changes.sets), keys);
    if is_expanded && !is_of_file && !changes.only.is_empty() {
        keep_only(document, changes.only);
    }
    if changes.is_quick {
        hurry(document, &known.counted);
    }
}

/// Whether all these arguments name layouts as the file has them.
fn names_layouts_of(document: &Document, arguments: &[String]) -> bool {
    let layouts = document.list("layout").unwrap_or_default();
    let names: Vec<String> = layouts
        .iter()
        .filter_map(name_of)
        .map(str::to_owned)
        .collect();
    let is_known = |argument: &String| chosen_by(argument, &names).is_ok();
    !arguments.is_empty() && arguments.iter().all(is_known)
}

/// Leaves out every layout that is neither asked for nor holds files of one that is.
fn keep_only(document: &mut Document, arguments: &[String]) {
    let Some(layouts) = document.list("layout") else {
        return;
    };
    let layouts = layouts.to_vec();
    let names: Vec<String> = layouts
        .iter()
        .filter_map(name_of)
        .map(str::to_owned)
        .collect();
    let mut chosen = Vec::new();
    for argument in arguments {
        match chosen_by(argument, &names) {
            Ok(more) => chosen.extend(more),
            Err(NoSuchLayout(unknown)) => {
                let place = document.argument("--only", argument);
                let error = ExperimentError::new(format!("no layout is called {unknown:?}"))
                    .help(format!("the layouts are: {}", names.join("; ")));
                let label = "names of layouts, with commas between them";
                document.note(document.mark(error, &place, label));
                // Which layouts are meant is not known: all are looked at.
                return;
            }
        }
    }
    let mut needed = chosen.clone();
    let mut looked_at = 0;
    while let Some(name) = needed.get(looked_at).cloned() {
        looked_at += 1;
        let layout = layouts.iter().find(|layout| name_of(layout) == Some(&name));
        let beneath = layout.map(placed_on).unwrap_or_default();
        needed.extend(beneath.into_iter().filter(|name| names.contains(name)));
    }
    let mut kept = Vec::new();
    for mut layout in layouts {
        let name = name_of(&layout).unwrap_or_default().to_owned();
        if !needed.contains(&name) {
            continue;
        }
        if !chosen.contains(&name)
            && let Value::Table(table) = &mut layout.value
        {
            table.put("candidate", Value::Bool(false), &layout.place);
        }
        kept.push(layout);
    }
    if let Some(matrix) = &mut document.matrix {
        matrix.cells.retain(|cell| chosen.contains(&cell.layout));
    }
    document.put_list("layout", kept);
}

/// A name that no layout has.
struct NoSuchLayout(String);

/// The names in an argument; names themselves may have commas in them.
fn chosen_by(argument: &str, names: &[String]) -> Result<Vec<String>, NoSuchLayout> {
    let parts: Vec<&str> = argument.split(',').map(str::trim).collect();
    let (mut chosen, mut from) = (Vec::new(), 0);
    while from < parts.len() {
        let longest = (from + 1..=parts.len()).rev().find_map(|to| {
            let wanted = parts[from..to].join(", ");
            let name = names.iter().find(|name| same_words(name, &wanted))?;
            Some((to, name.clone()))
        });
        let (to, name) = longest.ok_or_else(|| NoSuchLayout(parts[from].to_owned()))?;
        chosen.push(name);
        from = to;
    }
    Ok(chosen)
}

/// Whether two names differ in spaces at most.
fn same_words(one: &str, other: &str) -> bool {
    let words = |name: &str| {
        name.replace(',', " , ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    words(one) == words(other)
}

/// Names in the `placement` of a layout.
fn placed_on(layout: &Node) -> Vec<String> {
    let Value::Table(table) = &layout.value else {
        return Vec::new();
    };
    let Some(Node {
        value: Value::Table(placement),
        ..
    }) = table.get("placement")
    else {
        return Vec::new();
    };
    let on = |entry: &KeyValue| match &entry.node.value {
        Value::Text(name) => Some(name.clone()),
        _ => None,
    };
    placement.entries.iter().filter_map(on).collect()
}

/// Puts the plan of a first look in place of the file's. Trials that end with their work keep their length.
fn hurry(document: &mut Document, counted: &[&str]) {
    let place = document.argument("--quick", "");
    let mut plan = document.table("plan").unwrap_or(DocumentTable::EMPTY);
    plan.entries
        .retain(|entry| !NOT_QUICK.contains(&entry.key.as_str()));
    let workload = document.table("workload").unwrap_or(DocumentTable::EMPTY);
    let kind = workload.get("kind").map(|node| &node.value);
    let is_counted = matches!(kind, Some(Value::Text(kind)) if counted.contains(&kind.as_str()));
    for (key, value) in QUICK {
        if is_counted && key != "rounds" {
            continue;
        }
        let value = match value {
            QuickValue::Text(text) => Value::Text(text.to_owned()),
            QuickValue::Number(number) => Value::Integer(number),
        };
        plan.put(key, value, &place);
    }
    document.put_table("plan", plan);
    document.is_quick = true;
}
