//! Whether a statement changes something outside of what is Spindle's on a server: what its names say, wherever in the
//! statement they stand. Names of what is only read may say where that is. [`super::beyond`] asks.

use crate::sql::Dialect;

/// A part of a statement: a name with all its parts, in small letters, or a sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Name(String),
    Sign(char),
}

/// What changes all that it names, or makes something of it.
const CHANGES_ALL: [&str; 16] = [
    "drop", "truncate", "rename", "grant", "revoke", "lock", "alter", "cluster", "reindex",
    "vacuum", "analyze", "refresh", "security", "optimize", "repair", "import",
];
/// Words between `create`, `alter` or `drop` and what is made.
pub(super) const MODIFIERS: [&str; 14] = [
    "or",
    "replace",
    "temp",
    "temporary",
    "unique",
    "unlogged",
    "materialized",
    "if",
    "not",
    "exists",
    "concurrently",
    "only",
    "ignore",
    "low_priority",
];
/// Words between a verb and the name of a table.
const BETWEEN: [&str; 9] = [
    "only",
    "table",
    "ignore",
    "low_priority",
    "temp",
    "temporary",
    "unlogged",
    "delayed",
    "quick",
];
/// What of a new table changes the table that follows.
const CHANGES_THE_NEXT: [&str; 2] = ["references", "inherits"];
/// Where tables of MariaDB's `update` and `delete` of several tables stand.
const BEFORE_TABLES: [&str; 5] = ["update", "from", "using", "join", "straight_join"];

/// Whether something is changed whose name says in which schema or database it is.
pub(super) fn changes_elsewhere(sql: &str, dialect: Dialect) -> bool {
    let tokens = tokens(sql, dialect);
    let names: Vec<&str> = tokens.iter().filter_map(Token::name).collect();
    let Some(first) = names.first() else {
        return false;
    };
    let any = |names: &[&str]| names.iter().any(|name| is_placed(name));
    let is_of_column =
        matches!(names[..], ["comment", "on", "column", name, ..] if name.matches('.').count() < 2);
    let changes_all = CHANGES_ALL.contains(first) || *first == "comment" && !is_of_column;
    changes_all && any(&names)
        || makes_elsewhere(&tokens)
        || names.windows(2).any(|pair| {
            CHANGES_THE_NEXT.contains(&pair[0]) && is_placed(pair[1])
                || *first == "create" && pair[0] == "of" && is_placed(pair[1])
        })
        || follows(&tokens, "into", is_placed)
        || follows(&tokens, "update", is_placed)
        || deletes_elsewhere(&tokens)
        || *first == "copy"
            && names.contains(&"from")
            && names.get(1).is_some_and(|name| is_placed(name))
        || dialect == Dialect::MariaDb && joins_elsewhere(first, &tokens)
        || counts_elsewhere(sql)
}

/// Whether the sessions of a schema would work elsewhere afterwards, or as another user.
pub(super) fn leaves_schema(sql: &str, dialect: Dialect) -> bool {
    let tokens = tokens(sql, dialect);
    let names: Vec<&str> = tokens.iter().filter_map(Token::name).collect();
    match names[..] {
        ["set", ref more @ ..] => {
            let more: Vec<&str> = more
                .iter()
                .copied()
                .filter(|word| !["session", "local"].contains(word))
                .collect();
            matches!(
                more[..],
                ["search_path" | "schema" | "role" | "authorization", ..]
            )
        }
        ["reset", "all" | "search_path" | "role" | "session", ..] | ["discard", "all"] => true,
        _ => {
            let calls = names
                .iter()
                .any(|name| name.rsplit('.').next() == Some("set_config"));
            calls && sets_what_leads_elsewhere(&sql.to_lowercase())
        }
    }
}

/// Whether a call of `set_config` names a setting that leads elsewhere, or one that only the server works out.
pub(super) fn sets_what_leads_elsewhere(lower: &str) -> bool {
    let mut calls = lower.split("set_config").skip(1);
    calls.any(|call| {
        let arguments = call
            .trim_start()
            .trim_start_matches(['"', '('])
            .trim_start();
        let named = arguments
            .strip_prefix('\'')
            .and_then(|name| name.split_once('\''));
        named.is_none_or(|(name, behind)| {
            let leads = ["search_path", "role", "session_authorization"];
            leads.contains(&name.trim()) || !behind.trim_start().starts_with(',')
        })
    })
}

impl Token {
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Token::Name(name) => Some(name),
            Token::Sign(_) => None,
        }
    }
}

/// Temporary tables are a session's own, wherever it works.
fn is_placed(name: &str) -> bool {
    name.contains('.') && !name.starts_with("pg_temp")
}

/// What is made: its own name, and that of the table that an index, a trigger or a rule is on.
fn makes_elsewhere(tokens: &[Token]) -> bool {
    let names: Vec<&str> = tokens.iter().filter_map(Token::name).collect();
    let ["create", more @ ..] = &names[..] else {
        return false;
    };
    let kind = more.iter().position(|word| !MODIFIERS.contains(word));
    let Some(kind) = kind else {
        return false;
    };
    let own = more[kind + 1..]
        .iter()
        .find(|word| !MODIFIERS.contains(word) && **word != "table");
    let is_on_table = ["index", "trigger", "rule", "policy", "statistics"].contains(&more[kind]);
    let on = more.iter().position(|word| *word == "on");
    let on = on.and_then(|on| more[on + 1..].iter().find(|word| !BETWEEN.contains(word)));
    own.is_some_and(|name| is_placed(name)) || is_on_table && on.is_some_and(|name| is_placed(name))
}

/// Whether the first name behind one of these words is such a one.
fn follows(tokens: &[Token], word: &str, is_such: impl Fn(&str) -> bool) -> bool {
    let at = |(place, token): (usize, &Token)| (token.name() == Some(word)).then_some(place);
    tokens.iter().enumerate().filter_map(at).any(|place| {
        let mut names = tokens[place + 1..].iter().map_while(Token::name);
        let name = names.find(|name| !BETWEEN.contains(name));
        name.is_some_and(&is_such)
    })
}

/// `delete from`, at the beginning or within a `with`.
fn deletes_elsewhere(tokens: &[Token]) -> bool {
    tokens.windows(2).enumerate().any(|(place, pair)| {
        let is_delete = pair[0].name() == Some("delete") && pair[1].name() == Some("from");
        let mut names = tokens[place + 2..].iter().map_while(Token::name);
        is_delete
            && names
                .find(|name| !BETWEEN.contains(name))
                .is_some_and(is_placed)
    })
}

/// MariaDB changes rows of several tables at once: each of those named before what is set, or before the condition.
fn joins_elsewhere(first: &str, tokens: &[Token]) -> bool {
    let end = match first {
        "update" => "set",
        "delete" => "where",
        _ => return false,
    };
    let tables = tokens.iter().take_while(|token| token.name() != Some(end));
    let mut is_table_next = false;
    tables.into_iter().any(|token| match token {
        Token::Sign(',') => {
            is_table_next = true;
            false
        }
        Token::Name(name) if BEFORE_TABLES.contains(&name.as_str()) || name == "delete" => {
            is_table_next = true;
            false
        }
        Token::Name(name) if BETWEEN.contains(&name.as_str()) => false,
        Token::Name(name) => std::mem::take(&mut is_table_next) && is_placed(name),
        Token::Sign(_) => false,
    })
}

/// Sequences are named in texts.
fn counts_elsewhere(sql: &str) -> bool {
    let sql = sql.to_lowercase();
    ["nextval", "setval"].iter().any(|function| {
        sql.match_indices(function).any(|(at, _)| {
            let behind = &sql[at + function.len()..];
            let text = behind.split('\'').nth(1);
            behind.trim_start().starts_with('(') && text.is_some_and(|name| name.contains('.'))
        })
    })
}

/// The names and signs of a statement; texts and comments are none. What MariaDB alone carries out of a comment
/// (`/*! ... */`) is not left out.
pub(super) fn tokens(sql: &str, dialect: Dialect) -> Vec<Token> {
    let is_mariadb = dialect == Dialect::MariaDb;
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(letter) = rest.chars().next() {
        let behind = &rest[letter.len_utf8()..];
        let is_comment = begins_comment(rest, is_mariadb);
        rest = if is_comment {
            rest.split_once('\n').map_or("", |(_, behind)| behind)
        } else if rest.starts_with("/*") {
            behind_comment(rest, is_mariadb)
        } else if letter == '\'' || is_mariadb && letter == '"' {
            behind_text(behind, letter, is_mariadb)
        } else if !is_mariadb && (rest.starts_with("E'") || rest.starts_with("e'")) {
            behind_text(&rest[2..], '\'', true)
        } else if let Some(tag) = dollar_tag(rest).filter(|_| !is_mariadb) {
            let body = &rest[tag.len()..];
            body.split_once(tag).map_or("", |(_, behind)| behind)
        } else if !is_mariadb && (rest.starts_with("U&\"") || rest.starts_with("u&\"")) {
            // A name with escapes may be any name: it counts as one that says where it is.
            tokens.push(Token::Name("escaped.name".to_owned()));
            rest[3..].split_once('"').map_or("", |(_, behind)| behind)
        } else if letter == '"' || letter == '`' {
            let after = behind_text(behind, letter, false);
            let name = &behind[..behind.len() - after.len()];
            let name = name.strip_suffix(letter).unwrap_or(name).to_lowercase();
            // A dot within a name sets no parts apart.
            tokens.push(Token::Name(name.replace('.', "_")));
            after
        } else if letter.is_alphanumeric() || letter == '_' {
            let is_within = |letter: char| letter.is_alphanumeric() || "_$".contains(letter);
            let end = rest.find(|letter| !is_within(letter)).unwrap_or(rest.len());
            match letter.is_ascii_digit() && !(is_mariadb && is_name_of_mariadb(&rest[..end])) {
                // Not to be taken for a part of a name.
                true => tokens.push(Token::Sign('0')),
                false => tokens.push(Token::Name(rest[..end].to_lowercase())),
            }
            &rest[end..]
        } else {
            if !letter.is_whitespace() {
                tokens.push(Token::Sign(letter));
            }
            behind
        };
    }
    joined(tokens)
}

/// Whether a comment begins here that ends with the line: MariaDB takes `5--1` for a difference.
fn begins_comment(text: &str, is_mariadb: bool) -> bool {
    match text.strip_prefix("--") {
        Some(behind) => {
            let next = behind.chars().next();
            !is_mariadb || next.is_none_or(|letter| letter.is_whitespace() || letter.is_control())
        }
        None => is_mariadb && text.starts_with('#'),
    }
}

/// Whether a word that begins with a digit is a name, as MariaDB allows it, and not a number such as `5`, `1e5` or
/// `0x1F`.
fn is_name_of_mariadb(word: &str) -> bool {
    let behind = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let has_only = |digits: &str, is_digit: fn(&char) -> bool| digits.chars().all(|d| is_digit(&d));
    let is_number = match word.get(..2) {
        Some("0x") => has_only(&word[2..], char::is_ascii_hexdigit),
        Some("0b") => has_only(&word[2..], |digit| matches!(digit, '0' | '1')),
        _ => false,
    };
    let exponent = behind.strip_prefix(['e', 'E']);
    let is_power = exponent.is_some_and(|digits| has_only(digits, char::is_ascii_digit));
    !behind.is_empty() && !is_number && !is_power
}

/// Names with the parts that dots set apart, with or without blanks.
fn joined(tokens: Vec<Token>) -> Vec<Token> {
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut is_after_dot = false;
    for token in tokens {
        match (&mut joined[..], &token) {
            ([.., Token::Name(_)], Token::Sign('.')) => is_after_dot = true,
            ([.., Token::Name(name)], Token::Name(part)) if is_after_dot => {
                name.push('.');
                name.push_str(part);
                is_after_dot = false;
            }
            _ => {
                // Behind the dot stands an operator, or all columns.
                if std::mem::take(&mut is_after_dot) {
                    joined.push(Token::Sign('.'));
                }
                joined.push(token);
            }
        }
    }
    joined
}

/// What follows a comment, or the beginning of one that MariaDB carries out: its marks go, and its words stay.
fn behind_comment(text: &str, is_mariadb: bool) -> &str {
    let body = &text[2..];
    let carried_out = body.strip_prefix('!').or_else(|| body.strip_prefix("M!"));
    if let Some(words) = carried_out.filter(|_| is_mariadb) {
        return words.trim_start_matches(|letter: char| letter.is_ascii_digit());
    }
    let mut depth = 1;
    let mut rest = body;
    while depth > 0 && !rest.is_empty() {
        let begins = rest
            .find("/*")
            .filter(|_| !is_mariadb)
            .unwrap_or(rest.len());
        let ends = rest.find("*/").unwrap_or(rest.len());
        let place = begins.min(ends);
        depth = if begins < ends { depth + 1 } else { depth - 1 };
        rest = rest.get(place + 2..).unwrap_or("");
    }
    rest
}

/// What follows a text; a quote that is doubled, or in MariaDB behind a backslash, does not end it.
fn behind_text(text: &str, quote: char, has_escapes: bool) -> &str {
    let mut letters = text.char_indices().peekable();
    while let Some((place, letter)) = letters.next() {
        if letter == '\\' && has_escapes {
            letters.next();
        } else if letter == quote {
            match letters.peek() {
                Some((_, next)) if *next == quote => _ = letters.next(),
                _ => return &text[place + 1..],
            }
        }
    }
    ""
}

/// `$$` or `$tag$`, with which a text of PostgreSQL begins and ends.
fn dollar_tag(text: &str) -> Option<&str> {
    let body = text.strip_prefix('$')?;
    let end = body.find('$')?;
    let is_tag = |letter: char| letter.is_alphanumeric() || letter == '_';
    let tag = &body[..end];
    let is_number = tag.starts_with(|letter: char| letter.is_ascii_digit());
    (tag.chars().all(is_tag) && !is_number).then(|| &text[..end + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_changed_elsewhere_is_seen_wherever_it_stands() {
        for sql in [
            "drop table t, public.mine2",
            "drop table k , public . mine2",
            "drop table t, public/* x */.mine2",
            "truncate t, public.mine",
            "truncate table only \"Public\".\"Mine\"",
            "alter table u set schema x.y",
            "alter table public.u add column a int",
            "with d as (delete from public.mine returning a) insert into t select a from d",
            "with d as (update only public.mine set a = 1 returning a) select * from d",
            "with d as (insert into public.mine values (1) returning a) select * from d",
            "select 1 as a into public.made",
            "select 1 as a into temp table public.made",
            "grant select on public.mine to public",
            "comment on table public.mine is 'x'",
            "comment on column public.mine.a is 'x'",
            "create table t (a int references public.mine)",
            "create table t () inherits (public.mine)",
            "create table p partition of public.mine for values in (1)",
            "create index on public.mine (a)",
            "create trigger x after insert on public.mine execute function f()",
            "merge into public.mine using t on true when matched then delete",
            "copy public.mine from stdin",
            "lock table public.mine",
            "select nextval('public.s')",
            "insert into t select 1; delete from public.mine",
            "with d as (select E'it\\'s' as a), e as (delete from public.mine returning a) select 1",
            "drop table \"a\"\"b\".t",
            "drop table shop.public.t",
            "delete from \"Shop\" . public . \"T\"",
        ] {
            assert!(changes_elsewhere(sql, Dialect::Postgres), "{sql}");
        }
        for sql in [
            "drop table if exists t, shop.m2",
            "rename table t to shop.moved",
            "alter table k rename to shop.k2",
            "delete t2 from t join shop.m1 t2 on t.a = t2.a",
            "delete from t, t2 using t join shop.m1 t2",
            "update t, shop.m1 set m1.a = 5",
            "update t join `shop` . `m1` m on m.a = t.a set m.b = 5",
            "/*!50000 drop table shop.m2 */",
            "replace into shop.m1 values (1)",
            "load data infile 'x' into table shop.m1",
            "insert ignore into shop.m1 values (1)",
            "analyze table shop.m1",
            "delete t2 from t join u on t.a = 5--1 join t2; delete from shop.m1",
            "delete from 2024shop.orders",
            "drop table `it``s`.`t`",
        ] {
            assert!(changes_elsewhere(sql, Dialect::MariaDb), "{sql}");
        }
    }

    #[test]
    fn what_is_read_may_lie_anywhere() {
        for sql in [
            "insert into t select m.a, m.b from public.mine m, public.other",
            "select * from public.mine for update of mine",
            "update t set a = public.mine.a from public.mine where t.b = 1.5",
            "delete from t where a in (select a from public.mine)",
            "create table t as select 'drop table x.y' from public.mine -- drop table x.y",
            "create function f() returns int language sql as $f$ select 1.5 $f$",
            "comment on column t.a is 'x'",
            "alter table t set (fillfactor = 50)",
            "insert into t values (1) on conflict do update set a = excluded.a",
            "insert into pg_temp.t values (1)",
            "create table t (a numeric default 1.5, b text default 'a.b')",
            "with d as (delete from t using public.mine m where m.a = t.a returning t.a) select 1",
            "select nextval('s')",
            "create view v as select a.x from public.mine a",
            "drop table \"v1.5\"",
        ] {
            assert!(!changes_elsewhere(sql, Dialect::Postgres), "{sql}");
        }
        for sql in [
            "update t join u on t.a = u.a set t.b = u.b",
            "delete t from t join u on t.a = u.a where u.b in (select b from shop.m1)",
            "insert into t values ('it\\'s', \"drop table x.y\") # x.y",
            "insert into t select a.b, a.c from shop.m1 a",
            "drop table `v1.5`",
        ] {
            assert!(!changes_elsewhere(sql, Dialect::MariaDb), "{sql}");
        }
    }

    #[test]
    fn names_with_escapes_may_be_anywhere() {
        for sql in [
            "update U&\"p\\0075blic\".items set a = 1",
            "insert into u&\"a\" values (1)",
            "drop table U&\"a\"",
        ] {
            assert!(changes_elsewhere(sql, Dialect::Postgres), "{sql}");
        }
        for sql in [
            "update t set a = u & \"b\"",
            "insert into t values (U&'p.q')",
        ] {
            assert!(!changes_elsewhere(sql, Dialect::Postgres), "{sql}");
        }
    }

    #[test]
    fn sessions_stay_in_their_schema() {
        for sql in [
            "set search_path to public",
            "SET LOCAL search_path = s",
            "set session schema 'x'",
            "set role ann",
            "set session authorization ann",
            "reset all",
            "reset search_path",
            "discard all",
            "select set_config('search_path', 'public', false)",
            "select pg_catalog.set_config('search_' || 'path', 'public', false)",
            "select set_config(lower('ROLE'), 'ann', true)",
            "select set_config ( 'work_mem', '1MB', true), set_config('role', 'ann', true)",
        ] {
            assert!(leaves_schema(sql, Dialect::Postgres), "{sql}");
        }
        for sql in [
            "set work_mem = '1GB'",
            "reset work_mem",
            "select 'search_path'",
            "select pg_catalog.set_config('work_mem', '1MB', true)",
        ] {
            assert!(!leaves_schema(sql, Dialect::Postgres), "{sql}");
        }
    }
}
