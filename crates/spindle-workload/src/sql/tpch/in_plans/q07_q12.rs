//! Queries 7 to 12.

use spindle_query::{
    Direction::{Down, Up},
    Query, col, date, decimal, number, sum, text, when,
};

use super::parts::{
    LINES_BY_PART, day, digits, is_late, nation, nations_of, revenue, texts, within_months,
};
use super::tables::{relation, scan};
use crate::sql::tpch::schema::{CUSTOMER, LINEITEM, NATION, ORDERS, PART, PARTSUPP, SUPPLIER};

/// Places of a share.
const PLACES: u8 = 6;
/// Places that the parameter of query 11 is written with.
const FRACTION_PLACES: u8 = 10;

/// Volume shipping.
pub(super) fn q07(values: &[String]) -> Query {
    let both = values.iter().map(String::as_str);
    let nations = scan(&NATION).filter(col("n_name").is_in(texts(both)));
    let suppliers = scan(&SUPPLIER).join(
        nations
            .clone()
            .renamed(&[("n_nationkey", "of_supp"), ("n_name", "supp_nation")]),
        &[("s_nationkey", "of_supp")],
    );
    let customers = scan(&CUSTOMER).join(
        nations.renamed(&[("n_nationkey", "of_cust"), ("n_name", "cust_nation")]),
        &[("c_nationkey", "of_cust")],
    );
    let orders = scan(&ORDERS).join(customers, &[("o_custkey", "c_custkey")]);
    let shipped = col("l_shipdate").between(date(day("1995-01-01")), date(day("1996-12-31")));
    let shown = ["supp_nation", "cust_nation", "l_year"];
    scan(&LINEITEM)
        .filter(shipped)
        .join(suppliers, &[("l_suppkey", "s_suppkey")])
        .join(orders, &[("l_orderkey", "o_orderkey")])
        .filter(col("supp_nation").is_not(col("cust_nation")))
        .select(vec![
            ("supp_nation", col("supp_nation")),
            ("cust_nation", col("cust_nation")),
            ("l_year", col("l_shipdate").year()),
            ("volume", revenue()),
        ])
        .group(&shown, vec![("revenue", sum(col("volume")))])
        .order(&shown.map(|name| (name, Up)))
}

/// National market share.
pub(super) fn q08(values: &[String]) -> Query {
    let [of, region, kind] = [0, 1, 2].map(|place| values[place].as_str());
    let customers =
        scan(&CUSTOMER).semi_join(nations_of(region), &[("c_nationkey", "n_nationkey")]);
    let days = col("o_orderdate").between(date(day("1995-01-01")), date(day("1996-12-31")));
    let orders = scan(&ORDERS)
        .filter(days)
        .semi_join(customers, &[("o_custkey", "c_custkey")]);
    let suppliers = scan(&SUPPLIER).join(scan(&NATION), &[("s_nationkey", "n_nationkey")]);
    let of_nation = when(col("n_name").is(text(of)), col("volume"), number(0));
    scan(&PART)
        .filter(col("p_type").is(text(kind)))
        .lookup(relation(&LINEITEM), LINES_BY_PART, &["p_partkey"])
        .join(orders, &[("l_orderkey", "o_orderkey")])
        .join(suppliers, &[("l_suppkey", "s_suppkey")])
        .select(vec![
            ("o_year", col("o_orderdate").year()),
            ("volume", revenue()),
            ("n_name", col("n_name")),
        ])
        .group(
            &["o_year"],
            vec![
                ("of_nation", sum(of_nation)),
                ("of_all", sum(col("volume"))),
            ],
        )
        .select(vec![
            ("o_year", col("o_year")),
            ("mkt_share", col("of_nation").divided(col("of_all"), PLACES)),
        ])
        .order(&[("o_year", Up)])
}

/// Product type profit measure.
pub(super) fn q09(values: &[String]) -> Query {
    let parts = scan(&PART).filter(col("p_name").like(&format!("%{}%", values[0])));
    let suppliers = scan(&SUPPLIER).join(scan(&NATION), &[("s_nationkey", "n_nationkey")]);
    let offers = scan(&PARTSUPP).semi_join(parts, &[("ps_partkey", "p_partkey")]);
    let lines = scan(&LINEITEM)
        .join(
            offers,
            &[("l_partkey", "ps_partkey"), ("l_suppkey", "ps_suppkey")],
        )
        .join(suppliers, &[("l_suppkey", "s_suppkey")])
        .select(vec![
            ("l_orderkey", col("l_orderkey")),
            ("nation", col("n_name")),
            (
                "amount",
                revenue() - col("ps_supplycost") * col("l_quantity"),
            ),
        ]);
    scan(&ORDERS)
        .join(lines, &[("o_orderkey", "l_orderkey")])
        .select(vec![
            ("nation", col("nation")),
            ("o_year", col("o_orderdate").year()),
            ("amount", col("amount")),
        ])
        .group(
            &["nation", "o_year"],
            vec![("sum_profit", sum(col("amount")))],
        )
        .order(&[("nation", Up), ("o_year", Down)])
}

/// Returned item reporting.
pub(super) fn q10(values: &[String]) -> Query {
    let orders = scan(&ORDERS).filter(within_months("o_orderdate", &values[0], 3));
    let revenues = scan(&LINEITEM)
        .filter(col("l_returnflag").is(text("R")))
        .join(orders, &[("l_orderkey", "o_orderkey")])
        .group(&["o_custkey"], vec![("revenue", sum(revenue()))]);
    let shown = [
        "c_custkey",
        "c_name",
        "revenue",
        "c_acctbal",
        "n_name",
        "c_address",
        "c_phone",
        "c_comment",
    ];
    scan(&CUSTOMER)
        .join(revenues, &[("c_custkey", "o_custkey")])
        .join(scan(&NATION), &[("c_nationkey", "n_nationkey")])
        .select(shown.map(|name| (name, col(name))).to_vec())
        .order(&[("revenue", Down)])
        .first(20)
}

/// Important stock identification.
pub(super) fn q11(values: &[String]) -> Query {
    let suppliers =
        scan(&SUPPLIER).semi_join(nation(&values[0]), &[("s_nationkey", "n_nationkey")]);
    let stock = scan(&PARTSUPP)
        .semi_join(suppliers, &[("ps_suppkey", "s_suppkey")])
        .select(vec![
            ("ps_partkey", col("ps_partkey")),
            ("worth", col("ps_supplycost") * col("ps_availqty")),
        ]);
    let fraction = decimal(digits(&values[1], FRACTION_PLACES), FRACTION_PLACES);
    let all = stock.clone().group(&[], vec![("all", sum(col("worth")))]);
    stock
        .group(&["ps_partkey"], vec![("value", sum(col("worth")))])
        .join(all, &[])
        .filter(col("value").more(col("all") * fraction))
        .select(vec![
            ("ps_partkey", col("ps_partkey")),
            ("value", col("value")),
        ])
        .order(&[("value", Down)])
}

/// Shipping modes and order priority.
pub(super) fn q12(values: &[String]) -> Query {
    let modes = values[..2].iter().map(String::as_str);
    let wanted = col("l_shipmode")
        .is_in(texts(modes))
        .and(within_months("l_receiptdate", &values[2], 12))
        .and(is_late())
        .and(col("l_shipdate").less(col("l_commitdate")));
    let is_high = || col("o_orderpriority").is_in(texts(["1-URGENT", "2-HIGH"]));
    scan(&ORDERS)
        .join(
            scan(&LINEITEM).filter(wanted),
            &[("o_orderkey", "l_orderkey")],
        )
        .group(
            &["l_shipmode"],
            vec![
                (
                    "high_line_count",
                    sum(when(is_high(), number(1), number(0))),
                ),
                ("low_line_count", sum(when(is_high(), number(0), number(1)))),
            ],
        )
        .order(&[("l_shipmode", Up)])
}
