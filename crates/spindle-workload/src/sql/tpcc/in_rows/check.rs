//! The conditions of consistency of clause 3.3.2, looked for in all rows, and every order and payment that a client was
//! promised. What several tables say of a thing is collected as it comes, in any order, and compared at the end. The
//! words of the conditions are those of the SQL form.

use std::collections::BTreeMap;

use super::columns::{
    ByteRange, CUSTOMER, DISTRICT, HISTORY, NEW_ORDER, ORDER_LINE, ORDERS, WAREHOUSE, customer,
    district, history, new_order, order_line, orders, warehouse,
};
use crate::sql::numbered::Numbers;
use crate::sql::tpcc::check::{broken, said};
use crate::workload::{Acknowledged, CheckError, Tally};

/// A warehouse and a district.
type DistrictKey = (u32, u32);

/// What is known of a warehouse.
#[derive(Clone, Default)]
struct OfWarehouse {
    taken: i64,
    paid: i64,
}

/// What is known of a district.
#[derive(Clone, Default)]
struct OfDistrict {
    taken: i64,
    paid: i64,
    next_order: u32,
    orders: u64,
    last_order: u32,
    new_orders: u64,
    /// The first and the last.
    new_order_numbers: Option<(u32, u32)>,
    lines_counted: u64,
    lines: u64,
    deliveries: u64,
}

/// What is known of a customer.
#[derive(Clone, Default)]
struct OfCustomer {
    balance: i64,
    ytd_payment: i64,
    paid: i64,
}

/// What is known of an order.
#[derive(Clone, Default)]
struct OfOrder {
    is_there: bool,
    is_new: bool,
    has_carrier: bool,
    customer: u32,
    lines_counted: u32,
    lines: u32,
    lines_delivered: u32,
    delivered: i64,
}

/// Looks at every row.
#[derive(Clone)]
pub struct TpccRowLook {
    /// Orders of a district that were delivered when it was loaded.
    loaded_delivered: u64,
    acknowledged: Vec<Acknowledged>,
    warehouses: BTreeMap<u32, OfWarehouse>,
    districts: BTreeMap<DistrictKey, OfDistrict>,
    customers: BTreeMap<(DistrictKey, u32), OfCustomer>,
    orders: BTreeMap<(DistrictKey, u32), OfOrder>,
    numbers: Numbers,
}

impl TpccRowLook {
    pub fn new(loaded_delivered: u64, acknowledged: Vec<Acknowledged>) -> TpccRowLook {
        TpccRowLook {
            loaded_delivered,
            acknowledged,
            warehouses: BTreeMap::new(),
            districts: BTreeMap::new(),
            customers: BTreeMap::new(),
            orders: BTreeMap::new(),
            numbers: Numbers::default(),
        }
    }

    fn customer(&mut self, row: &[u8]) {
        let place = place(row, customer::WAREHOUSE, customer::DISTRICT);
        let of = self.customers.entry((place, customer::ID.number(row)));
        let of = of.or_default();
        of.balance = customer::BALANCE.amount(row);
        of.ytd_payment = customer::YTD_PAYMENT.amount(row);
        let district = self.districts.entry(place).or_default();
        district.deliveries += u64::from(customer::DELIVERIES.number(row));
    }

    fn history(&mut self, row: &[u8]) {
        let amount = history::AMOUNT.amount(row);
        let taken_at = place(row, history::WAREHOUSE, history::DISTRICT);
        self.warehouses.entry(taken_at.0).or_default().paid += amount;
        self.districts.entry(taken_at).or_default().paid += amount;
        let payer = place(row, history::CUSTOMER_WAREHOUSE, history::CUSTOMER_DISTRICT);
        let payer = (payer, history::CUSTOMER.number(row));
        self.customers.entry(payer).or_default().paid += amount;
        self.numbered(history::CLIENT.number(row), history::NUMBER.amount(row));
    }

    fn new_order(&mut self, row: &[u8]) {
        let place = place(row, new_order::WAREHOUSE, new_order::DISTRICT);
        let number = new_order::ORDER.number(row);
        self.orders.entry((place, number)).or_default().is_new = true;
        let district = self.districts.entry(place).or_default();
        district.new_orders += 1;
        district.has_new(number, number);
    }

    fn order(&mut self, row: &[u8]) {
        let place = place(row, orders::WAREHOUSE, orders::DISTRICT);
        let number = orders::ID.number(row);
        let order = self.orders.entry((place, number)).or_default();
        order.is_there = true;
        order.has_carrier = orders::CARRIER.number(row) > 0;
        order.customer = orders::CUSTOMER.number(row);
        order.lines_counted = orders::LINES.number(row);
        let district = self.districts.entry(place).or_default();
        district.orders += 1;
        district.last_order = district.last_order.max(number);
        district.lines_counted += u64::from(orders::LINES.number(row));
        self.numbered(orders::CLIENT.number(row), orders::NUMBER.amount(row));
    }

    fn line(&mut self, row: &[u8]) {
        let place = place(row, order_line::WAREHOUSE, order_line::DISTRICT);
        let number = order_line::ORDER.number(row);
        let order = self.orders.entry((place, number)).or_default();
        order.lines += 1;
        if order_line::DELIVERED.amount(row) > 0 {
            order.lines_delivered += 1;
            order.delivered += order_line::AMOUNT.amount(row);
        }
        self.districts.entry(place).or_default().lines += 1;
    }

    /// Rows that were loaded have no number.
    fn numbered(&mut self, client: u32, number: i64) {
        if number > 0 {
            self.numbers.add(client as usize, number.unsigned_abs());
        }
    }

    /// How often each condition is broken, by its number.
    fn broken(&self) -> BTreeMap<u32, u64> {
        let mut broken = BTreeMap::new();
        let mut count = |condition: u32, is_broken: bool| {
            *broken.entry(condition).or_insert(0) += u64::from(is_broken);
        };
        let mut taken: BTreeMap<u32, i64> = BTreeMap::new();
        for ((warehouse, _), of) in &self.districts {
            *taken.entry(*warehouse).or_default() += of.taken;
            let last = u64::from(of.next_order.saturating_sub(1));
            let numbers = of.new_order_numbers;
            count(2, last != u64::from(of.last_order));
            count(2, numbers.is_some_and(|(_, end)| u64::from(end) != last));
            count(
                3,
                numbers.is_some_and(|(first, end)| u64::from(end - first) + 1 != of.new_orders),
            );
            count(4, of.lines_counted != of.lines);
            count(9, of.taken != of.paid);
            let delivered = self.loaded_delivered + of.deliveries;
            count(11, of.orders != of.new_orders + delivered);
        }
        for (warehouse, of) in &self.warehouses {
            count(1, taken.get(warehouse) != Some(&of.taken));
            count(8, of.taken != of.paid);
        }
        let mut delivered: BTreeMap<(DistrictKey, u32), i64> = BTreeMap::new();
        for ((place, _), of) in &self.orders {
            let is_either = match of.is_there {
                true => of.has_carrier != of.is_new,
                false => !of.is_new,
            };
            count(5, !is_either);
            count(6, of.lines_counted != of.lines);
            let expected = if of.has_carrier { of.lines } else { 0 };
            count(7, !of.is_there || of.lines_delivered != expected);
            *delivered.entry((*place, of.customer)).or_default() += of.delivered;
        }
        for (who, of) in &self.customers {
            let delivered = delivered.get(who).copied().unwrap_or(0);
            count(10, of.balance != delivered - of.paid);
            count(12, of.balance + of.ytd_payment != delivered);
        }
        broken
    }
}

impl OfDistrict {
    fn has_new(&mut self, first: u32, end: u32) {
        let (was_first, was_end) = self.new_order_numbers.unwrap_or((first, end));
        self.new_order_numbers = Some((was_first.min(first), was_end.max(end)));
    }
}

fn place(row: &[u8], warehouse: ByteRange, district: ByteRange) -> DistrictKey {
    (warehouse.number(row), district.number(row))
}

impl Tally for TpccRowLook {
    fn row(&mut self, table: usize, bytes: &[u8]) {
        match table {
            WAREHOUSE => {
                let of = self.warehouses.entry(warehouse::ID.number(bytes));
                of.or_default().taken = warehouse::YTD.amount(bytes);
            }
            DISTRICT => {
                let place = place(bytes, district::WAREHOUSE, district::ID);
                let of = self.districts.entry(place).or_default();
                of.taken = district::YTD.amount(bytes);
                of.next_order = district::NEXT_ORDER.number(bytes);
            }
            CUSTOMER => self.customer(bytes),
            HISTORY => self.history(bytes),
            NEW_ORDER => self.new_order(bytes),
            ORDERS => self.order(bytes),
            ORDER_LINE => self.line(bytes),
            _ => {}
        }
    }

    /// A row is in one share: what the other has not seen is 0 there.
    fn add(&mut self, other: Self) {
        for (key, of) in other.warehouses {
            let mine = self.warehouses.entry(key).or_default();
            mine.taken += of.taken;
            mine.paid += of.paid;
        }
        for (key, of) in other.districts {
            let mine = self.districts.entry(key).or_default();
            mine.taken += of.taken;
            mine.paid += of.paid;
            mine.next_order += of.next_order;
            mine.orders += of.orders;
            mine.last_order = mine.last_order.max(of.last_order);
            mine.new_orders += of.new_orders;
            if let Some((first, end)) = of.new_order_numbers {
                mine.has_new(first, end);
            }
            mine.lines_counted += of.lines_counted;
            mine.lines += of.lines;
            mine.deliveries += of.deliveries;
        }
        for (key, of) in other.customers {
            let mine = self.customers.entry(key).or_default();
            mine.balance += of.balance;
            mine.ytd_payment += of.ytd_payment;
            mine.paid += of.paid;
        }
        for (key, of) in other.orders {
            let mine = self.orders.entry(key).or_default();
            mine.is_there |= of.is_there;
            mine.is_new |= of.is_new;
            mine.has_carrier |= of.has_carrier;
            mine.customer += of.customer;
            mine.lines_counted += of.lines_counted;
            mine.lines += of.lines;
            mine.lines_delivered += of.lines_delivered;
            mine.delivered += of.delivered;
        }
        self.numbers.add_all(other.numbers);
    }

    fn finish(&self) -> Result<String, CheckError> {
        match self.broken().into_iter().find(|(_, cases)| *cases > 0) {
            Some((condition, cases)) => Err(broken(condition, cases)),
            None => Ok(said(self.numbers.check(&self.acknowledged)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TpccInRows;
    use super::super::columns::TABLES;
    use super::*;
    use crate::sql::tpcc::{Sizes, Tpcc, TpccMix};
    use crate::workload::{TableSize, Workload};

    const CUSTOMERS: u64 = 20;

    fn workload() -> TpccInRows {
        let sizes = Sizes {
            items: 50,
            customers: CUSTOMERS,
        };
        let tpcc = Tpcc::new(2, TpccMix::STANDARD, false, 1).with_sizes(sizes);
        TpccInRows::new(tpcc, 1000)
    }

    /// Every loaded row, by table.
    fn loaded(workload: &TpccInRows) -> Vec<Vec<Vec<u8>>> {
        let tables = workload.tables().into_iter().enumerate();
        let rows = tables.map(|(table, spec)| {
            let TableSize::Rows(rows) = spec.size else {
                panic!("tables have numbers of rows")
            };
            let mut load = workload.loader(table, 0);
            let row = |number| {
                let mut bytes = vec![0xEE; TABLES[table].2];
                load(number, &mut bytes);
                bytes
            };
            (0..rows).map(row).collect()
        });
        rows.collect()
    }

    /// What the check finds, by two sessions.
    fn judged(workload: &TpccInRows, rows: &[Vec<Vec<u8>>]) -> Result<String, CheckError> {
        let checker = workload.checker(Vec::new());
        let mut both = [checker.share(), checker.share()];
        for (table, rows) in rows.iter().enumerate() {
            for (number, row) in rows.iter().enumerate() {
                both[number % 2].row(table, row);
            }
        }
        both.into_iter().for_each(|share| share.end());
        checker.finish()
    }

    /// Breaks one condition alone, or with it some of a higher number.
    fn break_one(condition: u32, rows: &mut [Vec<Vec<u8>>]) {
        let first_new = CUSTOMERS as usize * 7 / 10;
        match condition {
            1 => warehouse::YTD.add_amount(&mut rows[WAREHOUSE][0], 1),
            2 => district::NEXT_ORDER.add_number(&mut rows[DISTRICT][3], 1),
            3 => drop(rows[NEW_ORDER].remove(1)),
            4 => drop(rows[ORDER_LINE].remove(0)),
            5 => orders::CARRIER.set_number(&mut rows[ORDERS][first_new], 1),
            6 => {
                let counted = orders::LINES.number(&rows[ORDERS][1]);
                orders::LINES.add_number(&mut rows[ORDERS][0], 1);
                orders::LINES.set_number(&mut rows[ORDERS][1], counted - 1);
            }
            7 => order_line::DELIVERED.set_amount(&mut rows[ORDER_LINE][0], 0),
            8 => {
                warehouse::YTD.add_amount(&mut rows[WAREHOUSE][0], 1);
                district::YTD.add_amount(&mut rows[DISTRICT][0], 1);
            }
            9 => {
                district::YTD.add_amount(&mut rows[DISTRICT][0], 1);
                district::YTD.add_amount(&mut rows[DISTRICT][1], -1);
            }
            10 => customer::BALANCE.add_amount(&mut rows[CUSTOMER][5], 1),
            11 => customer::DELIVERIES.add_number(&mut rows[CUSTOMER][5], 1),
            _ => customer::YTD_PAYMENT.add_amount(&mut rows[CUSTOMER][5], 1),
        }
    }

    #[test]
    fn the_loaded_rows_are_consistent_and_each_broken_condition_is_told() {
        let workload = workload();
        let rows = loaded(&workload);
        let said = judged(&workload, &rows).unwrap();
        assert!(said.starts_with("0 orders and payments"), "{said}");
        for condition in 1..=12 {
            let mut rows = rows.clone();
            break_one(condition, &mut rows);
            let told = judged(&workload, &rows).unwrap_err().to_string();
            let wanted = format!("condition of consistency {condition}, ");
            assert!(told.starts_with(&wanted), "{condition}: {told}");
        }
    }
}
