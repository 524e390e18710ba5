//! Delivery (clause 2.7): the oldest order of every district that has not been delivered yet, all in one transaction.
//! Clients put it off where that is asked for ([`crate::driver`]).

use super::random::uniform;
use super::statements::{
    AMOUNTS, CREDIT_CUSTOMERS, CUSTOMERS_OF_ORDERS, DISTRICTS_ASKED, OLDEST_ORDERS,
    REMOVE_NEW_ORDERS, SET_CARRIER, SET_DELIVERED,
};
use super::terms::{DELIVERY, Tpcc, int, padded};
use crate::session::SessionError;
use crate::sql::SqlTransaction;
use crate::sql::connection::{SqlConnection, SqlRow};
use crate::sql::value::Value;
use crate::workload::Client;

/// The inputs.
pub struct Delivery {
    pub(super) warehouse: u64,
    pub(super) carrier: u64,
    procedure: bool,
}

/// A district, and something of it: an order, a customer, an amount.
type OfDistrict = (i64, i64);

impl Delivery {
    pub fn draw(tpcc: &Tpcc, client: &mut Client) -> Delivery {
        Delivery {
            warehouse: tpcc.home(client),
            carrier: uniform(&mut client.rng, 1, 10),
            procedure: tpcc.procedures,
        }
    }

    fn call(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        let parameters = [int(self.warehouse), int(self.carrier)];
        let answered = connection.query(DELIVERY, &parameters, &mut |_| Ok(()));
        answered.map(drop)
    }

    fn ask(
        &self,
        connection: &mut dyn SqlConnection,
        statement: usize,
        parameters: &[Value<'_>],
        read: impl Fn(&dyn SqlRow) -> Result<i64, SessionError>,
    ) -> Result<Vec<OfDistrict>, SessionError> {
        let mut found = Vec::with_capacity(DISTRICTS_ASKED);
        connection.query(statement, parameters, &mut |row| {
            found.push((row.int(0)?, read(row)?));
            Ok(())
        })?;
        Ok(found)
    }

    /// Sets the carrier of orders; their customers.
    fn set_carrier(
        &self,
        connection: &mut dyn SqlConnection,
        orders: &[Value<'static>],
    ) -> Result<Vec<OfDistrict>, SessionError> {
        let mut parameters = vec![int(self.carrier)];
        parameters.extend_from_slice(orders);
        if connection.dialect().updates_return() {
            return self.ask(connection, SET_CARRIER, &parameters, |row| row.int(1));
        }
        connection.execute(SET_CARRIER, &parameters)?;
        self.ask(connection, CUSTOMERS_OF_ORDERS, orders, |row| row.int(1))
    }

    fn deliver(
        &self,
        connection: &mut dyn SqlConnection,
        oldest: &[OfDistrict],
    ) -> Result<(), SessionError> {
        let warehouse = int(self.warehouse);
        let keys = oldest.iter().map(|(district, order)| {
            [warehouse.clone(), Value::Int(*district), Value::Int(*order)]
        });
        let orders = padded(keys, DISTRICTS_ASKED);
        if connection.execute(REMOVE_NEW_ORDERS, &orders)? != oldest.len() as u64 {
            return Err(SessionError::Retry(
                "another delivery took an order first".to_owned(),
            ));
        }
        let customers = self.set_carrier(connection, &orders)?;
        connection.execute(SET_DELIVERED, &orders)?;
        let dialect = connection.dialect();
        let amounts = self.ask(connection, AMOUNTS, &orders, |row| {
            dialect.read_exact(row, 1, 2)
        })?;
        if customers.len() != oldest.len() || amounts.len() != oldest.len() {
            return Err(SessionError::Failed(
                "an order, or its lines, are not there".to_owned(),
            ));
        }
        let credits = customers.iter().map(|(district, customer)| {
            let of_district = amounts.iter().find(|amount| amount.0 == *district);
            let cents = of_district.map_or(0, |amount| amount.1);
            [
                warehouse.clone(),
                Value::Int(*district),
                Value::Int(*customer),
                dialect.exact(cents, 2),
            ]
        });
        connection.execute(CREDIT_CUSTOMERS, &padded(credits, DISTRICTS_ASKED))?;
        Ok(())
    }
}

impl SqlTransaction for Delivery {
    fn kind(&self) -> usize {
        DELIVERY
    }

    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        if self.procedure {
            return self.call(connection);
        }
        connection.begin()?;
        let warehouse = [int(self.warehouse)];
        let oldest = self.ask(connection, OLDEST_ORDERS, &warehouse, |row| row.int(1))?;
        // A district without orders is passed over.
        if !oldest.is_empty() {
            self.deliver(connection, &oldest)?;
        }
        connection.commit()
    }
}
