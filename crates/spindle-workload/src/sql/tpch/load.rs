//! The rows of the eight tables, made by the crate `tpchgen`, a port of the standard's DBGEN: the same rows, byte for
//! byte. They go straight to the database, in parts that may be made and loaded at once, and never through a file.

use std::fmt::{Display, Write};

use tpchgen::dates::TPCHDate;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{
    Customer, CustomerGenerator, LineItem, LineItemGenerator, Nation, NationGenerator, Order,
    OrderGenerator, Part, PartGenerator, PartSupp, PartSuppGenerator, Region, RegionGenerator,
    Supplier, SupplierGenerator,
};

use super::schema::{self, TpchTable};
use crate::session::SessionError;
use crate::sql::connection::MakeRows;
use crate::sql::{LoadPart, RowSink, Value};

/// Rows that one connection loads in one transaction, about: 64 MB of lineitem.
const PART_ROWS: f64 = 500_000.0;
/// Rows of each table at scale 1 that grow with it, in the order of [`schema::TABLES`] (clause 4.2.5).
const ROWS: [f64; 8] = [
    0.0,
    0.0,
    200_000.0,
    10_000.0,
    800_000.0,
    150_000.0,
    1_500_000.0,
    6_000_000.0,
];

/// All rows of all tables at a scale factor.
pub(super) fn parts(scale: f64) -> Vec<LoadPart> {
    let mut all = Vec::new();
    // The longest first: last, it would keep one connection busy while the others have nothing left to do.
    for (table, rows) in schema::TABLES.into_iter().zip(ROWS).rev() {
        let count = (rows * scale / PART_ROWS).ceil().max(1.0) as i32;
        for part in 1..=count {
            all.push(LoadPart {
                table: table.name,
                columns: table.columns,
                rows: rows_of(table, scale, part, count),
            });
        }
    }
    all
}

fn rows_of(table: &TpchTable, scale: f64, part: i32, count: i32) -> MakeRows {
    let make = match table.name {
        "region" => regions,
        "nation" => nations,
        "part" => parts_of_part,
        "supplier" => suppliers,
        "partsupp" => partsupps,
        "customer" => customers,
        "orders" => orders,
        _ => lineitems,
    };
    Box::new(move |sink| make(scale, part, count, sink))
}

fn key(number: i64) -> Value<'static> {
    Value::Int(number)
}

fn number(number: i32) -> Value<'static> {
    Value::Int(i64::from(number))
}

fn decimal(number: TPCHDecimal) -> Value<'static> {
    Value::cents(number.into_inner())
}

fn date(day: TPCHDate) -> Value<'static> {
    Value::Date(day.to_unix_epoch())
}

/// A text that the generator makes only as it is written, in a buffer that is used again.
fn written<'a>(buffer: &'a mut String, text: &impl Display) -> Value<'a> {
    buffer.clear();
    write!(buffer, "{text}").expect("a string takes any text");
    Value::text(buffer)
}

type LoadResult = Result<(), SessionError>;

fn regions(scale: f64, part: i32, count: i32, sink: &mut dyn RowSink) -> LoadResult {
    let mut rows = RegionGenerator::new(scale, part, count).iter();
    rows.try_for_each(|row| sink.row(&region_row(&row)))
}

fn nations(scale: f64, part: i32, count: i32, sink: &mut dyn RowSink) -> LoadResult {
    let mut rows = NationGenerator::new(scale, part, count).iter();
    rows.try_for_each(|row| sink.row(&nation_row(&row)))
}

fn parts_of_part(scale: f64, part: i32, count: i32, sink: &mut dyn RowSink) -> LoadResult {
    let mut texts = Texts::default();
    let mut rows = PartGenerator::new(scale, part, count).iter();
    rows.try_for_each(|row| sink.row(&part_row(&row, &mut texts)))
}

fn suppliers(scale: f64, part: i32, count: i32, sink: &mut dyn RowSink) -> LoadResult {
    let mut texts = Texts::default();
    let mut rows = SupplierGenerator::new(scale, part, count).iter();
    rows.try_for_each(|row| sink.row(&supplier_row(&row, &mut texts)))
}

fn partsupps(scale: f64, part: i32, count: i32, sink: &mut dyn RowSink) -> LoadResult {
    let mut rows = PartSuppGenerator::new(scale, part, count).iter();
    rows.try_for_each(|row| sink.row(&partsupp_row(&row)))
}

fn customers(scale: f64, part: i32, count: i32, sink: &mut dyn RowSink) -> LoadResult {
    let mut texts = Texts::default();
    let mut rows = CustomerGenerator::new(scale, part, count).iter();
    rows.try_for_each(|row| sink.row(&customer_row(&row, &mut texts)))
}

fn orders(scale: f64, part: i32, count: i32, sink: &mut dyn RowSink) -> LoadResult {
    let mut clerk = String::new();
    let mut rows = OrderGenerator::new(scale, part, count).iter();
    rows.try_for_each(|row| sink.row(&order_row(&row, &mut clerk)))
}

fn lineitems(scale: f64, part: i32, count: i32, sink: &mut dyn RowSink) -> LoadResult {
    let mut rows = LineItemGenerator::new(scale, part, count).iter();
    rows.try_for_each(|row| sink.row(&lineitem_row(&row)))
}

/// Texts of a row that are used again for the next.
#[derive(Default)]
pub(super) struct Texts([String; 3]);

/// A row of region.
pub(super) fn region_row<'a>(row: &Region<'a>) -> [Value<'a>; 3] {
    [
        key(row.r_regionkey),
        Value::text(row.r_name),
        Value::text(row.r_comment),
    ]
}

/// A row of nation.
pub(super) fn nation_row<'a>(row: &Nation<'a>) -> [Value<'a>; 4] {
    [
        key(row.n_nationkey),
        Value::text(row.n_name),
        key(row.n_regionkey),
        Value::text(row.n_comment),
    ]
}

/// A row of part.
pub(super) fn part_row<'a>(row: &Part<'a>, texts: &'a mut Texts) -> [Value<'a>; 9] {
    let [name, mfgr, brand] = &mut texts.0;
    [
        key(row.p_partkey),
        written(name, &row.p_name),
        written(mfgr, &row.p_mfgr),
        written(brand, &row.p_brand),
        Value::text(row.p_type),
        number(row.p_size),
        Value::text(row.p_container),
        decimal(row.p_retailprice),
        Value::text(row.p_comment),
    ]
}

/// A row of supplier.
pub(super) fn supplier_row<'a>(row: &'a Supplier, texts: &'a mut Texts) -> [Value<'a>; 7] {
    let [name, address, phone] = &mut texts.0;
    [
        key(row.s_suppkey),
        written(name, &row.s_name),
        written(address, &row.s_address),
        key(row.s_nationkey),
        written(phone, &row.s_phone),
        decimal(row.s_acctbal),
        Value::text(&row.s_comment),
    ]
}

/// A row of partsupp.
pub(super) fn partsupp_row<'a>(row: &PartSupp<'a>) -> [Value<'a>; 5] {
    [
        key(row.ps_partkey),
        key(row.ps_suppkey),
        number(row.ps_availqty),
        decimal(row.ps_supplycost),
        Value::text(row.ps_comment),
    ]
}

/// A row of customer.
pub(super) fn customer_row<'a>(row: &Customer<'a>, texts: &'a mut Texts) -> [Value<'a>; 8] {
    let [name, address, phone] = &mut texts.0;
    [
        key(row.c_custkey),
        written(name, &row.c_name),
        written(address, &row.c_address),
        key(row.c_nationkey),
        written(phone, &row.c_phone),
        decimal(row.c_acctbal),
        Value::text(row.c_mktsegment),
        Value::text(row.c_comment),
    ]
}

/// A row of orders.
pub(super) fn order_row<'a>(row: &Order<'a>, clerk: &'a mut String) -> [Value<'a>; 9] {
    [
        key(row.o_orderkey),
        key(row.o_custkey),
        Value::text(row.o_orderstatus.as_str()),
        decimal(row.o_totalprice),
        date(row.o_orderdate),
        Value::text(row.o_orderpriority),
        written(clerk, &row.o_clerk),
        number(row.o_shippriority),
        Value::text(row.o_comment),
    ]
}

/// A row of lineitem.
pub(super) fn lineitem_row<'a>(row: &LineItem<'a>) -> [Value<'a>; 16] {
    [
        key(row.l_orderkey),
        key(row.l_partkey),
        key(row.l_suppkey),
        number(row.l_linenumber),
        Value::cents(row.l_quantity * 100),
        decimal(row.l_extendedprice),
        decimal(row.l_discount),
        decimal(row.l_tax),
        Value::text(row.l_returnflag),
        Value::text(row.l_linestatus),
        date(row.l_shipdate),
        date(row.l_commitdate),
        date(row.l_receiptdate),
        Value::text(row.l_shipinstruct),
        Value::text(row.l_shipmode),
        Value::text(row.l_comment),
    ]
}
