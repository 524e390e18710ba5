//! Connects to an existing server as its address says: encrypted or not, and in the other way where `allow` and
//! `prefer` leave it open (https://www.postgresql.org/docs/current/libpq-ssl.html). Unlike with libpq, a wrong password
//! is not tried the other way, too.

use spindle_workload::SessionError;

use super::connection::PostgresConnection;
use super::stream::{EncryptionReply, Stream};
use super::wire::{Login, is_refused};
use crate::sql::address::Reach;
use crate::sql::encryption::{ChannelBinding, TlsMode};
use crate::sql::tls::Tls;
use crate::sql::{Address, Password};

/// Connects.
///
/// # Errors
/// See [`SessionError`]; where both ways were tried, why neither is open.
pub(super) fn connect(
    address: &Address,
    password: Option<&Password>,
    application: &str,
) -> Result<PostgresConnection, SessionError> {
    let wrong = |error: crate::EngineError| SessionError::Failed(error.to_string());
    let tls = Tls::of(address).map_err(wrong)?;
    let binding = address.encryption.channel_binding;
    let login = Login {
        user: address.user.clone(),
        password: password.map(|password| password.text().to_owned()),
        database: address.database.clone().unwrap_or_default(),
        application: application.to_owned(),
        channel_binding: binding.unwrap_or(ChannelBinding::Prefer),
    };
    let come = |stream| PostgresConnection::connect(stream, &login, None);
    let Some(tls) = tls else {
        return come(reach(address)?);
    };
    match address.encryption.in_force() {
        TlsMode::Allow => match come(reach(address)?) {
            Err(error) if is_refused(&error) => {
                let again = encrypted(address, &tls).and_then(come);
                again.map_err(|again| both("not encrypted", &error, "encrypted", &again))
            }
            decided => decided,
        },
        TlsMode::Prefer => {
            let error = match reach(address)?.ask_for(&tls) {
                Ok(EncryptionReply::Plain(stream)) => return come(stream),
                Ok(EncryptionReply::Encrypted(stream)) => match come(stream) {
                    Err(error) if is_refused(&error) => error,
                    decided => return decided,
                },
                // A server that does not answer this does not answer anything.
                Err(error) if error.is_lost() => return Err(error),
                Err(error) => error,
            };
            let again = reach(address).and_then(come);
            again.map_err(|again| both("encrypted", &error, "not encrypted", &again))
        }
        _ => come(encrypted(address, &tls)?),
    }
}

/// Why neither way is open.
fn both(so: &str, error: &SessionError, otherwise: &str, again: &SessionError) -> SessionError {
    let text = format!("{so}: {error}; {otherwise}: {again}");
    match again.complaint() {
        Some(complaint) => SessionError::rejected(complaint, text),
        None if again.is_lost() => SessionError::Lost(text),
        None => SessionError::Failed(text),
    }
}

fn reach(address: &Address) -> Result<Stream, SessionError> {
    let stream = match &address.reach {
        Reach::Host { host, port } => Stream::to_host(host, *port)?,
        Reach::Socket(path) => Stream::to_socket(path)?,
    };
    stream.wait_for_answers()
}

fn encrypted(address: &Address, tls: &Tls) -> Result<Stream, SessionError> {
    match reach(address)?.ask_for(tls)? {
        EncryptionReply::Encrypted(stream) => Ok(stream),
        EncryptionReply::Plain(_) => Err(SessionError::Failed(
            "the server does not encrypt connections".to_owned(),
        )),
    }
}
