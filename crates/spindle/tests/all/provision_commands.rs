//! `plan`, `clean` and the refusal of `run`, as a person meets them: words and exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn spindle(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .current_dir(directory)
        .env("SPINDLE_LEDGER_DIRECTORY", directory.join("ledgers"))
        .output()
        .unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

const MADE: &str = r#"
[database]
size = "8MiB"
buffer_cache = "1MiB"
log_file_size = "1MiB"
[[layout]]
name = "raw"
devices = [{ file = "disk1.img", size = "64MiB" }]
raw = true

[[layout]]
name = "also raw"
devices = [{ file = "disk2.img", size = "64MiB" }]
raw = true

[[layout]]
name = "gone"
devices = ["/dev/no-such-disk"]
raw = true
"#;

fn files_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn a_plan_touches_nothing() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("made.toml"), MADE).unwrap();
    let plan = spindle(
        place.path(),
        &["plan", "made.toml", "--set", "plan.rounds=2"],
    );
    let text = printed(&plan);
    assert_eq!(plan.status.code(), Some(0), "{plan:?}");
    for words in [
        "disk1.img of 64 MiB",
        "cannot be made: ",
        "no-such-disk",
        "Then 4 trials",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(files_in(place.path()), ["made.toml"]);
}

#[test]
fn a_plan_of_which_nothing_can_be_made_has_an_exit_code_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let gone = MADE.split("\n\n").nth(2).unwrap();
    fs::write(place.path().join("gone.toml"), gone).unwrap();
    let plan = spindle(place.path(), &["plan", "gone.toml"]);
    assert_eq!(plan.status.code(), Some(3), "{plan:?}");
    // A run of which as many layouts are missing as are measured has no answer: the plan says so.
    let half = MADE.replace(
        r#"{ file = "disk2.img", size = "64MiB" }"#,
        r#""/dev/no-such-disk2""#,
    );
    fs::write(place.path().join("half.toml"), half).unwrap();
    let plan = spindle(place.path(), &["plan", "half.toml"]);
    assert_eq!(plan.status.code(), Some(3), "{plan:?}");
    fs::write(place.path().join("wrong.toml"), "[[layout]]\n").unwrap();
    assert_eq!(
        spindle(place.path(), &["plan", "wrong.toml"]).status.code(),
        Some(2)
    );
}

#[test]
fn cleaning_tells_what_it_does() {
    let place = tempfile::tempdir().unwrap();
    let clean = spindle(place.path(), &["clean"]);
    assert_eq!(clean.status.code(), Some(0), "{clean:?}");
    let ledgers = place.path().join("ledgers");
    fs::create_dir(&ledgers).unwrap();
    let left = place.path().join("left");
    fs::create_dir(&left).unwrap();
    let record = format!("{{\"made\":\"made_directory\",\"path\":{left:?}}}");
    let ledger = format!(
        "{{\"run\":{{\"format\":1,\"run\":\"dead-1\",\"pid\":1,\"boot_id\":null}}}}\n\
         {{\"making\":{{\"number\":1,\"layout\":null,\"record\":{record}}}}}\n"
    );
    fs::write(ledgers.join("dead-1.jsonl"), ledger).unwrap();
    let dry = printed(&spindle(place.path(), &["clean", "--dry-run"]));
    assert!(
        dry.contains("would be removed: the directory") && left.exists(),
        "{dry}"
    );
    let done = printed(&spindle(place.path(), &["clean"]));
    assert!(
        done.contains("  removed: the directory") && !left.exists(),
        "{done}"
    );
    fs::write(ledgers.join("odd.jsonl"), "nonsense\n").unwrap();
    assert_eq!(spindle(place.path(), &["clean"]).status.code(), Some(1));
}
