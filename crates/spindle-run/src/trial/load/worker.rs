//! The program on a load machine: some of a trial's clients. It ends when the trial no longer listens, and its sessions
//! on the server with it.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use spindle_engines::EngineError;
use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{Address, Password, remote_server};
use spindle_io::Env;
use spindle_io::real::facts::monotonic_ns;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::driver::Running;

use super::super::open_loop;
use super::super::start::join;
use super::counts::{LoadCounts, LoadRecord};
use super::words::{LoadSaid, LoadWord, Orders, Stretch, Tick};
use crate::far::other_side::{self, say};

/// Does as it is told; the whole of the process. The directory that was made for its file goes at once.
pub fn run(made_for_it: Option<&Path>) -> ! {
    raise_limit_of_open_files();
    let words = other_side::begin(made_for_it);
    if let Err(error) = block_on(obey(&words)) {
        say(&LoadSaid::Failed(error));
    }
    // What was said may still be on the way; the end of the connection ends this.
    loop {
        let _ = words.recv();
    }
}

/// Clients at work.
struct Clients {
    env: Arc<dyn Env>,
    orders: Orders,
    running: Running,
    // After the clients, which are connected to it.
    _engine: Arc<dyn RunningEngine>,
}

async fn obey(words: &Receiver<LoadWord>) -> Result<(), EngineError> {
    let mut clients: Option<Clients> = None;
    while let Ok(word) = words.recv() {
        match (word, &mut clients) {
            (LoadWord::Look { address, password }, _) => {
                say(&LoadSaid::Looked(look(&address, password.as_ref())));
            }
            (LoadWord::Open(orders), _) => {
                clients = Some(Clients::open(*orders).await?);
                say(&LoadSaid::Opened);
            }
            (LoadWord::Begin { at_ns }, Some(clients)) => clients.begin(at_ns).await?,
            (LoadWord::Watch(stretch), Some(clients)) => clients.watch(stretch).await?,
            (LoadWord::Stop, Some(clients)) => clients.stop().await?,
            (other, None) => {
                return Err(EngineError::other(format!(
                    "a load machine without clients was told {other:?}"
                )));
            }
        }
    }
    Ok(())
}

fn look(address: &Address, password: Option<&Password>) -> Result<(), EngineError> {
    let found = remote_server(address.scheme).look(address, password);
    found.map(|_| ())
}

/// Lets every client have its connection: a login by `ssh` often has a limit of 1024 open files, which may be raised.
fn raise_limit_of_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // A client that finds no place for its connection says so.
    let _ = setrlimit(Resource::Nofile, most);
}

/// Sleeps until a moment of this machine's clock.
async fn sleep_until(env: &dyn Env, moment_ns: u64) {
    let wait_ns = moment_ns.saturating_sub(monotonic_ns());
    if wait_ns > 0 {
        env.sleep(wait_ns).await;
    }
}

impl Clients {
    /// Connects the clients, and lets them pause before their first transaction.
    async fn open(orders: Orders) -> Result<Clients, EngineError> {
        let task = &orders.task;
        let env: Arc<dyn Env> = RealEnv::new(task.seed);
        let engine = join(task)?;
        let mut behaviour = task.workload.behaviour(task.clients);
        behaviour.part = Some(orders.part);
        if behaviour.arrivals.is_some() {
            open_loop::begin_on_time();
        }
        let running = engine.start_clients(&env, behaviour);
        running.pause().await;
        let clients = Clients {
            env,
            orders,
            running,
            _engine: engine,
        };
        clients.check()?;
        Ok(clients)
    }

    /// Fails when a client has.
    fn check(&self) -> Result<(), EngineError> {
        self.running
            .failure()
            .map_or(Ok(()), |error| Err(error.into()))
    }

    async fn begin(&self, at_ns: u64) -> Result<(), EngineError> {
        sleep_until(&*self.env, at_ns).await;
        // What was due while they paused is dropped.
        self.running.begun(self.orders.task.workload.arrivals).await;
        self.running.go_on();
        say(&LoadSaid::Begun);
        self.check()
    }

    async fn watch(&self, stretch: Stretch) -> Result<(), EngineError> {
        sleep_until(&*self.env, stretch.from_ns).await;
        if stretch.measured {
            self.running.measure(true);
            self.say_counts();
        }
        for moment_ns in stretch.ticks() {
            sleep_until(&*self.env, moment_ns).await;
            self.check()?;
            say(&LoadSaid::Tick(Tick {
                at_ns: monotonic_ns(),
                committed: self.running.committed(),
                backlog: self.running.backlog(self.env.now()),
            }));
        }
        if stretch.measured {
            self.running.measure(false);
            self.say_counts();
        }
        Ok(())
    }

    fn say_counts(&self) {
        let counts = LoadCounts::of(&self.running, self.env.now());
        say(&LoadSaid::Counts(Box::new(counts)));
    }

    async fn stop(&mut self) -> Result<(), EngineError> {
        self.running.stop().await?;
        let LoadRecord { kinds, rest } = LoadRecord::of(&self.running);
        // A line has a length at most: kinds of transactions may be many.
        for kind in kinds {
            say(&LoadSaid::Kind(Box::new(kind)));
        }
        say(&LoadSaid::Ended(Box::new(rest)));
        Ok(())
    }
}
