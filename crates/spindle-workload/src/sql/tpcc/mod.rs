//! TPC-C after revision 5.11 of the standard: nine tables, five kinds of transactions, 3.3.2's conditions of
//! consistency. A transaction's file says what it draws and what it does; `statements` has its SQL, and `procedures`
//! the same as procedures of the database, one call each. Clients have no keying or think times of the standard's,
//! unless the experiment gives them a think time. `in_rows` has it for the embedded database. Never called an official
//! result.

mod check;
mod customer;
mod delivery;
mod in_rows;
mod load;
mod new_order;
mod order_status;
mod payment;
mod random;
mod schema;
mod statements;
mod stock_level;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spindle_text::section::{Key, Keys, Refusal, Section};
use spindle_text::settings;

use super::connection::{LoadPart, SqlConnection};
use super::dialect::Dialect;
use super::value::Value;
use super::{SqlTransaction, SqlWorkload};
use crate::sql::kind::{Data, Kind, Made, MadeFor, check_room};
use crate::workload::{Acknowledged, CheckError, Client, Workload};
use random::{Constants, LAST_NAMES, uniform};

/// Districts of a warehouse.
const DISTRICTS: u64 = 10;
/// Lines of an order.
const LINES_MIN: u64 = 5;
const LINES_MAX: u64 = 15;
/// Bytes of a loaded warehouse with its indexes, about.
const WAREHOUSE_BYTES: u64 = 100 << 20;

/// Transactions for which there is room when nobody says.
const ROOM_FOR: u64 = 500_000;

/// What the kinds of transactions are called.
const KINDS: [&str; 5] = [
    "new_order",
    "payment",
    "order_status",
    "delivery",
    "stock_level",
];
/// Kinds of transactions, by [`SqlTransaction::kind`].
const NEW_ORDER: usize = 0;
const PAYMENT: usize = 1;
const ORDER_STATUS: usize = 2;
const DELIVERY: usize = 3;
const STOCK_LEVEL: usize = 4;

/// Shares of the five kinds, percent; 100 in sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    /// Orders entered.
    pub new_order: u32,
    /// Payments by customers.
    pub payment: u32,
    /// Questions about a customer's last order.
    pub order_status: u32,
    /// The oldest order of every district delivered.
    pub delivery: u32,
    /// Questions about items that run short.
    pub stock_level: u32,
}

impl Mix {
    /// The standard's (clause 5.2.3), with as many new orders as it allows.
    pub const STANDARD: Mix = Mix {
        new_order: 45,
        payment: 43,
        order_status: 4,
        delivery: 4,
        stock_level: 4,
    };

    fn shares(&self) -> [u32; 5] {
        [
            self.new_order,
            self.payment,
            self.order_status,
            self.delivery,
            self.stock_level,
        ]
    }

    /// Their sum, percent.
    pub fn sum(&self) -> u32 {
        self.shares().iter().sum()
    }
}

impl Section for Mix {
    fn read<K: Keys>(keys: &mut K) -> Mix {
        let is_given = keys.is_given();
        let mut share = |name, says, standard: u32| {
            // A kind that is left out of a mix does not take place.
            let default = if is_given { 0 } else { standard };
            keys.number(Key { name, says }, default, 0..=100)
        };
        Mix {
            new_order: share("new_order", "orders entered", Mix::STANDARD.new_order),
            payment: share("payment", "payments by customers", Mix::STANDARD.payment),
            order_status: share(
                "order_status",
                "questions about a customer's last order",
                Mix::STANDARD.order_status,
            ),
            delivery: share(
                "delivery",
                "the oldest order of every district delivered",
                Mix::STANDARD.delivery,
            ),
            stock_level: share(
                "stock_level",
                "questions about items that run short",
                Mix::STANDARD.stock_level,
            ),
        }
    }
}

settings! {
    /// Settings of `tpcc`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct TpccSettings {
        /// Warehouses.
        warehouses: u32 = number("warehouses", 10, 1..=10_000),
        /// A transaction is one call of a procedure of the database, as with HammerDB; not with SQLite.
        procedures: bool = flag("procedures", false),
        /// Shares of the transactions, percent, 100 in sum: `new_order`, `payment`, `order_status`, `delivery`,
        /// `stock_level`. The standard's are 45, 43, 4, 4 and 4; one that is left out of a `mix` does not take place.
        mix: Mix = table_or("mix", "the standard's"),
        /// Transactions of a trial for whose rows the embedded database makes room; one that needs more ends the
        /// trial. Other databases grow by themselves.
        room_for: u64 = number("room_for", ROOM_FOR, 1_000..=10_000_000_000),
    }
}

impl Kind for TpccSettings {
    fn make(&self, made_for: &MadeFor) -> Made {
        let TpccSettings {
            warehouses,
            procedures,
            mix,
            room_for,
        } = *self;
        let tpcc = Tpcc::new(warehouses, mix, procedures, made_for.seed);
        match made_for.dialect {
            Some(_) => Made::Sql(Arc::new(tpcc)),
            None => Made::Rows(tpcc.in_rows(room_for)),
        }
    }

    fn is_in_sql(&self) -> bool {
        false
    }

    fn locked_rows(&self) -> u32 {
        // A delivery locks most: an order and its lines, a customer and a new order of each district, and as many keys.
        2 * DISTRICTS as u32 * (LINES_MAX as u32 + 3)
    }

    fn data(&self) -> Option<Data> {
        Some(Data {
            bytes: Tpcc::loaded_bytes(self.warehouses),
            is_loaded: true,
        })
    }

    fn check(&self, made_for: &MadeFor) -> Result<(), Refusal> {
        check_room(made_for, self.room_for != ROOM_FOR)?;
        match self.mix.sum() {
            100 => Ok(()),
            sum => Err(Refusal {
                keys: &["mix"],
                title: format!("the shares of mix add up to {sum}"),
                label: "they are percentages: 100 in sum".to_owned(),
                help: "the standard's mix is { new_order = 45, payment = 43, order_status = 4, delivery = 4, \
                       stock_level = 4 }; a kind left out does not take place",
                shown: None,
            }),
        }
    }

    fn procedure_key(&self) -> Option<&'static str> {
        self.procedures.then_some("procedures")
    }
}

/// How many rows there are for each warehouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Items, and rows of stock in a warehouse.
    pub items: u64,
    /// Customers of a district, and orders that it begins with.
    pub customers: u64,
}

impl Sizes {
    /// The standard's (clause 1.2.1).
    pub const STANDARD: Sizes = Sizes {
        items: 100_000,
        customers: 3000,
    };

    /// The oldest orders, 2100 of 3000, have been delivered when a district begins.
    fn delivered(&self) -> u64 {
        self.customers * 7 / 10
    }

    /// Every customer has paid 10.00.
    fn district_ytd_cents(&self) -> i64 {
        self.customers as i64 * 1000
    }

    /// Last names that customers have.
    fn last_names(&self) -> u64 {
        self.customers.min(LAST_NAMES)
    }
}

/// The workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tpcc {
    warehouses: u32,
    sizes: Sizes,
    mix: Mix,
    procedures: bool,
    seed: u64,
    constants: Constants,
}

impl Tpcc {
    /// This many warehouses, their rows drawn from `seed`; with `procedures` a transaction is one call of a procedure.
    pub fn new(warehouses: u32, mix: Mix, procedures: bool, seed: u64) -> Tpcc {
        Tpcc {
            warehouses,
            sizes: Sizes::STANDARD,
            mix,
            procedures,
            seed,
            constants: Constants::of(seed).1,
        }
    }

    /// The same with other numbers of rows: fewer than the standard's are for tests.
    pub fn with_sizes(self, sizes: Sizes) -> Tpcc {
        Tpcc { sizes, ..self }
    }

    /// As the embedded database carries it out, with room for the rows of this many transactions.
    pub fn in_rows(self, room_for: u64) -> Box<dyn Workload> {
        Box::new(in_rows::TpccInRows::new(self, room_for))
    }

    /// Bytes that this many warehouses take when they are loaded, about.
    pub fn loaded_bytes(warehouses: u32) -> u64 {
        u64::from(warehouses) * WAREHOUSE_BYTES
    }

    fn kind(&self, client: &mut Client) -> usize {
        let mut left = uniform(&mut client.rng, 0, u64::from(self.mix.sum()) - 1) as u32;
        for (kind, share) in self.mix.shares().into_iter().enumerate() {
            if left < share {
                return kind;
            }
            left -= share;
        }
        unreachable!("what is drawn is below the sum of the shares")
    }

    /// The client's own warehouse.
    fn home(&self, client: &Client) -> u64 {
        client.number as u64 % u64::from(self.warehouses) + 1
    }

    /// Any warehouse but `home`; `home` when there is no other.
    fn elsewhere(&self, client: &mut Client, home: u64) -> u64 {
        let warehouses = u64::from(self.warehouses);
        if warehouses == 1 {
            return home;
        }
        let other = uniform(&mut client.rng, 1, warehouses - 1);
        if other < home { other } else { other + 1 }
    }
}

/// The transaction that the client makes next, and its number among those that the check looks for.
fn numbered(client: &mut Client) -> u64 {
    client.changes += 1;
    client.changes
}

/// A number of a table on its way into a parameter.
fn int(number: u64) -> Value<'static> {
    Value::Int(number as i64)
}

/// The values of rows, the last row again until there are `rows`.
fn padded<const N: usize>(
    values: impl Iterator<Item = [Value<'static>; N]>,
    rows: usize,
) -> Vec<Value<'static>> {
    let mut all = Vec::with_capacity(rows * N);
    values.for_each(|row| all.extend(row));
    while all.len() < rows * N {
        all.extend_from_within(all.len() - N..);
    }
    all
}

impl SqlWorkload for Tpcc {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn kinds(&self) -> Vec<String> {
        KINDS.map(str::to_owned).to_vec()
    }

    fn create_tables(&self, dialect: Dialect) -> Vec<String> {
        let mut statements = schema::create_tables(dialect);
        if self.procedures {
            statements.extend(schema::create_procedures(dialect));
        }
        statements
    }

    fn load_parts(&self, dialect: Dialect) -> Vec<LoadPart> {
        load::parts(self, dialect)
    }

    fn create_indexes(&self, dialect: Dialect) -> Vec<String> {
        schema::create_indexes(dialect)
    }

    fn statements(&self, dialect: Dialect) -> Vec<String> {
        match self.procedures {
            true => statements::calls(dialect),
            false => statements::all(dialect),
        }
    }

    fn next(&self, client: &mut Client) -> Box<dyn SqlTransaction> {
        match self.kind(client) {
            NEW_ORDER => Box::new(new_order::NewOrder::draw(self, client)),
            PAYMENT => Box::new(payment::Payment::draw(self, client)),
            ORDER_STATUS => Box::new(order_status::OrderStatus::draw(self, client)),
            DELIVERY => Box::new(delivery::Delivery::draw(self, client)),
            _ => Box::new(stock_level::StockLevel::draw(self, client)),
        }
    }

    fn check(
        &self,
        connection: &mut dyn SqlConnection,
        acknowledged: &[Acknowledged],
    ) -> Result<String, CheckError> {
        check::check(connection, self.sizes.delivered(), acknowledged)
    }
}
