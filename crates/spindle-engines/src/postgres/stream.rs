//! What a client and a server talk over: a socket of this machine, or a network's.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt;
use spindle_workload::SessionError;

/// How long a server on a network may take to answer at all.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A server that is silent is asked whether it is still there after so long, and so often; one that does not take what
/// was sent to it is given up after as long.
const SILENCE: Duration = Duration::from_secs(15);
const QUESTION: Duration = Duration::from_secs(5);
const QUESTIONS: u32 = 3;

/// A way to a server and back.
pub(super) enum Stream {
    /// Over a socket of this machine.
    Unix(UnixStream),
    /// Over a network.
    Tcp(TcpStream),
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
    SessionError::Lost(format!("connecting to {what}: {error}"))
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(into),
            Stream::Tcp(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(from),
            Stream::Tcp(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
