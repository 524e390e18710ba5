//! Queries 13 to 17, and the 13th of TPC-D.

use spindle_query::{
    Direction::{Down, Up},
    Query, col, count, decimal, greatest, number, sum, text, when,
};

use super::parts::{LINES_BY_PART, revenue, texts, whole, within_months};
use super::tables::{relation, scan};
use crate::sql::tpch::schema::{CUSTOMER, LINEITEM, ORDERS, PART, PARTSUPP, SUPPLIER};

/// Places of a ratio.
const PLACES: u8 = 6;

/// Customer distribution.
pub(super) fn q13(values: &[String]) -> Query {
    let pattern = format!("%{}%{}%", values[0], values[1]);
    let orders = scan(&ORDERS)
        .filter(col("o_comment").like(&pattern).not())
        .group(&["o_custkey"], vec![("c_count", count())]);
    // Customers without orders have 0, which is what stands in the place of a row that is missing.
    scan(&CUSTOMER)
        .outer_join(orders, &[("c_custkey", "o_custkey")], "has_orders")
        .group(&["c_count"], vec![("custdist", count())])
        .order(&[("custdist", Down), ("c_count", Down)])
}

/// What a clerk lost to the business in returned goods: query 13 of TPC-D.
pub(super) fn of_clerk(values: &[String]) -> Query {
    let orders = scan(&ORDERS).filter(col("o_clerk").is(text(&values[0])));
    scan(&LINEITEM)
        .filter(col("l_returnflag").is(text("R")))
        .join(orders, &[("l_orderkey", "o_orderkey")])
        .select(vec![
            ("o_year", col("o_orderdate").year()),
            ("lost", revenue()),
        ])
        .group(&["o_year"], vec![("revenue", sum(col("lost")))])
        .order(&[("o_year", Up)])
}

/// Promotion effect.
pub(super) fn q14(values: &[String]) -> Query {
    let lines = scan(&LINEITEM).filter(within_months("l_shipdate", &values[0], 1));
    let of_promotion = when(col("p_type").like("PROMO%"), revenue(), number(0));
    scan(&PART)
        .join(lines, &[("p_partkey", "l_partkey")])
        .group(
            &[],
            vec![("promo", sum(of_promotion)), ("all", sum(revenue()))],
        )
        .select(vec![(
            "promo_revenue",
            (number(100) * col("promo")).divided(col("all"), PLACES),
        )])
        .order(&[])
}

/// Top supplier.
pub(super) fn q15(values: &[String]) -> Query {
    let revenues = scan(&LINEITEM)
        .filter(within_months("l_shipdate", &values[0], 3))
        .group(&["l_suppkey"], vec![("total_revenue", sum(revenue()))]);
    let most = revenues
        .clone()
        .group(&[], vec![("most", greatest(col("total_revenue")))]);
    let best = revenues
        .join(most, &[])
        .filter(col("total_revenue").is(col("most")));
    let shown = [
        "s_suppkey",
        "s_name",
        "s_address",
        "s_phone",
        "total_revenue",
    ];
    scan(&SUPPLIER)
        .join(best, &[("s_suppkey", "l_suppkey")])
        .select(shown.map(|name| (name, col(name))).to_vec())
        .order(&[("s_suppkey", Up)])
}

/// Parts/supplier relationship.
pub(super) fn q16(values: &[String]) -> Query {
    let sizes = values[2..].iter().map(|size| number(whole(size)));
    let wanted = col("p_brand")
        .is_not(text(&values[0]))
        .and(col("p_type").like(&format!("{}%", values[1])).not())
        .and(col("p_size").is_in(sizes));
    let complained = scan(&SUPPLIER).filter(col("s_comment").like("%Customer%Complaints%"));
    let of = ["p_brand", "p_type", "p_size"];
    let shown = ["p_brand", "p_type", "p_size", "supplier_cnt"];
    scan(&PARTSUPP)
        .join(scan(&PART).filter(wanted), &[("ps_partkey", "p_partkey")])
        .anti_join(complained, &[("ps_suppkey", "s_suppkey")])
        .group(&["p_brand", "p_type", "p_size", "ps_suppkey"], Vec::new())
        .group(&of, vec![("supplier_cnt", count())])
        .select(shown.map(|name| (name, col(name))).to_vec())
        .order(&[
            ("supplier_cnt", Down),
            ("p_brand", Up),
            ("p_type", Up),
            ("p_size", Up),
        ])
}

/// Small-quantity-order revenue.
pub(super) fn q17(values: &[String]) -> Query {
    let wanted = col("p_brand")
        .is(text(&values[0]))
        .and(col("p_container").is_in(texts([values[1].as_str()])));
    let lines =
        scan(&PART)
            .filter(wanted)
            .lookup(relation(&LINEITEM), LINES_BY_PART, &["p_partkey"]);
    let of_parts = lines
        .clone()
        .group(
            &["p_partkey"],
            vec![("quantities", sum(col("l_quantity"))), ("lines", count())],
        )
        .renamed(&[
            ("p_partkey", "of_part"),
            ("quantities", "quantities"),
            ("lines", "lines"),
        ]);
    // A fifth of the average, without dividing.
    let is_small = (number(5) * col("lines") * col("l_quantity")).less(col("quantities"));
    lines
        .join(of_parts, &[("p_partkey", "of_part")])
        .filter(is_small)
        .group(&[], vec![("all", sum(col("l_extendedprice")))])
        .select(vec![(
            "avg_yearly",
            col("all").divided(decimal(7, 0), PLACES),
        )])
        .order(&[])
}
