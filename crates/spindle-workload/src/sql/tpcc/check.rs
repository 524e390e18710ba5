//! What must hold in TPC-C's database at any time: the conditions of consistency of clause 3.3.2, and every order and
//! payment that a client was promised. Condition 11, as the standard has it, holds of a database just loaded; here the
//! deliveries that customers count are added.

use crate::sql::connection::SqlConnection;
use crate::sql::numbered;
use crate::workload::{Acknowledged, CheckError};

/// A condition: its number in the standard, what it says, and a statement that counts where it does not hold.
const CONDITIONS: [(&[u32], &str, &str); 12] = [
    (
        &[1],
        "a warehouse has taken what its districts have",
        "select count(*) from warehouse join (select d_w_id, sum(d_ytd) as ytd from district group by d_w_id) as d \
         on d_w_id = w_id where w_ytd <> ytd",
    ),
    (
        &[2],
        "a district's next order follows the last one",
        "select count(*) from district join (select o_w_id, o_d_id, max(o_id) as last from orders group by o_w_id, o_d_id) as o \
         on o_w_id = d_w_id and o_d_id = d_id where d_next_o_id - 1 <> last",
    ),
    (
        &[2],
        "the last order is the last new order, where there are new orders",
        "select count(*) from district join (select no_w_id, no_d_id, max(no_o_id) as last from new_order \
         group by no_w_id, no_d_id) as n on no_w_id = d_w_id and no_d_id = d_id where d_next_o_id - 1 <> last",
    ),
    (
        &[3],
        "new orders are numbered without gaps",
        "select count(*) from (select max(no_o_id) - min(no_o_id) + 1 - count(*) as gaps from new_order \
         group by no_w_id, no_d_id) as n where gaps <> 0",
    ),
    (
        &[4],
        "a district has the order lines that its orders count",
        "select count(*) from (select o_w_id, o_d_id, sum(o_ol_cnt) as counted from orders group by o_w_id, o_d_id) as o \
         left join (select ol_w_id, ol_d_id, count(*) as found from order_line group by ol_w_id, ol_d_id) as l \
         on ol_w_id = o_w_id and ol_d_id = o_d_id where found is null or counted <> found",
    ),
    (
        &[5],
        "an order has no carrier as long as it is new",
        "select count(*) from orders left join new_order on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id \
         where (o_carrier_id is null and no_o_id is null) or (o_carrier_id is not null and no_o_id is not null)",
    ),
    (
        &[6],
        "an order has the lines that it counts",
        "select count(*) from orders left join (select ol_w_id, ol_d_id, ol_o_id, count(*) as found from order_line \
         group by ol_w_id, ol_d_id, ol_o_id) as l on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id \
         where found is null or o_ol_cnt <> found",
    ),
    (
        &[7],
        "a line has been delivered when its order has a carrier",
        "select count(*) from order_line left join orders on o_w_id = ol_w_id and o_d_id = ol_d_id and o_id = ol_o_id \
         where o_id is null or (ol_delivery_d is null and o_carrier_id is not null) \
         or (ol_delivery_d is not null and o_carrier_id is null)",
    ),
    (
        &[8],
        "a warehouse has taken what history says",
        "select count(*) from warehouse left join (select h_w_id, sum(h_amount) as paid from history group by h_w_id) as h \
         on h_w_id = w_id where paid is null or w_ytd <> paid",
    ),
    (
        &[9],
        "a district has taken what history says",
        "select count(*) from district left join (select h_w_id, h_d_id, sum(h_amount) as paid from history \
         group by h_w_id, h_d_id) as h on h_w_id = d_w_id and h_d_id = d_id where paid is null or d_ytd <> paid",
    ),
    (
        &[10, 12],
        "a customer owes what was delivered and not paid",
        "select count(*) from customer left join (select o_w_id, o_d_id, o_c_id, sum(ol_amount) as delivered from orders \
         join order_line on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id where ol_delivery_d is not null \
         group by o_w_id, o_d_id, o_c_id) as o on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id \
         left join (select h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) as paid from history \
         group by h_c_w_id, h_c_d_id, h_c_id) as h on h_c_w_id = c_w_id and h_c_d_id = c_d_id and h_c_id = c_id \
         where c_balance <> coalesce(delivered, 0) - coalesce(paid, 0) \
         or c_balance + c_ytd_payment <> coalesce(delivered, 0)",
    ),
    (
        &[11],
        "a district's orders are new, or were delivered",
        "select count(*) from (select o_w_id, o_d_id, count(*) as ordered from orders group by o_w_id, o_d_id) as o \
         left join (select no_w_id, no_d_id, count(*) as fresh from new_order group by no_w_id, no_d_id) as n \
         on no_w_id = o_w_id and no_d_id = o_d_id \
         left join (select c_w_id, c_d_id, sum(c_delivery_cnt) as delivered from customer group by c_w_id, c_d_id) as c \
         on c_w_id = o_w_id and c_d_id = o_d_id \
         where ordered <> coalesce(fresh, 0) + coalesce(delivered, 0) + LOADED",
    ),
];

/// Every order and payment of a client.
const NUMBERED: &str = "select o_client as client, o_number as number from orders where o_number > 0 \
                        union all select h_client, h_number from history where h_number > 0";

/// Stands in the statement of condition 11 for the orders of a district that were delivered when it was loaded.
const LOADED: &str = "LOADED";

/// A condition that does not hold in some cases.
pub fn broken(condition: u32, cases: u64) -> CheckError {
    let mut all = CONDITIONS.iter();
    let found = all.find(|(numbers, ..)| numbers.contains(&condition));
    let says = found.map_or("the standard does not have", |(_, says, _)| says);
    CheckError::Lost(format!(
        "condition of consistency {condition}, that {says}, does not hold in {cases} cases"
    ))
}

/// That all is well.
pub fn said(count: u64) -> String {
    format!("{count} orders and payments are there, the conditions of consistency 1 to 12 hold")
}

pub fn check(
    connection: &mut dyn SqlConnection,
    loaded_delivered: u64,
    acknowledged: &[Acknowledged],
) -> Result<String, CheckError> {
    for (numbers, _, sql) in CONDITIONS {
        let condition = numbers[0];
        let mut cases = 0;
        let sql = sql.replace(LOADED, &loaded_delivered.to_string());
        let asked = connection.ask(&sql, &mut |row| {
            cases = row.int(0)?.unsigned_abs();
            Ok(())
        });
        asked.map_err(|error| error.at(&format!("condition {condition}")))?;
        if cases > 0 {
            return Err(broken(condition, cases));
        }
    }
    Ok(said(numbered::check(connection, NUMBERED, acknowledged)?))
}
