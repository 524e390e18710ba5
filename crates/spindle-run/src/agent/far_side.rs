//! The agent itself: it looks at the machine that it was brought to, as long as its run listens. It writes nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use spindle_engines::sql::ServerHome;
use spindle_io::real::facts::{monotonic_ns, processor_time_of_thread};
use spindle_system::machine::DataPath;
use spindle_system::processes::{self, Processes};
use spindle_system::sampler::Sampler;
use spindle_system::{DeviceNumber, SystemTree};

use super::protocol::{AgentAnswer, AgentAsk, AgentLook, AgentWatch, Watching};
use crate::far::other_side::{self, say};
use crate::far::protocol::SILENCE;

/// Answers until the other side stops listening; this is the whole process. It then removes the directory that was made
/// for its file.
pub fn run(made_for_it: Option<&Path>) -> ! {
    let asked = other_side::begin(made_for_it);
    let mut looking: Option<Looking> = None;
    loop {
        let next = looking.as_ref().map_or(SILENCE, Looking::left);
        match asked.recv_timeout(next) {
            Ok(AgentAsk::Watch(watch)) => looking = Some(Looking::begin(&watch)),
            Ok(AgentAsk::Rest) => looking = None,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(looking) = &mut looking {
                    looking.look();
                }
            }
            // The run, or the way to it, is gone.
            Err(RecvTimeoutError::Disconnected) => std::process::exit(0),
        }
    }
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
    fn begin(watch: &AgentWatch) -> Looking {
        let tree = SystemTree::default();
        let (devices, watching) = what_is_there(&tree, &watch.home);
        let processes = Processes::of_servers(watching.process.into_iter().collect());
        say(&AgentAnswer::Watching(watching));
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
        say(&AgentAnswer::Seen(Box::new(AgentLook {
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
