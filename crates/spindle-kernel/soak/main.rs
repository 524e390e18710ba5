//! The soak: a million crashes, each recovered from and checked. Scenarios are drawn from one seed after the other;
//! each is run twice (one history?), crashed at some hundred of its I/Os with several kinds of damage, and its
//! recoveries are crashed in turn; the fixed scenario of much redo is crashed at every I/O. `make soak` runs it; stop
//! it as you like, it goes on where it was. It is an example to Cargo, so that `cargo test` builds it and does not run
//! it.

#![allow(clippy::disallowed_methods)] // It lives in the real world.

mod record;
#[allow(dead_code)] // Each test uses a part.
#[path = "../tests/all/simulated/mod.rs"]
mod simulated;
mod state;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use simulated::crashes::Crash;
use spindle_kernel::PlantedFault;
use state::State;
use work::{Item, PLANTED, plan, repeat};

/// Recoveries of a whole soak.
const POINTS: u64 = 1_000_000;

const USAGE: &str = "\
make soak, or make soak ARGS='OPTIONS':
  --points N      stop after N recoveries in all (default 1000000), those of earlier runs included
  --budget TIME   stop after so long: 90s, 20m, 2h
  --threads N     default: one for each processor
  --state DIR     where progress is kept (default target/soak)
  --record        write docs/soak.md from the progress so far, and stop
  --planted BUG   plant one of `PlantedFault`'s bugs everywhere: it must be found; progress is kept apart
  --seed S        do nothing but this seed (a number, or fast-redo)
  --crash IO/CUT  with --seed: only this crash; CUT is lose, keep or a seed of damage. Given again: crashes of recovery";

struct Options {
    points: u64,
    budget: Option<Duration>,
    threads: usize,
    state: PathBuf,
    record: bool,
    seed: Option<String>,
    crashes: Vec<Crash>,
}

fn main() -> ExitCode {
    if std::env::args().any(|word| word == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("{wrong}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // Losses are told below, with how to repeat them; the panics that led to them would only be noise.
    std::panic::set_hook(Box::new(|_| {}));
    match soak(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("{words}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options {
        points: POINTS,
        budget: None,
        threads: processors,
        state: PathBuf::from("target/soak"),
        record: false,
        seed: None,
        crashes: Vec::new(),
    };
    while let Some(option) = words.next() {
        let mut value = || words.next().ok_or(format!("{option} needs a value"));
        let number = |text: String| -> Result<u64, String> {
            let digits = text.replace('_', "");
            digits
                .parse()
                .map_err(|_| format!("{option}: `{text}` is no number"))
        };
        match option.as_str() {
            "--points" => options.points = number(value()?)?,
            "--budget" => options.budget = Some(duration(&value()?)?),
            "--threads" => options.threads = number(value()?)?.max(1) as usize,
            "--state" => options.state = PathBuf::from(value()?),
            "--record" => options.record = true,
            "--planted" => plant(&value()?)?,
            "--seed" => options.seed = Some(value()?),
            "--crash" => options.crashes.push(value()?.parse()?),
            _ => return Err(format!("there is no option `{option}`")),
        }
    }
    if !options.crashes.is_empty() && options.seed.is_none() {
        return Err("--crash needs the --seed whose scenario is to crash".to_string());
    }
    Ok(options)
}

fn plant(name: &str) -> Result<(), String> {
    let named = |fault: &&PlantedFault| format!("{fault:?}") == name;
    let fault = PlantedFault::ALL.iter().find(named);
    let fault = fault.ok_or_else(|| format!("--planted: there is no bug `{name}`"))?;
    PLANTED.get_or_init(|| *fault);
    Ok(())
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("--budget: `{text}` is no time: 90s, 20m or 2h");
    let split = text.len().checked_sub(1).ok_or_else(wrong)?;
    let (number, unit) = text.split_at_checked(split).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(number * seconds))
}

fn soak(options: &Options) -> Result<(), String> {
    if let Some(seed) = &options.seed {
        let item: Item = seed.parse()?;
        repeat(item, &options.crashes)?;
        println!("{item}: nothing was lost");
        return Ok(());
    }
    let directory = match PLANTED.get() {
        None => options.state.clone(),
        Some(fault) => options.state.join(format!("{fault:?}")),
    };
    let mut state = State::open(&directory)?;
    if options.record {
        return record::write(&state);
    }
    state.repeat_failures()?;
    let before = state.recoveries();
    if before > 0 {
        println!(
            "going on after {before} recoveries of {} items",
            state.done.len()
        );
    }
    run(options, &Mutex::new(&mut state))?;
    println!("{}", record::summary(&state));
    if state.recoveries() < options.points {
        println!("`make soak` goes on; `make soak ARGS=--record` writes docs/soak.md as it is");
        return Ok(());
    }
    record::write(&state)
}

/// Works items off on threads until there are points enough, time is up, or something is lost.
fn run(options: &Options, state: &Mutex<&mut State>) -> Result<(), String> {
    let began = Instant::now();
    let before = state.lock().unwrap().recoveries();
    let (next, loss) = (AtomicU64::new(0), Mutex::new(None));
    let plan = plan();
    let told = Mutex::new(began);
    let work = || {
        loop {
            let is_over = options
                .budget
                .is_some_and(|budget| began.elapsed() > budget);
            let has_all = state.lock().unwrap().recoveries() >= options.points;
            if is_over || has_all || loss.lock().unwrap().is_some() {
                return;
            }
            let item = plan.item(next.fetch_add(1, Ordering::Relaxed));
            if state.lock().unwrap().has(item) {
                continue;
            }
            let outcome = work::carry_out(item);
            let mut state = state.lock().unwrap();
            match outcome {
                Ok(done) => state.add(done),
                Err(lost) => {
                    state.add_failure(item, &lost);
                    loss.lock().unwrap().get_or_insert(work::tell(item, &lost));
                }
            }
            let mut told = told.lock().unwrap();
            if told.elapsed() > Duration::from_secs(5) {
                *told = Instant::now();
                progress(options, state.recoveries(), before, began.elapsed(), item);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(work);
        }
    });
    loss.into_inner().unwrap().map_or(Ok(()), Err)
}

fn progress(options: &Options, now: u64, before: u64, passed: Duration, item: Item) {
    let per_second = (now - before) as f64 / passed.as_secs_f64();
    let left = options.points.saturating_sub(now) as f64 / per_second;
    println!(
        "{now} of {} recoveries, {item} done, {per_second:.0} per second, {:.0} minutes left",
        options.points,
        (left / 60.0).ceil()
    );
}
