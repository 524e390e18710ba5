//! The dashboard on its own terminal: however the program ends, the terminal is as it was, and what was said
//! stands on it.
//!
//! Programs that end in such ways are tests of this file that are ignored: this file runs itself with one of them.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use spindle::watch::{CaseView, Dashboard, RunView, UnderWay};
use spindle_harness::child;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(120);
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
const HIDE: &str = "\x1b[?25l";
const SHOW: &str = "\x1b[?25h";

/// A terminal, and what was written to it.
struct Terminal {
    keys: OwnedFd,
    slave: OwnedFd,
    before: Termios,
    written: Vec<u8>,
}

impl Terminal {
    fn new() -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keys = openpt(flags).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        let size = Winsize {
            ws_row: 30,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).unwrap();
        let status = rustix::fs::fcntl_getfl(&keys).unwrap();
        rustix::fs::fcntl_setfl(&keys, status | OFlags::NONBLOCK).unwrap();
        Terminal {
            before: tcgetattr(&slave).unwrap(),
            keys,
            slave,
            written: Vec::new(),
        }
    }

    /// A program at this terminal, which sends it signals.
    fn start(&self, program: &Path, arguments: &[&str], directory: &Path) -> Child {
        let end = || File::from(self.slave.try_clone().unwrap());
        Command::new("setsid")
            .args(["--ctty", "--wait"])
            .arg(program)
            .args(arguments)
            .current_dir(directory)
            .env("SPINDLE_LEDGER_DIRECTORY", directory.join("ledger"))
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap()
    }

    fn read(&mut self) {
        let mut piece = [0; 4096];
        while let Ok(bytes @ 1..) = rustix::io::read(&self.keys, &mut piece) {
            self.written.extend_from_slice(&piece[..bytes]);
        }
    }

    fn text(&mut self) -> String {
        self.read();
        String::from_utf8_lossy(&self.written).into_owned()
    }

    fn press(&self, key: u8) {
        rustix::io::write(&self.keys, &[key]).unwrap();
    }

    fn wait(&mut self, child: &mut Child) -> ExitStatus {
        let began = Instant::now();
        loop {
            self.read();
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            if began.elapsed() > LONG {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("it does not end: {}", self.text());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What is wrong with the terminal after the program ended, which said `said` in the end.
    fn faults(&mut self, said: &str) -> Vec<&'static str> {
        let text = self.text();
        let now = tcgetattr(&self.slave).unwrap();
        let mut faults = Vec::new();
        let mut expect = |is_right: bool, fault| {
            if !is_right {
                faults.push(fault);
            }
        };
        let left = text.rfind(LEAVE);
        expect(text.contains(ENTER), "no dashboard was drawn");
        expect(text.rfind(ENTER) < left, "the picture stands");
        expect(text.rfind(HIDE) < text.rfind(SHOW), "no cursor");
        expect(text.rfind(said) > left, "what was said is lost");
        expect(
            now.local_modes == self.before.local_modes
                && format!("{:?}", now.special_codes) == format!("{:?}", self.before.special_codes),
            "the modes are not as they were",
        );
        faults
    }
}

/// A dashboard that was drawn a few times.
fn dashboard() -> Dashboard {
    let scene = RunView {
        experiment: "tried".to_owned(),
        began: Instant::now(),
        trials_done: 0,
        trials: 1,
        ends: None,
        rounds: 1,
        cases: vec![CaseView::default()],
        under_way: UnderWay::Preparing,
        notes: Vec::new(),
        interrupted: Arc::new(AtomicBool::new(false)),
    };
    let dashboard = Dashboard::open(scene).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    dashboard
}

#[test]
#[ignore = "a program for the tests below"]
fn panics_in_the_run() {
    let _dashboard = dashboard();
    panic!("planted");
}

#[test]
#[ignore = "a program for the tests below"]
fn panics_in_another_thread() {
    let dashboard = dashboard();
    let other = std::thread::spawn(|| panic!("planted"));
    assert!(other.join().is_err());
    std::thread::sleep(Duration::from_millis(600));
    std::mem::forget(dashboard);
    std::process::exit(1);
}

#[test]
#[ignore = "a program for the tests below"]
fn panics_in_drawing() {
    let dashboard = dashboard();
    let has_panicked = Arc::new(AtomicBool::new(false));
    let (told, before) = (has_panicked.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        before(panic);
        told.store(true, Ordering::SeqCst);
    }));
    // There is no such case.
    dashboard.update(|scene| {
        scene.under_way = UnderWay::Trial {
            case: 9,
            round: 1,
            began: Instant::now(),
            heard: None,
        };
    });
    let began = Instant::now();
    while !has_panicked.load(Ordering::SeqCst) && began.elapsed() < LONG {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    std::mem::forget(dashboard);
    std::process::exit(1);
}

#[test]
#[ignore = "a program for the tests below"]
fn ends_without_giving_back() {
    std::mem::forget(dashboard());
    eprintln!("planted");
    std::process::exit(1);
}

/// What is wrong with the terminal after one of the programs above.
fn faults_after(program: Command, said: &str) -> Vec<&'static str> {
    let mut terminal = Terminal::new();
    let arguments: Vec<&str> = program
        .get_args()
        .filter_map(|argument| argument.to_str())
        .collect();
    let mut child = terminal.start(Path::new(program.get_program()), &arguments, Path::new("."));
    assert!(!terminal.wait(&mut child).success());
    terminal.faults(said)
}

#[test]
fn a_panic_gives_the_terminal_back_and_is_told_on_it() {
    const NONE: [&str; 0] = [];
    assert_eq!(faults_after(child!(panics_in_the_run), "planted"), NONE);
    assert_eq!(
        faults_after(child!(panics_in_another_thread), "planted"),
        NONE
    );
    assert_eq!(
        faults_after(child!(panics_in_drawing), "out of bounds"),
        NONE
    );
}

#[test]
fn the_check_of_the_terminal_sees_one_that_is_not_given_back() {
    assert_eq!(
        faults_after(child!(ends_without_giving_back), "nothing of the kind"),
        [
            "the picture stands",
            "no cursor",
            "what was said is lost",
            "the modes are not as they were"
        ]
    );
}

const EXPERIMENT: &str = r#"
name = "watched"
[database]
size = "8MiB"
buffer_cache = "1MiB"
memory = "8MiB"
log_file_size = "2MiB"
[workload]
clients = 2
[plan]
quiet = "0s"
warmup = "0s"
measure = "60s"
rounds = 2
[[layout]]
name = "buffered"
"#;

/// A run that is watched and measures; its place is gone with the test.
fn watched_run(terminal: &mut Terminal) -> (tempfile::TempDir, Child) {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(place.path().join("experiment.toml"), EXPERIMENT).unwrap();
    let arguments = ["run", "experiment.toml", "--out", "out", "--watch"];
    let program = Path::new(env!("CARGO_BIN_EXE_spindle"));
    let mut child = terminal.start(program, &arguments, place.path());
    let began = Instant::now();
    let is_measuring = || {
        let journal = std::fs::read_to_string(place.path().join("out/journal.jsonl"));
        journal.is_ok_and(|journal| journal.contains("trial_started"))
    };
    while !is_measuring() {
        terminal.read();
        assert!(child.try_wait().unwrap().is_none() && began.elapsed() < LONG);
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(700));
    (place, child)
}

/// Ctrl-C.
const INTERRUPT: u8 = 3;

#[test]
fn ctrl_c_gives_the_terminal_back_and_tells_how_to_go_on() {
    let mut terminal = Terminal::new();
    let (_place, mut child) = watched_run(&mut terminal);
    terminal.press(INTERRUPT);
    assert_eq!(terminal.wait(&mut child).code(), Some(130));
    assert_eq!(terminal.faults("spindle resume"), Vec::<&str>::new());
}

#[test]
fn a_second_ctrl_c_gives_the_terminal_back_at_once() {
    let mut terminal = Terminal::new();
    let (place, mut child) = watched_run(&mut terminal);
    terminal.press(INTERRUPT);
    std::thread::sleep(Duration::from_millis(5));
    // It stands still, before it can have ended, for longer than two signals of one cause are apart.
    let process = Pid::from_child(&child);
    kill_process(process, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    terminal.press(INTERRUPT);
    kill_process(process, Signal::CONT).unwrap();
    assert_eq!(terminal.wait(&mut child).code(), Some(130));
    assert_eq!(terminal.faults(SHOW), Vec::<&str>::new());
    // What a run leaves that ends at once.
    let cleaned = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .arg("clean")
        .env("SPINDLE_LEDGER_DIRECTORY", place.path().join("ledger"))
        .output();
    assert!(cleaned.unwrap().status.success());
}
