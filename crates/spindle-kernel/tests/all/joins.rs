//! Joins and look-ups of plans, in the simulated world: what they hold of memory, keys that many rows share, keys of
//! unlike types, and queries that take too long.

use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use spindle_io::Env;
use spindle_io::env::{LocalFuture, ProcessStart};
use spindle_io::sync::atomic::{AtomicU64, Ordering};
use spindle_kernel::{Instance, KernelError, ask_plan};
use spindle_query::{Query, QueryError, QueryPlan, col, count, number, sum, when};

use crate::plans::{INDEX, LINES, LINES_TABLE, ORDERS, Rows, asked, lines, made, orders};
use crate::queries::{Scene, settings};

/// What a query held of memory at most, and what it wrote to temporary segments.
struct Used {
    rows: Rows,
    held_bytes: u64,
    spilled_bytes: u64,
}

fn ask(scene: &mut Scene, instance: &Arc<Instance>, query: Query) -> Used {
    let instance = Arc::clone(instance);
    let asked = async move {
        let tables = [instance.table("orders")?, instance.table("lines")?];
        let (mut session, mut rows) = (instance.session(), Rows::new());
        ask_plan(&mut session, &tables, &query, |_, cells| {
            rows.push(cells.iter().map(|cell| format!("{cell:?}")).collect());
        })
        .await?;
        Ok::<Used, KernelError>(Used {
            rows,
            held_bytes: session.take_kept_bytes_most(),
            spilled_bytes: session.take_temporary_bytes(),
        })
    };
    scene.world.run(asked).unwrap().unwrap()
}

fn total(plan: QueryPlan) -> Query {
    plan.group(&[], vec![("n", count())]).order(&[])
}

fn counted(rows: u64) -> Vec<Vec<String>> {
    vec![vec![format!("Number {{ digits: {rows}, scale: 0 }}")]]
}

#[test]
fn rows_that_are_looked_up_come_back_from_temporary_segments_piece_by_piece() {
    let images = made();
    for (slaves, sort_area_bytes) in [(1, 8 << 10), (3, 4 << 10)] {
        let mut scene = Scene::on(&images, sort_area_bytes);
        let instance = scene.start();
        let plan = orders()
            .lookup(&LINES_TABLE, INDEX, &["o_key"])
            .select(vec![("note", col("o_note")), ("city", col("o_city"))]);
        let query = Query {
            slaves,
            ..plan
                .group(&["note", "city"], vec![("n", count())])
                .order(&[])
        };
        let used = ask(&mut scene, &instance, query);
        let rows_bytes = 20 * ORDERS.unsigned_abs();
        let budget_bytes = 2 * slaves as u64 * sort_area_bytes;
        assert!(used.spilled_bytes > rows_bytes && rows_bytes > budget_bytes);
        assert!(
            used.held_bytes < budget_bytes,
            "{slaves} slaves held {} bytes",
            used.held_bytes
        );
        scene.stop(instance);
    }
}

#[test]
fn the_tables_of_a_join_count_as_memory() {
    let images = made();
    // A key of 8 bytes and its length take less than this, a table over them more.
    let sort_area_bytes = LINES * 16;
    let on = [("o_key", "l_order")];
    for (sort_area_bytes, spills) in [(sort_area_bytes, true), (3 * sort_area_bytes, false)] {
        let mut scene = Scene::on(&images, sort_area_bytes);
        let instance = scene.start();
        let used = ask(
            &mut scene,
            &instance,
            total(orders().semi_join(lines(), &on)),
        );
        assert_eq!(used.spilled_bytes > 0, spills, "{sort_area_bytes}");
        let most = sort_area_bytes * 9 / 8;
        assert!(used.held_bytes < most, "{}, not {most}", used.held_bytes);
        scene.stop(instance);
    }
}

/// Lines and orders by keys of which one is that of many rows on both sides.
fn skewed() -> [QueryPlan; 2] {
    let shared = |name: &str, below| when(col(name).less(number(below)), number(7), col(name));
    [
        lines().select(vec![("k", shared("l_number", 200)), ("p", col("l_price"))]),
        orders().select(vec![("ok", shared("o_key", 300)), ("city", col("o_city"))]),
    ]
}

#[test]
fn a_key_of_many_rows_is_joined_within_the_memory() {
    let images = made();
    let [read, kept] = skewed();
    let on = [("k", "ok")];
    let alone = ORDERS.unsigned_abs() - 300;
    let pairs = 200 * 300 + alone;
    let unpaired = LINES - 200 - alone;
    let outer = |found| {
        let joined = read.clone().outer_join(kept.clone(), &on, "found");
        total(joined.filter(col("found").is(number(found))))
    };
    let named = || read.clone().join(kept.clone(), &on);
    let cases = [
        (
            total(named().filter(col("city").is_not(spindle_query::text("")))),
            pairs,
        ),
        (
            total(read.clone().semi_join(kept.clone(), &on)),
            200 + alone,
        ),
        (total(read.clone().anti_join(kept.clone(), &on)), unpaired),
        (outer(1), pairs),
        (outer(0), unpaired),
    ];
    for sort_area_bytes in [4 << 10, 8 << 20] {
        let mut scene = Scene::on(&images, sort_area_bytes);
        let instance = scene.start();
        for (number, (query, right)) in cases.iter().enumerate() {
            for slaves in [1, 3] {
                let query = Query {
                    slaves,
                    ..query.clone()
                };
                let used = ask(&mut scene, &instance, query);
                let said = format!("case {number}, {slaves} slaves, {sort_area_bytes}");
                assert_eq!(used.rows, counted(*right), "{said}");
                let most = 2 * slaves as u64 * sort_area_bytes;
                assert!(used.held_bytes < most, "{said}: {}", used.held_bytes);
                // Some 260 KiB are read; each pass carries fewer on. Partitioned in vain they would be nine times that.
                assert!(
                    used.spilled_bytes < 1 << 20,
                    "{said}: {}",
                    used.spilled_bytes
                );
            }
        }
        scene.stop(instance);
    }
}

#[test]
fn keys_of_unlike_types_and_of_varying_length_are_refused_before_a_row_is_read() {
    let mut scene = Scene::on(&made(), 1 << 20);
    let instance = scene.start();
    let joined = |left, right| orders().join(lines(), &[(left, right)]);
    let refused = [
        // Both have two bytes for the end of the text.
        joined("o_city", "l_note"),
        // Both have eight bytes.
        joined("o_key", "l_price"),
        // Both have four bytes.
        joined("o_day", "l_number"),
        orders().semi_join(lines(), &[("o_key", "l_price")]),
        orders().lookup(&LINES_TABLE, INDEX, &["o_day"]),
    ];
    for plan in refused {
        // There is no time to read anything.
        let query = Query {
            limit_ns: Some(0),
            ..total(plan)
        };
        let asked = scene.world.run(asked(Arc::clone(&instance), query));
        let error = asked.unwrap().unwrap_err();
        let is_told = matches!(&error, KernelError::Query(QueryError::UnequalKeys { .. }));
        assert!(is_told, "{error}");
    }
    scene.stop(instance);
}

/// A world's clock that goes on by a second whenever it is looked at.
struct Hurrying {
    world: Arc<dyn Env>,
    looks: AtomicU64,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Env for Hurrying {
    fn now(&self) -> u64 {
        self.world.now() + SECOND_NS * self.looks.fetch_add(1, Ordering::Relaxed)
    }

    fn sleep(&self, duration_ns: u64) -> LocalFuture {
        self.world.sleep(duration_ns)
    }

    fn spawn(&self, name: &str, start: ProcessStart) -> spindle_io::Join {
        self.world.spawn(name, start)
    }

    fn rng(&self, stream: u64) -> Xoshiro256PlusPlus {
        self.world.rng(stream)
    }
}

#[test]
fn a_join_that_makes_many_rows_of_one_looks_at_the_time() {
    let mut scene = Scene::on(&made(), 1 << 20);
    let clock = Arc::new(Hurrying {
        world: scene.world.env(),
        looks: AtomicU64::new(0),
    });
    let env: Arc<dyn Env> = Arc::clone(&clock) as Arc<dyn Env>;
    let (storage, settings) = (scene.storage(), settings(1 << 20));
    let started = async move { Instance::startup(&env, &storage, &settings).await };
    let instance = Arc::new(scene.world.run(started).unwrap().unwrap());
    // Every pair is dropped again, so that nothing but the join could notice.
    let others = lines().select(vec![("other", col("l_number"))]);
    let none = lines()
        .join(others, &[])
        .filter(col("l_number").less(col("other") - number(5_000)));
    let mut ask = |limit_s| {
        let query = Query {
            limit_ns: Some(limit_s * SECOND_NS),
            ..total(none.clone())
        };
        let asked = scene.world.run(asked(Arc::clone(&instance), query));
        asked.unwrap().map(|(rows, _)| rows)
    };
    let looks = |clock: &Hurrying| clock.looks.load(Ordering::Relaxed);
    let before = looks(&clock);
    let ended = ask(2_000).unwrap_err();
    assert!(matches!(ended, KernelError::QueryTooLong), "{ended}");
    assert!(looks(&clock) - before < 2_100);
    scene.stop(instance);
}

#[test]
fn a_query_ends_soon_after_its_time_whatever_it_does_then() {
    let images = made();
    let [read, kept] = skewed();
    let plan = read.join(kept, &[("k", "ok")]);
    let grouped = plan.group(&["k", "city"], vec![("sum", sum(col("p")))]);
    let whole = grouped.order(&[("sum", spindle_query::Direction::Up)]);
    let mut scene = Scene::on(&images, 4 << 10);
    let instance = scene.start();
    let env = scene.world.env();
    let mut took = |limit_ns| {
        let query = Query {
            limit_ns,
            ..whole.clone()
        };
        let began = env.now();
        let asked = scene.world.run(asked(Arc::clone(&instance), query));
        (asked.unwrap().map(drop), env.now() - began)
    };
    let (answered, whole_ns) = took(None);
    answered.unwrap();
    for part in 0..40 {
        let limit_ns = whole_ns * part / 40;
        let (ended, took_ns) = took(Some(limit_ns));
        assert!(matches!(ended, Err(KernelError::QueryTooLong)), "{part}");
        let late_ns = took_ns - limit_ns;
        assert!(
            late_ns < whole_ns / 100,
            "{part}: {late_ns} of {whole_ns} ns"
        );
    }
    scene.stop(instance);
}
