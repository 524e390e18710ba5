//! This side of a program on another machine: it starts one, reads its clock, tells it words and hears its own.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use spindle_io::real::facts::monotonic_ns;
use spindle_system::SystemTree;
use spindle_text::plain::shortened;

use super::FarError;
use super::clock::{ClockReading, RoundTrip};
use super::error::SAID_LENGTH_MAX;
use super::pipes::{Input, Unsent};
use super::protocol::{FarAnswer, FarAsk, Hello, PROTOCOL, SILENCE};
pub use super::ssh::PATIENCE;
use super::ssh::{Connection, MachineAccess};

/// Round trips of a reading, at most; fewer when time runs out, but always some.
const TRIPS_MAX: u64 = 16;
const TRIPS_MIN: u64 = 4;
const TRIPS_TIME_MAX: Duration = Duration::from_secs(1);
/// It is told this often that its run is alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(SILENCE.as_secs() / 6);
/// Number of a question that needs no answer.
const UNASKED: u64 = 0;

/// A program at work on another machine, which is told `W` and says `S`.
pub struct FarMachine<W, S> {
    way: MachineAccess,
    // Dropped first: what keeps the other side awake ends before the connection does.
    _signs: Sender<()>,
    connection: Connection,
    hello: Hello,
    questions: u64,
    /// What it said that was not taken yet.
    said: VecDeque<S>,
    tells: PhantomData<fn(W)>,
}

impl<W: Serialize, S: DeserializeOwned> FarMachine<W, S> {
    /// Brings this program to a machine and starts it there with a command. Ends early once `interrupted`.
    ///
    /// # Errors
    /// See [`FarError`].
    pub fn start(
        way: &MachineAccess,
        command: &str,
        interrupted: &AtomicBool,
    ) -> Result<FarMachine<W, S>, FarError> {
        let token = SystemTree::default().random_uuid().unwrap_or_default();
        let mut connection = Connection::open(way, (command, token.trim()), interrupted)?;
        let hello = hello_of::<S>(&mut connection, way, interrupted)?;
        if hello.protocol != PROTOCOL {
            return Err(FarError::OtherVersion {
                way: Box::new(way.clone()),
                version: hello.version,
                protocol: hello.protocol,
            });
        }
        Ok(FarMachine {
            way: way.clone(),
            _signs: give_signs_of_life(connection.input()),
            connection,
            hello,
            questions: UNASKED,
            said: VecDeque::new(),
            tells: PhantomData,
        })
    }

    /// The way there.
    pub fn way(&self) -> &MachineAccess {
        &self.way
    }

    /// Its machine, in words.
    pub fn described(&self) -> &str {
        &self.hello.machine
    }

    /// Reads its clock.
    ///
    /// # Errors
    /// It is gone.
    pub fn read_clock(&mut self, interrupted: &AtomicBool) -> Result<ClockReading, FarError> {
        let began = Instant::now();
        let mut trips = Vec::new();
        for count in 0..TRIPS_MAX {
            if count >= TRIPS_MIN && began.elapsed() > TRIPS_TIME_MAX {
                break;
            }
            trips.push(self.round_trip(interrupted)?);
        }
        Ok(ClockReading::of(&trips).expect("there were some"))
    }

    fn round_trip(&mut self, interrupted: &AtomicBool) -> Result<RoundTrip, FarError> {
        self.questions += 1;
        let question = self.questions;
        let asked_ns = monotonic_ns();
        self.ask(&FarAsk::Clock { number: question }, interrupted)?;
        let until = Instant::now() + PATIENCE;
        loop {
            let line = self.connection.line(&self.way, until, interrupted)?;
            let back_ns = monotonic_ns();
            match self.understand(&line)? {
                FarAnswer::Clock { number, at_ns } if number == question => {
                    return Ok(RoundTrip {
                        asked_ns,
                        there_ns: at_ns,
                        back_ns,
                    });
                }
                FarAnswer::Word(word) => self.said.push_back(word),
                FarAnswer::Hello(_) | FarAnswer::Clock { .. } => {}
            }
        }
    }

    /// Tells it something.
    ///
    /// # Errors
    /// It is gone.
    pub fn tell(&mut self, word: W, interrupted: &AtomicBool) -> Result<(), FarError> {
        self.ask(&FarAsk::Word(word), interrupted)
    }

    /// What it says next; `until`: as long as the connection lasts, if there is no such moment.
    ///
    /// # Errors
    /// It is gone, or says nothing in time.
    pub fn hear(
        &mut self,
        until: Option<Instant>,
        interrupted: &AtomicBool,
    ) -> Result<S, FarError> {
        loop {
            if let Some(word) = self.said.pop_front() {
                return Ok(word);
            }
            let moment = until.unwrap_or_else(|| Instant::now() + PATIENCE);
            match self.connection.line(&self.way, moment, interrupted) {
                Err(FarError::Silent { .. }) if until.is_none() => {}
                Err(error) => return Err(error),
                Ok(line) => {
                    if let FarAnswer::Word(word) = self.understand(&line)? {
                        return Ok(word);
                    }
                }
            }
        }
    }

    /// Everything that it has said by now. One that is gone may have said something before.
    pub fn heard(&mut self) -> Vec<S> {
        let mut all: Vec<S> = self.said.drain(..).collect();
        while let Some(line) = self.connection.line_there() {
            match self.understand(&line) {
                Ok(FarAnswer::Word(word)) => all.push(word),
                Ok(FarAnswer::Hello(_) | FarAnswer::Clock { .. }) => {}
                Err(_) => break,
            }
        }
        all
    }

    fn ask(&mut self, ask: &FarAsk<W>, interrupted: &AtomicBool) -> Result<(), FarError> {
        let line = line_of(ask);
        self.connection
            .send(&self.way, line.as_bytes(), interrupted)
    }

    fn understand(&self, line: &str) -> Result<FarAnswer<S>, FarError> {
        serde_json::from_str(line).map_err(|_| FarError::not_understood(&self.way, line))
    }
}

fn line_of(ask: &FarAsk<impl Serialize>) -> String {
    let line = serde_json::to_string(ask).expect("it holds only strings, numbers and lists");
    line + "\n"
}

/// Waits for its first word. Of other versions, too, it has the fields that matter.
fn hello_of<S: DeserializeOwned>(
    connection: &mut Connection,
    way: &MachineAccess,
    interrupted: &AtomicBool,
) -> Result<Hello, FarError> {
    let line = connection.line(way, Instant::now() + PATIENCE, interrupted)?;
    match serde_json::from_str::<FarAnswer<S>>(&line) {
        Ok(FarAnswer::Hello(hello)) => Ok(Hello {
            version: shortened(&hello.version, SAID_LENGTH_MAX).into_owned(),
            machine: shortened(&hello.machine, SAID_LENGTH_MAX).into_owned(),
            ..hello
        }),
        _ => Err(FarError::not_understood(way, &line)),
    }
}

/// Says now and then that the run is alive, until what is returned is dropped.
fn give_signs_of_life(input: Input) -> Sender<()> {
    let (sender, ended) = mpsc::channel::<()>();
    let sign = line_of(&FarAsk::<()>::Clock { number: UNASKED });
    std::thread::spawn(move || {
        while ended.recv_timeout(SIGN_OF_LIFE) == Err(RecvTimeoutError::Timeout) {
            // One that has not taken what was said before needs no further sign.
            if input.try_send(sign.as_bytes()) == Err(Unsent::Gone) {
                return;
            }
        }
    });
    sender
}
