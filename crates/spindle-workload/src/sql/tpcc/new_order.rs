//! New order (clause 2.4): an order of 5 to 15 lines entered. One in a hundred names an item that does not exist, and
//! is rolled back, by the standard's rules a transaction that has done what it should.

use super::random::{happens, uniform};
use super::statements::{
    CHANGE_STOCK, CUSTOMER_AND_WAREHOUSE, INSERT_LINES, INSERT_NEW_ORDER, INSERT_ORDER, ITEMS,
    LINES_ASKED, READ_DISTRICT, STOCK, TAKE_ORDER_NUMBER,
};
use super::terms::{DISTRICTS, LINES_MAX, LINES_MIN, NEW_ORDER, Tpcc, int, numbered, padded};
use crate::session::SessionError;
use crate::sql::SqlTransaction;
use crate::sql::connection::SqlConnection;
use crate::sql::value::Value;
use crate::workload::Client;

/// No warehouse's own stock is let fall below this much above what is ordered.
pub(super) const STOCK_KEPT: i64 = 10;
pub(super) const STOCK_REFILL: i64 = 91;

/// The inputs.
pub struct NewOrder {
    pub(super) warehouse: u64,
    pub(super) district: u64,
    pub(super) customer: u64,
    pub(super) lines: Vec<Line>,
    pub(super) client: usize,
    /// 0: it is to be rolled back.
    pub(super) number: u64,
    procedure: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Line {
    pub(super) item: u64,
    pub(super) supply_warehouse: u64,
    pub(super) quantity: i64,
}

/// A row of stock, changed by all lines that name it.
struct Stock {
    warehouse: i64,
    item: i64,
    quantity: i64,
    ordered: i64,
    orders: i64,
    remote: i64,
    district_text: String,
}

impl NewOrder {
    pub fn draw(tpcc: &Tpcc, client: &mut Client) -> NewOrder {
        let warehouse = tpcc.home(client);
        let district = uniform(&mut client.rng, 1, DISTRICTS);
        let customer = tpcc
            .constants
            .customer(&mut client.rng, tpcc.sizes.customers);
        let count = uniform(&mut client.rng, LINES_MIN, LINES_MAX);
        let is_rolled_back = happens(&mut client.rng, 1);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| Line::draw(tpcc, client, warehouse))
            .collect();
        if let (true, Some(last)) = (is_rolled_back, lines.last_mut()) {
            last.item = tpcc.sizes.items + 1;
        }
        NewOrder {
            warehouse,
            district,
            customer,
            lines,
            client: client.number,
            number: if is_rolled_back { 0 } else { numbered(client) },
            procedure: tpcc.procedures,
        }
    }

    pub(super) fn is_all_local(&self) -> bool {
        let mut lines = self.lines.iter();
        lines.all(|line| line.supply_warehouse == self.warehouse)
    }

    fn call(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        // A line is 13 digits: its item, the warehouse that supplies it, how many.
        let line = |line: &Line| {
            format!(
                "{:06}{:05}{:02}",
                line.item, line.supply_warehouse, line.quantity
            )
        };
        let mut sorted = self.lines.clone();
        sorted.sort_by_key(|line| (line.supply_warehouse, line.item));
        let lines: String = sorted.iter().map(line).collect();
        let parameters = [
            int(self.warehouse),
            int(self.district),
            int(self.customer),
            Value::Int(self.lines.len() as i64),
            Value::text(&lines),
            Value::Int(self.client as i64),
            int(self.number),
        ];
        connection
            .query(NEW_ORDER, &parameters, &mut |_| Ok(()))
            .map(drop)
    }

    /// Prices of the items, in the order of the lines; none for one that does not exist.
    fn prices(&self, connection: &mut dyn SqlConnection) -> Result<Vec<Option<i64>>, SessionError> {
        let dialect = connection.dialect();
        let items = padded(self.lines.iter().map(|line| [int(line.item)]), LINES_ASKED);
        let mut found = Vec::with_capacity(LINES_ASKED);
        connection.query(ITEMS, &items, &mut |row| {
            found.push((row.int(0)?.unsigned_abs(), dialect.read_exact(row, 1, 2)?));
            Ok(())
        })?;
        let price = |line: &Line| {
            found
                .iter()
                .find(|(item, _)| *item == line.item)
                .map(|found| found.1)
        };
        Ok(self.lines.iter().map(price).collect())
    }

    /// Takes the district's next order number.
    fn take_number(&self, connection: &mut dyn SqlConnection) -> Result<i64, SessionError> {
        let district = [int(self.warehouse), int(self.district)];
        let mut taken = None;
        let mut take = |row: &dyn crate::sql::SqlRow| {
            taken = Some(row.int(0)?);
            Ok(())
        };
        if connection.dialect().updates_return() {
            connection.query(TAKE_ORDER_NUMBER, &district, &mut take)?;
        } else {
            connection.query(READ_DISTRICT, &district, &mut take)?;
            connection.execute(TAKE_ORDER_NUMBER, &district)?;
        }
        taken.ok_or_else(|| SessionError::Failed("there is no such district".to_owned()))
    }

    /// The stock of the lines, in order, so that orders do not wait for each other in a circle.
    fn stock(
        &self,
        connection: &mut dyn SqlConnection,
        lines: &[Line],
    ) -> Result<Vec<Stock>, SessionError> {
        let mut keys: Vec<(u64, u64)> = lines
            .iter()
            .map(|line| (line.supply_warehouse, line.item))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let mut parameters = vec![int(self.district)];
        parameters.extend(padded(
            keys.iter()
                .map(|(warehouse, item)| [int(*warehouse), int(*item)]),
            LINES_ASKED,
        ));
        let mut found = Vec::with_capacity(keys.len());
        connection.query(STOCK, &parameters, &mut |row| {
            found.push(Stock {
                warehouse: row.int(0)?,
                item: row.int(1)?,
                quantity: row.int(2)?,
                ordered: 0,
                orders: 0,
                remote: 0,
                district_text: row.text(3)?,
            });
            Ok(())
        })?;
        if found.len() != keys.len() {
            let reason = format!("{} of {} rows of stock are there", found.len(), keys.len());
            return Err(SessionError::Failed(reason));
        }
        Ok(found)
    }

    fn insert_order(
        &self,
        connection: &mut dyn SqlConnection,
        order: i64,
    ) -> Result<(), SessionError> {
        let [warehouse, district] = [int(self.warehouse), int(self.district)];
        let parameters = [
            warehouse.clone(),
            district.clone(),
            Value::Int(order),
            int(self.customer),
            Value::Int(self.lines.len() as i64),
            Value::Int(i64::from(self.is_all_local())),
            Value::Int(self.client as i64),
            int(self.number),
        ];
        connection.execute(INSERT_ORDER, &parameters)?;
        connection.execute(INSERT_NEW_ORDER, &[warehouse, district, Value::Int(order)])?;
        Ok(())
    }

    /// Takes the lines from the stock, and enters them with their prices.
    fn enter_lines(
        &self,
        connection: &mut dyn SqlConnection,
        order: i64,
        lines: &[Line],
        prices: &[i64],
    ) -> Result<(), SessionError> {
        let dialect = connection.dialect();
        let mut stock = self.stock(connection, lines)?;
        let mut parameters = vec![int(self.warehouse), int(self.district), Value::Int(order)];
        for (line, price) in lines.iter().zip(prices) {
            let row = Stock::row_of(&mut stock, line)?;
            row.take(line.quantity, line.supply_warehouse != self.warehouse);
            parameters.extend([
                int(line.item),
                int(line.supply_warehouse),
                Value::Int(line.quantity),
                dialect.exact(line.quantity * price, 2),
                Value::Text(row.district_text.clone().into()),
            ]);
        }
        let changes = padded(stock.iter().map(Stock::change), LINES_ASKED);
        connection.execute(CHANGE_STOCK, &changes)?;
        connection.execute(INSERT_LINES + lines.len() - 1, &parameters)?;
        Ok(())
    }
}

impl Line {
    fn draw(tpcc: &Tpcc, client: &mut Client, home: u64) -> Line {
        let item = tpcc.constants.item(&mut client.rng, tpcc.sizes.items);
        let supply_warehouse = match happens(&mut client.rng, 1) {
            true => tpcc.elsewhere(client, home),
            false => home,
        };
        Line {
            item,
            supply_warehouse,
            quantity: uniform(&mut client.rng, 1, 10) as i64,
        }
    }
}

impl Stock {
    fn row_of<'a>(stock: &'a mut [Stock], line: &Line) -> Result<&'a mut Stock, SessionError> {
        let key = (line.supply_warehouse as i64, line.item as i64);
        let mut rows = stock.iter_mut();
        rows.find(|row| (row.warehouse, row.item) == key)
            .ok_or_else(|| SessionError::Failed(format!("there is no stock of {key:?}")))
    }

    /// Clause 2.4.2.2: what falls short is filled up.
    fn take(&mut self, quantity: i64, is_remote: bool) {
        self.quantity -= quantity;
        if self.quantity < STOCK_KEPT {
            self.quantity += STOCK_REFILL;
        }
        self.ordered += quantity;
        self.orders += 1;
        self.remote += i64::from(is_remote);
    }

    fn change(&self) -> [Value<'static>; 6] {
        [
            self.warehouse,
            self.item,
            self.quantity,
            self.ordered,
            self.orders,
            self.remote,
        ]
        .map(Value::Int)
    }
}

impl SqlTransaction for NewOrder {
    fn kind(&self) -> usize {
        NEW_ORDER
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        if self.procedure {
            return self.call(connection);
        }
        connection.begin()?;
        let customer = [int(self.warehouse), int(self.district), int(self.customer)];
        let customers = connection.query(CUSTOMER_AND_WAREHOUSE, &customer, &mut |_| Ok(()))?;
        if customers != 1 {
            return Err(SessionError::Failed(format!(
                "{customers} customers have one number"
            )));
        }
        let prices = self.prices(connection)?;
        let order = self.take_number(connection)?;
        self.insert_order(connection, order)?;
        // What exists is worked on before the order is given up.
        let exist: Vec<i64> = prices.iter().copied().map_while(|price| price).collect();
        self.enter_lines(connection, order, &self.lines[..exist.len()], &exist)?;
        match (exist.len() == self.lines.len(), self.number) {
            (true, _) => connection.commit(),
            (false, 0) => connection.rollback(),
            (false, _) => Err(SessionError::Failed("an item is not there".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_filled_up_before_it_runs_out() {
        let mut stock = Stock {
            warehouse: 1,
            item: 1,
            quantity: 15,
            ordered: 0,
            orders: 0,
            remote: 0,
            district_text: String::new(),
        };
        stock.take(5, false);
        assert_eq!(stock.quantity, 10);
        stock.take(1, true);
        assert_eq!(stock.quantity, 100);
        assert_eq!((stock.ordered, stock.orders, stock.remote), (6, 2, 1));
    }
}
