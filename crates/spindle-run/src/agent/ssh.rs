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

use spindle_engines::sql::SshHost;
use spindle_system::{SystemTree, processes};
use spindle_text::plain::shortened;

use super::AgentError;
use super::error::SAID_LENGTH_MAX;
use super::pipes::{Input, Lines, Unsent};
use super::protocol::AGENT_COMMAND;

/// The client that the system has.
const CLIENT: &str = "ssh";
/// Logging in may take so long, and each later step until the other side has said what is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Whether the person wants to stop is looked at as often.
const LOOK: Duration = Duration::from_millis(50);
/// How much is kept of what the client said to people.
const WORDS_BYTES_MAX: usize = 2_000;
/// Lines of ours begin so; others are of whatever the other side says at a login.
const MARK: &str = "spindle-agent: ";

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
const SCRIPT: &str = "umask 077; echo \"spindle-agent: machine $(uname -s) $(uname -m)\"; read -r go || exit 0; d=; \
    for t in \"$TMPDIR\" /tmp /var/tmp \"$HOME\"; do [ -n \"$t\" ] || continue; \
    mkdir \"$t/NAME\" 2>/dev/null || continue; : >\"$t/NAME/spindle\"; chmod 700 \"$t/NAME/spindle\"; \
    if [ -x \"$t/NAME/spindle\" ]; then d=\"$t/NAME\"; break; fi; rm -rf \"$t/NAME\"; done; \
    if [ -z \"$d\" ]; then echo \"spindle-agent: no-place\"; exit 0; fi; \
    trap \"rm -rf \\\"$d\\\"\" EXIT; trap \"exit 1\" HUP INT TERM PIPE; \
    echo \"spindle-agent: place $d\"; head -c BYTES >\"$d/spindle\"; \
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
    /// Logs in and starts this program there. Ends early once `interrupted`.
    ///
    /// # Errors
    /// See [`AgentError`].
    pub fn open(
        host: &SshHost,
        token: &str,
        interrupted: &AtomicBool,
    ) -> Result<Connection, AgentError> {
        let program = std::fs::read(processes::own_program(&SystemTree::default()))
            .map_err(AgentError::OwnProgram)?;
        let mut connection = Connection::log_in(host, token, program.len())?;
        let machine = connection.word(host, "machine ", interrupted)?;
        let own = format!("Linux {}", std::env::consts::ARCH);
        if machine != own {
            return Err(AgentError::OtherMachine {
                host: host.clone(),
                machine: shortened(&machine, SAID_LENGTH_MAX).into_owned(),
                own,
            });
        }
        connection.send(host, b"go\n", interrupted)?;
        let place = connection.word(host, "", interrupted)?;
        if !place.starts_with("place ") {
            return Err(AgentError::NoPlace { host: host.clone() });
        }
        connection.send(host, &program, interrupted)?;
        Ok(connection)
    }

    fn log_in(host: &SshHost, token: &str, bytes: usize) -> Result<Connection, AgentError> {
        let script = SCRIPT
            .replace("NAME", &format!("spindle-agent-{token}"))
            .replace("BYTES", &bytes.to_string())
            .replace("COMMAND", AGENT_COMMAND);
        let mut command = Command::new(CLIENT);
        command.args(OPTIONS);
        if let Some(port) = host.port {
            command.arg(format!("-p{port}"));
        }
        command
            .arg("--")
            .arg(host.destination())
            .arg(format!("exec sh -c '{script}'"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // An interrupt at the terminal is the run's to handle.
            .process_group(0);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => AgentError::NoClient,
            _ => AgentError::Client(error),
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
        host: &SshHost,
        begin: &str,
        interrupted: &AtomicBool,
    ) -> Result<String, AgentError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let line = self.line(host, until, interrupted)?;
            let ours = line.strip_prefix(MARK);
            if let Some(rest) = ours.and_then(|ours| ours.strip_prefix(begin)) {
                return Ok(rest.trim().to_owned());
            }
        }
    }

    /// Waits for a line until some moment.
    pub fn line(
        &mut self,
        host: &SshHost,
        until: Instant,
        interrupted: &AtomicBool,
    ) -> Result<String, AgentError> {
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return Err(AgentError::Interrupted);
            }
            let is_late = Instant::now() >= until;
            match self.lines.next(LOOK) {
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended(host)),
                _ if is_late => return Err(AgentError::Silent { host: host.clone() }),
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Sends bytes to the other side.
    pub fn send(
        &mut self,
        host: &SshHost,
        bytes: &[u8],
        interrupted: &AtomicBool,
    ) -> Result<(), AgentError> {
        let sent = self.input.send(bytes, PATIENCE, interrupted);
        sent.map_err(|unsent| match unsent {
            Unsent::Gone => self.ended(host),
            Unsent::Stuck => AgentError::Silent { host: host.clone() },
            Unsent::Interrupted => AgentError::Interrupted,
        })
    }

    /// The way to the other side, for who has to say something now and then.
    pub fn input(&self) -> Input {
        self.input.clone()
    }

    /// A line that is there already.
    pub fn line_there(&mut self) -> Option<String> {
        self.lines.next(Duration::ZERO).ok()
    }

    /// Why the connection ended: the other side said too much, or in the client's own words, with what to do.
    pub fn ended(&mut self, host: &SshHost) -> AgentError {
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
            return AgentError::Excess {
                host: host.clone(),
                said: excess.to_string(),
            };
        }
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        AgentError::of_client(host.clone(), words.trim())
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
