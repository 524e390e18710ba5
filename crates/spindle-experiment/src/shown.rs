//! What of an experiment's text is shown when something is wrong with it. The text may hold passwords, what a terminal
//! obeys, and lines of a hundred thousand characters: passwords are stars, the rest is harmless
//! ([`spindle_text::plain`]) and short.

use std::ops::Range;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use spindle_text::plain::{lines, of_same_length, shortened};

/// Of a longer message, beginning and end are shown.
const MESSAGE_LENGTH_MAX: usize = 600;
/// Of a longer line of the file, only the part around the mistake.
const LINE_LENGTH_MAX: usize = 200;
/// How much of that stands before the mistake.
const BEFORE_MISTAKE: usize = 60;
/// A mistake that takes more lines is shown by its first.
const MARKED_LINES_MAX: usize = 10;
/// What addresses of database servers begin with, also where the rest of the scheme is mistyped.
const SCHEMES: [&str; 5] = ["postgresql", "postgres", "pgsql", "mysql", "mariadb"];
const PASSWORD_KEYS: [&str; 3] = ["password", "passwd", "pwd"];

/// A message of any origin.
pub(super) fn message(text: &str) -> String {
    let hidden = without_passwords(text);
    shortened(&lines(&hidden), MESSAGE_LENGTH_MAX).into_owned()
}

/// The text of a file as it is shown around a mistake, and where the mistake is in it.
#[derive(Debug)]
pub(super) struct Shown {
    name: String,
    text: String,
    /// Characters of the mistake's line that are left out before what is shown of it.
    cut_before: usize,
    pub(super) span: Range<usize>,
    /// Of the mistake in the file, from 1.
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Shown {
    /// `text`, which people know as `name`, with a mistake at `span`.
    pub(super) fn new(name: &str, text: &str, span: Range<usize>) -> Shown {
        let line_start = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let mut shown = Shown {
            name: message(name),
            text: String::new(),
            cut_before: 0,
            line: text[..span.start].matches('\n').count() + 1,
            column: text[line_start..span.start].chars().count() + 1,
            span,
        };
        shown.take(&of_same_length(&without_passwords(text)));
        shown
    }

    /// The name of the file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Takes in the text line by line, and keeps the mistake's place.
    fn take(&mut self, text: &str) {
        let mistake = self.span.clone();
        let is_long = text[mistake.clone()].matches('\n').count() >= MARKED_LINES_MAX;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.trim_end_matches(['\n', '\r']).len();
            let holds_start = (start..start + line.len()).contains(&mistake.start);
            let kept = match end - start > LINE_LENGTH_MAX {
                true if holds_start => {
                    let from = mistake.start.saturating_sub(BEFORE_MISTAKE).max(start);
                    let from = boundary(text, from);
                    from..boundary(text, (from + LINE_LENGTH_MAX).min(end))
                }
                true => start..boundary(text, start + LINE_LENGTH_MAX),
                false => start..end,
            };
            if kept.start > start {
                self.text.push('…');
            }
            if holds_start {
                let skipped = text[start..kept.start].chars().count();
                self.cut_before = skipped.saturating_sub('…'.len_utf8());
                self.span.start = self.text.len() + mistake.start.min(kept.end) - kept.start;
            }
            if (start..=start + line.len()).contains(&mistake.end) || (holds_start && is_long) {
                let end = mistake.end.clamp(kept.start, kept.end);
                self.span.end = (self.text.len() + end - kept.start).max(self.span.start);
            }
            self.text.push_str(&text[kept.clone()]);
            if kept.end < end {
                self.text.push('…');
            }
            self.text.push_str(&text[end..start + line.len()]);
            start += line.len();
            if is_long && start > mistake.start {
                break;
            }
        }
        if mistake.start == text.len() {
            self.span = self.text.len()..self.text.len();
        }
    }
}

/// The first place from `at` on where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    let mut places = at..text.len();
    let found = places.find(|place| text.is_char_boundary(*place));
    found.unwrap_or(text.len())
}

impl SourceCode for Shown {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let read = self.text.read_span(span, lines_before, lines_after)?;
        let column = match read.column() {
            0 => 0,
            column => column + self.cut_before,
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            read.data(),
            *read.span(),
            read.line(),
            column,
            read.line_count(),
        )))
    }
}

/// A text in which passwords are stars, as long as they were, so that places in it stay what they are. Whatever looks
/// like `user:password@` counts, as addresses are mistyped; rather too much is hidden than too little.
pub fn without_passwords(text: &str) -> String {
    let mut hidden = text.to_owned().into_bytes();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let line_end = start + line.len();
        for secret in secrets(line.trim_end_matches(['\n', '\r'])) {
            hidden[start + secret.start..start + secret.end].fill(b'*');
        }
        start = line_end;
    }
    String::from_utf8(hidden)
        .expect("whole characters were replaced by as many stars as they had bytes")
}

/// Where passwords are in a line.
fn secrets(line: &str) -> Vec<Range<usize>> {
    let lower = line.to_ascii_lowercase();
    let addresses = addresses(&lower);
    let ends = addresses.iter().skip(1).map(|address| address.start);
    let ends = ends.chain([line.len()]);
    let mut secrets: Vec<Range<usize>> = addresses
        .iter()
        .zip(ends)
        .filter_map(|(address, end)| secret_of_address(line, address.end..end.max(address.end)))
        .collect();
    secrets.extend(words(line).filter_map(|word| secret_of_word(line, word)));
    for key in PASSWORD_KEYS {
        let found = lower.match_indices(key).map(|(at, _)| at + key.len());
        secrets.extend(found.filter_map(|after_key| value_after(line, after_key)));
    }
    secrets
}

/// Where addresses begin: the scheme, up to the user. Sorted.
fn addresses(lower: &str) -> Vec<Range<usize>> {
    let is_sign = |character: char| matches!(character, ':' | '/' | '\\' | ';');
    let mut starts: Vec<usize> = lower.match_indices("://").map(|(at, _)| at).collect();
    for scheme in SCHEMES {
        let ends = lower.match_indices(scheme).map(|(at, _)| at + scheme.len());
        starts.extend(ends.filter(|end| lower[*end..].starts_with(is_sign)));
    }
    if starts.is_empty() {
        // The value of a key `url`, whatever it begins with.
        let keys = lower.match_indices("url").map(|(at, key)| at + key.len());
        starts.extend(keys.filter_map(|end| {
            let rest = lower[end..].trim_start();
            let value = ["=", "is the text"]
                .iter()
                .find_map(|between| rest.strip_prefix(between))?;
            Some(lower.len() - value.len())
        }));
    }
    starts.sort_unstable();
    starts.dedup();
    let is_before_user = |character: char| is_sign(character) || " \t'\"".contains(character);
    let user_at = |start: usize| {
        let rest = &lower[start..];
        start
            + rest
                .find(|character| !is_before_user(character))
                .unwrap_or(rest.len())
    };
    let mut addresses: Vec<Range<usize>> = Vec::new();
    for start in starts {
        // Users are called postgres, too, and a password may hold anything: an address begins with a word.
        let is_within = addresses.last().is_some_and(|before| {
            let between = lower.get(before.end..start).unwrap_or_default();
            !between.contains(ends_word)
        });
        if !is_within {
            addresses.push(start..user_at(start));
        }
    }
    addresses
}

/// The password of an address without its scheme: what stands between the user and the last `@`. What a person forgot
/// to encode may hold any sign. Where there is no `@`, what looks like no port.
fn secret_of_address(line: &str, address: Range<usize>) -> Option<Range<usize>> {
    let text = &line[address.clone()];
    let is_of_name =
        |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    let user = text.find(|character| !is_of_name(character))?;
    let separator = text[user..].chars().next()?;
    let after = user + separator.len_utf8();
    let secret = match text.rfind('@') {
        // No password, or a user such as `ann@cloud`.
        Some(at) if separator == '@' => after + text[after..at.max(after)].find(':')? + 1..at,
        Some(at) => after..at,
        None if separator == ':' => {
            let rest = &text[after..];
            let end = rest.find(ends_word).unwrap_or(rest.len());
            let port = rest.find(|character: char| !character.is_ascii_digit());
            let is_port =
                port.is_none_or(|port| port >= end || rest[port..].starts_with(['/', '?']));
            (!is_port).then_some(after..after + end)?
        }
        None => return None,
    };
    (!secret.is_empty()).then_some(address.start + secret.start..address.start + secret.end)
}

fn ends_word(character: char) -> bool {
    character.is_whitespace() || "\"'`".contains(character)
}

/// What stands between white space and quotation marks.
fn words(line: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    line.split_inclusive(ends_word).map(move |word| {
        let range = start..start + word.trim_end_matches(ends_word).len();
        start += word.len();
        range
    })
}

/// Of a word without a known scheme: all between the first `:` and the last `@`.
fn secret_of_word(line: &str, word: Range<usize>) -> Option<Range<usize>> {
    let text = &line[word.clone()];
    if text.contains("://") || SCHEMES.iter().any(|scheme| text.starts_with(scheme)) {
        return None;
    }
    let (colon, at) = (text.find(':')?, text.rfind('@')?);
    (colon < at).then_some(word.start + colon + 1..word.start + at)
}

/// The value behind a key such as `password`, in quotation marks or not.
fn value_after(line: &str, after_key: usize) -> Option<Range<usize>> {
    let rest = line[after_key..]
        .trim_start()
        .strip_prefix('=')?
        .trim_start();
    let start = line.len() - rest.len();
    let quote = rest.chars().next().filter(|first| "\"'".contains(*first));
    let (start, rest) = match quote {
        Some(_) => (start + 1, &rest[1..]),
        None => (start, rest),
    };
    let end = match quote {
        Some(quote) => rest.find(quote),
        None => rest.find(|character| ends_word(character) || "&,}".contains(character)),
    };
    Some(start..start + end.unwrap_or(rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_addresses_are_stars_and_the_rest_stays() {
        for (text, shown) in [
            (
                "url = \"postgres://a:bc@h/d\"",
                "url = \"postgres://a:**@h/d\"",
            ),
            (
                "url=postgres://a:b@c/e@h:5/d x",
                "url=postgres://a:*****@h:5/d x",
            ),
            (
                "'mysql://a:é@h' \"b://c:d@e\"",
                "'mysql://a:**@h' \"b://c:*@e\"",
            ),
            ("postgres://a@h:5432/d", "postgres://a@h:5432/d"),
            ("postgres://h:5432", "postgres://h:5432"),
            (
                "postgres://a@h/d?password=b&c=d",
                "postgres://a@h/d?password=*&c=d",
            ),
            ("password = \"b c\" # d", "password = \"***\" # d"),
            (
                "password_env = \"PGPASSWORD\"",
                "password_env = \"PGPASSWORD\"",
            ),
            ("path = \"a:b@c\"", "path = \"a:*@c\""),
            ("engine = \"postgres\"", "engine = \"postgres\""),
            ("[a]\nurl = \"x\"\n", "[a]\nurl = \"x\"\n"),
        ] {
            assert_eq!(without_passwords(text), shown);
            assert_eq!(shown.len(), text.len());
        }
    }

    #[test]
    fn a_mistyped_address_hides_its_password() {
        for address in [
            "postgres:/ann:S€CRET@h/x",
            "postgres:ann:S€CRET@h/x",
            "postgres//ann:S€CRET@h",
            "postgres/ann:S€CRET@h",
            "postgresql:ann:S€CRET@h",
            "Postgres://ann:S€CRET@h",
            "postgrse:/ann:S€CRET@h",
            "postgrse:/ann:S€ CRET@h",
            "postgres;//ann:S€CRET@h",
            "postgres:\\\\ann:S€CRET@h",
            "postgres://ann;S€CRET@h",
            "postgres://ann%3AS€CRET@h",
            "postgres://ann S€CRET@h",
            "postgres://ann:S€ CRET@h",
            "postgres://ann:S€\"CRET@h",
            "postgres://ann:S€@CRET@h",
            "postgres://ann@cloud:S€CRET@h",
            "postgres://ann:S€CRET/h/x",
            "postgres://ann:S€CRET#h/x",
            "postgres://ann:S€CRET",
            "://ann:S€CRET@h",
            "ann:S€CRET@h",
            ":S€CRET@h",
            "mysql:/ann:S€CRET@h",
            "postgres://postgres:S€CRET@h:5432/d",
            "postgres://postgres:S€:CRET@h:5432x/d",
            "postgres//postgres:S€CRET@h",
            "postgres:postgres:S€CRET@h",
            "mysql://mysql:S€CRET@h",
            "mariadb://mymariadb:S€CRET@h",
            "postgres://ann:S€postgres:CRET@h",
            "postgres://ann:S€://CRET@h",
            "postgrse://postgresql:S€CRET@h",
        ] {
            for text in [
                format!("url = \"{address}\""),
                format!("--set database.url={address}"),
                format!("--set 'layout.\"a\".database.url=\"{address}\"'"),
                format!("database.url is the text {address:?}"),
            ] {
                let shown = without_passwords(&text);
                assert!(!shown.contains("S€") && !shown.contains("CRET"), "{shown}");
                assert_eq!(shown.len(), text.len());
            }
        }
    }

    #[test]
    fn a_long_line_is_shown_around_the_mistake() {
        let long = "x".repeat(100_000);
        let text = format!("a = 1\nb = \"{long}\" wrong {long}\n{long}\nc = 2\n");
        let at = text.find("wrong").unwrap();
        let shown = Shown::new("file", &text, at..at + 5);
        assert!(
            shown.text.len() < 3 * LINE_LENGTH_MAX,
            "{}",
            shown.text.len()
        );
        assert_eq!(&shown.text[shown.span.clone()], "wrong");
        assert_eq!((shown.line, shown.column), (2, at - 6 + 1));
        assert_eq!(shown.text.lines().count(), 4);
        let read = shown.read_span(&shown.span.clone().into(), 0, 0).unwrap();
        assert_eq!((read.line() + 1, read.column() + 1), (2, at - 6 + 1));
    }

    #[test]
    fn a_mistake_that_takes_many_lines_is_shown_by_its_first() {
        let text = format!("a = 1\nb = [\n{}]\n", "1,\n".repeat(10_000));
        let at = text.find('[').unwrap();
        let shown = Shown::new("file", &text, at..text.len() - 1);
        assert_eq!(&shown.text[shown.span.clone()], "[");
    }

    #[test]
    fn a_mistake_at_the_end_of_the_text_has_its_place() {
        for text in ["", "a", "a\n", "a = 1\nb"] {
            let shown = Shown::new("file", text, text.len()..text.len());
            assert_eq!(
                (shown.text.as_str(), shown.span),
                (text, text.len()..text.len())
            );
        }
    }
}
