//! The directory of a power-cut table: `recordings.jsonl` and `rows.jsonl`, a line for each case as it is done, each
//! file headed by a line that says what it belongs to. What has its line is not done again.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::PowerCutError;
use super::judge::CutRow;
use super::record::CutRecording;
use spindle_experiment::Experiment;
use spindle_text::files::{self, Directory};

const RECORDINGS: &str = "recordings.jsonl";
const ROWS: &str = "rows.jsonl";

/// What is done of a table.
pub struct State {
    directory: Directory,
    recordings: Lines<CutRecording>,
    rows: Lines<CutRow>,
}

impl State {
    /// Continues in `directory`, or begins. `judging` says which cuts judge the rows. Errors: it holds another
    /// experiment's table, or other cuts, or the system's.
    pub fn open(
        directory: &Path,
        experiment: &Experiment,
        judging: &str,
    ) -> Result<State, PowerCutError> {
        let directory = Directory::make(directory)
            .map_err(|source| PowerCutError::system("make", directory, source))?;
        let experiment = serde_json::to_string(experiment).expect("an experiment is plain data");
        let recorded = format!("{:08x}", crc32c::crc32c(experiment.as_bytes()));
        let judged = format!("{recorded}, {judging}");
        Ok(State {
            recordings: Lines::open(&directory, RECORDINGS, &recorded)?,
            rows: Lines::open(&directory, ROWS, &judged)?,
            directory,
        })
    }

    /// Removes its files, and the directory if it was made for them, when nothing is done of the table.
    pub fn discard_if_empty(self) {
        if self.recordings.list.is_empty() && self.rows.list.is_empty() {
            for name in [RECORDINGS, ROWS] {
                // What cannot be removed does no harm.
                let _ = self.directory.remove(name);
            }
            self.directory.remove_if_made();
        }
    }

    /// The recording of a case.
    pub fn recording(&self, case: &str) -> Option<&CutRecording> {
        self.recordings.list.iter().find(|it| it.case == case)
    }

    /// The row of a case.
    pub fn row(&self, case: &str) -> Option<&CutRow> {
        self.rows.list.iter().find(|it| it.case == case)
    }

    /// Notes a recording.
    pub fn add_recording(&mut self, recording: CutRecording) -> Result<(), PowerCutError> {
        self.recordings.add(recording)
    }

    /// Notes a row.
    pub fn add_row(&mut self, row: CutRow) -> Result<(), PowerCutError> {
        self.rows.add(row)
    }
}

struct Lines<T> {
    path: PathBuf,
    file: File,
    list: Vec<T>,
}

impl<T: Serialize + DeserializeOwned> Lines<T> {
    fn open(directory: &Directory, name: &str, heading: &str) -> Result<Lines<T>, PowerCutError> {
        let path = directory.path().join(name);
        let wrong = |source| PowerCutError::system("keep", &path, source);
        let mut file = directory.open_to_add(name, true).map_err(wrong)?;
        let text = files::read_all(&file).map_err(wrong)?;
        // What is not text does not parse, and is done again.
        let text = String::from_utf8_lossy(&text);
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        file.set_len(whole.len() as u64).map_err(wrong)?;
        let mut lines = whole.lines();
        match lines.next() {
            None => writeln!(file, "{heading}").map_err(wrong)?,
            Some(found) if found != heading => {
                return Err(PowerCutError::OtherTable {
                    path,
                    reason: format!("it begins with `{found}`, this is `{heading}`"),
                });
            }
            Some(_) => {}
        }
        // What does not parse was written by another version: it is done again.
        let list = lines.filter_map(|line| serde_json::from_str(line).ok());
        let list = list.collect();
        Ok(Lines { path, file, list })
    }

    fn add(&mut self, item: T) -> Result<(), PowerCutError> {
        let line = serde_json::to_string(&item).expect("plain data");
        let written = writeln!(self.file, "{line}").and_then(|()| self.file.sync_data());
        written.map_err(|source| PowerCutError::system("write", &self.path, source))?;
        self.list.push(item);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(layout: &str) -> Experiment {
        let text = format!("[[layout]]\nname = \"{layout}\"\n");
        Experiment::parse("test.toml", &text, &[]).unwrap()
    }

    fn row(case: &str) -> CutRow {
        CutRow {
            case: case.to_owned(),
            ..CutRow::default()
        }
    }

    #[test]
    fn a_table_of_which_nothing_is_done_leaves_no_directory() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("runs/cuts");
        let open = || State::open(&path, &experiment("a"), "3 cuts").unwrap();
        open().discard_if_empty();
        assert!(!path.exists());
        let mut state = open();
        state.add_row(row("a")).unwrap();
        state.discard_if_empty();
        assert!(open().row("a").is_some());
    }

    #[test]
    fn what_is_done_is_kept_but_for_half_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let open = |layout, judging| State::open(directory.path(), &experiment(layout), judging);
        let mut state = open("one", "20 cuts, seed 1").unwrap();
        state.add_row(row("a")).unwrap();
        state.add_row(row("b")).unwrap();
        let rows = directory.path().join("rows.jsonl");
        let text = std::fs::read_to_string(&rows).unwrap();
        std::fs::write(&rows, &text[..text.len() - 5]).unwrap();
        let mut state = open("one", "20 cuts, seed 1").unwrap();
        assert_eq!(state.row("a"), Some(&row("a")));
        assert_eq!(state.row("b"), None);
        state.add_row(row("b")).unwrap();
        let state = open("one", "20 cuts, seed 1").unwrap();
        assert_eq!(state.row("b"), Some(&row("b")));
        assert!(open("one", "20 cuts, seed 2").is_err(), "other cuts");
        assert!(
            open("two", "20 cuts, seed 1").is_err(),
            "another experiment"
        );
    }
}
