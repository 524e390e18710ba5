//! The process of a trial. It opens the database, waits for leave to begin, runs the clients, and reports what it and
//! the system counted over exactly the measured time. It writes nothing but the database's files.

use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use spindle_engines::sql::said_of_full_disks;
use spindle_engines::{EngineError, ErrorKind};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on, facts};
use spindle_workload::{TrialPace, driver};

use super::channel::say;
use super::heartbeat::Heartbeat;
use super::load::clients::LoadClients;
use super::load::spread::SpreadLoad;
use super::measurement::{Measurement, milliseconds};
use super::protocol::{Order, Task, TrialDatabase, TrialOutcome, WordToWorker, WorkerReport};
use super::start::start;
use super::{channel, limit_probe, open_loop, own_cost};
use crate::panics;
use spindle_result::TrialTimes;

/// Carries out the order on standard input; the whole of the process.
pub fn run() -> ! {
    // If the run dies without a word, so does the trial.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let mut lines = BufReader::new(std::io::stdin()).lines();
    let order: Option<Order> = lines
        .next()
        .and_then(Result::ok)
        .and_then(|line| serde_json::from_str(&line).ok());
    let Some(order) = order else {
        say(&WorkerReport::Failed {
            error: EngineError::other("the worker was given no order it understands"),
        });
        std::process::exit(1);
    };
    let report = match order {
        Order::Trial(task) => panics::told(channel::to_people, || {
            block_on(measure(&task, lines))
                .map(|outcome| WorkerReport::Done(Box::new(outcome)))
                .map_err(|error| with_its_place(&task.database, error))
        }),
        Order::OwnCost(task) => panics::told(channel::to_people, || {
            exit_with_run(lines);
            Ok(WorkerReport::OwnCost(block_on(own_cost::measure(&task))?))
        }),
        Order::LimitProbe(task) => panics::told(channel::to_people, || {
            exit_with_run(lines);
            let exceeded = block_on(limit_probe::probe(&task))?;
            Ok(WorkerReport::LimitProbed { exceeded })
        }),
    };
    say(&report.unwrap_or_else(|error| WorkerReport::Failed { error }));
    std::process::exit(0);
}

/// Ends this process when the run does.
fn exit_with_run(lines: impl Iterator<Item = std::io::Result<String>> + Send + 'static) {
    std::thread::spawn(move || {
        lines.for_each(drop);
        std::process::exit(1);
    });
}

/// Hears the run from now on, and ends this process when the run does.
fn words_of_run(
    lines: impl Iterator<Item = std::io::Result<String>> + Send + 'static,
) -> Receiver<WordToWorker> {
    let (sender, words) = mpsc::channel();
    std::thread::spawn(move || {
        let heard = lines.map_while(|line| serde_json::from_str(&line.ok()?).ok());
        for word in heard {
            // A trial that is over hears no more.
            let _ = sender.send(word);
        }
        std::process::exit(1);
    });
    words
}

/// What clients of the embedded database will share; others have no budget of exactly what is in it.
fn shared_bytes(task: &Task) -> u64 {
    let TrialDatabase::Kernel(kernel) = &task.database else {
        return 0;
    };
    let workload = &task.workload;
    let of_rows = workload.of_rows(task.size_bytes, &kernel.spec, task.data_seed);
    driver::shared_bytes(&*of_rows, &workload.behaviour(task.clients))
}

async fn measure(
    task: &Task,
    lines: impl Iterator<Item = std::io::Result<String>> + Send + 'static,
) -> Result<TrialOutcome, EngineError> {
    let env: Arc<dyn Env> = RealEnv::new(task.seed);
    let began = Instant::now();
    let engine = start(task, &env).await?;
    let spread = match &task.database {
        TrialDatabase::Remote(schema) if !task.load.is_empty() => {
            Some(SpreadLoad::open(task, schema)?)
        }
        _ => None,
    };
    let start_ms = milliseconds(began);
    say(&WorkerReport::Opened {
        shared_bytes: shared_bytes(task),
    });
    let words = words_of_run(lines);
    if words.recv() != Ok(WordToWorker::Begin) {
        return Err(EngineError::new(ErrorKind::Interrupted, "the run ended"));
    }
    let instance_bytes = facts::anonymous_bytes();
    let behaviour = task.workload.behaviour(task.clients);
    let pace = task.workload.transactions.settings().pace();
    if behaviour.arrivals.is_some() || pace == TrialPace::Recorded {
        open_loop::begin_on_time();
    }
    let heartbeat = Heartbeat::start(engine.counters().processes()).map_err(|error| {
        EngineError::failed("starting the thread that watches for standstills", error)
    })?;
    let cache_at_start = engine.counters().cache();
    let started_ns = env.now();
    let load = match spread {
        Some(spread) => LoadClients::Spread(Box::new(spread)),
        None => LoadClients::Here(engine.start_clients(&env, behaviour)),
    };
    let measurement = Measurement {
        task,
        env: &env,
        engine: &engine,
        load,
        started_ns,
        cache_at_start,
        instance_bytes,
        words,
        times: TrialTimes {
            start_ms,
            ..TrialTimes::default()
        },
    };
    let mut outcome = measurement.carry_out(heartbeat).await?;
    let began = Instant::now();
    let written = engine.stop().await?;
    outcome.times.stop_ms = milliseconds(began);
    outcome.written = written
        .into_iter()
        .map(|(place, blocks)| (place, runs(&blocks)))
        .collect();
    Ok(outcome)
}

/// What a server or a connection did not say itself: that its disk is full, or where it is.
fn with_its_place(database: &TrialDatabase, error: EngineError) -> EngineError {
    match (database, error.kind()) {
        (TrialDatabase::Server(server), kind) if kind != ErrorKind::NoRoom => {
            let places = server.directories.named();
            let full = said_of_full_disks(places.map(|(_, path)| path));
            match full.is_empty() {
                true => error,
                false => EngineError::new(ErrorKind::NoRoom, format!("{error}{full}")),
            }
        }
        (TrialDatabase::Remote(schema), kind @ ErrorKind::ServerGone) => {
            let way = match schema.address.reach.stays_here() {
                true => "Does the server still work?",
                false => "Does it still work, and the network to it?",
            };
            EngineError::new(
                kind,
                format!("{error}; the server is {}. {way}", schema.address),
            )
        }
        _ => error,
    }
}

/// Sorted numbers as runs of first and count.
fn runs(blocks: &[u64]) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &block in blocks {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == block => *count += 1,
            _ => runs.push((block, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_engines::sql::{Address, Schema, SchemaKind};

    #[test]
    fn neighbours_make_one_run() {
        assert_eq!(runs(&[1, 2, 3, 7, 9, 10]), vec![(1, 3), (7, 1), (9, 2)]);
        assert_eq!(runs(&[]), vec![]);
    }

    #[test]
    fn a_lost_connection_is_told_with_the_server() {
        let database = |address: &str| {
            TrialDatabase::Remote(Box::new(Schema {
                address: Address::parse(address).unwrap(),
                password_variable: None,
                password: None,
                kind: SchemaKind::default(),
                name: "spindle_1".to_owned(),
                token: String::new(),
            }))
        };
        let lost = |address| {
            let error = EngineError::new(ErrorKind::ServerGone, "Connection reset by peer");
            with_its_place(&database(address), error).to_string()
        };
        let told = lost("postgres://ann:secret@db.example.com:5433/shop");
        assert!(
            told.starts_with(
                "Connection reset by peer; the server is postgres://ann@db.example.com:5433/shop"
            ) && told.ends_with("the network to it?"),
            "{told}"
        );
        let told = lost("mysql://ann@127.0.0.1:3306/shop");
        assert!(told.ends_with("Does the server still work?"), "{told}");
        let other = EngineError::new(ErrorKind::Failed, "syntax error");
        let address = database("mysql://ann@db/shop");
        assert_eq!(with_its_place(&address, other.clone()), other);
    }
}
