//! Servers that ask for the password as it is written: it is told within this machine, and never over a network that
//! others may listen to.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::thread::JoinHandle;

use spindle_engines::sql::{Address, Password, remote_server};

const PASSWORD: &str = "open-sesame-4711";
/// An address that no host has (RFC 5737): it says by which of its own this machine goes out.
const ELSEWHERE: &str = "192.0.2.1:9";
/// PostgreSQL's "AuthenticationCleartextPassword".
const POSTGRES_ASKS: [u8; 9] = [b'R', 0, 0, 0, 8, 0, 0, 0, 3];

/// Asks its first client for the password; what that said, and where it asks.
fn server(host: IpAddr, ask: fn(&mut TcpStream)) -> (JoinHandle<Vec<u8>>, u16) {
    let listener = TcpListener::bind((host, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        ask(&mut client);
        let mut heard = vec![0; 1024];
        let length = client.read(&mut heard).unwrap_or(0);
        heard.truncate(length);
        heard
    });
    (heard, port)
}

fn ask_as_postgres(client: &mut TcpStream) {
    let mut startup = [0; 1024];
    assert!(client.read(&mut startup).unwrap() > 8);
    client.write_all(&POSTGRES_ASKS).unwrap();
}

/// A handshake, then a switch to another way of authentication ("Protocol::HandshakeV10", "AuthSwitchRequest").
fn ask_as_mysql(client: &mut TcpStream) {
    let mut greeting = vec![10];
    greeting.extend(b"8.4.0\0\x01\0\0\0abcdefgh\0");
    // CLIENT_PROTOCOL_41 and CLIENT_SECURE_CONNECTION, utf8mb4, autocommit, CLIENT_PLUGIN_AUTH; 21 bytes of scramble.
    greeting.extend([0x00, 0x82, 45, 2, 0, 0x08, 0, 21]);
    greeting.extend([0; 10]);
    greeting.extend(b"ijklmnopqrst\0mysql_native_password\0");
    send(client, 0, &greeting);
    let mut answer = [0; 1024];
    assert!(client.read(&mut answer).unwrap() > 4);
    send(client, 2, b"\xfemysql_clear_password\0");
}

fn send(client: &mut TcpStream, number: u8, body: &[u8]) {
    let mut packet = vec![body.len() as u8, 0, 0, number];
    packet.extend(body);
    client.write_all(&packet).unwrap();
}

/// What a look at such a server says, and whether the server was told.
fn looked_at(host: IpAddr, scheme: &str) -> (String, bool) {
    let (ask, query): (fn(&mut TcpStream), _) = match scheme {
        "postgres" => (ask_as_postgres, "sslmode=disable"),
        _ => (ask_as_mysql, "ssl-mode=DISABLED"),
    };
    let (heard, port) = server(host, ask);
    let address = Address::parse(&format!("{scheme}://ann@{host}:{port}/lab?{query}")).unwrap();
    let server = remote_server(address.scheme);
    let looked = server.look(&address, Some(&Password::new(PASSWORD)));
    let heard = heard.join().unwrap();
    let mut words = heard.windows(PASSWORD.len());
    let was_told = words.any(|word| word == PASSWORD.as_bytes());
    (looked.unwrap_err().to_string(), was_told)
}

#[test]
fn a_password_is_told_as_it_is_written_within_this_machine_only() {
    for scheme in ["postgres", "mysql"] {
        let (said, was_told) = looked_at(Ipv4Addr::LOCALHOST.into(), scheme);
        assert!(was_told, "{scheme}: {said}");
    }
    let out = UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = out.connect(ELSEWHERE).and_then(|()| out.local_addr());
    let Ok(own) = own.map(|own| own.ip()) else {
        spindle_harness::skip("this machine has no network");
        return;
    };
    for scheme in ["postgres", "mysql"] {
        let (said, was_told) = looked_at(own, scheme);
        assert!(!was_told, "{scheme}");
        assert!(said.contains("others may listen"), "{scheme}: {said}");
    }
}
