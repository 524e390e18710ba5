//! Order status (clause 2.6): what became of a customer's last order. Changes nothing.

use super::customer::{Statements, Who};
use super::random::uniform;
use super::statements::{LAST_ORDER, LINES, STATUS_BY_ID, STATUS_BY_NAME};
use super::terms::{DISTRICTS, ORDER_STATUS, Tpcc, int};
use crate::session::SessionError;
use crate::sql::SqlTransaction;
use crate::sql::connection::SqlConnection;
use crate::sql::value::Value;
use crate::workload::Client;

/// The inputs.
pub struct OrderStatus {
    pub(super) warehouse: u64,
    pub(super) district: u64,
    pub(super) who: Who,
    procedure: bool,
}

impl OrderStatus {
    pub fn draw(tpcc: &Tpcc, client: &mut Client) -> OrderStatus {
        OrderStatus {
            warehouse: tpcc.home(client),
            district: uniform(&mut client.rng, 1, DISTRICTS),
            who: Who::draw(tpcc, client),
            procedure: tpcc.procedures,
        }
    }

    fn call(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        let [customer, name] = self.who.parameters();
        let parameters = [int(self.warehouse), int(self.district), customer, name];
        let answered = connection.query(ORDER_STATUS, &parameters, &mut |_| Ok(()));
        answered.map(drop)
    }
}

impl SqlTransaction for OrderStatus {
    fn kind(&self) -> usize {
        ORDER_STATUS
    }

    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        if self.procedure {
            return self.call(connection);
        }
        connection.begin_reading()?;
        let statements = Statements {
            by_number: STATUS_BY_ID,
            by_name: STATUS_BY_NAME,
        };
        let place = (self.warehouse, self.district);
        let customer = self
            .who
            .find(connection, &statements, place, |row| row.int(0))?;
        let (warehouse, district) = (int(self.warehouse), int(self.district));
        let mut order = None;
        let key = [warehouse.clone(), district.clone(), Value::Int(customer)];
        connection.query(LAST_ORDER, &key, &mut |row| {
            order = Some(row.int(0)?);
            Ok(())
        })?;
        let order = order.ok_or_else(|| {
            SessionError::Failed(format!("customer {customer} has never ordered anything"))
        })?;
        connection.query(
            LINES,
            &[warehouse, district, Value::Int(order)],
            &mut |_| Ok(()),
        )?;
        connection.commit()
    }
}
