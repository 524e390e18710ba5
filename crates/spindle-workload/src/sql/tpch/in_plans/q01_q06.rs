//! Queries 1 to 6.

use spindle_query::{
    Direction::{Down, Up},
    Query, col, count, date, decimal, least, number, sum, text,
};

use super::parts::{
    PARTSUPP_BY_PART, day, digits, is_late, nations_of, revenue, whole, within_months,
};
use super::tables::{relation, scan};
use crate::sql::tpch::schema::{CUSTOMER, LINEITEM, ORDERS, PART, PARTSUPP, SUPPLIER};

/// Places of an average.
const PLACES: u8 = 6;

/// Pricing summary report.
pub(super) fn q01(values: &[String]) -> Query {
    let last = day("1998-12-01") - whole(&values[0]) as i32;
    let average = |of: &str| col(of).divided(col("count_order"), PLACES);
    scan(&LINEITEM)
        .filter(col("l_shipdate").at_most(date(last)))
        .group(
            &["l_returnflag", "l_linestatus"],
            vec![
                ("sum_qty", sum(col("l_quantity"))),
                ("sum_base_price", sum(col("l_extendedprice"))),
                ("sum_disc_price", sum(revenue())),
                ("sum_charge", sum(revenue() * (number(1) + col("l_tax")))),
                ("sum_disc", sum(col("l_discount"))),
                ("count_order", count()),
            ],
        )
        .select(vec![
            ("l_returnflag", col("l_returnflag")),
            ("l_linestatus", col("l_linestatus")),
            ("sum_qty", col("sum_qty")),
            ("sum_base_price", col("sum_base_price")),
            ("sum_disc_price", col("sum_disc_price")),
            ("sum_charge", col("sum_charge")),
            ("avg_qty", average("sum_qty")),
            ("avg_price", average("sum_base_price")),
            ("avg_disc", average("sum_disc")),
            ("count_order", col("count_order")),
        ])
        .order(&[("l_returnflag", Up), ("l_linestatus", Up)])
}

/// Minimum cost supplier.
pub(super) fn q02(values: &[String]) -> Query {
    let wanted = col("p_size")
        .is(number(whole(&values[0])))
        .and(col("p_type").like(&format!("%{}", values[1])));
    let suppliers = scan(&SUPPLIER).join(nations_of(&values[2]), &[("s_nationkey", "n_nationkey")]);
    let offers = scan(&PART)
        .filter(wanted)
        .lookup(relation(&PARTSUPP), PARTSUPP_BY_PART, &["p_partkey"])
        .join(suppliers, &[("ps_suppkey", "s_suppkey")]);
    let cheapest = offers
        .clone()
        .group(
            &["p_partkey"],
            vec![("least_cost", least(col("ps_supplycost")))],
        )
        .renamed(&[("p_partkey", "of_part"), ("least_cost", "least_cost")]);
    let shown = [
        "s_acctbal",
        "s_name",
        "n_name",
        "p_partkey",
        "p_mfgr",
        "s_address",
        "s_phone",
        "s_comment",
    ];
    offers
        .join(cheapest, &[("p_partkey", "of_part")])
        .filter(col("ps_supplycost").is(col("least_cost")))
        .select(shown.map(|name| (name, col(name))).to_vec())
        .order(&[
            ("s_acctbal", Down),
            ("n_name", Up),
            ("s_name", Up),
            ("p_partkey", Up),
        ])
        .first(100)
}

/// Shipping priority.
pub(super) fn q03(values: &[String]) -> Query {
    let (segment, on) = (text(&values[0]), date(day(&values[1])));
    let customers = scan(&CUSTOMER).filter(col("c_mktsegment").is(segment));
    let orders = scan(&ORDERS)
        .filter(col("o_orderdate").less(on.clone()))
        .semi_join(customers, &[("o_custkey", "c_custkey")]);
    let shown = ["l_orderkey", "revenue", "o_orderdate", "o_shippriority"];
    scan(&LINEITEM)
        .filter(col("l_shipdate").more(on))
        .join(orders, &[("l_orderkey", "o_orderkey")])
        .group(
            &["l_orderkey", "o_orderdate", "o_shippriority"],
            vec![("revenue", sum(revenue()))],
        )
        .select(shown.map(|name| (name, col(name))).to_vec())
        .order(&[("revenue", Down), ("o_orderdate", Up)])
        .first(10)
}

/// Order priority checking.
pub(super) fn q04(values: &[String]) -> Query {
    let orders = scan(&ORDERS).filter(within_months("o_orderdate", &values[0], 3));
    scan(&LINEITEM)
        .filter(is_late())
        .join(orders, &[("l_orderkey", "o_orderkey")])
        .group(&["l_orderkey", "o_orderpriority"], Vec::new())
        .group(&["o_orderpriority"], vec![("order_count", count())])
        .order(&[("o_orderpriority", Up)])
}

/// Local supplier volume.
pub(super) fn q05(values: &[String]) -> Query {
    let nations = nations_of(&values[0]);
    let customers = scan(&CUSTOMER).semi_join(nations.clone(), &[("c_nationkey", "n_nationkey")]);
    let orders = scan(&ORDERS)
        .filter(within_months("o_orderdate", &values[1], 12))
        .join(customers, &[("o_custkey", "c_custkey")]);
    let suppliers = scan(&SUPPLIER).join(nations, &[("s_nationkey", "n_nationkey")]);
    scan(&LINEITEM)
        .join(orders, &[("l_orderkey", "o_orderkey")])
        .join(
            suppliers,
            &[("l_suppkey", "s_suppkey"), ("c_nationkey", "s_nationkey")],
        )
        .group(&["n_name"], vec![("revenue", sum(revenue()))])
        .order(&[("revenue", Down)])
}

/// Forecasting revenue change.
pub(super) fn q06(values: &[String]) -> Query {
    let discount = digits(&values[1], 2);
    let wanted = within_months("l_shipdate", &values[0], 12)
        .and(col("l_discount").between(decimal(discount - 1, 2), decimal(discount + 1, 2)))
        .and(col("l_quantity").less(number(whole(&values[2]))));
    scan(&LINEITEM)
        .filter(wanted)
        .group(
            &[],
            vec![("revenue", sum(col("l_extendedprice") * col("l_discount")))],
        )
        .order(&[])
}
