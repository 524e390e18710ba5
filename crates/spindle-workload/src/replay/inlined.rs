//! A text with its parameters in their places, for a database that cannot prepare it.

use crate::sql::{continued_bytes, is_identifier_letter};

/// The text with each `$n` replaced by the literal of the parameter; `None` when one is missing. What stands in quotes
/// or comments stays as it is.
pub fn inlined(text: &str, parameters: &[Option<String>]) -> Option<String> {
    let mut made = String::with_capacity(text.len() + 16 * parameters.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let passed = passed_over(rest);
        if passed > 0 {
            made.push_str(&rest[..passed]);
            rest = &rest[passed..];
            continue;
        }
        let digits = rest[1.min(rest.len())..]
            .bytes()
            .take_while(u8::is_ascii_digit);
        let digits = if letter == '$' { digits.count() } else { 0 };
        if digits == 0 {
            made.push(letter);
            rest = &rest[letter.len_utf8()..];
            continue;
        }
        let number: usize = rest[1..=digits].parse().ok()?;
        match parameters.get(number.checked_sub(1)?)? {
            Some(value) => {
                made.push('\'');
                made.push_str(&value.replace('\'', "''"));
                made.push('\'');
            }
            None => made.push_str("null"),
        }
        rest = &rest[1 + digits..];
    }
    Some(made)
}

/// How many bytes of a quoted text, a name, a comment or a word `text` begins with.
fn passed_over(text: &str) -> usize {
    let until = |open: usize, close: &str| match text[open..].find(close) {
        Some(place) => open + place + close.len(),
        None => text.len(),
    };
    if text.starts_with('\'') {
        return until(1, "'");
    }
    if text.starts_with("E'") || text.starts_with("e'") {
        return escaped_bytes(text);
    }
    if text.starts_with('"') {
        return until(1, "\"");
    }
    if text.starts_with("--") {
        return until(2, "\n");
    }
    if text.starts_with("/*") {
        return until(2, "*/");
    }
    if let Some(after) = text.strip_prefix('$') {
        let tag = after.find('$').map(|end| &text[..end + 2]);
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        return match tag {
            Some(tag)
                if tag[1..tag.len() - 1].chars().all(is_name)
                    && !tag[1..].starts_with(|letter: char| letter.is_ascii_digit()) =>
            {
                until(tag.len(), tag)
            }
            _ => 0,
        };
    }
    // A word may end with a dollar and digits.
    let ends = |letter| !is_identifier_letter(letter);
    match text.starts_with(is_identifier_letter) {
        true => text.find(ends).unwrap_or(text.len()),
        false => 0,
    }
}

/// Bytes of a text of PostgreSQL that begins with `E'`, in all lines in which it continues: a quote behind a backslash
/// is one of its letters.
fn escaped_bytes(text: &str) -> usize {
    let mut letters = text.char_indices().skip(2);
    while let Some((place, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '\'' => match continued_bytes(&text[place + 1..]) {
                Some(between) => drop(letters.nth(text[place + 1..][..between].chars().count())),
                None => return place + 1,
            },
            _ => {}
        }
    }
    text.len()
}
