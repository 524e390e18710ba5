//! What people see of a matrix of settings: the effects in the table, in both reports and in `result.json`.

use spindle_report as report;
use spindle_report::table::{self, Style};
use spindle_result::{MatrixRecord, RunRecord, build};

use super::{as_json, fixture, nesting_error, page, schema_errors};

/// The fixture's two ways of caching with two methods each; the others are not of the matrix.
pub fn record() -> RunRecord {
    let mut record = fixture::record();
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let cell = |name: &str, levels: [usize; 2]| (name.to_owned(), levels.to_vec());
    record.matrix = Some(MatrixRecord {
        factors: vec![
            ("caching".into(), words(&["buffered", "direct"])),
            ("method".into(), words(&["sync", "slaves"])),
        ],
        cells: vec![
            cell("buffered, sync", [0, 0]),
            cell("buffered, 8 slaves", [0, 1]),
            cell("direct, sync", [1, 0]),
            cell("direct, 8 slaves", [1, 1]),
        ],
        is_half: false,
    });
    let mut document = record.experiment.document().clone();
    document["matrix"] = serde_json::json!({ "cells": [], "is_half": true });
    record.experiment = document.try_into().expect("an experiment");
    record
}

#[test]
fn effects_stand_in_the_table() {
    let result = build(&record()).unwrap();
    let text = table::render(&result, Style::default());
    let from = text.find("What each setting does").expect("it is told");
    let to = from + text[from..].find("\n\n").expect("a paragraph");
    insta::assert_snapshot!(&text[from..to]);
    assert!(
        result.headline.contains("method slaves against sync: +6"),
        "{}",
        result.headline
    );
}

#[test]
fn both_reports_tell_effects_and_interactions() {
    let result = build(&record()).unwrap();
    let text = report::markdown(&result, &[]);
    let from = text.find("## Effects").expect("a section");
    let to = from + text[from + 2..].find("\n## ").expect("another follows");
    insta::assert_snapshot!(&text[from..to]);
    let page = page(&record());
    assert_eq!(nesting_error(&page), None);
    for told in [
        "id=\"effects\"",
        "method slaves against sync",
        "Do settings depend on each other?",
        "Half of all combinations",
    ] {
        assert!(page.contains(told), "{told}");
    }
    assert_eq!(schema_errors(&as_json(&result)), Vec::<String>::new());
    assert_eq!(
        (
            result.effects.len(),
            result.interactions.len(),
            result.factor_answers.len()
        ),
        (2, 1, 2)
    );
}
