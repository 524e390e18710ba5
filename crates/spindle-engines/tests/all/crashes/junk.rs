//! `junk`: what is left is whole commits.

use spindle_harness::stride;
use spindle_workload::Acknowledged;

use super::{CLIENTS, Story};
use crate::junk::workload;

const ROWS: u64 = 240;
const COMMIT_EVERY: u64 = 8;

#[test]
fn one_seed_is_one_history_and_no_crash_loses_a_commit() {
    let story = Story::new(workload(ROWS, COMMIT_EVERY), None);
    let whole = story.whole();
    let each = ROWS / COMMIT_EVERY / CLIENTS as u64;
    assert_eq!(whole.promised, vec![Acknowledged::up_to(each); CLIENTS]);
    let cuts = story.cut_everywhere(whole.ios, 1);
    assert_eq!(cuts.wrong, Vec::<String>::new());
    let is_partial = |said: &&String| !said.starts_with("0 rows") && !said.starts_with("240 rows");
    let partial = cuts.said.iter().filter(is_partial).count();
    assert!(partial > 10, "{partial} of {}", cuts.said.len());
    let failed = story.fail_everywhere(whole.ios, stride(17));
    assert_eq!(failed.wrong, Vec::<String>::new());
    let told = story.with_more_promised(&whole);
    assert!(told.contains("was promised 11 commits"), "{told}");
}
