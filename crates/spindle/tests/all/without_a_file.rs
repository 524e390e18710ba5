//! Asking without a file, as people do: `try` from beginning to end, what it refuses, and what it saves.

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::end_to_end::Place;

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_question_is_answered_in_a_dozen_lines() {
    let place = Place::empty();
    fs::create_dir(place.path().join("a b")).unwrap();
    let asked = [
        "try",
        "a b",
        "--vary",
        "io.method=sync,async",
        "--time",
        "10s",
        "--size",
        "16MiB",
        "--clients",
        "2",
        "--save",
        "kept.toml",
        "--set",
        "seed=3",
    ];
    let output = place.output(&asked);
    let (stdout, stderr) = text(&output);
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(
        stderr.starts_with("2 candidates (sync; async): about 3 rounds"),
        "{stderr}"
    );
    assert!(!stderr.contains("Memory:"), "{stderr}");
    let left = stderr
        .lines()
        .filter_map(|line| line.strip_suffix(" left)")?.split_once(" ("));
    // A trial that is measured again says it again.
    assert!(left.count() >= 6, "each trial says what is left: {stderr}");
    let widths = stdout
        .lines()
        .filter(|line| !line.starts_with("Report: "))
        .map(|line| line.chars().count());
    assert!(widths.max() <= Some(80), "{stdout}");
    assert!(stdout.lines().count() <= 24, "{stdout}");
    for told in [
        "embedded database · 16 MiB of data · oltp_mix, 2 clients",
        "of the best",
        "Report: ",
    ] {
        assert!(stdout.contains(told), "{stdout}");
    }
    assert!(stdout.trim_end().ends_with('.'), "{stdout}");
    // What is kept can be planned and run, and nothing else is left but the run.
    let planned = place.output(&["plan", "kept.toml"]);
    assert!(planned.status.success(), "{}", text(&planned).1);
    assert!(
        fs::read_to_string(place.path().join("kept.toml"))
            .unwrap()
            .contains("seed = 3")
    );
    assert_eq!(fs::read_dir(place.path().join("a b")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(place.path().join("runs")).unwrap().count(), 1);
    let again = place.output(&asked);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        text(&again).1.contains("kept.toml is there already"),
        "{}",
        text(&again).1
    );
}

#[test]
fn what_cannot_be_asked_so_is_refused_before_anything_is_made() {
    let place = Place::empty();
    fs::write(place.path().join("file"), "").unwrap();
    for (asked, told) in [
        (&["try"][..], "<PATH>"),
        (&["try", "nowhere"], "Name an existing directory"),
        (&["try", "file"], "not a directory"),
        (&["try", ".", "."], "twice"),
        (&["try", ".", "./"], "are one place"),
        (&["try", "/proc"], "/proc"),
        (
            &["try", ".", "--clients", "0"],
            "a whole number from 1 to 4096",
        ),
        (&["try", ".", "--size", "100TiB"], "to 64TiB"),
        (&["try", ".", "--vary", "method=sync,async"], "command line"),
        (&["try", ".", "--vary", "=a,b"], "names no key"),
        (&["try", ".", "--set", "workload.kind=tpcc"], "--workload"),
        (
            &["try", ".", "--save", "none/x.toml"],
            "where you may write",
        ),
        (
            &[
                "try",
                ".",
                "--engine",
                "sqlite",
                "--vary",
                "io.method=sync,async",
            ],
            "leave io out",
        ),
        (
            &[
                "try",
                ".",
                "--vary",
                "io.method=slaves,sync",
                "--set",
                "database.writers=4",
            ],
            "serve a single DBWR",
        ),
        (
            &["init", "--engine", "foo"],
            "Spindle does not measure \"foo\"",
        ),
        (&["plan", "quickstart"], "`spindle examples`"),
        (&["list", "nowhere"], "holds runs"),
        (&["history", "file"], "holds runs"),
        (
            &["try", ".", "--engine", "postgres"],
            "--vary settings.full_page_writes=on,off",
        ),
        (
            &["try", ".", "--engine", "oracle"],
            "allowed: kernel, sqlite, postgres, mariadb",
        ),
        (&["try", ".", "--time", "1s"], "from 10s to 24h"),
        (&["try", ".", "--vary", "io.method"], "names no values"),
        (
            &["try", ".", "--vary", "io.method=sync,fast"],
            "allowed: \"sync\"",
        ),
        (&["try", ".", "--set", "layout.0.path=x"], "--save"),
        (&["try", ".", "--workload", "tpch"], "possible values"),
    ] {
        let output = place.output(asked);
        let stderr = text(&output).1;
        assert_eq!(output.status.code(), Some(2), "{asked:?}: {stderr}");
        assert!(stderr.contains(told), "{asked:?}: {stderr}");
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn the_program_alone_says_the_next_step() {
    let output = Place::empty().output(&[]);
    let (stdout, stderr) = text(&output);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    assert!(
        stdout.lines().count() <= 12 && stdout.lines().all(|line| line.len() <= 82),
        "{stdout}"
    );
    for word in ["try", "init", "examples", "doctor", "explain"] {
        assert!(stdout.contains(&format!("spindle {word} ")), "{stdout}");
    }
}

/// Each copied example is planned where it is; what this machine lacks is said.
#[test]
fn copied_examples_can_be_planned() {
    let place = Place::empty();
    let (listed, _) = text(&place.output(&["examples"]));
    let examples = spindle::examples::EXAMPLES;
    for example in examples {
        assert!(
            listed.contains(&format!("{}: about", example.name)),
            "{listed}"
        );
        let copied = place.output(&["examples", "--copy", example.name]);
        assert!(copied.status.success(), "{}", text(&copied).1);
        let file = format!("{}.toml", example.name);
        assert_eq!(
            fs::read_to_string(place.path().join(&file)).unwrap(),
            example.copy()
        );
        for (path, text) in example.scripts() {
            assert_eq!(fs::read_to_string(place.path().join(path)).unwrap(), text);
        }
        let planned = place.output(&["plan", &file]);
        let (stdout, stderr) = text(&planned);
        let lacks = stdout.contains("cannot be")
            || stderr.contains("too little for the experiment")
            || stderr.contains("can be measured here");
        match planned.status.code() {
            Some(0) => {}
            Some(2 | 3) if lacks => {
                eprintln!("{file} is not planned whole on this machine: {stderr}")
            }
            other => panic!("{file} ended with {other:?}: {stdout}{stderr}"),
        }
    }
    for (asked, told) in [
        (
            ["examples", "--copy", "quickstart"],
            "quickstart.toml is there already",
        ),
        (
            ["examples", "--copy", "quickstar"],
            "did you mean \"quickstart\"?",
        ),
        (["examples", "--copy", "none"], "there are: quickstart"),
        (["explain", "bufer", "cache"], "perhaps: buffer cache"),
    ] {
        let output = place.output(&asked);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output).1.contains(told), "{}", text(&output).1);
    }
    let (told, _) = text(&place.output(&["explain", "log", "file", "sync"]));
    assert!(
        told.contains("a commit waits until its redo is on stable storage"),
        "{told}"
    );
}

/// Answers through a pipe, then as flags; each file passes `plan`.
#[test]
fn five_answers_make_a_file_that_can_be_planned() {
    let place = Place::empty();
    let piped = |arguments: &[&str], answers: &str| {
        let mut child = place
            .spindle(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It may end before it has read all.
        let _ = child.stdin.take().unwrap().write_all(answers.as_bytes());
        child.wait_with_output().unwrap()
    };
    for (file, answers) in [
        ("experiment.toml", "1\naccess\n"),
        ("journal.toml", "2\njournal\n.\ntpcb\n2m\n"),
        ("writers.toml", "kernel\nwriters\n\n2\n1h\n"),
    ] {
        let output = piped(&["init", file], answers);
        let (stdout, stderr) = text(&output);
        assert!(output.status.success(), "{stderr}");
        assert!(
            stdout.starts_with(&format!("{file} is written: ")),
            "{stdout}"
        );
        for question in ["1/5", "2/5", "3/5", "4/5", "5/5"] {
            assert!(stderr.contains(question), "{stderr}");
        }
        let planned = place.output(&["plan", file]);
        assert!(planned.status.success(), "{}", text(&planned).1);
    }
    let kept = fs::read_to_string(place.path().join("journal.toml")).unwrap();
    for told in [
        "engine = \"sqlite\"",
        "kind = \"tpcb\"",
        "settings.synchronous",
        "time = \"2m\"",
        "# Written by `spindle init`: which is faster",
    ] {
        assert!(kept.contains(told), "{kept}");
    }
    let flags = [
        "init",
        "f.toml",
        "--engine",
        "kernel",
        "--compare",
        "access",
        "--where",
        ".",
        "--workload",
        "slob",
        "--time",
        "2m",
    ];
    let output = place.output(&flags);
    assert!(
        output.status.success() && !text(&output).1.contains("1/5"),
        "{}",
        text(&output).1
    );
    for (asked, answers, told) in [
        (&flags[..], "", "is there already"),
        (
            &["init", "g.toml", "--engine", "oracle"],
            "",
            "allowed: kernel",
        ),
        (
            &["init", "g.toml", "--engine", "kernel"],
            "colours\n",
            "\"colours\" is not among ",
        ),
        (
            &["init", "g.toml"],
            "1\ndirectories\n.\n",
            "two places are needed",
        ),
        (
            &["init", "g.toml"],
            "1\naccess\n/no/such\n",
            "Name an existing directory",
        ),
        (
            &["init", "g.toml", "--time", "1s"],
            "1\naccess\n.\n1\n",
            "is not a time from 1m",
        ),
    ] {
        let output = piped(asked, answers);
        assert_eq!(output.status.code(), Some(2), "{asked:?}");
        assert!(
            text(&output).1.contains(told),
            "{asked:?}: {}",
            text(&output).1
        );
    }
    let output = piped(&["init", "g.toml", "--time", "1s"], "1\ndirectories\n\n1\n");
    let (_, said) = text(&output);
    let (_, places) = said.split_once("3/5").expect("the third question");
    // The second file system, where the machine has one, is the default beside the current directory.
    let told = match places.contains("\n  2  ") {
        true => "is not a time from 1m",
        false => "no second place to take by default",
    };
    assert!(places.contains(told), "{said}");
    assert!(!place.path().join("g.toml").exists());
}

#[test]
fn combinations_that_are_refused_are_left_out_and_told() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let place = Place::empty();
    let file = "[vary]\nio.method = [\"sync\", \"slaves\"]\ndatabase.writers = [1, 4]\n\
                [database]\nsize = \"64MiB\"\nbuffer_cache = \"4MiB\"\n[[layout]]\nname = \"here\"\n";
    fs::write(place.path().join("matrix.toml"), file).unwrap();
    let planned = place.output(&["plan", "matrix.toml"]);
    let (stdout, stderr) = text(&planned);
    assert!(planned.status.success(), "{stderr}");
    let told =
        "3 of 4 layouts.\nLeft out: slaves, writers 4: I/O slaves cannot be used with 4 writers";
    assert!(stdout.contains(told), "{stdout}");
    let asked = [
        "try",
        ".",
        "--vary",
        "io.method=sync,slaves",
        "--vary",
        "database.writers=1,4",
        "--time",
        "10s",
        "--size",
        "16MiB",
        "--clients",
        "2",
    ];
    let output = place.output(&asked);
    let (stdout, stderr) = text(&output);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.starts_with("3 candidates"), "{stderr}");
    assert!(stderr.contains("left out: slaves, writers 4: "), "{stderr}");
    let answer = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        answer.contains("1 of 4 combinations was left out: slaves, writers 4"),
        "{stdout}"
    );
}

/// Five answers of a person, one of them wrong at first.
#[test]
fn a_person_is_asked_five_questions() {
    let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&keys).unwrap();
    unlockpt(&keys).unwrap();
    let screen = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
    let place = Place::empty();
    let terminal = fs::OpenOptions::new().read(true).open(screen).unwrap();
    let child = place
        .spindle(&["init", "asked.toml"])
        .stdin(Stdio::from(terminal))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = fs::File::from(keys);
    keys.write_all(b"oracle\n1\naccess\n\n\n2m\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let (stdout, stderr) = text(&output);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("Spindle does not measure"), "{stderr}");
    assert!(
        stdout.starts_with("asked.toml is written: 3 candidates"),
        "{stdout}"
    );
    let kept = fs::read_to_string(place.path().join("asked.toml")).unwrap();
    assert!(
        kept.contains("path = \".\"") && !kept.contains("devices = ["),
        "{kept}"
    );
}

#[test]
fn scripts_of_a_person_are_tried_and_their_mistakes_shown() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let place = Place::empty();
    let write = |name: &str, text: &str| fs::write(place.path().join(name), text).unwrap();
    write(
        "schema.sql",
        "create table items (id integer primary key, stock integer);\ninsert into items values (1, 5), (2, 5);\n",
    );
    write(
        "buy.sql",
        "\\set id random(1, 2)\nbegin;\nupdate items set stock = stock - 1 where id = :id;\nend;\n",
    );
    write(
        "look.sql",
        "\\set id random(1, 2)\nselect stock from items where id = :id;\n",
    );
    let asked = |script: &str| {
        let fixed = "try . --engine sqlite --time 10s --size 16MiB --clients 2 --load schema.sql --script look.sql@9 --script";
        let asked: Vec<&str> = fixed.split(' ').chain([script]).collect();
        place.output(&asked)
    };
    let output = asked("buy.sql@1");
    let (stdout, stderr) = text(&output);
    assert!(output.status.success(), "{stderr}");
    assert!(stdout.contains("script, 2 clients"), "{stdout}");
    write(
        "buy.sql",
        "\\set id random(1, :most)\nbegin;\nupdate items set stock = stock - 1 where id = :id;\nend;\n",
    );
    for (defined, told) in [
        ("most=2", None),
        ("most", Some("allowed: NAME=VALUE")),
        ("most=", Some("allowed: NAME=VALUE")),
        ("=2", Some("allowed: NAME=VALUE")),
        ("1most=2", Some("no digit first")),
        ("mots=2", Some("nothing sets :most")),
    ] {
        let fixed = "try . --engine sqlite --time 10s --size 16MiB --clients 2 --load schema.sql --script buy.sql@1 \
                     --script look.sql@0 -D";
        let asked: Vec<&str> = fixed.split_whitespace().chain([defined]).collect();
        let output = place.output(&asked);
        let (_, stderr) = text(&output);
        assert_eq!(
            output.status.code(),
            Some(told.map_or(0, |_| 2)),
            "{stderr}"
        );
        assert!(stderr.contains(told.unwrap_or_default()), "{stderr}");
    }
    write("bad.sql", "select 1;\n\\setshell id date\n");
    let output = asked("bad.sql");
    let (_, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("bad.sql:2:1"), "{stderr}");
}
