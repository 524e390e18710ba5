//! Words of the embedded database that nothing says of a server: tests look for them in plans, tables and reports.

/// Of no server.
const OF_NONE: [&str; 9] = [
    "log file parallel write",
    "log file sync",
    "db file sequential read",
    "db file parallel write",
    "buffer cache",
    "datafile",
    "datafiles",
    "DBWR",
    "LGWR",
];
/// Of servers that have another word for their log; InnoDB calls it so, too.
const OF_SOME: &str = "redo";

/// The words of the embedded database in a text about an engine, each as a word for itself: keys such as `redo_path`
/// are none.
pub fn foreign_words(engine: &str, text: &str) -> Vec<&'static str> {
    let own_log = (engine != "mariadb").then_some(OF_SOME);
    let all = OF_NONE.into_iter().chain(own_log);
    let lower = text.to_lowercase();
    all.filter(|word| has_word(&lower, &word.to_lowercase()))
        .collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let goes_on = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(goes_on) && !after.is_some_and(goes_on)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whole() {
        assert_eq!(
            foreign_words("postgres", "Redo lies in redo_path"),
            ["redo"]
        );
        assert_eq!(foreign_words("mariadb", "the redo log"), Vec::<&str>::new());
        assert_eq!(
            foreign_words("mariadb", "x (log file sync), 4 datafiles"),
            ["log file sync", "datafiles"]
        );
    }
}
