//! Paragraphs for a terminal: lines of a width, broken between words, and never between a number and its unit.

/// Units that stay with the number before them.
const UNITS: [&str; 13] = [
    "%", "x", "us", "ms", "s", "min", "h", "KiB", "MiB", "GiB", "TiB", "tpm", "rounds",
];

/// A text in lines of at most `width` characters. A word longer than that has a line for itself.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// Words, a number and its unit as one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let bare = word.trim_end_matches(|last: char| last.is_ascii_punctuation() && last != '%');
        match words.last_mut() {
            Some(before) if UNITS.contains(&bare) && is_number(before) => {
                before.push(' ');
                before.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

fn is_number(word: &str) -> bool {
    word.ends_with(|last: char| last.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable word", 5), ["unbreakable", "word"]);
        assert_eq!(wrapped("", 5), Vec::<String>::new());
    }

    #[test]
    fn a_unit_stays_with_its_number() {
        assert_eq!(wrapped("below 18 %. More", 9), ["below", "18 %.", "More"]);
        assert_eq!(
            wrapped("is 1.5 x, or 3 ms;", 7),
            ["is", "1.5 x,", "or", "3 ms;"]
        );
        assert_eq!(wrapped("what a % is", 6), ["what a", "% is"]);
    }
}
