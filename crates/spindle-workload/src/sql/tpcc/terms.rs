//! The words of TPC-C that its transactions and both ways to carry it out share: the mix, sizes, kinds, and the
//! workload itself, as far as it only draws.

use serde::{Deserialize, Serialize};
use spindle_text::section::{Key, Keys, Section};

use super::random::{Constants, LAST_NAMES, fraction, uniform};
use crate::sql::value::Value;
use crate::workload::{Client, TerminalTimes};

/// Districts of a warehouse.
pub(super) const DISTRICTS: u64 = 10;
/// Lines of an order.
pub(super) const LINES_MIN: u64 = 5;
pub(super) const LINES_MAX: u64 = 15;
/// Bytes of a loaded warehouse with its indexes, about.
pub(super) const WAREHOUSE_BYTES: u64 = 100 << 20;

/// What the kinds of transactions are called.
pub(super) const KINDS: [&str; 5] = [
    "new_order",
    "payment",
    "order_status",
    "delivery",
    "stock_level",
];
/// Kinds of transactions, by [`SqlTransaction::kind`].
pub(super) const NEW_ORDER: usize = 0;
pub(super) const PAYMENT: usize = 1;
pub(super) const ORDER_STATUS: usize = 2;
pub(super) const DELIVERY: usize = 3;
pub(super) const STOCK_LEVEL: usize = 4;

/// What keying a transaction in takes, and the mean of the think times after it, seconds (clause 5.2.5.7).
const KEYING_S: [u64; 5] = [18, 3, 2, 2, 2];
const MEAN_THINK_S: [u64; 5] = [12, 12, 10, 5, 5];
/// A think time is cut at this many means (clause 5.2.5.4).
const THINK_MEANS_MAX: f64 = 10.0;

/// Shares of the five kinds, percent; 100 in sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TpccMix {
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

impl TpccMix {
    /// The standard's (clause 5.2.3), with as many new orders as it allows.
    pub const STANDARD: TpccMix = TpccMix {
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

impl Section for TpccMix {
    fn read<K: Keys>(keys: &mut K) -> TpccMix {
        let is_given = keys.is_given();
        let mut share = |name, says, standard: u32| {
            // A kind that is left out of a mix does not take place.
            let default = if is_given { 0 } else { standard };
            keys.number(Key { name, says }, default, 0..=100)
        };
        TpccMix {
            new_order: share("new_order", "orders entered", TpccMix::STANDARD.new_order),
            payment: share(
                "payment",
                "payments by customers",
                TpccMix::STANDARD.payment,
            ),
            order_status: share(
                "order_status",
                "questions about a customer's last order",
                TpccMix::STANDARD.order_status,
            ),
            delivery: share(
                "delivery",
                "the oldest order of every district delivered",
                TpccMix::STANDARD.delivery,
            ),
            stock_level: share(
                "stock_level",
                "questions about items that run short",
                TpccMix::STANDARD.stock_level,
            ),
        }
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
    pub(super) fn delivered(&self) -> u64 {
        self.customers * 7 / 10
    }

    /// Every customer has paid 10.00.
    pub(super) fn district_ytd_cents(&self) -> i64 {
        self.customers as i64 * 1000
    }

    /// Last names that customers have.
    pub(super) fn last_names(&self) -> u64 {
        self.customers.min(LAST_NAMES)
    }
}

/// The workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tpcc {
    pub(super) warehouses: u32,
    pub(super) sizes: Sizes,
    pub(super) mix: TpccMix,
    pub(super) procedures: bool,
    terminal_percent: u32,
    is_delivery_deferred: bool,
    pub(super) seed: u64,
    pub(super) constants: Constants,
}

impl Tpcc {
    /// This many warehouses, their rows drawn from `seed`; with `procedures` a transaction is one call of a procedure.
    pub fn new(warehouses: u32, mix: TpccMix, procedures: bool, seed: u64) -> Tpcc {
        Tpcc {
            warehouses,
            sizes: Sizes::STANDARD,
            mix,
            procedures,
            terminal_percent: 0,
            is_delivery_deferred: false,
            seed,
            constants: Constants::of(seed).1,
        }
    }

    /// The same with other numbers of rows: fewer than the standard's are for tests.
    pub fn with_sizes(self, sizes: Sizes) -> Tpcc {
        Tpcc { sizes, ..self }
    }

    /// The same with a person at each terminal, who takes this share of the standard's keying and think times, percent.
    pub fn with_terminals(self, terminal_percent: u32) -> Tpcc {
        Tpcc {
            terminal_percent,
            ..self
        }
    }

    /// The same with deliveries that are queued, or carried out at once.
    pub fn with_deferred_delivery(self, is_delivery_deferred: bool) -> Tpcc {
        Tpcc {
            is_delivery_deferred,
            ..self
        }
    }

    /// Whether clients put transactions of this kind off.
    pub(super) fn puts_off(&self, kind: usize) -> bool {
        self.is_delivery_deferred && kind == DELIVERY
    }

    /// Bytes that this many warehouses take when they are loaded, about.
    pub fn loaded_bytes(warehouses: u32) -> u64 {
        u64::from(warehouses) * WAREHOUSE_BYTES
    }

    pub(super) fn kind(&self, client: &mut Client) -> usize {
        let mut left = uniform(&mut client.rng, 0, u64::from(self.mix.sum()) - 1) as u32;
        for (kind, share) in self.mix.shares().into_iter().enumerate() {
            if left < share {
                return kind;
            }
            left -= share;
        }
        unreachable!("what is drawn is below the sum of the shares")
    }

    /// What the person at a client's terminal takes over a transaction. Think times are drawn from a negative
    /// exponential distribution.
    pub(super) fn times_of(&self, kind: usize, client: &mut Client) -> TerminalTimes {
        if self.terminal_percent == 0 {
            return TerminalTimes::default();
        }
        let scaled_ns = |seconds: u64| seconds * u64::from(self.terminal_percent) * 10_000_000;
        let means = -(1.0 - fraction(&mut client.rng)).ln();
        let mean_ns = scaled_ns(MEAN_THINK_S[kind]) as f64;
        TerminalTimes {
            keying_ns: scaled_ns(KEYING_S[kind]),
            thinking_ns: (means.min(THINK_MEANS_MAX) * mean_ns) as u64,
        }
    }

    /// The client's own warehouse.
    pub(super) fn home(&self, client: &Client) -> u64 {
        client.number as u64 % u64::from(self.warehouses) + 1
    }

    /// Any warehouse but `home`; `home` when there is no other.
    pub(super) fn elsewhere(&self, client: &mut Client, home: u64) -> u64 {
        let warehouses = u64::from(self.warehouses);
        if warehouses == 1 {
            return home;
        }
        let other = uniform(&mut client.rng, 1, warehouses - 1);
        if other < home { other } else { other + 1 }
    }
}

/// The transaction that the client makes next, and its number among those that the check looks for.
pub(super) fn numbered(client: &mut Client) -> u64 {
    client.changes += 1;
    client.changes
}

/// A number of a table on its way into a parameter.
pub(super) fn int(number: u64) -> Value<'static> {
    Value::Int(number as i64)
}

/// The values of rows, the last row again until there are `rows`.
pub(super) fn padded<const N: usize>(
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

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_io::env::seeded_rng;

    fn client() -> Client {
        Client {
            number: 0,
            clients: 1,
            changes: 0,
            rng: seeded_rng(1, 2),
        }
    }

    /// With the standard's mix, and transactions that take no time, ten terminals make 12.86 new orders a minute, which
    /// is known as the most that a warehouse can (clause 4.2.1).
    #[test]
    fn ten_terminals_make_as_many_new_orders_as_a_warehouse_can() {
        let tpcc = Tpcc::new(1, TpccMix::STANDARD, false, 1).with_terminals(100);
        let (mut client, mut new_orders, mut passed_ns) = (client(), 0, 0);
        const TRANSACTIONS: u64 = 200_000;
        for _ in 0..TRANSACTIONS {
            let kind = tpcc.kind(&mut client);
            let times = tpcc.times_of(kind, &mut client);
            assert_eq!(times.keying_ns, KEYING_S[kind] * 1_000_000_000);
            assert!(times.thinking_ns <= MEAN_THINK_S[kind] * 10_000_000_000);
            new_orders += u64::from(kind == NEW_ORDER);
            passed_ns += times.keying_ns + times.thinking_ns;
        }
        let of_ten_a_minute = 10.0 * new_orders as f64 / (passed_ns as f64 / 60e9);
        assert!((of_ten_a_minute - 12.86).abs() < 0.1, "{of_ten_a_minute}");
    }

    #[test]
    fn shares_of_the_times_and_none_at_all() {
        let tpcc = Tpcc::new(1, TpccMix::STANDARD, false, 1);
        let times = tpcc
            .clone()
            .with_terminals(1)
            .times_of(NEW_ORDER, &mut client());
        assert_eq!(times.keying_ns, 180_000_000);
        let (mut asked, mut other) = (client(), client());
        assert_eq!(tpcc.times_of(PAYMENT, &mut asked), TerminalTimes::default());
        // Histories of a seed stay what they were.
        assert_eq!(tpcc.kind(&mut asked), tpcc.kind(&mut other));
    }
}
