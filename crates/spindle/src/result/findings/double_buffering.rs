//! The page cache answers reads that the buffer cache could have answered: the same blocks are kept twice.

use super::scene::Scene;
use super::{Kind, Seen};

/// From this share of the bytes read on: below it, the page cache's hits are those of blocks just written.
const PAGE_CACHE_SHARE_MIN: f64 = 0.10;
/// A database that hardly reads has nothing to gain.
const READS_PER_S_MIN: f64 = 10.0;

pub(super) const KIND: Kind = Kind {
    name: "double buffering",
    text: "Blocks are kept in memory twice, in the buffer cache and in the page cache.",
    remedy: "Read and write past the page cache (caching = \"direct\"), and give its memory to database.buffer_cache.",
    look,
};

fn look(scene: &Scene<'_>) -> Option<Seen> {
    let share = scene.case.page_cache_share()?;
    let reads_per_s = scene.case.summary()?.read_iops;
    let is_seen = scene.layout.caching == "buffered"
        && share >= PAGE_CACHE_SHARE_MIN
        && reads_per_s >= READS_PER_S_MIN;
    is_seen.then(|| Seen {
        // The system call and the copy are what it costs, not the whole read.
        weight: share / 4.0,
        evidence: format!(
            "the page cache answered {:.0} % of the bytes that the database read, {reads_per_s:.0} reads per second",
            100.0 * share
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;

    fn buffered(share: f64) -> Stage {
        let mut stage = Stage::new().trials(|trial| trial.audit.page_cache_share = Some(share));
        stage.layout.caching = "buffered".to_owned();
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
    fn few_of_them_do_not() {
        assert_eq!(buffered(0.09).look(&KIND), None);
        let hardly_reads = buffered(0.6).trials(|trial| trial.read_iops = 9.0);
        assert_eq!(hardly_reads.look(&KIND), None);
        let mut direct = buffered(0.6);
        direct.layout.caching = "direct".to_owned();
        assert_eq!(direct.look(&KIND), None);
    }
}
