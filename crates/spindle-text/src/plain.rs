//! Text that shows as what it is. A name may come from a journal that a stranger sent, a volume's label, a directory or
//! the words of a tool, and hold characters that a terminal obeys (escape sequences, U+009B, carriage returns) or that
//! turn what follows round (Unicode's bidirectional controls). Such characters become visible here, as `\u{1b}`: when a
//! journal is read, and again when anything is printed.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

/// Whether a terminal, or a reader of text, does something else with a character than show it. Line feed and tab count,
/// too.
pub fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character,
        // Arabic letter mark, left-to-right and right-to-left mark; line and paragraph separator; embeddings and
        // overrides; isolates and deprecated formatting; byte order mark; interlinear annotations; tags.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a name with this character can look like one without it.
pub fn is_invisible(character: char) -> bool {
    let is_odd_space = character.is_whitespace() && character != ' ';
    is_odd_space
        || is_harmful(character)
        || matches!(character,
            // Soft hyphen, joiners, Mongolian separators, invisible operators, Hangul fillers, variation selectors.
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// The text on one line: line feeds and tabs are spaces, other harmful characters are escaped.
pub fn one_line(text: &str) -> Cow<'_, str> {
    replaced(text, |character| match character {
        '\n' | '\t' => Some(' '),
        _ => None,
    })
}

/// The text with its lines and tabs; other harmful characters are escaped.
pub fn lines(text: &str) -> Cow<'_, str> {
    replaced(text, |character| match character {
        '\n' | '\t' => Some(character),
        _ => None,
    })
}

/// As [`lines`], but colours and weights (the control sequence `ESC [ ... m` of ECMA-48, "SGR") stay. For text whose
/// foreign parts are harmless already.
pub fn coloured(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        shown.push_str(&lines(&rest[..at]));
        let parameters = &rest[at + 2..];
        let length = parameters
            .find(|character: char| !character.is_ascii_digit() && character != ';')
            .filter(|length| parameters[*length..].starts_with('m'));
        let taken = match length {
            Some(length) => {
                let sequence = &rest[at..at + 2 + length + 1];
                shown.push_str(sequence);
                sequence.len()
            }
            None => {
                shown.push_str(&lines(&rest[at..at + 1]));
                1
            }
        };
        rest = &rest[at + taken..];
    }
    shown.push_str(&lines(rest));
    shown
}

/// The text with a stand-in for each harmful character that takes as many bytes, so that places in it stay what they
/// are.
pub fn of_same_length(text: &str) -> String {
    let mut characters = text.chars().peekable();
    let mut shown = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        let ends_line = character == '\r' && characters.peek() == Some(&'\n');
        shown.push(match character.len_utf8() {
            _ if ends_line || matches!(character, '\n' | '\t') || !is_harmful(character) => {
                character
            }
            1 => '?',
            2 => '\u{bf}',
            3 => char::REPLACEMENT_CHARACTER,
            _ => '\u{1fbc4}',
        });
    }
    shown
}

/// Makes every text and every key in a JSON value one harmless line, but for what a database is told: texts of files
/// ([`crate::load_file::TextFile`]), and variables of scripts. Those are carried out again, and code that shows them
/// makes them plain.
pub fn make_plain(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(plain) = one_line(text) {
                *text = plain;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_plain),
        Value::Object(entries) => {
            if entries.keys().any(|key| key.contains(is_harmful)) {
                let taken = std::mem::take(entries).into_iter();
                entries.extend(taken.map(|(key, value)| (one_line(&key).into_owned(), value)));
            }
            let is_file = entries.len() == 3 && entries.contains_key("weight");
            let has_scripts = entries.contains_key("scripts");
            for (key, value) in entries.iter_mut() {
                let is_told = is_file && key == "text" || has_scripts && key == "define";
                if !is_told {
                    make_plain(value);
                }
            }
        }
        _ => {}
    }
}

/// A text, such as another program's words, as a sentence: with a full stop, unless it ends as sentences do.
pub fn sentence(text: &str) -> Cow<'_, str> {
    match text.ends_with(['.', '?', '!', '…']) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("{text}.")),
    }
}

/// The beginning and the end of a text that is too long to be shown; all of one that has `length_max` characters or
/// fewer.
pub fn shortened(text: &str, length_max: usize) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= length_max {
        return Cow::Borrowed(text);
    }
    let start: String = text.chars().take(length_max * 3 / 4).collect();
    let end: String = text.chars().skip(length - length_max / 4).collect();
    Cow::Owned(format!(
        "{start} [... {} characters ...] {end}",
        length - length_max * 3 / 4 - length_max / 4
    ))
}

fn replaced(text: &str, instead: impl Fn(char) -> Option<char>) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match instead(character) {
            Some(other) => plain.push(other),
            None if is_harmful(character) => {
                let _ = write!(plain, "{}", character.escape_unicode());
            }
            None => plain.push(character),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_that_is_obeyed_is_shown_instead() {
        let harmful = (0..=0x1f).chain(0x7f..=0x9f);
        let harmful = harmful.chain(0x2028..=0x202e).chain(0x2066..=0x2069);
        for character in harmful.filter_map(char::from_u32) {
            let text = format!("a{character}b");
            for shown in [one_line(&text).into_owned(), of_same_length(&text)] {
                let is_kept = matches!(character, '\n' | '\t') && shown.len() == text.len();
                assert!(is_kept || !shown.contains(character), "{character:?}");
                assert!(shown.starts_with('a') && shown.ends_with('b'), "{shown:?}");
            }
            assert_eq!(of_same_length(&text).len(), text.len(), "{character:?}");
        }
        assert_eq!(
            one_line("a\x1b[31m\n\tb\r\u{9b}"),
            "a\\u{1b}[31m  b\\u{d}\\u{9b}"
        );
        assert_eq!(one_line("Größe – naïve 漢字 😀"), "Größe – naïve 漢字 😀");
        assert_eq!(of_same_length("a\r\nb\rc"), "a\r\nb?c");
    }

    #[test]
    fn colours_stay_and_nothing_else_does() {
        assert_eq!(coloured("\x1b[1;31mred\x1b[0m\n"), "\x1b[1;31mred\x1b[0m\n");
        assert_eq!(
            coloured("\x1b[2Jx\x1b]0;t\x07\x1b[31"),
            "\\u{1b}[2Jx\\u{1b}]0;t\\u{7}\\u{1b}[31"
        );
        assert_eq!(coloured("\x1b[\x1b[1mx"), "\\u{1b}[\x1b[1mx");
    }

    #[test]
    fn texts_and_keys_of_a_value_are_made_plain() {
        let mut value = serde_json::json!({"a\u{1b}": [{"b": "c\u{202e}d\ne"}], "f": 1});
        make_plain(&mut value);
        assert_eq!(
            value,
            serde_json::json!({"a\\u{1b}": [{"b": "c\\u{202e}d e"}], "f": 1})
        );
    }

    #[test]
    fn what_a_database_is_told_stays_as_it_was_written() {
        let told = serde_json::json!({
            "scripts": [{"name": "a", "weight": 1, "text": "select 1; -- one\n\tselect 'x\u{202e}';"}],
            "define": {"x": "a\nb"},
        });
        let mut value = told.clone();
        make_plain(&mut value);
        assert_eq!(value, told);
        let mut named = serde_json::json!({"name": "a\u{1b}", "weight": 1, "text": "b\n"});
        make_plain(&mut named);
        assert_eq!(named["name"], "a\\u{1b}");
    }

    #[test]
    fn a_text_that_ends_as_sentences_do_gets_no_second_end() {
        for (text, whole) in [
            ("does it still work?", "does it still work?"),
            ("Name another one.", "Name another one."),
            ("no route to host", "no route to host."),
        ] {
            assert_eq!(sentence(text), whole);
        }
    }

    #[test]
    fn long_texts_are_shown_by_both_ends() {
        assert_eq!(shortened("short", 8), "short");
        assert_eq!(
            shortened("aaaaaaééééééééééééz!", 8),
            "aaaaaa [... 12 characters ...] z!"
        );
    }
}
