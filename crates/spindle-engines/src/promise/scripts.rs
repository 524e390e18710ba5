//! Settings that clients set for their own session or one transaction, and that no fresh session has: found in the text
//! of what they send, and of functions and procedures. Quotes are passed over, so that a body or a text that is
//! executed counts, too.

use std::collections::BTreeSet;

use spindle_workload::sql::Dialect;

use super::{Promise, SettingsInForce, innodb, postgres, sqlite};

/// The value of what a text sets by other means than a literal.
const NOT_KNOWN: &str = "not known";
/// In a reason, behind what only the workload has set.
const BY_WORKLOAD: &str = " (set by the workload)";
/// PostgreSQL's function that sets what it is given the name of.
const SET_CONFIG: &str = "set_config";
/// What a literal may be followed by to be the whole value: no operator, call or name's dot.
const GOES_ON: &str = "+-*/|%&^<>=.!:?~({[#@";

/// A setting, and the value that a text gives it.
pub type Set = (String, String);

/// A text in pieces: words in small letters, and other signs that are no quotes, each with the byte before it.
type Token<'a> = (&'a str, Option<u8>);

/// Words, in small letters: a text without one of them sets nothing that matters.
pub fn words(dialect: Dialect) -> Vec<&'static str> {
    match dialect {
        Dialect::Postgres => [&postgres::ASKED[..], &[SET_CONFIG]].concat(),
        Dialect::MariaDb => innodb::ASKED.to_vec(),
        Dialect::Sqlite => [&sqlite::ASKED[..], &[sqlite::ATTACH]].concat(),
    }
}

/// What these texts set, each once.
pub fn set_by(dialect: Dialect, texts: &[String]) -> BTreeSet<Set> {
    let mut set = BTreeSet::new();
    for text in texts {
        let text = text.to_lowercase();
        let tokens = tokens(&text);
        let has = |word: &str| tokens.iter().any(|(token, _)| *token == word);
        let names: &[&str] = match dialect {
            Dialect::Postgres if has("system") => &postgres::ASKED,
            // The others are the server's alone, and may be names of columns.
            Dialect::Postgres if has("set") || has(SET_CONFIG) => &["synchronous_commit"],
            Dialect::MariaDb if has("set") => &innodb::ASKED,
            Dialect::Sqlite if has("pragma") => &sqlite::ASKED,
            Dialect::Sqlite if attaches(&tokens) => {
                set.insert((sqlite::ATTACH.to_owned(), NOT_KNOWN.to_owned()));
                continue;
            }
            _ => continue,
        };
        for (at, (name, _)) in tokens.iter().enumerate() {
            if *name == SET_CONFIG && dialect == Dialect::Postgres && !is_named(&tokens[at + 1..]) {
                set.insert(("synchronous_commit".to_owned(), NOT_KNOWN.to_owned()));
            }
            if names.contains(name)
                && let Some(value) = value(dialect, &tokens[at + 1..])
            {
                set.insert(((*name).to_owned(), value.to_owned()));
            }
        }
    }
    set
}

/// The promise of sessions with these settings, in which any of `set` may be in force at a commit.
pub(crate) fn weakest(
    settings: &SettingsInForce,
    set: &BTreeSet<Set>,
    of: impl Fn(&SettingsInForce) -> Promise,
) -> Promise {
    let mut variants = BTreeSet::from([settings.clone()]);
    for (name, value) in set {
        let with = |variant: &SettingsInForce| {
            let mut variant = variant.clone();
            variant.insert(name.clone(), value.clone());
            variant
        };
        let more: Vec<SettingsInForce> = variants.iter().map(with).collect();
        variants.extend(more);
    }
    let fresh = of(settings);
    variants.iter().fold(fresh.clone(), |all, variant| {
        let mut promise = of(variant);
        for reason in &mut promise.reasons {
            if !fresh.reasons.contains(reason) {
                reason.what.push_str(BY_WORKLOAD);
            }
        }
        all.and(promise)
    })
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let word = text[at..].find(|letter: char| !is_word(letter));
        let length = match word.unwrap_or(text.len() - at) {
            0 => letter.len_utf8(),
            length => length,
        };
        if !letter.is_whitespace() && !"'\"`\\".contains(letter) {
            let before = at.checked_sub(1).map(|before| text.as_bytes()[before]);
            tokens.push((&text[at..at + length], before));
        }
        at += length;
    }
    tokens
}

/// The value behind a setting's name; `None` when nothing is set there, or what a fresh session has.
fn value<'a>(dialect: Dialect, rest: &[Token<'a>]) -> Option<&'a str> {
    let links = ["=", ":", "(", ",", "to"];
    let skipped = rest.iter().take_while(|(token, _)| links.contains(token));
    let skipped = skipped.count();
    let ends = |token: Option<&Token<'_>>| token.is_none_or(|(token, _)| *token == ";");
    // A pragma without a value is a question.
    if dialect == Dialect::Sqlite && ends(rest.get(skipped)) {
        return None;
    }
    let (Some((value, _)), 1..) = (rest.get(skipped), skipped) else {
        return Some(NOT_KNOWN);
    };
    let goes_on = rest
        .get(skipped + 1)
        .is_some_and(|(token, _)| GOES_ON.contains(token));
    let is_word = value
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    // `:=` gives a value, and `:mode` is a variable.
    let is_variable = rest[skipped - 1].0 == ":";
    match *value {
        _ if is_variable => Some(NOT_KNOWN),
        "default" if !goes_on => None,
        _ if goes_on || !is_word => Some(NOT_KNOWN),
        value => Some(value),
    }
}

/// Whether the first argument of `set_config` is a literal and nothing else.
fn is_named(rest: &[Token<'_>]) -> bool {
    let (Some(("(", _)), Some((name, Some(b'\'')))) = (rest.first(), rest.get(1)) else {
        return false;
    };
    let is_word = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let next = rest.get(2).map_or("", |(token, _)| token);
    // `app.user` is an application's setting.
    is_word && (next == "," || next == ".")
}

/// Whether it attaches a database that has a file.
fn attaches(tokens: &[Token<'_>]) -> bool {
    let words: Vec<&str> = tokens.iter().map(|(token, _)| *token).collect();
    let rest = match words.as_slice() {
        ["attach", "database", rest @ ..] | ["attach", rest @ ..] => rest,
        _ => return false,
    };
    !matches!(rest, [":", "memory", ":", ..] | ["as", ..])
}

#[cfg(test)]
mod tests {
    use super::super::CommitStorage;
    use super::super::Keeps::{AllButTheLast, EveryCommit, MayBeDamaged, Unknown};
    use super::*;

    fn values(dialect: Dialect, text: &str) -> Vec<String> {
        let set = set_by(dialect, &[text.to_owned()]);
        set.into_iter().map(|of| of.1).collect()
    }

    #[test]
    fn settings_of_sessions_and_transactions_are_found_in_postgres() {
        let twice = "do $$begin execute 'set synchronous_commit = ''off'''; end$$";
        let body =
            "create function f() returns int set synchronous_commit to off as $x$select 1$x$";
        for (text, found) in [
            ("SET synchronous_commit = OFF", "off"),
            ("set local Synchronous_Commit to 'off'", "off"),
            (
                "begin; set local \"synchronous_commit\"=0; update t set a = 1",
                "0",
            ),
            (
                "select set_config('synchronous_commit', 'local', true)",
                "local",
            ),
            (
                "select pg_catalog.set_config( 'synchronous_commit','off',false), 1",
                "off",
            ),
            (twice, "off"),
            (body, "off"),
            ("alter role spindle set synchronous_commit = off", "off"),
            (
                "update pg_settings set setting = 'off' where name = 'synchronous_commit'",
                NOT_KNOWN,
            ),
            ("set synchronous_commit = :mode", NOT_KNOWN),
            ("set synchronous_commit = $1", NOT_KNOWN),
            (
                "select set_config('synchronous_commit', 'o' || 'ff', true)",
                NOT_KNOWN,
            ),
            ("select set_config($1, $2, false)", NOT_KNOWN),
            (
                "select set_config('synchronous_' || 'commit', 'off', false)",
                NOT_KNOWN,
            ),
            (
                "select set_config(name, value, true) from wishes",
                NOT_KNOWN,
            ),
            ("alter system set fsync = off", "off"),
        ] {
            assert_eq!(values(Dialect::Postgres, text), [found], "{text}");
        }
        for text in [
            "select set_config('app.user', $1, true)",
            "select set_config('search_path', 'a', true)",
            "set synchronous_commit to default",
            "show synchronous_commit",
            "select current_setting('synchronous_commit')",
            "update files set fsync = 0",
            "set work_mem = '4MB'",
        ] {
            assert!(values(Dialect::Postgres, text).is_empty(), "{text}");
        }
    }

    #[test]
    fn settings_are_found_in_mariadb_and_sqlite() {
        let commit = "innodb_flush_log_at_trx_commit";
        for text in [
            format!("set global {commit} = 2"),
            format!("set @@global.{commit} := 2, autocommit = 1"),
            format!("execute immediate 'set global {commit}=2'"),
        ] {
            assert_eq!(values(Dialect::MariaDb, &text), ["2"], "{text}");
        }
        assert!(values(Dialect::MariaDb, &format!("select @@{commit}")).is_empty());
        for (text, found) in [
            ("PRAGMA synchronous = OFF", "off"),
            ("pragma main.synchronous(0)", "0"),
            ("pragma journal_mode='memory';", "memory"),
            ("attach 'other.db' as other", NOT_KNOWN),
            ("attach database ? as other", NOT_KNOWN),
        ] {
            assert_eq!(values(Dialect::Sqlite, text), [found], "{text}");
        }
        for text in [
            "pragma journal_mode",
            "pragma synchronous;",
            "select synchronous from t",
            "attach ':memory:' as m",
            "attach database '' as t",
        ] {
            assert!(values(Dialect::Sqlite, text).is_empty(), "{text}");
        }
    }

    /// Any may be in force at a commit: two that are set apart are weak together.
    #[test]
    fn the_weakest_that_may_be_in_force_is_promised() {
        let of = |texts: &[&str], journal: &str, synchronous: &str| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let fresh = [("journal_mode", journal), ("synchronous", synchronous)];
            let fresh = fresh.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let set = set_by(Dialect::Sqlite, &texts);
            weakest(&fresh.into(), &set, |settings| {
                sqlite::promise(settings, &CommitStorage::default())
            })
        };
        let known = |promise: &Promise| {
            let told = promise
                .reasons
                .iter()
                .filter(|reason| reason.what.contains('='));
            told.map(|reason| reason.keeps).max()
        };
        let normal = "pragma synchronous = normal";
        assert_eq!(known(&of(&[], "wal", "full")), Some(EveryCommit));
        assert_eq!(known(&of(&[normal], "wal", "full")), Some(AllButTheLast));
        let promise = of(&[normal, "pragma journal_mode = delete"], "wal", "full");
        assert_eq!(known(&promise), Some(MayBeDamaged));
        let both = "journal_mode = delete, synchronous = normal (set by the workload)";
        assert_eq!(promise.reasons[0].what, both);
        let stronger = of(&["pragma synchronous = full"], "wal", "off");
        assert_eq!(known(&stronger), Some(MayBeDamaged));
        assert_eq!(
            known(&of(&["attach 'a.db' as a"], "wal", "full")),
            Some(Unknown)
        );
    }
}
