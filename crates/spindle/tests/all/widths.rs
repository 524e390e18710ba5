//! What every command prints on terminals of 80 and of 120 columns: no line is wider, but for one word that cannot be
//! broken. What depends on the machine is measured only; the rest is also kept, for the eye.

use std::fs;

use spindle_report::table::{self, Style};
use spindle_report::{brief, show};
use spindle_text::paragraph::fitted;
use tempfile::TempDir;

use crate::calibrate::beside_others;
use crate::report::{fixture, showcase};
use crate::results::journals::Run;
use crate::terminal::{shown, too_wide};

const WIDTHS: [u16; 2] = [80, 120];

/// Runs that are listed, compared and put into a history, and one that cannot be read.
fn runs() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    for day in 20..26 {
        let run = Run {
            at: &format!("2026-11-{day}T05:04:18Z"),
            speed_of_second: if day < 23 { 1.0 } else { 0.8 },
            ..Run::default()
        };
        run.write(&place.path().join(format!("runs/nightly-{day}")));
    }
    let damaged = place.path().join("runs/damaged");
    fs::create_dir_all(&damaged).unwrap();
    fs::write(
        damaged.join("journal.jsonl"),
        "{\"event\":\"run_started\"}\n",
    )
    .unwrap();
    place
}

/// Says what is wrong with a width, or keeps the text.
fn check(name: &str, text: &str, columns: u16, is_kept: bool) {
    assert!(!text.trim().is_empty(), "{name} prints nothing");
    let wide = too_wide(text, columns);
    assert!(
        wide.is_empty(),
        "{name} at {columns} columns:\n{}\n\n{text}",
        wide.join("\n")
    );
    if is_kept {
        insta::assert_snapshot!(format!("{name}_of_{columns}_columns"), text);
    }
}

#[test]
fn what_commands_print_fits_the_terminal() {
    let place = runs();
    let place = place.path();
    let copied = shown(&["examples", "--copy", "quickstart"], 80, place, true);
    assert!(copied.contains("quickstart.toml"), "{copied}");
    for columns in WIDTHS {
        for (name, command, is_kept) in [
            ("nothing", "", true),
            ("list", "list", true),
            ("show", "show runs/nightly-20", true),
            ("table", "report runs/nightly-20", false),
            (
                "several_a_side",
                "compare runs/nightly-20 runs/nightly-21 runs/nightly-22 -- runs/nightly-23 runs/nightly-24 runs/nightly-25",
                true,
            ),
            ("history", "history", true),
            ("compare", "compare runs/nightly-20 runs/nightly-25", true),
            ("examples", "examples", true),
            ("explain", "explain free buffer waits", true),
            ("explain_all", "explain", false),
            ("plan", "plan quickstart.toml", false),
            (
                "plan_of_a_matrix",
                "plan quickstart.toml --vary database.writers=1,4",
                false,
            ),
            ("doctor", "doctor", false),
            ("clean", "clean --dry-run", false),
            ("damaged", "show runs/damaged", true),
            ("no_such_directory", "show nowhere", true),
            ("no_such_option", "list --nothing", true),
        ] {
            let arguments: Vec<&str> = command.split_whitespace().collect();
            check(
                name,
                &shown(&arguments, columns, place, true),
                columns,
                is_kept,
            );
        }
    }
}

#[test]
fn what_is_measured_of_a_directory_fits_the_terminal() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _shared = beside_others();
    let place = tempfile::tempdir().unwrap();
    for columns in WIDTHS {
        let told = shown(
            &["calibrate", ".", "--flushes"],
            columns,
            place.path(),
            true,
        );
        check("calibrate", &told, columns, false);
    }
}

/// The results of runs that this machine did not do.
#[test]
fn results_fit_the_terminal() {
    for columns in WIDTHS {
        let style = Style {
            width: columns,
            ..Style::default()
        };
        let usual = showcase::record(showcase::USUAL);
        let large = showcase::result(&usual);
        let record = fixture::record();
        let result = spindle_result::build(&record).unwrap();
        let report = "runs/try-20260101-120000/report.html";
        for (name, text) in [
            ("result_of_six", table::render(&result, style)),
            ("result_of_showcase", table::render(&large, style)),
            (
                "show_of_showcase",
                show::render_result(&large, &usual, style),
            ),
            ("try_of_showcase", brief::render(&large, report, style)),
        ] {
            let printed = fitted(&text, columns.into());
            check(name, &printed, columns, true);
        }
    }
}

/// Where a line may be too wide: nothing of it can be broken.
#[test]
fn a_path_is_not_broken_and_a_sentence_is() {
    let path = format!("/{}", "x".repeat(90));
    let text = format!("report: {path}\n");
    assert!(too_wide(&fitted(&text, 80), 80).is_empty());
    assert_eq!(too_wide(&text, 80), [text.trim_end()]);
}
