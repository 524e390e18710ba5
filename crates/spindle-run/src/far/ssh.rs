//! Bringing this program to another machine and starting it there, by the system's own `ssh`. One connection does all
//! of it: a shell there makes a directory, takes the program from its standard input, and starts it. The program
//! removes itself when it starts; the shell removes what is left when it ends, or when the connection ends before.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use spindle_engines::sql::MachineAccess;
use spindle_system::{SystemTree, processes};
use spindle_text::plain::shortened;

use super::FarError;
use super::error::SAID_LENGTH_MAX;
use super::pipes::{Input, Lines, Unsent};

/// The client that the system has.
const CLIENT: &str = "ssh";
/// Longest time to wait for the login, and for each answer after it.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Interval between checks whether the person wants to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How much is kept of what the client said to people.
const WORDS_BYTES_MAX: usize = 2_000;
/// Lines of ours begin so; others are of whatever the other side says at a login.
const MARK: &str = "spindle: ";

/// What makes the client log in without a question, notice a dead connection, and open no door for others.
const OPTIONS: &[&str] = &[
    "-T",
    "-a",
    "-x",
    "-oBatchMode=yes",
    "-oConnectTimeout=10",
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=3",
    "-oClearAllForwardings=yes",
    "-oControlMaster=no",
    "-oControlPath=none",
];

/// What the shell there does, on one line and without single quotes, so that any login shell hands it on. `NAME` and
/// `BYTES` are filled in. It says what the machine is; a run that finds it wrong hangs up, and nothing was
/// made. A directory on which nothing may be executed does not count.
const SCRIPT: &str = "umask 077; echo \"spindle: machine $(uname -s) $(uname -m)\"; read -r go || exit 0; d=; \
    for t in \"$TMPDIR\" /tmp /var/tmp \"$HOME\"; do [ -n \"$t\" ] || continue; \
    mkdir \"$t/NAME\" 2>/dev/null || continue; : >\"$t/NAME/spindle\"; chmod 700 \"$t/NAME/spindle\"; \
    if [ -x \"$t/NAME/spindle\" ]; then d=\"$t/NAME\"; break; fi; rm -rf \"$t/NAME\"; done; \
    if [ -z \"$d\" ]; then echo \"spindle: no-place\"; exit 0; fi; \
    trap \"rm -rf \\\"$d\\\"\" EXIT; trap \"exit 1\" HUP INT TERM PIPE; \
    echo \"spindle: place $d\"; head -c BYTES >\"$d/spindle\"; \
    if [ \"$(wc -c <\"$d/spindle\")\" -eq BYTES ]; then \"$d/spindle\" COMMAND --made-for-it \"$d\"; fi";

/// The client at work, with this program at its other end.
pub(super) struct Connection {
    child: Child,
    input: Input,
    /// The lines that the other side says.
    lines: Lines,
    /// What the client, and the shell there, said to people.
    words: Arc<Mutex<String>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The other side ends with its input; the client ends with that.
        self.input.close();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK / 10);
        }
        // It may have ended just now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Connection {
    /// Logs in and starts this program there with a command; `token` is in the name of the directory that is made for
    /// it. Ends early once `interrupted`.
    ///
    /// # Errors
    /// See [`FarError`].
    pub fn open(
        way: &MachineAccess,
        (command, token): (&str, &str),
        interrupted: &AtomicBool,
    ) -> Result<Connection, FarError> {
        let program = processes::own_program(&SystemTree::default());
        let (host, identity_file) = match way {
            MachineAccess::Here => return Connection::of(Command::new(program).arg(command)),
            MachineAccess::Ssh {
                host,
                identity_file,
            } => (host, identity_file),
        };
        let program = std::fs::read(program).map_err(FarError::OwnProgram)?;
        let script = SCRIPT
            .replace("NAME", &format!("spindle-{command}-{token}"))
            .replace("BYTES", &program.len().to_string())
            .replace("COMMAND", command);
        let mut client = Command::new(CLIENT);
        client.args(OPTIONS);
        client.args(host.port.map(|port| format!("-p{port}")));
        if let Some(file) = identity_file {
            client.arg("-i").arg(file);
        }
        client.arg("--").arg(host.destination());
        let mut connection = Connection::of(client.arg(format!("exec sh -c '{script}'")))?;
        connection.bring(way, &program, interrupted)?;
        Ok(connection)
    }

    /// Brings the program to a shell that waits for it.
    fn bring(
        &mut self,
        way: &MachineAccess,
        program: &[u8],
        interrupted: &AtomicBool,
    ) -> Result<(), FarError> {
        let machine = self.word(way, "machine ", interrupted)?;
        let own = format!("Linux {}", std::env::consts::ARCH);
        if machine != own {
            return Err(FarError::OtherMachine {
                way: Box::new(way.clone()),
                machine: shortened(&machine, SAID_LENGTH_MAX).into_owned(),
                own,
            });
        }
        self.send(way, b"go\n", interrupted)?;
        let place = self.word(way, "", interrupted)?;
        if !place.starts_with("place ") {
            return Err(FarError::NoPlace {
                way: Box::new(way.clone()),
            });
        }
        self.send(way, program, interrupted)
    }

    /// Starts what makes the connection.
    fn of(command: &mut Command) -> Result<Connection, FarError> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // An interrupt at the terminal is the run's to handle.
            .process_group(0);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FarError::NoClient,
            _ => FarError::Client(error),
        })?;
        let input = child.stdin.take().expect("it is a pipe");
        let output = child.stdout.take().expect("it is a pipe");
        let words = Arc::new(Mutex::new(String::new()));
        let said = Arc::clone(&words);
        let errors = child.stderr.take().expect("it is a pipe");
        std::thread::spawn(move || keep_words(errors, &said));
        Ok(Connection {
            child,
            input: Input::to(input),
            lines: Lines::of(output),
            words,
        })
    }

    /// Waits for a line of the shell there that begins so; the rest of it.
    fn word(
        &mut self,
        way: &MachineAccess,
        begin: &str,
        interrupted: &AtomicBool,
    ) -> Result<String, FarError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let line = self.line(way, until, interrupted)?;
            let ours = line.strip_prefix(MARK);
            if let Some(rest) = ours.and_then(|ours| ours.strip_prefix(begin)) {
                return Ok(rest.trim().to_owned());
            }
        }
    }

    /// Waits for a line until some moment.
    pub fn line(
        &mut self,
        way: &MachineAccess,
        until: Instant,
        interrupted: &AtomicBool,
    ) -> Result<String, FarError> {
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return Err(FarError::Interrupted);
            }
            let is_late = Instant::now() >= until;
            match self.lines.next(LOOK) {
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended(way)),
                _ if is_late => {
                    return Err(FarError::Silent {
                        way: Box::new(way.clone()),
                    });
                }
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Sends bytes to the other side.
    pub fn send(
        &mut self,
        way: &MachineAccess,
        bytes: &[u8],
        interrupted: &AtomicBool,
    ) -> Result<(), FarError> {
        let sent = self.input.send(bytes, PATIENCE, interrupted);
        sent.map_err(|unsent| match unsent {
            Unsent::Gone => self.ended(way),
            Unsent::Stuck => FarError::Silent {
                way: Box::new(way.clone()),
            },
            Unsent::Interrupted => FarError::Interrupted,
        })
    }

    /// The way to the other side, for who has to say something now and then.
    pub fn input(&self) -> Input {
        self.input.clone()
    }

    /// A line that has already arrived.
    pub fn line_there(&mut self) -> Option<String> {
        self.lines.next(Duration::ZERO).ok()
    }

    /// Why the connection ended: the other side said too much, or in the client's own words, with what to do.
    pub fn ended(&mut self, way: &MachineAccess) -> FarError {
        self.input.close();
        // What it said last, or why nothing more is read, may still be on the way.
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None))
            && self.lines.excess().is_none()
            && began.elapsed() < PATIENCE / 15
        {
            std::thread::sleep(LOOK / 10);
        }
        if self.lines.excess().is_none() {
            std::thread::sleep(LOOK / 2);
        }
        if let Some(excess) = self.lines.excess() {
            return FarError::Excess {
                way: Box::new(way.clone()),
                said: excess.to_string(),
            };
        }
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        FarError::of_client(way, words.trim())
    }
}

fn keep_words(mut errors: impl Read, words: &Mutex<String>) {
    let mut buffer = [0; 512];
    while let Ok(bytes @ 1..) = errors.read(&mut buffer) {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() < WORDS_BYTES_MAX {
            // A text can be written to without an error.
            let _ = write!(words, "{}", String::from_utf8_lossy(&buffer[..bytes]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_shell_is_told_can_be_handed_on_by_any_other() {
        for character in ['\'', '!', '\n', '`'] {
            assert!(!SCRIPT.contains(character), "{character:?}");
        }
    }
}
