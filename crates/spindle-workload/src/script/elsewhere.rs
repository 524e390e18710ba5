//! Names of the schemas and databases of a server that are not Spindle's. A statement may read there, behind `from` or
//! `join`, and do nothing else with their contents: no list of verbs can be complete. [`super::beyond`] asks.

use super::bodies::has_body;
use super::places::{Token, sets_what_leads_elsewhere, tokens};
use crate::sql::Dialect;

/// What is read stands behind these, alone or in a list.
const READS: [&str; 4] = ["from", "join", "using", "like"];
/// Words that end the look for one of [`READS`], backwards.
const OTHER_CLAUSES: [&str; 16] = [
    "by",
    "call",
    "create",
    "drop",
    "having",
    "insert",
    "into",
    "on",
    "returning",
    "select",
    "set",
    "table",
    "tables",
    "update",
    "values",
    "where",
];
/// How a question says that it locks the rows that it reads.
const ROW_LOCKS: [&[&str]; 5] = [
    &["for", "update"],
    &["for", "share"],
    &["for", "no", "key"],
    &["for", "key", "share"],
    &["lock", "in", "share"],
];
/// Where a search path may lead: what is the server's or the session's own.
const HARMLESS_PATHS: [&str; 6] = [
    "pg_catalog",
    "pg_temp",
    "current",
    "false",
    "true",
    "information_schema",
];

/// Whether a statement, or one within its body, does more than read in one of `others`, which are in small letters.
pub(super) fn uses(sql: &str, dialect: Dialect, others: &[String]) -> bool {
    if others.is_empty() {
        return false;
    }
    let open = match has_body(sql, dialect) {
        true => opened(sql),
        false => sql.to_owned(),
    };
    let tokens = tokens(&open, dialect);
    // As names that hold a dot themselves are read.
    let others: Vec<String> = others.iter().map(|other| other.replace('.', "_")).collect();
    let is_other = |name: &str| others.iter().any(|other| other == name);
    let is_postgres = dialect == Dialect::Postgres;
    tokens.iter().enumerate().any(|(place, token)| {
        let parts: Vec<&str> = token
            .name()
            .map_or_else(Vec::new, |name| name.split('.').collect());
        let is_before = |sign: char| tokens.get(place + 1) == Some(&Token::Sign(sign));
        match parts[..] {
            [schema] => is_other(schema) && is_before('.'),
            [schema, _] if is_other(schema) => !is_read(&tokens, place, dialect),
            // PostgreSQL lets the database that is used stand before the schema.
            [_, schema] => is_postgres && is_other(schema) && is_before('.'),
            [first, schema, _] if is_postgres && is_other(schema) => match is_other(first) {
                // Most likely a column of a table that bears the name of a schema.
                true => is_before('('),
                false => !is_read(&tokens, place, dialect),
            },
            // A column of a table that stands elsewhere in the statement.
            _ => false,
        }
    })
}

/// Whether a body leads a session of a schema elsewhere.
pub(super) fn body_leads(sql: &str, dialect: Dialect) -> bool {
    if !has_body(sql, dialect) {
        return false;
    }
    let lower = sql.to_lowercase();
    if lower.contains("set_config") && sets_what_leads_elsewhere(&lower) {
        return true;
    }
    let open = opened(&lower);
    open.split("search_path").skip(1).any(|behind| {
        let end = behind.find(['$', ';', ')', '\n']).unwrap_or(behind.len());
        let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        let words = behind[..end].split(|letter: char| !is_letter(letter));
        let mut paths = words
            .filter(|word| !["", "to", "from"].contains(word))
            .take_while(|word| *word != "as");
        paths.any(|path| !HARMLESS_PATHS.contains(&path))
    })
}

/// A statement whose texts are read as if they were code: the marks around them go.
fn opened(sql: &str) -> String {
    let mut open = String::with_capacity(sql.len());
    let mut parts = sql.split('$');
    open.push_str(parts.next().unwrap_or(""));
    // Between two marks of dollars stands a tag.
    for part in parts {
        let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        match part.chars().all(is_letter) {
            true => open.push(' '),
            false => open.push_str(part),
        }
    }
    open.replace('\'', " ")
}

/// Whether what is named is only read: it stands in a list behind one of [`READS`], is the type of a cast, or that of a
/// column of a new table.
fn is_read(tokens: &[Token], place: usize, dialect: Dialect) -> bool {
    let before = |by: usize| place.checked_sub(by).map(|at| &tokens[at]);
    if before(1) == Some(&Token::Sign(':')) {
        return true;
    }
    let opens =
        |token: Option<&Token>| [Some(&Token::Sign('(')), Some(&Token::Sign(','))].contains(&token);
    let is_new = tokens.first().and_then(Token::name) == Some("create");
    let is_column = before(1).is_some_and(|token| token.name().is_some()) && opens(before(2));
    if dialect == Dialect::Postgres && is_new && is_column {
        return true;
    }
    // A function may change what it likes, also where a table might stand.
    if tokens.get(place + 1) == Some(&Token::Sign('(')) {
        return false;
    }
    let mut depth = 0_usize;
    for token in tokens[..place].iter().rev() {
        match token {
            Token::Sign(')') => depth += 1,
            Token::Sign('(') if depth == 0 => return false,
            Token::Sign('(') => depth -= 1,
            Token::Name(name) if depth == 0 && READS.contains(&name.as_str()) => {
                return !locks_rows(tokens) && !makes_view(tokens);
            }
            Token::Name(name) if depth == 0 && OTHER_CLAUSES.contains(&name.as_str()) => {
                return false;
            }
            _ => {}
        }
    }
    false
}

/// Whether a question locks the rows that it reads, so that others wait for them.
fn locks_rows(tokens: &[Token]) -> bool {
    let names: Vec<&str> = tokens.iter().filter_map(Token::name).collect();
    let is_policy = matches!(names[..], [_, "policy", ..]);
    let has = |lock: &[&str]| names.windows(lock.len()).any(|next| next == lock);
    !is_policy && ROW_LOCKS.iter().any(|lock| has(lock))
}

/// Whether a view is made: rows that are changed in it are changed in the table that it reads.
fn makes_view(tokens: &[Token]) -> bool {
    let names = tokens.iter().filter_map(Token::name);
    let mut names = names.skip_while(|name| *name != "create").peekable();
    while let Some(name) = names.next() {
        if name != "materialized" && names.peek() == Some(&"view") {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_used(sql: &str, dialect: Dialect) -> bool {
        let others = ["public", "app", "shop"].map(str::to_owned);
        uses(sql, dialect, &others)
    }

    #[test]
    fn what_others_have_is_only_read() {
        for sql in [
            "create rule r as on insert to public.prod do instead nothing",
            "create constraint trigger c after insert on public.prod execute function f()",
            "create recursive view public.v(n) as select 1",
            "create operator public.=== (function = f, leftarg = int)",
            "create text search configuration public.tc (copy = simple)",
            "select app.f(1)",
            "select * from app.f(1)",
            "select * from t, app.f(t.a)",
            "select a, (select app.f(b)) from t",
            "do $$ begin perform app.f(); end $$",
            "create function f() returns int language sql as 'insert into app.t values (1); select 1'",
            "with d as (select 1) insert into app.t select * from d",
            "values (app.f())",
            "create view v as select a.x from public.mine a",
            "create or replace temp view v as select a.x from public.mine a",
            "select a from public.prod for update",
            "select a from t join app.u using (a) for no key update skip locked",
            "with d as (select a from app.t for share) select a from d",
        ] {
            assert!(is_used(sql, Dialect::Postgres), "{sql}");
            let with_database = sql
                .replace("public.", "db.public.")
                .replace("app.", "\"db\" . app.");
            assert!(
                is_used(&with_database, Dialect::Postgres),
                "{with_database}"
            );
        }
        assert!(is_used("select app.public.f(1)", Dialect::Postgres));
        for sql in [
            "insert shop.t values (1)",
            "insert ignore shop.t(a) values (9)",
            "replace shop.t values (1)",
            "select nextval(shop.sq) as n",
            "select setval(`shop`.`sq`, 500)",
            "create fulltext index i on shop.t(v)",
            "create or replace definer=bob@localhost procedure shop.p() select 1",
            "create or replace sql security invoker view shop.v as select 1",
            "update acc straight_join shop.t b set b.a = 1",
            "call shop.p(1)",
            "create view v as select a from shop.t",
            "select a from shop.t for update",
            "select a from shop.t lock in share mode",
            "begin not atomic insert shop.t values (1); end",
        ] {
            let is_seen = is_used(sql, Dialect::MariaDb)
                || super::super::places::changes_elsewhere(sql, Dialect::MariaDb);
            assert!(is_seen, "{sql}");
        }
    }

    #[test]
    fn reading_there_is_allowed() {
        for sql in [
            "insert into t select m.a, m.b from public.mine m, app.other o",
            "update t set a = public.mine.a from public.mine where t.b = 1.5",
            "select x.a from t x join app.u as y on x.a = y.a",
            "select '1'::public.kind, 'app.t'::regclass",
            "create table t (a public.kind, b app.other not null)",
            "create table t (like public.mine)",
            "create materialized view v as select a.x from public.mine a",
            "create function f() returns bigint language sql as $f$ select count(*) from public.mine $f$",
            "grant select on t to public",
            "select a::public.kind from t for update",
            "create policy p on t for update using (a in (select m.a from app.m m))",
            "select public.app.id from public.app",
            "select public.a from t public",
        ] {
            let is_alias = sql.ends_with("t public");
            assert_eq!(is_used(sql, Dialect::Postgres), is_alias, "{sql}");
            let with_database = sql
                .replace("public.", "db.public.")
                .replace("app.", "db.app.");
            assert!(
                is_alias || !is_used(&with_database, Dialect::Postgres),
                "{with_database}"
            );
        }
        for sql in [
            "select shop.t.a from shop.t where a in (select a from shop.u)",
            "insert into t select a.b from shop.m1 a",
            "insert into t values ('shop.t')",
        ] {
            assert!(!is_used(sql, Dialect::MariaDb), "{sql}");
        }
    }

    #[test]
    fn bodies_stay_in_their_schema() {
        for sql in [
            "do $$ begin perform set_config('search_path', 'public', false); delete from prod; end $$",
            "do 'begin perform set_config(''search_path'', ''public'', false); end'",
            "create function f() returns int language sql set search_path = public as 'select 1'",
            "create function f() returns int language sql set search_path to pg_catalog, app as $$ select 1 $$",
        ] {
            assert!(body_leads(sql, Dialect::Postgres), "{sql}");
        }
        for sql in [
            "create function f() returns int language sql set search_path = pg_catalog, pg_temp as 'select 1'",
            "create function f() returns int language sql set search_path = '' as $$ select 1 $$",
            "create function f() returns int language sql set search_path from current as 'select 1'",
            "do $$ begin perform set_config('work_mem', '1MB', true); end $$",
            "select set_config('search_path', 'public', false)",
        ] {
            assert!(!body_leads(sql, Dialect::Postgres), "{sql}");
        }
    }
}
