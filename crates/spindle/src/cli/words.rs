//! `spindle examples` and `spindle explain`: what the program has to read.

use std::path::Path;
use std::process::ExitCode;

use super::ask::save;
use super::ending::{print_for_people, wrong_command_line};
use crate::ask::error::AskError;
use crate::{examples, explain};
use spindle_text::files;
use spindle_text::nearest::nearest;

/// Lists the examples, or copies one into the current directory.
pub(super) fn examples(copy: Option<&str>) -> ExitCode {
    let Some(name) = copy else {
        return print_for_people(&examples::list());
    };
    let Some(example) = examples::find(name) else {
        let names: Vec<&str> = examples::EXAMPLES
            .iter()
            .map(|example| example.name)
            .collect();
        return wrong_command_line(&match nearest(name, names.iter().copied()) {
            Some(meant) => format!("no example is called {name:?}; did you mean {meant:?}?"),
            None => format!(
                "no example is called {name:?}; there are: {}",
                names.join(", ")
            ),
        });
    };
    let file = format!("{}.toml", example.name);
    let mut copied = save(Path::new(&file), &example.copy());
    for (path, text) in example.scripts() {
        copied = copied.and_then(|()| save_script(Path::new(&path), text));
    }
    match copied {
        Ok(()) => print_for_people(&format!(
            "{file} is here. What it would take: spindle plan {file}\n"
        )),
        Err(error) => wrong_command_line(&error.to_string()),
    }
}

/// Saves a script, unless the same one exists: another example may have brought it.
fn save_script(path: &Path, text: &str) -> Result<(), AskError> {
    let not_written = |source| AskError::NotWritten {
        path: path.to_owned(),
        source,
    };
    if let Some(directory) = path.parent() {
        files::Directory::make(directory).map_err(not_written)?;
    }
    match save(path, text) {
        Err(AskError::AlreadyThere(path)) => {
            let there = files::read_text(&path, text.len() as u64).map_err(not_written)?;
            match there == text {
                true => Ok(()),
                false => Err(AskError::AlreadyThere(path)),
            }
        }
        saved => saved,
    }
}

/// Says what a word means, or which words there are.
pub(super) fn explain(word: &str) -> ExitCode {
    if word.is_empty() {
        return print_for_people(&explain::list());
    }
    if let Some(text) = explain::explain(word) {
        return print_for_people(&text);
    }
    let near = explain::near(word);
    let advice = match near.is_empty() {
        true => "`spindle explain` lists the words".to_owned(),
        false => format!("perhaps: {}", near.join("; ")),
    };
    wrong_command_line(&format!("{word:?} is not explained here; {advice}"))
}
