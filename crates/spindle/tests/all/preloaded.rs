//! A library that answers for the kernel (`LD_PRELOAD`) makes the promise of a database weaker, whatever its settings
//! say: nobody sees from outside what the library does with a flush.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "preloaded"
[database]
engine = "sqlite"
size = "4MiB"
buffer_cache = "1MiB"
[plan]
warmup = "100ms"
measure = "300ms"
rounds = 1
quiet = "0s"
[[layout]]
name = "full"
database = { settings = { synchronous = "full" } }
"#;

/// What the only case keeps, and the reason that weighs most.
fn promise_under(directory: &Path, library: Option<&Path>) -> (String, String) {
    fs::write(directory.join("experiment.toml"), EXPERIMENT).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_spindle"));
    run.args(["run", "experiment.toml", "--out", "out"])
        .env("SPINDLE_LEDGER_DIRECTORY", directory.join("ledger"))
        .current_dir(directory)
        .stdin(Stdio::null());
    if let Some(library) = library {
        run.env("LD_PRELOAD", library);
    }
    let run = run.output().unwrap();
    assert!(run.status.success(), "{run:?}");
    let result = fs::read(directory.join("out/result.json")).unwrap();
    let result: Value = serde_json::from_slice(&result).unwrap();
    fs::remove_dir_all(directory.join("out")).unwrap();
    let promise = &result["cases"][0]["promise"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (
        text(&promise["keeps"]),
        text(&promise["reasons"][0]["what"]),
    )
}

/// Builds a library of one line of C; the path.
fn built(directory: &Path, name: &str, code: &str) -> std::path::PathBuf {
    let (source, library) = (directory.join("library.c"), directory.join(name));
    fs::write(&source, code).unwrap();
    let compiler = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .output();
    let compiler = compiler.expect("a C compiler, which the build of SQLite needs, too");
    assert!(compiler.status.success(), "{compiler:?}");
    library
}

#[test]
fn a_library_in_front_of_the_c_library_weakens_the_promise() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = place.path();
    let (usual, _) = promise_under(directory, None);
    let harmless = built(directory, "harmless.so", "int spindle_harmless;\n");
    assert_eq!(promise_under(directory, Some(&harmless)).0, usual);
    let code = "int fdatasync(int fd) { return 0; }\nint fsync(int fd) { return 0; }\n";
    let quick = built(directory, "quick.so", code);
    let (keeps, what) = promise_under(directory, Some(&quick));
    assert_eq!(keeps, "unknown");
    assert!(what.ends_with("/quick.so") || usual == "unknown", "{what}");
    let eats = built(directory, "libeatmydata.so", code);
    let (keeps, what) = promise_under(directory, Some(&eats));
    assert_eq!(keeps, "may_be_damaged");
    assert!(what.ends_with("/libeatmydata.so"), "{what}");
}
