//! Why a machine cannot be observed, in words.

use std::io;

use spindle_engines::sql::SshHost;
use spindle_text::plain;

/// Of words that are not understood, no more are shown.
pub(super) const SAID_LENGTH_MAX: usize = 200;

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The system has no client.
    #[error(
        "there is no program ssh here, by which Spindle comes to other machines: install it (Debian: openssh-client)"
    )]
    NoClient,
    /// The client could not be started.
    #[error("ssh cannot be started: {0}")]
    Client(io::Error),
    /// This program cannot be read.
    #[error("this program cannot be read, to be brought to another machine: {0}")]
    OwnProgram(io::Error),
    /// The name of the host means nothing.
    #[error("{host}: there is no host of that name: {words}")]
    UnknownHost {
        /// The host.
        host: SshHost,
        /// The client's words.
        words: String,
    },
    /// The client may not log in.
    #[error(
        "{host}: ssh may not log in: {words}. Spindle uses keys and asks for no password; this must work: \
         ssh -oBatchMode=yes {} true",
        arguments(host)
    )]
    NotPermitted {
        /// The host.
        host: SshHost,
        /// The client's words.
        words: String,
    },
    /// The host's key is not known, or is another one.
    #[error(
        "{host}: ssh does not know this host by its key: {words}. Log in once by hand and look at the key: ssh {}",
        arguments(host)
    )]
    UnknownKey {
        /// The host.
        host: SshHost,
        /// The client's words.
        words: String,
    },
    /// The connection was not made, or ended.
    #[error("{host}: the connection ended: {words}")]
    Ended {
        /// The host.
        host: SshHost,
        /// The client's words.
        words: String,
    },
    /// It does not answer.
    #[error("{host}: it does not answer any more")]
    Silent {
        /// The host.
        host: SshHost,
    },
    /// It says more than an agent does.
    #[error("{host}: it says {said}, which no agent does, and is not listened to any more")]
    Excess {
        /// The host.
        host: SshHost,
        /// What it said.
        said: String,
    },
    /// This program does not run there.
    #[error(
        "{host}: it is {machine}, and this program runs on {own}: start Spindle on a machine of the same kind"
    )]
    OtherMachine {
        /// The host.
        host: SshHost,
        /// What it is, by `uname`.
        machine: String,
        /// What this program is for.
        own: String,
    },
    /// There is no directory for it.
    #[error(
        "{host}: there is no place for the program there: nothing may be made and executed in $TMPDIR, /tmp, /var/tmp \
         and the home directory"
    )]
    NoPlace {
        /// The host.
        host: SshHost,
    },
    /// It speaks otherwise.
    #[error(
        "{host}: the agent there is of Spindle {version}, protocol {protocol}, and this is {}, protocol {}",
        env!("CARGO_PKG_VERSION"),
        super::protocol::PROTOCOL
    )]
    OtherVersion {
        /// The host.
        host: SshHost,
        /// Its version.
        version: String,
        /// The version of what it says.
        protocol: u32,
    },
    /// What it says means nothing.
    #[error("{host}: what it says is not understood: {said:?}")]
    NotUnderstood {
        /// The host.
        host: SshHost,
        /// What it said.
        said: String,
    },
    /// The person wants the run to stop.
    #[error("interrupted")]
    Interrupted,
}

/// The arguments of the client, in words.
fn arguments(host: &SshHost) -> String {
    match host.port {
        Some(port) => format!("-p {port} {}", host.destination()),
        None => host.destination(),
    }
}

impl AgentError {
    /// From what it said instead.
    pub(super) fn not_understood(host: SshHost, said: &str) -> AgentError {
        let said = plain::shortened(said, SAID_LENGTH_MAX).into_owned();
        AgentError::NotUnderstood { host, said }
    }

    /// From what the client said when it ended.
    pub(super) fn of_client(host: SshHost, words: &str) -> AgentError {
        let words = plain::one_line(words);
        let words = match words.is_empty() {
            true => "ssh gave no reason".to_owned(),
            false => words.trim_end_matches('.').to_owned(),
        };
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
        if says(&["Could not resolve hostname", "Name or service not known"]) {
            return AgentError::UnknownHost { host, words };
        }
        if says(&[
            "Host key verification failed",
            "HOST IDENTIFICATION HAS CHANGED",
        ]) {
            return AgentError::UnknownKey { host, words };
        }
        match says(&["Permission denied (", "Too many authentication failures"]) {
            true => AgentError::NotPermitted { host, words },
            false => AgentError::Ended { host, words },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_client_tell_what_to_do() {
        for (words, said) in [
            (
                "ssh: Could not resolve hostname nowhere: Name or service not known",
                "no host of that name",
            ),
            (
                "ann@db1: Permission denied (publickey).",
                "ssh -oBatchMode=yes -p 2222 ann@db1 true",
            ),
            (
                "Host key verification failed.",
                "by hand and look at the key: ssh -p 2222 ann@db1",
            ),
            (
                "ssh: connect to host db1 port 2222: Connection refused",
                "Connection refused",
            ),
            (
                "sh: 1: /tmp/x/spindle: Permission denied",
                "connection ended: sh: 1:",
            ),
            ("", "gave no reason"),
        ] {
            let host = SshHost::parse("ssh://ann@db1:2222").unwrap();
            let told = AgentError::of_client(host, words).to_string();
            assert!(told.contains(said), "{told}");
            assert!(told.starts_with("ssh://ann@db1:2222: "), "{told}");
        }
    }
}
