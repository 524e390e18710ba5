//! `spindle examples` and `spindle explain`: what the program has to read.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

use super::ask::{cannot_write, save};
use super::{fail, print};
use crate::{examples, explain};
use spindle_text::files;

/// Lists the examples, or copies one into the current directory.
pub(super) fn examples(copy: Option<&str>) -> ExitCode {
    let Some(name) = copy else {
        return print(&examples::list());
    };
    let Some(example) = examples::find(name) else {
        let names: Vec<&str> = examples::EXAMPLES
            .iter()
            .map(|example| example.name)
            .collect();
        fail(&format!(
            "no example is called {name:?}; there are: {}",
            names.join(", ")
        ));
        return ExitCode::from(2);
    };
    let file = format!("{}.toml", example.name);
    let mut copied = save(Path::new(&file), &example.copy()).map_err(|error| (file.clone(), error));
    for (path, text) in example.scripts() {
        copied = copied
            .and_then(|()| save_script(Path::new(&path), text).map_err(|error| (path, error)));
    }
    match copied {
        Ok(()) => print(&format!(
            "{file} is here. What it would take: spindle plan {file}\n"
        )),
        Err((path, error)) => {
            fail(&cannot_write(Path::new(&path), &error));
            ExitCode::from(2)
        }
    }
}

/// Saves a script, unless the same one is there: another example may have brought it.
fn save_script(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        files::Directory::make(directory)?;
    }
    match save(path, text) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            match files::read_text(path, text.len() as u64)? == text {
                true => Ok(()),
                false => Err(error),
            }
        }
        saved => saved,
    }
}

/// Says what a word means, or which words there are.
pub(super) fn explain(word: &str) -> ExitCode {
    if word.is_empty() {
        return print(&explain::list());
    }
    if let Some(text) = explain::explain(word) {
        return print(&text);
    }
    let near = explain::near(word);
    let advice = match near.is_empty() {
        true => "`spindle explain` lists the words".to_owned(),
        false => format!("perhaps: {}", near.join("; ")),
    };
    fail(&format!("{word:?} is not explained here; {advice}"));
    ExitCode::from(2)
}
