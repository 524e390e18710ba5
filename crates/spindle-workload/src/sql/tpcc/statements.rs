//! The statements of TPC-C's transactions, by their numbers, and what differs in them between dialects. Where a
//! transaction needs several rows it asks for all of them at once; a statement for fewer rows than it has parameters
//! for is given the last of them again, which changes nothing.

use super::terms::{DISTRICTS, LINES_MAX};
use crate::sql::dialect::Dialect;

/// New order.
pub const CUSTOMER_AND_WAREHOUSE: usize = 0;
pub const ITEMS: usize = 1;
pub const READ_DISTRICT: usize = 2;
pub const TAKE_ORDER_NUMBER: usize = 3;
pub const STOCK: usize = 4;
pub const CHANGE_STOCK: usize = 5;
pub const INSERT_ORDER: usize = 6;
pub const INSERT_NEW_ORDER: usize = 7;
/// Payment.
pub const CUSTOMER_BY_ID: usize = 8;
pub const CUSTOMERS_BY_NAME: usize = 9;
pub const PAY: usize = 10;
pub const PAY_BAD_CREDIT: usize = 11;
pub const READ_DISTRICT_NAME: usize = 12;
pub const PAY_DISTRICT: usize = 13;
pub const READ_WAREHOUSE_NAME: usize = 14;
pub const PAY_WAREHOUSE: usize = 15;
pub const INSERT_HISTORY: usize = 16;
/// Order status.
pub const STATUS_BY_ID: usize = 17;
pub const STATUS_BY_NAME: usize = 18;
pub const LAST_ORDER: usize = 19;
pub const LINES: usize = 20;
/// Delivery.
pub const OLDEST_ORDERS: usize = 21;
pub const REMOVE_NEW_ORDERS: usize = 22;
pub const SET_CARRIER: usize = 23;
pub const CUSTOMERS_OF_ORDERS: usize = 24;
pub const SET_DELIVERED: usize = 25;
pub const AMOUNTS: usize = 26;
pub const CREDIT_CUSTOMERS: usize = 27;
/// Stock level.
pub const LOW_STOCK: usize = 28;
/// The lines of an order: a statement for every number of them, from 1 on.
pub const INSERT_LINES: usize = 29;

/// Parameters of one line of an order, behind the three that all lines share.
const LINE_PARAMETERS: usize = 5;

/// Rows for which statements for several rows have parameters.
pub const LINES_ASKED: usize = LINES_MAX as usize;
pub const DISTRICTS_ASKED: usize = DISTRICTS as usize;

/// The statements of clients that work without procedures.
pub fn all(dialect: Dialect) -> Vec<String> {
    let mut statements = new_order(dialect);
    statements.extend(payment(dialect));
    statements.extend(order_status());
    statements.extend(delivery(dialect));
    statements.push(stock_level());
    statements.extend((1..=LINES_ASKED).map(insert_lines));
    statements
}

/// `(a = $1 and b = $2) or (a = $3 and b = $4)`: every dialect finds each of them by its index.
fn any_of(columns: &[&str], first: usize, rows: usize) -> String {
    let row = |number: usize| {
        let first = first + number * columns.len();
        let columns = columns.iter().zip(first..);
        let equal: Vec<String> = columns
            .map(|(column, parameter)| format!("{column} = ${parameter}"))
            .collect();
        format!("({})", equal.join(" and "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    rows.join(" or ")
}

/// An update, and what it returns where updates can.
fn returning(dialect: Dialect, update: &str, columns: &str) -> String {
    match dialect.updates_return() {
        true => format!("{update} returning {columns}"),
        false => update.to_owned(),
    }
}

fn new_order(dialect: Dialect) -> Vec<String> {
    let items: Vec<String> = (1..=LINES_ASKED).map(|n| format!("${n}")).collect();
    // Which of its ten texts goes with the order is the district's matter.
    let texts: String = (1..=DISTRICTS)
        .map(|district| format!(" when {district} then s_dist_{district:02}"))
        .collect();
    let given = dialect.given_rows(
        &[
            ("w", "integer"),
            ("i", "integer"),
            ("quantity", "integer"),
            ("ordered", "integer"),
            ("orders", "integer"),
            ("remote", "integer"),
        ],
        1,
        LINES_ASKED,
    );
    vec![
        "select c_discount, c_last, c_credit, w_tax from customer join warehouse on w_id = c_w_id \
         where c_w_id = $1 and c_d_id = $2 and c_id = $3"
            .to_owned(),
        format!(
            "select i_id, i_price, i_name, i_data from item where i_id in ({})",
            items.join(", ")
        ),
        format!(
            "select d_next_o_id, d_tax from district where d_w_id = $1 and d_id = $2{}",
            dialect.for_update()
        ),
        returning(
            dialect,
            "update district set d_next_o_id = d_next_o_id + 1 where d_w_id = $1 and d_id = $2",
            "d_next_o_id - 1, d_tax",
        ),
        format!(
            "select s_w_id, s_i_id, s_quantity, case {district}{texts} end, s_data from stock where {rows}{lock}",
            district = match dialect {
                Dialect::Postgres => "$1::integer",
                Dialect::MariaDb | Dialect::Sqlite => "$1",
            },
            rows = any_of(&["s_w_id", "s_i_id"], 2, LINES_ASKED),
            lock = dialect.for_update(),
        ),
        dialect.update_from(
            "stock",
            "s_quantity = given.quantity, s_ytd = s_ytd + given.ordered, s_order_cnt = s_order_cnt + given.orders, \
             s_remote_cnt = s_remote_cnt + given.remote",
            &given,
            "s_w_id = given.w and s_i_id = given.i",
        ),
        "insert into orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local, o_client, o_number) \
         values ($1, $2, $3, $4, current_timestamp, $5, $6, $7, $8)"
            .to_owned(),
        "insert into new_order (no_w_id, no_d_id, no_o_id) values ($1, $2, $3)".to_owned(),
    ]
}

fn insert_lines(lines: usize) -> String {
    let line = |number: usize| {
        let first = 4 + (number - 1) * LINE_PARAMETERS;
        let own: Vec<String> = (first..first + LINE_PARAMETERS)
            .map(|n| format!("${n}"))
            .collect();
        format!("($1, $2, $3, {number}, {})", own.join(", "))
    };
    let lines: Vec<String> = (1..=lines).map(line).collect();
    format!(
        "insert into order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, \
         ol_dist_info) values {}",
        lines.join(", ")
    )
}

fn payment(dialect: Dialect) -> Vec<String> {
    let columns = "c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit, \
                   c_credit_lim, c_discount, c_balance";
    let lock = dialect.for_update();
    let of_district = "c_w_id = $1 and c_d_id = $2";
    let pay = "c_balance = c_balance - $1, c_ytd_payment = c_ytd_payment + $1, c_payment_cnt = c_payment_cnt + 1";
    let of_customer = "c_w_id = $2 and c_d_id = $3 and c_id = $4";
    let told = match dialect {
        Dialect::Postgres => "left($5::text || c_data, 500)",
        Dialect::MariaDb => "left(concat($5, c_data), 500)",
        Dialect::Sqlite => "substr($5 || c_data, 1, 500)",
    };
    let address = |of: &str| {
        let columns = ["name", "street_1", "street_2", "city", "state", "zip"];
        columns.map(|column| format!("{of}_{column}")).join(", ")
    };
    vec![
        format!("select {columns} from customer where {of_district} and c_id = $3{lock}"),
        format!(
            "select {columns} from customer where {of_district} and c_last = $3 order by c_first{lock}"
        ),
        format!("update customer set {pay} where {of_customer}"),
        format!("update customer set {pay}, c_data = {told} where {of_customer}"),
        format!("select {} from district where d_w_id = $1 and d_id = $2", address("d")),
        returning(
            dialect,
            "update district set d_ytd = d_ytd + $1 where d_w_id = $2 and d_id = $3",
            &address("d"),
        ),
        format!("select {} from warehouse where w_id = $1", address("w")),
        returning(
            dialect,
            "update warehouse set w_ytd = w_ytd + $1 where w_id = $2",
            &address("w"),
        ),
        "insert into history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data, h_client, h_number) \
         values ($1, $2, $3, $4, $5, current_timestamp, $6, $7, $8, $9)"
            .to_owned(),
    ]
}

fn order_status() -> Vec<String> {
    let columns = "c_id, c_first, c_middle, c_last, c_balance";
    let of_district = "c_w_id = $1 and c_d_id = $2";
    vec![
        format!("select {columns} from customer where {of_district} and c_id = $3"),
        format!("select {columns} from customer where {of_district} and c_last = $3 order by c_first"),
        "select o_id, o_entry_d, o_carrier_id from orders where o_w_id = $1 and o_d_id = $2 and o_c_id = $3 \
         order by o_id desc limit 1"
            .to_owned(),
        "select ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d from order_line \
         where ol_w_id = $1 and ol_d_id = $2 and ol_o_id = $3"
            .to_owned(),
    ]
}

fn delivery(dialect: Dialect) -> Vec<String> {
    let oldest = |district: u64| {
        format!(
            "select * from (select no_d_id, no_o_id from new_order where no_w_id = $1 and no_d_id = {district} \
             order by no_o_id limit 1) as oldest_{district}"
        )
    };
    let oldest: Vec<String> = (1..=DISTRICTS).map(oldest).collect();
    let orders = |first| any_of(&["o_w_id", "o_d_id", "o_id"], first, DISTRICTS_ASKED);
    let lines = any_of(&["ol_w_id", "ol_d_id", "ol_o_id"], 1, DISTRICTS_ASKED);
    let given = dialect.given_rows(
        &[
            ("w", "integer"),
            ("d", "integer"),
            ("c", "integer"),
            ("amount", "numeric"),
        ],
        1,
        DISTRICTS_ASKED,
    );
    vec![
        oldest.join(" union all "),
        format!(
            "delete from new_order where {}",
            any_of(&["no_w_id", "no_d_id", "no_o_id"], 1, DISTRICTS_ASKED)
        ),
        returning(
            dialect,
            &format!("update orders set o_carrier_id = $1 where {}", orders(2)),
            "o_d_id, o_c_id",
        ),
        format!("select o_d_id, o_c_id from orders where {}", orders(1)),
        format!("update order_line set ol_delivery_d = current_timestamp where {lines}"),
        format!("select ol_d_id, sum(ol_amount) from order_line where {lines} group by ol_d_id"),
        dialect.update_from(
            "customer",
            "c_balance = c_balance + given.amount, c_delivery_cnt = c_delivery_cnt + 1",
            &given,
            "c_w_id = given.w and c_d_id = given.d and c_id = given.c",
        ),
    ]
}

fn stock_level() -> String {
    // The last twenty orders of the district.
    "select count(distinct s_i_id) from district join order_line on ol_w_id = d_w_id and ol_d_id = d_id \
     and ol_o_id >= d_next_o_id - 20 and ol_o_id < d_next_o_id join stock on s_w_id = d_w_id and s_i_id = ol_i_id \
     where d_w_id = $1 and d_id = $2 and s_quantity < $3"
        .to_owned()
}

/// The calls of procedures, by the numbers of the kinds of transactions. A procedure that answers has in PostgreSQL a
/// last parameter for it.
pub fn calls(dialect: Dialect) -> Vec<String> {
    let call = |(name, parameters): (&str, usize)| {
        let mut parameters: Vec<String> = (1..=parameters).map(|n| format!("${n}")).collect();
        if dialect == Dialect::Postgres {
            parameters.push("null".to_owned());
        }
        format!("call tpcc_{name}({})", parameters.join(", "))
    };
    let procedures = [
        ("new_order", 7),
        ("payment", 9),
        ("order_status", 4),
        ("delivery", 2),
        ("stock_level", 3),
    ];
    procedures.map(call).to_vec()
}
