//! The soak's progress: a line of text for each item, appended when it is done, so that a soak that was stopped goes on
//! where it was. It holds for one state of the code: with other code the soak begins again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::simulated::crashes::{Crash, Loss};
use crate::simulated::drawn::Trace;
use crate::simulated::reached::{Reached, Work};
use crate::work::{Done, Item, repeat};

/// What has been done.
pub struct State {
    directory: PathBuf,
    file: File,
    pub code: String,
    pub done: BTreeMap<Item, Done>,
}

impl State {
    /// The state in `directory`, if it is of this code; else an empty one, and the old one put aside.
    pub fn open(directory: &Path) -> Result<State, String> {
        let words = |error: std::io::Error| format!("{}: {error}", directory.display());
        fs::create_dir_all(directory).map_err(words)?;
        let (path, code) = (directory.join("progress"), code());
        // Counts have their place in this order.
        let header = format!("soak of {code}: {}", Reached::names().join(" "));
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut done = BTreeMap::new();
        if text.lines().next() == Some(&header) {
            // A line cut off by a crash of the machine is an item to be done again.
            let lines = text.lines().skip(1).filter_map(read);
            done.extend(lines.map(|line| (line.item, line)));
        } else if !text.is_empty() {
            let old = directory.join("progress.old");
            println!(
                "the progress is of other code: put aside as {}",
                old.display()
            );
            fs::rename(&path, old).map_err(words)?;
        }
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(words)?;
        if done.is_empty() {
            file.set_len(0).map_err(words)?;
            writeln!(file, "{header}").map_err(words)?;
        } else if !text.ends_with('\n') {
            writeln!(file).map_err(words)?;
        }
        Ok(State {
            directory: directory.to_path_buf(),
            file,
            code,
            done,
        })
    }

    /// Recoveries so far.
    pub fn recoveries(&self) -> u64 {
        self.done.values().map(|done| done.recoveries).sum()
    }

    /// True when the item is done.
    pub fn has(&self, item: Item) -> bool {
        self.done.contains_key(&item)
    }

    /// Notes an item as done.
    pub fn add(&mut self, done: Done) {
        let written = writeln!(self.file, "{}", line(&done)).and_then(|()| self.file.flush());
        written.unwrap_or_else(|error| panic!("{}: {error}", self.directory.display()));
        self.done.insert(done.item, done);
    }

    fn failures(&self) -> PathBuf {
        self.directory.join("failures")
    }

    /// Remembers a loss: the next soak begins with it.
    pub fn add_failure(&mut self, item: Item, loss: &Loss) {
        let crashes = loss.crashes.iter().map(|crash| format!(" {crash}"));
        let line = format!("{item}{}\n", crashes.collect::<String>());
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.failures());
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", self.failures().display()));
    }

    /// Repeats the losses of earlier soaks, and forgets them when they are gone.
    pub fn repeat_failures(&self) -> Result<(), String> {
        let text = fs::read_to_string(self.failures()).unwrap_or_default();
        for line in text.lines() {
            let (item, crashes) = read_failure(line)
                .ok_or_else(|| format!("{}: `{line}`?", self.failures().display()))?;
            repeat(item, &crashes)?;
            println!("lost before, and no more: {line}");
        }
        if !text.is_empty() {
            let removed = fs::remove_file(self.failures());
            removed.map_err(|error| format!("{}: {error}", self.failures().display()))?;
        }
        Ok(())
    }
}

fn read_failure(line: &str) -> Option<(Item, Vec<Crash>)> {
    let mut words = line.split(' ');
    let item = words.next()?.parse().ok()?;
    let crashes = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    Some((item, crashes))
}

fn line(done: &Done) -> String {
    let Done { trace, work, .. } = done;
    let mut line = format!(
        "{} {} {:016x} {} {} {} {} {}",
        done.item,
        done.recoveries,
        trace.hash,
        trace.ios,
        trace.virtual_ns,
        done.wall_ms,
        work.ios,
        work.virtual_ns
    );
    for count in done.reached.counts() {
        line += &format!(" {count}");
    }
    line
}

fn read(line: &str) -> Option<Done> {
    let mut words = line.split(' ');
    let item = words.next()?.parse().ok()?;
    let recoveries = words.next()?.parse().ok()?;
    let hash = u64::from_str_radix(words.next()?, 16).ok()?;
    let numbers: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let (first, counts) = numbers.split_at_checked(5)?;
    if counts.len() != Reached::names().len() {
        return None;
    }
    Some(Done {
        item,
        recoveries,
        trace: Trace {
            hash,
            ios: first[0],
            virtual_ns: first[1],
        },
        wall_ms: first[2],
        work: Work {
            ios: first[3],
            virtual_ns: first[4],
        },
        reached: Reached::of(counts.to_vec()),
    })
}

/// Names the code: the crates as committed, and a checksum of what was changed since.
fn code() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output();
        output.map(|output| output.stdout).unwrap_or_default()
    };
    let crates = git(&["rev-parse", "--short=12", "HEAD:crates"]);
    let changes = git(&["diff", "HEAD", "--", "crates", "Cargo.lock"]);
    let mut code = String::from_utf8_lossy(&crates).trim().to_string();
    if !changes.is_empty() {
        code += &format!("-changed-{:08x}", crc32c::crc32c(&changes));
    }
    code
}
