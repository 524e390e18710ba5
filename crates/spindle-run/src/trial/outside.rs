//! A trial on an existing server, whose machine is another one, or may be.

use super::protocol::TrialOutcome;
use spindle_result::SystemSeries;

/// What a trial on an existing server can tell: what this machine did meanwhile says nothing of the server, not
/// even where it is this machine's.
pub(super) fn as_seen_from_outside(outcome: TrialOutcome) -> TrialOutcome {
    TrialOutcome {
        device: None,
        fetched_bytes: None,
        response_time: None,
        cpu: None,
        cpu_us_per_transaction: None,
        memory: None,
        dirty_bytes: None,
        dirty_buffer_bytes: None,
        flush: None,
        system: SystemSeries::default(),
        cached_pages: None,
        page_cache_bytes: None,
        ..outcome
    }
}
