//! Which argument of the command line each part of a drafted file comes from, so that a mistake is shown there: a file
//! that was never written cannot be looked up. `cli` of `try` and `init` hand it to the reader of experiments.

use spindle_experiment::CommandLine;

use super::draft::{Draft, DraftPlace};

/// The text of a draft, and the `command` that it was made from. `argument_of` names the argument that says what
/// stands at a place; `None` where no single one does.
pub fn with_command_line(
    draft: &Draft,
    argument_of: impl Fn(&DraftPlace) -> Option<String>,
    command: String,
) -> (String, CommandLine) {
    let (text, places) = draft.text_and_places();
    let parts = places.into_iter();
    let parts = parts.filter_map(|(part, place)| Some((part, argument_of(&place)?)));
    let written_for = CommandLine {
        whole: command,
        parts: parts.collect(),
    };
    (text, written_for)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use spindle_engines::sql::ServerKind;
    use spindle_experiment::{Changes, DatabaseEngine, Experiment};

    use super::super::question::{Question, SIZE_BYTES};
    use super::super::workloads::ReadyWorkload;
    use super::*;

    fn question(path: &str) -> Question {
        Question {
            engine: DatabaseEngine::Server(ServerKind::Sqlite),
            paths: vec![path.to_owned(), ".".to_owned()],
            vary: Vec::new(),
            workload: ReadyWorkload::by_default(),
            scripts: Vec::new(),
            load: Vec::new(),
            defines: Vec::new(),
            clients: 8,
            size_bytes: SIZE_BYTES,
            time_ms: 120_000,
            sets: Vec::new(),
        }
    }

    /// A place in a text that the reader refuses, for each byte of it.
    #[test]
    fn no_mistake_is_shown_in_a_file_that_is_not_there() {
        let asked = question("/no/such/place");
        let draft = asked.frame(2).unwrap();
        let (text, written_for) =
            with_command_line(&draft, |place| asked.argument_of(place), String::new());
        let mut shown = 0;
        for (index, line) in text.lines().enumerate() {
            if !line.contains(" = ") {
                continue;
            }
            let (key, _) = line.split_once(" = ").unwrap();
            let wrong: Vec<String> = text
                .lines()
                .enumerate()
                .map(|(other, line)| match other == index {
                    true => format!("{key} = []"),
                    false => line.to_owned(),
                })
                .collect();
            let changes = Changes {
                written_for: Some(&written_for),
                ..Changes::default()
            };
            let read =
                Experiment::from_text(Path::new("try.toml"), &wrong.join("\n"), changes, true);
            let error = read.expect_err(key);
            for told in std::iter::once(&error).chain(error.others()) {
                assert_eq!(
                    told.place().map(|(name, ..)| name),
                    Some("command line"),
                    "{key}"
                );
                shown += 1;
            }
        }
        assert!(shown > 10, "{shown}");
    }

    #[test]
    fn a_mistake_is_shown_at_its_argument() {
        let mut asked = question("/no/such/place");
        let told = |asked: &Question| {
            let draft = asked.frame(2).unwrap();
            let (text, written_for) =
                with_command_line(&draft, |place| asked.argument_of(place), String::new());
            let changes = Changes {
                written_for: Some(&written_for),
                ..Changes::default()
            };
            let read = Experiment::from_text(Path::new("try.toml"), &text, changes, true);
            format!("{:?}", read.expect_err("it is wrong"))
        };
        assert!(
            told(&asked).contains("text: \"/no/such/place\""),
            "{}",
            told(&asked)
        );
        asked.paths[0] = "src".to_owned();
        asked.clients = 9_999;
        assert!(
            told(&asked).contains("text: \"--clients 9999\""),
            "{}",
            told(&asked)
        );
    }
}
