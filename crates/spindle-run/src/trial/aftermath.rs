//! What the clients of a trial leave behind, and what that says beside what was counted: the audit.

use std::time::Duration;

use spindle_result::{Audit, IoCounts, Memory, Standstill};
use spindle_system::disk::page_cache_share_of_reads;

/// What was seen when they had gone.
pub(super) struct Aftermath {
    pub memory: Option<Memory>,
    pub dirty_buffer_bytes: Option<u64>,
    pub dirty_bytes: Option<u64>,
    pub flush: Option<Duration>,
    pub standstill: Standstill,
    pub cached_pages: Option<u64>,
    pub page_cache_bytes: Option<u64>,
    pub check: String,
    pub warnings: Vec<String>,
}

impl Aftermath {
    /// An audit with what was left at the end.
    pub fn added_to(&self, audit: Audit) -> Audit {
        Audit {
            dirty_bytes_at_end: self.dirty_bytes,
            dirty_buffer_bytes_at_end: self.dirty_buffer_bytes,
            cached_pages_at_end: self.cached_pages,
            flush_at_end_us: self.flush.map(|flush| flush.as_secs_f64() * 1e6),
            page_cache_bytes_at_end: self.page_cache_bytes,
            ..audit
        }
    }
}

/// What the database asked for beside what reached the devices; `physical` has every copy that disk groups wrote.
pub(super) fn audit_of(
    tool: Option<IoCounts>,
    physical: Option<IoCounts>,
    device: Option<IoCounts>,
    fetched_bytes: Option<u64>,
) -> Audit {
    let audit = Audit::of_counts(physical, device);
    // The process's own account is better than the device's, which others use as well.
    let by_process = |fetched_bytes| page_cache_share_of_reads(tool?.read_bytes, fetched_bytes);
    Audit {
        page_cache_share: fetched_bytes
            .and_then(by_process)
            .or(audit.page_cache_share),
        ..audit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: IoCounts = IoCounts {
        reads: 60,
        writes: 30,
        read_bytes: 1_000,
        write_bytes: 2_000,
    };

    #[test]
    fn the_account_of_the_process_comes_before_that_of_the_device() {
        let mirrored = Some(IoCounts {
            write_bytes: 4_000,
            ..TOOL
        });
        let tool = Some(TOOL);
        let by_both = audit_of(tool, mirrored, tool, Some(250));
        assert_eq!(by_both.page_cache_share, Some(0.75));
        assert_eq!(by_both.tool, mirrored);
        assert_eq!(by_both.write_ratio, Some(2.0));
        let by_device = audit_of(tool, mirrored, tool, None);
        assert_eq!(by_device.page_cache_share, Some(0.0));
        assert_eq!(audit_of(tool, tool, None, None).page_cache_share, None);
        let untold = audit_of(None, None, tool, Some(250));
        assert_eq!((untold.tool, untold.page_cache_share), (None, None));
    }

    #[test]
    fn what_is_left_is_in_the_audit() {
        let aftermath = Aftermath {
            memory: None,
            dirty_buffer_bytes: Some(65_536),
            dirty_bytes: Some(4_096),
            flush: Some(Duration::from_millis(3)),
            standstill: Standstill::default(),
            cached_pages: Some(12),
            page_cache_bytes: Some(7),
            check: String::new(),
            warnings: Vec::new(),
        };
        let audit = aftermath.added_to(Audit::of_counts(Some(TOOL), None));
        assert_eq!(audit.dirty_bytes_at_end, Some(4_096));
        assert_eq!(audit.dirty_buffer_bytes_at_end, Some(65_536));
        assert_eq!(audit.cached_pages_at_end, Some(12));
        assert_eq!(audit.flush_at_end_us, Some(3_000.0));
        assert_eq!(audit.page_cache_bytes_at_end, Some(7));
        assert_eq!(audit.tool, Some(TOOL));
    }
}
