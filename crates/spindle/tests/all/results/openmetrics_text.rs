//! A strict reader of the text format of OpenMetrics 1.0, written from the grammar and the rules of its specification
//! (specification/OpenMetrics.md, "ABNF" and "Overall Structure"): as much of it as gauges, infos and summaries need.

use std::collections::BTreeSet;

/// The families of a text, or its first fault.
pub fn families(text: &str) -> Result<Vec<Family>, String> {
    let body = text
        .strip_suffix("# EOF\n")
        .ok_or("it does not end with # EOF and a line feed")?;
    let mut families: Vec<Family> = Vec::new();
    for line in body.split_inclusive('\n') {
        let line = line
            .strip_suffix('\n')
            .ok_or("a line without a line feed")?;
        match line.strip_prefix("# ") {
            Some(descriptor) => describe(&mut families, descriptor)?,
            None => {
                let family = families.last_mut().ok_or("a sample before any family")?;
                family.take(line)?;
            }
        }
    }
    Ok(families)
}

/// A family of metrics.
#[derive(Default)]
pub struct Family {
    pub name: String,
    pub samples: usize,
    kind: String,
    has_help: bool,
    has_unit: bool,
    seen: BTreeSet<String>,
}

fn describe(families: &mut Vec<Family>, descriptor: &str) -> Result<(), String> {
    let (word, rest) = descriptor
        .split_once(' ')
        .ok_or("an unfinished descriptor")?;
    let (name, value) = rest
        .split_once(' ')
        .ok_or("a descriptor without its value")?;
    if !is_name(name) {
        return Err(format!("{name} is no name"));
    }
    if families.last().is_none_or(|family| family.name != name) {
        if families.iter().any(|family| family.name == name) {
            return Err(format!("{name} stands in two places"));
        }
        families.push(Family {
            name: name.to_owned(),
            ..Family::default()
        });
    }
    let family = families.last_mut().expect("there is one now");
    if family.samples > 0 {
        return Err(format!("a descriptor of {name} after its samples"));
    }
    let is_again = match word {
        "TYPE" if ["gauge", "info", "summary"].contains(&value) => {
            !std::mem::replace(&mut family.kind, value.to_owned()).is_empty()
        }
        "HELP" => {
            unescaped(value)?;
            std::mem::replace(&mut family.has_help, true)
        }
        "UNIT" if name.ends_with(&format!("_{value}")) => {
            std::mem::replace(&mut family.has_unit, true)
        }
        "UNIT" => return Err(format!("{name} does not end with its unit {value}")),
        _ => return Err(format!("{word} {value} of {name} is unknown")),
    };
    if is_again {
        return Err(format!("{word} of {name} twice"));
    }
    Ok(())
}

impl Family {
    fn take(&mut self, line: &str) -> Result<(), String> {
        let (name, rest) = line.split_once('{').ok_or("a sample without labels")?;
        let (labels, value) = labels(rest)?;
        let suffixes: &[&str] = match self.kind.as_str() {
            "gauge" => &[""],
            "info" => &["_info"],
            "summary" => &["", "_count", "_sum"],
            other => return Err(format!("{} is of type {other:?}", self.name)),
        };
        let suffix = name.strip_prefix(self.name.as_str());
        let suffix = suffix
            .filter(|suffix| suffixes.contains(suffix))
            .ok_or_else(|| format!("{name} is no sample of {} {}", self.kind, self.name))?;
        let quantile = labels.iter().find(|(label, _)| label == "quantile");
        if (self.kind == "summary" && suffix.is_empty()) != quantile.is_some() {
            return Err(format!(
                "{line}: a quantile belongs to the values of a summary"
            ));
        }
        let number: f64 = value
            .strip_prefix(' ')
            .and_then(|value| value.parse().ok())
            .ok_or_else(|| format!("{value:?} is no value"))?;
        if (self.kind == "info" && number != 1.0) || (suffix == "_count" && number.fract() != 0.0) {
            return Err(format!("{line}: {number} is not allowed here"));
        }
        if !self.seen.insert(format!("{name}{labels:?}")) {
            return Err(format!("{line}: twice"));
        }
        self.samples += 1;
        Ok(())
    }
}

/// Names and values.
type Labels = Vec<(String, String)>;

/// The labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> Result<(Labels, &str), String> {
    let mut labels = Labels::new();
    loop {
        let (label, after) = rest.split_once("=\"").ok_or("a label without a value")?;
        if !is_name(label) || label.contains(':') {
            return Err(format!("{label} is no label"));
        }
        if labels.iter().any(|(other, _)| other == label) {
            return Err(format!("label {label} twice"));
        }
        let end = closing_quote(after).ok_or("a label value without its end")?;
        labels.push((label.to_owned(), unescaped(&after[..end])?));
        rest = &after[end + 1..];
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => {
                let value = rest.strip_prefix('}').ok_or("labels without their end")?;
                return Ok((labels, value));
            }
        }
    }
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (index, letter) in text.char_indices() {
        match letter {
            '"' if !is_escaped => return Some(index),
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    None
}

/// The text that `escaped-string` stands for.
fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return Err(format!("a bare quotation mark in {text:?}")),
            '\\' => match letters.next() {
                Some('n') => plain.push('\n'),
                Some(escaped @ ('\\' | '"')) => plain.push(escaped),
                other => return Err(format!("{other:?} after a backslash")),
            },
            letter => plain.push(letter),
        }
    }
    Ok(plain)
}

fn is_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == ':';
    name.starts_with(is_letter)
        && name
            .chars()
            .all(|letter| is_letter(letter) || letter.is_ascii_digit())
}
