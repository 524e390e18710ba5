//! A machine that is come to by `ssh`, as a person writes it: `ssh://user@host:port`. The system's own client reads the
//! rest (keys, names of hosts) where it always does.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::EngineError;

/// How the scheme is written.
const SCHEME: &str = "ssh://";

/// What is allowed, for people.
pub const ALLOWED: &str =
    "\"ssh\", for the host of url, or \"ssh://user@host:port\"; user and port may be left out";

/// A machine, and which user connects to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SshHost {
    /// The user; `None`: as the client has it.
    pub user: Option<String>,
    /// Its name or its number, or a name in the client's own configuration.
    pub host: String,
    /// Its port; `None`: as the client has it.
    pub port: Option<u16>,
}

impl SshHost {
    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<SshHost, EngineError> {
        let refused = |why: &str| EngineError::refused(why.to_owned());
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return Err(refused("it does not begin with ssh://"));
        };
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let (host, port) = match place.strip_prefix('[').and_then(|it| it.split_once(']')) {
            // As URLs have numbers of IPv6.
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        let port = port.map(|port| port.parse::<u16>());
        let port = port.transpose();
        let port = port.map_err(|_| refused("its port is not a number up to 65535"))?;
        SshHost::of(user, host, port)
    }

    /// A host by its name or number.
    ///
    /// # Errors
    /// It could be taken for an option of the client, or for more than one word.
    pub fn of(user: Option<&str>, host: &str, port: Option<u16>) -> Result<SshHost, EngineError> {
        let is_plain = |text: &str| {
            let known =
                |character: char| character.is_ascii_alphanumeric() || "._-:%+".contains(character);
            !text.is_empty() && !text.starts_with('-') && text.chars().all(known)
        };
        if !is_plain(host) {
            return Err(EngineError::refused("it has no host name"));
        }
        if !user.is_none_or(|user| is_plain(user) && !user.contains(':')) {
            return Err(EngineError::refused(
                "the user name is invalid; do not give a password, ssh uses keys",
            ));
        }
        Ok(SshHost {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
        })
    }

    /// The user and the host, as the client is given them.
    pub fn destination(&self) -> String {
        match &self.user {
            Some(user) => format!("{user}@{}", self.host),
            None => self.host.clone(),
        }
    }
}

/// How a machine is come to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineAccess {
    /// It is this one.
    Here,
    /// By `ssh`.
    Ssh {
        /// The host.
        host: SshHost,
        /// The file of a key to log in with; `None`: as the client has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity_file: Option<PathBuf>,
    },
}

/// How people name this machine.
pub const HERE: &str = "local";

impl MachineAccess {
    /// By `ssh`, as the client has it.
    pub fn to(host: SshHost) -> MachineAccess {
        MachineAccess::Ssh {
            host,
            identity_file: None,
        }
    }
}

impl fmt::Display for MachineAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MachineAccess::Here => f.write_str(HERE),
            MachineAccess::Ssh { host, .. } => write!(f, "{host}"),
        }
    }
}

impl fmt::Display for SshHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.host.contains(':') {
            true => write!(f, "[{}]", self.host)?,
            false => f.write_str(&self.host)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl Serialize for SshHost {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SshHost {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<SshHost, D::Error> {
        let text = String::deserialize(deserializer)?;
        SshHost::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_and_written_alike() {
        for (text, destination, port) in [
            ("ssh://db1", "db1", None),
            (
                "ssh://ann@db1.example.org:2222",
                "ann@db1.example.org",
                Some(2222),
            ),
            ("ssh://ann@[fe80::1%eth0]:22", "ann@fe80::1%eth0", Some(22)),
            ("ssh://[::1]", "::1", None),
        ] {
            let host = SshHost::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(
                (host.destination().as_str(), host.port),
                (destination, port)
            );
            assert_eq!(host.to_string(), text);
            let json = serde_json::to_string(&host).unwrap();
            assert_eq!(serde_json::from_str::<SshHost>(&json).unwrap(), host);
        }
    }

    #[test]
    fn what_ssh_could_misunderstand_is_refused_without_what_it_says() {
        for (text, said) in [
            ("db1", "begin with ssh://"),
            ("ssh://", "no host"),
            ("ssh://-oProxyCommand=x", "no host"),
            ("ssh://-l@db1", "user name is invalid"),
            ("ssh://ann:secret@db1", "uses keys"),
            ("ssh://ann;secret@db1", "user name is invalid"),
            ("ssh://db1 secret", "no host"),
            ("ssh://db1:99999", "not a number"),
            ("ssh://db1/x", "no host"),
        ] {
            let told = SshHost::parse(text).unwrap_err().to_string();
            assert!(told.contains(said), "{text}: {told}");
            assert!(!told.contains("secret"), "{told}");
        }
    }
}
