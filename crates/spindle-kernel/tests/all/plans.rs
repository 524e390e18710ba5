//! Plans of queries, in the simulated world: joins, groups, look-ups and orders against a model of vectors, in memory
//! and spilled, by one process and by slaves. A partition of a join that gets lost is noticed.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use rand_xoshiro::rand_core::RngCore;
use spindle_io::Env;
use spindle_io::env::seeded_rng;
use spindle_io::sim::{DiskImage, PowerCut};
use spindle_kernel::{
    CONTROL_FILE_BYTES, IndexKey, Instance, KernelError, KeyPart, PlantedFault, Shutdown, ask_plan,
    create_database,
};
use spindle_query::{
    Cell, Columns, Direction, Query, QueryPlan, Relation, Type, col, count, date, decimal,
    greatest, least, number, sum, text, when,
};

use crate::queries::{Images, Scene, settings};

const MIB: usize = 1 << 20;
pub(crate) const ORDERS: i64 = 1_500;
pub(crate) const LINES: u64 = 4_000;
/// Lines are of this many orders, some of which there are not.
const ORDERS_OF_LINES: u64 = 1_800;
pub(crate) const INDEX: &str = "lines_by_order";

pub(crate) static ORDERS_TABLE: LazyLock<Relation> = LazyLock::new(|| Relation {
    name: "orders",
    columns: Columns::new([
        ("o_key", Type::Key),
        ("o_note", Type::Varying(40)),
        ("o_day", Type::Date),
        ("o_city", Type::Varying(12)),
    ]),
});
pub(crate) static LINES_TABLE: LazyLock<Relation> = LazyLock::new(|| Relation {
    name: "lines",
    columns: Columns::new([
        ("l_order", Type::Key),
        ("l_number", Type::Integer),
        ("l_flag", Type::Fixed(3)),
        ("l_note", Type::Varying(60)),
        ("l_price", Type::Decimal(2)),
    ]),
});

pub(crate) struct Order {
    pub(crate) key: i64,
    pub(crate) note: String,
    pub(crate) day: i32,
    pub(crate) city: String,
}

pub(crate) struct Line {
    pub(crate) order: i64,
    pub(crate) flag: &'static str,
    pub(crate) price: i64,
}

pub(crate) fn order(row: u64) -> Order {
    let mut rng = seeded_rng(21, row);
    let mut below = |limit: u64| rng.next_u64() % limit;
    Order {
        key: row as i64,
        note: "x".repeat(below(40) as usize),
        day: 9_000 + below(60) as i32,
        city: format!("city {}", below(30)),
    }
}

pub(crate) fn line(row: u64) -> Line {
    let mut rng = seeded_rng(22, row);
    let mut below = |limit: u64| rng.next_u64() % limit;
    Line {
        order: below(ORDERS_OF_LINES) as i64,
        flag: ["A", "BB", "CCC"][below(3) as usize],
        price: below(20_000) as i64 - 5_000,
    }
}

fn put_order(row: u64, bytes: &mut Vec<u8>) {
    let order = order(row);
    let mut encoder = ORDERS_TABLE.columns.encoder(bytes);
    encoder.number(order.key.into());
    encoder.text(order.note.as_bytes());
    encoder.number(order.day.into());
    encoder.text(order.city.as_bytes());
}

fn put_line(row: u64, bytes: &mut Vec<u8>) {
    let line = line(row);
    let mut encoder = LINES_TABLE.columns.encoder(bytes);
    encoder.number(line.order.into());
    encoder.number(row.into());
    encoder.text(line.flag.as_bytes());
    encoder.text(&vec![b'n'; row as usize % 60]);
    encoder.number(line.price.into());
}

pub(crate) fn made() -> Images {
    let mib = MIB;
    let sizes = [
        CONTROL_FILE_BYTES as usize,
        mib,
        mib,
        mib,
        3 * mib,
        3 * mib,
        3 * mib,
    ];
    let temp = [60 * mib; 2];
    let images = sizes.iter().chain(&temp);
    let images = images.map(|bytes| DiskImage::zeroed(*bytes)).collect();
    let mut scene = Scene::on(&images, MIB as u64);
    let env: Arc<dyn Env> = scene.world.env();
    let (storage, settings) = (scene.storage(), settings(MIB as u64));
    let make = async move {
        create_database(&env, &storage, &settings, 5, 8).await?;
        let instance = Instance::startup(&env, &storage, &settings).await?;
        let bytes = |relation: &Relation| relation.columns.row_bytes_max();
        instance
            .create_table(
                "orders",
                bytes(&ORDERS_TABLE),
                ORDERS.unsigned_abs(),
                put_order,
            )
            .await?;
        let lines = instance.create_table("lines", bytes(&LINES_TABLE), LINES, put_line);
        let lines = lines.await?;
        let part = |name| {
            let (offset, bytes) = LINES_TABLE.columns.key_part(name).unwrap();
            KeyPart { offset, bytes }
        };
        let key = [part("l_order"), part("l_number")];
        instance
            .create_index(&lines, INDEX, true, IndexKey::Bytes(&key))
            .await?;
        instance.shutdown(Shutdown::Normal).await
    };
    scene.world.run(make).unwrap().unwrap();
    scene.after(PowerCut::LoseAll)
}

pub(crate) type Rows = Vec<Vec<String>>;

fn written(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Number { digits, .. } => digits.to_string(),
        Cell::Date(day) => format!("day {day}"),
        Cell::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
        Cell::Null => "null".to_owned(),
    }
}

/// The answer, and what was spilled.
pub(crate) async fn asked(
    instance: Arc<Instance>,
    query: Query,
) -> Result<(Rows, u64), KernelError> {
    let tables = [instance.table("orders")?, instance.table("lines")?];
    let mut session = instance.session();
    let mut rows = Rows::new();
    let take = |_: &Columns, cells: &[Cell<'_>]| rows.push(cells.iter().map(written).collect());
    ask_plan(&mut session, &tables, &query, take).await?;
    Ok((rows, session.take_temporary_bytes()))
}

pub(crate) fn orders() -> QueryPlan {
    QueryPlan::scan(&ORDERS_TABLE)
}

pub(crate) fn lines() -> QueryPlan {
    QueryPlan::scan(&LINES_TABLE)
}

/// Prices by city and flag of orders of some days.
fn inner() -> (Query, Rows) {
    let plan = lines()
        .join(
            orders().filter(col("o_day").between(date(9_010), date(9_039))),
            &[("l_order", "o_key")],
        )
        .filter(col("l_flag").is_not(text("BB")))
        .group(
            &["o_city", "l_flag"],
            vec![
                ("prices", sum(col("l_price") * decimal(2, 1))),
                ("n", count()),
            ],
        );
    let mut groups: BTreeMap<(String, &str), (i64, i64)> = BTreeMap::new();
    for line in (0..LINES).map(line).filter(|line| line.flag != "BB") {
        let order = u64::try_from(line.order).unwrap();
        let of_line = (line.order < ORDERS).then(|| self::order(order));
        let Some(order) = of_line.filter(|order| (9_010..=9_039).contains(&order.day)) else {
            continue;
        };
        let group = groups.entry((order.city, line.flag)).or_default();
        *group = (group.0 + 2 * line.price, group.1 + 1);
    }
    let rows = groups.into_iter().map(|((city, flag), (prices, n))| {
        vec![city, flag.to_owned(), prices.to_string(), n.to_string()]
    });
    let up = Direction::Up;
    (
        plan.order(&[("o_city", up), ("l_flag", up)]),
        rows.collect(),
    )
}

fn of_orders(mut price: impl FnMut(i64)) -> BTreeMap<i64, Vec<i64>> {
    let mut lines: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for line in (0..LINES).map(line) {
        price(line.price);
        lines.entry(line.order).or_default().push(line.price);
    }
    lines
}

/// Orders with a dear line, and orders without any.
fn semi_and_anti() -> [(Query, Rows); 2] {
    let dear = lines().filter(col("l_price").more(decimal(10_000, 2)));
    let on = [("o_key", "l_order")];
    let shown = |plan: QueryPlan| {
        let columns = vec![("o_key", col("o_key")), ("day", col("o_day"))];
        plan.select(columns).order(&[("o_key", Direction::Down)])
    };
    let lines_of = of_orders(|_| {});
    let rows = |is_wanted: &dyn Fn(&[i64]) -> bool| -> Rows {
        let orders = (0..ORDERS.unsigned_abs()).rev().map(order);
        let none = Vec::new();
        orders
            .filter(|order| is_wanted(lines_of.get(&order.key).unwrap_or(&none)))
            .map(|order| vec![order.key.to_string(), format!("day {}", order.day)])
            .collect()
    };
    [
        (
            shown(orders().semi_join(dear, &on)),
            rows(&|prices| prices.iter().any(|price| *price > 10_000)),
        ),
        (
            shown(orders().anti_join(lines(), &on)),
            rows(&|prices| prices.is_empty()),
        ),
    ]
}

/// How many orders have how many lines.
fn outer() -> (Query, Rows) {
    let plan = orders()
        .outer_join(lines(), &[("o_key", "l_order")], "found")
        .group(&["o_key"], vec![("n", sum(col("found")))])
        .group(&["n"], vec![("orders", count())]);
    let lines_of = of_orders(|_| {});
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for order in 0..ORDERS {
        let lines = lines_of.get(&order).map_or(0, Vec::len);
        *counts.entry(lines).or_default() += 1;
    }
    let rows = counts
        .into_iter()
        .map(|(n, orders)| vec![n.to_string(), orders.to_string()]);
    (plan.order(&[("n", Direction::Up)]), rows.collect())
}

/// Lines of orders of a day, found by their index.
fn looked_up() -> (Query, Rows) {
    let plan = orders()
        .filter(col("o_day").is(date(9_005)))
        .lookup(&LINES_TABLE, INDEX, &["o_key"])
        .select(vec![
            ("l_number", col("l_number")),
            ("note", col("o_note")),
            (
                "flag",
                when(col("l_price").less(number(0)), text("-"), col("l_flag")),
            ),
        ]);
    let mut rows = Rows::new();
    for number in 0..LINES {
        let line = line(number);
        let order = order(line.order.unsigned_abs());
        if line.order < ORDERS && order.day == 9_005 {
            let flag = if line.price < 0 { "-" } else { line.flag };
            rows.push(vec![number.to_string(), order.note, flag.to_owned()]);
        }
    }
    (plan.order(&[("l_number", Direction::Up)]), rows)
}

/// The orders whose lines cost more than a part of all, the dearest first.
fn share_of_all() -> (Query, Rows) {
    let all = lines().group(&[], vec![("all", sum(col("l_price")))]);
    let of = vec![
        ("price", sum(col("l_price"))),
        ("least", least(col("l_price"))),
        ("most", greatest(col("l_price"))),
    ];
    let plan = lines()
        .group(&["l_order"], of)
        .join(all, &[])
        .filter(col("price").more(col("all") * decimal(2, 3)))
        .select(
            ["l_order", "price", "least", "most"]
                .map(|name| (name, col(name)))
                .to_vec(),
        );
    let mut sum = 0;
    let lines_of = of_orders(|price| sum += price);
    let mut rows: Vec<(i64, i64, &Vec<i64>)> = lines_of
        .iter()
        .map(|(order, prices)| (prices.iter().sum(), *order, prices))
        .filter(|(price, ..)| price * 1000 > sum * 2)
        .collect();
    rows.sort_by_key(|(price, order, _)| (-price, *order));
    rows.truncate(7);
    let rows = rows.into_iter().map(|(price, order, prices)| {
        let (least, most) = (prices.iter().min().unwrap(), prices.iter().max().unwrap());
        [order, price, *least, *most]
            .map(|number| number.to_string())
            .to_vec()
    });
    let order = [("price", Direction::Down), ("l_order", Direction::Up)];
    (plan.order(&order).first(7), rows.collect())
}

fn all() -> Vec<(Query, Rows)> {
    let mut all = vec![inner(), outer(), looked_up(), share_of_all()];
    all.extend(semi_and_anti());
    all
}

#[test]
fn answers_are_those_of_a_model_in_memory_and_spilled() {
    let images = made();
    for (sort_area_bytes, spills) in [(8 << 10, true), (24 << 10, true), (8 << 20, false)] {
        let mut scene = Scene::on(&images, sort_area_bytes);
        let instance = scene.start();
        let mut spilled = [0; 2];
        for slaves in [1, 3] {
            for (number, (query, right)) in all().into_iter().enumerate() {
                let query = Query { slaves, ..query };
                let asked = scene.world.run(asked(Arc::clone(&instance), query));
                let (rows, spilled_bytes) = asked.unwrap().unwrap();
                assert!(
                    rows == right,
                    "query {number}, {sort_area_bytes}: {rows:?}, not {right:?}"
                );
                assert!(!right.is_empty());
                spilled[usize::from(slaves > 1)] += spilled_bytes;
            }
        }
        assert_eq!(spilled.map(|bytes| bytes > 0), [spills; 2]);
        scene.stop(instance);
    }
}

#[test]
fn a_partition_that_a_join_loses_is_noticed() {
    let mut scene = Scene::on(&made(), 8 << 10);
    let env: Arc<dyn Env> = scene.world.env();
    let mut settings = settings(8 << 10);
    settings.planted = Some(PlantedFault::JoinPartitionLost);
    let storage = scene.storage();
    let started = async move { Instance::startup(&env, &storage, &settings).await };
    let instance = Arc::new(scene.world.run(started).unwrap().unwrap());
    for (query, right) in [inner(), outer()] {
        let asked = scene.world.run(asked(Arc::clone(&instance), query));
        assert!(asked.unwrap().unwrap().0 != right);
    }
    scene.stop(instance);
}

#[test]
fn a_query_without_rows_has_a_sum_of_nothing_and_one_that_takes_too_long_ends() {
    let mut scene = Scene::on(&made(), 1 << 20);
    let instance = scene.start();
    let nothing = lines().filter(col("l_price").more(number(1_000_000)));
    let total = nothing
        .clone()
        .group(&[], vec![("all", sum(col("l_price")))]);
    let ask = |scene: &mut Scene, query| {
        let asked = scene
            .world
            .run(asked(Arc::clone(&instance), query))
            .unwrap();
        asked.map(|(rows, _)| rows)
    };
    assert_eq!(ask(&mut scene, total.order(&[])).unwrap(), [["null"]]);
    assert_eq!(
        ask(&mut scene, nothing.clone().order(&[])).unwrap(),
        Rows::new()
    );
    let hurried = Query {
        limit_ns: Some(0),
        ..nothing.order(&[])
    };
    let ended = ask(&mut scene, hurried).unwrap_err();
    assert!(matches!(ended, KernelError::QueryTooLong), "{ended}");
    let wrong = lines().filter(col("l_prize").is(number(1))).order(&[]);
    let told = ask(&mut scene, wrong).unwrap_err().to_string();
    assert!(
        told.contains("no column is called l_prize; there are l_order"),
        "{told}"
    );
    scene.stop(instance);
}
