//! A port of this machine behind which a server's socket lies: it can be cut off and opened again, as a network is. And
//! one behind which another port lies, far away.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

type Connections = Arc<Mutex<Vec<(TcpStream, UnixStream)>>>;

pub struct Port {
    pub number: u16,
    socket: PathBuf,
    connections: Connections,
    accepting: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Port {
    pub fn before(socket: &Path) -> Port {
        let mut port = Port {
            number: 0,
            socket: socket.to_path_buf(),
            connections: Connections::default(),
            accepting: None,
        };
        port.open();
        port
    }

    /// Takes connections from now on; by the number that it had before.
    pub fn open(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.number)).unwrap();
        self.number = listener.local_addr().unwrap().port();
        let is_over = Arc::new(AtomicBool::new(false));
        let (told, socket) = (Arc::clone(&is_over), self.socket.clone());
        let connections = Arc::clone(&self.connections);
        let thread = std::thread::spawn(move || {
            for client in listener.incoming() {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                join(client.unwrap(), &socket, &connections);
            }
        });
        self.accepting = Some((is_over, thread));
    }

    /// Ends all connections, and takes no more.
    pub fn cut(&mut self) {
        let Some((is_over, thread)) = self.accepting.take() else {
            return;
        };
        is_over.store(true, Ordering::Relaxed);
        // It wakes up by a last connection.
        let _ = TcpStream::connect(("127.0.0.1", self.number));
        thread.join().unwrap();
        for (client, server) in self.connections.lock().unwrap().drain(..) {
            // One that has ended already cannot be ended.
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.cut();
    }
}

fn join(client: TcpStream, socket: &Path, connections: &Connections) {
    let Ok(server) = UnixStream::connect(socket) else {
        return;
    };
    client.set_nodelay(true).unwrap();
    let (from_client, to_client) = (client.try_clone().unwrap(), client.try_clone().unwrap());
    let (from_server, to_server) = (server.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || {
        carry(from_client, &to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    std::thread::spawn(move || {
        carry(from_server, &to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    connections.lock().unwrap().push((client, server));
}

fn carry(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..bytes]).is_err() {
            return;
        }
    }
}

/// What a network does to what is sent.
#[derive(Clone, Copy)]
pub struct Way {
    /// How much later it arrives.
    pub delay: Duration,
    /// One piece of so many is lost, and comes when TCP sends it again; 0: none is.
    pub loses_one_of: u32,
}

/// As soon as this TCP sends again what was lost (Linux, TCP_RTO_MIN).
pub const SENT_AGAIN: Duration = Duration::from_millis(200);

/// A port of this machine behind which another one lies. What is sent arrives, as it was sent, so much later.
pub struct FarPort {
    pub number: u16,
    is_over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl FarPort {
    pub fn before(port: u16, way: Way) -> FarPort {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let number = listener.local_addr().unwrap().port();
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let accepting = std::thread::spawn(move || {
            for near in listener.incoming() {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                let (near, far) = (near.unwrap(), TcpStream::connect(("127.0.0.1", port)));
                let Ok(far) = far else { continue };
                carry_late(&near, &far, way);
                carry_late(&far, &near, way);
            }
        });
        FarPort {
            number,
            is_over,
            accepting: Some(accepting),
        }
    }
}

impl Drop for FarPort {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // It wakes up by a last connection. Those that there are end with their ends.
        let _ = TcpStream::connect(("127.0.0.1", self.number));
        if let Some(accepting) = self.accepting.take() {
            accepting.join().unwrap();
        }
    }
}

fn carry_late(from: &TcpStream, to: &TcpStream, way: Way) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    to.set_nodelay(true).unwrap();
    let (sender, on_the_way) = mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let (mut buffer, mut number) = (vec![0; 64 << 10], 0_u32);
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            number += 1;
            let is_lost = way.loses_one_of > 0 && number.is_multiple_of(way.loses_one_of);
            let again = if is_lost { SENT_AGAIN } else { Duration::ZERO };
            let piece = (Instant::now() + way.delay + again, buffer[..bytes].to_vec());
            if sender.send(piece).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, piece) in on_the_way {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        // The other end may be gone.
        let _ = to.shutdown(Shutdown::Write);
    });
}
