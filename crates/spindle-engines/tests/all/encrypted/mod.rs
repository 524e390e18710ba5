//! Encrypted connections to existing servers, with certificates that the test makes: every mode against a server whose
//! certificate is right, is another host's, comes from nobody who is trusted, cannot be verified, or is not there.

mod certificates;
mod clear;
mod mariadb;
mod postgres;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, Ordering};

use spindle_engines::sql::{Address, Password, remote_server};

/// An address of this machine that no other test listens on: of its network 127.0.0.0/8.
fn own_host() -> String {
    static LAST: AtomicU8 = AtomicU8::new(1);
    let id = std::process::id();
    let host = Ipv4Addr::new(
        127,
        (id >> 8) as u8 | 128,
        id as u8,
        LAST.fetch_add(1, Ordering::Relaxed),
    );
    host.to_string()
}

/// What a look at a server says of the connection: that it is encrypted and what was verified, `plain`, or why there is
/// none.
fn look(url: &str, password: &str) -> String {
    let address = match Address::parse(url) {
        Ok(address) => address,
        Err(error) => return format!("refused: {error}"),
    };
    let password = Password::new(password);
    let found = remote_server(address.scheme).look(&address, Some(&password));
    let said = match found {
        Ok(found) => {
            let notes = found.notes.into_iter();
            let mut of_encryption = notes.filter(|note| note.contains("encrypted"));
            of_encryption.next().unwrap_or_else(|| "plain".to_owned())
        }
        Err(error) => error.to_string(),
    };
    assert!(!said.contains(password.text()), "{said}");
    said
}

/// One way to come to a server, and what is said of it.
struct Case {
    /// The certificate that the server has.
    server: &'static str,
    user: &'static str,
    /// Behind the question mark, with the directory of the certificates as `~`.
    query: &'static str,
    said: &'static str,
}

const fn case(
    server: &'static str,
    user: &'static str,
    query: &'static str,
    said: &'static str,
) -> Case {
    Case {
        server,
        user,
        query,
        said,
    }
}
