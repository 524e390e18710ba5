//! The dozen lines that `try` prints.

use spindle_report::table::{self, Style};
use spindle_report::{brief, html};
use spindle_result::machine::{DataPath, DiskFacts, FileSystem};
use spindle_result::{
    CaseRecord, CaseStatus, Keeps, KindOfTransaction, MatrixRecord, Promise, PromiseReason,
    RunRecord, RunResult, build,
};
use spindle_text::quantity::thousands;

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
    let told = thousands(nopm(&result));
    let brief = brief::render(&result, "r", Style::default());
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
        // Sentences are broken by who prints them, and so is what was tested.
        let is_row = |line: &&str| !line.contains(": ") && !line.contains(" · ");
        let rows = figures.lines().filter(is_row);
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
    let place = |path: &str, kind: &str, device| DataPath {
        path: path.to_owned(),
        file_system: Some(FileSystem {
            kind: kind.to_owned(),
            ..FileSystem::default()
        }),
        device,
        ..DataPath::default()
    };
    let nvme = DiskFacts {
        name: "nvme0n1".to_owned(),
        model: Some("SAMSUNG MZQL2".to_owned()),
        size_bytes: Some(960_197_124_096),
        rotational: Some(false),
        ..DiskFacts::default()
    };
    record.machine.as_mut().expect("the fixture's").data_paths = vec![
        place("/mnt/nvme", "ext4", Some(nvme)),
        place("/srv/data", "xfs", None),
    ];
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

/// Three settings of two values and one of `values`, without the fixture's skipped path; each measured as one of its
/// paths, some per cent slower.
fn matrix(values: usize) -> RunRecord {
    let mut record = fixture::record();
    let measured: Vec<CaseRecord> = record
        .cases
        .iter()
        .filter(|case| case.layout != fixture::SKIPPED)
        .cloned()
        .collect();
    let paths = record.layouts.clone();
    let factors = [
        ("full_page_writes", 2),
        ("wal_compression", 2),
        ("fsync", 2),
        ("max_wal_size", values),
    ];
    (record.layouts, record.cases, record.series) = (Vec::new(), Vec::new(), Vec::new());
    let mut cells = Vec::new();
    for cell in 0..8 * values {
        let levels = vec![cell & 1, (cell >> 1) & 1, (cell >> 2) & 1, cell >> 3];
        let named = factors.iter().zip(&levels);
        let named = named.map(|((name, _), level)| format!("{name} {level}"));
        let mut layout = paths[0].clone();
        layout.name = named.collect::<Vec<_>>().join(", ");
        cells.push((layout.name.clone(), levels.clone()));
        record.layouts.push(layout);
        let slowdown = 1.0 + 0.2 * levels[0] as f64 + 0.05 * levels[1] as f64 + 0.001 * cell as f64;
        let mut case = measured[0].clone();
        case.layout = cell;
        for trial in &mut case.trials {
            trial.tpm /= slowdown;
        }
        record.cases.push(case);
    }
    record.matrix = Some(MatrixRecord {
        factors: factors
            .iter()
            .map(|(name, levels)| {
                (
                    (*name).into(),
                    (0..*levels).map(|level| level.to_string()).collect(),
                )
            })
            .collect(),
        cells,
        is_half: false,
    });
    record
}

#[test]
fn a_large_matrix_is_told_by_its_best_and_worst() {
    let style = |width| Style {
        width,
        ..Style::default()
    };
    for (values, width) in [(1, 80), (1, 120), (4, 80), (4, 120)] {
        let result = build(&matrix(values)).unwrap();
        let text = brief::render(
            &result,
            "runs/try-20260101-120000/report.html",
            style(width),
        );
        insta::assert_snapshot!(format!("cases_{}_columns_{width}", 8 * values), text);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(usize::from(width)), "{widest:?}");
        // Those that the answer names have a line, and the others have none.
        let (_, answer) = text.split_once("Report: ").unwrap();
        let numbers = answer.split('#').skip(1).map(|rest| {
            let digits = rest.find(|c: char| !c.is_ascii_digit());
            &rest[..digits.unwrap_or(rest.len())]
        });
        for number in numbers {
            assert!(
                text.contains(&format!("\n  #{number} full_page")),
                "{number}: {text}"
            );
        }
        let left = if values == 1 { 3 } else { 21 };
        assert!(text.contains(&format!("... {left} more: --wide")), "{text}");
        let wide = table::render(&result, style(width));
        let has_row = |number: usize| {
            wide.lines()
                .any(|line| line.starts_with(&format!("{number} ")))
        };
        assert!((1..=result.layouts.len()).all(has_row), "{wide}");
        assert!(
            text.contains("\n  #1 full_page")
                && !text
                    .contains(" full_page_writes 1, wal_compression 0, fsync 1, max_wal_size 2"),
            "{text}"
        );
        if values == 1 {
            insta::assert_snapshot!(format!("cases_8_columns_{width}_wide"), wide);
        }
    }
}

#[test]
fn what_weakens_all_candidates_alike_stands_below_them() {
    let mut record = fixture::record();
    let weakness = PromiseReason {
        what: "ext4 without a journal on /".to_owned(),
        keeps: Keeps::Unknown,
        loses: None,
        effect: "what is left is up to e2fsck".to_owned(),
        source: String::new(),
    };
    let trials = record.cases.iter_mut().flat_map(|case| &mut case.trials);
    for trial in trials {
        trial.promise = Promise {
            keeps: Keeps::Unknown,
            reasons: vec![weakness.clone()],
            ..Promise::default()
        };
    }
    let render = |record: &RunRecord| brief::render(&build(record).unwrap(), "r", Style::default());
    let told = "No layout is known to keep every commit (ext4 without a journal on /: what is";
    assert!(render(&record).contains(told), "{}", render(&record));
    for trial in &mut record.cases[0].trials {
        trial.promise = Promise::default();
    }
    assert!(
        !render(&record).contains("No layout is"),
        "{}",
        render(&record)
    );
}

#[test]
fn what_was_not_measured_is_not_in_the_heading() {
    let mut record = fixture::record();
    record.layouts[fixture::SKIPPED].engine = Some("PostgreSQL 15".to_owned());
    let result = build(&record).unwrap();
    let text = brief::render(&result, "r", Style::default());
    assert!(text.starts_with("embedded database · "), "{text}");
    assert!(!html(&result, &[]).contains("embedded database and PostgreSQL"));
    let mut skipped = record.cases.iter_mut();
    let skipped = skipped
        .find(|case| case.layout == fixture::SKIPPED)
        .unwrap();
    skipped.outcome = CaseStatus::Measured;
    skipped.trials = vec![fixture::trial(fixture::SKIPPED, 1)];
    let text = brief::render(&build(&record).unwrap(), "r", Style::default());
    assert!(
        text.starts_with("embedded database and PostgreSQL 15 · "),
        "{text}"
    );
}
