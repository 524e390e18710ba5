//! A mix of scripts that comes near to what a server has counted: each statement with its share of the calls. Which
//! statements belonged to one transaction a server does not tell. Those that change rows, and those that are carried
//! out as often, become one transaction, each as often in it as there were calls for each commit; the others stand
//! alone.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use spindle_text::section::TextFile;
use spindle_workload::sql::Dialect;
use spindle_workload::{MadeFor, ScriptSettings, WorkloadSettings};

use super::digest;
use super::error::LeftOutStatement;
use super::sample::{RowsOfCall, Sampled, sample};
use super::statement::{Statement, Verb, read};
use super::table::Tables;

/// Statements that are looked at, at most: those with the most calls and the most time.
const STATEMENTS_MAX: usize = 200;
/// A statement that is carried out more often for each commit stands alone.
const REPEATED_MAX: f64 = 50.0;
/// Two statements were carried out as often if their calls differ by no more than this.
const AS_OFTEN: f64 = 0.02;
/// Weights of all scripts together, about.
const WEIGHTS: f64 = 10_000.0;
/// What the transaction's script is called.
const TRANSACTION: &str = "transaction.sql";
/// What begins and ends transactions.
const BEGINS: [&str; 5] = [
    "begin",
    "begin transaction",
    "begin work",
    "start transaction",
    "begin read write",
];
const COMMITS: [&str; 6] = [
    "commit",
    "end",
    "commit transaction",
    "end transaction",
    "commit work",
    "end work",
];

/// What the text of a counted statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementForm {
    /// The statement, constants as parameters.
    Statement,
    /// A digest of it, as MariaDB and MySQL write them.
    Digest,
    /// No text of a statement, for this reason: what it stands for was counted, and is not known.
    Unknown(&'static str),
}

/// What a server has counted of a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Its text, constants as parameters.
    pub text: String,
    /// What this text is.
    pub form: StatementForm,
    /// How often it was carried out.
    pub calls: f64,
    /// How long that took in all, milliseconds.
    pub time_ms: f64,
    /// Rows that it found or changed in all.
    pub rows: f64,
    /// Rows that were looked at for it in all, where the server counts them.
    pub examined: Option<f64>,
}

impl Counted {
    /// Statements for which MariaDB or MySQL had no room among its digests.
    pub fn without_digest(calls: f64, time_ms: f64) -> Counted {
        let why = "the server had no room for more digests: set performance_schema_digests_size to more, and restart it";
        Counted::unknown("statements of any database", why, calls, time_ms)
    }

    /// Statements whose texts are not known.
    pub fn unknown(what: &str, why: &'static str, calls: f64, time_ms: f64) -> Counted {
        Counted {
            text: what.to_owned(),
            form: StatementForm::Unknown(why),
            calls,
            time_ms,
            rows: 0.0,
            examined: None,
        }
    }

    /// Adds what was counted of the same statement elsewhere.
    pub fn add(&mut self, other: &Counted) {
        self.calls += other.calls;
        self.time_ms += other.time_ms;
        self.rows += other.rows;
        self.examined = self
            .examined
            .zip(other.examined)
            .map(|(one, two)| one + two);
    }

    /// Rows of a call, on average.
    pub fn rows_of_call(&self) -> RowsOfCall {
        let calls = self.calls.max(1.0);
        RowsOfCall {
            found: self.rows / calls,
            examined: self.examined.map(|examined| examined / calls),
        }
    }
}

/// A statement that is not in the mix.
#[derive(Debug, Clone, PartialEq)]
pub struct Left {
    /// Its text.
    pub text: String,
    /// Why.
    pub why: LeftOutStatement,
    /// Its calls and its time, as shares of all.
    pub share: CallShare,
}

/// Shares of all calls and of all time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CallShare {
    /// Of the calls.
    pub calls: f64,
    /// Of the time.
    pub time: f64,
}

/// What became of the statements.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedMix {
    /// The scripts.
    pub scripts: Vec<TextFile>,
    /// What they cover.
    pub covered: CallShare,
    /// What they do not, the most calls first.
    pub left: Vec<Left>,
    /// What values that are drawn do not have of the real ones.
    pub doubts: BTreeSet<String>,
    /// Columns whose values were read from rows.
    pub read_from_rows: BTreeSet<String>,
}

/// A statement of the mix.
struct Taken {
    calls: f64,
    share: CallShare,
    statement: Statement,
    sampled: Sampled,
}

impl Taken {
    fn changes(&self) -> bool {
        self.statement.verb != Verb::Select || self.statement.locks
    }
}

/// Makes a mix of statements.
pub fn mix(counted: Vec<Counted>, dialect: Dialect, tables: &mut dyn Tables) -> ImportedMix {
    let (calls, time_ms) = counted.iter().fold((0.0, 0.0), |(calls, time_ms), each| {
        (calls + each.calls, time_ms + each.time_ms)
    });
    let share = |each: &Counted| CallShare {
        calls: each.calls / f64::max(calls, 1.0),
        time: each.time_ms / f64::max(time_ms, f64::MIN_POSITIVE),
    };
    let is_commit = |each: &&Counted| COMMITS.contains(&plain(&each.text).as_str());
    let commits: f64 = counted
        .iter()
        .filter(is_commit)
        .map(|each| each.calls)
        .sum();
    let (around, mut others): (Vec<&Counted>, Vec<&Counted>) = counted
        .iter()
        .partition(|each| is_commit(each) || BEGINS.contains(&plain(&each.text).as_str()));
    let weight = |each: &Counted| f64::max(share(each).calls, share(each).time);
    others.sort_by(|a, b| {
        let by_weight = weight(b).total_cmp(&weight(a));
        by_weight.then_with(|| a.text.cmp(&b.text))
    });
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    let leave = |each: &Counted, why: LeftOutStatement| Left {
        text: each.text.clone(),
        why,
        share: share(each),
    };
    for (place, each) in others.iter().enumerate() {
        let found = match place < STATEMENTS_MAX {
            true => take(each, dialect, tables),
            false => Err(LeftOutStatement::TooMany(STATEMENTS_MAX)),
        };
        match found {
            Ok((statement, sampled)) => taken.push(Taken {
                calls: each.calls,
                share: share(each),
                statement,
                sampled,
            }),
            Err(why) => left.push(leave(each, why)),
        }
    }
    let (inside, alone) = parted(taken, commits);
    if inside.is_empty() {
        left.extend(
            around
                .iter()
                .map(|each| leave(each, LeftOutStatement::NothingWithin)),
        );
    }
    left.sort_by(|a, b| b.share.calls.total_cmp(&a.share.calls));
    let doubts = inside.iter().chain(&alone);
    ImportedMix {
        doubts: doubts
            .flat_map(|taken| taken.sampled.doubts.clone())
            .collect(),
        scripts: scripts(&inside, &alone, commits),
        covered: without(&left),
        left,
        read_from_rows: tables.read_from_rows(),
    }
}

/// What is covered when these are not.
fn without(left: &[Left]) -> CallShare {
    let missing = |of: fn(&CallShare) -> f64| left.iter().map(|each| of(&each.share)).sum::<f64>();
    CallShare {
        calls: (1.0 - missing(|share| share.calls)).max(0.0),
        time: (1.0 - missing(|share| share.time)).max(0.0),
    }
}

/// A text in small letters, without what ends it.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(4).collect();
    words.join(" ").trim_end_matches([';', ' ']).to_lowercase()
}

/// Reads a statement, draws its values, and looks whether a script of it is right.
fn take(
    counted: &Counted,
    dialect: Dialect,
    tables: &mut dyn Tables,
) -> Result<(Statement, Sampled), LeftOutStatement> {
    let text = match counted.form {
        StatementForm::Statement => Cow::Borrowed(&counted.text),
        StatementForm::Digest => Cow::Owned(digest::restored(counted, tables)?),
        StatementForm::Unknown(why) => return Err(LeftOutStatement::Statement(why.into())),
    };
    let statement = read(&text, dialect)?;
    let sampled = sample(&statement, counted.rows_of_call(), dialect, tables)?;
    let prepared = as_script(&sampled.text, dialect)?;
    tables.check(&prepared)?;
    Ok((statement, sampled))
}

/// The statements of a script as they will be prepared.
fn as_script(text: &str, dialect: Dialect) -> Result<Vec<String>, LeftOutStatement> {
    let settings = ScriptSettings {
        scripts: vec![TextFile {
            name: "script".to_owned(),
            weight: 1,
            text: format!("{text};\n"),
        }],
        load: Vec::new(),
        check: Vec::new(),
        define: BTreeMap::new(),
    };
    let made_for = MadeFor {
        data_bytes: 0,
        block_bytes: 0,
        clients: 0,
        seed: 0,
        dialect: Some(dialect),
    };
    if let Some(refusal) = settings.check(&made_for).first() {
        let why = format!("no script can hold it: {}", refusal.label);
        return Err(LeftOutStatement::Statement(why.into()));
    }
    let statements = settings.make(&made_for).in_sql(0).statements(dialect);
    match statements.len() {
        1 => Ok(statements),
        _ => Err(LeftOutStatement::Statement(
            "in a script it is not one statement".into(),
        )),
    }
}

/// Statements within the transaction, and those that stand alone.
fn parted(taken: Vec<Taken>, commits: f64) -> (Vec<Taken>, Vec<Taken>) {
    let is_alone = |each: &Taken| commits == 0.0 || each.calls / commits > REPEATED_MAX;
    let (changes, reads): (Vec<Taken>, Vec<Taken>) = taken
        .into_iter()
        .partition(|each| each.changes() && !is_alone(each));
    let often: Vec<f64> = match changes.is_empty() {
        true => Vec::new(),
        false => changes
            .iter()
            .map(|each| each.calls)
            .chain([commits])
            .collect(),
    };
    let is_as_often = |each: &Taken| {
        let mut often = often.iter();
        often.any(|calls| (calls - each.calls).abs() <= AS_OFTEN * each.calls)
    };
    let (mut inside, alone): (Vec<Taken>, Vec<Taken>) = reads
        .into_iter()
        .partition(|each| !is_alone(each) && is_as_often(each));
    inside.extend(changes);
    // Rows of small tables, which many want, are locked last.
    inside.sort_by(|a, b| b.sampled.table_rows.total_cmp(&a.sampled.table_rows));
    (inside, alone)
}

fn scripts(inside: &[Taken], alone: &[Taken], commits: f64) -> Vec<TextFile> {
    let of_transaction = if inside.is_empty() { 0.0 } else { commits };
    let all = of_transaction + alone.iter().map(|each| each.calls).sum::<f64>();
    let weight = |calls: f64| ((WEIGHTS * calls / all).round() as u32).max(1);
    let mut found = Vec::new();
    if !inside.is_empty() {
        found.push(TextFile {
            name: TRANSACTION.to_owned(),
            weight: weight(commits),
            text: transaction(inside, commits),
        });
    }
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    for each in alone {
        let name = name_of(&each.statement);
        let count = names.entry(name.clone()).or_default();
        *count += 1;
        found.push(TextFile {
            name: match count {
                1 => format!("{name}.sql"),
                count => format!("{name}-{count}.sql"),
            },
            weight: weight(each.calls),
            text: format!("{}{};\n", about(each), each.sampled.text),
        });
    }
    found
}

/// What a script is called: what it does, and to which table.
fn name_of(statement: &Statement) -> String {
    let table = statement.relations.first();
    let table = table.and_then(|relation| relation.name.last());
    let letters = table.map_or("", String::as_str).chars();
    let letters: String = letters
        .map(|letter| letter.to_ascii_lowercase())
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
        .take(40)
        .collect();
    match letters.is_empty() {
        true => statement.verb.word().to_owned(),
        false => format!("{}-{letters}", statement.verb.word()),
    }
}

fn about(taken: &Taken) -> String {
    format!(
        "-- {:.2} % of the calls, {:.2} % of the time\n",
        100.0 * taken.share.calls,
        100.0 * taken.share.time
    )
}

/// The script of a transaction, in which each statement is carried out as often as for each commit, on average.
fn transaction(inside: &[Taken], commits: f64) -> String {
    let mut text = "BEGIN;\n".to_owned();
    for each in inside {
        text.push_str(&about(each));
        let often = each.calls / commits;
        let often = match (often - often.round()).abs() < AS_OFTEN * often {
            true => often.round(),
            false => often,
        };
        for _ in 0..often as usize {
            text.push_str(&format!("{};\n", each.sampled.text));
        }
        let share = (often.fract() * 1e6).round();
        if share > 0.0 {
            text.push_str(&format!(
                "\\if random(1, 1000000) <= {share:.0}\n{};\n\\endif\n",
                each.sampled.text
            ));
        }
    }
    text.push_str("END;\n");
    text
}
