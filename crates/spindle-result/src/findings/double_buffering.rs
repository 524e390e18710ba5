//! Blocks are kept twice, in the buffer cache and in the page cache: either the page cache answers reads that the
//! buffer cache could have answered, or it holds blocks beside it and answers none.

use spindle_text::quantity::size;

use super::super::PageCache;
use super::super::mean::mean_of as average_of;
use super::case_facts::CaseFacts;
use super::kind::{FindingKind, Sighting};

/// From this share of the bytes read on: below it, the page cache's hits are those of blocks just written.
const PAGE_CACHE_SHARE_MIN: f64 = 0.10;
/// A database that hardly reads has nothing to gain.
const READS_PER_S_MIN: f64 = 10.0;
/// Share of a transaction's time that its reads of datafiles take at the least.
const READ_TIME_MIN: f64 = 0.02;
/// What the page cache holds of the datafiles is reported from this share of the buffer cache's size on: the buffer
/// cache could grow by as much.
const HELD_MIN: f64 = 0.10;

pub(super) const KIND: FindingKind = FindingKind {
    name: "double buffering",
    text: "Blocks are kept in memory twice, in the buffer cache and in the page cache.",
    words: None,
    remedy: "Give the memory of the page cache to database.buffer_cache, and where the database can, read and write past \
             it (caching = \"direct\").",
    look,
};

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let reads_per_s = facts.case.summary()?.read_iops?;
    // A server that does as it likes may go past the page cache: then that holds next to nothing of its files.
    let is_through = match facts.layout.caching {
        PageCache::Direct => false,
        PageCache::Buffered => true,
        PageCache::OfTheServer => is_held(facts)?,
    };
    if !is_through || reads_per_s < READS_PER_S_MIN {
        return None;
    }
    // Where sessions tell their time, reads that cost nothing have nothing to gain either.
    if facts
        .share_of_reads()
        .is_some_and(|share| share < READ_TIME_MIN)
    {
        return None;
    }
    hits(facts, reads_per_s).or_else(|| held(facts, reads_per_s))
}

fn hits(facts: &CaseFacts<'_>, reads_per_s: f64) -> Option<Sighting> {
    let share = facts.case.page_cache_share()?;
    (share >= PAGE_CACHE_SHARE_MIN).then(|| Sighting {
        // The system call and the copy are what it costs, not the whole read.
        weight: share / 4.0,
        evidence: format!(
            "the page cache answered {:.0} % of the bytes that the database read, {reads_per_s:.0} reads per second",
            100.0 * share
        ),
    })
}

/// Bytes of the datafiles that the page cache held, and of the buffer cache.
fn bytes(facts: &CaseFacts<'_>) -> Option<(f64, f64)> {
    let held = facts.case.trials.iter();
    let held = held.filter_map(|trial| trial.audit.page_cache_bytes_at_end);
    let held_bytes = average_of(held.map(|bytes| bytes as f64))?;
    Some((held_bytes, facts.database?.buffer_cache_bytes as f64))
}

fn is_held(facts: &CaseFacts<'_>) -> Option<bool> {
    let (held_bytes, buffer_cache_bytes) = bytes(facts)?;
    Some(held_bytes >= HELD_MIN * buffer_cache_bytes)
}

/// The page cache has taken memory, and gives nothing for it.
fn held(facts: &CaseFacts<'_>, reads_per_s: f64) -> Option<Sighting> {
    let share = facts.case.page_cache_share()?;
    let (held_bytes, buffer_cache_bytes) = bytes(facts)?;
    is_held(facts)?.then(|| Sighting {
        // Each read is copied through memory that answers nothing.
        weight: PAGE_CACHE_SHARE_MIN / 4.0,
        evidence: format!(
            "the page cache held {} of the datafiles beside a buffer cache of {}, and answered {:.0} % of the \
             bytes read, {reads_per_s:.0} reads per second: up to {} of it may be blocks that the buffer cache holds, too",
            size(held_bytes.round() as u64),
            size(buffer_cache_bytes as u64),
            100.0 * share,
            size(held_bytes.min(buffer_cache_bytes).round() as u64)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;

    fn buffered(share: f64) -> Stage {
        let mut stage = Stage::new().trials(|trial| trial.audit.page_cache_share = Some(share));
        stage.layout.caching = PageCache::Buffered;
        stage
    }

    #[test]
    fn reads_that_the_page_cache_answers_show_it() {
        let seen = buffered(0.6).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "the page cache answered 60 % of the bytes that the database read, 20 reads per second"
        );
    }

    #[test]
    fn a_page_cache_full_of_the_same_blocks_shows_it_without_a_hit() {
        let held = |mib: u64| {
            buffered(0.0).trials(|trial| trial.audit.page_cache_bytes_at_end = Some(mib << 20))
        };
        assert_eq!(
            held(24).look(&KIND).expect("seen").evidence,
            "the page cache held 24 MiB of the datafiles beside a buffer cache of 16 MiB, and answered 0 % of the bytes read, \
             20 reads per second: up to 16 MiB of it may be blocks that the buffer cache holds, too"
        );
        let evidence = held(2).look(&KIND).expect("seen").evidence;
        assert!(
            evidence.contains(": up to 2 MiB of it may be"),
            "{evidence}"
        );
        assert_eq!(held(1).look(&KIND), None);
        let mut direct = held(24);
        direct.layout.caching = PageCache::Direct;
        assert_eq!(direct.look(&KIND), None);
    }

    #[test]
    fn a_server_that_goes_through_the_page_cache_unasked_is_seen_by_what_that_holds() {
        let server = |mib: u64| {
            let mut stage =
                buffered(0.6).trials(|trial| trial.audit.page_cache_bytes_at_end = Some(mib << 20));
            stage.layout.caching = PageCache::OfTheServer;
            stage
        };
        assert!(server(24).look(&KIND).is_some());
        assert_eq!(server(1).look(&KIND), None);
    }

    #[test]
    fn reads_that_take_no_time_do_not() {
        let reads = |share: f64| {
            let event = "db file sequential read";
            let parts = [(event, 1e4 * share), ("log file sync", 1e4 * (1.0 - share))];
            buffered(0.6).parts(&parts).look(&KIND)
        };
        assert!(reads(0.1).is_some());
        assert_eq!(reads(0.005), None);
    }

    #[test]
    fn few_of_them_do_not() {
        assert_eq!(buffered(0.09).look(&KIND), None);
        let hardly_reads = buffered(0.6).trials(|trial| trial.read_iops = Some(9.0));
        assert_eq!(hardly_reads.look(&KIND), None);
        let mut direct = buffered(0.6);
        direct.layout.caching = PageCache::Direct;
        assert_eq!(direct.look(&KIND), None);
    }
}
