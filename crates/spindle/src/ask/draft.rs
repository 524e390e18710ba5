//! An experiment file that is being written: sections of settings, each with a word on why it is so.

use std::fmt::Write as _;
use std::ops::Range;

use spindle_text::nearest::nearest;
use spindle_text::paragraph::wrapped;

use super::error::AskError;

/// The widest line of a comment.
const COMMENT_WIDTH: usize = 110;
/// Comments beside settings begin in this column.
const COMMENT_COLUMN: usize = 35;

/// A section that every experiment has once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftSection {
    /// `[database]`.
    Database,
    /// `[workload]`.
    Workload,
    /// `[plan]`.
    Plan,
    /// `[vary]`.
    Vary,
}

impl DraftSection {
    const ALL: [DraftSection; 4] = [
        DraftSection::Database,
        DraftSection::Workload,
        DraftSection::Plan,
        DraftSection::Vary,
    ];

    fn name(self) -> &'static str {
        match self {
            DraftSection::Database => "database",
            DraftSection::Workload => "workload",
            DraftSection::Plan => "plan",
            DraftSection::Vary => "vary",
        }
    }
}

/// What a part of a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DraftPlace {
    /// A key of a section.
    Key(DraftSection, String),
    /// A layout, by its number.
    Layout(usize),
}

/// One `key = value`, the value as TOML has it.
#[derive(Clone, Debug)]
struct Line {
    key: String,
    value: String,
    why: String,
}

/// An experiment file.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// What stands above it, a paragraph each.
    about: Vec<String>,
    top: Vec<Line>,
    sections: [Vec<Line>; 4],
    /// The lines of each layout.
    layouts: Vec<Vec<Line>>,
}

impl Draft {
    /// An experiment of this name; `about` says what it asks, a paragraph each.
    pub fn new(name: &str, about: Vec<String>) -> Draft {
        let name = Line {
            key: "name".to_owned(),
            value: quoted(name),
            why: String::new(),
        };
        Draft {
            about,
            top: vec![name],
            ..Draft::default()
        }
    }

    /// Sets a key of a section to a value in TOML, and says why; replaces what was set before.
    pub fn set(&mut self, section: DraftSection, key: &str, value: impl Into<String>, why: &str) {
        put(&mut self.sections[section as usize], key, value.into(), why);
    }

    /// Leaves a key out again.
    pub fn leave_out(&mut self, section: DraftSection, key: &str) {
        self.sections[section as usize].retain(|line| line.key != key);
    }

    /// Adds a layout of this name, at an existing directory.
    pub fn layout(&mut self, name: &str, path: &str) {
        let mut lines = Vec::new();
        put(&mut lines, "name", quoted(name), "");
        put(&mut lines, "path", quoted(path), "");
        self.layouts.push(lines);
    }

    /// Adds a layout of this name with these keys, values in TOML and reasons.
    pub fn layout_of(&mut self, name: &str, settings: &[(&str, String, &str)]) {
        let mut lines = Vec::new();
        put(&mut lines, "name", quoted(name), "");
        for (key, value, why) in settings {
            put(&mut lines, key, value.clone(), why);
        }
        self.layouts.push(lines);
    }

    /// Sets what a `--set KEY=VALUE` says.
    ///
    /// # Errors
    /// Why it cannot stand in this file.
    pub fn apply(&mut self, set: &str) -> Result<(), AskError> {
        let Some((key, value)) = set.split_once('=') else {
            return Err(AskError::NothingSet(set.to_owned()));
        };
        let value = value_of(value);
        let why = "by --set";
        let Some((section, rest)) = key.split_once('.') else {
            put(&mut self.top, key, value, why);
            return Ok(());
        };
        let mut known = DraftSection::ALL.into_iter();
        let Some(section) = known.find(|known| known.name() == section) else {
            let names = DraftSection::ALL.map(DraftSection::name);
            return Err(match nearest(section, names.into_iter()) {
                Some(near) => AskError::Misspelt {
                    set: set.to_owned(),
                    near,
                },
                None => AskError::NotOfTry(set.to_owned()),
            });
        };
        self.set(section, rest, value, why);
        Ok(())
    }

    /// The file.
    pub fn text(&self) -> String {
        self.text_and_places().0
    }

    /// The file, and which part of it, in bytes, says what.
    pub fn text_and_places(&self) -> (String, Vec<(Range<usize>, DraftPlace)>) {
        let (mut text, mut places) = (String::new(), Vec::new());
        for paragraph in &self.about {
            let lines = wrapped(paragraph, COMMENT_WIDTH);
            lines.iter().for_each(|line| {
                let _ = writeln!(text, "# {line}");
            });
        }
        write_lines(&mut text, &self.top, |_, _| ());
        for section in DraftSection::ALL {
            let lines = &self.sections[section as usize];
            if !lines.is_empty() {
                let _ = writeln!(text, "\n[{}]", section.name());
                write_lines(&mut text, lines, |part, key| {
                    places.push((part, DraftPlace::Key(section, key.to_owned())));
                });
            }
        }
        for (number, layout) in self.layouts.iter().enumerate() {
            let start = text.len();
            text.push_str("\n[[layout]]\n");
            write_lines(&mut text, layout, |_, _| ());
            places.push((start..text.len(), DraftPlace::Layout(number)));
        }
        (text, places)
    }
}

fn put(lines: &mut Vec<Line>, key: &str, value: String, why: &str) {
    let line = Line {
        key: key.to_owned(),
        value,
        why: why.to_owned(),
    };
    match lines.iter_mut().find(|other| other.key == key) {
        Some(other) => *other = line,
        None => lines.push(line),
    }
}

fn write_lines(text: &mut String, lines: &[Line], mut tell: impl FnMut(Range<usize>, &str)) {
    for Line { key, value, why } in lines {
        let start = text.len();
        let setting = format!("{key} = {value}");
        let _ = match why.is_empty() {
            true => writeln!(text, "{setting}"),
            false => writeln!(text, "{setting:COMMENT_COLUMN$} # {why}"),
        };
        tell(start..text.len(), key);
    }
}

/// A text as TOML has it. JSON's escapes are among those of TOML.
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is JSON")
}

/// What follows the `=` of an argument, as TOML: itself if it is, else as a text, as `--set` of other commands has it.
pub fn value_of(argument: &str) -> String {
    let argument = argument.trim();
    let is_toml = spindle_experiment::is_value(argument) && !argument.contains('\n');
    match is_toml {
        true => argument.to_owned(),
        false => quoted(argument),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_experiment::Experiment;

    #[test]
    fn a_draft_is_a_file_that_can_be_read() {
        let mut draft = Draft::new("a \"try\"", vec!["Which is faster?".to_owned()]);
        draft.set(
            DraftSection::Database,
            "size",
            "\"64MiB\"",
            "more than the cache",
        );
        draft.set(DraftSection::Database, "buffer_cache", "\"8MiB\"", "");
        draft.set(DraftSection::Vary, "io.method", "[\"sync\", \"async\"]", "");
        draft.layout("here", ".");
        draft.apply("plan.measure=5s").unwrap();
        draft.apply("workload.clients=[1, 4]").unwrap();
        draft.apply("database.size=128MiB").unwrap();
        draft.apply("seed=7").unwrap();
        insta::assert_snapshot!(draft.text());
        let experiment = Experiment::parse("draft.toml", &draft.text(), &[]).unwrap();
        assert_eq!((experiment.seed, experiment.layouts.len()), (7, 2));
        assert_eq!(experiment.workload.clients, [1, 4]);
        let mut told = |set: &str| draft.apply(set).unwrap_err().to_string();
        assert!(told("layout.0.path=/x").contains("--save"));
        assert!(told("databse.size=1GiB").ends_with("did you mean \"database\"?"));
        assert!(told("plan").contains("sets nothing"));
    }
}
