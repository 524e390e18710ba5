//! What was asked and not measured: said before the answer, because the answer is then of less than was asked.

use super::wording::listed;
use super::{Case, CaseStatus, Layout, RunResult, StackKind, named};

/// Characters of a reason that a headline has room for.
const REASON_MAX: usize = 160;
/// Names of combinations that a sentence has room for.
const NAMES_MAX: usize = 3;

/// Layouts of a result by whether they have an answer.
struct Layouts<'a> {
    measured: Vec<&'a str>,
    /// With the first of the reasons.
    missing: Vec<(&'a str, &'a Case)>,
}

impl<'a> Layouts<'a> {
    fn of(result: &'a RunResult) -> Layouts<'a> {
        let mut layouts = Layouts {
            measured: Vec::new(),
            missing: Vec::new(),
        };
        let compared = result.cases.iter().filter(|case| case.is_compared());
        for case in compared {
            if !layouts.measured.contains(&case.id.layout.as_str()) {
                layouts.measured.push(&case.id.layout);
            }
        }
        for case in &result.cases {
            let is_known = layouts.measured.contains(&case.id.layout.as_str())
                || layouts
                    .missing
                    .iter()
                    .any(|(layout, _)| *layout == case.id.layout);
            if !is_known {
                layouts.missing.push((&case.id.layout, case));
            }
        }
        layouts
    }

    fn asked(&self) -> usize {
        self.measured.len() + self.missing.len()
    }
}

impl RunResult {
    /// Whether there is an [answer](is_answer) to what was asked.
    pub fn is_answered(&self) -> bool {
        let layouts = Layouts::of(self);
        let measured = layouts.measured.iter().copied();
        let missing = layouts.missing.iter().map(|(layout, _)| *layout);
        is_answer(
            &self.layouts_called(measured),
            &self.layouts_called(missing),
        )
    }

    fn layouts_called<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<&Layout> {
        let of = |name| self.layouts.iter().find(|layout| layout.name == name);
        names.filter_map(of).collect()
    }
}

/// Whether `measured` layouts answer what was asked of them and of those `missing`: they are more, and kinds that were
/// to be compared still are.
pub fn is_answer(measured: &[&Layout], missing: &[&Layout]) -> bool {
    measured.len() > missing.len() && compared_no_more(measured, missing).is_empty()
}

/// In what layouts differ by kind: as several are called, and the kind of this one.
fn kinds(layout: &Layout) -> [(&'static str, String); 5] {
    [
        ("databases", database(layout)),
        ("file systems", title(layout, StackKind::FileSystem)),
        ("volumes", title(layout, StackKind::Volume)),
        ("access methods", layout.method.to_string()),
        ("caching", layout.caching.to_string()),
    ]
}

/// The kinds that were asked for and of which only one was measured, as several are called.
fn compared_no_more(measured: &[&Layout], missing: &[&Layout]) -> Vec<&'static str> {
    let Some((first, others)) = measured.split_first() else {
        return Vec::new();
    };
    let is_lost = |(place, (_, kind)): &(usize, (&str, String))| {
        let is_same = |layout: &&&Layout| kinds(layout)[*place].1 == *kind;
        others.iter().all(|layout| is_same(&layout))
            && !missing.iter().all(|layout| is_same(&layout))
    };
    let lost = kinds(first).into_iter().enumerate().filter(is_lost);
    lost.map(|(_, (several, _))| several).collect()
}

/// What a layout's database is called, measured or not: a skipped one never told its version. Empty for the embedded
/// one, whose datafiles are counted there.
fn database(layout: &Layout) -> String {
    let is_embedded = layout.database.is_some_and(|facts| facts.writers.is_some());
    match is_embedded {
        true => String::new(),
        false => title(layout, StackKind::Files),
    }
}

fn title(layout: &Layout, kind: StackKind) -> String {
    let mut parts = layout.stack.iter().flatten();
    let part = parts.find(|part| part.kind == kind);
    part.map_or_else(String::new, |part| part.title.clone())
}

/// `Only 1 of 2 layouts was measured: LVM skipped (LVM needs device-mapper).`; nothing when all were.
pub(super) fn sentence(result: &RunResult) -> Option<String> {
    let layouts = Layouts::of(result);
    let (_, case) = layouts.missing.first()?;
    let status = case.outcome.status();
    let asked = layouts.asked();
    let reason = shortened(case.outcome.reason().unwrap_or_default());
    let is_same = |(_, other): &(&str, &Case)| {
        matches!((&case.outcome, &other.outcome),
            (CaseStatus::Skipped { reason: a }, CaseStatus::Skipped { reason: b })
            | (CaseStatus::Failed { reason: a }, CaseStatus::Failed { reason: b }) if a == b)
    };
    let names: Vec<&str> = layouts.missing.iter().map(|(layout, _)| *layout).collect();
    let all_alike = layouts.missing.iter().all(is_same);
    let why = match (names.as_slice(), all_alike) {
        ([only], _) => format!("{} {status} ({reason})", named(only)),
        (_, true) => format!("{} {status} ({reason})", listed(&names)),
        ([first, ..], false) => {
            let more = names.len() - 1;
            format!("{} {status} ({reason}), and {more} more", named(first))
        }
        ([], _) => String::new(),
    };
    let told = match layouts.measured.len() {
        0 if all_alike && asked > 1 => {
            let all = match asked {
                2 => "both".to_owned(),
                more => format!("all {more}"),
            };
            format!("Nothing was measured: {all} layouts {status} ({reason}).")
        }
        0 => format!("Nothing was measured: {why}."),
        1 => format!("Only 1 of {asked} layouts was measured: {why}."),
        measured => format!("Only {measured} of {asked} layouts were measured: {why}."),
    };
    Some(told + &not_compared(result, &layouts))
}

/// ` What is left compares no file systems and no volumes.`; empty where it compares all kinds, and where it compares
/// nothing.
fn not_compared(result: &RunResult, layouts: &Layouts<'_>) -> String {
    let measured = result.layouts_called(layouts.measured.iter().copied());
    let missing = layouts.missing.iter().map(|(layout, _)| *layout);
    let lost = compared_no_more(&measured, &result.layouts_called(missing));
    if measured.len() < 2 || lost.is_empty() {
        return String::new();
    }
    let lost: Vec<String> = lost.iter().map(|kind| format!("no {kind}")).collect();
    format!(" What is left compares {}.", lost.join(" and "))
}

/// `2 of 8 combinations were left out: slaves, 4 writers; slaves, 8 writers (reason).`; nothing where none was.
pub(super) fn combinations(result: &RunResult) -> Option<String> {
    let matrix = result.experiment.facts().matrix.as_ref()?;
    let left_out = &matrix.left_out;
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for out in left_out {
        let (layout, reason) = (out.layout.as_str(), out.reason.as_str());
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, layouts)) => layouts.push(layout),
            None => reasons.push((reason, vec![layout])),
        }
    }
    let told = reasons
        .iter()
        .map(|(reason, layouts)| format!("{} ({})", some_of(layouts), shortened(reason)));
    let told = told.collect::<Vec<_>>().join(", ");
    let all = left_out.len() + matrix.cells.len();
    Some(match left_out.len() {
        0 => return None,
        1 => format!("1 of {all} combinations was left out: {told}."),
        count => format!("{count} of {all} combinations were left out: {told}."),
    })
}

/// Names, as many as a sentence has room for.
fn some_of(layouts: &[&str]) -> String {
    match layouts {
        [first, .., last] if layouts.len() > NAMES_MAX => {
            format!("{first}; ...; {last}")
        }
        all => all.join("; "),
    }
}

fn shortened(reason: &str) -> String {
    let reason = reason.trim_end_matches('.');
    match reason.char_indices().nth(REASON_MAX) {
        None => reason.to_owned(),
        Some((end, _)) => format!("{}...", reason[..end].trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{CaseStatus, DatabaseFacts, StackKind, StackPart, build, sample};
    use super::compared_no_more;

    fn headline(skipped: &[usize], why: &str) -> (String, bool) {
        let tpm: &[f64] = &[100.0, 101.0, 99.0, 100.0, 100.5];
        let mut record = sample::record(&[("ASM", tpm), ("LVM", tpm)]);
        for index in skipped {
            record.cases[*index].trials.clear();
            record.cases[*index].outcome = CaseStatus::Skipped {
                reason: why.to_owned(),
            };
        }
        let result = build(&record).unwrap();
        let is_answered = result.is_answered();
        (result.headline, is_answered)
    }

    #[test]
    fn half_a_question_is_not_answered_and_that_is_said_first() {
        let (text, is_answered) = headline(&[1], "LVM needs device-mapper");
        assert!(
            text.starts_with(
                "Only 1 of 2 layouts was measured: LVM skipped (LVM needs device-mapper). "
            ),
            "{text}"
        );
        assert!(!is_answered);
        let (text, is_answered) = headline(&[0, 1], "not enough space");
        assert_eq!(
            text,
            "Nothing was measured: both layouts skipped (not enough space)."
        );
        assert!(!is_answered);
        let (text, is_answered) = headline(&[], "");
        assert!(is_answered && !text.contains("measured:"), "{text}");
    }

    #[test]
    fn combinations_that_cannot_be_had_do_not_make_half_an_answer() {
        let tpm: &[f64] = &[100.0, 101.0, 99.0, 100.0, 100.5];
        let mut record = sample::record(&[("sync, 1", tpm), ("slaves, 1", tpm), ("sync, 4", tpm)]);
        let out = |layout: &str| json!({ "layout": layout, "reason": "one writer only" });
        let with = |left_out: &[serde_json::Value]| {
            let matrix = json!({ "cells": [0, 1, 2], "left_out": left_out });
            sample::experiment(&[("matrix", matrix)])
        };
        record.experiment = with(&[out("slaves, 4")]);
        let result = build(&record).unwrap();
        let told = "1 of 4 combinations was left out: slaves, 4 (one writer only).";
        assert!(result.headline.ends_with(told), "{}", result.headline);
        assert!(result.is_answered());
        let many: Vec<_> = (4..9)
            .map(|writers| out(&format!("slaves, {writers}")))
            .collect();
        record.experiment = with(&many);
        let headline = build(&record).unwrap().headline;
        let told =
            "5 of 8 combinations were left out: slaves, 4; ...; slaves, 8 (one writer only).";
        assert!(headline.ends_with(told), "{headline}");
        record.experiment = with(&[]);
        assert!(!build(&record).unwrap().headline.contains("left out"));
    }

    #[test]
    fn without_the_only_one_of_its_kind_there_is_no_answer() {
        let tpm: &[f64] = &[100.0, 101.0, 99.0, 100.0, 100.5];
        let of = |missing: usize, volumes: &[usize]| {
            let mut record = sample::record(&[("a", tpm), ("b", tpm), ("c", tpm), ("d", tpm)]);
            for layout in volumes {
                record.layouts[*layout].stack = vec![vec![StackPart {
                    kind: StackKind::Volume,
                    title: "logical volume".to_owned(),
                    detail: format!("{layout} stripes"),
                }]];
            }
            record.cases[missing].trials.clear();
            record.cases[missing].outcome = CaseStatus::Skipped {
                reason: "LVM needs device-mapper".to_owned(),
            };
            let result = build(&record).unwrap();
            let is_answered = result.is_answered();
            (result.headline, is_answered)
        };
        let (text, is_answered) = of(3, &[3]);
        assert!(
            text.starts_with(
                "Only 3 of 4 layouts were measured: d skipped (LVM needs device-mapper). What is left compares no volumes. "
            ),
            "{text}"
        );
        assert!(!is_answered);
        // Another volume was measured, or the missing one is of a kind that was: the question stands.
        for (missing, volumes) in [(3, &[2, 3][..]), (3, &[]), (0, &[3])] {
            let (text, is_answered) = of(missing, volumes);
            assert!(is_answered && !text.contains("compares no"), "{text}");
        }
    }

    #[test]
    fn databases_are_of_a_kind_whatever_their_version_and_number_of_files() {
        let plain = sample::record(&[("a", &[100.0])]).layouts.remove(0);
        let of = |files: &str, engine: Option<&str>, writers: Option<u32>| {
            let mut layout = plain.clone();
            layout.engine = engine.map(str::to_owned);
            layout.stack = vec![vec![StackPart {
                kind: StackKind::Files,
                title: files.to_owned(),
                detail: String::new(),
            }]];
            layout.database = Some(DatabaseFacts {
                writers,
                datafiles: None,
                buffer_cache_bytes: 1 << 20,
            });
            layout
        };
        let measured = of("postgres files", Some("PostgreSQL 17.2"), None);
        let skipped = of("postgres files", Some("postgres"), None);
        assert!(compared_no_more(&[&measured], &[&skipped]).is_empty());
        let other = of("mariadb files", Some("mariadb"), None);
        assert_eq!(compared_no_more(&[&measured], &[&other]), ["databases"]);
        let [four, eight] = ["4 datafiles", "8 datafiles"].map(|files| of(files, None, Some(1)));
        assert!(compared_no_more(&[&four], &[&eight]).is_empty());
        assert_eq!(compared_no_more(&[&four], &[&other]), ["databases"]);
    }

    #[test]
    fn a_long_reason_is_cut() {
        let (text, _) = headline(&[1], &"x".repeat(500));
        assert!(text.contains("xxx...)"), "{text}");
    }
}
