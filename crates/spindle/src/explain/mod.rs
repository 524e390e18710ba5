//! What a word of a report or of an experiment file means: from the glossary of `docs/`, which is in the program, the
//! kinds of findings, the columns of the table, and the page of the experiment file.

mod experiment_file;

use std::cmp::Reverse;
use std::fmt::Write as _;

use spindle_report::comparison::all_columns;
use spindle_report::headings::HEADINGS;
use spindle_result::kinds_of_findings;

use spindle_text::nearest::nearest;
use spindle_text::paragraph::wrapped;

const GLOSSARY: &str = include_str!("../../../../docs/glossary.md");
/// Sections of the glossary that are for those who change the code.
const NOT_FOR_REPORTS: &str = "## The code";
const WIDTH: usize = 76;
/// Lower halves of columns' heads that are no words.
const UNITS: [&str; 3] = ["%", "/s", "ms"];

/// Units of the times in [`ALL_BUT_THE_LAST`].
const TIME_UNITS: [&str; 2] = ["s", "ms"];
/// The beginning of what a table says of a promise that may lose the last commits: a time follows.
const ALL_BUT: &str = "all but ";
/// Under which the glossary has it.
const ALL_BUT_THE_LAST: &str = "all but the last";
/// Under which waits of PostgreSQL are counted together that have no separate figure; their type follows.
const OTHER_WAITS: &str = "other waits";

/// A word, or several for one thing, and what it means.
struct WordEntry {
    words: Vec<String>,
    /// Words that others have for it.
    elsewhere: Vec<String>,
    section: String,
    meaning: String,
}

/// What a word means, or each of two where one stands in brackets behind the other, as waits of servers do: `WALSync
/// (log file sync)`. `None` for one that is unknown here.
pub fn explain(word: &str) -> Option<String> {
    of_one(word)
        .or_else(|| of_two(word))
        .or_else(|| of_its_kind(word.trim()))
}

fn of_two(word: &str) -> Option<String> {
    let (name, nearest) = word.trim().strip_suffix(')')?.split_once(" (")?;
    let known = |word: &str| of_one(word).or_else(|| of_its_kind(word));
    both(known(name), known(nearest))
}

fn both(first: Option<String>, second: Option<String>) -> Option<String> {
    let told: Vec<String> = first.into_iter().chain(second).collect();
    (!told.is_empty()).then(|| told.join("\n"))
}

/// A word with something in it that differs from run to run: a number, a unit, or the type of a wait of PostgreSQL.
fn of_its_kind(word: &str) -> Option<String> {
    if let Some(number) = word.strip_prefix('#') {
        return of_one("#").filter(|_| is_number(number));
    }
    if let Some(time) = word.strip_prefix(ALL_BUT) {
        let (number, unit) = time.trim_end_matches('?').split_once(' ')?;
        let is_time = is_number(number) && TIME_UNITS.contains(&unit);
        return of_one(ALL_BUT_THE_LAST).filter(|_| is_time);
    }
    let without_unit = |unit: &&str| word.strip_suffix(unit)?.strip_suffix(' ');
    if let Some(word) = UNITS.iter().find_map(without_unit) {
        return of_one(word);
    }
    let (of_type, name) = word.split_once(':')?;
    if of_type == OTHER_WAITS {
        return both(of_one(OTHER_WAITS), of_one(&format!("{}:", name.trim())));
    }
    // Names that the glossary lacks are told by their type.
    of_one(name).or_else(|| of_one(&format!("{of_type}:")))
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

fn of_one(word: &str) -> Option<String> {
    let wanted = plain(word);
    let entries = entries();
    let is_it = |entry: &&WordEntry| {
        let mut words = entry.words.iter().chain(&entry.elsewhere);
        words.any(|word| plain(word) == wanted)
    };
    let found: Vec<&WordEntry> = entries.iter().filter(is_it).collect();
    if found.is_empty() {
        let mut aliases = spindle_experiment::aliases();
        let (_, own) = aliases.find(|(alias, _)| plain(alias) == wanted)?;
        return of_one(own);
    }
    let paragraphs: Vec<String> = found.into_iter().map(paragraph).collect();
    Some(paragraphs.join("\n"))
}

/// What an unknown word may have been meant as: the known word that is a few typing errors away. Without one, words
/// that hold it or are held by it, and those that begin alike, the longest beginning first.
pub fn near(word: &str) -> Vec<String> {
    let wanted = plain(word);
    let of_entries = entries()
        .into_iter()
        .flat_map(|entry| entry.words.into_iter().chain(entry.elsewhere));
    let aliases = spindle_experiment::aliases().map(|(alias, _)| alias.to_owned());
    let mut words: Vec<(String, String)> = of_entries
        .chain(aliases)
        .filter(|word| word.len() > 2)
        .map(|word| (plain(&word), word))
        .collect();
    let meant = nearest(&wanted, words.iter().map(|(other, _)| other.as_str()));
    let meant = meant.map(str::to_owned);
    let alike = |other: &str| {
        let begins_alike = wanted
            .chars()
            .zip(other.chars())
            .take_while(|(a, b)| a == b);
        match meant.as_deref() {
            Some(meant) if meant == other => usize::MAX,
            _ if other.contains(&wanted) => usize::MAX - 1,
            // A slip explains more than what is alike by chance.
            Some(_) => 0,
            None if wanted.contains(other) => usize::MAX - 1,
            None => begins_alike.count(),
        }
    };
    words.sort_by_key(|(other, _)| Reverse(alike(other)));
    words.retain(|(other, _)| alike(other) > 3);
    let mut near: Vec<String> = Vec::new();
    for (other, word) in words {
        if near.iter().all(|known| plain(known) != other) {
            near.push(word);
        }
    }
    near.truncate(8);
    near
}

/// Every word, by its section.
pub fn list() -> String {
    let mut text = String::new();
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    for entry in entries() {
        match sections
            .iter_mut()
            .find(|(section, _)| *section == entry.section)
        {
            Some((_, words)) => {
                let new = listed(entry.words).into_iter();
                let new: Vec<String> = new.filter(|word| !words.contains(word)).collect();
                words.extend(new);
            }
            None => sections.push((entry.section, listed(entry.words))),
        }
    }
    for (section, words) in sections {
        let _ = writeln!(text, "{section}");
        wrapped(&words.join("; "), WIDTH).iter().for_each(|line| {
            let _ = writeln!(text, "    {line}");
        });
    }
    text
}

/// Words without those that another one repeats behind its dot, as `plan.quiet` does `quiet`.
fn listed(words: Vec<String>) -> Vec<String> {
    let repeats = |word: &String, other: &String| {
        other.rsplit_once('.').is_some_and(|(_, last)| last == word)
    };
    let is_repeated = |word: &&String| words.iter().any(|other| repeats(word, other));
    words
        .iter()
        .filter(|word| !is_repeated(word))
        .cloned()
        .collect()
}

fn paragraph(entry: &WordEntry) -> String {
    let mut text = format!(
        "{} ({})\n",
        entry.words.join(", "),
        entry.section.to_lowercase()
    );
    for line in wrapped(&entry.meaning, WIDTH) {
        let _ = writeln!(text, "    {line}");
    }
    text
}

fn entries() -> Vec<WordEntry> {
    let mut entries = of_glossary(GLOSSARY.split(NOT_FOR_REPORTS).next().unwrap_or_default());
    entries.extend(kinds_of_findings().map(|(name, text, remedy)| WordEntry {
        words: vec![name.to_owned()],
        elsewhere: Vec::new(),
        section: "Findings".to_owned(),
        meaning: format!("{text} What helps: {remedy}"),
    }));
    entries.extend(all_columns().iter().map(|column| {
        let [above, below] = column.short.map(str::to_owned);
        let short = format!("{above} {below}").trim().to_owned();
        let mut words: Vec<String> = Vec::new();
        for word in [short, column.title.to_owned(), above, below] {
            if word.len() > 1 && !UNITS.contains(&word.as_str()) && !words.contains(&word) {
                words.push(word);
            }
        }
        let says_more = |legend: &&str| {
            let (_, meaning) = legend.split_once(": ").unwrap_or_default();
            !column.title.contains(meaning)
        };
        let legend = column.legend.filter(says_more);
        let legend = legend.map_or(String::new(), |legend| format!(" ({legend})"));
        WordEntry {
            words,
            elsewhere: Vec::new(),
            section: "Columns".to_owned(),
            meaning: format!("A column of the table: {}{legend}.", column.title),
        }
    }));
    entries.extend(HEADINGS.iter().map(|(head, meaning)| WordEntry {
        words: vec![(*head).to_owned()],
        elsewhere: Vec::new(),
        section: "Columns".to_owned(),
        meaning: format!("A column of the report: {meaning}."),
    }));
    entries.extend(experiment_file::entries());
    entries
}

/// The rows of the glossary's tables.
fn of_glossary(text: &str) -> Vec<WordEntry> {
    let mut section = String::new();
    let mut entries = Vec::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.trim().clone_into(&mut section);
        }
        let Some((words, meaning)) = row(line) else {
            continue;
        };
        let words = words.replace("**", "").replace('`', "");
        entries.push(WordEntry {
            words: words
                .split(", ")
                .map(|word| word.trim().to_owned())
                .collect(),
            elsewhere: elsewhere(meaning),
            section: section.clone(),
            meaning: without_links(meaning).replace("**", ""),
        });
    }
    entries
}

/// What stands in a meaning's brackets as the words of other fields: `(elsewhere: page)`.
fn elsewhere(meaning: &str) -> Vec<String> {
    let bracket = meaning.split_once("(elsewhere: ");
    let words = bracket.and_then(|(_, rest)| rest.split_once(')'));
    let words = words.map_or("", |(words, _)| words).split(", ");
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// `| **word** | meaning |`.
fn row(line: &str) -> Option<(&str, &str)> {
    let cells = line.strip_prefix("| **")?.strip_suffix('|')?;
    cells.split_once(" | ")
}

/// `[text](address)` as `text`.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.trim();
    while let Some((before, link)) = rest.split_once('[') {
        let Some((label, after)) = link
            .split_once("](")
            .and_then(|(label, after)| Some((label, after.split_once(')')?.1)))
        else {
            break;
        };
        plain.push_str(before);
        plain.push_str(label);
        rest = after;
    }
    plain + rest
}

/// A word without what people write it with or without.
fn plain(word: &str) -> String {
    let lower = word
        .trim()
        .to_lowercase()
        .replace(['`', '*', '_', '-'], " ");
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle's names in the source of the list of wait events.
    fn wait_events() -> Vec<&'static str> {
        let source = include_str!("../../../spindle-kernel/src/wait_event.rs");
        let list = source.split("wait_events! {").nth(1).unwrap();
        let list = list.split("\n}").next().unwrap();
        list.lines()
            .filter_map(|line| line.split('"').nth(1))
            .collect()
    }

    #[test]
    fn every_word_of_a_report_is_explained() {
        let events = wait_events();
        assert!(events.len() > 10, "{events:?}");
        let columns = all_columns().into_iter().map(|column| column.title);
        let findings = kinds_of_findings().map(|(name, ..)| name);
        let verdicts = ["faster", "slower", "draw", "undecided"];
        let parts = [
            "user CPU",
            "system CPU",
            "run queue",
            "wait for a free client",
            "other",
        ];
        for word in columns
            .chain(findings)
            .chain(verdicts)
            .chain(parts)
            .chain(events)
        {
            assert!(
                explain(word).is_some(),
                "{word} is not explained: add it to docs/glossary.md"
            );
        }
    }

    #[test]
    fn every_wait_verdict_and_head_of_a_result_is_explained() {
        let events = include_str!("../../../spindle-result/src/model/wait_event.rs");
        let events = events.split("OracleEvent:").nth(1).unwrap();
        let events = events.split("\n}").next().unwrap();
        let events = events.lines().filter_map(|line| line.split('"').nth(1));
        let events: Vec<&str> = events.collect();
        assert!(events.len() > 20, "{events:?}");
        let of_sqlite = include_str!("../../../spindle-engines/src/sqlite/observer.rs");
        let of_sqlite = of_sqlite.split("const EVENTS").nth(1).unwrap();
        let of_sqlite = of_sqlite.split("];").next().unwrap();
        let of_sqlite: Vec<&str> = of_sqlite.split('"').skip(1).step_by(2).collect();
        assert_eq!(of_sqlite.len(), 9, "{of_sqlite:?}");
        let heads = HEADINGS.iter().map(|(head, _)| *head);
        let of_brief = [
            "tpm",
            "p99 ms",
            "of the best",
            "keeps",
            "layout",
            "clients",
            "95 % interval",
        ];
        let verdicts = [
            "not clear",
            "no difference",
            "greater",
            "smaller",
            "the same",
            "tied for second",
        ];
        let words = events.into_iter().chain(of_sqlite).chain(heads);
        for word in words.chain(of_brief).chain(verdicts) {
            assert!(
                explain(word).is_some(),
                "{word} is not explained: add it to docs/glossary.md"
            );
        }
    }

    #[test]
    fn words_of_engines_are_explained() {
        for (alias, _) in spindle_experiment::aliases() {
            assert!(explain(alias).is_some(), "{alias}");
        }
        assert!(
            explain("redo")
                .unwrap()
                .starts_with(&explain("wal").unwrap())
        );
        assert_eq!(explain("LSN"), explain("SCN"));
        let nopm = explain("NOPM").unwrap();
        assert_eq!(nopm.matches("new orders per minute").count(), 3, "{nopm}");
        for word in ["shared_buffers", "innodb_buffer_pool_size", "buffer pool"] {
            assert!(
                explain(word).is_some_and(|told| told.contains("buffer cache")),
                "{word}"
            );
        }
    }

    /// Names of waits in the sources of servers.
    fn waits_of_servers() -> Vec<String> {
        let postgres = include_str!("../../../spindle-engines/src/postgres/waits.rs");
        let list = postgres.split("const KNOWN").nth(1).unwrap();
        let list = list.split("];").next().unwrap();
        let quoted: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        let known = quoted.chunks(3).filter(|known| !known[2].is_empty());
        let of_postgres = known.map(|known| known[1].to_owned());
        let mariadb = include_str!("../../../spindle-engines/src/mariadb/waits.rs");
        let of_mariadb = mariadb.split('"').filter_map(|text| {
            let (name, nearest) = text.split_once(" (")?;
            nearest.ends_with(')').then(|| name.to_owned())
        });
        of_postgres.chain(of_mariadb).collect()
    }

    #[test]
    fn what_servers_wait_for_is_explained() {
        let waits = waits_of_servers();
        assert!(waits.len() > 40, "{waits:?}");
        for wait in waits {
            assert!(
                explain(&wait).is_some(),
                "{wait} is not explained: add it to docs/glossary.md"
            );
        }
        assert_eq!(explain("LWLock:WALWrite"), explain("WALWrite"));
        assert_eq!(explain("Client:ClientRead"), explain("ClientRead"));
        let both = explain("WALSync (log file sync)").unwrap();
        assert!(both.starts_with("WALSync"), "{both}");
        assert!(both.contains("\nlog file sync"), "{both}");
        assert_eq!(explain("flux (flow)"), None);
    }

    #[test]
    fn what_a_table_shows_is_explained() {
        let words = "may be damaged,unknown,all commits,all but the last,knee,dominated,tied,clients,us/sy/wa,blk rd,\
                     log wr,DB/dev,+-,power cut,failed,nothing,p99 ms,own cost,WAL wr,pg rd,\
                     waiting for another writer (enq: TX - contention),busy: another writes";
        for word in words.split(',') {
            assert!(explain(word).is_some(), "{word}");
        }
        let filled_in = "all but 70 s?;all but 1 s?;all but 0.6 s;all but 5 ms;every commit;in smaller parts;other call;\
                         other waits;other waits: Timeout;LWLock:LockManager;Lock:advisory;IPC:MessageQueueSend;p50;p95;CPU;#1;\
                         Client:ClientRead (SQL*Net more data from client);#24";
        for word in filled_in.split(';') {
            assert!(explain(word).is_some(), "{word}");
        }
        let of_the_last = explain("all but the last");
        assert_eq!(explain("all but 70 s?"), of_the_last);
        let of_timeouts = explain("other waits: Timeout").unwrap();
        assert!(of_timeouts.contains("\nTimeout:"), "{of_timeouts}");
        for word in ["all but me", "all but 3 x", "#x", "Strange:Wait"] {
            assert_eq!(explain(word), None, "{word}");
        }
        for entry in entries() {
            let mut words = entry.words.clone();
            words.sort();
            words.dedup();
            assert_eq!(words.len(), entry.words.len(), "{:?}", entry.words);
        }
    }

    #[test]
    fn words_of_an_experiment_file_are_explained() {
        let words = "sync,async,libaio,slaves,odm,buffered,direct,quiet,plan.quiet,precision,rounds,warmup,limit.read_iops,\
                     buffer_cache,oltp_mix,slob,tpcb,tpcc,tpch,tpcd,junk,dss,script,replay,skipped,best,interval,\
                     too close to call,hypervisor,rd/wr,mind,why they differ";
        for word in words.split(',') {
            assert!(explain(word).is_some(), "{word}");
        }
        insta::assert_snapshot!(
            ["plan.quiet", "async", "junk"]
                .map(|word| explain(word).unwrap())
                .join("\n")
        );
    }

    #[test]
    fn words_are_found_however_they_are_written() {
        insta::assert_snapshot!(explain("Double-Buffering").unwrap());
        assert_eq!(explain("log file sync"), explain("`log file  sync`"));
        assert!(explain("LGWR").unwrap().contains("log writer"));
        assert_eq!(explain("flux"), None);
        assert!(near("buffer").iter().any(|word| word == "buffer cache"));
        assert_eq!(near("shared_bufers"), ["shared buffers"]);
        assert_eq!(near("bufer cache"), ["buffer cache"]);
        assert!(near("innodb_flush_log")[0].starts_with("innodb_flush"));
        assert_eq!(near("xyzzy"), Vec::<String>::new());
        assert_eq!(
            without_links("see [the page](x.md), and [y](z)"),
            "see the page, and y"
        );
        assert!(!list().contains("soak"));
        assert!(list().lines().all(|line| line.chars().count() <= 80));
    }
}
