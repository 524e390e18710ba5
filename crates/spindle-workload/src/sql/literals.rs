//! Texts of PostgreSQL in which a backslash takes the meaning of the next letter away: those that `E'` begins, in all
//! lines in which they continue ("Lexical Structure", section 4.1.2 of its documentation; `src/backend/parser/scan.l`).

/// Whether a letter may stand in a name that is not in quotes. All that is not ASCII may.
pub fn is_identifier_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '$' || !letter.is_ascii()
}

/// Whether a text has escapes that begins with a quote behind this: `E` stands there alone, and is not the end of a
/// name, as in `date'...'`.
pub fn has_escapes_behind(before: &str) -> bool {
    let mut letters = before.chars().rev();
    matches!(letters.next(), Some('e' | 'E')) && !letters.next().is_some_and(is_identifier_letter)
}

/// How many bytes lie between the end of a text and the quote with which it continues, if it does. `behind` is what
/// follows the text's last quote: blanks and comments, with the end of a line among them.
pub fn continued_bytes(behind: &str) -> Option<usize> {
    const BLANKS: [char; 4] = [' ', '\t', '\x0b', '\x0c'];
    const ENDS: [char; 2] = ['\n', '\r'];
    let mut rest = behind.trim_start_matches(BLANKS);
    if let Some(comment) = rest.strip_prefix("--") {
        rest = &comment[comment.find(ENDS)?..];
    }
    if !rest.starts_with(ENDS) {
        return None;
    }
    loop {
        rest = rest.trim_start_matches(|letter| BLANKS.contains(&letter) || ENDS.contains(&letter));
        match rest.strip_prefix("--") {
            Some(comment) => rest = &comment[comment.find(ENDS)?..],
            None => break,
        }
    }
    rest.starts_with('\'').then(|| behind.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_e_alone_begins_escapes() {
        for before in ["E", "e", "select E", "x @@E", "(e", "a,E", "1;e"] {
            assert!(has_escapes_behind(before), "{before}");
        }
        for before in ["", "date", "name", "_e", "$e", "1e", "\u{a7}e", "select "] {
            assert!(!has_escapes_behind(before), "{before}");
        }
    }

    #[test]
    fn a_text_goes_on_behind_the_end_of_its_line_only() {
        for (behind, bytes) in [
            ("\n'b'", Some(1)),
            (" \r\n\t 'b'", Some(5)),
            ("\n-- it's\n  -- b\n'", Some(16)),
            ("'b'", None),
            (" 'b'", None),
            (" -- it's\n'b'", Some(9)),
            (" -- a'b'", None),
            ("\n/* a */ 'b'", None),
            ("\n, 'b'", None),
            ("\n-- 'b'", None),
            ("\n", None),
            ("", None),
        ] {
            assert_eq!(continued_bytes(behind), bytes, "{behind:?}");
        }
    }
}
