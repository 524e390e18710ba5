//! Payment (clause 2.5): a customer pays; warehouse and district take note. The warehouse, which every payment there
//! changes, is changed last, so that it is locked for the shortest time.

use super::customer::{Statements, Who};
use super::random::{happens, uniform};
use super::statements::{
    CUSTOMER_BY_ID, CUSTOMERS_BY_NAME, INSERT_HISTORY, PAY, PAY_BAD_CREDIT, PAY_DISTRICT,
    PAY_WAREHOUSE, READ_DISTRICT_NAME, READ_WAREHOUSE_NAME,
};
use super::terms::{DISTRICTS, PAYMENT, Tpcc, int, numbered};
use crate::session::SessionError;
use crate::sql::SqlTransaction;
use crate::sql::connection::SqlConnection;
use crate::sql::value::{Value, decimal_text};
use crate::workload::Client;

/// Where a row of a customer has its number and its credit.
const ID: usize = 0;
const CREDIT: usize = 11;
pub(super) const BAD_CREDIT: &str = "BC";

/// The inputs.
pub struct Payment {
    pub(super) warehouse: u64,
    pub(super) district: u64,
    pub(super) customer_warehouse: u64,
    pub(super) customer_district: u64,
    pub(super) who: Who,
    pub(super) cents: i64,
    pub(super) client: usize,
    pub(super) number: u64,
    procedure: bool,
}

impl Payment {
    pub fn draw(tpcc: &Tpcc, client: &mut Client) -> Payment {
        let warehouse = tpcc.home(client);
        let district = uniform(&mut client.rng, 1, DISTRICTS);
        let (customer_warehouse, customer_district) = match happens(&mut client.rng, 85) {
            true => (warehouse, district),
            false => (
                tpcc.elsewhere(client, warehouse),
                uniform(&mut client.rng, 1, DISTRICTS),
            ),
        };
        Payment {
            warehouse,
            district,
            customer_warehouse,
            customer_district,
            who: Who::draw(tpcc, client),
            cents: uniform(&mut client.rng, 100, 500_000) as i64,
            client: client.number,
            number: numbered(client),
            procedure: tpcc.procedures,
        }
    }

    fn call(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        let [customer, name] = self.who.parameters();
        let parameters = [
            int(self.warehouse),
            int(self.district),
            int(self.customer_warehouse),
            int(self.customer_district),
            customer,
            name,
            connection.dialect().exact(self.cents, 2),
            Value::Int(self.client as i64),
            int(self.number),
        ];
        let answered = connection.query(PAYMENT, &parameters, &mut |_| Ok(()));
        answered.map(drop)
    }

    /// Takes the money; the customer's number.
    fn pay(&self, connection: &mut dyn SqlConnection) -> Result<i64, SessionError> {
        let statements = Statements {
            by_number: CUSTOMER_BY_ID,
            by_name: CUSTOMERS_BY_NAME,
        };
        let place = (self.customer_warehouse, self.customer_district);
        let (customer, credit) = self.who.find(connection, &statements, place, |row| {
            Ok((row.int(ID)?, row.text(CREDIT)?))
        })?;
        let mut parameters = vec![
            connection.dialect().exact(self.cents, 2),
            int(self.customer_warehouse),
            int(self.customer_district),
            Value::Int(customer),
        ];
        if credit == BAD_CREDIT {
            parameters.push(Value::Text(self.told_of(customer).into()));
            connection.execute(PAY_BAD_CREDIT, &parameters)?;
        } else {
            connection.execute(PAY, &parameters)?;
        }
        Ok(customer)
    }

    /// What goes before the data of a customer with bad credit (clause 2.5.2.2).
    pub(super) fn told_of(&self, customer: i64) -> String {
        format!(
            "{customer} {} {} {} {} {} | ",
            self.customer_district,
            self.customer_warehouse,
            self.district,
            self.warehouse,
            decimal_text(self.cents, 2)
        )
    }

    /// Adds the amount to what a district or a warehouse has taken; its name.
    fn add_to(
        &self,
        connection: &mut dyn SqlConnection,
        update: usize,
        read: usize,
        key: &[Value<'static>],
    ) -> Result<String, SessionError> {
        let mut parameters = vec![connection.dialect().exact(self.cents, 2)];
        parameters.extend_from_slice(key);
        let mut name = None;
        let mut visit = |row: &dyn crate::sql::SqlRow| {
            name = Some(row.text(0)?);
            Ok(())
        };
        if connection.dialect().updates_return() {
            connection.query(update, &parameters, &mut visit)?;
        } else {
            connection.execute(update, &parameters)?;
            connection.query(read, key, &mut visit)?;
        }
        name.ok_or_else(|| SessionError::Failed(format!("there is nothing with the key {key:?}")))
    }
}

impl SqlTransaction for Payment {
    fn kind(&self) -> usize {
        PAYMENT
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        if self.procedure {
            return self.call(connection);
        }
        let (warehouse, district) = (int(self.warehouse), int(self.district));
        connection.begin()?;
        let customer = self.pay(connection)?;
        let key = [warehouse.clone(), district.clone()];
        let of_district = self.add_to(connection, PAY_DISTRICT, READ_DISTRICT_NAME, &key)?;
        let key = [warehouse.clone()];
        let of_warehouse = self.add_to(connection, PAY_WAREHOUSE, READ_WAREHOUSE_NAME, &key)?;
        let entry = [
            Value::Int(customer),
            int(self.customer_district),
            int(self.customer_warehouse),
            district,
            warehouse,
            connection.dialect().exact(self.cents, 2),
            Value::Text(format!("{of_warehouse}    {of_district}").into()),
            Value::Int(self.client as i64),
            int(self.number),
        ];
        connection.execute(INSERT_HISTORY, &entry)?;
        connection.commit()
    }
}
