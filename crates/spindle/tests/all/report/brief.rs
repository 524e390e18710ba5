//! The dozen lines that `try` prints.

use spindle_report::brief;
use spindle_report::table::Style;
use spindle_result::build;

use super::fixture;

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
