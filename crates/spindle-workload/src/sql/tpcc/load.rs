//! The rows that TPC-C begins with (clause 4.3.3). Every part draws from its own stream of chance, so that parts may be
//! made in any order. How many lines an order has, and whose it is, follows from its number, so that orders and their
//! lines agree.

use rand_xoshiro::Xoshiro256PlusPlus;
use spindle_io::env::seeded_rng;

use super::random::{self, Constants, LAST_NAMES, uniform};
use super::terms::{DISTRICTS, LINES_MAX, LINES_MIN, Sizes, Tpcc};
use crate::session::SessionError;
use crate::sql::connection::{LoadPart, RowSink};
use crate::sql::dialect::Dialect;
use crate::sql::value::Value;

/// When everything was entered: one moment, so that a seed is one database. 2008-01-01.
const ENTERED: Value<'static> = Value::Timestamp(ENTERED_US);
pub const ENTERED_US: i64 = 1_199_145_600_000_000;

/// Columns that are loaded, table by table.
const WAREHOUSE: &[&str] = &[
    "w_id",
    "w_name",
    "w_street_1",
    "w_street_2",
    "w_city",
    "w_state",
    "w_zip",
    "w_tax",
    "w_ytd",
];
const DISTRICT: &[&str] = &[
    "d_w_id",
    "d_id",
    "d_name",
    "d_street_1",
    "d_street_2",
    "d_city",
    "d_state",
    "d_zip",
    "d_tax",
    "d_ytd",
    "d_next_o_id",
];
const CUSTOMER: &[&str] = &[
    "c_w_id",
    "c_d_id",
    "c_id",
    "c_first",
    "c_middle",
    "c_last",
    "c_street_1",
    "c_street_2",
    "c_city",
    "c_state",
    "c_zip",
    "c_phone",
    "c_since",
    "c_credit",
    "c_credit_lim",
    "c_discount",
    "c_balance",
    "c_ytd_payment",
    "c_payment_cnt",
    "c_delivery_cnt",
    "c_data",
];
const HISTORY: &[&str] = &[
    "h_c_id", "h_c_d_id", "h_c_w_id", "h_d_id", "h_w_id", "h_date", "h_amount", "h_data",
];
const NEW_ORDER: &[&str] = &["no_w_id", "no_d_id", "no_o_id"];
const ORDERS: &[&str] = &[
    "o_w_id",
    "o_d_id",
    "o_id",
    "o_c_id",
    "o_entry_d",
    "o_carrier_id",
    "o_ol_cnt",
    "o_all_local",
];
const ORDER_LINE: &[&str] = &[
    "ol_w_id",
    "ol_d_id",
    "ol_o_id",
    "ol_number",
    "ol_i_id",
    "ol_supply_w_id",
    "ol_delivery_d",
    "ol_quantity",
    "ol_amount",
    "ol_dist_info",
];
const ITEM: &[&str] = &["i_id", "i_im_id", "i_name", "i_price", "i_data"];
const STOCK: &[&str] = &[
    "s_w_id",
    "s_i_id",
    "s_quantity",
    "s_dist_01",
    "s_dist_02",
    "s_dist_03",
    "s_dist_04",
    "s_dist_05",
    "s_dist_06",
    "s_dist_07",
    "s_dist_08",
    "s_dist_09",
    "s_dist_10",
    "s_ytd",
    "s_order_cnt",
    "s_remote_cnt",
    "s_data",
];

/// What the rows of a part are drawn from.
#[derive(Clone, Copy)]
struct Origin {
    dialect: Dialect,
    sizes: Sizes,
    seed: u64,
    warehouse: u64,
}

/// Makes the rows of a part of one warehouse.
type Make = fn(&Origin, &mut Xoshiro256PlusPlus, &mut dyn RowSink) -> Result<(), SessionError>;

/// The parts of one warehouse, largest first.
const OF_WAREHOUSE: [(&str, &[&str], Make); 8] = [
    ("order_line", ORDER_LINE, order_lines),
    ("stock", STOCK, stock),
    ("customer", CUSTOMER, customers),
    ("orders", ORDERS, orders),
    ("history", HISTORY, history),
    ("new_order", NEW_ORDER, new_orders),
    ("district", DISTRICT, districts),
    ("warehouse", WAREHOUSE, warehouse),
];

pub fn parts(tpcc: &Tpcc, dialect: Dialect) -> Vec<LoadPart> {
    let part = |table, columns, make: Make, stream, warehouse| {
        let origin = Origin {
            dialect,
            sizes: tpcc.sizes,
            seed: tpcc.seed,
            warehouse,
        };
        LoadPart {
            table,
            columns,
            rows: Box::new(move |sink| make(&origin, &mut seeded_rng(origin.seed, stream), sink)),
        }
    };
    let mut parts = vec![part("item", ITEM, items, 0, 0)];
    for warehouse in 1..=u64::from(tpcc.warehouses) {
        for (number, (table, columns, make)) in (1..).zip(OF_WAREHOUSE) {
            let stream = warehouse << 4 | number;
            parts.push(part(table, columns, make, stream, warehouse));
        }
    }
    parts
}

/// Lines of all orders that are loaded.
pub fn order_lines_of(tpcc: &Tpcc) -> u64 {
    let of_warehouse = |warehouse| {
        let origin = Origin {
            dialect: Dialect::Postgres,
            sizes: tpcc.sizes,
            seed: tpcc.seed,
            warehouse,
        };
        let of_district = |district| -> u64 {
            let orders = 1..=origin.sizes.customers;
            orders.map(|order| origin.lines_of(district, order)).sum()
        };
        (1..=DISTRICTS).map(of_district).sum::<u64>()
    };
    (1..=u64::from(tpcc.warehouses)).map(of_warehouse).sum()
}

fn int(number: u64) -> Value<'static> {
    Value::Int(number as i64)
}

impl Origin {
    fn cents(&self, cents: i64) -> Value<'static> {
        self.dialect.exact(cents, 2)
    }

    fn rate(&self, ten_thousandths: u64) -> Value<'static> {
        self.dialect.exact(ten_thousandths as i64, 4)
    }

    /// A number that follows from an order alone.
    fn of_order(&self, district: u64, order: u64) -> u64 {
        let place = (self.warehouse * (DISTRICTS + 1) + district) << 32 | order;
        uniform(&mut seeded_rng(self.seed ^ place, 1 << 40), 0, u64::MAX - 1)
    }

    fn lines_of(&self, district: u64, order: u64) -> u64 {
        LINES_MIN + self.of_order(district, order) % (LINES_MAX - LINES_MIN + 1)
    }

    /// The customers of a district's orders: every one has one, in random order.
    fn customers_of_orders(&self, district: u64) -> Vec<u64> {
        let mut customers: Vec<u64> = (1..=self.sizes.customers).collect();
        let place = self.warehouse * (DISTRICTS + 1) + district;
        let mut rng = seeded_rng(self.seed ^ place, 1 << 41);
        for last in (1..customers.len()).rev() {
            customers.swap(last, uniform(&mut rng, 0, last as u64) as usize);
        }
        customers
    }

    fn is_delivered(&self, order: u64) -> bool {
        order <= self.sizes.delivered()
    }
}

/// Street, street, city, state and zip code (clause 4.3.2.7).
fn address(rng: &mut Xoshiro256PlusPlus) -> [String; 5] {
    let zip = format!("{}11111", random::digits(rng, 4));
    [
        random::text(rng, 10, 20),
        random::text(rng, 10, 20),
        random::text(rng, 10, 20),
        random::text(rng, 2, 2),
        zip,
    ]
}

fn items(
    origin: &Origin,
    rng: &mut Xoshiro256PlusPlus,
    sink: &mut dyn RowSink,
) -> Result<(), SessionError> {
    for item in 1..=origin.sizes.items {
        let (name, data) = (random::text(rng, 14, 24), random::data(rng));
        sink.row(&[
            int(item),
            int(uniform(rng, 1, 10_000)),
            Value::text(&name),
            origin.cents(uniform(rng, 100, 10_000) as i64),
            Value::text(&data),
        ])?;
    }
    Ok(())
}

fn warehouse(
    origin: &Origin,
    rng: &mut Xoshiro256PlusPlus,
    sink: &mut dyn RowSink,
) -> Result<(), SessionError> {
    let (name, address) = (random::text(rng, 6, 10), address(rng));
    let mut row = vec![int(origin.warehouse), Value::text(&name)];
    row.extend(address.iter().map(|part| Value::text(part)));
    row.push(origin.rate(uniform(rng, 0, 2000)));
    // The sum of its districts': 300,000.00 in the standard's size.
    row.push(origin.cents(DISTRICTS as i64 * origin.sizes.district_ytd_cents()));
    sink.row(&row)
}

fn districts(
    origin: &Origin,
    rng: &mut Xoshiro256PlusPlus,
    sink: &mut dyn RowSink,
) -> Result<(), SessionError> {
    for district in 1..=DISTRICTS {
        let (name, address) = (random::text(rng, 6, 10), address(rng));
        let mut row = vec![int(origin.warehouse), int(district), Value::text(&name)];
        row.extend(address.iter().map(|part| Value::text(part)));
        row.push(origin.rate(uniform(rng, 0, 2000)));
        row.push(origin.cents(origin.sizes.district_ytd_cents()));
        row.push(int(origin.sizes.customers + 1));
        sink.row(&row)?;
    }
    Ok(())
}

fn customers(
    origin: &Origin,
    rng: &mut Xoshiro256PlusPlus,
    sink: &mut dyn RowSink,
) -> Result<(), SessionError> {
    let (constants, _) = Constants::of(origin.seed);
    let names = origin.sizes.last_names();
    for district in 1..=DISTRICTS {
        for customer in 1..=origin.sizes.customers {
            let name = match customer <= LAST_NAMES {
                true => customer - 1,
                false => constants.last_name(rng, names),
            };
            let (first, last) = (random::text(rng, 8, 16), random::last_name(name));
            let (address, phone) = (address(rng), random::digits(rng, 16));
            let credit = if random::happens(rng, 10) { "BC" } else { "GC" };
            let data = random::text(rng, 300, 500);
            let mut row = vec![
                int(origin.warehouse),
                int(district),
                int(customer),
                Value::text(&first),
                Value::text("OE"),
                Value::text(&last),
            ];
            row.extend(address.iter().map(|part| Value::text(part)));
            row.extend([
                Value::text(&phone),
                ENTERED,
                Value::text(credit),
                origin.cents(5_000_000),
                origin.rate(uniform(rng, 0, 5000)),
                origin.cents(-1000),
                origin.cents(1000),
                int(1),
                int(0),
                Value::text(&data),
            ]);
            sink.row(&row)?;
        }
    }
    Ok(())
}

fn history(
    origin: &Origin,
    rng: &mut Xoshiro256PlusPlus,
    sink: &mut dyn RowSink,
) -> Result<(), SessionError> {
    let home = int(origin.warehouse);
    for district in 1..=DISTRICTS {
        for customer in 1..=origin.sizes.customers {
            let data = random::text(rng, 12, 24);
            sink.row(&[
                int(customer),
                int(district),
                home.clone(),
                int(district),
                home.clone(),
                ENTERED,
                origin.cents(1000),
                Value::text(&data),
            ])?;
        }
    }
    Ok(())
}

fn stock(
    origin: &Origin,
    rng: &mut Xoshiro256PlusPlus,
    sink: &mut dyn RowSink,
) -> Result<(), SessionError> {
    for item in 1..=origin.sizes.items {
        let quantity = uniform(rng, 10, 100);
        let districts: [String; DISTRICTS as usize] =
            std::array::from_fn(|_| random::text(rng, 24, 24));
        let data = random::data(rng);
        let mut row = vec![int(origin.warehouse), int(item), int(quantity)];
        row.extend(districts.iter().map(|text| Value::text(text)));
        row.extend([int(0), int(0), int(0), Value::text(&data)]);
        sink.row(&row)?;
    }
    Ok(())
}

fn orders(
    origin: &Origin,
    rng: &mut Xoshiro256PlusPlus,
    sink: &mut dyn RowSink,
) -> Result<(), SessionError> {
    for district in 1..=DISTRICTS {
        for (order, customer) in (1..).zip(origin.customers_of_orders(district)) {
            let carrier = match origin.is_delivered(order) {
                true => int(uniform(rng, 1, 10)),
                false => Value::Null,
            };
            sink.row(&[
                int(origin.warehouse),
                int(district),
                int(order),
                int(customer),
                ENTERED,
                carrier,
                int(origin.lines_of(district, order)),
                int(1),
            ])?;
        }
    }
    Ok(())
}

fn order_lines(
    origin: &Origin,
    rng: &mut Xoshiro256PlusPlus,
    sink: &mut dyn RowSink,
) -> Result<(), SessionError> {
    for district in 1..=DISTRICTS {
        for order in 1..=origin.sizes.customers {
            for line in 1..=origin.lines_of(district, order) {
                let (delivered, cents) = match origin.is_delivered(order) {
                    true => (ENTERED, 0),
                    false => (Value::Null, uniform(rng, 1, 999_999)),
                };
                let info = random::text(rng, 24, 24);
                sink.row(&[
                    int(origin.warehouse),
                    int(district),
                    int(order),
                    int(line),
                    int(uniform(rng, 1, origin.sizes.items)),
                    int(origin.warehouse),
                    delivered,
                    int(5),
                    origin.cents(cents as i64),
                    Value::text(&info),
                ])?;
            }
        }
    }
    Ok(())
}

fn new_orders(
    origin: &Origin,
    _: &mut Xoshiro256PlusPlus,
    sink: &mut dyn RowSink,
) -> Result<(), SessionError> {
    for district in 1..=DISTRICTS {
        for order in origin.sizes.delivered() + 1..=origin.sizes.customers {
            sink.row(&[int(origin.warehouse), int(district), int(order)])?;
        }
    }
    Ok(())
}
