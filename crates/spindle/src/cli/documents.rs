//! The commands that README and the pages of `docs/` show are such as this program takes: their options exist, and so
//! do the examples and the words that they name.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use super::arguments::{Arguments, Command};
use crate::{examples, explain};

/// A command as a document has it.
#[derive(Debug, PartialEq)]
struct Shown {
    text: String,
    /// On its own line, to be typed as it is; else in a sentence, where arguments may be left out.
    is_whole: bool,
}

/// The pages for users. A decision tells of the day when it was made.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/how-to"] {
        let entries = fs::read_dir(root.join(folder)).expect("a folder of pages");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages
}

/// The commands of a page.
fn commands(page: &str) -> Vec<Shown> {
    let mut found = Vec::new();
    let mut prose = String::new();
    let mut is_verbatim = false;
    let joined = page.replace("\\\n", " ");
    for line in joined.lines() {
        if line.trim_start().starts_with("```") {
            is_verbatim = !is_verbatim;
        } else if is_verbatim {
            let typed = line.trim_start_matches("$ ").trim_start_matches("sudo ");
            found.extend(command(typed, true));
        } else {
            // A name in backticks may continue in the next line; a paragraph ends it.
            prose.push_str(if line.is_empty() { "\n" } else { line });
            prose.push(' ');
        }
    }
    for paragraph in prose.lines() {
        let quoted = paragraph.split('`').skip(1).step_by(2);
        found.extend(quoted.filter_map(|text| command(text, false)));
    }
    found
}

fn command(text: &str, is_whole: bool) -> Option<Shown> {
    text.starts_with("spindle ").then(|| Shown {
        text: text.to_owned(),
        is_whole,
    })
}

/// The words of a command as a shell takes them, up to a comment or to what follows the command.
fn words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut quote = None;
    let mut is_within = false;
    for each in command.chars() {
        if quote.is_none() && each == ' ' {
            is_within = false;
            continue;
        }
        if !is_within {
            if matches!(each, '#' | '|' | '>' | ';' | '&') {
                break;
            }
            words.push(String::new());
            is_within = true;
        }
        match quote {
            Some(end) if each == end => quote = None,
            None if each == '\'' || each == '"' => quote = Some(each),
            _ => words.last_mut().expect("a word has begun").push(each),
        }
    }
    words
}

/// What is wrong with a command.
fn mistake(shown: &Shown) -> Option<String> {
    let arguments = match Arguments::try_parse_from(words(&shown.text)) {
        Ok(arguments) => arguments,
        Err(error) => {
            let is_left_out = matches!(
                error.kind(),
                ErrorKind::MissingRequiredArgument
                    | ErrorKind::MissingSubcommand
                    | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            );
            let is_help = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            return (!is_help && (shown.is_whole || !is_left_out)).then(|| error.to_string());
        }
    };
    let file = match arguments.command? {
        Command::Run { file, .. } | Command::Plan { file, .. } => file,
        Command::Powercut(asked) => asked.file,
        Command::Examples { copy: Some(name) } if name != "NAME" => {
            return examples::find(&name)
                .is_none()
                .then(|| format!("no example {name}"));
        }
        Command::Explain { word } if word != ["WORD"] && !word.is_empty() => {
            let word = word.join(" ");
            return explain::explain(&word)
                .is_none()
                .then(|| format!("nothing explains {word}"));
        }
        _ => return None,
    };
    let example = file.strip_prefix("examples").ok()?;
    let is_there = examples::find(&example.to_string_lossy()).is_some();
    (!is_there).then(|| format!("no example {}", file.display()))
}

#[test]
fn commands_in_documents_can_be_typed() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for shown in commands(&text) {
            count += 1;
            let mistake = mistake(&shown);
            wrong.extend(mistake.map(|what| format!("{}: {}: {what}", page.display(), shown.text)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "{count}");
}

#[test]
fn wrong_commands_are_found() {
    let page =
        "`spindle\nplan` and\n```\n$ spindle run a.toml --set 'b=c d' \\\n  --only e # f\n```\n";
    let found = commands(page);
    assert_eq!(
        found[0].text,
        "spindle run a.toml --set 'b=c d'    --only e # f"
    );
    assert_eq!(
        words(&found[0].text),
        ["spindle", "run", "a.toml", "--set", "b=c d", "--only", "e"]
    );
    assert!(
        !found[1].is_whole && found[1].text == "spindle plan",
        "{found:?}"
    );
    assert_eq!(found.iter().find_map(mistake), None);
    for wrong in [
        "spindle plan",
        "spindle fly",
        "spindle run examples/nothing.toml",
        "spindle examples --copy nothing",
        "spindle explain nothing at all",
    ] {
        assert!(
            command(wrong, true).as_ref().and_then(mistake).is_some(),
            "{wrong}"
        );
    }
}

/// A question that ends in time: the most that `--time` allows, and what follows the last round.
#[test]
fn the_demo_of_the_makefile_takes_90_seconds_at_most() {
    let makefile = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Makefile");
    let makefile = fs::read_to_string(makefile).expect("the Makefile");
    let (_, recipe) = makefile.split_once("\ndemo: build\n").expect("a demo");
    let mut lines = recipe.lines().take_while(|line| line.starts_with('\t'));
    let line = lines
        .find(|line| line.contains("/spindle try "))
        .expect("a try");
    let typed = line
        .trim()
        .replacen("./target/release/spindle", "spindle", 1);
    let arguments = Arguments::try_parse_from(words(&typed)).expect("a command of this program");
    let Some(Command::Try(asked)) = arguments.command else {
        panic!("{typed}");
    };
    assert!(asked.time <= 75_000, "{typed}");
}
