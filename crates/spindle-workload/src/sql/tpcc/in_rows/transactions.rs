//! The five transactions, step by step. Each does what its SQL form does; the inputs are the same.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::columns::{
    ByteRange, CUSTOMER, DISTRICT, HISTORY, ITEM, NEW_ORDER, ORDER_LINE, ORDERS, STOCK, WAREHOUSE,
    customer, district, history, item, key, new_order, order_line, orders, stock, warehouse,
};
use super::{MOMENT, by_customer, by_last_name, primary};
use crate::keyed::{Ended, Keyed, Procedure, StepFuture, is_missing};
use crate::session::SessionError;
use crate::sql::tpcc::customer::Who;
use crate::sql::tpcc::delivery::Delivery;
use crate::sql::tpcc::new_order::{Line, NewOrder, STOCK_KEPT, STOCK_REFILL};
use crate::sql::tpcc::order_status::OrderStatus;
use crate::sql::tpcc::payment::{BAD_CREDIT, Payment};
use crate::sql::tpcc::stock_level::StockLevel;
use crate::sql::tpcc::terms::{self, DISTRICTS};

/// The last orders of a district that a question about its stock looks at (clause 2.8.2.2).
const ORDERS_LOOKED_AT: u64 = 20;

type TransactionEnd<T> = Result<T, SessionError>;

/// The row of a primary key.
async fn read(rows: &mut dyn Keyed, table: usize, key: &[u8]) -> TransactionEnd<Vec<u8>> {
    let found = rows.get(primary(table), key).await?;
    found.ok_or_else(|| missing(table, key))
}

/// Changes the row of a primary key.
async fn change(
    rows: &mut dyn Keyed,
    table: usize,
    key: &[u8],
    mut edit: impl FnMut(&mut Vec<u8>),
) -> TransactionEnd<()> {
    match rows.update(primary(table), key, &mut edit).await? {
        true => Ok(()),
        false => Err(missing(table, key)),
    }
}

fn missing(table: usize, key: &[u8]) -> SessionError {
    let (name, ..) = super::columns::TABLES[table];
    is_missing(format!("a row of {name} with the key {key:?}"))
}

impl Procedure for NewOrder {
    fn kind(&self) -> usize {
        terms::NEW_ORDER
    }

    fn run<'a>(&'a self, rows: &'a mut dyn Keyed) -> StepFuture<'a, Ended> {
        Box::pin(async move {
            let of_customer = key([self.warehouse, self.district, self.customer]);
            read(rows, CUSTOMER, &of_customer).await?;
            read(rows, WAREHOUSE, &key([self.warehouse])).await?;
            let prices = self.prices_of(rows).await?;
            let order = self.take_order_number(rows).await?;
            self.enter(rows, order).await?;
            // What exists is worked on before the order is given up.
            let exist: Vec<(u64, Line, i64)> = (1..)
                .zip(&self.lines)
                .zip(prices)
                .map_while(|((number, line), price)| Some((number, *line, price?)))
                .collect();
            let count = exist.len();
            self.enter_lines_of(rows, order, exist).await?;
            match (count == self.lines.len(), self.number) {
                (true, _) => Ok(Ended::Done),
                (false, 0) => Ok(Ended::RolledBack),
                (false, _) => Err(is_missing("an item")),
            }
        })
    }
}

impl NewOrder {
    /// Prices of the items, in the order of the lines; none for one that does not exist.
    async fn prices_of(&self, rows: &mut dyn Keyed) -> TransactionEnd<Vec<Option<i64>>> {
        let mut prices = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            let found = rows.get(primary(ITEM), &key([line.item])).await?;
            prices.push(found.map(|row| item::PRICE.amount(&row)));
        }
        Ok(prices)
    }

    async fn take_order_number(&self, rows: &mut dyn Keyed) -> TransactionEnd<u64> {
        let of_district = key([self.warehouse, self.district]);
        let mut taken = 0;
        change(rows, DISTRICT, &of_district, |row| {
            taken = district::NEXT_ORDER.number(row);
            district::NEXT_ORDER.set_number(row, taken + 1);
        })
        .await?;
        Ok(u64::from(taken))
    }

    async fn enter(&self, rows: &mut dyn Keyed, order: u64) -> TransactionEnd<()> {
        let mut row = vec![0; orders::BYTES];
        for (column, number) in [
            (orders::WAREHOUSE, self.warehouse),
            (orders::DISTRICT, self.district),
            (orders::ID, order),
            (orders::CUSTOMER, self.customer),
            (orders::LINES, self.lines.len() as u64),
            (orders::ALL_LOCAL, u64::from(self.is_all_local())),
            (orders::CLIENT, self.client as u64),
        ] {
            column.set_number(&mut row, number as u32);
        }
        orders::ENTERED.set_amount(&mut row, MOMENT);
        orders::NUMBER.set_amount(&mut row, self.number as i64);
        rows.insert(ORDERS, &row).await?;
        let new = key([self.warehouse, self.district, order]);
        rows.insert(NEW_ORDER, &new).await
    }

    /// Takes the lines from the stock, in order, so that orders do not wait for each other in a circle, and enters them
    /// with their prices.
    async fn enter_lines_of(
        &self,
        rows: &mut dyn Keyed,
        order: u64,
        mut lines: Vec<(u64, Line, i64)>,
    ) -> TransactionEnd<()> {
        lines.sort_by_key(|(_, line, _)| (line.supply_warehouse, line.item));
        for (number, line, price) in lines {
            let info = self.take(rows, &line).await?;
            let mut row = vec![0; order_line::BYTES];
            for (column, value) in [
                (order_line::WAREHOUSE, self.warehouse),
                (order_line::DISTRICT, self.district),
                (order_line::ORDER, order),
                (order_line::LINE, number),
                (order_line::ITEM, line.item),
                (order_line::SUPPLY_WAREHOUSE, line.supply_warehouse),
                (order_line::QUANTITY, line.quantity as u64),
            ] {
                column.set_number(&mut row, value as u32);
            }
            order_line::AMOUNT.set_amount(&mut row, line.quantity * price);
            order_line::INFO.set_text(&mut row, &info);
            rows.insert(ORDER_LINE, &row).await?;
        }
        Ok(())
    }

    /// Takes a line from the stock (clause 2.4.2.2: what falls short is filled up); the district's text.
    async fn take(&self, rows: &mut dyn Keyed, line: &Line) -> TransactionEnd<Vec<u8>> {
        let is_remote = line.supply_warehouse != self.warehouse;
        let text = ByteRange {
            at: stock::DISTRICT_1.at + (self.district as usize - 1) * stock::DISTRICT_1.bytes,
            ..stock::DISTRICT_1
        };
        let mut info = Vec::new();
        let of_stock = key([line.supply_warehouse, line.item]);
        change(rows, STOCK, &of_stock, |row| {
            let mut quantity = i64::from(stock::QUANTITY.number(row)) - line.quantity;
            if quantity < STOCK_KEPT {
                quantity += STOCK_REFILL;
            }
            stock::QUANTITY.set_number(row, quantity as u32);
            stock::YTD.add_number(row, line.quantity as u32);
            stock::ORDERS.add_number(row, 1);
            stock::REMOTE.add_number(row, u32::from(is_remote));
            info = text.text(row).to_vec();
        })
        .await?;
        Ok(info)
    }
}

impl Procedure for Payment {
    fn kind(&self) -> usize {
        terms::PAYMENT
    }

    fn run<'a>(&'a self, rows: &'a mut dyn Keyed) -> StepFuture<'a, Ended> {
        Box::pin(async move {
            let place = (self.customer_warehouse, self.customer_district);
            let payer = self.who.number_in(rows, place).await?;
            let of_customer = key([place.0, place.1, payer]);
            change(rows, CUSTOMER, &of_customer, |row| self.take_from(row)).await?;
            // The warehouse, which every payment there changes, is changed last.
            let of_district = key([self.warehouse, self.district]);
            let mut name_of_district = Vec::new();
            change(rows, DISTRICT, &of_district, |row| {
                district::YTD.add_amount(row, self.cents);
                name_of_district = district::NAME.text(row).to_vec();
            })
            .await?;
            let mut name_of_warehouse = Vec::new();
            change(rows, WAREHOUSE, &key([self.warehouse]), |row| {
                warehouse::YTD.add_amount(row, self.cents);
                name_of_warehouse = warehouse::NAME.text(row).to_vec();
            })
            .await?;
            let data = [&name_of_warehouse[..], b"    ", &name_of_district].concat();
            rows.insert(HISTORY, &self.entry(payer, &data)).await?;
            Ok(Ended::Done)
        })
    }
}

impl Payment {
    fn take_from(&self, row: &mut [u8]) {
        customer::BALANCE.add_amount(row, -self.cents);
        customer::YTD_PAYMENT.add_amount(row, self.cents);
        customer::PAYMENTS.add_number(row, 1);
        if customer::CREDIT.text(row) == BAD_CREDIT.as_bytes() {
            let told = self.told_of(i64::from(customer::ID.number(row)));
            let data = [told.as_bytes(), customer::DATA.text(row)].concat();
            customer::DATA.set_text(row, &data);
        }
    }

    /// Its row of history.
    fn entry(&self, payer: u64, data: &[u8]) -> Vec<u8> {
        let mut row = vec![0; history::BYTES];
        for (column, number) in [
            (history::CUSTOMER, payer),
            (history::CUSTOMER_DISTRICT, self.customer_district),
            (history::CUSTOMER_WAREHOUSE, self.customer_warehouse),
            (history::DISTRICT, self.district),
            (history::WAREHOUSE, self.warehouse),
            (history::CLIENT, self.client as u64),
        ] {
            column.set_number(&mut row, number as u32);
        }
        history::MOMENT.set_amount(&mut row, MOMENT);
        history::AMOUNT.set_amount(&mut row, self.cents);
        history::DATA.set_text(&mut row, data);
        history::NUMBER.set_amount(&mut row, self.number as i64);
        row
    }
}

impl Who {
    /// The customer's number in a warehouse and district.
    async fn number_in(
        &self,
        rows: &mut dyn Keyed,
        (warehouse, district): (u64, u64),
    ) -> TransactionEnd<u64> {
        let name = match self {
            Who::Number(number) => return Ok(*number),
            Who::LastName(name) => name,
        };
        let mut from = key([warehouse, district]);
        from.extend_from_slice(name.as_bytes());
        from.resize(8 + customer::LAST.bytes, 0);
        let to = [&from[..], &[0xFF; customer::FIRST.bytes]].concat();
        let mut found = Vec::new();
        let mut visit = |row: &[u8]| {
            found.push(u64::from(customer::ID.number(row)));
            ControlFlow::Continue(())
        };
        rows.range(by_last_name(), &from, &to, &mut visit).await?;
        // They come in the order of their first names: position n/2, rounded up, counted from 1 (clause 2.5.2.2).
        let middle = found.len().div_ceil(2).checked_sub(1);
        let number = middle.map(|middle| found[middle]);
        number.ok_or_else(|| is_missing(format!("a customer called {name}")))
    }
}

impl Procedure for OrderStatus {
    fn kind(&self) -> usize {
        terms::ORDER_STATUS
    }

    fn run<'a>(&'a self, rows: &'a mut dyn Keyed) -> StepFuture<'a, Ended> {
        Box::pin(async move {
            let place = (self.warehouse, self.district);
            let asker = self.who.number_in(rows, place).await?;
            read(rows, CUSTOMER, &key([place.0, place.1, asker])).await?;
            let first = key([place.0, place.1, asker, 0]);
            let end = key([place.0, place.1, asker, u64::from(u32::MAX)]);
            let mut last = None;
            let mut visit = |row: &[u8]| {
                last = Some(u64::from(orders::ID.number(row)));
                ControlFlow::Continue(())
            };
            rows.range(by_customer(), &first, &end, &mut visit).await?;
            let order = last.ok_or_else(|| is_missing(format!("an order of customer {asker}")))?;
            let first = key([place.0, place.1, order, 0]);
            let end = key([place.0, place.1, order, u64::from(u32::MAX)]);
            let mut visit = |_: &[u8]| ControlFlow::Continue(());
            rows.range(primary(ORDER_LINE), &first, &end, &mut visit)
                .await?;
            Ok(Ended::Done)
        })
    }
}

impl Procedure for Delivery {
    fn kind(&self) -> usize {
        terms::DELIVERY
    }

    fn run<'a>(&'a self, rows: &'a mut dyn Keyed) -> StepFuture<'a, Ended> {
        Box::pin(async move {
            for district in 1..=DISTRICTS {
                // A district without new orders is passed over.
                if let Some(order) = self.oldest(rows, district).await? {
                    self.deliver_order(rows, district, order).await?;
                }
            }
            Ok(Ended::Done)
        })
    }
}

impl Delivery {
    /// The oldest order of a district that is new.
    async fn oldest(&self, rows: &mut dyn Keyed, district: u64) -> TransactionEnd<Option<u64>> {
        let first = key([self.warehouse, district, 0]);
        let end = key([self.warehouse, district, u64::from(u32::MAX)]);
        let mut oldest = None;
        let mut visit = |row: &[u8]| {
            oldest = Some(u64::from(new_order::ORDER.number(row)));
            ControlFlow::Break(())
        };
        rows.range(primary(NEW_ORDER), &first, &end, &mut visit)
            .await?;
        Ok(oldest)
    }

    async fn deliver_order(
        &self,
        rows: &mut dyn Keyed,
        district: u64,
        order: u64,
    ) -> TransactionEnd<()> {
        let of_order = key([self.warehouse, district, order]);
        if !rows.delete(primary(NEW_ORDER), &of_order).await? {
            return Err(SessionError::Retry(
                "another delivery took an order first".to_owned(),
            ));
        }
        let (mut buyer, mut lines) = (0, 0);
        change(rows, ORDERS, &of_order, |row| {
            orders::CARRIER.set_number(row, self.carrier as u32);
            buyer = u64::from(orders::CUSTOMER.number(row));
            lines = u64::from(orders::LINES.number(row));
        })
        .await?;
        let mut sum = 0;
        for line in 1..=lines {
            let of_line = key([self.warehouse, district, order, line]);
            let mut amount = 0;
            change(rows, ORDER_LINE, &of_line, |row| {
                order_line::DELIVERED.set_amount(row, MOMENT);
                amount = order_line::AMOUNT.amount(row);
            })
            .await?;
            sum += amount;
        }
        let of_customer = key([self.warehouse, district, buyer]);
        change(rows, CUSTOMER, &of_customer, |row| {
            customer::BALANCE.add_amount(row, sum);
            customer::DELIVERIES.add_number(row, 1);
        })
        .await
    }
}

impl Procedure for StockLevel {
    fn kind(&self) -> usize {
        terms::STOCK_LEVEL
    }

    fn run<'a>(&'a self, rows: &'a mut dyn Keyed) -> StepFuture<'a, Ended> {
        Box::pin(async move {
            let (warehouse, of_district) = (self.warehouse, self.district);
            let row = read(rows, DISTRICT, &key([warehouse, of_district])).await?;
            let next = u64::from(district::NEXT_ORDER.number(&row));
            let oldest = next.saturating_sub(ORDERS_LOOKED_AT);
            let first = key([warehouse, of_district, oldest, 0]);
            let end = key([warehouse, of_district, next - 1, u64::from(u32::MAX)]);
            let mut items = BTreeSet::new();
            let mut visit = |row: &[u8]| {
                items.insert(u64::from(order_line::ITEM.number(row)));
                ControlFlow::Continue(())
            };
            rows.range(primary(ORDER_LINE), &first, &end, &mut visit)
                .await?;
            let mut low = 0;
            for item in items {
                let row = read(rows, STOCK, &key([warehouse, item])).await?;
                low += u64::from(u64::from(stock::QUANTITY.number(&row)) < self.threshold);
            }
            // The answer, which is not used.
            std::hint::black_box(low);
            Ok(Ended::Done)
        })
    }
}
