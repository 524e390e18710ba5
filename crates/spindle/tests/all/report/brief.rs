//! The dozen lines that `try` prints.

use spindle_report::table::{self, Style};
use spindle_report::{brief, html};
use spindle_result::{KindOfTransaction, RunResult, build};

use super::fixture;

#[test]
fn new_orders_stand_below_the_candidates() {
    let mut record = fixture::record();
    for trial in record.cases.iter_mut().flat_map(|case| &mut case.trials) {
        trial.kinds = vec![KindOfTransaction {
            kind: "new_order".to_owned(),
            transactions: trial.transactions / 2,
            latency_us: trial.latency_us,
        }];
    }
    let result = build(&record).unwrap();
    let nopm = |result: &RunResult| result.cases[0].nopm.expect("there were some").mean;
    let told = format!("{:.0}", nopm(&result));
    let brief = brief::render(&result, "r", Style::default()).replace(',', "");
    assert!(brief.contains("New orders per minute (NOPM): "), "{brief}");
    assert!(brief.contains(&told), "{told}: {brief}");
    for width in [80, 120] {
        let style = Style {
            width,
            ..Style::default()
        };
        let table = table::render(&result, style);
        assert!(table.contains("NOPM: new orders per minute"), "{table}");
        assert!(table.contains(&told), "{told}: {table}");
        let figures = table.split("+-:").next().unwrap_or_default();
        // Sentences are broken by who prints them.
        let rows = figures.lines().filter(|line| !line.contains(": "));
        let widest = rows.map(|line| line.chars().count()).max();
        assert!(widest <= Some(width.into()), "{widest:?}: {figures}");
    }
    let page = html(&result, &[]);
    assert!(page.contains(&format!("{told} NOPM")), "{told}");
    assert!(page.contains("new orders per minute (NOPM)"));
}

#[test]
fn a_dozen_lines_of_80_columns() {
    let mut record = fixture::record();
    record.machine["data_paths"] = serde_json::json!([
        { "path": "/mnt/nvme", "file_system": { "kind": "ext4" },
          "device": { "name": "nvme0n1", "model": "SAMSUNG MZQL2", "size_bytes": 960_197_124_096_u64, "rotational": false } },
        { "path": "/srv/data", "file_system": { "kind": "xfs" }, "device": null },
    ]);
    let result = build(&record).unwrap();
    let text = brief::render(
        &result,
        "runs/try-20260101-120000/report.html",
        Style::default(),
    );
    insta::assert_snapshot!(text);
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}");
    let answer: String = text
        .lines()
        .rev()
        .take(4)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        answer.ends_with(result.headline.rsplit(". ").next().unwrap()),
        "{answer}"
    );
    record.matrix = super::matrix::record().matrix;
    let text = brief::render(&build(&record).unwrap(), "r", Style::default());
    let told = "Each setting over all others:\n  caching direct against buffered: +13 %";
    assert!(text.contains(told), "{text}");
    let coloured = Style {
        colour: true,
        ..Style::default()
    };
    assert!(brief::render(&result, "r", coloured).contains("\x1b[1m"));
}
