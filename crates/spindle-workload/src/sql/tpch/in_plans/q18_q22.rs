//! Queries 18 to 22.

use spindle_query::{
    Condition,
    Direction::{Down, Up},
    Query, col, count, greatest, least, number, sum, text, when,
};

use super::parts::{
    LINES_BY_PART, PARTSUPP_BY_PART, is_late, nation, revenue, texts, whole, within_months,
};
use super::tables::{relation, scan};
use crate::sql::tpch::schema::{CUSTOMER, LINEITEM, ORDERS, PART, PARTSUPP, SUPPLIER};

/// More than any key of a supplier.
const NO_SUPPLIER: i64 = i64::MAX;

/// Large volume customer.
pub(super) fn q18(values: &[String]) -> Query {
    let large = scan(&LINEITEM)
        .group(&["l_orderkey"], vec![("quantity", sum(col("l_quantity")))])
        .filter(col("quantity").more(number(whole(&values[0]))));
    let orders = scan(&ORDERS).join(large, &[("o_orderkey", "l_orderkey")]);
    let shown = [
        "c_name",
        "c_custkey",
        "o_orderkey",
        "o_orderdate",
        "o_totalprice",
        "quantity",
    ];
    scan(&CUSTOMER)
        .join(orders, &[("c_custkey", "o_custkey")])
        .select(shown.map(|name| (name, col(name))).to_vec())
        .order(&[("o_totalprice", Down), ("o_orderdate", Up)])
        .first(100)
}

/// Discounted revenue.
pub(super) fn q19(values: &[String]) -> Query {
    let boxes = [
        ["SM CASE", "SM BOX", "SM PACK", "SM PKG"],
        ["MED BAG", "MED BOX", "MED PKG", "MED PACK"],
        ["LG CASE", "LG BOX", "LG PACK", "LG PKG"],
    ];
    let kinds = || -> Vec<Condition> {
        let kind = |(place, (boxes, largest)): (usize, ([&str; 4], i64))| {
            col("p_brand")
                .is(text(&values[place]))
                .and(col("p_container").is_in(texts(boxes)))
                .and(col("p_size").between(number(1), number(largest)))
        };
        let kinds = boxes.into_iter().zip([5, 10, 15]);
        kinds.enumerate().map(kind).collect()
    };
    let of_quantity = kinds().into_iter().zip(&values[3..]).map(|(kind, least)| {
        let least = whole(least);
        kind.and(col("l_quantity").between(number(least), number(least + 10)))
    });
    let shipped = col("l_shipmode")
        .is_in(texts(["AIR", "AIR REG"]))
        .and(col("l_shipinstruct").is(text("DELIVER IN PERSON")));
    scan(&PART)
        .filter(Condition::Any(kinds()))
        .lookup(relation(&LINEITEM), LINES_BY_PART, &["p_partkey"])
        .filter(shipped.and(Condition::Any(of_quantity.collect())))
        .group(&[], vec![("revenue", sum(revenue()))])
        .order(&[])
}

/// Potential part promotion.
pub(super) fn q20(values: &[String]) -> Query {
    let parts = scan(&PART).filter(col("p_name").like(&format!("{}%", values[0])));
    let offers = parts.lookup(relation(&PARTSUPP), PARTSUPP_BY_PART, &["p_partkey"]);
    let surplus = offers
        .lookup(
            relation(&LINEITEM),
            LINES_BY_PART,
            &["ps_partkey", "ps_suppkey"],
        )
        .filter(within_months("l_shipdate", &values[1], 12))
        .group(
            &["ps_partkey", "ps_suppkey", "ps_availqty"],
            vec![("sold", sum(col("l_quantity")))],
        )
        .filter((number(2) * col("ps_availqty")).more(col("sold")));
    scan(&SUPPLIER)
        .semi_join(nation(&values[2]), &[("s_nationkey", "n_nationkey")])
        .semi_join(surplus, &[("s_suppkey", "ps_suppkey")])
        .select(vec![
            ("s_name", col("s_name")),
            ("s_address", col("s_address")),
        ])
        .order(&[("s_name", Up)])
}

/// Suppliers who kept orders waiting.
pub(super) fn q21(values: &[String]) -> Query {
    let suppliers =
        scan(&SUPPLIER).semi_join(nation(&values[0]), &[("s_nationkey", "n_nationkey")]);
    let late = scan(&LINEITEM)
        .filter(is_late())
        .join(suppliers, &[("l_suppkey", "s_suppkey")])
        .select(vec![
            ("of_order", col("l_orderkey")),
            ("of_supplier", col("l_suppkey")),
            ("s_name", col("s_name")),
        ]);
    let waiting = scan(&ORDERS)
        .filter(col("o_orderstatus").is(text("F")))
        .join(late, &[("o_orderkey", "of_order")])
        .group(
            &["o_orderkey", "of_supplier", "s_name"],
            vec![("lines", count())],
        );
    // Of each order: whether other suppliers have lines in it, and whether any of these was late.
    let late_one = |otherwise| when(is_late(), col("l_suppkey"), number(otherwise));
    let alone = col("least_late")
        .is(col("of_supplier"))
        .and(col("most_late").is(col("of_supplier")));
    let others = col("least_of").is_not(col("most_of"));
    scan(&LINEITEM)
        .join(waiting, &[("l_orderkey", "o_orderkey")])
        .group(
            &["l_orderkey", "of_supplier", "s_name", "lines"],
            vec![
                ("least_of", least(col("l_suppkey"))),
                ("most_of", greatest(col("l_suppkey"))),
                ("least_late", least(late_one(NO_SUPPLIER))),
                ("most_late", greatest(late_one(0))),
            ],
        )
        .filter(alone.and(others))
        .group(&["s_name"], vec![("numwait", sum(col("lines")))])
        .order(&[("numwait", Down), ("s_name", Up)])
        .first(100)
}

/// Global sales opportunity.
pub(super) fn q22(values: &[String]) -> Query {
    let codes = values.iter().map(String::as_str);
    let customers = scan(&CUSTOMER)
        .select(vec![
            ("c_custkey", col("c_custkey")),
            ("cntrycode", col("c_phone").first(2)),
            ("c_acctbal", col("c_acctbal")),
        ])
        .filter(col("cntrycode").is_in(texts(codes)));
    let average = customers
        .clone()
        .filter(col("c_acctbal").more(number(0)))
        .group(
            &[],
            vec![("balances", sum(col("c_acctbal"))), ("customers", count())],
        );
    let rich = customers
        .join(average, &[])
        .filter((col("c_acctbal") * col("customers")).more(col("balances")));
    let who_ordered = scan(&ORDERS)
        .semi_join(rich.clone(), &[("o_custkey", "c_custkey")])
        .group(&["o_custkey"], Vec::new());
    rich.anti_join(who_ordered, &[("c_custkey", "o_custkey")])
        .group(
            &["cntrycode"],
            vec![("numcust", count()), ("totacctbal", sum(col("c_acctbal")))],
        )
        .order(&[("cntrycode", Up)])
}
