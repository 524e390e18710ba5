//! Paragraphs for a terminal: lines of a width, broken between words, and never between a number and its unit.

/// Units that stay with the number before them.
const UNITS: [&str; 13] = [
    "%", "x", "us", "ms", "s", "min", "h", "KiB", "MiB", "GiB", "TiB", "tpm", "rounds",
];

/// The code that ends a colour.
const COLOUR_END: &str = "\x1b[0m";

/// What an item of a list begins with.
const BULLET: &str = "- ";

/// How far the rest of a labelled line, such as `warning: ...`, is indented.
const BELOW_LABEL: usize = 2;

/// What a last column with little room stands in on the lines below it.
const BELOW_LINE: usize = 4;

/// A text in lines of at most `width` characters, codes of colours not counted. A word longer than that has a line for
/// itself.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    hung(text, width, width)
}

/// The same with another width for the lines after the first.
fn hung(text: &str, first_width: usize, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text) {
        let room = match lines.len() {
            0 | 1 => first_width,
            _ => width,
        };
        match lines.last_mut() {
            Some(line) if shown_length(line) + 1 + shown_length(&word) <= room => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// A text whose lines are at most `width` characters long, where that can be. The rest of a long line stands below its
/// last column, which begins behind two blanks or more, and behind its bullet or number. Below a label such as
/// `warning:` it is indented a little. A last column with little room stands below its line as a whole.
pub fn fitted(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let (before, last) = line.split_at(begin_of_last_column(line));
        let indentation = shown_length(before);
        if shown_length(line) <= width || shown_length(before.trim_end()) > width {
            lines.push(line.to_owned());
            continue;
        }
        if indentation > width * 3 / 4 {
            lines.push(before.trim_end().to_owned());
            let parts = wrapped(last, width - BELOW_LINE);
            lines.extend(parts.iter().map(|part| format!("{:BELOW_LINE$}{part}", "")));
            continue;
        }
        let below = match indentation {
            0 if has_label(last) => BELOW_LABEL,
            _ => indentation,
        };
        let parts = hung(last, width - indentation, width - below);
        for (number, part) in parts.iter().enumerate() {
            lines.push(match number {
                0 => format!("{before}{part}"),
                _ => format!("{:below$}{part}", ""),
            });
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The first characters of a line, at most `width` of them, with a mark where something is missing.
pub fn cut(line: &str, width: usize) -> String {
    match line.chars().count() <= width {
        true => line.to_owned(),
        false => {
            let kept: String = line.chars().take(width.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

/// Characters that a terminal shows: the codes of colours (ECMA-48, "Select Graphic Rendition") are none.
fn shown_length(text: &str) -> usize {
    let mut parts = text.split("\x1b[");
    let first = parts.next().map_or(0, |part| part.chars().count());
    let behind_code = |part: &str| {
        part.split_once('m')
            .map_or(part, |(_, rest)| rest)
            .chars()
            .count()
    };
    first + parts.map(behind_code).sum::<usize>()
}

/// Whether a line begins with one word and a colon.
fn has_label(line: &str) -> bool {
    let first = line.split(' ').next().unwrap_or(line);
    first.trim_end_matches(COLOUR_END).ends_with(':')
}

fn begin_of_last_column(line: &str) -> usize {
    let column = line.rfind("  ").map_or(0, |at| at + 2);
    let begin = match line[column..].starts_with(BULLET) {
        true => column + BULLET.len(),
        false => column,
    };
    let number = line[begin..].split_once(". ").map(|(number, _)| number);
    let digits = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    digits.map_or(begin, |digits| begin + digits.len() + 2)
}

/// Words, a number and its unit as one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let bare = word.trim_end_matches(COLOUR_END);
        let bare = bare.trim_end_matches(|last: char| last.is_ascii_punctuation() && last != '%');
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
                      a very wide place\n    x y z\n";
        assert_eq!(fitted(text, 20), wanted);
    }

    #[test]
    fn colours_take_no_room_and_labels_stand_out() {
        let text = "\x1b[33mwarning:\x1b[0m one two three four";
        let wanted = "\x1b[33mwarning:\x1b[0m one\n  two three\n  four\n";
        assert_eq!(fitted(text, 12), wanted);
        assert_eq!(fitted("  - one two", 8), "  - one\n    two\n");
        assert_eq!(fitted("note: one two", 13), "note: one two\n");
        assert_eq!(
            fitted("\x1b[1mone two\x1b[0m", 7),
            "\x1b[1mone two\x1b[0m\n"
        );
    }

    #[test]
    fn a_line_that_is_cut_says_so() {
        assert_eq!(cut("one two", 7), "one two");
        assert_eq!(cut("one two", 6), "one t…");
        assert_eq!(cut("one two", 5), "one…");
        assert_eq!(cut("äöü", 3), "äöü");
    }

    #[test]
    fn a_unit_stays_with_its_number() {
        assert_eq!(wrapped("below 18 %. More", 9), ["below", "18 %.", "More"]);
        let coloured = "\x1b[36mof 7 tpm):\x1b[0m";
        assert_eq!(wrapped(coloured, 5), ["\x1b[36mof", "7 tpm):\x1b[0m"]);
        assert_eq!(
            wrapped("is 1.5 x, or 3 ms;", 7),
            ["is", "1.5 x,", "or", "3 ms;"]
        );
        assert_eq!(wrapped("what a % is", 6), ["what a", "% is"]);
    }
}
