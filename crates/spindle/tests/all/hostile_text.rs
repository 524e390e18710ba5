//! Journals and experiment files whose texts hold what a terminal obeys, a spreadsheet calculates, or a message should
//! not repeat: over all commands.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use spindle_text::plain::is_harmful;

use crate::results::journals::Run;

/// A title set, a colour, U+009B, carriage return, NUL, DEL, a direction overridden, a line separated.
const HARMFUL: &str = "=\u{1b}]0;x\u{7}\u{1b}[31m\u{9b}2J\r\0\u{7f}\u{202e}\u{2066}\u{2028}\u{8}";

fn spindle(arguments: &[&str], directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .current_dir(directory)
        .env("SPINDLE_LEDGER_DIRECTORY", directory.join("ledger"))
        .output()
        .unwrap()
}

/// Puts the harmful text before every text under a key that is free text.
fn spoil(value: &mut Value) {
    const FREE: [&str; 13] = [
        "name",
        "description",
        "path",
        "title",
        "detail",
        "notes",
        "emulated",
        "event",
        "part",
        "text",
        "reason",
        "at",
        "version",
    ];
    match value {
        Value::Object(entries) => {
            let is_io = entries.contains_key("method") && entries.contains_key("slaves");
            let is_event = entries.contains_key("run")
                || entries
                    .get("event")
                    .is_some_and(|event| event.as_str().is_some_and(|event| event.contains('_')));
            for (key, value) in entries.iter_mut() {
                let is_tag = (is_event && key == "event") || is_io;
                match value {
                    Value::String(text) if FREE.contains(&key.as_str()) && !is_tag => {
                        text.insert_str(0, HARMFUL);
                    }
                    Value::Array(items) if FREE.contains(&key.as_str()) => {
                        items.push(Value::String(HARMFUL.to_owned()));
                    }
                    other => spoil(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(spoil),
        _ => {}
    }
}

/// A run directory as a stranger could send it: a journal without checksums.
fn hostile_run(directory: &Path) {
    Run::default().write(directory);
    let path = directory.join("journal.jsonl");
    let mut lines = String::new();
    for line in fs::read_to_string(&path).unwrap().lines() {
        let mut event: Value = serde_json::from_str(line).unwrap();
        event.as_object_mut().unwrap().remove("crc32c");
        spoil(&mut event);
        lines.push_str(&format!("{event}\n"));
    }
    lines.push_str(&format!(
        "{}\n",
        serde_json::json!({"event": "warning", "text": HARMFUL})
    ));
    lines.push_str(&format!(
        "{}\n",
        serde_json::json!({"event": "trial_failed", "layout": 1, "clients": 8, "round": 4, "reason": HARMFUL})
    ));
    fs::write(&path, lines).unwrap();
}

fn assert_harmless(what: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    let harmful = text.find(|c: char| is_harmful(c) && c != '\n' && c != '\t');
    assert_eq!(
        harmful.map(|at| text[at..].chars().take(40).collect::<String>()),
        None,
        "{what}"
    );
}

#[test]
fn what_a_journal_says_is_obeyed_by_no_terminal_and_no_spreadsheet() {
    let place = tempfile::tempdir().unwrap();
    hostile_run(&place.path().join("run"));
    hostile_run(&place.path().join("dir\u{1b}[31m\u{9b}"));
    let commands: [&[&str]; 9] = [
        &["show", "run"],
        &["show", "dir\u{1b}[31m\u{9b}"],
        &["list", "."],
        &["compare", "run", "run", "--across-machines"],
        &["compare", "run", "dir\u{1b}[31m\u{9b}", "--format", "json"],
        &["export", "run", "--format", "csv"],
        &["export", "run", "--format", "openmetrics"],
        &["export", "run", "--format", "json"],
        &["report", "run"],
    ];
    for arguments in commands {
        let output = spindle(arguments, place.path());
        assert!(!output.stdout.is_empty(), "{arguments:?}: {output:?}");
        assert_harmless(&format!("{arguments:?}"), &output.stdout);
        assert_harmless(&format!("{arguments:?}, standard error"), &output.stderr);
        if arguments.contains(&"csv") {
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(
                text.lines().skip(1).all(|line| line.starts_with("'=")),
                "{text}"
            );
        }
    }
    for name in ["report.html", "report.md", "result.json"] {
        assert_harmless(
            name,
            &fs::read(place.path().join("run").join(name)).unwrap(),
        );
    }
    for arguments in [
        ["resume", "run"],
        ["show", "no\u{1b}[31m"],
        ["plan", "no\u{1b}[31m"],
    ] {
        let output = spindle(&arguments, place.path());
        assert_harmless(&format!("{arguments:?}"), &output.stdout);
        assert_harmless(&format!("{arguments:?}, standard error"), &output.stderr);
    }
}

/// What the program says of an experiment file that is wrong.
fn told(text: &[u8], more: &[&str]) -> String {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("e.toml"), text).unwrap();
    let output = spindle(&[&["plan", "e.toml"], more].concat(), place.path());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_harmless("standard error", &output.stderr);
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn names_that_look_like_others_or_turn_the_line_round_are_refused() {
    let bad = [
        "\\u0007",
        "\\u001b[1m",
        "\\u009b",
        "\\u202e",
        "\\u2066",
        "\\u2028",
        "\\u2029",
        "\\u200b",
        "\\u00a0",
        "\\u00ad",
    ];
    for character in bad {
        for text in [
            format!("[[layout]]\nname = \"a{character}b\"\n"),
            format!("name = \"a{character}b\"\n[[layout]]\nname = \"a\"\n"),
        ] {
            let said = told(text.as_bytes(), &[]);
            assert!(said.contains("all of them visible"), "{said}");
        }
    }
    for name in [" a", "a ", "\\ta"] {
        let said = told(format!("[[layout]]\nname = \"{name}\"\n").as_bytes(), &[]);
        assert!(said.contains("no space first or last"), "{said}");
    }
    let said = told(
        b"[[layout]]\nname = \"a b\"\n[[layout]]\nname = \"a  b\"\n",
        &[],
    );
    assert!(said.contains("two layouts are called"), "{said}");
}

#[test]
fn messages_have_a_length_whatever_the_file_holds() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let long = "x".repeat(1 << 20);
    let nested = format!("a = {}{}\n", "[".repeat(200_000), "]".repeat(200_000));
    let wide = format!("seed = [{}]\n", "1, ".repeat(100_000));
    let many = (0..100_000).map(|number| format!("[[layout]]\nname = \"{number}\"\n"));
    let dotted = format!("{}a = 1\n", "a.".repeat(200_000));
    let texts = [
        format!("name = \"{long}\"\n"),
        format!("{long} = 1\n"),
        format!("[[layout]]\nname = \"{long}\"\n"),
        format!("[[layout]]\nname = \"a\"\npath = \"{long}\"\n"),
        format!("name = {long}\n"),
        nested,
        wide,
        many.collect(),
        dotted,
    ];
    for text in texts {
        let said = told(text.as_bytes(), &[]);
        let start: String = said.chars().take(300).collect();
        assert!(said.len() < 8000, "{} bytes: {start}", said.len());
    }
    let argument = format!("{}=1", "a.".repeat(30_000) + "a");
    let said = told(b"[[layout]]\nname = \"a\"\n", &["--set", &argument]);
    assert!(said.len() < 8000, "{}", said.len());
    let too_large = vec![b'#'; 5 << 20];
    assert!(told(&too_large, &[]).contains("4 MiB"));
}

#[test]
fn a_file_that_is_not_utf8_is_told_with_its_place() {
    let said = told(b"name = \"x\"\nseed = 1 # \xe4\n", &[]);
    assert!(said.contains("UTF-8") && said.contains(":2:12"), "{said}");
    assert!(told(b"\xff\xfen\0", &[]).contains("UTF-16"));
}

#[test]
fn a_mistyped_address_hides_its_password_from_file_and_command_line() {
    for address in [
        "postgres:/ann:SECRET@h/x",
        "postgres//ann:SECRET@h",
        "postgresql:ann:SECRET@h",
        "ann:SECRET@h",
    ] {
        let head = "[database]\nengine = \"postgres\"\n";
        let said = told(
            format!("{head}url = \"{address}\"\n[[layout]]\nname = \"a\"\n").as_bytes(),
            &[],
        );
        assert!(!said.contains("SECRET"), "{said}");
        for set in [
            format!("database.url={address}"),
            format!("database.ulr={address}"),
            format!("database.url:{address}"),
        ] {
            let said = told(
                format!("{head}[[layout]]\nname = \"a\"\n").as_bytes(),
                &["--set", &set],
            );
            assert!(!said.contains("SECRET"), "{said}");
        }
    }
}
