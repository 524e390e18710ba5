//! Statements that lie within others: in bodies of functions, procedures, triggers and `DO`, and in texts that are
//! carried out. They are found by their words: a statement that is put together letter by letter is not seen.
//! [`super::beyond`] asks.

use crate::sql::Dialect;

/// What begins a statement that may change something, wherever it stands in a body.
const CHANGES: [&str; 8] = [
    "create", "alter", "drop", "truncate", "insert", "update", "delete", "merge",
];
/// The same, only where a statement may begin: elsewhere they are names.
const CHANGES_AT_BEGIN: [&str; 12] = [
    "grant", "revoke", "rename", "reassign", "copy", "set", "use", "flush", "kill", "install",
    "lock", "comment",
];
/// What a statement of a body may stand behind.
const BEFORE: [&str; 14] = [
    "begin",
    "then",
    "else",
    "loop",
    "do",
    "as",
    "atomic",
    "execute",
    "immediate",
    "row",
    "query",
    "handler",
    "from",
    "statement",
];

/// What a text stands behind that is carried out. Others are messages and values.
const BEFORE_TEXTS: [&str; 6] = ["as", "execute", "format", "from", "immediate", "query"];

/// The statements that one holds, each from its first word to its end.
pub(super) fn held(sql: &str, dialect: Dialect) -> Vec<&str> {
    match has_body(sql, dialect) {
        true => parts(sql, dialect).flat_map(begun_in).collect(),
        false => Vec::new(),
    }
}

/// Whether a statement has a body, or a text that is carried out.
pub(super) fn has_body(sql: &str, dialect: Dialect) -> bool {
    let words: Vec<String> = super::makes::words(sql).take(12).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let has_routine = || {
        let kinds = [
            "function",
            "procedure",
            "trigger",
            "event",
            "rule",
            "package",
        ];
        words.iter().any(|word| kinds.contains(word))
    };
    match words[..] {
        ["create" | "alter", ..] => has_routine(),
        ["do" | "prepare", ..] | ["execute", "immediate", ..] => true,
        ["begin", "not", ..] => dialect == Dialect::MariaDb,
        _ => false,
    }
}

/// A part of a statement, and whether it is code; a text that is carried out; another one.
type TextPart<'a> = (&'a str, PartKind);

#[derive(Debug, Clone, Copy, PartialEq)]
enum PartKind {
    Code,
    CarriedOut,
    Text,
}

/// What lies between quotes, semicolons and marks of dollars.
fn parts(sql: &str, dialect: Dialect) -> impl Iterator<Item = TextPart<'_>> {
    let is_quote =
        move |letter: char| letter == '\'' || letter == '"' && dialect == Dialect::MariaDb;
    let (mut is_text, mut before) = (false, "");
    sql.split_inclusive(move |letter| is_quote(letter) || letter == ';' || letter == '$')
        .map(move |part| {
            let inner = part.trim_end_matches(['\'', '"', ';', '$']);
            let kind = match is_text {
                true if is_before_text(before) => PartKind::CarriedOut,
                true => PartKind::Text,
                false => PartKind::Code,
            };
            is_text ^= part.ends_with(is_quote);
            if !inner.trim().is_empty() {
                before = inner;
            }
            (inner, kind)
        })
}

/// Whether a text behind this is carried out, or kept to be so.
fn is_before_text(before: &str) -> bool {
    let before = before.trim_end().trim_end_matches('(').trim_end();
    let last = before.rsplit(|letter: char| !letter.is_alphanumeric());
    let last = last.map(str::to_lowercase).next().unwrap_or_default();
    before.ends_with('=') || BEFORE_TEXTS.contains(&last.as_str())
}

/// The statements that begin in a part. A text that is carried out is one as a whole, unless it is a body.
fn begun_in((part, kind): TextPart<'_>) -> Vec<&str> {
    let words = places_of_words(part);
    let first = words.first().map(|(_, word)| word.as_str());
    let is_body = first.is_some_and(|first| ["begin", "declare"].contains(&first));
    let mut before: Option<&str> = None;
    let mut begun = Vec::new();
    for (number, (at, word)) in words.iter().enumerate() {
        let may_begin = before.is_none_or(|before| BEFORE.contains(&before));
        let changes = CHANGES.contains(&word.as_str())
            || may_begin && CHANGES_AT_BEGIN.contains(&word.as_str());
        let is_whole = kind == PartKind::CarriedOut && number == 0;
        if changes && (is_whole || kind == PartKind::Code || is_body) {
            begun.push(&part[*at..]);
        }
        before = Some(word);
    }
    begun
}

/// Words in small letters, and where they begin.
fn places_of_words(text: &str) -> Vec<(usize, String)> {
    let is_letter = |letter: char| letter.is_alphanumeric() || "_.\"`".contains(letter);
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut is_within = false;
    for (at, letter) in text.char_indices() {
        match (is_letter(letter), is_within) {
            (true, true) => words
                .last_mut()
                .expect("one began")
                .1
                .extend(letter.to_lowercase()),
            (true, false) => words.push((at, letter.to_lowercase().collect())),
            (false, _) => {}
        }
        is_within = is_letter(letter);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_and_texts_hold_statements() {
        for (dialect, sql, begins) in [
            (
                Dialect::Postgres,
                "do $$ begin create role r; exception when duplicate_object then null; end $$",
                vec!["create role r"],
            ),
            (
                Dialect::Postgres,
                "create function f() returns void language sql as 'create table public.t(a int)'",
                vec![
                    "create function f() returns void language sql as ",
                    "create table public.t(a int)",
                ],
            ),
            (
                Dialect::Postgres,
                "do $x$ begin execute format('grant %I to bob', 'ann'); end $x$",
                vec!["grant %I to bob"],
            ),
            (
                Dialect::Postgres,
                "do 'declare q text; begin q := ''drop role r''; execute ( ''alter role a superuser''); end'",
                vec!["drop role r", "alter role a superuser"],
            ),
            (
                Dialect::MariaDb,
                "prepare s from 'create user u'",
                vec!["create user u"],
            ),
            (
                Dialect::MariaDb,
                "create procedure p() begin set global max_connections = 80; end",
                vec![
                    "create procedure p() begin set global max_connections = 80",
                    "set global max_connections = 80",
                ],
            ),
        ] {
            assert_eq!(held(sql, dialect), begins, "{sql}");
        }
    }

    #[test]
    fn words_of_messages_and_names_begin_nothing() {
        for sql in [
            "do $$ begin raise notice 'could not create role x'; end $$",
            "do $$ begin raise exception 'Create role failed'; perform 'drop role x'; end $$",
            "do $$ declare lock int; begin perform 1; end $$",
            "select 'create role x'",
            "insert into t values ('drop table public.t')",
        ] {
            assert_eq!(held(sql, Dialect::Postgres), Vec::<&str>::new(), "{sql}");
        }
    }
}
