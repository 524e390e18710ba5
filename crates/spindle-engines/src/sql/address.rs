//! The address of an existing server, as a person writes it: `postgres://user:password@host:port/database`,
//! `mysql://...`. It is read here once, and shown without the password wherever it is shown. A password that does not
//! stand in it is looked for where the server's own clients look
//! (https://www.postgresql.org/docs/current/libpq-pgpass.html,
//! https://mariadb.com/kb/en/mariadb-environment-variables/).

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use percent_encoding::{
    AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode, utf8_percent_encode,
};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::EngineError;

/// What sslmode may be: those that are content with a connection that is not encrypted. libpq's words, and MySQL's.
const WITHOUT_TLS: [&str; 5] = ["disable", "allow", "prefer", "disabled", "preferred"];

/// What is written with a per cent sign in names: all that might mean something (RFC 3986, section 2.3).
const NOT_IN_NAMES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// And in paths.
const NOT_IN_PATHS: &AsciiSet = &NOT_IN_NAMES.remove(b'/');

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

/// What its address begins with: the protocol that it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// PostgreSQL's, `postgres://` or `postgresql://`.
    Postgres,
    /// That of MySQL and MariaDB, `mysql://` or `mariadb://`.
    MySql,
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

/// Where a server is, and as whom one comes to which database of it. Written down without the password.
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
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it, without what it says.
    pub fn parse(text: &str) -> Result<Address, EngineError> {
        let url = Url::parse(text)
            .map_err(|error| EngineError::refused(format!("it is no address: {error}")))?;
        let scheme = match url.scheme() {
            "postgres" | "postgresql" => Scheme::Postgres,
            "mysql" | "mariadb" => Scheme::MySql,
            other => {
                return Err(EngineError::refused(format!(
                    "{other}:// is no server that Spindle speaks to"
                )));
            }
        };
        let user = decoded(url.username())?;
        if user.is_empty() {
            return Err(EngineError::refused("it names no user"));
        }
        let database = decoded(url.path().trim_start_matches('/'))?;
        let database = match (database.is_empty(), scheme) {
            (false, _) => Some(database),
            // As the server's own clients have it.
            (true, Scheme::Postgres) => Some(user.clone()),
            (true, Scheme::MySql) => None,
        };
        let password = url.password().map(decoded).transpose()?;
        let mut address = Address {
            scheme,
            reach: Reach::Host {
                host: decoded(url.host_str().unwrap_or_default())?,
                port: url.port().unwrap_or(port_of(scheme)),
            },
            user,
            database,
            password: password.filter(|text| !text.is_empty()).map(Password::new),
        };
        for (key, value) in url.query_pairs() {
            address.take(&key, &value)?;
        }
        address.reach = address.reach.settled(scheme)?;
        Ok(address)
    }

    /// Takes what stands behind the question mark.
    fn take(&mut self, key: &str, value: &str) -> Result<(), EngineError> {
        let Reach::Host { host, port } = &mut self.reach else {
            return Err(EngineError::refused("it names a socket twice"));
        };
        match (key, self.scheme) {
            ("host", Scheme::Postgres) => value.clone_into(host),
            ("port", Scheme::Postgres) => {
                let number = value.parse();
                *port = number
                    .map_err(|_| EngineError::refused("its port is no number up to 65535"))?;
            }
            ("socket", Scheme::MySql) => self.reach = Reach::Socket(value.into()),
            ("sslmode" | "ssl-mode", _) if WITHOUT_TLS.contains(&value.to_lowercase().as_str()) => {
            }
            ("sslmode" | "ssl-mode", _) => {
                return Err(EngineError::refused(format!(
                    "{key}={value} asks for an encrypted connection, and Spindle makes none (TLS)"
                )));
            }
            (other, Scheme::Postgres) => {
                return Err(EngineError::refused(format!(
                    "it says {other}, and only host, port and sslmode may stand behind the question mark"
                )));
            }
            (other, Scheme::MySql) => {
                return Err(EngineError::refused(format!(
                    "it says {other}, and only socket and ssl-mode may stand behind the question mark"
                )));
            }
        }
        Ok(())
    }

    /// The password to come with: the one in the address; else that of the environment variable `named`; else that
    /// which the server's own clients would find. `None`: there is none, which may be right.
    ///
    /// # Errors
    /// The variable is not set, or the file of passwords is not to be used.
    pub fn find_password(&self, named: Option<&str>) -> Result<Option<Password>, EngineError> {
        if let Some(password) = &self.password {
            return Ok(Some(password.clone()));
        }
        if let Some(name) = named {
            let found = std::env::var(name);
            return found
                .map(|text| Some(Password(text)))
                .map_err(|_| EngineError::refused(format!("the password of {self} is to be in the environment variable {name}, which is not set")));
        }
        let variable = match self.scheme {
            Scheme::Postgres => "PGPASSWORD",
            Scheme::MySql => "MYSQL_PWD",
        };
        if let Ok(text) = std::env::var(variable) {
            return Ok(Some(Password(text)));
        }
        match self.scheme {
            Scheme::Postgres => self.in_passfile(),
            Scheme::MySql => Ok(None),
        }
    }

    fn in_passfile(&self) -> Result<Option<Password>, EngineError> {
        let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".pgpass"));
        let path = std::env::var_os("PGPASSFILE").map(PathBuf::from);
        let Some(path) = path.or_else(home) else {
            return Ok(None);
        };
        let Ok(text) = std::fs::read_to_string(&path) else {
            return Ok(None);
        };
        let mode = std::fs::metadata(&path).map_or(0, |found| found.permissions().mode());
        if mode & 0o077 != 0 {
            return Err(EngineError::refused(format!(
                "others may read {}, so its passwords are not used: chmod 0600 it",
                path.display()
            )));
        }
        Ok(self.among(&text))
    }

    /// The password in the first line of a file of passwords that is this server's: `host:port:database:user:password`,
    /// `*` for any, with a backslash before a colon or a backslash that is meant as such.
    fn among(&self, passfile: &str) -> Option<Password> {
        let (host, port) = match &self.reach {
            Reach::Host { host, port } => (host.as_str(), port.to_string()),
            // libpq calls every socket so.
            Reach::Socket(path) => {
                let name = path.extension().unwrap_or_default();
                ("localhost", name.to_string_lossy().into_owned())
            }
        };
        let database = self.database.as_deref().unwrap_or_default();
        let wanted = [host, &port, database, &self.user];
        let is_comment = |line: &&str| line.starts_with('#');
        let lines = passfile.lines().filter(|line| !is_comment(line));
        let mut entries = lines.map(fields);
        let entry = entries.find(|entry| {
            let mut pairs = entry.iter().zip(wanted);
            entry.len() == 5 && pairs.all(|(is, want)| is == "*" || is == want)
        })?;
        Some(Password::new(entry[4].clone()))
    }
}

impl Reach {
    /// A host that is a directory is one with PostgreSQL's socket in it.
    fn settled(self, scheme: Scheme) -> Result<Reach, EngineError> {
        match self {
            Reach::Host { host, .. } if host.is_empty() => {
                Err(EngineError::refused("it names no host"))
            }
            Reach::Host { host, port } if host.starts_with('/') && scheme == Scheme::Postgres => {
                Ok(Reach::Socket(
                    Path::new(&host).join(format!(".s.PGSQL.{port}")),
                ))
            }
            Reach::Host { host, port } => Ok(Reach::Host {
                // As URLs have numbers of IPv6.
                host: host.trim_matches(['[', ']']).to_owned(),
                port,
            }),
            socket => Ok(socket),
        }
    }
}

fn port_of(scheme: Scheme) -> u16 {
    match scheme {
        Scheme::Postgres => 5432,
        Scheme::MySql => 3306,
    }
}

fn decoded(text: &str) -> Result<String, EngineError> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(|text| text.into_owned())
        .map_err(|_| EngineError::refused("it holds what is no text"))
}

/// The fields of a line of a file of passwords.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let is_complete = fields.len() == 5;
        let last = fields.last_mut().expect("there is one from the beginning");
        match character {
            '\\' => last.extend(characters.next()),
            // Colons of the password need none.
            ':' if !is_complete => fields.push(String::new()),
            other => last.push(other),
        }
    }
    fields
}

/// For people: all but the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Postgres => "postgres",
            Scheme::MySql => "mysql",
        };
        write!(f, "{scheme}://{}@", encoded(&self.user))?;
        match &self.reach {
            Reach::Host { host, port } if host.contains(':') => write!(f, "[{host}]:{port}")?,
            Reach::Host { host, port } => write!(f, "{}:{port}", encoded(host))?,
            Reach::Socket(_) => write!(f, "localhost")?,
        }
        if let Some(database) = &self.database {
            write!(f, "/{}", encoded(database))?;
        }
        match (&self.reach, self.scheme) {
            (Reach::Host { .. }, _) => Ok(()),
            (Reach::Socket(path), Scheme::Postgres) => {
                let directory = path.parent().unwrap_or(path);
                let port = path.extension().unwrap_or_default().display();
                write!(f, "?host={}&port={port}", in_query(directory))
            }
            (Reach::Socket(path), Scheme::MySql) => write!(f, "?socket={}", in_query(path)),
        }
    }
}

fn encoded(text: &str) -> impl fmt::Display + '_ {
    utf8_percent_encode(text, NOT_IN_NAMES)
}

fn in_query(path: &Path) -> impl fmt::Display + '_ {
    percent_encode(path.as_os_str().as_bytes(), NOT_IN_PATHS)
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
            ("ann:secret", "is no server"),
            ("db secret", "no address"),
            ("http://ann:secret@h/d", "http:// is no server"),
            ("postgres://h/d", "no user"),
            ("postgres:///d", "no user"),
            ("postgres://ann:secret@h:99999/d", "no address"),
            ("postgres://ann:secret@h/d?sslmode=require", "encrypted"),
            ("postgres://ann:secret@h/d?sslmode=verify-full", "encrypted"),
            ("mysql://ann:secret@h/d?ssl-mode=REQUIRED", "encrypted"),
            ("postgres://ann@h/d?password=secret", "only host, port"),
            ("mysql://ann@h/d?pool_max=3", "only socket"),
        ] {
            let told = Address::parse(text).unwrap_err().to_string();
            assert!(told.contains(said), "{text}: {told}");
            assert!(!told.contains("secret"), "{told}");
        }
    }

    #[test]
    fn a_file_of_passwords_is_read_as_libpq_reads_it() {
        let passfile = "# for all\nother:*:*:ann:no\nh:5432:*:ann:a\\:b\\\\c:d\n*:*:*:*:any\n";
        let of = |text: &str| parse(text).among(passfile);
        assert_eq!(of("postgres://ann@h/lab"), Some(Password::new("a:b\\c:d")));
        assert_eq!(of("postgres://bob@h/lab"), Some(Password::new("any")));
        assert_eq!(of("postgres://ann@h:1/lab"), Some(Password::new("any")));
        assert_eq!(parse("postgres://ann@h/lab").among("h:5432:x:ann:no"), None);
        let socket = parse("postgres://ann@%2Frun/lab");
        let found = socket.among("localhost:5432:lab:ann:yes");
        assert_eq!(found, Some(Password::new("yes")));
    }
}
