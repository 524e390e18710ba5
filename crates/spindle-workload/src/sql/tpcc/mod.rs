//! TPC-C after revision 5.11 of the standard: nine tables, five kinds of transactions, 3.3.2's conditions of
//! consistency. A transaction's file says what it draws and what it does; `statements` has its SQL, and `procedures`
//! the same as procedures of the database, one call each. `in_rows` has it for the embedded database, `terms` what all
//! of them share. Clients pause as the standard's terminals do only if they are asked to. Never called an official
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
mod terms;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spindle_text::section::{Listing, SettingsRefusal};
use spindle_text::settings;

use super::connection::{LoadPart, SqlConnection};
use super::dialect::Dialect;
use super::{SqlTransaction, SqlWorkload};
use crate::sql::kind::{Data, MadeFor, MadeWorkload, WorkloadSettings, refused_room};
use crate::workload::{Acknowledged, CheckError, Client, TerminalTimes, Workload};
use terms::{DELIVERY, DISTRICTS, KINDS, LINES_MAX, NEW_ORDER, ORDER_STATUS, PAYMENT};

pub use terms::{Sizes, Tpcc, TpccMix};

/// Transactions for which there is room by default.
const ROOM_FOR: u64 = 500_000;

settings! {
    /// Settings of `tpcc`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct TpccSettings {
        /// Warehouses.
        warehouses: u32 = number("warehouses", 10, 1..=10_000),
        /// A transaction is one call of a procedure of the database, as with HammerDB; not with SQLite.
        procedures: bool = flag("procedures", false),
        /// Shares of the transactions, percent, 100 in sum: `new_order`, `payment`, `order_status`, `delivery`,
        /// `stock_level`. The standard's are 45, 43, 4, 4 and 4; one that is left out of a `mix` does not take place.
        mix: TpccMix = table_or("mix", "the standard's"),
        /// How long clients key in and think, percent of the standard's times; 0: not at all. At 100 a client keys a
        /// new order in for 18 s and then thinks for 12 s on average. The standard has ten clients a warehouse. Trials
        /// of seconds want 1 or less. Not with `rate`, `think_time` or `interleave`.
        #[serde(skip_serializing_if = "is_none")]
        keying_and_think_percent: u32 = number("keying_and_think_percent", 0, 0..=100),
        /// A delivery is queued and its client goes on, as the standard has it: one process for ten clients carries
        /// deliveries out. Else clients wait for them, as with HammerDB, go-tpc and BenchBase.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        deferred_delivery: bool = flag("deferred_delivery", false),
        /// Transactions of a trial for whose rows the embedded database makes room; one that needs more ends the
        /// trial. Other databases grow by themselves.
        room_for: u64 = number("room_for", ROOM_FOR, 1_000..=10_000_000_000),
    }
}

/// Runs from before there were such times say nothing of them.
fn is_none(percent: &u32) -> bool {
    *percent == 0
}

impl Default for TpccSettings {
    fn default() -> TpccSettings {
        Listing::defaults()
    }
}

impl WorkloadSettings for TpccSettings {
    fn make(&self, made_for: &MadeFor) -> MadeWorkload {
        let TpccSettings {
            warehouses,
            procedures,
            mix,
            keying_and_think_percent,
            deferred_delivery,
            room_for,
        } = *self;
        let tpcc = Tpcc::new(warehouses, mix, procedures, made_for.seed)
            .with_terminals(keying_and_think_percent)
            .with_deferred_delivery(deferred_delivery);
        match made_for.dialect {
            Some(_) => MadeWorkload::Sql(Arc::new(tpcc)),
            None => MadeWorkload::Rows(tpcc.in_rows(room_for)),
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

    fn check(&self, made_for: &MadeFor) -> Vec<SettingsRefusal> {
        let sum = self.mix.sum();
        let mix = (sum != 100).then(|| SettingsRefusal {
            keys: &["mix"],
            title: format!("the shares of mix add up to {sum}"),
            label: "they are percentages: 100 in sum".to_owned(),
            help: "the standard's mix is { new_order = 45, payment = 43, order_status = 4, delivery = 4, \
                   stock_level = 4 }; a kind left out does not take place",
            shown: None,
        });
        let room = refused_room(made_for, self.room_for != ROOM_FOR);
        room.into_iter().chain(mix).collect()
    }

    fn puts_off(&self) -> bool {
        self.deferred_delivery
    }

    fn pause_key(&self) -> Option<&'static str> {
        (self.keying_and_think_percent > 0).then_some("keying_and_think_percent")
    }

    fn procedure_key(&self) -> Option<&'static str> {
        self.procedures.then_some("procedures")
    }
}

impl Tpcc {
    /// As the embedded database carries it out, with room for the rows of this many transactions.
    pub fn in_rows(self, room_for: u64) -> Box<dyn Workload> {
        Box::new(in_rows::TpccInRows::new(self, room_for))
    }
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

    fn is_deferred(&self, kind: usize) -> bool {
        self.puts_off(kind)
    }

    fn terminal_times(&self, kind: usize, client: &mut Client) -> TerminalTimes {
        self.times_of(kind, client)
    }

    fn check(
        &self,
        connection: &mut dyn SqlConnection,
        acknowledged: &[Acknowledged],
    ) -> Result<String, CheckError> {
        check::check(connection, self.sizes.delivered(), acknowledged)
    }
}
