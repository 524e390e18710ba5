//! A connection to a server: to Spindle's server over its socket, to an existing one as its address says.

use std::error::Error;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql::consts::CapabilityFlags;
use mysql::prelude::{Protocol, Queryable};
use mysql::session_state_change::SessionStateChange;
use mysql::{
    ClientIdentity, Conn, DriverError, OptsBuilder, Params, QueryResult, SslOpts, Statement,
};
use spindle_system::SystemTree;
use spindle_system::threads::{thread_of, written_bytes};
use spindle_workload::sql::connection::{Breaker, Visit};
use spindle_workload::sql::{Dialect, LoadPart, SqlConnection, Value};
use spindle_workload::{Complaint, SessionError};

use super::load;
use super::prepared::{Prepared, has_xa};
use super::values::{AnswerRow, parameter};
use crate::sql::address::Reach;
use crate::sql::encryption::TlsMode;
use crate::sql::restore::NO_DEFINER;
use crate::sql::tls;
use crate::sql::{Address, NOT_TOLD, Password};

/// The database that workloads have their tables in.
pub(super) const DATABASE: &str = "spindle";
/// The table of a database on an existing server that holds the token.
pub(super) const TOKEN: &str = "spindle_token";
/// Begins to read: changes are refused until the transaction ends.
pub(super) const READ_ONLY: &str = "start transaction read only";
/// The thread of the system that serves a connection. MySQL keeps intermediate results in mapped files, which are not
/// counted: it answers null.
const THREAD: &str = "select if(version() like '%mariadb%', thread_os_id, null) \
     from performance_schema.threads where processlist_id = connection_id()";
/// The largest statement or row, as the server is told, too.
const PACKET_MAX_BYTES: usize = 64 << 20;

/// How a server asks for a password as it is written.
const CLEAR_PASSWORD: &str = "mysql_clear_password";
/// How long a server on a network may take to answer at all.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long one that is connected may say nothing, until a client is logged in.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// One that is silent is asked whether it is still there, and given up when it says nothing or takes nothing (tcp(7)).
const SILENCE_MS: u32 = 15_000;
const QUESTION_S: u32 = 5;
const QUESTIONS: u32 = 3;
const PATIENCE_MS: u32 = 30_000;

/// How to come to a server.
#[derive(Clone)]
pub(super) struct Access {
    options: OptsBuilder,
    /// Of a server of Spindle's own, the open directory that the socket is in: its own path may be too long for one.
    _directory: Option<Arc<File>>,
    encryption: Option<Encryption>,
    /// A client has logged in: a server that takes connections and says nothing would be waited for without end.
    has_answered: Arc<AtomicBool>,
}

/// How connections over a network are encrypted.
#[derive(Clone)]
struct Encryption {
    address: Address,
    options: SslOpts,
    /// The server has said that it cannot, and a connection without is wanted then.
    is_plain: Arc<AtomicBool>,
}

impl Encryption {
    /// As an address says; `None`: never.
    fn of(address: &Address) -> Option<Encryption> {
        let said = &address.encryption;
        let mode = said.in_force();
        if mode == TlsMode::Disable || matches!(address.reach, Reach::Socket(_)) {
            return None;
        }
        let pair = said.certificate.clone().zip(said.key.clone());
        let options = SslOpts::default()
            .with_client_identity(
                pair.map(|(certificate, key)| ClientIdentity::new(certificate, key)),
            )
            .with_root_cert_path(said.ca.clone())
            .with_danger_accept_invalid_certs(mode < TlsMode::VerifyCa)
            .with_danger_skip_domain_validation(mode < TlsMode::VerifyFull);
        Some(Encryption {
            address: address.clone(),
            options,
            is_plain: Arc::default(),
        })
    }

    fn host(&self) -> &str {
        match &self.address.reach {
            Reach::Host { host, .. } => host,
            Reach::Socket(_) => "localhost",
        }
    }
}

impl Access {
    /// By the socket of that name in a directory, to a database.
    pub fn new(directory: File, socket: &str, password: &str, database: &str) -> Access {
        let path = format!("/proc/self/fd/{}/{socket}", directory.as_raw_fd());
        let options = OptsBuilder::new().socket(Some(path));
        Access {
            options: options
                .user(Some("root"))
                .pass(Some(password))
                .db_name(Some(database)),
            _directory: Some(Arc::new(directory)),
            encryption: None,
            has_answered: Arc::new(AtomicBool::new(true)),
        }
    }

    /// To an existing server, and to a database of it or none.
    pub fn foreign(
        address: &Address,
        password: Option<&Password>,
        database: Option<&str>,
    ) -> Access {
        let options = match &address.reach {
            Reach::Socket(path) => OptsBuilder::new().socket(Some(path.display().to_string())),
            Reach::Host { host, port } => OptsBuilder::new()
                .ip_or_hostname(Some(host.clone()))
                .tcp_port(*port)
                .tcp_connect_timeout(Some(CONNECT_LIMIT))
                .tcp_keepalive_time_ms(Some(SILENCE_MS))
                .tcp_keepalive_probe_interval_secs(Some(QUESTION_S))
                .tcp_keepalive_probe_count(Some(QUESTIONS))
                .tcp_user_timeout_ms(Some(PATIENCE_MS)),
        };
        // PAM and LDAP have it so. An encrypted connection is asked for elsewhere.
        let options = options.enable_cleartext_plugin(address.reach.stays_here());
        Access {
            options: options
                // An address with a host and a port means these.
                .prefer_socket(false)
                .user(Some(address.user.clone()))
                .pass(password.map(Password::text))
                .db_name(database),
            _directory: None,
            encryption: Encryption::of(address),
            has_answered: Arc::default(),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn connect(&self) -> Result<Conn, SessionError> {
        self.await_an_answer()?;
        self.open(None)
    }

    /// Connects a client that gives up when the server does not answer within this time.
    pub fn connect_for(&self, patience: Duration) -> Result<Conn, SessionError> {
        self.await_an_answer()?;
        self.open(Some(patience))
    }

    /// Logs in and out once, as the limit of a client's patience holds for all of its life.
    fn await_an_answer(&self) -> Result<(), SessionError> {
        if !self.has_answered.load(Ordering::Relaxed) {
            self.open(Some(ANSWER_LIMIT))?;
            self.has_answered.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn open(&self, patience: Option<Duration>) -> Result<Conn, SessionError> {
        let options = self.options.clone();
        let options = options
            // The statements of a workload are closed by their connection only.
            .stmt_cache_size(0)
            .max_allowed_packet(Some(PACKET_MAX_BYTES))
            .read_timeout(patience)
            // An update that finds its row and changes nothing has found it.
            .additional_capabilities(
                CapabilityFlags::CLIENT_FOUND_ROWS | CapabilityFlags::CLIENT_SESSION_TRACK,
            );
        let Some(encryption) = &self.encryption else {
            return Conn::new(options).map_err(session_error);
        };
        if encryption.is_plain.load(Ordering::Relaxed) {
            return Conn::new(options).map_err(session_error);
        }
        // Its files, before anything connects.
        tls::Tls::of(&encryption.address)
            .map_err(|error| SessionError::Failed(error.to_string()))?;
        let encrypted = options
            .clone()
            .enable_cleartext_plugin(true)
            .ssl_opts(Some(encryption.options.clone()));
        match Conn::new(encrypted) {
            Ok(connection) => Ok(connection),
            Err(mysql::Error::DriverError(DriverError::TlsNotSupported)) => {
                if encryption.address.encryption.in_force() > TlsMode::Prefer {
                    return Err(SessionError::Failed(
                        "the server does not encrypt connections, which its ssl-mode asks for"
                            .to_owned(),
                    ));
                }
                encryption.is_plain.store(true, Ordering::Relaxed);
                Conn::new(options).map_err(session_error)
            }
            Err(error) => Err(encrypted_error(error, encryption.host())),
        }
    }
}

/// What an error means when an encrypted connection is made: a server that is not to be trusted is no lost one.
fn encrypted_error(error: mysql::Error, host: &str) -> SessionError {
    match input_output(&error).and_then(tls::tls_error) {
        Some(inner) => SessionError::Failed(tls::words(inner, host)),
        None => session_error(error),
    }
}

/// The system's error that is in one of the client library's.
fn input_output(error: &mysql::Error) -> Option<&io::Error> {
    match error {
        mysql::Error::IoError(inner) => Some(inner),
        mysql::Error::CodecError(inner) => inner.source().and_then(|inner| inner.downcast_ref()),
        _ => None,
    }
}

/// What an error of the client library means to a transaction (https://mariadb.com/docs/server/reference/error-codes).
pub(super) fn session_error(error: mysql::Error) -> SessionError {
    let text = words_of(&error);
    match &error {
        mysql::Error::MySqlError(refused) => of_code(refused.code, text),
        mysql::Error::IoError(_) | mysql::Error::CodecError(_) => SessionError::Lost(text),
        mysql::Error::DriverError(
            DriverError::ConnectTimeout
            | DriverError::CouldNotConnect(_)
            | DriverError::PacketOutOfSync
            | DriverError::UnexpectedPacket
            | DriverError::Timeout,
        ) => SessionError::Lost(text),
        _ => SessionError::Failed(text),
    }
}

/// What to do about an error of this code, where that is known.
fn advice(code: u16) -> &'static str {
    match code {
        // ER_NO_SUCH_USER, of views, routines and triggers.
        1449 => NO_DEFINER,
        _ => "",
    }
}

/// An error without the names of the library's types.
fn words_of(error: &mysql::Error) -> String {
    match (error, input_output(error)) {
        (_, Some(inner)) if inner.kind() == ErrorKind::WouldBlock => {
            "it takes connections, but does not answer: is it a server of MariaDB or MySQL, and does it still work?"
                .to_owned()
        }
        (_, Some(inner)) => inner.to_string(),
        (mysql::Error::MySqlError(refused), None) => format!("{refused}{}", advice(refused.code)),
        (mysql::Error::DriverError(DriverError::UnknownAuthPlugin(name)), None)
            if name == CLEAR_PASSWORD =>
        {
            NOT_TOLD.to_owned()
        }
        (mysql::Error::DriverError(error), None) => error.to_string(),
        (error, None) => error.to_string(),
    }
}

fn of_code(code: u16, text: String) -> SessionError {
    match code {
        // ER_LOCK_DEADLOCK
        1213 => SessionError::Deadlock(text),
        // ER_LOCK_WAIT_TIMEOUT, ER_CHECKREAD
        1205 | 1020 => SessionError::Retry(text),
        // ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED, CR_SERVER_GONE_ERROR, CR_SERVER_LOST
        1053 | 1927 | 2006 | 2013 => SessionError::Lost(text),
        // ER_DISK_FULL, ER_RECORD_FILE_FULL: InnoDB cannot make its file larger.
        1021 | 1114 => SessionError::NoRoom(text),
        // Duplicates, missing parents, still referenced rows, missing values, checks of MySQL and of MariaDB.
        1062 | 1451 | 1452 | 1048 | 3819 | 4025 => SessionError::Refused(text),
        // It took longer than max_statement_time (MariaDB), max_execution_time (MySQL).
        1969 | 3024 => SessionError::Refused(text),
        // ER_PARSE_ERROR
        1064 => SessionError::rejected(Complaint::Syntax, text),
        // ER_DBACCESS_DENIED_ERROR, ER_ACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_COLUMNACCESS_DENIED_ERROR,
        // ER_SPECIFIC_ACCESS_DENIED_ERROR, ER_PROCACCESS_DENIED_ERROR, ER_ACCESS_DENIED_NO_PASSWORD_ERROR
        1044 | 1045 | 1142 | 1143 | 1227 | 1370 | 1698 => {
            SessionError::rejected(Complaint::Right, text)
        }
        // ER_NO_SUCH_THREAD
        1094 => SessionError::rejected(Complaint::NoSuchSession, text),
        _ => SessionError::Failed(text),
    }
}

/// One client's connection.
pub(super) struct MariaDbConnection {
    connection: Conn,
    statements: Vec<WorkStatement>,
    /// Number of the server's process; `None` when it isn't this machine's.
    server_id: Option<u32>,
    written: Option<Written>,
    /// Whether it has changed a row since temporary space was asked for.
    has_changed: bool,
    in_transaction: bool,
    is_closed: bool,
    /// Transactions that outlive the session, of a server that does, too.
    prepared: Option<Prepared>,
    /// By which its waits are ended.
    access: Option<Access>,
}

/// A statement of a workload.
struct WorkStatement {
    text: String,
    /// Whether it is one of `XA`.
    is_xa: bool,
    /// The numbers of the parameters that it takes.
    order: Vec<usize>,
    /// `None`: it could not be prepared yet.
    statement: Option<Statement>,
}

/// What had been written when temporary space was asked for last.
struct Written {
    /// The server's thread for this connection, in `/proc`.
    thread: PathBuf,
    /// By that thread, to whatever file.
    bytes: u64,
}

impl MariaDbConnection {
    /// Of a server that is the process of this number, when that is known.
    pub fn new(connection: Conn, server_id: Option<u32>) -> MariaDbConnection {
        MariaDbConnection {
            connection,
            statements: Vec::new(),
            server_id,
            written: None,
            has_changed: false,
            in_transaction: false,
            is_closed: false,
            prepared: None,
            access: None,
        }
    }

    /// One whose waits can be ended, by another connection that is made so.
    pub fn reached_by(mut self, access: &Access) -> MariaDbConnection {
        self.access = Some(access.clone());
        self
    }

    /// One that remembers there what it prepares and does not end.
    pub fn remembering(mut self, prepared: Prepared) -> MariaDbConnection {
        self.prepared = Some(prepared);
        self
    }

    /// Goes to another database of the server.
    pub fn enter(&mut self, database: &str) -> Result<(), SessionError> {
        self.carry_out(|connection| connection.select_db(database).map_err(session_error))
    }

    fn learn_prepared(&self, sql: &str) {
        if let Some(prepared) = &self.prepared {
            prepared.learn(sql);
        }
    }

    fn statement(&mut self, text: &str) -> Result<Statement, SessionError> {
        self.carry_out(|connection| connection.prep(text).map_err(session_error))
    }

    /// Learns from the last answer whether a transaction is open now. The client library keeps the status flags for
    /// itself, and hands over what a server that tracks transactions tells of changes
    /// (https://dev.mysql.com/doc/refman/8.0/en/session-state-tracking.html).
    fn learn_transaction(&mut self) {
        for change in self.connection.session_state_changes().unwrap_or_default() {
            if let Ok(SessionStateChange::TransactionState(state)) = change.decode() {
                self.in_transaction = matches!(state.as_bytes().first(), Some(b'T' | b'I'));
            }
        }
    }

    fn carry_out<T>(
        &mut self,
        what: impl FnOnce(&mut Conn) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let done = what(&mut self.connection);
        self.is_closed |= done.as_ref().is_err_and(SessionError::is_lost);
        done
    }

    /// Carries out a prepared statement and hands over what it answers.
    fn execute_with<T>(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        answer: impl FnOnce(QueryResult<'_, '_, '_, mysql::Binary>) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        if self.statements[statement].statement.is_none() {
            let text = self.statements[statement].text.clone();
            self.statements[statement].statement = Some(self.statement(&text)?);
        }
        let prepared = &self.statements[statement];
        let parameters: Vec<mysql::Value> = prepared
            .order
            .iter()
            .map(|number| parameter(&parameters[*number]))
            .collect();
        let parameters = match parameters.is_empty() {
            true => Params::Empty,
            false => Params::Positional(parameters),
        };
        let prepared = prepared.statement.as_ref().expect("prepared just now");
        let done = match self.connection.exec_iter(prepared, parameters) {
            Ok(result) => answer(result),
            Err(error) => Err(session_error(error)),
        };
        self.learn_transaction();
        self.is_closed |= done.as_ref().is_err_and(SessionError::is_lost);
        if self.statements[statement].is_xa && done.is_ok() {
            self.learn_prepared(&self.statements[statement].text);
        }
        done
    }
}

/// Calls `visit` with each row of every answer; how many there were.
fn each_row<P: Protocol>(
    mut result: QueryResult<'_, '_, '_, P>,
    visit: Visit<'_>,
) -> Result<u64, SessionError> {
    let mut count = 0;
    while let Some(rows) = result.iter() {
        for row in rows {
            visit(&AnswerRow(row.map_err(session_error)?))?;
            count += 1;
        }
    }
    Ok(count)
}

impl SqlConnection for MariaDbConnection {
    fn dialect(&self) -> Dialect {
        Dialect::MariaDb
    }

    fn prepare_what_can(
        &mut self,
        statements: &[String],
    ) -> Result<Vec<(usize, SessionError)>, SessionError> {
        let old = std::mem::take(&mut self.statements);
        self.carry_out(|connection| {
            for statement in old.into_iter().filter_map(|old| old.statement) {
                connection.close(statement).map_err(session_error)?;
            }
            Ok(())
        })?;
        let mut refused = Vec::new();
        for (number, sql) in statements.iter().enumerate() {
            let (text, order) = Dialect::MariaDb.placeholders(sql);
            let statement = match self.statement(&text) {
                Ok(statement) => Some(statement),
                Err(error) if self.is_closed => return Err(error),
                Err(error) => {
                    refused.push((number, error));
                    None
                }
            };
            self.statements.push(WorkStatement {
                is_xa: has_xa(&text),
                text,
                order,
                statement,
            });
        }
        Ok(refused)
    }

    fn run(&mut self, sql: &str) -> Result<(), SessionError> {
        self.carry_out(|connection| connection.query_drop(sql).map_err(session_error))?;
        self.has_changed |= self.connection.affected_rows() > 0;
        self.learn_transaction();
        self.learn_prepared(sql);
        Ok(())
    }

    fn ask(&mut self, sql: &str, visit: Visit<'_>) -> Result<(), SessionError> {
        self.carry_out(|connection| {
            let result = connection.query_iter(sql).map_err(session_error)?;
            each_row(result, visit).map(|_| ())
        })?;
        self.learn_prepared(sql);
        Ok(())
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        self.run("begin")
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        self.run("commit")
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        self.run("rollback")
    }

    fn watch_transactions(&mut self) -> Result<(), SessionError> {
        self.run("set session session_track_transaction_info = 'STATE'")
    }

    fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    fn execute(&mut self, statement: usize, parameters: &[Value<'_>]) -> Result<u64, SessionError> {
        let changed =
            self.execute_with(statement, parameters, |result| Ok(result.affected_rows()))?;
        self.has_changed |= changed > 0;
        Ok(changed)
    }

    fn query(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        visit: Visit<'_>,
    ) -> Result<u64, SessionError> {
        self.execute_with(statement, parameters, |result| each_row(result, visit))
    }

    fn load(&mut self, part: &LoadPart) -> Result<u64, SessionError> {
        self.has_changed = true;
        self.carry_out(|connection| load::load(connection, part))
    }

    fn limit_statement(&mut self, limit: Option<Duration>) -> Result<(), SessionError> {
        let limit = limit.unwrap_or_default();
        let (seconds, milliseconds) = (limit.as_secs_f64(), limit.as_millis());
        // MariaDB passes over comments of MySQL 5.7, and MySQL over those of MariaDB. Zero is no limit.
        self.run(&format!(
            "set @limited = 1 /*M!, max_statement_time = {seconds} */ /*!50708 , max_execution_time = {milliseconds} */"
        ))
    }

    fn watch_temporary_space(&mut self) -> Result<(), SessionError> {
        let Some(server_id) = self.server_id else {
            return Ok(());
        };
        let mut thread = None;
        self.ask(THREAD, &mut |row| {
            if !row.is_null(0)? {
                thread = Some(row.int(0)?);
            }
            Ok(())
        })?;
        let tree = SystemTree::default();
        let task = |thread: i64| Some(thread_of(&tree, server_id, thread.try_into().ok()?));
        self.written = thread.and_then(task).and_then(|thread| {
            let bytes = written_bytes(&thread)?;
            Some(Written { thread, bytes })
        });
        self.has_changed = false;
        Ok(())
    }

    /// MariaDB has no count of it (performance_schema does not see the files of sorts, and `Created_tmp_files` and the
    /// like are numbers of files). A thread whose client has changed nothing has written to temporary files only, and
    /// that the system counts.
    fn temporary_bytes(&mut self) -> Option<u64> {
        let written = self.written.as_mut()?;
        let bytes = written_bytes(&written.thread)?;
        let before = std::mem::replace(&mut written.bytes, bytes);
        let has_changed = std::mem::replace(&mut self.has_changed, false);
        (!has_changed).then_some(bytes - before)
    }

    fn breaker(&self) -> Option<Breaker> {
        let (access, number) = (self.access.clone()?, self.connection.connection_id());
        Some(Box::new(move || {
            // One that is gone need not be ended.
            if let Ok(mut other) = access.connect_for(ANSWER_LIMIT) {
                let _ = other.query_drop(format!("kill {number}"));
            }
        }))
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_an_unknown_definer_is_told_with_its_remedy() {
        let refused = |code| {
            let error = mysql::MySqlError {
                state: "HY000".to_owned(),
                message: "The user specified as a definer ('bob'@'%') does not exist".to_owned(),
                code,
            };
            session_error(mysql::Error::MySqlError(error)).to_string()
        };
        assert!(refused(1449).ends_with("does not exist; a view, a routine or a trigger was dumped with its DEFINER, who is \
             not on this server: take such clauses out of the dump (sed 's/DEFINER=[^ *]*//' DUMP > NEW)"));
        assert!(refused(1064).ends_with("does not exist"));
    }

    #[test]
    fn errors_mean_what_a_transaction_must_do() {
        let of = |code| of_code(code, "no".to_owned());
        let no = || "no".to_owned();
        assert_eq!(of(1213), SessionError::Deadlock(no()));
        assert_eq!(of(1205), SessionError::Retry(no()));
        assert_eq!(of(1053), SessionError::Lost(no()));
        assert_eq!(of(1062), SessionError::Refused(no()));
        assert_eq!(of(1114), SessionError::NoRoom(no()));
        assert_eq!(of(1064), SessionError::rejected(Complaint::Syntax, no()));
        let io = mysql::Error::IoError(ErrorKind::BrokenPipe.into());
        assert!(matches!(session_error(io), SessionError::Lost(_)));
        let silent = io::Error::from(ErrorKind::WouldBlock);
        let silent = session_error(mysql::Error::CodecError(silent.into()));
        assert!(matches!(&silent, SessionError::Lost(why) if why.contains("does not answer")));
    }
}
