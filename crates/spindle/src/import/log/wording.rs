//! What a text of a log is, and whether it is replayed. A text is cut into words outside of quotes and comments; what
//! begins a statement decides. Only what belongs to a database is taken: nothing of users, files, other servers or the
//! server itself. So no password reaches a recording.

use spindle_workload::leaves_database;
use spindle_workload::sql::Dialect;

use super::super::pieces::{comment_bytes, is_comment, is_word, quoted_bytes, until};

/// No longer text is taken, bytes.
pub const TEXT_BYTES_MAX: usize = 8 << 20;

/// What a statement does to the transaction of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransactionEffect {
    /// Nothing.
    Statement,
    /// It ends it, keeps what was changed, and is a transaction by itself: MariaDB and MySQL commit before and after
    /// what changes tables, users or databases ("SQL statements that cause an implicit commit").
    StandsAlone,
    /// It begins one.
    Begins,
    /// It ends it, and keeps what was changed. `chains`: another one like it begins at once.
    Commits { chains: bool },
    /// It ends it, and undoes what was changed.
    RollsBack { chains: bool },
    /// From now on each statement is one (`true`), or statements belong together until a commit.
    Autocommit(bool),
    /// It ends it for the session. By this name it is committed or rolled back later, perhaps by another session.
    Prepares(String),
    /// It ends the one that was prepared by this name, and keeps what was changed or undoes it.
    EndsPrepared { name: String, commits: bool },
}

impl TransactionEffect {
    /// Whether it says where a transaction begins, this one or those that follow.
    pub fn tells_of_begins(&self) -> bool {
        matches!(
            self,
            TransactionEffect::Begins | TransactionEffect::Autocommit(_)
        )
    }

    /// Whether it ends the transaction of its session.
    pub fn ends_one(&self) -> bool {
        match self {
            TransactionEffect::Commits { .. }
            | TransactionEffect::RollsBack { .. }
            | TransactionEffect::Prepares(_)
            | TransactionEffect::StandsAlone => true,
            TransactionEffect::Statement
            | TransactionEffect::Begins
            | TransactionEffect::Autocommit(_)
            | TransactionEffect::EndsPrepared { .. } => false,
        }
    }
}

/// A text that is replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its effects, in order; several where it has several statements.
    pub effects: Vec<TransactionEffect>,
    /// The highest parameter, `$3`; 0 if there is none.
    pub parameters: usize,
}

/// Why a text is left out.
pub type WhyLeftOut = &'static str;

/// A text that is left out. What it does to the transaction of its session is done all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Why. Nothing of the text is in it.
    pub reason: WhyLeftOut,
    /// Its effects but for [`TransactionEffect::Statement`], in order.
    pub effects: Vec<TransactionEffect>,
}

impl From<WhyLeftOut> for Left {
    fn from(reason: WhyLeftOut) -> Left {
        Left {
            reason,
            effects: Vec::new(),
        }
    }
}

const USERS: WhyLeftOut = "users, roles and rights (they may tell passwords)";
const SERVER: WhyLeftOut = "what changes the server, or reaches files and other servers";
const ELSEWHERE: WhyLeftOut =
    "what changes another database, which it names, or works on the whole server";
const COPY: WhyLeftOut = "COPY and LOAD DATA, whose rows are not in the log";
const UNKNOWN: WhyLeftOut = "commands that are not known to be harmless";
const CURSOR: WhyLeftOut = "statements that are cut off, or too long";
const SETTINGS: WhyLeftOut = "settings of sessions that are not known to be harmless";
const TWO_PHASE: WhyLeftOut = "two-phase commits, which are replayed as a commit or a rollback where the transaction was prepared";
const CONDITIONAL: WhyLeftOut = "comments that are carried out (/*! ... */)";

/// Statements that are taken, by their first words.
const TAKEN: [&str; 31] = [
    "select",
    "insert",
    "update",
    "delete",
    "with",
    "merge",
    "replace",
    "values",
    "table",
    "savepoint",
    "release",
    "set",
    "reset",
    "truncate",
    "lock",
    "unlock",
    "analyze",
    "vacuum",
    "declare",
    "fetch",
    "move",
    "close",
    "explain",
    "show",
    "describe",
    "refresh",
    "call",
    "optimize",
    "create",
    "alter",
    "drop",
];
/// Before and after what begins so MariaDB and MySQL commit, beside `CREATE`, `DROP`, `SET PASSWORD` and `START SLAVE`.
const COMMITTING: [&str; 18] = [
    "alter",
    "analyze",
    "cache",
    "change",
    "check",
    "flush",
    "grant",
    "install",
    "lock",
    "optimize",
    "rename",
    "repair",
    "reset",
    "revoke",
    "shutdown",
    "stop",
    "truncate",
    "uninstall",
];
/// What may be created, altered and dropped.
const OBJECTS: [&str; 9] = [
    "table",
    "index",
    "unique",
    "view",
    "sequence",
    "materialized",
    "temporary",
    "temp",
    "unlogged",
];
/// Engines of tables that lie in the server's own files.
const ENGINES: [&str; 5] = ["innodb", "myisam", "aria", "memory", "heap"];
/// Words outside of quotes that a statement must not have.
const WORDS: [(&str, WhyLeftOut); 72] = [
    ("federated", SERVER),
    ("directory", SERVER),
    ("dblink", SERVER),
    ("dblink_connect", SERVER),
    ("dblink_exec", SERVER),
    ("outfile", SERVER),
    ("dumpfile", SERVER),
    ("infile", COPY),
    ("load_file", SERVER),
    ("sys_exec", SERVER),
    ("sys_eval", SERVER),
    ("lo_import", SERVER),
    ("lo_export", SERVER),
    ("pg_read_file", SERVER),
    ("pg_read_binary_file", SERVER),
    ("pg_ls_dir", SERVER),
    ("pg_file_write", SERVER),
    ("pg_terminate_backend", SERVER),
    ("pg_cancel_backend", SERVER),
    ("pg_reload_conf", SERVER),
    ("pg_rotate_logfile", SERVER),
    ("pg_switch_wal", SERVER),
    ("pg_promote", SERVER),
    ("pg_create_logical_replication_slot", SERVER),
    ("query_to_xml", SERVER),
    ("database_to_xml", SERVER),
    ("uescape", SERVER),
    ("ts_stat", SERVER),
    ("ts_rewrite", SERVER),
    ("crosstab", SERVER),
    ("connectby", SERVER),
    ("dblink_connect_u", SERVER),
    ("dblink_send_query", SERVER),
    ("dblink_open", SERVER),
    ("pg_file_unlink", SERVER),
    ("pg_file_rename", SERVER),
    ("pg_file_sync", SERVER),
    ("pg_logfile_rotate", SERVER),
    ("pg_stat_file", SERVER),
    ("pg_ls_logdir", SERVER),
    ("pg_ls_waldir", SERVER),
    ("pg_ls_archive_statusdir", SERVER),
    ("pg_ls_tmpdir", SERVER),
    ("pg_drop_replication_slot", SERVER),
    ("pg_create_physical_replication_slot", SERVER),
    ("pg_replication_origin_create", SERVER),
    ("pg_backup_start", SERVER),
    ("pg_start_backup", SERVER),
    ("lo_from_bytea", SERVER),
    ("lo_put", SERVER),
    ("lo_create", SERVER),
    ("lo_creat", SERVER),
    ("lowrite", SERVER),
    ("query_to_xml_and_xmlschema", SERVER),
    ("query_to_xmlschema", SERVER),
    ("cursor_to_xml", SERVER),
    ("cursor_to_xmlschema", SERVER),
    ("table_to_xml", SERVER),
    ("table_to_xmlschema", SERVER),
    ("table_to_xml_and_xmlschema", SERVER),
    ("schema_to_xml", SERVER),
    ("schema_to_xmlschema", SERVER),
    ("schema_to_xml_and_xmlschema", SERVER),
    ("database_to_xmlschema", SERVER),
    ("database_to_xml_and_xmlschema", SERVER),
    ("xpath_table", SERVER),
    ("load_extension", SERVER),
    ("sys_get", SERVER),
    ("sys_set", SERVER),
    ("set_config", SERVER),
    ("set_user", USERS),
    ("tablespace", SERVER),
];
/// Words that may follow `BEGIN`, or `START`.
const TRANSACTION_MODES: [&str; 16] = [
    "work",
    "transaction",
    "isolation",
    "level",
    "serializable",
    "repeatable",
    "read",
    "committed",
    "uncommitted",
    "write",
    "only",
    "not",
    "deferrable",
    "with",
    "consistent",
    "snapshot",
];
/// Settings that change where a text in quotes ends: what was judged would not be what is carried out.
const QUOTING: [&str; 3] = [
    "standard_conforming_strings",
    "backslash_quote",
    "escape_string_warning",
];
/// Neighbours that tell of users even within quotes: some servers read quotes otherwise.
const NEIGHBOURS: [(&str, &[&str]); 4] = [
    ("identified", &["by", "with", "via"]),
    ("alter", &["user", "role", "group"]),
    ("create", &["user", "role", "group"]),
    ("encrypted", &["password"]),
];

/// Judges a text.
///
/// # Errors
/// It is left out.
pub fn judge(text: &str, dialect: Dialect) -> Result<Taken, Left> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(CURSOR.into());
    }
    let cut = cut(text, dialect).ok_or(CURSOR)?;
    let mut reason = None;
    if tells_of_users(text) {
        reason = Some(USERS);
    } else if dialect == Dialect::MariaDb && (text.contains("/*!") || text.contains("/*M!")) {
        reason = Some(CONDITIONAL);
    } else if leaves_database(text, dialect) {
        reason = Some(ELSEWHERE);
    }
    let mut effects = Vec::new();
    let statements = cut.statements.iter().zip(&cut.literals);
    for (words, literals) in statements.filter(|(words, _)| !words.is_empty()) {
        let left = two_phase(words, literals);
        match left.map_or_else(|| effect_of(words, dialect), Err) {
            Ok(effect) => effects.push(effect),
            Err(left) => {
                reason.get_or_insert(left.reason);
                effects.extend(left.effects);
            }
        }
    }
    // A replay makes begins and ends of it, and must not also send it to the server.
    let sets_autocommit =
        |effect: &TransactionEffect| matches!(effect, TransactionEffect::Autocommit(_));
    if effects.len() > 1 && effects.iter().any(sets_autocommit) {
        reason.get_or_insert(SETTINGS);
    }
    if effects.is_empty() {
        reason.get_or_insert(UNKNOWN);
    }
    match reason {
        Some(reason) => {
            effects.retain(|effect| *effect != TransactionEffect::Statement);
            Err(Left { reason, effects })
        }
        None => Ok(Taken {
            effects,
            parameters: cut.parameters,
        }),
    }
}

/// A statement of a two-phase commit: `PREPARE TRANSACTION` and what follows it, and MariaDB's `XA`.
fn two_phase(words: &[String], literals: &[String]) -> Option<Left> {
    let word = |place: usize| words.get(place).map_or("", String::as_str);
    // A name has up to three parts, some of which may be numbers: XA PREPARE 0x6162,'b',1.
    let is_part = |word: &&String| !["one", "phase"].contains(&word.as_str());
    let parts = literals.iter().chain(words.iter().skip(2).filter(is_part));
    let name = parts.map(String::as_str).collect::<Vec<_>>().join(",");
    let ends = |commits| TransactionEffect::EndsPrepared {
        name: name.clone(),
        commits,
    };
    let effect = match (word(0), word(1)) {
        ("prepare", "transaction") | ("xa", "prepare") => {
            Some(TransactionEffect::Prepares(name.clone()))
        }
        ("commit", "prepared") | ("xa", "commit") => Some(ends(true)),
        ("rollback", "prepared") | ("xa", "rollback") => Some(ends(false)),
        ("xa", "start" | "begin") => Some(TransactionEffect::Begins),
        ("xa", _) => None,
        _ => return None,
    };
    Some(Left {
        reason: TWO_PHASE,
        effects: effect.into_iter().collect(),
    })
}

/// Whether words of a whole text, quotes or not, are those by which users and passwords are set.
fn tells_of_users(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = text.split(|letter: char| !is_letter(letter));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let is_pair = |pair: &[&str], first: &str, seconds: &[&str]| {
        pair[0].eq_ignore_ascii_case(first)
            && seconds
                .iter()
                .any(|second| pair[1].eq_ignore_ascii_case(second))
    };
    let tells = |pair: &[&str]| {
        let mut known = NEIGHBOURS.iter();
        known.any(|(first, seconds)| is_pair(pair, first, seconds))
    };
    words.windows(2).any(tells)
        || words
            .windows(2)
            .take(1)
            .any(|pair| is_pair(pair, "set", &["password"]))
}

/// What a statement does. One that is left out commits what is open as it did.
fn effect_of(words: &[String], dialect: Dialect) -> Result<TransactionEffect, Left> {
    let effect = effect(words, dialect);
    if dialect != Dialect::MariaDb || !commits_implicitly(words) {
        return effect;
    }
    match effect {
        Ok(TransactionEffect::Statement) => Ok(TransactionEffect::StandsAlone),
        Ok(other) => Ok(other),
        Err(mut left) => {
            left.effects.push(TransactionEffect::StandsAlone);
            Err(left)
        }
    }
}

/// Whether MariaDB and MySQL commit what is open when such a statement comes.
fn commits_implicitly(words: &[String]) -> bool {
    let word = |place: usize| words.get(place).map_or("", String::as_str);
    match word(0) {
        "create" | "drop" => !words.iter().take(4).any(|word| word == "temporary"),
        "set" => word(1) == "password",
        "start" => word(1) != "transaction",
        first => COMMITTING.contains(&first),
    }
}

fn effect(words: &[String], dialect: Dialect) -> Result<TransactionEffect, Left> {
    let word = |place: usize| words.get(place).map_or("", String::as_str);
    if let Some((_, reason)) = WORDS
        .iter()
        .find(|(known, _)| words.iter().any(|it| it == known))
    {
        return Err((*reason).into());
    }
    let chains = words.windows(2).any(|pair| pair == ["and", "chain"]);
    match (word(0), word(1)) {
        ("begin", _) | ("start", "transaction") => return Ok(beginning(&words[1..])?),
        ("commit" | "end", _) => return Ok(TransactionEffect::Commits { chains }),
        ("rollback" | "abort", _) => {
            let is_to_savepoint = words.iter().any(|it| it == "to");
            return Ok(if is_to_savepoint {
                TransactionEffect::Statement
            } else {
                TransactionEffect::RollsBack { chains }
            });
        }
        ("copy" | "load", _) => return Err(COPY.into()),
        ("grant" | "revoke" | "reassign", _) => return Err(USERS.into()),
        ("set", _) => return set(words, dialect),
        ("create" | "alter" | "drop", _) => return Ok(object(words)?),
        ("prepare" | "execute" | "deallocate", _) => {
            return Err("statements that are prepared in SQL".into());
        }
        _ => {}
    }
    match word(0) {
        first if TAKEN.contains(&first) => Ok(TransactionEffect::Statement),
        "do" | "use" | "kill" | "flush" | "shutdown" | "install" | "change" | "purge"
        | "handler" => Err(SERVER.into()),
        _ => Err(UNKNOWN.into()),
    }
}

/// Behind `BEGIN` or `START`: modes of a transaction. A block of statements, as MariaDB knows it, is none.
fn beginning(words: &[String]) -> Result<TransactionEffect, WhyLeftOut> {
    let is_mode = |word: &String| TRANSACTION_MODES.contains(&word.as_str());
    match words.iter().all(is_mode) {
        true => Ok(TransactionEffect::Begins),
        false => Err(UNKNOWN),
    }
}

/// A `SET`. Autocommit that is set among other settings is known, too, though the text is left out.
fn set(words: &[String], dialect: Dialect) -> Result<TransactionEffect, Left> {
    let autocommit = autocommit(&words[1..]);
    match (autocommit, setting(words, dialect)) {
        (Some(Autocommit { is_on, alone: true }), _) => Ok(TransactionEffect::Autocommit(is_on)),
        (Some(Autocommit { is_on, .. }), setting) => Err(Left {
            reason: setting.err().unwrap_or(SETTINGS),
            effects: vec![TransactionEffect::Autocommit(is_on)],
        }),
        (None, setting) => Ok(setting?),
    }
}

/// Autocommit of a session is set.
struct Autocommit {
    is_on: bool,
    /// And nothing else is.
    alone: bool,
}

/// What the words behind `SET` make of the session's autocommit, if anything.
fn autocommit(words: &[String]) -> Option<Autocommit> {
    let is_it = |word: &String| word == "autocommit" || word == "@@autocommit";
    let place = words.iter().rposition(is_it)?;
    let is_on = match words.get(place + 1)?.as_str() {
        "1" | "on" | "true" => true,
        "0" | "off" | "false" => false,
        _ => return None,
    };
    let before = place.checked_sub(1).map(|before| words[before].as_str());
    let has_scope = match before {
        Some(
            "global" | "@@global" | "persist" | "@@persist" | "persist_only" | "@@persist_only",
        ) => {
            return None;
        }
        Some("session" | "local" | "@@session" | "@@local") => true,
        _ => false,
    };
    Some(Autocommit {
        is_on,
        alone: words.len() == 2 + usize::from(has_scope),
    })
}

/// A `SET`: of a session, never of the server or of a user, nor of how texts in quotes are read.
fn setting(words: &[String], dialect: Dialect) -> Result<TransactionEffect, WhyLeftOut> {
    let has = |word: &str| words.iter().any(|it| it == word);
    let is_other = |word: &String| {
        word.starts_with("@@") || QUOTING.contains(&word.as_str()) || word == "sql_mode"
    };
    if words.iter().any(is_other) {
        return Err(SERVER);
    }
    if ["role", "authorization", "password"]
        .iter()
        .any(|word| has(word))
    {
        return Err(USERS);
    }
    if has("global") || has("persist") || has("persist_only") {
        return Err(SERVER);
    }
    let is_of_session = dialect == Dialect::Postgres
        || ["transaction", "names", "isolation"]
            .iter()
            .any(|word| has(word))
        || words
            .get(1)
            .is_some_and(|word| word.starts_with('@') && !word.starts_with("@@"));
    match is_of_session {
        true => Ok(TransactionEffect::Statement),
        false => Err(SETTINGS),
    }
}

fn object(words: &[String]) -> Result<TransactionEffect, WhyLeftOut> {
    let passed = [
        "or", "replace", "global", "local", "online", "offline", "ignore", "if", "exists",
    ];
    let of = words[1..]
        .iter()
        .find(|word| !passed.contains(&word.as_str()));
    let of = of.map_or("", String::as_str);
    // Tables of other engines may lie on other servers, and their texts in quotes tell passwords.
    let mut pairs = words.windows(2);
    let is_elsewhere =
        pairs.any(|pair| pair[0] == "engine" && !ENGINES.contains(&pair[1].as_str()));
    let ends_so = words.last().is_some_and(|word| word == "engine");
    if is_elsewhere || ends_so || words.iter().any(|word| word == "connection") {
        return Err(SERVER);
    }
    match of {
        of if OBJECTS.contains(&of) => Ok(TransactionEffect::Statement),
        "user" | "role" | "group" | "policy" | "default" => Err(USERS),
        _ => Err(SERVER),
    }
}

/// A text in words.
struct Cut {
    statements: Vec<Vec<String>>,
    /// Texts in quotes of each statement that may tell a name of a transaction.
    literals: Vec<Vec<String>>,
    parameters: usize,
}

impl Cut {
    /// A name in quotes is a word, too; one with escapes in it is not understood.
    fn name(&mut self, name: &str) -> Option<()> {
        let words = self.statements.last_mut()?;
        words.push(name.to_ascii_lowercase());
        (!name.contains('\\')).then_some(())
    }

    fn literal(&mut self, text: &str) {
        let first = self.statements.last().and_then(|words| words.first());
        if first.is_some_and(|first| NAMING.contains(&first.as_str()))
            && let Some(literals) = self.literals.last_mut()
        {
            literals.push(text.to_owned());
        }
    }
}

/// Words that begin a statement with the name of a transaction.
const NAMING: [&str; 4] = ["prepare", "commit", "rollback", "xa"];

/// Cuts a text into statements and words; `None` when a quote or a comment does not end.
fn cut(text: &str, dialect: Dialect) -> Option<Cut> {
    let mut cut = Cut {
        statements: vec![Vec::new()],
        literals: vec![Vec::new()],
        parameters: 0,
    };
    let bytes = text.as_bytes();
    let mut place = 0;
    while let Some(byte) = bytes.get(place) {
        let rest = &text[place..];
        let length = match byte {
            b'\'' | b'"' | b'`' => {
                let length = quoted_bytes(text, place, dialect)?;
                let is_name = *byte == b'`' || *byte == b'"' && dialect == Dialect::Postgres;
                match is_name {
                    true => cut.name(&rest[1..length - 1])?,
                    false => cut.literal(&rest[1..length - 1]),
                }
                length
            }
            b'-' if is_comment(rest, dialect) => until(rest, "\n").unwrap_or(rest.len()),
            b'#' if dialect == Dialect::MariaDb => until(rest, "\n").unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => comment_bytes(rest, dialect)?,
            b'$' if dialect == Dialect::Postgres => dollar_bytes(rest, &mut cut.parameters)?,
            b';' => {
                cut.statements.push(Vec::new());
                cut.literals.push(Vec::new());
                1
            }
            _ => {
                let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
                if end > 0 {
                    let words = cut.statements.last_mut()?;
                    words.push(rest[..end].to_ascii_lowercase());
                }
                end.max(rest.chars().next()?.len_utf8())
            }
        };
        place += length;
    }
    Some(cut)
}

/// Bytes of a parameter or of a text in dollars.
fn dollar_bytes(rest: &str, parameters: &mut usize) -> Option<usize> {
    let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        let number: usize = rest[1..=digits].parse().ok()?;
        *parameters = (*parameters).max(number);
        return Some(1 + digits);
    }
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    match rest[1..].find('$') {
        Some(end) if rest[1..=end].chars().all(is_name) => {
            let tag = &rest[..end + 2];
            until(&rest[tag.len()..], tag).map(|bytes| bytes + tag.len())
        }
        _ => Some(1),
    }
}
