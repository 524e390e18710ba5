//! Patterns of texts as `like` of SQL has them, with `%` for any characters and nothing else.

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// What stands between the signs, in order.
    parts: Vec<Vec<u8>>,
    /// The first part is the text's beginning.
    from_start: bool,
    /// The last part is the text's end.
    to_end: bool,
}

impl Pattern {
    /// The pattern as it is written.
    pub fn new(written: &str) -> Pattern {
        let parts = written.split('%').filter(|part| !part.is_empty());
        Pattern {
            parts: parts.map(|part| part.as_bytes().to_vec()).collect(),
            from_start: !written.starts_with('%'),
            to_end: !written.ends_with('%'),
        }
    }

    /// Whether a text is like it.
    pub fn fits(&self, text: &[u8]) -> bool {
        let (mut rest, mut parts) = (text, &self.parts[..]);
        if self.from_start {
            let Some((first, others)) = parts.split_first() else {
                return text.is_empty();
            };
            let Some(behind) = rest.strip_prefix(&first[..]) else {
                return false;
            };
            if others.is_empty() && self.to_end {
                return behind.is_empty();
            }
            (rest, parts) = (behind, others);
        }
        if self.to_end
            && let Some((last, others)) = parts.split_last()
        {
            let Some(before) = rest.strip_suffix(&last[..]) else {
                return false;
            };
            (rest, parts) = (before, others);
        }
        for part in parts {
            match find(rest, part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        true
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    let (first, others) = part.split_first()?;
    let last = text.len().checked_sub(part.len())?;
    let mut from = 0;
    while from <= last {
        let at = from + text[from..=last].iter().position(|byte| byte == first)?;
        if text[at + 1..].starts_with(others) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_like_patterns() {
        for (pattern, fits, does_not) in [
            (
                "%BRASS",
                &["BRASS", "SMALL BRASS"][..],
                &["BRASS x", "RASS"][..],
            ),
            ("PROMO%", &["PROMO", "PROMO TIN"], &["A PROMO"]),
            ("%green%", &["green", "a green b", "grgreen"], &["gree", ""]),
            (
                "%special%requests%",
                &["a special b requests", "specialrequests"],
                &["requests special", "specialrequest"],
            ),
            ("as%is", &["as is", "asis"], &["ais", "as it"]),
            ("same", &["same"], &["some", "same!", "sam"]),
            ("%", &["", "x"], &[]),
        ] {
            let pattern = Pattern::new(pattern);
            assert!(
                fits.iter().all(|text| pattern.fits(text.as_bytes())),
                "{pattern:?}"
            );
            assert!(
                !does_not.iter().any(|text| pattern.fits(text.as_bytes())),
                "{pattern:?}"
            );
        }
    }
}
