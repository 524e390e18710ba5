//! The other side: the program at the machine that it was brought to. Its file is gone before it says its first word,
//! so that nothing is left of it however it ends. Clocks are answered for at once, by the thread that hears.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use spindle_io::real::facts::monotonic_ns;
use spindle_system::SystemTree;
use spindle_system::machine::Machine;
use spindle_text::quantity::size;

use super::protocol::{FarAnswer, FarAsk, Hello, PROTOCOL, SILENCE};

/// Interval between checks whether anything was heard.
const LOOK: Duration = Duration::from_secs(1);

/// When something was heard last, by this machine's clock.
static HEARD_NS: AtomicU64 = AtomicU64::new(0);

/// Removes the file that this program runs from, says hello, and hears from now on what is asked: this process ends
/// when the run is gone. The directory that was made for the file goes with it.
pub fn begin<W: DeserializeOwned + Send + 'static>(made_for_it: Option<&Path>) -> Receiver<W> {
    if let Some(directory) = made_for_it {
        remove_own_file(directory);
    }
    say_line(&FarAnswer::<()>::Hello(Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: described(&SystemTree::default()),
    }));
    HEARD_NS.store(monotonic_ns(), Ordering::Relaxed);
    std::thread::spawn(end_in_silence);
    let (sender, words) = mpsc::channel();
    std::thread::spawn(move || hear(|word| sender.send(word).is_ok()));
    words
}

/// Sends a word; this process ends when the run is gone.
pub fn say(word: &impl Serialize) {
    say_line(&FarAnswer::Word(word));
}

fn say_line(answer: &FarAnswer<impl Serialize>) {
    let mut line =
        serde_json::to_string(answer).expect("an answer holds only strings, numbers and lists");
    line.push('\n');
    let mut output = io::stdout().lock();
    let said = output
        .write_all(line.as_bytes())
        .and_then(|()| output.flush());
    if said.is_err() {
        std::process::exit(0);
    }
}

/// Hears what is asked, and ends this process when the run, or the way to it, is gone. What is not understood is of a
/// run that speaks otherwise: it is told by the hello.
fn hear<W: DeserializeOwned>(hand_on: impl Fn(W) -> bool) {
    for line in BufReader::new(io::stdin()).lines().map_while(Result::ok) {
        HEARD_NS.store(monotonic_ns(), Ordering::Relaxed);
        match serde_json::from_str(&line) {
            Ok(FarAsk::Clock { number }) => say_line(&FarAnswer::<()>::Clock {
                number,
                at_ns: monotonic_ns(),
            }),
            Ok(FarAsk::Word(word)) => {
                if !hand_on(word) {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    std::process::exit(0);
}

fn end_in_silence() {
    loop {
        std::thread::sleep(LOOK);
        let silent_ns = monotonic_ns().saturating_sub(HEARD_NS.load(Ordering::Relaxed));
        if silent_ns >= SILENCE.as_nanos() as u64 {
            std::process::exit(0);
        }
    }
}

/// Removes the file that this program runs from, if it is the copy in the directory that was made for it. The program
/// continues: a running program needs no name.
fn remove_own_file(directory: &Path) {
    let own = std::env::current_exe();
    let is_copy = own.as_deref().is_ok_and(|own| own.starts_with(directory));
    if is_copy && let Ok(own) = own {
        // The shell that started it tries again when it has ended.
        let _ = std::fs::remove_file(own);
        let _ = std::fs::remove_dir(directory);
    }
}

/// A machine in a few words.
fn described(tree: &SystemTree) -> String {
    let machine = Machine::capture(tree, &[]);
    let mut words = vec![format!(
        "Linux {} {}",
        machine.kernel_release,
        std::env::consts::ARCH
    )];
    words.extend(
        machine
            .processor
            .logical_processors
            .map(|count| format!("{count} processors")),
    );
    words.extend(
        machine
            .memory_bytes
            .map(|bytes| format!("{} of memory", size(bytes))),
    );
    words.join(", ")
}
