//! The word that a person meant who wrote another one, for the help of an error. Any crate may call it.

/// The candidate that differs by the fewest slips of the keys, if they are at most a third of the letters, or one.
pub fn nearest<'a>(written: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let slips_max = (written.chars().count() / 3).max(1);
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(written, candidate), candidate))
        .filter(|(slips, _)| *slips <= slips_max)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_has_a_near_one() {
        let known = ["wal_sync_method", "wal_level", "fsync"];
        let near = |written| nearest(written, known.into_iter());
        assert_eq!(near("wal_sync_metod"), Some("wal_sync_method"));
        assert_eq!(near("innodb_flush_method"), None);
    }
}
