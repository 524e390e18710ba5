//! What an address says of encryption, in the words of the servers' own clients: `sslmode` and its companions of libpq
//! (https://www.postgresql.org/docs/current/libpq-ssl.html), `ssl-mode` and its companions of MySQL
//! (https://dev.mysql.com/doc/refman/8.4/en/connection-options.html). What cannot be meant together is refused here,
//! before anything connects. [`super::tls`] does what it says.

use std::fmt;
use std::path::{Path, PathBuf};

use super::scheme::{Scheme, in_query};
use crate::EngineError;

/// What `sslrootcert` says in place of a file: those whom this system trusts.
pub(crate) const SYSTEM: &str = "system";

/// Whether a connection is encrypted, and what of the server is verified, the less first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsMode {
    /// Never.
    Disable,
    /// If the server will not have it otherwise.
    Allow,
    /// If the server can.
    Prefer,
    /// Always; PostgreSQL's verifies the certificate, too, where there is a file of authorities.
    Require,
    /// And the server's certificate comes from an authority that is trusted.
    VerifyCa,
    /// And it is this host's.
    VerifyFull,
}

/// Libpq's words and MySQL's; it has no `allow`.
const MODES: [(TlsMode, &str, Option<&str>); 6] = [
    (TlsMode::Disable, "disable", Some("DISABLED")),
    (TlsMode::Allow, "allow", None),
    (TlsMode::Prefer, "prefer", Some("PREFERRED")),
    (TlsMode::Require, "require", Some("REQUIRED")),
    (TlsMode::VerifyCa, "verify-ca", Some("VERIFY_CA")),
    (TlsMode::VerifyFull, "verify-full", Some("VERIFY_IDENTITY")),
];

impl TlsMode {
    fn word(self, scheme: Scheme) -> &'static str {
        let found = MODES.iter().find(|(mode, ..)| *mode == self);
        let (_, libpq, mysql) = found.expect("all are in the list");
        match scheme {
            Scheme::Postgres => libpq,
            Scheme::MySql => mysql.unwrap_or(libpq),
        }
    }
}

/// Whether a password is proved for this encrypted connection and no other (SCRAM-SHA-256-PLUS, RFC 5802 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// If the server can.
    Prefer,
    /// Always.
    Require,
}

const BINDINGS: [(ChannelBinding, &str); 3] = [
    (ChannelBinding::Disable, "disable"),
    (ChannelBinding::Prefer, "prefer"),
    (ChannelBinding::Require, "require"),
];

/// What is said of encryption; what is not said has the client's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Encryption {
    /// Whether, and what is verified.
    pub mode: Option<TlsMode>,
    /// Authorities that are trusted, a file of certificates.
    pub ca: Option<PathBuf>,
    /// This client's certificate, a file.
    pub certificate: Option<PathBuf>,
    /// And its key.
    pub key: Option<PathBuf>,
    /// PostgreSQL's only.
    pub channel_binding: Option<ChannelBinding>,
}

/// The keys: of the mode, authorities, certificate, key.
pub(crate) fn keys(scheme: Scheme) -> [&'static str; 4] {
    match scheme {
        Scheme::Postgres => ["sslmode", "sslrootcert", "sslcert", "sslkey"],
        Scheme::MySql => ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"],
    }
}

/// The key of [`ChannelBinding`].
pub(crate) const BINDING_KEY: &str = "channel_binding";

impl Encryption {
    /// Takes a key with its value; whether it is one of these.
    ///
    /// # Errors
    /// What it may be, without what it says; so for the others.
    pub(crate) fn take(
        &mut self,
        scheme: Scheme,
        key: &str,
        value: &str,
    ) -> Result<bool, EngineError> {
        let [mode, ca, certificate, of_key] = keys(scheme);
        let file = || match value.is_empty() {
            false => Ok(Some(PathBuf::from(value))),
            true => Err(EngineError::refused(format!("its {key} names no file"))),
        };
        match key {
            _ if key == mode => self.mode = Some(read_mode(scheme, value)?),
            _ if key == ca => self.ca = file()?,
            _ if key == certificate => self.certificate = file()?,
            _ if key == of_key => self.key = file()?,
            BINDING_KEY if scheme == Scheme::Postgres => {
                let found = BINDINGS.iter().find(|(_, word)| *word == value);
                let words = BINDINGS.map(|(_, word)| word).join(", ");
                let (binding, _) = found.ok_or_else(|| {
                    EngineError::refused(format!("its {key} is not one of {words}"))
                })?;
                self.channel_binding = Some(*binding);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes over what is not said yet.
    pub(crate) fn complete(&mut self, from: Encryption) {
        self.mode = self.mode.or(from.mode);
        self.channel_binding = self.channel_binding.or(from.channel_binding);
        // A certificate without its own key is of no use.
        if self.certificate.is_none() && self.key.is_none() {
            (self.certificate, self.key) = (from.certificate, from.key);
        }
        self.ca = self.ca.take().or(from.ca);
    }

    /// Refuses what one and the same person cannot mean together, in one address.
    pub(crate) fn check_together(&self, scheme: Scheme) -> Result<(), EngineError> {
        let [mode, ca, certificate, key] = keys(scheme);
        let refused = |text: String| Err(EngineError::refused(text));
        let given = [
            (ca, &self.ca),
            (certificate, &self.certificate),
            (key, &self.key),
        ];
        if self.mode == Some(TlsMode::Disable)
            && let Some((given, _)) = given.iter().find(|(_, path)| path.is_some())
        {
            let word = TlsMode::Disable.word(scheme);
            return refused(format!(
                "it says {mode}={word}, and {given}, which only an encrypted connection has"
            ));
        }
        let verifies = self.mode.is_none_or(|mode| mode >= TlsMode::VerifyCa);
        if scheme == Scheme::MySql && self.ca.is_some() && !verifies {
            return refused(format!(
                "it names authorities ({ca}), and its {mode} verifies nothing by them: say VERIFY_CA or VERIFY_IDENTITY"
            ));
        }
        Ok(())
    }

    /// Refuses what cannot be carried out.
    pub(crate) fn check(&self, scheme: Scheme) -> Result<(), EngineError> {
        let [mode, ca, certificate, key] = keys(scheme);
        let refused = |text: String| Err(EngineError::refused(text));
        match (&self.certificate, &self.key) {
            (Some(_), None) => return refused(format!("it names {certificate} and no {key}")),
            (None, Some(_)) => return refused(format!("it names {key} and no {certificate}")),
            _ => {}
        }
        let is_system = self.ca.as_deref() == Some(Path::new(SYSTEM));
        if is_system
            && scheme == Scheme::Postgres
            && self.mode.is_some_and(|mode| mode != TlsMode::VerifyFull)
        {
            return refused(format!(
                "it uses the system's CA list ({ca}={SYSTEM}), which verifies a server only with {mode}=verify-full"
            ));
        }
        if self.in_force() >= TlsMode::VerifyCa && self.ca.is_none() {
            let by_default = match scheme {
                Scheme::Postgres => ", nor is there ~/.postgresql/root.crt",
                Scheme::MySql => "",
            };
            return refused(format!(
                "its {mode} verifies the server's certificate, and it names no authority to trust ({ca}){by_default}"
            ));
        }
        if self.channel_binding == Some(ChannelBinding::Require)
            && self.mode == Some(TlsMode::Disable)
        {
            return refused(format!(
                "it says {BINDING_KEY}=require, which only an encrypted connection has, and {mode}=disable"
            ));
        }
        Ok(())
    }

    /// Refuses what a socket of this machine, which is never encrypted, does not give.
    pub(crate) fn check_socket(&self, scheme: Scheme) -> Result<(), EngineError> {
        let [mode, ..] = keys(scheme);
        let what = match self {
            _ if self.mode >= Some(TlsMode::Require) => mode,
            _ if self.channel_binding == Some(ChannelBinding::Require) => BINDING_KEY,
            _ => return Ok(()),
        };
        Err(EngineError::refused(format!(
            "its {what} asks for an encrypted connection, and one by a socket of this machine never is"
        )))
    }

    /// The mode that is in force.
    pub fn in_force(&self) -> TlsMode {
        match (self.mode, &self.ca) {
            (Some(mode), _) => mode,
            (None, Some(ca)) if ca == Path::new(SYSTEM) => TlsMode::VerifyFull,
            (None, _) => TlsMode::Prefer,
        }
    }

    /// What stands behind the question mark of an address.
    pub(crate) fn in_query(&self, scheme: Scheme) -> Vec<String> {
        let [mode, ca, certificate, key] = keys(scheme);
        let mut said = Vec::new();
        if let Some(of) = self.mode {
            said.push(format!("{mode}={}", of.word(scheme)));
        }
        for (key, path) in [
            (ca, &self.ca),
            (certificate, &self.certificate),
            (key, &self.key),
        ] {
            if let Some(path) = path {
                said.push(format!("{key}={}", in_query(path)));
            }
        }
        if let Some(of) = self.channel_binding {
            let found = BINDINGS.iter().find(|(binding, _)| *binding == of);
            let (_, word) = found.expect("all are in the list");
            said.push(format!("{BINDING_KEY}={word}"));
        }
        said
    }
}

fn read_mode(scheme: Scheme, value: &str) -> Result<TlsMode, EngineError> {
    let words = MODES
        .iter()
        .filter_map(|(mode, libpq, mysql)| match scheme {
            Scheme::Postgres => Some((*mode, *libpq)),
            Scheme::MySql => mysql.map(|word| (*mode, word)),
        });
    let is_it = |word: &str| match scheme {
        Scheme::Postgres => word == value,
        Scheme::MySql => word.eq_ignore_ascii_case(value),
    };
    let found = words.clone().find(|(_, word)| is_it(word));
    found.map(|(mode, _)| mode).ok_or_else(|| {
        let words: Vec<&str> = words.map(|(_, word)| word).collect();
        let [mode, ..] = keys(scheme);
        EngineError::refused(format!("its {mode} is not one of {}", words.join(", ")))
    })
}

impl fmt::Display for TlsMode {
    /// Libpq's word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word(Scheme::Postgres))
    }
}
