//! TPC-B: balances and history agree, whatever was under way.

use std::sync::Arc;

use spindle_harness::stride;
use spindle_workload::sql::Tpcb;
use spindle_workload::{Acknowledged, Workload};

use super::{CLIENTS, Story};

/// Of each client.
const TRANSACTIONS: u64 = 20;

/// Two branches of few accounts, so that clients meet at every row.
pub fn workload() -> Arc<dyn Workload> {
    let tpcb = Tpcb {
        room_for: 1000,
        ..Tpcb::new(2, false)
    };
    Arc::from(tpcb.in_rows(25))
}

#[test]
fn no_crash_leaves_half_a_transaction_and_the_check_finds_one() {
    let story = Story::new(workload(), Some(TRANSACTIONS));
    let whole = story.whole();
    let promised = vec![Acknowledged::up_to(TRANSACTIONS); CLIENTS];
    assert_eq!(whole.promised, promised);
    let cuts = story.cut_everywhere(whole.ios, stride(7));
    assert_eq!(cuts.wrong, Vec::<String>::new());
    let is_partial = |said: &&String| !said.starts_with("0 trans") && !said.starts_with("60 trans");
    let partial = cuts.said.iter().filter(is_partial).count();
    assert!(partial > 10, "{partial} of {}", cuts.said.len());
    assert!(cuts.said[0].contains("; index accounts_aid (aid): 50 entries in"));
    let failed = story.fail_everywhere(whole.ios, stride(41));
    assert_eq!(failed.wrong, Vec::<String>::new());
    let told = story.with_more_promised(&whole);
    assert!(told.contains("was promised transaction 21"), "{told}");

    let careless = story.careless();
    let cuts = careless.cut_everywhere(whole.ios, 7);
    let half = |wrong: &&String| wrong.contains("balances do not agree");
    assert!(cuts.wrong.iter().filter(half).count() > 0, "{cuts:?}");
}
