//! The address of an existing server, as a person writes it: `postgres://user:password@host:port/database`,
//! `mysql://...`. It is read here once, and shown without the password wherever it is shown. What it leaves out, and
//! its password, is looked for where the server's own clients look: [`super::client_files`].

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use spindle_text::nearest::nearest;
use url::Url;

use super::client_files::{self, Surroundings};
use super::encryption::{BINDING_KEY, Encryption, TlsMode, keys};
pub use super::scheme::Scheme;
use super::scheme::{in_name, in_query};
use crate::EngineError;

/// A password. Nothing shows it; what serializes it is for the eyes of this user alone.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// This one.
    pub fn new(text: impl Into<String>) -> Password {
        Password(text.into())
    }

    /// What it is.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(...)")
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Over a network.
    Host {
        /// Its name or its number.
        host: String,
        /// Its port.
        port: u16,
    },
    /// By a socket of this machine.
    Socket(PathBuf),
}

impl Reach {
    /// Whether a connection does not leave this machine, as its socket or its name for itself says.
    pub fn stays_here(&self) -> bool {
        match self {
            Reach::Socket(_) => true,
            Reach::Host { host, .. } => is_this_machine(host),
        }
    }
}

/// Whether a host's name or number means the machine it is used on.
pub fn is_this_machine(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost",
    }
}

/// Where a server is, and which user connects to which database of it. Written down without the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// What it speaks.
    pub scheme: Scheme,
    /// The way to it.
    pub reach: Reach,
    /// The user.
    pub user: String,
    /// The database; `None` for a MariaDB that is to be come to without one.
    pub database: Option<String>,
    /// The password, where it stood in the address.
    pub password: Option<Password>,
    /// Whether and how connections are encrypted; by a socket they never are.
    pub encryption: Encryption,
    /// Of PostgreSQL, the service that completes it, where its password may be, too.
    pub service: Option<String>,
}

/// What is said of a server, before all of it is known.
#[derive(Default)]
pub(super) struct Parts {
    pub host: Option<String>,
    pub port: Option<u16>,
    pub socket: Option<PathBuf>,
    pub user: Option<String>,
    pub database: Option<String>,
    pub password: Option<Password>,
    pub encryption: Encryption,
    pub service: Option<String>,
}

impl Address {
    /// Reads an address that says everything.
    ///
    /// # Errors
    /// What is wrong with it, without what it says.
    pub fn parse(text: &str) -> Result<Address, EngineError> {
        let (scheme, parts) = Parts::of_url(text)?;
        parts.settled(scheme)
    }

    /// Reads an address as a person gives it: what it leaves out is taken from where the server's own clients take it.
    ///
    /// # Errors
    /// What is wrong with it, or with a file that completes it, without what they say.
    pub fn complete(text: &str) -> Result<Address, EngineError> {
        Address::complete_in(text, &Surroundings::of_process())
    }

    pub(super) fn complete_in(
        text: &str,
        surroundings: &Surroundings,
    ) -> Result<Address, EngineError> {
        let (scheme, mut parts) = Parts::of_url(text)?;
        client_files::complete(scheme, &mut parts, surroundings)?;
        parts.settled(scheme)
    }

    /// The password to come with: the one in the address; else that of the environment variable `named`; else that
    /// which the server's own clients would find. `None`: there is none, which may be right.
    ///
    /// # Errors
    /// The variable is not set, or the file of passwords is not to be used.
    pub fn find_password(&self, named: Option<&str>) -> Result<Option<Password>, EngineError> {
        self.find_password_in(named, &Surroundings::of_process())
    }

    pub(super) fn find_password_in(
        &self,
        named: Option<&str>,
        surroundings: &Surroundings,
    ) -> Result<Option<Password>, EngineError> {
        if let Some(password) = &self.password {
            return Ok(Some(password.clone()));
        }
        if let Some(name) = named {
            let found = surroundings.text(name).map(|text| Some(Password(text)));
            return found.ok_or_else(|| {
                EngineError::refused(format!(
                    "the password of {self} is to be in the environment variable {name}, which is not set"
                ))
            });
        }
        client_files::password_of(self, surroundings)
    }
}

impl Parts {
    fn of_url(text: &str) -> Result<(Scheme, Parts), EngineError> {
        let url = Url::parse(text)
            .map_err(|error| EngineError::refused(format!("it is not a valid address: {error}")))?;
        let scheme = match url.scheme() {
            "postgres" | "postgresql" => Scheme::Postgres,
            "mysql" | "mariadb" => Scheme::MySql,
            other => {
                return Err(EngineError::refused(format!(
                    "{other}:// is not a server that Spindle supports"
                )));
            }
        };
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let password = url.password().map(decoded).transpose()?;
        let mut parts = Parts {
            // As URLs have numbers of IPv6.
            host: some(decoded(url.host_str().unwrap_or_default())?)
                .map(|host| host.trim_matches(['[', ']']).to_owned()),
            port: url.port(),
            user: some(decoded(url.username())?),
            database: some(decoded(url.path().trim_start_matches('/'))?),
            password: password.and_then(some).map(Password),
            ..Parts::default()
        };
        for (key, value) in url.query_pairs() {
            parts.take_of_url(scheme, &key, &value)?;
        }
        parts.encryption.check_together(scheme)?;
        if parts.is_socket(scheme) {
            parts.encryption.check_socket(scheme)?;
        }
        Ok((scheme, parts))
    }

    /// Takes what stands behind the question mark.
    fn take_of_url(&mut self, scheme: Scheme, key: &str, value: &str) -> Result<(), EngineError> {
        if self.encryption.take(scheme, key, value)? {
            return Ok(());
        }
        match (key, scheme) {
            ("host", Scheme::Postgres) => self.host = Some(value.to_owned()),
            ("port", Scheme::Postgres) => self.port = Some(read_port(value)?),
            ("service", Scheme::Postgres) => self.service = Some(value.to_owned()),
            ("socket", Scheme::MySql) if self.socket.is_none() => self.socket = Some(value.into()),
            ("socket", Scheme::MySql) => {
                return Err(EngineError::refused("it names a socket twice"));
            }
            (other, scheme) => return Err(unknown_key(other, scheme)),
        }
        Ok(())
    }

    /// Whether it is come to by a socket of this machine.
    pub fn is_socket(&self, scheme: Scheme) -> bool {
        let is_directory = |host: &String| host.starts_with('/');
        self.socket.is_some()
            || (scheme == Scheme::Postgres && self.host.as_ref().is_some_and(is_directory))
    }

    /// The whole address.
    fn settled(self, scheme: Scheme) -> Result<Address, EngineError> {
        let is_socket = self.is_socket(scheme);
        let Some(user) = self.user else {
            return Err(EngineError::refused("it names no user"));
        };
        if user.contains(':') {
            return Err(EngineError::refused(
                "its user has a colon: write user:password with a plain colon, not %3A",
            ));
        }
        let port = self.port.unwrap_or(scheme.port());
        let reach = match (self.socket, self.host) {
            (Some(path), _) => Reach::Socket(path),
            // One with PostgreSQL's socket in it.
            (None, Some(directory)) if is_socket => {
                Reach::Socket(Path::new(&directory).join(format!(".s.PGSQL.{port}")))
            }
            (None, Some(host)) => Reach::Host { host, port },
            (None, None) => return Err(EngineError::refused("it names no host")),
        };
        let mut encryption = match is_socket {
            true => Encryption::default(),
            false => self.encryption,
        };
        if scheme == Scheme::MySql && encryption.ca.is_some() {
            match encryption.mode {
                None => encryption.mode = Some(TlsMode::VerifyCa),
                Some(mode) if mode < TlsMode::VerifyCa => encryption.ca = None,
                Some(_) => {}
            }
        }
        encryption.check(scheme)?;
        Ok(Address {
            scheme,
            reach,
            database: match scheme {
                // As the server's own clients have it.
                Scheme::Postgres => self.database.or_else(|| Some(user.clone())),
                Scheme::MySql => self.database,
            },
            user,
            password: self.password,
            encryption,
            service: self.service,
        })
    }
}

/// Reads the number of a port.
pub(super) fn read_port(text: &str) -> Result<u16, EngineError> {
    text.parse()
        .map_err(|_| EngineError::refused("its port is not a number up to 65535"))
}

/// What may stand behind the question mark, and which of them was meant.
fn unknown_key(key: &str, scheme: Scheme) -> EngineError {
    let mut known = match scheme {
        Scheme::Postgres => vec!["host", "port", "service", BINDING_KEY],
        Scheme::MySql => vec!["socket"],
    };
    known.extend(keys(scheme));
    let (last, others) = known.split_last().expect("there are some");
    let near = nearest(key, known.iter().copied());
    let near = near.map_or_else(String::new, |name| format!("; did you mean {name}?"));
    EngineError::refused(format!(
        "it says {key}, and only {} and {last} may stand behind the question mark{near}",
        others.join(", ")
    ))
}

fn decoded(text: &str) -> Result<String, EngineError> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(|text| text.into_owned())
        .map_err(|_| EngineError::refused("part of it is not text (UTF-8)"))
}

/// For people: all but the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Postgres => "postgres",
            Scheme::MySql => "mysql",
        };
        write!(f, "{scheme}://{}@", in_name(&self.user))?;
        match &self.reach {
            Reach::Host { host, port } if host.contains(':') => write!(f, "[{host}]:{port}")?,
            Reach::Host { host, port } => write!(f, "{}:{port}", in_name(host))?,
            Reach::Socket(_) => write!(f, "localhost")?,
        }
        if let Some(database) = &self.database {
            write!(f, "/{}", in_name(database))?;
        }
        let mut query = Vec::new();
        match (&self.reach, self.scheme) {
            (Reach::Host { .. }, _) => {}
            (Reach::Socket(path), Scheme::Postgres) => {
                let directory = path.parent().unwrap_or(path);
                let port = path.extension().unwrap_or_default().display();
                query.push(format!("host={}&port={port}", in_query(directory)));
            }
            (Reach::Socket(path), Scheme::MySql) => {
                query.push(format!("socket={}", in_query(path)))
            }
        }
        if let Some(service) = &self.service {
            query.push(format!("service={}", in_name(service)));
        }
        query.extend(self.encryption.in_query(self.scheme));
        match query.is_empty() {
            true => Ok(()),
            false => write!(f, "?{}", query.join("&")),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
        let text = String::deserialize(deserializer)?;
        Address::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Address {
        Address::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn an_address_is_read_as_the_servers_own_clients_read_it() {
        let address = parse("postgres://ann:s%40cret%3A@db.example.org:6432/lab?sslmode=prefer");
        let reach = Reach::Host {
            host: "db.example.org".to_owned(),
            port: 6432,
        };
        assert_eq!((address.scheme, &address.reach), (Scheme::Postgres, &reach));
        assert_eq!(address.user, "ann");
        assert_eq!(address.database.as_deref(), Some("lab"));
        assert_eq!(address.password, Some(Password::new("s@cret:")));
        let plain = parse("postgresql://ann@localhost");
        assert_eq!(plain.database.as_deref(), Some("ann"));
        assert_eq!(plain.to_string(), "postgres://ann@localhost:5432/ann");
        let socket = parse("postgres://ann@%2Fvar%2Frun%2Fpostgresql/lab");
        let path = PathBuf::from("/var/run/postgresql/.s.PGSQL.5432");
        assert_eq!(socket.reach, Reach::Socket(path.clone()));
        let by_query = parse("postgres://ann@localhost/lab?host=/var/run/postgresql");
        assert_eq!(by_query.reach, Reach::Socket(path));
        let mysql = parse("mysql://root@[::1]/");
        assert_eq!(mysql.to_string(), "mysql://root@[::1]:3306");
        let socket = parse("mariadb://root@localhost/?socket=/run/mysqld/mysqld.sock");
        let path = PathBuf::from("/run/mysqld/mysqld.sock");
        assert_eq!(socket.reach, Reach::Socket(path));
    }

    #[test]
    fn nothing_that_is_written_down_holds_the_password() {
        for text in [
            "postgres://ann:secret@db.example.org:6432/lab",
            "postgres://a%2Fnn:secret@%2Fvar%2Frun%2Fpostgresql:5433/my%20lab",
            "mysql://ann:secret@127.0.0.1:3307/lab",
            "mysql://ann:secret@localhost/?socket=/run/my.sock",
            "mysql://ann:secret@[fe80::1]:3307",
            "postgres://ann:secret@h/d?sslmode=verify-full&sslrootcert=/my%20ca&sslcert=/c&sslkey=/k&channel_binding=require",
            "postgres://ann:secret@h/d?service=my%20lab&sslmode=allow",
            "mysql://ann:secret@h/?ssl-mode=VERIFY_IDENTITY&ssl-ca=/ca",
        ] {
            let address = parse(text);
            assert_eq!(address.password, Some(Password::new("secret")));
            let json = serde_json::to_string(&address).unwrap();
            for shown in [address.to_string(), format!("{address:?}"), json.clone()] {
                assert!(!shown.contains("secret"), "{shown}");
            }
            let again: Address = serde_json::from_str(&json).unwrap();
            assert_eq!(
                again,
                Address {
                    password: None,
                    ..address
                },
                "{json}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_what_was_written() {
        for (text, said) in [
            ("ann:secret", "is not a server"),
            ("db secret", "not a valid address"),
            ("http://ann:secret@h/d", "http:// is not a server"),
            ("postgres://h/d", "no user"),
            ("postgres://ann%3Asecret@h/d", "its user has a colon"),
            ("postgres:///d", "no user"),
            ("postgres://ann:secret@h:99999/d", "not a valid address"),
            (
                "postgres://ann:secret@h/d?sslmode=requir",
                "not one of disable, allow, prefer, require, verify-ca",
            ),
            (
                "postgres://ann:secret@h/d?sslmode=REQUIRE",
                "not one of disable",
            ),
            (
                "postgres://ann:secret@h/d?sslmod=require",
                "did you mean sslmode?",
            ),
            (
                "postgres://ann:secret@h/d?ssl-mode=REQUIRED",
                "did you mean sslmode?",
            ),
            (
                "postgres://ann:secret@h/d?sslmode=verify-full",
                "no authority to trust (sslrootcert)",
            ),
            (
                "postgres://ann:secret@h/d?sslcert=/c",
                "sslcert and no sslkey",
            ),
            (
                "postgres://ann:secret@h/d?sslkey=/c",
                "sslkey and no sslcert",
            ),
            ("postgres://ann:secret@h/d?sslrootcert=", "names no file"),
            (
                "postgres://ann:secret@h/d?sslmode=disable&sslrootcert=/c",
                "only an encrypted connection",
            ),
            (
                "postgres://ann:secret@h/d?sslmode=disable&channel_binding=require",
                "only an encrypted connection",
            ),
            (
                "postgres://ann:secret@h/d?channel_binding=secret",
                "not one of disable, prefer, require",
            ),
            (
                "postgres://ann:secret@h/d?sslmode=require&sslrootcert=system",
                "only with sslmode=verify-full",
            ),
            (
                "postgres://ann:secret@%2Frun/d?sslmode=require",
                "by a socket",
            ),
            (
                "postgres://ann:secret@h/d?host=/run&channel_binding=require",
                "by a socket",
            ),
            (
                "mysql://ann:secret@h/d?ssl-mode=secret",
                "not one of DISABLED, PREFERRED, REQUIRED, VERIFY_CA",
            ),
            (
                "mysql://ann:secret@h/d?sslmode=REQUIRED",
                "did you mean ssl-mode?",
            ),
            (
                "mysql://ann:secret@h/d?ssl-mode=VERIFY_IDENTITY",
                "no authority to trust (ssl-ca)",
            ),
            (
                "mysql://ann:secret@h/d?ssl-mode=REQUIRED&ssl-ca=/c",
                "verifies nothing",
            ),
            (
                "mysql://ann:secret@h/?ssl-mode=REQUIRED&socket=/s",
                "by a socket",
            ),
            (
                "mysql://ann:secret@h/?channel_binding=require",
                "only socket",
            ),
            ("postgres://ann@h/d?password=secret", "only host, port"),
            ("mysql://ann@h/d?pool_max=3", "only socket"),
        ] {
            let told = Address::parse(text).unwrap_err().to_string();
            assert!(told.contains(said), "{text}: {told}");
            assert!(!told.contains("secret"), "{told}");
        }
    }
}
