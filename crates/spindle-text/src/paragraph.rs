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

/// A text whose lines are at most `width` characters long, where their last columns leave room for that. What a long
/// line goes on with stands below its last column, which begins behind two blanks or more, and behind its number.
pub fn fitted(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let (before, last) = line.split_at(begin_of_last_column(line));
        let indentation = before.chars().count();
        if line.chars().count() <= width || indentation > width * 3 / 4 {
            lines.push(line.to_owned());
            continue;
        }
        for (number, part) in wrapped(last, width - indentation).iter().enumerate() {
            lines.push(match number {
                0 => format!("{before}{part}"),
                _ => format!("{:indentation$}{part}", ""),
            });
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn begin_of_last_column(line: &str) -> usize {
    let begin = line.rfind("  ").map_or(0, |at| at + 2);
    let number = line[begin..].split_once(". ").map(|(number, _)| number);
    let digits = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    digits.map_or(begin, |digits| begin + digits.len() + 2)
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
    fn long_lines_go_on_below_their_last_column() {
        let text = "Room  for what is made\n  12. make a file of 256 MiB\none two three four five\na very wide place  x y z";
        let wanted = "Room  for what is\n      made\n  12. make a file of\n      256 MiB\none two three four\nfive\n\
                      a very wide place  x y z\n";
        assert_eq!(fitted(text, 20), wanted);
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
