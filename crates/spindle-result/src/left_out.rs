//! What was asked and not measured: said before the answer, because the answer is then of less than was asked.

use super::wording::listed;
use super::{Case, CaseStatus, RunResult, named};

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
    /// Whether there is an answer to what was asked: a layout was measured, and more of them than were left out.
    pub fn is_answered(&self) -> bool {
        let layouts = Layouts::of(self);
        layouts.measured.len() > layouts.missing.len()
    }
}

/// `Only 1 of 2 layouts was measured: LVM skipped (LVM needs device-mapper).`; nothing when all were.
pub(super) fn sentence(result: &RunResult) -> Option<String> {
    let layouts = Layouts::of(result);
    let (_, case) = layouts.missing.first()?;
    let reason = shortened(case.outcome.reason().unwrap_or_default());
    let status = case.outcome.status();
    let asked = layouts.asked();
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
    Some(match layouts.measured.len() {
        0 if all_alike && asked > 1 => {
            format!("Nothing was measured: all {asked} layouts {status} ({reason}).")
        }
        0 => format!("Nothing was measured: {why}."),
        1 => format!("Only 1 of {asked} layouts was measured: {why}."),
        measured => format!("Only {measured} of {asked} layouts were measured: {why}."),
    })
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

    use super::super::{CaseStatus, build, sample};

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
            "Nothing was measured: all 2 layouts skipped (not enough space)."
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
    fn a_long_reason_is_cut() {
        let (text, _) = headline(&[1], &"x".repeat(500));
        assert!(text.contains("xxx...)"), "{text}");
    }
}
