//! The transaction of TPC-B, and the select that is one part of it.

use crate::session::SessionError;
use crate::sql::SqlTransaction;
use crate::sql::connection::SqlConnection;
use crate::sql::value::Value;

const UPDATE_ACCOUNT: usize = 0;
const SELECT_ACCOUNT: usize = 1;
const UPDATE_TELLER: usize = 2;
const UPDATE_BRANCH: usize = 3;
const INSERT_HISTORY: usize = 4;

pub(super) fn statements() -> Vec<String> {
    let statements = [
        "update accounts set abalance = abalance + $1 where aid = $2",
        "select abalance from accounts where aid = $1",
        "update tellers set tbalance = tbalance + $1 where tid = $2",
        "update branches set bbalance = bbalance + $1 where bid = $2",
        "insert into history (tid, bid, aid, delta, mtime, client, number) \
         values ($1, $2, $3, $4, current_timestamp, $5, $6)",
    ];
    statements.map(str::to_owned).to_vec()
}

/// Money moved between an account, a teller and a branch.
pub(super) struct TpcbTransaction {
    pub account: i64,
    pub branch: i64,
    pub teller: i64,
    pub delta: i64,
    pub client: usize,
    pub number: u64,
}

impl SqlTransaction for TpcbTransaction {
    fn number(&self) -> u64 {
        self.number
    }

    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        connection.begin()?;
        update(connection, UPDATE_ACCOUNT, self.delta, self.account)?;
        select(connection, self.account)?;
        update(connection, UPDATE_TELLER, self.delta, self.teller)?;
        update(connection, UPDATE_BRANCH, self.delta, self.branch)?;
        let entry = [
            Value::Int(self.teller),
            Value::Int(self.branch),
            Value::Int(self.account),
            Value::Int(self.delta),
            Value::Int(self.client as i64),
            Value::Int(self.number as i64),
        ];
        connection.execute(INSERT_HISTORY, &entry)?;
        connection.commit()
    }
}

/// An account's balance asked for.
pub(super) struct Select {
    pub account: i64,
}

impl SqlTransaction for Select {
    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        select(connection, self.account)
    }
}

fn update(
    connection: &mut dyn SqlConnection,
    statement: usize,
    delta: i64,
    id: i64,
) -> Result<(), SessionError> {
    let rows = connection.execute(statement, &[Value::Int(delta), Value::Int(id)])?;
    one_row(rows, id)
}

fn select(connection: &mut dyn SqlConnection, account: i64) -> Result<(), SessionError> {
    let rows = connection.query(SELECT_ACCOUNT, &[Value::Int(account)], &mut |row| {
        row.int(0).map(drop)
    })?;
    one_row(rows, account)
}

fn one_row(rows: u64, id: i64) -> Result<(), SessionError> {
    match rows {
        1 => Ok(()),
        _ => Err(SessionError::Failed(format!(
            "{rows} rows have the key {id}"
        ))),
    }
}
