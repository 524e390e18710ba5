//! Why this program is not at work on another machine, in words.

use std::io;

use spindle_engines::{EngineError, ErrorKind};
use spindle_text::plain;

use super::MachineAccess;

/// Of words that are not understood, no more are shown.
pub(super) const SAID_LENGTH_MAX: usize = 200;

/// Why it is not there.
#[derive(Debug, thiserror::Error)]
pub enum FarError {
    /// The system has no client.
    #[error(
        "ssh is not installed; Spindle needs it to reach other machines (Debian: openssh-client)"
    )]
    NoClient,
    /// The client could not be started.
    #[error("ssh cannot be started: {0}")]
    Client(io::Error),
    /// This program cannot be read.
    #[error("this program cannot be read, to be brought to another machine: {0}")]
    OwnProgram(io::Error),
    /// The name of the host means nothing.
    #[error("{way}: there is no host of that name: {words}")]
    UnknownHost {
        /// The way there.
        way: Box<MachineAccess>,
        /// The client's words.
        words: String,
    },
    /// The client may not log in.
    #[error(
        "{way}: ssh may not log in: {words}. Spindle uses keys and asks for no password; this must work: \
         ssh -oBatchMode=yes {} true",
        arguments(way)
    )]
    NotPermitted {
        /// The way there.
        way: Box<MachineAccess>,
        /// The client's words.
        words: String,
    },
    /// The host's key is not known, or is another one.
    #[error(
        "{way}: ssh does not know this host by its key: {words}. Log in once by hand and look at the key: ssh {}",
        arguments(way)
    )]
    UnknownKey {
        /// The way there.
        way: Box<MachineAccess>,
        /// The client's words.
        words: String,
    },
    /// The connection was not made, or ended.
    #[error("{way}: the connection ended: {words}")]
    Ended {
        /// The way there.
        way: Box<MachineAccess>,
        /// The client's words.
        words: String,
    },
    /// It does not answer.
    #[error("{way}: it does not answer any more")]
    Silent {
        /// The way there.
        way: Box<MachineAccess>,
    },
    /// It says more than this program does.
    #[error("{way}: it says {said}, which Spindle does not, and is not listened to any more")]
    Excess {
        /// The way there.
        way: Box<MachineAccess>,
        /// What it said.
        said: String,
    },
    /// This program does not run there.
    #[error(
        "{way}: it is {machine}, and this program runs on {own}: start Spindle on a machine of the same kind"
    )]
    OtherMachine {
        /// The way there.
        way: Box<MachineAccess>,
        /// What it is, by `uname`.
        machine: String,
        /// What this program is for.
        own: String,
    },
    /// There is no directory for it.
    #[error(
        "{way}: there is no place for the program there: nothing may be made and executed in $TMPDIR, /tmp, /var/tmp \
         and the home directory"
    )]
    NoPlace {
        /// The way there.
        way: Box<MachineAccess>,
    },
    /// It speaks otherwise.
    #[error(
        "{way}: the program there is of Spindle {version}, protocol {protocol}, and this is {}, protocol {}",
        env!("CARGO_PKG_VERSION"),
        super::protocol::PROTOCOL
    )]
    OtherVersion {
        /// The way there.
        way: Box<MachineAccess>,
        /// Its version.
        version: String,
        /// The version of what it says.
        protocol: u32,
    },
    /// What it says means nothing.
    #[error("{way}: what it says is not understood: {said:?}")]
    NotUnderstood {
        /// The way there.
        way: Box<MachineAccess>,
        /// What it said.
        said: String,
    },
    /// The person wants the run to stop.
    #[error("interrupted")]
    Interrupted,
}

/// The arguments of the client, in words.
fn arguments(way: &MachineAccess) -> String {
    let MachineAccess::Ssh {
        host,
        identity_file,
    } = way
    else {
        return String::new();
    };
    let mut words: Vec<String> = Vec::new();
    words.extend(
        identity_file
            .iter()
            .map(|file| format!("-i {}", file.display())),
    );
    words.extend(host.port.map(|port| format!("-p {port}")));
    words.push(host.destination());
    words.join(" ")
}

impl FarError {
    /// From what it said instead.
    pub(super) fn not_understood(way: &MachineAccess, said: &str) -> FarError {
        FarError::NotUnderstood {
            way: Box::new(way.clone()),
            said: plain::shortened(said, SAID_LENGTH_MAX).into_owned(),
        }
    }

    /// Why a look at another machine, named in words, found nothing.
    pub(crate) fn in_a_look(&self, of: &str) -> EngineError {
        let kind = match self {
            FarError::Interrupted => ErrorKind::Interrupted,
            _ => ErrorKind::Unavailable,
        };
        EngineError::new(kind, format!("{of}{self}"))
    }

    /// From what the client said when it ended.
    pub(super) fn of_client(way: &MachineAccess, words: &str) -> FarError {
        let way = Box::new(way.clone());
        let words = plain::one_line(words);
        let words = match (words.is_empty(), &*way) {
            (true, MachineAccess::Here) => "the process is gone".to_owned(),
            (true, MachineAccess::Ssh { .. }) => "ssh gave no reason".to_owned(),
            (false, _) => words.trim_end_matches('.').to_owned(),
        };
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
        if says(&["Could not resolve hostname", "Name or service not known"]) {
            return FarError::UnknownHost { way, words };
        }
        if says(&[
            "Host key verification failed",
            "HOST IDENTIFICATION HAS CHANGED",
        ]) {
            return FarError::UnknownKey { way, words };
        }
        match says(&["Permission denied (", "Too many authentication failures"]) {
            true => FarError::NotPermitted { way, words },
            false => FarError::Ended { way, words },
        }
    }
}

#[cfg(test)]
mod tests {
    use spindle_engines::sql::SshHost;

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
            let way = MachineAccess::to(SshHost::parse("ssh://ann@db1:2222").unwrap());
            let told = FarError::of_client(&way, words).to_string();
            assert!(told.contains(said), "{told}");
            assert!(told.starts_with("ssh://ann@db1:2222: "), "{told}");
        }
    }
}
