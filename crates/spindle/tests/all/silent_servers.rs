//! A server that takes connections and says nothing is told as one, by whoever asks it first.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The limit is 20 s; a statement of `doctor` may take 120.
const LIMIT: Duration = Duration::from_secs(90);

/// What is told of a server at this kind of address.
fn told_of(scheme: &str) -> (Option<i32>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["doctor", &format!("{scheme}://ann@127.0.0.1:{port}/lab")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    (asked.status.code(), said)
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let began = Instant::now();
    let asked = ["postgres", "mysql"].map(|scheme| thread::spawn(move || told_of(scheme)));
    for answered in asked {
        let (code, said) = answered.join().unwrap();
        assert!(said.contains("does not answer"), "{said}");
        assert!(code.is_some_and(|code| code != 0), "{code:?}: {said}");
    }
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
}
