//! Texts of PostgreSQL that go on in another line ("Lexical Structure", section 4.1.2.1 of its documentation). What
//! goes on is read as it began: where `E'` began it, a backslash takes the meaning of the next letter away there, too.

/// How many bytes lie between the end of a text and the quote with which it goes on, if it does. `behind` is what
/// follows the text's last quote.
pub fn continued_bytes(behind: &str) -> Option<usize> {
    const BLANKS: [char; 4] = [' ', '\t', '\x0b', '\x0c'];
    const ENDS: [char; 2] = ['\n', '\r'];
    let mut rest = behind.trim_start_matches(BLANKS);
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
    fn a_text_goes_on_behind_the_end_of_its_line_only() {
        for (behind, bytes) in [
            ("\n'b'", Some(1)),
            (" \r\n\t 'b'", Some(5)),
            ("\n-- it's\n  -- b\n'", Some(16)),
            ("'b'", None),
            (" 'b'", None),
            (" -- a\n'b'", None),
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
