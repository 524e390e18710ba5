//! What a client and a server talk over: a socket of this machine, or a network's, which may be encrypted.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{Shutdown, sockopt};
use spindle_workload::SessionError;

use crate::sql::tls::{Encrypted, Tls, tls_error, words};

/// Asks a server to encrypt the connection ("SSLRequest": length, code), and what it answers when it will.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
const WILL: u8 = b'S';
const WILL_NOT: u8 = b'N';
/// How long a server on a network may take to answer at all.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long one that is connected may say nothing, until the client is logged in.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Keepalive for a silent server: the time before the first probe, the interval, and the number of probes. One that
/// does not take what was sent to it is given up after as long.
const SILENCE: Duration = Duration::from_secs(15);
const QUESTION: Duration = Duration::from_secs(5);
const QUESTIONS: u32 = 3;

const SILENT: &str = "it takes connections, but does not answer: is it a server of PostgreSQL, and does it still work?";

/// A way to a server and back.
pub(super) enum Stream {
    /// Over a socket of this machine.
    Unix(UnixStream),
    /// Over a network.
    Tcp(TcpStream),
    /// The same, encrypted; and what it is known by to SCRAM.
    Encrypted(Box<Encrypted>, Option<Vec<u8>>),
}

/// What became of a wish for encryption.
pub(super) enum EncryptionReply {
    /// It is.
    Encrypted(Stream),
    /// The server cannot, or will not, and waits for what comes next.
    Plain(Stream),
}

impl Stream {
    /// Connects to a socket of this machine.
    ///
    /// # Errors
    /// [`SessionError::Lost`]; so for the other.
    pub fn to_socket(path: &Path) -> Result<Stream, SessionError> {
        let stream = UnixStream::connect(path);
        stream
            .map(Stream::Unix)
            .map_err(|error| lost("the server's socket", &error))
    }

    /// Connects to a port of a host, by whichever of its addresses answers first in their order.
    pub fn to_host(host: &str, port: u16) -> Result<Stream, SessionError> {
        let wrong = |error: io::Error| lost(&format!("{host}, port {port}"), &error);
        let mut failure = io::Error::other("the name has no address");
        for address in (host, port).to_socket_addrs().map_err(wrong)? {
            let connected = TcpStream::connect_timeout(&address, CONNECT_LIMIT)
                .and_then(|stream| watched(&stream).map(|()| stream));
            match connected {
                Ok(stream) => return Ok(Stream::Tcp(stream)),
                Err(error) => failure = error,
            }
        }
        Err(wrong(failure))
    }

    /// Gives up when the server says nothing for 20 s; until [`Stream::wait_for_ever`].
    pub fn wait_for_answers(self) -> Result<Stream, SessionError> {
        let limited = self.set_patience(Some(ANSWER_LIMIT));
        limited.map_err(|error| lost("the server", &error))?;
        Ok(self)
    }

    /// A statement may take as long as it likes.
    ///
    /// # Errors
    /// [`SessionError::Lost`].
    pub fn wait_for_ever(&self) -> Result<(), SessionError> {
        self.answer_within(None)
    }

    /// One that has told an error is ready again at once, if it keeps to the protocol.
    ///
    /// # Errors
    /// [`SessionError::Lost`].
    pub fn wait_after_error(&self) -> Result<(), SessionError> {
        self.answer_within(Some(ANSWER_LIMIT))
    }

    /// Gives up when the server says nothing for this long; waits indefinitely without a limit.
    ///
    /// # Errors
    /// [`SessionError::Lost`].
    pub fn answer_within(&self, limit: Option<Duration>) -> Result<(), SessionError> {
        let limited = self.set_patience(limit);
        limited.map_err(|error| lost("the server", &error))
    }

    fn set_patience(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(limit),
            Stream::Tcp(stream) => stream.set_read_timeout(limit),
            Stream::Encrypted(stream, _) => stream.sock.set_read_timeout(limit),
        }
    }

    /// Ends whatever is waited for, from another thread: the way to the server is gone.
    ///
    /// # Errors
    /// The system's.
    pub fn breaker(&self) -> io::Result<impl FnOnce() + Send + use<>> {
        let socket = match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Encrypted(stream, _) => stream.sock.as_fd(),
        };
        let socket = socket.try_clone_to_owned()?;
        Ok(move || {
            // One that is gone need not be ended.
            let _ = rustix::net::shutdown(socket, Shutdown::Both);
        })
    }

    /// Asks for encryption, before anything else is said.
    ///
    /// # Errors
    /// The server is not to be trusted, or it says what no server says.
    pub fn ask_for(self, tls: &Tls) -> Result<EncryptionReply, SessionError> {
        let Stream::Tcp(mut stream) = self else {
            return Ok(EncryptionReply::Plain(self));
        };
        let mut answer = [0];
        // No byte more: what follows without encryption is not the server's (CVE-2021-23222).
        let asked = stream.write_all(&SSL_REQUEST);
        let asked = asked.and_then(|()| stream.read_exact(&mut answer));
        asked.map_err(|error| lost("the server, to ask it for encryption", &error))?;
        match answer[0] {
            WILL => {
                let encrypted = tls.encrypt(stream)?;
                let end_point = tls.end_point(&encrypted);
                let encrypted = Box::new(encrypted);
                Ok(EncryptionReply::Encrypted(Stream::Encrypted(
                    encrypted, end_point,
                )))
            }
            WILL_NOT => Ok(EncryptionReply::Plain(Stream::Tcp(stream))),
            _ => Err(SessionError::Failed(
                "the server does not know what encryption is, or has no room for another client"
                    .to_owned(),
            )),
        }
    }

    /// What an encrypted connection is; `None` for one that is not.
    pub fn encryption(&self) -> Option<String> {
        match self {
            Stream::Encrypted(encrypted, _) => Some(crate::sql::tls::version(&encrypted.conn)),
            _ => None,
        }
    }

    /// Whether what is said cannot be overheard on a network: it is encrypted, or does not leave this machine.
    pub fn is_private(&self) -> bool {
        match self {
            Stream::Unix(_) | Stream::Encrypted(..) => true,
            Stream::Tcp(stream) => stream
                .peer_addr()
                .is_ok_and(|address| address.ip().to_canonical().is_loopback()),
        }
    }

    /// What an encrypted connection is known by to SCRAM.
    pub fn end_point(&self) -> Option<&[u8]> {
        match self {
            Stream::Encrypted(_, end_point) => end_point.as_deref(),
            _ => None,
        }
    }
}

/// What an error of an encrypted connection means: that a server refuses a client is heard of when it is read from.
pub(super) fn meaning(error: &io::Error) -> SessionError {
    match tls_error(error) {
        Some(error) => SessionError::Failed(words(error, "this host")),
        None if is_silence(error) => SessionError::Lost(SILENT.to_owned()),
        None => SessionError::Lost(format!("the connection: {error}")),
    }
}

/// A message goes out at once; a host that has vanished is noticed (tcp(7)).
fn watched(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(stream, QUESTION)?;
    sockopt::set_tcp_keepcnt(stream, QUESTIONS)?;
    let patience = SILENCE + QUESTION * QUESTIONS;
    sockopt::set_tcp_user_timeout(stream, patience.as_millis() as u32)?;
    Ok(())
}

fn lost(what: &str, error: &io::Error) -> SessionError {
    match is_silence(error) {
        true => SessionError::Lost(format!("connecting to {what}: {SILENT}")),
        false => SessionError::Lost(format!("connecting to {what}: {error}")),
    }
}

/// How a socket says that its limit of time is over.
fn is_silence(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(into),
            Stream::Tcp(stream) => stream.read(into),
            Stream::Encrypted(stream, _) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(from),
            Stream::Tcp(stream) => stream.write(from),
            Stream::Encrypted(stream, _) => stream.write(from),
        }
    }

    /// What is not sent yet is encrypted and waits for room.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Encrypted(stream, _) => stream.flush(),
            _ => Ok(()),
        }
    }
}
