//! The run's side of an agent: it starts one, reads its clock, has it look, and takes what it saw.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use spindle_engines::sql::{ServerHome, SshHost};
use spindle_io::real::facts::monotonic_ns;
use spindle_system::SystemTree;
use spindle_text::plain::shortened;

use super::AgentError;
use super::clock::{ClockLine, ClockReading, RoundTrip};
use super::error::SAID_LENGTH_MAX;
use super::pipes::{Input, Unsent};
use super::protocol::{Answer, Ask, Hello, PROTOCOL, SILENCE, Seen, Watch, Watching};
use super::ssh::{Connection, PATIENCE};

/// Round trips of a reading, at most; fewer when time runs out, but always some.
const TRIPS_MAX: u64 = 16;
const TRIPS_MIN: u64 = 4;
const TRIPS_TIME_MAX: Duration = Duration::from_secs(1);
/// An agent is told this often that its run is alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(SILENCE.as_secs() / 6);
/// Number of a question that needs no answer.
const UNASKED: u64 = 0;

/// An agent at work.
pub struct Agent {
    host: SshHost,
    // Dropped first: what keeps the other side awake ends before the connection does.
    _signs: Sender<()>,
    connection: Connection,
    hello: Hello,
    questions: u64,
    seen: Vec<Seen>,
    watching: Option<Watching>,
}

/// What an agent saw in a trial.
#[derive(Debug)]
pub struct Watched {
    /// Its clock.
    pub line: ClockLine,
    /// Its looks, in order.
    pub seen: Vec<Seen>,
    /// Time between them.
    pub interval_ms: u64,
    /// Why it ended before the trial did, if so.
    pub gone: Option<AgentError>,
}

/// A trial that is being looked at.
#[derive(Debug, Clone, Copy)]
pub struct WatchingTrial {
    first: ClockReading,
    interval_ms: u64,
}

impl Agent {
    /// Brings this program to a host and starts it there. Ends early once `interrupted`.
    ///
    /// # Errors
    /// See [`AgentError`].
    pub fn start(host: &SshHost, interrupted: &AtomicBool) -> Result<Agent, AgentError> {
        let token = SystemTree::default().random_uuid().unwrap_or_default();
        let mut connection = Connection::open(host, token.trim(), interrupted)?;
        let hello = hello_of(&mut connection, host, interrupted)?;
        if hello.protocol != PROTOCOL {
            return Err(AgentError::OtherVersion {
                host: host.clone(),
                version: hello.version,
                protocol: hello.protocol,
            });
        }
        Ok(Agent {
            host: host.clone(),
            _signs: give_signs_of_life(connection.input()),
            connection,
            hello,
            questions: UNASKED,
            seen: Vec::new(),
            watching: None,
        })
    }

    /// Where it is.
    pub fn host(&self) -> &SshHost {
        &self.host
    }

    /// Its machine, in words.
    pub fn machine(&self) -> &str {
        &self.hello.machine
    }

    /// Reads its clock.
    ///
    /// # Errors
    /// It is gone.
    pub fn read_clock(&mut self, interrupted: &AtomicBool) -> Result<ClockReading, AgentError> {
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

    fn round_trip(&mut self, interrupted: &AtomicBool) -> Result<RoundTrip, AgentError> {
        self.questions += 1;
        let question = self.questions;
        let asked_ns = monotonic_ns();
        self.ask(&Ask::Clock { number: question }, interrupted)?;
        let until = Instant::now() + PATIENCE;
        loop {
            let line = self.connection.line(&self.host, until, interrupted)?;
            let back_ns = monotonic_ns();
            if let Answer::Clock { number, at_ns } = self.understand(line)?
                && number == question
            {
                return Ok(RoundTrip {
                    asked_ns,
                    there_ns: at_ns,
                    back_ns,
                });
            }
        }
    }

    /// Looks once at what there is of a server.
    ///
    /// # Errors
    /// It is gone.
    pub fn look(
        &mut self,
        home: &ServerHome,
        interrupted: &AtomicBool,
    ) -> Result<Watching, AgentError> {
        self.watching = None;
        let watch = Watch {
            home: home.clone(),
            interval_ms: SILENCE.as_millis() as u64,
        };
        self.ask(&Ask::Watch(watch), interrupted)?;
        let until = Instant::now() + PATIENCE;
        let watching = loop {
            if let Some(watching) = self.watching.take() {
                break watching;
            }
            let line = self.connection.line(&self.host, until, interrupted)?;
            self.understand(line)?;
        };
        self.ask(&Ask::Rest, interrupted)?;
        Ok(watching)
    }

    /// Has it look at a server from now on.
    ///
    /// # Errors
    /// It is gone.
    pub fn watch(
        &mut self,
        home: &ServerHome,
        interval_ms: u64,
        interrupted: &AtomicBool,
    ) -> Result<WatchingTrial, AgentError> {
        let first = self.read_clock(interrupted)?;
        self.seen.clear();
        let watch = Watch {
            home: home.clone(),
            interval_ms,
        };
        self.ask(&Ask::Watch(watch), interrupted)?;
        Ok(WatchingTrial { first, interval_ms })
    }

    /// Has it look no more; what it saw.
    pub fn rest(&mut self, trial: WatchingTrial, interrupted: &AtomicBool) -> Watched {
        let last = self
            .ask(&Ask::Rest, interrupted)
            .and_then(|()| self.read_clock(interrupted));
        // One that is gone may have said something before.
        while let Some(line) = self.connection.line_there() {
            if self.understand(line).is_err() {
                break;
            }
        }
        let WatchingTrial { first, interval_ms } = trial;
        Watched {
            line: ClockLine {
                first,
                last: *last.as_ref().unwrap_or(&first),
            },
            seen: std::mem::take(&mut self.seen),
            interval_ms,
            gone: last.err(),
        }
    }

    fn ask(&mut self, ask: &Ask, interrupted: &AtomicBool) -> Result<(), AgentError> {
        let line = line_of(ask);
        self.connection
            .send(&self.host, line.as_bytes(), interrupted)
    }

    /// Keeps what a line says that is no answer to a question.
    fn understand(&mut self, line: String) -> Result<Answer, AgentError> {
        let answer = serde_json::from_str(&line)
            .map_err(|_| AgentError::not_understood(self.host.clone(), &line))?;
        match &answer {
            Answer::Seen(seen) => self.seen.push((**seen).clone()),
            Answer::Watching(watching) => self.watching = Some(watching.clone()),
            Answer::Hello(_) | Answer::Clock { .. } => {}
        }
        Ok(answer)
    }
}

fn line_of(ask: &Ask) -> String {
    let line = serde_json::to_string(ask).expect("it holds only strings, numbers and lists");
    line + "\n"
}

/// Waits for the first word of an agent. Of other versions, too, it has the fields that matter.
fn hello_of(
    connection: &mut Connection,
    host: &SshHost,
    interrupted: &AtomicBool,
) -> Result<Hello, AgentError> {
    let line = connection.line(host, Instant::now() + PATIENCE, interrupted)?;
    match serde_json::from_str(&line) {
        Ok(Answer::Hello(hello)) => Ok(Hello {
            version: shortened(&hello.version, SAID_LENGTH_MAX).into_owned(),
            machine: shortened(&hello.machine, SAID_LENGTH_MAX).into_owned(),
            ..hello
        }),
        _ => Err(AgentError::not_understood(host.clone(), &line)),
    }
}

/// Says now and then that the run is there, until what is returned is dropped.
fn give_signs_of_life(input: Input) -> Sender<()> {
    let (sender, ended) = mpsc::channel::<()>();
    let sign = line_of(&Ask::Clock { number: UNASKED });
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
