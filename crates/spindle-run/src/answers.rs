//! Answers to queries that a workload keeps: a file for each below `answers/` of the run directory. The parameters of a
//! query are the same in every trial, so every trial has to get the same answer; a file more and a warning for one that
//! differs. The runner calls this.

use spindle_text::cell;
use spindle_text::files::Directory;
use spindle_workload::sql::KeptAnswer;
use spindle_workload::sql::tpch::answers::Agreement;

use super::directory::{self, DirectoryError};

/// The directory of answers, in that of the run.
pub const NAME: &str = "answers";

/// Keeps the answers of a trial, which is named like a file of its series. Tells those that are not what they must be.
pub(super) fn keep(
    run: &Directory,
    trial: &str,
    answers: &[KeptAnswer],
) -> Result<Vec<String>, DirectoryError> {
    let mut warnings = Vec::new();
    if answers.is_empty() {
        return Ok(warnings);
    }
    let place = directory::subdirectory(run, NAME)?;
    for answer in answers {
        let name = format!("stream{}-q{:02}", answer.stream, answer.query);
        let (first, later) = (format!("{name}.csv"), format!("{name}-{trial}.csv"));
        let text = csv(answer);
        if !place.has(&first) {
            directory::write(&place, &first, &text)?;
        } else if answer.is_settled && !is_same(&place, &first, &text) {
            directory::write(&place, &later, &text)?;
            warnings.push(format!(
                "Q{} was answered otherwise than in an earlier trial: {NAME}/{first}, {NAME}/{later}",
                answer.query
            ));
        }
    }
    warnings.extend(wrong(answers));
    Ok(warnings)
}

/// How many answers are the standard's, where it has some.
pub(super) fn found_right(answers: &[KeptAnswer]) -> Option<String> {
    let judged = answers.iter().filter_map(|answer| answer.standard.as_ref());
    let (judged, right) = judged.fold((0, 0), |(judged, right), standard| {
        (judged + 1, right + u32::from(*standard == Agreement::Right))
    });
    (judged > 0).then(|| format!("{right} of {judged} answers are the standard's"))
}

/// What is to be said of answers that are not the standard's.
fn wrong(answers: &[KeptAnswer]) -> Vec<String> {
    let said = |answer: &KeptAnswer| match &answer.standard {
        Some(Agreement::Wrong(differences)) => Some(format!(
            "Q{} is not the standard's answer: {}",
            answer.query,
            differences.lines().next().unwrap_or_default()
        )),
        Some(Agreement::Right) | None => None,
    };
    answers.iter().filter_map(said).collect()
}

fn is_same(place: &Directory, name: &str, text: &str) -> bool {
    place.read(name).is_ok_and(|kept| kept == text.as_bytes())
}

/// RFC 4180, with a line of names.
fn csv(answer: &KeptAnswer) -> String {
    let mut writer = ::csv::WriterBuilder::new()
        .flexible(true)
        .from_writer(Vec::new());
    let mut write = |row: Vec<String>| {
        let written = writer.write_record(row);
        written.expect("memory takes all");
    };
    write(
        answer
            .columns
            .iter()
            .map(|name| cell::harmless(name))
            .collect(),
    );
    for row in &answer.answer.rows {
        write(row.iter().map(|value| cell_of(value)).collect());
    }
    if answer.rows_left_out > 0 {
        write(vec![format!("... and {} rows more", answer.rows_left_out)]);
    }
    let text = writer.into_inner().expect("memory takes all");
    String::from_utf8(text).expect("every field is text")
}

/// A figure stays what it is.
fn cell_of(value: &str) -> String {
    match value.parse::<f64>() {
        Ok(_) => value.to_owned(),
        Err(_) => cell::harmless(value),
    }
}

#[cfg(test)]
mod tests {
    use spindle_workload::sql::tpch::answers::QueryAnswer;

    use super::*;

    fn answer(query: u8, rows: &[[&str; 2]]) -> KeptAnswer {
        let row = |row: &[&str; 2]| row.map(str::to_owned).to_vec();
        KeptAnswer {
            query,
            columns: vec!["name".to_owned(), "sum".to_owned()],
            answer: QueryAnswer {
                rows: rows.iter().map(row).collect(),
            },
            is_settled: true,
            ..KeptAnswer::default()
        }
    }

    fn run() -> (tempfile::TempDir, Directory) {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        (place, directory)
    }

    #[test]
    fn the_first_answer_is_kept_and_one_that_differs() {
        let (place, run) = run();
        let first = [answer(1, &[["a, b", "-2.50"], ["=1", "null"]])];
        assert_eq!(
            keep(&run, "layout1-clients1-round1", &first).unwrap(),
            [""; 0]
        );
        assert_eq!(
            keep(&run, "layout2-clients1-round1", &first).unwrap(),
            [""; 0]
        );
        let kept =
            || std::fs::read_to_string(place.path().join("answers/stream0-q01.csv")).unwrap();
        assert_eq!(kept(), "name,sum\n\"a, b\",-2.50\n'=1,null\n");
        let other = [answer(1, &[["a", "1"]])];
        let said = keep(&run, "layout2-clients1-round2", &other).unwrap();
        assert_eq!(
            said,
            [
                "Q1 was answered otherwise than in an earlier trial: answers/stream0-q01.csv, \
              answers/stream0-q01-layout2-clients1-round2.csv"
            ]
        );
        assert!(kept().contains("a, b"));
        assert_eq!(
            std::fs::read_dir(place.path().join(NAME)).unwrap().count(),
            2
        );
    }

    #[test]
    fn answers_that_others_change_meanwhile_are_not_compared() {
        let (_place, run) = run();
        let unsettled = |value| {
            [KeptAnswer {
                is_settled: false,
                ..answer(4, &[["a", value]])
            }]
        };
        keep(&run, "layout1-clients3-round1", &unsettled("1")).unwrap();
        let said = keep(&run, "layout2-clients3-round1", &unsettled("2")).unwrap();
        assert_eq!(said, [""; 0]);
    }

    #[test]
    fn a_wrong_answer_is_told_and_right_ones_are_counted() {
        let (_place, run) = run();
        let judged = |query, standard| KeptAnswer {
            standard: Some(standard),
            ..answer(query, &[])
        };
        let answers = [
            judged(1, Agreement::Right),
            judged(
                6,
                Agreement::Wrong("row 1: 2, not 3\nrow 2: 4, not 5\n".to_owned()),
            ),
            answer(7, &[]),
        ];
        assert_eq!(
            found_right(&answers).unwrap(),
            "1 of 2 answers are the standard's"
        );
        let said = keep(&run, "layout1-clients1-round1", &answers).unwrap();
        assert_eq!(said, ["Q6 is not the standard's answer: row 1: 2, not 3"]);
        assert_eq!(found_right(&answers[2..]), None);
    }

    #[test]
    fn a_run_that_keeps_none_has_no_directory_for_them() {
        let (place, run) = run();
        keep(&run, "layout1-clients1-round1", &[]).unwrap();
        assert!(!place.path().join(NAME).exists());
    }
}
