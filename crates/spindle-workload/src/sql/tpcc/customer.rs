//! The customer whom a payment or a question is about: by number, or in 60 of 100 cases by last name.

use super::random::{self, happens};
use super::terms::{Tpcc, int};
use crate::session::SessionError;
use crate::sql::connection::{SqlConnection, SqlRow};
use crate::sql::value::Value;
use crate::workload::Client;

/// Who.
pub enum Who {
    /// The one with a number.
    Number(u64),
    /// The one in the middle of those with a last name, by their first names (clause 2.5.2.2).
    LastName(String),
}

/// What is looked for in which order: a statement by number, and one by name.
pub struct Statements {
    pub by_number: usize,
    pub by_name: usize,
}

impl Who {
    pub fn draw(tpcc: &Tpcc, client: &mut Client) -> Who {
        let (rng, sizes) = (&mut client.rng, tpcc.sizes);
        match happens(rng, 60) {
            true => {
                let number = tpcc.constants.last_name(rng, sizes.last_names());
                Who::LastName(random::last_name(number))
            }
            false => Who::Number(tpcc.constants.customer(rng, sizes.customers)),
        }
    }

    /// Finds the customer in a warehouse and district; what `read` makes of the row.
    ///
    /// # Errors
    /// See [`SessionError`]; [`SessionError::Failed`] when there is no such customer.
    pub fn find<T>(
        &self,
        connection: &mut dyn SqlConnection,
        statements: &Statements,
        (warehouse, district): (u64, u64),
        read: impl Fn(&dyn SqlRow) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let (statement, key) = match self {
            Who::Number(number) => (statements.by_number, int(*number)),
            Who::LastName(name) => (statements.by_name, Value::text(name)),
        };
        let parameters = [int(warehouse), int(district), key];
        let mut found = Vec::new();
        connection.query(statement, &parameters, &mut |row| {
            found.push(read(row)?);
            Ok(())
        })?;
        // Position n/2, rounded up, counted from 1.
        let middle = found.len().div_ceil(2).saturating_sub(1);
        match found.is_empty() {
            false => Ok(found.swap_remove(middle)),
            true => Err(SessionError::Failed(format!(
                "there is no customer {parameters:?}"
            ))),
        }
    }

    /// As procedures take it: a number, or 0 and a name.
    pub fn parameters(&self) -> [Value<'_>; 2] {
        match self {
            Who::Number(number) => [int(*number), Value::text("")],
            Who::LastName(name) => [Value::Int(0), Value::text(name)],
        }
    }
}
