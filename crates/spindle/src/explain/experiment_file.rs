//! Words of an experiment file: its settings, the kinds of workload and the ways of I/O, from the page that describes
//! the file (`docs/experiment-file.md`), which is in the program.

use super::{WordEntry, without_links};

const PAGE: &str = include_str!("../../../../docs/experiment-file.md");
/// The head of the table of the ways of I/O.
const METHODS: &str = "| method |";

pub(super) fn entries() -> Vec<WordEntry> {
    let mut entries: Vec<WordEntry> = Vec::new();
    let mut section = Section::default();
    for line in PAGE.lines() {
        if line.starts_with('#') {
            section = Section::of(line);
        } else if line.starts_with(METHODS) {
            section.is_of_methods = true;
        } else if line.is_empty() {
            section.is_of_methods = false;
            section.paragraph_ends();
        } else if section.awaits_paragraph() {
            section.paragraph.push(line);
        }
        entries.extend(section.workloads());
        entries.extend(section.setting(line).or_else(|| section.method(line)));
    }
    entries
}

/// Where the page is being read.
#[derive(Default)]
struct Section<'a> {
    /// `plan`, `limit`: what stands before the dot of a setting's full name; empty for those at the top.
    table: String,
    /// The kinds of workload it describes.
    kinds: Vec<&'a str>,
    /// The first paragraph, which says what they are.
    paragraph: Vec<&'a str>,
    is_told: bool,
    is_of_methods: bool,
}

impl<'a> Section<'a> {
    fn of(heading: &'a str) -> Section<'a> {
        let quoted: Vec<&str> = heading.split('`').skip(1).step_by(2).collect();
        let kind = |text: &&'a str| {
            let kind = text.strip_prefix("kind = ").unwrap_or(text);
            kind.strip_prefix('"')?.strip_suffix('"')
        };
        let table = quoted.first().copied().unwrap_or_default();
        Section {
            table: table.trim_matches(['[', ']']).to_owned(),
            kinds: quoted.iter().filter_map(kind).collect(),
            ..Section::default()
        }
    }

    fn awaits_paragraph(&self) -> bool {
        !self.kinds.is_empty() && !self.is_told
    }

    fn paragraph_ends(&mut self) {
        self.is_told |= !self.paragraph.is_empty();
    }

    /// The kinds of workload, once their paragraph has been read.
    fn workloads(&mut self) -> Option<WordEntry> {
        let is_told = self.is_told && !self.kinds.is_empty();
        is_told.then(|| WordEntry {
            words: self.kinds.drain(..).map(str::to_owned).collect(),
            elsewhere: Vec::new(),
            section: "Workloads".to_owned(),
            meaning: plain_text(&self.paragraph.join(" ")),
        })
    }

    /// `| `key` | default | allowed | meaning |`.
    fn setting(&self, line: &str) -> Option<WordEntry> {
        let cells: Vec<&str> = line
            .strip_prefix("| `")?
            .strip_suffix(" |")?
            .split(" | ")
            .collect();
        let [key, default, allowed, says] = cells.as_slice() else {
            return None;
        };
        let key = key.trim_end_matches('`');
        let mut words = vec![key.to_owned()];
        if !self.table.is_empty() {
            words.push(format!("{}.{key}", self.table));
        }
        let [says, default, allowed] = [says, default, allowed].map(|cell| {
            let cell = plain_text(cell);
            cell.trim_end_matches(", see below")
                .replace("see below", "see docs/experiment-file.md")
        });
        let meaning = format!("{says}. Default: {default}. Allowed: {allowed}.");
        Some(WordEntry {
            words,
            elsewhere: Vec::new(),
            section: "Settings of an experiment file".to_owned(),
            meaning,
        })
    }

    /// `| `"sync"` | one by one, each waited for |`.
    fn method(&self, line: &str) -> Option<WordEntry> {
        let row = line.strip_prefix("| `\"")?.strip_suffix(" |")?;
        let (word, says) = row.split_once("\"` | ").filter(|_| self.is_of_methods)?;
        Some(WordEntry {
            words: vec![word.to_owned()],
            elsewhere: Vec::new(),
            section: "Methods".to_owned(),
            meaning: format!(
                "io.method = \"{word}\": how DBWR's batches, LGWR's writes and multi-block reads are handed over: {}",
                plain_text(says)
            ),
        })
    }
}

fn plain_text(text: &str) -> String {
    without_links(text).replace('`', "")
}
