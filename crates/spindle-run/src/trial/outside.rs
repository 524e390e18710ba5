//! A trial on a database in other processes than this one, or on another machine.

use spindle_engines::sql::server;

use super::protocol::{TrialDatabase, TrialOutcome};
use spindle_result::SystemSeries;

/// Whether the clients are in another process than the database.
pub(super) fn is_apart(database: &TrialDatabase) -> bool {
    match database {
        TrialDatabase::Kernel(_) => false,
        TrialDatabase::Server(of) => !server(of.kind).is_library(),
        TrialDatabase::Remote(_) => true,
    }
}

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
