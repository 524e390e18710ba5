//! Encrypted connections to existing servers. What an address says of them becomes a configuration of rustls here, once
//! its files are read; who the server is, is judged by [`Judge`] as libpq judges it. The client library of MySQL makes
//! its connections itself, and is only told.

use std::fmt;
use std::io;
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, StreamOwned,
};
use spindle_text::files;
use spindle_workload::SessionError;

use super::address::{Address, Reach};
use super::certificate;
use super::encryption::{Encryption, SYSTEM, TlsMode, keys};
use crate::EngineError;

/// Where systems keep those whom they trust: Debian and Alpine, Fedora, SUSE.
const SYSTEM_BUNDLES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
];

/// No file of certificates or of a key is larger, bytes.
const PEM_BYTES_MAX: u64 = 16 << 20;

/// An encrypted connection.
pub(crate) type Encrypted = StreamOwned<ClientConnection, TcpStream>;

/// How connections to one server are encrypted.
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    judge: Arc<Judge>,
    host: String,
}

impl Tls {
    /// As an address says; `None` where nothing is ever encrypted.
    ///
    /// # Errors
    /// A file that it names is not there, or not what it should be. Whose address it is, the caller tells.
    pub fn of(address: &Address) -> Result<Option<Tls>, EngineError> {
        let encryption = &address.encryption;
        let mode = encryption.in_force();
        let Reach::Host { host, .. } = &address.reach else {
            return Ok(None);
        };
        if mode == TlsMode::Disable {
            return Ok(None);
        }
        let refused = |text: String| EngineError::unavailable(text);
        let [_, ca, of_certificate, of_key] = keys(address.scheme);
        let provider = Arc::new(ring::default_provider());
        let trusted = match &encryption.ca {
            Some(path) => {
                let path = bundle(path).ok_or_else(|| {
                    refused("this system has no file of authorities that it trusts where Spindle knows it".to_owned())
                })?;
                Some(certificates(&path).map_err(|why| refused(format!("{ca}: {why}")))?)
            }
            None => None,
        };
        let judge = Arc::new(Judge {
            anchors: trusted.as_ref().map(|trusted| anchors(trusted)),
            trusted: trusted.unwrap_or_default(),
            is_for_host: mode == TlsMode::VerifyFull,
            provider: Arc::clone(&provider),
            has_proved: AtomicBool::new(false),
        });
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&judge) as Arc<dyn ServerCertVerifier>);
        let config = match (&encryption.certificate, &encryption.key) {
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate)
                    .map_err(|why| refused(format!("{of_certificate}: {why}")))?;
                let key = private_key(key).map_err(|why| refused(format!("{of_key}: {why}")))?;
                config.with_client_auth_cert(chain, key).map_err(|error| {
                    refused(format!(
                        "{of_certificate} and {of_key} do not go together: {error}"
                    ))
                })?
            }
            _ => config.with_no_client_auth(),
        };
        Ok(Some(Tls {
            config: Arc::new(config),
            judge,
            host: host.clone(),
        }))
    }

    /// Encrypts a connection over which the server is waiting for that.
    ///
    /// # Errors
    /// Why it is not to be trusted, or does not trust us.
    pub fn encrypt(&self, mut stream: TcpStream) -> Result<Encrypted, SessionError> {
        let failed = |error: &Error| SessionError::Failed(self.words(error));
        let name = ServerName::try_from(self.host.clone()).map_err(|_| {
            SessionError::Failed(format!("{} is not a host name that TLS accepts", self.host))
        })?;
        let connection = ClientConnection::new(Arc::clone(&self.config), name);
        let mut connection = connection.map_err(|error| failed(&error))?;
        while connection.is_handshaking() {
            connection
                .complete_io(&mut stream)
                .map_err(|error| match tls_error(&error) {
                    Some(error) => failed(error),
                    None => SessionError::Lost(format!("encrypting the connection: {error}")),
                })?;
        }
        Ok(StreamOwned::new(connection, stream))
    }

    fn words(&self, error: &Error) -> String {
        words(error, &self.host)
    }

    /// What a connection made by this one is known by to SCRAM; `None`: the server has not proved to have the key of
    /// its certificate, or the standard does not say how it is hashed.
    pub fn end_point(&self, encrypted: &Encrypted) -> Option<Vec<u8>> {
        if !self.judge.has_proved.load(Ordering::Acquire) {
            return None;
        }
        let chain = encrypted.conn.peer_certificates()?;
        certificate::end_point(chain.first()?)
    }
}

/// What rustls said, inside an error of reading or writing.
pub(crate) fn tls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref::<Error>()
}

/// What went wrong, in words.
pub(crate) fn words(error: &Error, host: &str) -> String {
    match error {
        Error::InvalidCertificate(why) => {
            format!(
                "the server's certificate is not accepted: {}",
                of_certificate(why, host)
            )
        }
        Error::AlertReceived(alert) => format!(
            "the server refuses the encrypted connection ({alert:?}): it may want a certificate of this client, or not \
             accept the one it was given"
        ),
        other => format!("encrypting the connection: {other}"),
    }
}

fn of_certificate(why: &CertificateError, host: &str) -> String {
    match why {
        CertificateError::UnknownIssuer => "it comes from no authority that is trusted".to_owned(),
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            format!(
                "it says of no host that it is for it (subjectAltName; a common name does not count), and {host} is to be \
             verified"
            )
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            let presented: Vec<&str> = presented.iter().map(|name| plain_name(name)).collect();
            format!("it is for {}, and not for {host}", presented.join(", "))
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        CertificateError::Other(error) if error.to_string().contains("UnsupportedCertVersion") => {
            "it is of version 1 of X.509, which cannot be verified: make one of version 3"
                .to_owned()
        }
        CertificateError::Other(error) if error.to_string().contains("CaUsedAsEndEntity") => {
            "it is an authority's own, which it may be only where it is trusted itself".to_owned()
        }
        other => other.to_string(),
    }
}

/// A name of a certificate without the kind that rustls writes before it, as in `DnsName("db.example")`.
fn plain_name(presented: &str) -> &str {
    let inner = presented.split_once('(').map(|(_, inner)| inner);
    let inner = inner.and_then(|inner| inner.strip_suffix(')'));
    inner.map_or(presented, |inner| inner.trim_matches('"'))
}

fn bundle(ca: &Path) -> Option<PathBuf> {
    if ca != Path::new(SYSTEM) {
        return Some(ca.to_owned());
    }
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let mut known = named.into_iter().chain(SYSTEM_BUNDLES.map(PathBuf::from));
    known.find(|path| path.exists())
}

fn unreadable(path: &Path, error: &dyn fmt::Display) -> EngineError {
    EngineError::unavailable(format!("{}: {error}", path.display()))
}

/// The certificates in a file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, EngineError> {
    let wrong = |error: &dyn fmt::Display| unreadable(path, error);
    let bytes = files::read_named(path, PEM_BYTES_MAX).map_err(|error| wrong(&error))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(wrong(&"there is no certificate in it (PEM)")),
        Err(error) => Err(wrong(&error)),
    }
}

/// The key in a file that no other user may read (libpq's rule: its group may, where it is root's).
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, EngineError> {
    let wrong = |error: &dyn fmt::Display| unreadable(path, error);
    let found = std::fs::metadata(path).map_err(|error| wrong(&error))?;
    let closed = if found.uid() == 0 { 0o027 } else { 0o077 };
    if found.mode() & closed != 0 {
        return Err(wrong(
            &"others may read it, so it is not used: chmod 0600 it",
        ));
    }
    let bytes = files::read_named(path, PEM_BYTES_MAX).map_err(|error| wrong(&error))?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| wrong(&error))
}

/// The roots among them. As with libpq and OpenSSL, a chain ends at one: an authority between, or the server's own
/// certificate that another signed, is not trusted by being named.
fn anchors(trusted: &[CertificateDer<'static>]) -> RootCertStore {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(trusted.iter().filter(|one| is_root(one)).cloned());
    store
}

fn is_root(certificate: &CertificateDer<'_>) -> bool {
    certificate::is_self_issued(certificate) == Some(true)
}

/// Judges who a server is.
#[derive(Debug)]
struct Judge {
    /// Who is trusted; without them everyone is.
    anchors: Option<RootCertStore>,
    /// The same as they are: a server's certificate may be its own authority.
    trusted: Vec<CertificateDer<'static>>,
    is_for_host: bool,
    provider: Arc<CryptoProvider>,
    /// Whether the server has proved to have the key of its certificate.
    has_proved: AtomicBool,
}

impl Judge {
    fn proved(
        &self,
        signature: Result<HandshakeSignatureValid, Error>,
        certificate: &CertificateDer<'_>,
    ) -> Result<HandshakeSignatureValid, Error> {
        match signature {
            Ok(proved) => {
                self.has_proved.store(true, Ordering::Release);
                Ok(proved)
            }
            // A certificate that cannot be read at all proves nothing, and nothing was asked of it.
            Err(_)
                if self.anchors.is_none() && ParsedCertificate::try_from(certificate).is_err() =>
            {
                Ok(HandshakeSignatureValid::assertion())
            }
            Err(error) => Err(error),
        }
    }
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(anchors) = &self.anchors else {
            return Ok(ServerCertVerified::assertion());
        };
        let parsed = ParsedCertificate::try_from(certificate)?;
        let is_trusted_itself = self.trusted.iter().any(|trusted| trusted == certificate);
        if is_trusted_itself && is_root(certificate) {
            let now = std::time::Duration::from_secs(now.as_secs());
            if certificate::holds_at(certificate, now) != Some(true) {
                return Err(CertificateError::Expired.into());
            }
        } else {
            let algorithms = self.provider.signature_verification_algorithms.all;
            // What is trusted and no root may lie on the way to one.
            let known = self.trusted.iter().filter(|one| !is_root(one)).cloned();
            let between: Vec<_> = known.chain(intermediates.iter().cloned()).collect();
            verify_server_cert_signed_by_trust_anchor(&parsed, anchors, &between, now, algorithms)?;
        }
        if self.is_for_host {
            verify_server_name(&parsed, host)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let signature = verify_tls12_signature(message, certificate, signed, algorithms);
        self.proved(signature, certificate)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let signature = verify_tls13_signature(message, certificate, signed, algorithms);
        self.proved(signature, certificate)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// How a connection is encrypted.
pub(crate) fn version(connection: &ClientConnection) -> String {
    let version = connection.protocol_version();
    let suite = connection.negotiated_cipher_suite();
    let words = [
        version.and_then(|version| version.as_str()),
        suite.and_then(|suite| suite.suite().as_str()),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What an encrypted connection is, in words.
pub(crate) fn described(encryption: &Encryption, version: &str) -> String {
    let verified = match (encryption.in_force(), &encryption.ca) {
        (TlsMode::VerifyFull, _) => "the server's certificate was verified, and its host",
        (_, Some(_)) => "the server's certificate was verified, its host was not",
        (_, None) => "the server's certificate was not verified",
    };
    format!("the connection is encrypted ({version}); {verified}")
}
