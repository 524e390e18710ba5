//! TPC-C: the conditions of consistency hold, whatever was under way.

use std::sync::Arc;

use spindle_harness::stride;
use spindle_workload::Workload;
use spindle_workload::sql::{Sizes, Tpcc, TpccMix};

use super::Story;

/// Of each client.
const TRANSACTIONS: u64 = 12;

/// Few customers, so that clients meet, and more deliveries than the standard has.
pub fn workload(is_delivery_deferred: bool) -> Arc<dyn Workload> {
    let mix = TpccMix {
        new_order: 40,
        payment: 30,
        order_status: 5,
        delivery: 20,
        stock_level: 5,
    };
    let sizes = Sizes {
        items: 40,
        customers: 10,
    };
    let tpcc = Tpcc::new(1, mix, false, 3)
        .with_sizes(sizes)
        .with_deferred_delivery(is_delivery_deferred);
    Arc::from(tpcc.in_rows(1000))
}

#[test]
fn no_crash_breaks_a_condition_and_the_check_finds_half_a_transaction() {
    let story = Story::new(workload(false), Some(TRANSACTIONS));
    let whole = story.whole();
    let cuts = story.cut_everywhere(whole.ios, stride(61));
    assert_eq!(cuts.wrong, Vec::<String>::new());
    let is_partial = |said: &&String| !said.starts_with("0 orders");
    assert!(cuts.said.iter().filter(is_partial).count() > 3);
    assert!(cuts.said[0].contains("; index orders_by_customer (o_w_id, o_d_id, o_c_id, o_id): "));
    let failed = story.fail_everywhere(whole.ios, stride(193));
    assert_eq!(failed.wrong, Vec::<String>::new());
    let told = story.with_more_promised(&whole);
    assert!(told.contains("was promised transaction"), "{told}");

    let careless = story.careless();
    let cuts = careless.cut_everywhere(whole.ios, 31);
    let half = |wrong: &&String| wrong.contains("condition of consistency");
    assert!(cuts.wrong.iter().filter(half).count() > 0, "{cuts:?}");
}

/// Deliveries have their own sessions, which are not among the clients whose orders are looked for.
#[test]
fn no_crash_breaks_a_condition_when_deliveries_are_deferred() {
    let story = Story::new(workload(true), Some(TRANSACTIONS));
    let whole = story.whole();
    let cuts = story.cut_everywhere(whole.ios, stride(127));
    assert_eq!(cuts.wrong, Vec::<String>::new());
    let failed = story.fail_everywhere(whole.ios, stride(307));
    assert_eq!(failed.wrong, Vec::<String>::new());
    let told = story.with_more_promised(&whole);
    assert!(told.contains("was promised transaction"), "{told}");
}
