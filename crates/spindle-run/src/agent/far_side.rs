//! The agent itself: it looks at the machine that it was brought to, as long as its run listens. Its file is gone
//! before it says its first word, so that nothing is left of it however it ends. It writes nothing else.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use spindle_engines::sql::ServerHome;
use spindle_io::real::facts::{monotonic_ns, processor_time_of_thread};
use spindle_system::machine::{DataPath, Machine};
use spindle_system::processes::{self, Processes};
use spindle_system::sampler::Sampler;
use spindle_system::{DeviceNumber, SystemTree};
use spindle_text::quantity::GIB;

use super::protocol::{Answer, Ask, Hello, PROTOCOL, SILENCE, Seen, Watch, Watching};

/// Listens and answers until nobody does; the whole of the process. The directory that was made for its file goes with
/// that.
pub fn run(made_for_it: Option<&Path>) -> ! {
    if let Some(directory) = made_for_it {
        remove_own_file(directory);
    }
    say(&Answer::Hello(Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: described(&SystemTree::default()),
    }));
    let asked = hear();
    let mut looking: Option<Looking> = None;
    let mut heard_at = Instant::now();
    loop {
        let next = looking.as_ref().map_or(SILENCE, Looking::left);
        match asked.recv_timeout(next) {
            Ok(ask) => {
                heard_at = Instant::now();
                match ask {
                    Ask::Clock { number } => say(&Answer::Clock {
                        number,
                        at_ns: monotonic_ns(),
                    }),
                    Ask::Watch(watch) => looking = Some(Looking::begin(&watch)),
                    Ask::Rest => looking = None,
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(looking) = &mut looking {
                    looking.look();
                }
            }
            // The run, or the way to it, is gone.
            Err(RecvTimeoutError::Disconnected) => std::process::exit(0),
        }
        if heard_at.elapsed() >= SILENCE {
            std::process::exit(0);
        }
    }
}

/// Removes the file that this program runs from, if it is the copy in the directory that was made for it. The program
/// goes on: what runs needs no name.
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
            .map(|bytes| format!("{:.1} GiB of memory", bytes as f64 / GIB as f64)),
    );
    words.join(", ")
}

/// Sends a line; this process ends when the run is gone.
fn say(answer: &Answer) {
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

/// Hears what is asked. What is not understood is of a run that speaks otherwise: it is told by the hello.
fn hear() -> Receiver<Ask> {
    let (sender, asked) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(io::stdin()).lines();
        let heard = lines.map_while(|line| serde_json::from_str(&line.ok()?).ok());
        for ask in heard {
            if sender.send(ask).is_err() {
                return;
            }
        }
    });
    asked
}

/// A machine being looked at.
struct Looking {
    sampler: Sampler,
    interval: Duration,
    next: Instant,
    cpu_before: Duration,
}

impl Looking {
    /// Looks at once, and from now on.
    fn begin(watch: &Watch) -> Looking {
        let tree = SystemTree::default();
        let (devices, watching) = what_is_there(&tree, &watch.home);
        let processes = Processes::of_servers(watching.process.into_iter().collect());
        say(&Answer::Watching(watching));
        let mut looking = Looking {
            sampler: Sampler::new(tree, devices, processes),
            interval: Duration::from_millis(watch.interval_ms.max(1)),
            next: Instant::now(),
            cpu_before: processor_time_of_thread(),
        };
        looking.look();
        looking
    }

    /// Time until the next look.
    fn left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    fn look(&mut self) {
        let (before_ns, mut system) = (monotonic_ns(), self.sampler.sample());
        // What holds back this process does not hold back the server.
        system.cpu_throttled_us = None;
        say(&Answer::Seen(Box::new(Seen {
            at_ns: before_ns.midpoint(monotonic_ns()),
            own_cpu_ns: (processor_time_of_thread() - self.cpu_before).as_nanos() as u64,
            system,
        })));
        self.next = (self.next + self.interval).max(Instant::now());
    }
}

/// The devices and the process of a server.
fn what_is_there(tree: &SystemTree, home: &ServerHome) -> (Vec<DeviceNumber>, Watching) {
    let mut watching = Watching {
        process: processes::server_in(tree, &home.directories, &home.programs),
        ..Watching::default()
    };
    let mut devices = BTreeSet::new();
    for directory in &home.directories {
        // A log may lie elsewhere, behind a link.
        let place = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.clone());
        match DataPath::capture(tree, &place).device {
            Some(device) => {
                if devices.insert(device.number) {
                    watching.devices.push(device.name);
                }
            }
            None => watching.unknown.push(directory.clone()),
        }
    }
    (devices.into_iter().collect(), watching)
}
