//! The table of power cuts, as Markdown: for the terminal and for `docs/powercut.md`.

use std::fmt::Write;
use std::io;
use std::path::Path;

use jiff::Zoned;

use super::judge::CutRow;
use super::{PowerCutError, PowerCutOptions, PowerCutReport};
use spindle_text::files;

/// No document of ours is larger.
const DOCUMENT_BYTES_MAX: u64 = 4 << 20;

const INTRODUCTION: &str = "\
# What layouts keep when the power goes

Written by `make powercut` ([how and why](decisions/0018-power-cuts-on-real-parts.md)). For each row the writes of a small
workload were recorded once with dm-log-writes beneath the layout; then the power was cut at many moments of that log,
half of them in its order, half with the writes since the last flush kept, lost or torn at random; each time the layout was
attached, the database recovered, and every row compared with what had been acknowledged by then. With `commit = wait`
nothing may be lost. With `nowait` commits may be lost, and nothing else may be wrong. The control ignores flushes: it must do
harm, or the row would show nothing.
";

/// What a column says of a row.
type Value = fn(&CutRow) -> String;

/// Heading and value of each column.
const COLUMNS: &[(&str, Value)] = &[
    ("layout", |row| row.layout.clone()),
    ("made of", |row| row.stack.clone()),
    ("io", |row| row.io.clone()),
    ("commit", |row| row.commit.clone()),
    ("cuts", |row| row.cuts.to_string()),
    ("commits lost", |row| match row.cuts_with_loss {
        0 => "0".to_owned(),
        cuts => format!("{} in {cuts} cuts", row.lost),
    }),
    ("torn blocks before recovery", |row| {
        row.torn_blocks.to_string()
    }),
    ("rolled forward, KiB a cut", |row| {
        (row.redo_bytes / row.cuts.max(1) / 1024).to_string()
    }),
    ("rolled back", |row| row.rolled_back.to_string()),
    ("recovered", |row| match row.broken {
        0 => "all".to_owned(),
        broken => format!("{} of {}", row.cuts - broken, row.cuts),
    }),
    ("file system damage", |row| {
        row.file_system_damage.to_string()
    }),
    ("copies that differ", |row| {
        row.divergent_extents.to_string()
    }),
    ("control: harmed", |row| {
        format!("{} of {}", row.control_harmed, row.control_cuts)
    }),
    ("as promised", |row| match row.failure() {
        None => "yes".to_owned(),
        Some(_) => "**no**".to_owned(),
    }),
];

/// The table, and below it what went wrong.
pub fn render(outcome: &PowerCutReport) -> String {
    let mut text = String::new();
    let mut line = |cells: Vec<String>| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    line(
        COLUMNS
            .iter()
            .map(|(heading, _)| (*heading).to_owned())
            .collect(),
    );
    line(COLUMNS.iter().map(|_| "---".to_owned()).collect());
    for row in &outcome.rows {
        line(COLUMNS.iter().map(|(_, value)| value(row)).collect());
    }
    for row in &outcome.rows {
        if let Some(failure) = row.failure() {
            let _ = writeln!(text, "\n{}: {failure}", row.case);
        }
        for told in &row.told {
            let _ = writeln!(text, "- {told}");
        }
    }
    for reason in &outcome.left_out {
        let _ = writeln!(text, "\nLeft out: {reason}");
    }
    text
}

/// Whether the document may be written there: the place is empty, or has a document of ours.
///
/// # Errors
/// [`PowerCutError::ForeignDocument`], when there is another file, or one that cannot be read.
pub fn check_place(path: &Path) -> Result<(), PowerCutError> {
    let heading = INTRODUCTION.lines().next();
    let is_ours = match files::read_text(path, DOCUMENT_BYTES_MAX) {
        Ok(text) => text.lines().next() == heading,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    match is_ours {
        true => Ok(()),
        false => Err(PowerCutError::ForeignDocument {
            path: path.to_owned(),
        }),
    }
}

/// Writes the document, replacing an older one.
///
/// # Errors
/// Those of [`check_place`]; the file cannot be written.
pub fn write(
    path: &Path,
    outcome: &PowerCutReport,
    options: &PowerCutOptions,
) -> Result<(), PowerCutError> {
    check_place(path)?;
    let date = Zoned::now().strftime("%Y-%m-%d");
    let judging = options.judging.describe();
    let table = render(outcome);
    files::write(
        path,
        &format!("{INTRODUCTION}\n{date}; {judging}.\n\n{table}"),
    )
    .map_err(|error| PowerCutError::system("write", path, error))
}

#[cfg(test)]
mod tests {
    use super::super::Scratch;
    use super::super::judge::Judging;
    use super::*;

    fn row() -> CutRow {
        CutRow {
            case: "ext4, commit = wait".to_owned(),
            layout: "ext4".to_owned(),
            waits: true,
            cuts: 200,
            control_cuts: 40,
            control_harmed: 31,
            ..CutRow::default()
        }
    }

    fn rendered(row: CutRow) -> String {
        render(&PowerCutReport {
            rows: vec![row],
            left_out: Vec::new(),
        })
    }

    #[test]
    fn a_document_replaces_an_older_one_and_no_other_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.md");
        assert!(check_place(&path).is_ok(), "nothing is there");
        for foreign in ["", "my notes\n", "# What layouts keep\n", "\u{0}"] {
            std::fs::write(&path, foreign).unwrap();
            let told = check_place(&path).unwrap_err();
            assert!(
                told.to_string().contains("is not a table of power cuts"),
                "{told}"
            );
            let outcome = PowerCutReport {
                rows: vec![row()],
                left_out: Vec::new(),
            };
            let options = PowerCutOptions {
                out: directory.path().to_owned(),
                work: directory.path().to_owned(),
                judging: Judging { cuts: 1, seed: 1 },
                scratch: Scratch::Files,
            };
            assert!(write(&path, &outcome, &options).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
            std::fs::remove_file(&path).unwrap();
            write(&path, &outcome, &options).unwrap();
            write(&path, &outcome, &options).unwrap();
        }
        assert!(check_place(directory.path()).is_err(), "a directory");
    }

    #[test]
    fn a_row_without_loss_is_as_promised() {
        let text = rendered(row());
        assert!(
            text.contains("| all |") && text.contains("| yes |"),
            "{text}"
        );
        assert!(text.contains("31 of 40"), "{text}");
    }

    #[test]
    fn loss_damage_and_a_blind_control_are_told() {
        let lost = CutRow {
            lost: 3,
            cuts_with_loss: 2,
            ..row()
        };
        assert!(rendered(lost.clone()).contains("3 acknowledged commits lost"));
        assert!(rendered(lost.clone()).contains("**no**"));
        let nowait = CutRow {
            waits: false,
            ..lost
        };
        assert!(rendered(nowait).contains("| 3 in 2 cuts |"));
        let broken = CutRow { broken: 1, ..row() };
        assert!(rendered(broken).contains("199 of 200"));
        let blind = CutRow {
            control_harmed: 0,
            ..row()
        };
        assert!(rendered(blind).contains("shows nothing"));
    }
}
