//! Messages to and from a server (https://www.postgresql.org/docs/current/protocol.html) over its socket or a network,
//! with blocking calls: a request is one write, an answer as few reads as it comes in. Buffers are kept, and nothing is
//! allocated for a call.

use std::borrow::Cow;
use std::io::{Read, Write};
use std::ops::Range;

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    self, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::backend::{
    self, AUTHENTICATION_TAG, BACKEND_KEY_DATA_TAG, ERROR_RESPONSE_TAG, NOTICE_RESPONSE_TAG,
    NOTIFICATION_RESPONSE_TAG, PARAMETER_STATUS_TAG, READY_FOR_QUERY_TAG,
};
use postgres_protocol::message::frontend;
use spindle_workload::{Complaint, SessionError};

use super::stream::{Stream, meaning};
use super::temporary;
use crate::sql::NOT_TOLD;
use crate::sql::encryption::ChannelBinding;

const INPUT_BYTES: usize = 16 << 10;
/// Tag and length of a message.
const HEAD_BYTES: usize = 5;
/// Kinds of authentication messages ("Message Formats" of the protocol's description).
const AUTHENTICATION_OK: i32 = 0;
const AUTHENTICATION_CLEARTEXT: i32 = 3;
const AUTHENTICATION_MD5: i32 = 5;
const AUTHENTICATION_SASL: i32 = 10;
const AUTHENTICATION_SASL_CONTINUE: i32 = 11;
const AUTHENTICATION_SASL_FINAL: i32 = 12;
/// What is said of a server that lets us in otherwise.
const NOT_BOUND: &str =
    "its channel_binding is require, and the server does not ask for SCRAM-SHA-256-PLUS";
/// What a server says of its transaction when there is none.
const IDLE: u8 = b'I';

/// Who logs in, and to what.
#[derive(Clone)]
pub(super) struct Login {
    /// The user.
    pub user: String,
    /// The password; `None`: there is none.
    pub password: Option<String>,
    /// The database.
    pub database: String,
    /// What the server is to call the session.
    pub application: String,
    /// Whether the password is proved for the encrypted connection alone.
    pub channel_binding: ChannelBinding,
}

/// A connection that messages go over.
pub(super) struct Wire {
    pub(super) stream: Stream,
    /// What is to be sent next.
    pub out: BytesMut,
    input: Vec<u8>,
    /// What has been read of `input` and not been taken.
    unread: Range<usize>,
    /// The server's process for this connection.
    pub process_id: u32,
    /// Bytes of temporary files of single processes that the server has told of since this was set to 0.
    pub temporary_bytes: u64,
    /// Whether the server had the password itself, and not a proof of it.
    pub was_told: bool,
    in_transaction: bool,
    is_closed: bool,
    /// The character of the statement that the last error is about, from 1 on; 0: it says none.
    pub error_position: usize,
}

/// A message of the server: its kind, and where its body lies.
pub(super) struct Message {
    pub tag: u8,
    body: Range<usize>,
}

/// What went wrong in the protocol itself.
pub(super) fn unexpected(what: &str) -> SessionError {
    SessionError::Failed(format!("PostgreSQL's protocol: {what}"))
}

impl Wire {
    /// Connects, and proves to know the password.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn connect(stream: Stream, login: &Login) -> Result<Wire, SessionError> {
        let mut wire = Wire {
            stream,
            out: BytesMut::with_capacity(INPUT_BYTES),
            input: vec![0; INPUT_BYTES],
            unread: 0..0,
            process_id: 0,
            temporary_bytes: 0,
            was_told: false,
            in_transaction: false,
            is_closed: false,
            error_position: 0,
        };
        let parameters = [
            ("user", login.user.as_str()),
            ("database", &login.database),
            ("client_encoding", "UTF8"),
            ("application_name", &login.application),
        ];
        let written = frontend::startup_message(parameters, &mut wire.out);
        written.map_err(|error| unexpected(&error.to_string()))?;
        wire.send()?;
        wire.authenticate(login)?;
        wire.ready(|wire, message| {
            if message.tag == BACKEND_KEY_DATA_TAG {
                wire.process_id = number_at(wire.body(&message), 0)?.unsigned_abs();
            }
            Ok(())
        })?;
        wire.stream.wait_for_ever()?;
        Ok(wire)
    }

    fn authenticate(&mut self, login: &Login) -> Result<(), SessionError> {
        let failed = |text: &str| Err(SessionError::Failed(text.to_owned()));
        let password = login.password.as_deref();
        let bytes = password.unwrap_or_default().as_bytes();
        let must_bind = login.channel_binding == ChannelBinding::Require;
        let mut scram = None;
        let mut is_proved = false;
        loop {
            let message = self.next_message()?;
            if message.tag != AUTHENTICATION_TAG {
                return Err(unexpected("no authentication where one belongs"));
            }
            let body = &self.input[message.body];
            let (kind, data) = (number_at(body, 0)?, body.get(4..).unwrap_or_default());
            match kind {
                // A server that began to prove itself is to have done so.
                AUTHENTICATION_OK if scram.is_some() && !is_proved => {
                    return failed("the server does not prove that it knows the password");
                }
                AUTHENTICATION_OK if must_bind && scram.is_none() => return failed(NOT_BOUND),
                AUTHENTICATION_OK => return Ok(()),
                AUTHENTICATION_CLEARTEXT | AUTHENTICATION_MD5 if must_bind => {
                    return failed(NOT_BOUND);
                }
                AUTHENTICATION_CLEARTEXT | AUTHENTICATION_SASL | AUTHENTICATION_MD5
                    if password.is_none() =>
                {
                    return failed("the server asks for a password, and there is none");
                }
                AUTHENTICATION_CLEARTEXT => self.tell_as_written(bytes)?,
                AUTHENTICATION_MD5 => {
                    let salt = data.get(..4).and_then(|salt| salt.try_into().ok());
                    let salt = salt.ok_or_else(|| unexpected("md5 without its salt"))?;
                    let hash = md5_hash(login.user.as_bytes(), bytes, salt);
                    self.tell(hash.as_bytes())?;
                }
                AUTHENTICATION_SASL => {
                    let end_point = self.stream.end_point();
                    let (word, binding) = bound(data, login.channel_binding, end_point)?;
                    let begun = scram.insert(ScramSha256::new(bytes, binding));
                    frontend::sasl_initial_response(word, begun.message(), &mut self.out)
                        .map_err(wrong)?;
                    self.send()?;
                }
                AUTHENTICATION_SASL_CONTINUE => {
                    let begun = scram
                        .as_mut()
                        .ok_or_else(|| unexpected("SASL out of order"))?;
                    begun.update(data).map_err(wrong)?;
                    frontend::sasl_response(begun.message(), &mut self.out).map_err(wrong)?;
                    self.send()?;
                }
                AUTHENTICATION_SASL_FINAL => {
                    let begun = scram
                        .as_mut()
                        .ok_or_else(|| unexpected("SASL out of order"))?;
                    begun.finish(data).map_err(wrong)?;
                    is_proved = true;
                }
                other => {
                    return Err(SessionError::Failed(format!(
                        "the server asks for authentication of kind {other}, and Spindle knows scram-sha-256 and md5 only"
                    )));
                }
            }
        }
    }

    /// Sends a password where it cannot be overheard.
    fn tell_as_written(&mut self, password: &[u8]) -> Result<(), SessionError> {
        if !self.stream.is_private() {
            return Err(SessionError::Failed(NOT_TOLD.to_owned()));
        }
        self.was_told = true;
        self.tell(password)
    }

    /// Tells a password, or its hash.
    fn tell(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        frontend::password_message(bytes, &mut self.out).map_err(wrong)?;
        self.send()
    }

    /// What its connection is, if it is encrypted.
    pub fn encryption(&self) -> Option<String> {
        self.stream.encryption()
    }

    /// Whether a transaction is open, failed or not.
    pub fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Whether it is of no more use.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Sends what is in `out`.
    pub fn send(&mut self) -> Result<(), SessionError> {
        self.error_position = 0;
        let sent = self.stream.write_all(&self.out);
        let sent = sent.and_then(|()| self.stream.flush());
        self.out.clear();
        let Err(error) = sent else {
            return Ok(());
        };
        // The server has closed it; perhaps it has said why.
        while !self.is_closed {
            self.next_message()?;
        }
        Err(meaning(&error))
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        self.out.extend_from_slice(bytes);
        self.send()
    }

    /// The body of the message that was taken last.
    pub fn body(&self, message: &Message) -> &[u8] {
        &self.input[message.body.clone()]
    }

    /// The next message that is not a notice; an error of the server is one.
    pub fn next_message(&mut self) -> Result<Message, SessionError> {
        loop {
            let message = self.take_message()?;
            match message.tag {
                NOTICE_RESPONSE_TAG => {
                    self.temporary_bytes += temporary_bytes_of(self.body(&message));
                }
                NOTIFICATION_RESPONSE_TAG | PARAMETER_STATUS_TAG => {}
                ERROR_RESPONSE_TAG => {
                    let error = error_of(self.body(&message));
                    let position = field_of(self.body(&message), b'P');
                    self.error_position = position.and_then(|text| text.parse().ok()).unwrap_or(0);
                    self.is_closed |= error.is_lost();
                    return Err(error);
                }
                _ => return Ok(message),
            }
        }
    }

    /// Takes every message until the server is ready again, and tells `visit` of each. The first error is returned, be
    /// it the server's or `visit`'s, after the rest was taken. After an error of the server, the wait for the rest is
    /// limited: some servers forget to be ready again.
    pub fn ready(
        &mut self,
        mut visit: impl FnMut(&mut Wire, Message) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        let (mut first_error, mut is_limited) = (None, false);
        loop {
            let taken = match self.next_message() {
                Ok(message) if message.tag == READY_FOR_QUERY_TAG => {
                    self.in_transaction = self.body(&message).first() != Some(&IDLE);
                    if is_limited {
                        self.stream.wait_for_ever()?;
                    }
                    return first_error.map_or(Ok(()), Err);
                }
                Ok(message) if first_error.is_none() => visit(self, message),
                Ok(_) => Ok(()),
                Err(error) if !is_limited && !self.is_closed => {
                    is_limited = true;
                    self.stream.wait_after_error()?;
                    Err(error)
                }
                Err(error) => Err(error),
            };
            if let Err(error) = taken {
                let error = first_error.get_or_insert(error);
                if self.is_closed {
                    return Err(error.clone());
                }
            }
        }
    }

    fn take_message(&mut self) -> Result<Message, SessionError> {
        self.fill(HEAD_BYTES)?;
        let head = backend::Header::parse(&self.input[self.unread.clone()]);
        let Ok(Some(head)) = head else {
            self.is_closed = true;
            return Err(unexpected("a message without a length"));
        };
        // The length counts itself, and not the tag.
        let bytes = head.len() as usize + 1;
        self.fill(bytes)?;
        let body = self.unread.start + HEAD_BYTES..self.unread.start + bytes;
        self.unread.start += bytes;
        Ok(Message {
            tag: head.tag(),
            body,
        })
    }

    /// Reads until `bytes` have arrived.
    fn fill(&mut self, bytes: usize) -> Result<(), SessionError> {
        while self.unread.len() < bytes {
            if self.unread.is_empty() {
                self.unread = 0..0;
            }
            if self.unread.start + bytes > self.input.len() {
                self.input.copy_within(self.unread.clone(), 0);
                self.unread = 0..self.unread.len();
                let wanted = self.input.len().max(bytes);
                self.input.resize(wanted, 0);
            }
            match self.stream.read(&mut self.input[self.unread.end..]) {
                Ok(0) => {
                    self.is_closed = true;
                    return Err(SessionError::Lost(
                        "the server has closed the connection".to_owned(),
                    ));
                }
                Ok(read) => self.unread.end += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.is_closed = true;
                    return Err(meaning(&error));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if !self.is_closed {
            self.out.clear();
            frontend::terminate(&mut self.out);
            // A server that is gone need not be told.
            let _ = self.stream.write_all(&self.out);
            let _ = self.stream.flush();
        }
    }
}

/// What went wrong with a password.
fn wrong(error: std::io::Error) -> SessionError {
    SessionError::Failed(format!("password: {error}"))
}

/// By which mechanism a password is proved, of those that the server offers, and for which connection.
fn bound(
    offered: &[u8],
    wanted: ChannelBinding,
    end_point: Option<&[u8]>,
) -> Result<(&'static str, sasl::ChannelBinding), SessionError> {
    let mut words = offered.split(|byte| *byte == 0);
    let can = words.any(|word| word == SCRAM_SHA_256_PLUS.as_bytes());
    match (wanted, end_point) {
        (ChannelBinding::Disable, _) => {
            Ok((SCRAM_SHA_256, sasl::ChannelBinding::unsupported()))
        }
        (_, Some(end_point)) if can => {
            let binding = sasl::ChannelBinding::tls_server_end_point(end_point.to_vec());
            Ok((SCRAM_SHA_256_PLUS, binding))
        }
        (ChannelBinding::Require, Some(_)) => Err(SessionError::Failed(NOT_BOUND.to_owned())),
        (ChannelBinding::Require, None) => Err(SessionError::Failed(
            "its channel_binding is require, and the connection is not encrypted, or by a certificate that it cannot be \
             bound to"
                .to_owned(),
        )),
        // That we could is told: a server that offers it then knows that another is between.
        (ChannelBinding::Prefer, Some(_)) => {
            Ok((SCRAM_SHA_256, sasl::ChannelBinding::unrequested()))
        }
        (ChannelBinding::Prefer, None) => {
            Ok((SCRAM_SHA_256, sasl::ChannelBinding::unsupported()))
        }
    }
}

/// Whether a server refused a connection for how it came: none of its rules (`pg_hba.conf`) lets it in.
pub(super) fn is_refused(error: &SessionError) -> bool {
    error.complaint() == Some(Complaint::NotLetIn)
}

/// The number of 32 bits at an offset.
pub(super) fn number_at(bytes: &[u8], offset: usize) -> Result<i32, SessionError> {
    let bytes = bytes.get(offset..offset + 4);
    let bytes = bytes.ok_or_else(|| unexpected("a message that is too short"))?;
    Ok(i32::from_be_bytes(bytes.try_into().expect("four bytes")))
}

/// The number of 16 bits at an offset.
pub(super) fn short_at(bytes: &[u8], offset: usize) -> Result<u16, SessionError> {
    let bytes = bytes.get(offset..offset + 2);
    let bytes = bytes.ok_or_else(|| unexpected("a message that is too short"))?;
    Ok(u16::from_be_bytes(bytes.try_into().expect("two bytes")))
}

/// A field of an error or a notice: they are of a letter and a text each ("Error and Notice Message Fields").
fn field_of(body: &[u8], letter: u8) -> Option<Cow<'_, str>> {
    let mut fields = body.split(|byte| *byte == 0);
    let found = fields.find(|field| field.first() == Some(&letter))?;
    Some(String::from_utf8_lossy(&found[1..]))
}

/// The size of the temporary file of which a notice tells; 0 when it tells of something else.
fn temporary_bytes_of(body: &[u8]) -> u64 {
    let field = |letter| field_of(body, letter).unwrap_or_default();
    temporary::own_bytes(&field(b'R'), &field(b'M')).unwrap_or(0)
}

/// What the server says when shared buffers hold fewer blocks than its clients need at one time.
const NO_BUFFERS: &str = "no unpinned buffers available";

/// An error of the server.
fn error_of(body: &[u8]) -> SessionError {
    let field = |letter| field_of(body, letter);
    let state = field(b'C').unwrap_or_default();
    let mut text = field(b'M').unwrap_or_default().into_owned();
    for more in [b'D', b'H'] {
        if let Some(more) = field(more) {
            text = format!("{text}; {more}");
        }
    }
    if text.contains(NO_BUFFERS) {
        text.push_str(
            "; every client holds some blocks at once: use fewer clients, or a larger buffer_cache",
        );
    }
    let text = format!("{text} (SQLSTATE {state})");
    // Appendix A of PostgreSQL's documentation, "Error Codes".
    match state.as_ref() {
        "40001" | "55P03" => SessionError::Retry(text),
        "40P01" => SessionError::Deadlock(text),
        "53100" => SessionError::NoRoom(text),
        "57P03" => SessionError::rejected(Complaint::StartsOrStops, text),
        state if state.starts_with("57P") || state.starts_with("08") => SessionError::Lost(text),
        // A statement that took longer than it may; a constraint.
        state if state == "57014" || state.starts_with("23") => SessionError::Refused(text),
        "28000" => SessionError::rejected(Complaint::NotLetIn, text),
        "42601" => SessionError::rejected(Complaint::Syntax, text),
        "42P08" | "42P18" => SessionError::rejected(Complaint::ParameterType, text),
        "42501" => SessionError::rejected(Complaint::Right, text),
        state if state.starts_with("42") => SessionError::rejected(Complaint::Names, text),
        _ => SessionError::Failed(text),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn error(state: &str) -> SessionError {
        let body = format!("SERROR\0VERROR\0C{state}\0Mno\0Dbecause\0\0");
        error_of(body.as_bytes())
    }

    #[test]
    fn too_few_buffers_are_told_with_a_remedy() {
        let body = b"SERROR\0C53000\0Mno unpinned buffers available\0\0";
        let told = error_of(body).to_string();
        assert!(
            told.contains("fewer clients, or a larger buffer_cache"),
            "{told}"
        );
    }

    #[test]
    fn errors_are_what_their_codes_say() {
        let text = |state: &str| format!("no; because (SQLSTATE {state})");
        assert_eq!(error("40001"), SessionError::Retry(text("40001")));
        assert_eq!(error("55P03"), SessionError::Retry(text("55P03")));
        assert_eq!(error("40P01"), SessionError::Deadlock(text("40P01")));
        assert_eq!(error("57P01"), SessionError::Lost(text("57P01")));
        for (state, complaint) in [
            ("57P03", Complaint::StartsOrStops),
            ("28000", Complaint::NotLetIn),
            ("42601", Complaint::Syntax),
            ("42P18", Complaint::ParameterType),
            ("42501", Complaint::Right),
            ("42P01", Complaint::Names),
        ] {
            assert_eq!(error(state), SessionError::rejected(complaint, text(state)));
        }
        assert!(error("57P03").is_lost());
        assert_eq!(error("23505"), SessionError::Refused(text("23505")));
        assert_eq!(error("57014"), SessionError::Refused(text("57014")));
        assert_eq!(error("53100"), SessionError::NoRoom(text("53100")));
    }

    #[test]
    fn notices_of_temporary_files_are_understood() {
        let text = "temporary file: path \"base/pgsql_tmp/pgsql_tmp7.0\", size 14000000";
        let body = |routine| format!("SLOG\0C00000\0M{text}\0Ffd.c\0L1442\0R{routine}\0\0");
        let bytes = |routine| temporary_bytes_of(body(routine).as_bytes());
        assert_eq!(bytes("ReportTemporaryFileUsage"), 14_000_000);
        assert_eq!(bytes("another"), 0);
    }

    #[test]
    fn messages_in_pieces_of_any_size_are_put_together() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut wire = Wire {
            stream: Stream::Unix(ours),
            out: BytesMut::new(),
            input: vec![0; 16],
            unread: 0..0,
            process_id: 0,
            temporary_bytes: 0,
            was_told: false,
            in_transaction: false,
            is_closed: false,
            error_position: 0,
        };
        let mut sent = Vec::new();
        for length in [0usize, 1, 7, 100, 3] {
            sent.push(b'D');
            sent.extend((length as i32 + 4).to_be_bytes());
            sent.extend(std::iter::repeat_n(length as u8, length));
        }
        sent.extend([b'Z', 0, 0, 0, 5, b'T']);
        let writer = std::thread::spawn(move || {
            for byte in sent.chunks(3) {
                theirs.write_all(byte).unwrap();
            }
            theirs
        });
        let mut lengths = Vec::new();
        wire.ready(|wire, message| {
            let body = wire.body(&message);
            assert!(body.iter().all(|byte| usize::from(*byte) == body.len()));
            lengths.push(body.len());
            Ok(())
        })
        .unwrap();
        assert_eq!(lengths, [0, 1, 7, 100, 3]);
        assert!(wire.in_transaction());
        drop(writer.join().unwrap());
        assert!(matches!(wire.next_message(), Err(SessionError::Lost(_))));
        assert!(wire.is_closed());
    }
}
