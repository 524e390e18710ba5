//! `[vary]` and `--vary`: settings with several values each. Every layout that is measured is taken once with each
//! combination of them, under a name made of the values. This is done to the tree of the file before it is read, so a
//! layout of a matrix is read, checked and complained about as any other.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use super::access_path::IO_KEYS;
use super::aliases;
use super::database::SAME_IN_EVERY_CASE;
use super::document::{
    Document, DocumentTable, KeyValue, NAME_LENGTH_MAX, Node, SourcePlace, Value, keys_of, name_of,
    set, value_of,
};
use super::doubts::anywhere;
use super::error::ExperimentError;
use super::matrix::{Factor, FactorMatrix, MatrixCell};
use spindle_text::nearest::nearest;
use spindle_text::quantity::{parse_duration_ms, parse_size};

#[cfg(test)]
mod tests;

/// More layouts than this are not compared with each other in any sensible time.
const LAYOUTS_MAX: usize = 64;
/// A full matrix has no more layouts than this, where a half of it tells as much.
const FULL_MAX: usize = 16;
/// With fewer factors, effects in a half could not be told from interactions of two.
const FACTORS_OF_HALF_MIN: usize = 5;
const EXAMPLE: &str =
    "write it like --vary io.method=sync,async or --vary settings.full_page_writes=on,off";
const ALLOWED: &str = "a list of two different values or more";
const HELP: &str = "keys are those of a layout, such as io.method, database.writers, path, limit.read_iops; settings.NAME is a setting of a \
                    server by its own name";
/// Keys of a layout that cannot be varied.
const NAMES: [&str; 2] = ["name", "candidate"];

/// A key with several values.
struct Varied {
    path: Vec<String>,
    key_place: SourcePlace,
    levels: Vec<Node>,
    labels: Vec<String>,
}

/// Takes in the `arguments` of `--vary`, beside those of `--set`, and makes layouts of what is varied. `keys` are those
/// that a layout understands, and those of its database. Says whether it did: what is wrong is noted, and the layouts
/// stay as they are.
pub(super) fn expand(
    document: &mut Document,
    (arguments, sets): (&[String], &[String]),
    keys: (&[&str], &[&str]),
) -> bool {
    let known = document.count_of_mistakes();
    let mut section = document.table("vary").unwrap_or(DocumentTable::EMPTY);
    let fraction = section.take("fraction");
    let mut varied = Vec::new();
    gather(document, &section, &[], &mut varied);
    let mut of_arguments: Vec<Varied> = Vec::new();
    for argument in arguments {
        match from_argument(document, argument) {
            Ok(of_argument) => {
                note(
                    document,
                    check_alone(document, &of_argument, &of_arguments, sets),
                );
                of_arguments.push(of_argument);
            }
            Err(mistake) => document.note(mistake),
        }
    }
    varied.retain(|of_file| {
        of_arguments
            .iter()
            .all(|other| other.key() != of_file.key())
    });
    varied.extend(of_arguments);
    for each in &mut varied {
        note(document, check(document, each, keys));
    }
    note(document, check_apart(document, &varied));
    if document.count_of_mistakes() == known {
        let multiplied = multiply(document, &mut varied, fraction.as_ref());
        note(document, multiplied);
    }
    let is_done = document.count_of_mistakes() == known;
    if !is_done {
        doubt(document, &varied, keys.0);
    }
    is_done
}

fn note(document: &Document, checked: Result<(), ExperimentError>) {
    if let Err(mistake) = checked {
        document.note(mistake);
    }
}

/// Doubts what would have been varied, in every layout: what the layouts would be is not known.
fn doubt(document: &Document, varied: &[Varied], layout_keys: &[&str]) {
    for each in varied {
        let meant = nearest(&each.path[0], layout_keys.iter().copied());
        let keys = each.path.iter().map(String::as_str).chain(meant);
        keys.for_each(|key| document.doubt(anywhere(key)));
    }
}

/// Replaces the layouts by the combinations of what is varied.
fn multiply(
    document: &mut Document,
    varied: &mut [Varied],
    fraction: Option<&KeyValue>,
) -> Result<(), ExperimentError> {
    label(varied);
    let Some(layouts) = document.list("layout").filter(|_| !varied.is_empty()) else {
        return Ok(());
    };
    let bases: Vec<usize> = (0..layouts.len())
        .filter(|index| is_measured(&layouts[*index]))
        .collect();
    let is_half = is_half(document, varied, bases.len(), fraction)?;
    let combinations = combinations(varied, is_half);
    if bases.is_empty() || layouts.iter().any(|layout| name_of(layout).is_none()) {
        return Ok(());
    }
    if bases.len() * combinations.len() > LAYOUTS_MAX {
        return Err(too_many(document, varied, bases.len(), is_half));
    }
    let (layouts, matrix) = multiplied(document, layouts, varied, &combinations)?;
    document.matrix = Some(FactorMatrix { is_half, ..matrix });
    document.put_list("layout", layouts);
    Ok(())
}

impl Varied {
    /// The key that it is in a layout, in whichever words it was written.
    fn key(&self) -> Vec<String> {
        match self.path.len() {
            1 if self.path[0] == "settings" => self.path.clone(),
            _ => aliases::path_put_right(self.path.clone()),
        }
    }
}

/// Refuses a `--vary` of a key that another one varies, or that a `--set` sets: one of them would count for nothing.
fn check_alone(
    document: &Document,
    varied: &Varied,
    earlier: &[Varied],
    sets: &[String],
) -> Result<(), ExperimentError> {
    let key = varied.path.join(".");
    let refused = |message: String, label: &str| {
        let error = ExperimentError::new(message);
        let place = &varied.key_place;
        Err(wrong(document, error, &key, place, label.to_owned()))
    };
    let own = varied.key();
    if earlier.iter().any(|other| other.key() == own) {
        let label = "give all its values in one --vary";
        return refused(format!("{key} is varied twice"), label);
    }
    let is_set = |set: &String| {
        let keys = set.split_once('=').and_then(|(key, _)| keys_of(key));
        keys.is_some_and(|keys| aliases::path_put_right(keys).starts_with(&own))
    };
    if sets.iter().any(is_set) {
        let label = "every layout has one of these values; leave the --set out";
        return refused(format!("{key} is set and varied"), label);
    }
    Ok(())
}

/// The lists of a table and of those within it, with the keys that lead to them.
fn gather(document: &Document, table: &DocumentTable, above: &[String], varied: &mut Vec<Varied>) {
    for entry in &table.entries {
        let keys = keys_of(&entry.key).filter(|_| !is_of_server(above));
        let path = [above, &keys.unwrap_or_else(|| vec![entry.key.clone()])].concat();
        match &entry.node.value {
            Value::Table(inner) => gather(document, inner, &path, varied),
            Value::List(levels) => varied.push(Varied {
                path,
                key_place: entry.key_place.clone(),
                levels: levels.clone(),
                labels: Vec::new(),
            }),
            other => {
                let key = path.join(".");
                let error = ExperimentError::new(format!("vary.{key} is {}", other.found()));
                let label = format!("allowed: {ALLOWED}");
                document.note(wrong(document, error, &key, &entry.node.place, label));
                for key in &path {
                    document.doubt(anywhere(key));
                }
            }
        }
    }
}

/// Whether what follows is the name of a server's setting, which may have a dot in it.
fn is_of_server(path: &[String]) -> bool {
    matches!(path, [settings] if settings == "settings")
        || matches!(path, [database, settings] if database == "database" && settings == "settings")
}

/// `KEY=A,B`, or `KEY=[A, B]` as TOML has it.
fn from_argument(document: &mut Document, argument: &str) -> Result<Varied, ExperimentError> {
    let given = document.assignment("--vary", argument, EXAMPLE)?;
    let whole = value_of(&given.value, &given.value_place);
    let levels = match whole.value {
        Value::List(levels) => levels,
        _ => parts(&given.value)
            .into_iter()
            .map(|(start, part)| {
                let trimmed = part.trim();
                let from = start + part.len() - part.trim_start().len();
                value_of(trimmed, &given.value_place.part(from..from + trimmed.len()))
            })
            .collect(),
    };
    let path = match given.keys.split_first() {
        Some((first, names)) if first == "settings" && !names.is_empty() => {
            vec![first.clone(), names.join(".")]
        }
        _ => given.keys,
    };
    Ok(Varied {
        path,
        key_place: given.key_place,
        levels,
        labels: Vec::new(),
    })
}

/// A text cut at its commas, but for those in quotes, brackets and braces; each part with where it starts.
pub fn parts(text: &str) -> Vec<(usize, &str)> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    for (index, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push((start, &text[start..index]));
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push((start, &text[start..]));
    parts
}

/// Refuses what cannot be varied, and turns a setting of a server into the key of a layout that it is.
fn check(
    document: &Document,
    varied: &mut Varied,
    (layout_keys, database_keys): (&[&str], &[&str]),
) -> Result<(), ExperimentError> {
    varied.path = varied.key();
    let key = varied.path.join(".");
    let first = varied.path[0].as_str();
    let refused = |label: &str| {
        let error = ExperimentError::new(format!("{key} cannot be varied"));
        Err(wrong(
            document,
            error,
            &key,
            &varied.key_place,
            label.to_owned(),
        ))
    };
    let of_database = match &varied.path[..] {
        [database, of, ..] if database == "database" => of,
        _ => &varied.path[0],
    };
    let mut same = SAME_IN_EVERY_CASE.iter();
    if let Some((_, compared)) = same.find(|(same, _)| same == of_database) {
        let label = format!("layouts that differ would compare {compared}: set it in [database]");
        return refused(&label);
    }
    match first {
        "settings" if varied.path.len() == 1 => return refused("name a setting: settings.NAME"),
        "plan" => return refused("the plan is the same for every layout"),
        "workload" | "clients" if key.ends_with("clients") => {
            return refused("load levels are a list already: clients = [8, 16] in [workload]");
        }
        "workload" => return refused("every layout has the same workload"),
        _ if database_keys.contains(&first) && !layout_keys.contains(&first) => {
            return refused(&format!("write database.{first}"));
        }
        _ if IO_KEYS.contains(&first) => return refused(&format!("write io.{first}")),
        _ if NAMES.contains(&first) => return refused("no key of a layout that can be varied"),
        _ if !layout_keys.contains(&first) => {
            let known = layout_keys.iter().chain(database_keys);
            let near = nearest(first, known.copied());
            let meant = match (near, varied.path.len()) {
                (Some(near), _) => format!("; did you mean {near:?}?"),
                (None, 1) => format!("; a setting of a server is settings.{first}"),
                (None, _) => String::new(),
            };
            return refused(&format!("no key of a layout{meant}"));
        }
        "path" => check_places(document, varied)?,
        _ => {}
    }
    let key = &key;
    let list = |place: &SourcePlace, label: String| {
        let error = ExperimentError::new(format!("vary.{key} offers no choice"));
        Err(wrong(document, error, key, place, label))
    };
    if varied.levels.len() < 2 {
        return list(&varied.key_place, format!("allowed: {ALLOWED}"));
    }
    let mut seen = BTreeSet::new();
    for level in &varied.levels {
        let is_of_server = is_of_server(&varied.path[..varied.path.len() - 1]);
        if !seen.insert(meaning_of(&level.value, is_of_server)) {
            return list(&level.place, "this value is there twice".to_owned());
        }
    }
    Ok(())
}

/// Refuses one directory under two names. Places that cannot be looked at are refused where layouts are read.
fn check_places(document: &Document, varied: &Varied) -> Result<(), ExperimentError> {
    if !document.directories_must_exist {
        return Ok(());
    }
    let mut known: Vec<((u64, u64), &str)> = Vec::new();
    for level in &varied.levels {
        let Value::Text(path) = &level.value else {
            continue;
        };
        let Ok(found) = std::fs::metadata(path) else {
            continue;
        };
        let place = (found.dev(), found.ino());
        if let Some((_, other)) = known.iter().find(|(other, _)| *other == place) {
            let error = ExperimentError::new(format!("{other} and {path} are one place"));
            let label = "it would be compared with itself: name another place; to see how trials of one place differ, set \
                         plan.noise_check = true";
            return Err(wrong(
                document,
                error,
                "path",
                &level.place,
                label.to_owned(),
            ));
        }
        known.push((place, path));
    }
    Ok(())
}

/// Refuses two keys of which one is a part of the other.
fn check_apart(document: &Document, varied: &[Varied]) -> Result<(), ExperimentError> {
    for (index, one) in varied.iter().enumerate() {
        let others = varied[..index].iter();
        let mut clash = others
            .filter(|other| one.path.starts_with(&other.path) || other.path.starts_with(&one.path));
        if let Some(other) = clash.next() {
            let (key, other) = (one.path.join("."), other.path.join("."));
            let error = ExperimentError::new(format!(
                "{key} and {other} are varied, and one is a part of the other"
            ));
            return Err(wrong(
                document,
                error,
                &key,
                &one.key_place,
                "keep one of them".to_owned(),
            ));
        }
    }
    Ok(())
}

fn wrong(
    document: &Document,
    error: ExperimentError,
    key: &str,
    place: &SourcePlace,
    label: String,
) -> ExperimentError {
    document.mark(error.at_key(format!("vary.{key}")).help(HELP), place, label)
}

/// A value as people read it in the name of a layout.
fn text_of(value: &Value) -> String {
    match value {
        Value::Text(text) => text.trim().to_owned(),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| text_of(&item.value)).collect();
            items.join("+")
        }
        Value::Table(table) => {
            let values = table.entries.iter().map(|entry| match &entry.node.value {
                Value::Text(text) => text.clone(),
                other => format!("{} {}", entry.key, text_of(other)),
            });
            values.collect::<Vec<_>>().join(" ")
        }
        other => other.found(),
    }
}

/// A value such that two spellings of one are the same: `64MiB` and `65536KiB`, `1m` and `60s`, `/mnt/a` and `/mnt/a/`;
/// of a server's settings also `on` and `true`, `WAL` and `wal`, and sizes as servers write them.
fn meaning_of(value: &Value, is_of_server: bool) -> String {
    let text = text_of(value);
    let size = |text: &str| parse_size(text).map(|bytes| format!("{bytes} B"));
    let duration = || parse_duration_ms(&text).map(|ms| format!("{ms} ms"));
    let of_server = || {
        let lower = text.to_ascii_lowercase();
        let without_unit = lower.strip_suffix('b').and_then(size);
        without_unit.unwrap_or_else(|| match lower.as_str() {
            "true" | "yes" => "on".to_owned(),
            "false" | "no" => "off".to_owned(),
            _ => lower,
        })
    };
    let known = size(&text).or_else(duration);
    match (known, is_of_server) {
        (Some(known), _) => known,
        (None, true) => of_server(),
        (None, false) if text.len() > 1 => text.trim_end_matches('/').to_owned(),
        (None, false) => text,
    }
}

/// Gives each level the name by which layouts have it: the value alone where it says enough and no other factor has the
/// same, else behind the last part of the key.
fn label(varied: &mut [Varied]) {
    let texts = |of: &Varied| -> Vec<String> {
        of.levels
            .iter()
            .map(|level| text_of(&level.value))
            .collect()
    };
    let all: Vec<Vec<String>> = varied.iter().map(texts).collect();
    for (index, each) in varied.iter_mut().enumerate() {
        let is_alone = |text: &String| {
            let mut others = all.iter().enumerate().filter(|(other, _)| *other != index);
            others.all(|(_, texts)| !texts.contains(text))
        };
        let speaks = all[index]
            .iter()
            .all(|text| speaks_for_itself(text) && is_alone(text));
        let name = short_name(&each.path);
        let labels = all[index].iter().map(|text| match speaks {
            true => text.clone(),
            false => format!("{name} {text}"),
        });
        each.labels = labels.collect();
    }
}

fn short_name(path: &[String]) -> &str {
    path.last().map_or("", String::as_str)
}

/// Whether a value needs no name beside it: a word that is no mere yes or no, or a path.
fn speaks_for_itself(text: &str) -> bool {
    const SAYS_NOTHING: [&str; 8] = ["on", "off", "true", "false", "yes", "no", "none", "default"];
    let is_word = text.starts_with(|first: char| first.is_alphabetic() || "/.~".contains(first));
    is_word && !SAYS_NOTHING.contains(&text.to_ascii_lowercase().as_str())
}

fn is_measured(layout: &Node) -> bool {
    let Value::Table(table) = &layout.value else {
        return false;
    };
    !matches!(
        table.get("candidate").map(|node| &node.value),
        Some(Value::Bool(false))
    )
}

/// Whether half of the combinations are taken: where all would be many, or when the file says so.
fn is_half(
    document: &Document,
    varied: &[Varied],
    bases: usize,
    fraction: Option<&KeyValue>,
) -> Result<bool, ExperimentError> {
    let can_be_half =
        varied.len() >= FACTORS_OF_HALF_MIN && varied.iter().all(|each| each.levels.len() == 2);
    let Some(entry) = fraction else {
        let all = varied.iter().fold(bases, |all, _| all.saturating_mul(2));
        return Ok(can_be_half && all > FULL_MAX);
    };
    let refused = |label: String| {
        let error = ExperimentError::new("vary.fraction cannot be so");
        Err(wrong(document, error, "fraction", &entry.node.place, label))
    };
    match &entry.node.value {
        Value::Text(word) if word == "full" => Ok(false),
        Value::Text(word) if word == "half" && can_be_half => Ok(true),
        Value::Text(word) if word == "half" => refused(format!(
            "a half needs {FACTORS_OF_HALF_MIN} keys or more of two values each: of fewer, effects could not be told from what two \
             of them do together"
        )),
        other => refused(format!(
            "it is {}; allowed: \"full\" or \"half\"",
            other.found()
        )),
    }
}

/// The levels of each combination that is taken, those of the last key changing first.
fn combinations(varied: &[Varied], is_half: bool) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for each in varied {
        let longer = |levels: &Vec<usize>| {
            let levels = levels.clone();
            (0..each.levels.len()).map(move |level| [levels.clone(), vec![level]].concat())
        };
        all = all.iter().flat_map(longer).collect();
        if all.len() > LAYOUTS_MAX * LAYOUTS_MAX {
            return all;
        }
    }
    // Defined by "all factors together": of five or more, main effects and pairs are aliased with three or more only.
    if is_half {
        all.retain(|levels| levels.iter().sum::<usize>().is_multiple_of(2));
    }
    all
}

fn too_many(
    document: &Document,
    varied: &[Varied],
    bases: usize,
    is_half: bool,
) -> ExperimentError {
    let mut sizes: Vec<usize> = varied.iter().map(|each| each.levels.len()).collect();
    if bases > 1 {
        sizes.insert(0, bases);
    }
    let all = sizes
        .iter()
        .fold(1_usize, |all, size| all.saturating_mul(*size));
    let product: Vec<String> = sizes.iter().map(usize::to_string).collect();
    let half = if is_half {
        ", of which half would be measured"
    } else {
        ""
    };
    let last = &varied[varied.len() - 1];
    let error = ExperimentError::new(format!(
        "{} = {all} layouts would be compared{half}",
        product.join(" x ")
    ));
    let label = format!("allowed: up to {LAYOUTS_MAX}");
    let key = last.path.join(".");
    document
        .mark(error.at_key(format!("vary.{key}")), &last.key_place, label)
        .help("every layout takes part in every round: vary fewer keys at once, or fewer values of them; what matters most first")
}

/// The layouts with every combination in place, and what they are cells of.
fn multiplied(
    document: &Document,
    layouts: &[Node],
    varied: &[Varied],
    combinations: &[Vec<usize>],
) -> Result<(Vec<Node>, FactorMatrix), ExperimentError> {
    let bases: Vec<&str> = layouts
        .iter()
        .filter(|layout| is_measured(layout))
        .filter_map(name_of)
        .collect();
    let has_several = bases.len() > 1;
    let name = |base: &str, levels: &[usize]| {
        let labels = varied
            .iter()
            .zip(levels)
            .map(|(each, level)| each.labels[*level].as_str());
        let parts: Vec<&str> = has_several
            .then_some(base)
            .into_iter()
            .chain(labels)
            .collect();
        parts.join(", ")
    };
    let (mut nodes, mut cells) = (Vec::new(), Vec::new());
    for layout in layouts {
        let Some(base) = bases
            .iter()
            .position(|base| is_measured(layout) && name_of(layout) == Some(base))
        else {
            nodes.push(layout.clone());
            continue;
        };
        for levels in combinations {
            let name_of_cell = name(bases[base], levels);
            if name_of_cell.chars().count() > NAME_LENGTH_MAX {
                let error =
                    ExperimentError::new(format!("a layout would be called {name_of_cell:?}"));
                let label = format!("allowed: up to {NAME_LENGTH_MAX} characters");
                return Err(document.mark(
                    error.help("vary fewer keys at once"),
                    &varied[0].key_place,
                    label,
                ));
            }
            let renamed = |other: &str| bases.contains(&other).then(|| name(other, levels));
            let node = cell(document, layout, varied, levels, &name_of_cell, renamed)?;
            nodes.push(node);
            let of_base = has_several.then_some(base);
            cells.push(MatrixCell {
                layout: name_of_cell,
                levels: of_base.into_iter().chain(levels.iter().copied()).collect(),
            });
        }
    }
    let matrix = FactorMatrix {
        factors: factors_of(varied, if has_several { &bases } else { &[] }),
        cells,
        is_half: false,
        left_out: Vec::new(),
    };
    Ok((nodes, matrix))
}

/// The factors, the layouts of these names first, if there are any.
fn factors_of(varied: &[Varied], bases: &[&str]) -> Vec<Factor> {
    let of_layouts = (!bases.is_empty()).then(|| Factor {
        name: "layout".to_owned(),
        levels: bases.iter().map(|base| (*base).to_owned()).collect(),
    });
    let factor = |each: &Varied| Factor {
        name: short_name(&each.path).to_owned(),
        levels: each
            .levels
            .iter()
            .map(|level| text_of(&level.value))
            .collect(),
    };
    let factors = of_layouts.into_iter();
    factors.chain(varied.iter().map(factor)).collect()
}

/// A layout with one combination in place. Files that it places on another layout of the matrix lie on that with the
/// same combination.
fn cell(
    document: &Document,
    layout: &Node,
    varied: &[Varied],
    levels: &[usize],
    name: &str,
    renamed: impl Fn(&str) -> Option<String>,
) -> Result<Node, ExperimentError> {
    let mut node = layout.clone();
    if let Value::Table(table) = &mut node.value {
        for entry in &mut table.entries {
            match (&mut entry.node.value, entry.key.as_str()) {
                (Value::Text(text), "name") => name.clone_into(text),
                (Value::Table(placement), "placement") => {
                    for on in &mut placement.entries {
                        if let Value::Text(text) = &mut on.node.value
                            && let Some(new) = renamed(text)
                        {
                            *text = new;
                        }
                    }
                }
                _ => {}
            }
        }
    }
    for (each, level) in varied.iter().zip(levels) {
        let value = each.levels[*level].clone();
        if let Err(why) = set(&mut node, &each.path, value, &each.key_place) {
            let key = each.path.join(".");
            let error =
                ExperimentError::new(format!("vary.{key} leads nowhere in layout {name:?}"));
            return Err(wrong(
                document,
                error,
                &key,
                &each.key_place,
                why.to_string(),
            ));
        }
    }
    Ok(node)
}
