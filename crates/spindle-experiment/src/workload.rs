//! The `[workload]` section: what the clients do, and how many of them there are.
//!
//! Each kind of workload has its own keys, which its crate declares; a key of one kind used with another is told
//! where it belongs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spindle_engines::sections::SIZE_BYTES;
use spindle_engines::spec::{KernelSpec, SQL_BLOCK_BYTES};
use spindle_engines::sql::{ServerKind, server};
use spindle_text::load_file::{Dump, LoadFile};
use spindle_text::rate::Rate;
use spindle_text::section::{Section, SettingsRefusal};
use spindle_text::word::Word;
use spindle_workload::driver::{Behaviour, ClientSettings, deferring};
use spindle_workload::sql::SqlWorkload;
use spindle_workload::{MadeFor, TrialPace, Workload as RowWorkload};
pub use spindle_workload::{Transactions, WorkloadKind};

use super::arrivals::{self, Arrivals, Promised, RateLevels};
use super::database::{Database, DatabaseEngine, DatabaseSpec};
use super::doubts::anywhere;
use super::error::ExperimentError;
use super::of_workload::{OfWorkload, keys_of};
use super::reader::Reader;

/// What the clients do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadChoice {
    /// Load levels: numbers of clients, each 1 to 4096 and each a separate case.
    pub clients: Vec<u32>,
    /// Pause of a client after each transaction, up to 1 h.
    pub think_time_ms: u64,
    /// Transactions that arrive at a rate, whatever the database makes of them; `None`: a client begins one when it has
    /// ended the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Rates that are each a load level; `None`: load comes alike in all cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<RateLevels>,
    /// What is promised, where the highest rate that keeps it is searched for; `None`: the rate is set, or there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised: Option<Promised>,
    /// A client whose connection is lost connects again; else that ends the trial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconnect: bool,
    /// Share of transactions that may fail for good before the trial counts as failed, percent.
    #[serde(default = "error_limit_percent")]
    pub error_limit_percent: f64,
    /// The kind of workload and its settings.
    pub transactions: Transactions,
}

/// What `error_limit` is when it is left out, percent.
const ERROR_LIMIT_PERCENT: f64 = 1.0;
/// And for queries: one that is cancelled is shown among the others.
const ERROR_LIMIT_OF_QUERIES_PERCENT: f64 = 100.0;

fn error_limit_percent() -> f64 {
    ERROR_LIMIT_PERCENT
}

/// The words of the kinds of which this is true.
pub(super) fn kinds_that(is_so: impl Fn(&Transactions) -> bool) -> Vec<&'static str> {
    let all = WorkloadKind::ALLOWED.iter();
    let chosen = all.filter(|(_, kind)| is_so(&kind.defaults()));
    chosen.map(|(word, _)| *word).collect()
}

/// What the database is told of the data of its workload.
pub(super) fn data_of(reader: &Reader<'_>) -> OfWorkload {
    // Read in a copy: the keys are looked at when the whole section is.
    let mut reader = reader.over(reader.table());
    let kind = reader.word("kind").unwrap_or(WorkloadKind::OltpMix);
    let transactions = Transactions::read(kind, &mut reader);
    let settings = transactions.settings();
    OfWorkload {
        kind,
        data: settings.data(),
        copied_bytes: settings.copied_bytes(),
    }
}

impl WorkloadChoice {
    /// The kind of workload.
    pub fn kind(&self) -> WorkloadKind {
        self.transactions.kind()
    }

    /// Most clients that there will be at once.
    pub fn clients_max(&self) -> u32 {
        self.clients.iter().copied().max().unwrap_or(1)
    }

    /// Whether load arrives by itself, at a rate that is set or searched for.
    pub fn is_open(&self) -> bool {
        self.arrivals.is_some() || self.levels.is_some() || self.promised.is_some()
    }

    /// Whether clients do more than begin a transaction when they have ended the last: they wait for a rate, or think.
    pub(super) fn has_pace(&self) -> bool {
        self.is_open() || self.think_time_ms > 0
    }

    /// Whether rates are parts of what the slowest layout does in a closed loop.
    pub fn has_rates_of_slowest(&self) -> bool {
        let mut rates = self.levels.iter().flat_map(|levels| &levels.rates);
        rates.any(|rate| rate.is_of_slowest())
    }

    /// Load levels: numbers of clients, each with every rate that is a level. Closed loops that rates are parts of
    /// come before them.
    pub fn loads(&self) -> Vec<(u32, Option<Rate>)> {
        let rates = self.levels.iter().flat_map(|levels| &levels.rates);
        let rates: Vec<Option<Rate>> = match (&self.levels, self.has_rates_of_slowest()) {
            (None, _) => vec![None],
            (Some(_), false) => rates.copied().map(Some).collect(),
            (Some(_), true) => [None].into_iter().chain(rates.copied().map(Some)).collect(),
        };
        let with_rates = |&clients| rates.iter().map(move |rate| (clients, *rate));
        self.clients.iter().flat_map(with_rates).collect()
    }

    /// It at a load level, where the slowest layout does `slowest_per_s` in a closed loop: with the level's own
    /// arrivals. They are missing while that is needed and not known.
    #[must_use]
    pub fn at(&self, rate: Option<Rate>, slowest_per_s: Option<f64>) -> WorkloadChoice {
        let mut at = self.clone();
        if let Some(levels) = at.levels.take() {
            let rate_per_s = rate.and_then(|rate| rate.per_s(slowest_per_s));
            at.arrivals = rate_per_s.map(|rate_per_s| Arrivals {
                rate_per_s,
                spacing: levels.spacing,
            });
        }
        at
    }

    /// Sessions at a load level.
    pub fn sessions(&self, clients: u32) -> u32 {
        self.transactions.settings().sessions(clients)
    }

    /// Connections at a load level: sessions of clients, and of the processes that carry out what these put off.
    pub fn connections(&self, clients: u32) -> u32 {
        let sessions = self.sessions(clients);
        match self.transactions.settings().puts_off() {
            true => sessions + deferring(sessions as usize) as u32,
            false => sessions,
        }
    }

    /// Most connections that there will be at once.
    pub fn connections_max(&self) -> u32 {
        self.connections(self.clients_max())
    }

    /// Processes of the embedded database that carry out queries at a load level; 0 where none are asked.
    pub fn query_processes(&self, clients: u32) -> u64 {
        match self.transactions.ask_queries() {
            true => u64::from(clients) * u64::from(self.transactions.settings().processes()),
            false => 0,
        }
    }

    /// Files that make its tables and fill them.
    pub fn loaded_from(&self) -> &[LoadFile] {
        self.transactions.settings().loaded_from()
    }

    /// The dumps among them.
    pub fn dumps(&self) -> Vec<&Dump> {
        let files = self.loaded_from().iter();
        files.filter_map(LoadFile::as_dump).collect()
    }

    /// The embedded database that it is made for.
    fn ground_of_rows(&self, data_bytes: u64, spec: &KernelSpec, seed: u64) -> MadeFor {
        MadeFor {
            data_bytes,
            block_bytes: spec.files.block_size_bytes,
            clients: u64::from(self.clients_max()),
            seed,
            dialect: None,
        }
    }

    /// The database that speaks SQL and that it is made for; rows are drawn from `seed`.
    fn ground_in_sql(&self, data_bytes: u64, kind: ServerKind, seed: u64) -> MadeFor {
        MadeFor {
            data_bytes,
            block_bytes: SQL_BLOCK_BYTES,
            clients: u64::from(self.clients_max()),
            seed,
            dialect: Some(server(kind).dialect()),
        }
    }

    /// It in row operations, for the embedded database; what is drawn before any client follows from `seed`.
    ///
    /// # Panics
    /// When it is one that only SQL can say: with the embedded database such an experiment file is refused.
    pub fn of_rows(&self, data_bytes: u64, spec: &KernelSpec, seed: u64) -> Box<dyn RowWorkload> {
        let made_for = self.ground_of_rows(data_bytes, spec, seed);
        let made = self.transactions.settings().make(&made_for).of_rows();
        made.expect("the embedded database is refused this workload when the file is read")
    }

    /// It in SQL for a database of this kind, its rows drawn from `seed`.
    pub fn in_sql(&self, data_bytes: u64, kind: ServerKind, seed: u64) -> Arc<dyn SqlWorkload> {
        let made_for = self.ground_in_sql(data_bytes, kind, seed);
        self.transactions.settings().make(&made_for).in_sql(seed)
    }

    /// How the clients of a load level behave.
    pub fn behaviour(&self, clients: u32) -> Behaviour {
        Behaviour {
            clients: self.sessions(clients) as usize,
            transactions: None,
            reconnect: self.reconnect,
            think_time_ns: self.think_time_ms * 1_000_000,
            arrivals: self.arrivals.or(self.promised.map(|promised| Arrivals {
                // Until the search sets one.
                rate_per_s: f64::INFINITY,
                spacing: promised.spacing,
            })),
            part: None,
        }
    }

    /// Reads the workload section.
    pub(super) fn read(reader: &mut Reader<'_>, database: &Database) -> WorkloadChoice {
        let kind = reader.word("kind").unwrap_or(WorkloadKind::OltpMix);
        let (clients, error_limit) = match kind.defaults().settings().pace() {
            TrialPace::Streams => {
                let reason = "a stream sends its next query when the last is answered";
                check_pace(reader, kind, reason);
                (1, ERROR_LIMIT_OF_QUERIES_PERCENT)
            }
            TrialPace::Recorded => {
                let reason =
                    "the recording says when transactions begin; speed and times change that";
                check_pace(reader, kind, reason);
                (8, ERROR_LIMIT_PERCENT)
            }
            TrialPace::Timed | TrialPace::Counted => (8, ERROR_LIMIT_PERCENT),
        };
        let asked = arrivals::read(reader, kind.defaults().settings().pace());
        let of_clients: ClientSettings = Section::read(reader);
        let workload = WorkloadChoice {
            clients: of_clients.clients.unwrap_or_else(|| vec![clients]),
            think_time_ms: of_clients.think_time_ms,
            arrivals: asked.arrivals,
            levels: asked.levels,
            promised: asked.promised,
            reconnect: of_clients.reconnect,
            error_limit_percent: of_clients.error_limit_percent.unwrap_or(error_limit),
            transactions: Transactions::read(kind, reader),
        };
        let of_kinds = keys_by_kind().into_iter().flat_map(|(_, keys)| keys);
        reader.finish_given(&of_kinds.collect::<Vec<_>>(), "kind");
        workload.check_settings(reader, database);
        let is_found_out = workload.promised.is_some() || workload.has_rates_of_slowest();
        if is_found_out && workload.transactions.are_counted() {
            reader.refuse(
                &["rate"],
                format!("rate = \"auto\", or a part of a maximum, does not apply to kind = \"{kind}\""),
                "its clients end with their last transaction, and finding a rate takes measured time",
                "leave it out",
            );
        }
        let pause_key = workload.transactions.settings().pause_key();
        if let Some(key) = pause_key.filter(|_| workload.has_pace()) {
            reader.refuse(
                &[key],
                format!("{key} cannot be combined with rate or think_time"),
                "each says when a client begins its next transaction",
                "leave one out",
            );
        }
        check_engine(reader, &workload, database.engine());
        check_remote(reader, &workload, database);
        workload
    }

    /// Refuses settings that do not go together, or not with the database.
    fn check_settings(&self, reader: &Reader<'_>, database: &Database) {
        let settings = self.transactions.settings();
        let made_for = match &database.spec {
            DatabaseSpec::Kernel(kernel) => self.ground_of_rows(database.size_bytes, kernel, 0),
            DatabaseSpec::Server(server) => self.ground_in_sql(database.size_bytes, server.kind, 0),
            DatabaseSpec::Remote(remote) => {
                self.ground_in_sql(database.size_bytes, remote.address.kind(), 0)
            }
        };
        let refusals = settings.check(&made_for);
        if refusals.is_empty() {
            return;
        }
        let asked = |other: &MadeFor| {
            let refused = settings.check(other).into_iter();
            refused.map(|refusal| refusal.keys).collect::<Vec<_>>()
        };
        // What a refusal rests on is what makes another answer when it is another.
        let with_data = |data_bytes| {
            asked(&MadeFor {
                data_bytes,
                ..made_for
            })
        };
        let others = [*SIZE_BYTES.start(), *SIZE_BYTES.end()].map(with_data);
        let kinds = ServerKind::ALLOWED.iter();
        let dialects = kinds.map(|(_, kind)| Some(server(*kind).dialect()));
        let in_dialect = |dialect| {
            asked(&MadeFor {
                dialect,
                ..made_for
            })
        };
        let engines: Vec<_> = dialects.chain([None]).map(in_dialect).collect();
        for refusal in refusals {
            let is_same = |keys: &Vec<&[&str]>| keys.contains(&refusal.keys);
            let mut given = Vec::new();
            if !others.iter().all(is_same) {
                given.extend(["size", "block_size"].map(|key| format!("database.{key}")));
            }
            if !engines.iter().all(is_same) {
                given.extend(engine_keys());
            }
            reader.note(refused(reader, refusal).given(given));
        }
    }
}

/// The keys that say which engine it is, in full.
fn engine_keys() -> [String; 3] {
    [
        "database.engine".to_owned(),
        anywhere("engine"),
        anywhere("url"),
    ]
}

/// Why settings do not go together, with the place of the key, or that in a file which it names.
fn refused(reader: &Reader<'_>, refusal: SettingsRefusal) -> ExperimentError {
    let (title, label) = (refusal.title, refusal.label);
    let Some(shown) = refusal.shown else {
        return reader.conflict(refusal.keys, title, label, refusal.help);
    };
    let error = ExperimentError::new(title).help(refusal.help);
    error.mark(usize::MAX, &shown.name, &shown.text, shown.span, label)
}

/// Keys that mean nothing where transactions have their own pace.
fn check_pace(reader: &Reader<'_>, kind: WorkloadKind, reason: &str) {
    for key in ["think_time", "rate", "p99", "arrivals"] {
        if reader.has(key) {
            reader.refuse(
                &[key],
                format!("{key} does not apply to kind = \"{kind}\""),
                reason,
                "leave it out",
            );
        }
    }
}

/// Words in quotation marks.
fn quoted(words: impl IntoIterator<Item = &'static str>, between: &str) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("{word:?}")).collect();
    quoted.join(between)
}

/// Refuses a workload that the engine cannot do, and keys that do not apply to it.
fn check_engine(reader: &Reader<'_>, workload: &WorkloadChoice, engine: DatabaseEngine) {
    let refuse = |key: &str, title: String, label: &str, help: String| {
        let refused = reader.conflict(&[key], title, label, help);
        reader.note(refused.given(engine_keys()));
    };
    let kind = workload.kind();
    let settings = workload.transactions.settings();
    let servers = quoted(ServerKind::ALLOWED.iter().map(|(word, _)| *word), ", ");
    if engine == DatabaseEngine::Kernel && settings.is_in_sql() {
        let of_rows = quoted(kinds_that(|kind| !kind.settings().is_in_sql()), ", ");
        refuse(
            "kind",
            format!("kind = \"{kind}\" does not apply to engine = \"kernel\""),
            "the embedded database speaks no SQL",
            format!(
                "choose another engine in [database]: {servers}; the embedded database has {of_rows}"
            ),
        );
    }
    if engine == DatabaseEngine::Kernel && workload.reconnect {
        refuse(
            "reconnect",
            "reconnect does not apply to engine = \"kernel\"".to_owned(),
            "the embedded database has no connections to lose",
            format!("leave it out, or choose another engine: {servers}"),
        );
    }
    let procedure_key = settings.procedure_key();
    let has_procedures = match engine {
        DatabaseEngine::Kernel => false,
        DatabaseEngine::Server(kind) => server(kind).dialect().has_procedures(),
    };
    if let (false, Some(key)) = (has_procedures, procedure_key) {
        refuse(
            key,
            format!("{key} = true does not apply to engine = \"{engine}\""),
            "it has no procedures",
            format!("leave {key} out: the client carries out the statements itself"),
        );
    }
}

/// Refuses what would be made on an existing server outside the schema of Spindle's own.
fn check_remote(reader: &Reader<'_>, workload: &WorkloadChoice, database: &Database) {
    let dumps = workload.dumps();
    if let (DatabaseSpec::Remote(_), Some(dump)) = (&database.spec, dumps.first()) {
        reader.refuse(
            &["load"],
            format!("{} cannot be loaded into an existing server", dump.name),
            "a dump says itself where its tables go, and Spindle writes only to its own schema there",
            "load SQL, or leave url out: Spindle then runs its own server",
        );
    }
}

/// The keys of each kind of workload, for telling a key of one used with another where it belongs. Kinds with the same
/// keys as one before are left out.
pub(super) fn keys_by_kind() -> Vec<(WorkloadKind, Vec<&'static str>)> {
    let mut all: Vec<(WorkloadKind, Vec<&'static str>)> = Vec::new();
    for (_, kind) in WorkloadKind::ALLOWED {
        let keys = keys_of(*kind);
        if all.iter().all(|(_, others)| *others != keys) {
            all.push((*kind, keys));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::Experiment;

    #[test]
    fn numbers_of_clients_may_be_a_range_with_a_step() {
        let clients = |text: &str| {
            let text = format!("[workload]\nclients = \"{text}\"\n[[layout]]\nname = \"a\"\n");
            let experiment = Experiment::parse("e.toml", &text, &[]);
            experiment.map(|experiment| experiment.workload.clients)
        };
        assert_eq!(clients("20..80 step 20").unwrap(), [20, 40, 60, 80]);
        assert_eq!(clients("1..8 step 3").unwrap(), [1, 4, 7]);
        for wrong in [
            "20..80",
            "80..20 step 20",
            "0..8 step 2",
            "1..4096 step 1",
            "1..8 step 0",
            "8",
            "1..9999999999 step 1",
        ] {
            assert!(clients(wrong).is_err(), "{wrong}");
        }
        let many = clients("1..4096 step 1").unwrap_err();
        let told = format!("{:?}", miette::Report::new(many));
        let allowed = "allowed: at most 100 levels, as \"1..4096 step 42\" has";
        assert!(told.contains(allowed), "{told}");
        assert_eq!(clients("1..4096 step 42").unwrap().len(), 98);
    }

    /// Reads an experiment with these scripts beside it.
    fn read(engine: &str, lines: &str, script: &str) -> Result<Experiment, String> {
        let directory = tempfile::tempdir().unwrap();
        read_in(&directory, engine, lines, script)
    }

    fn read_in(
        directory: &tempfile::TempDir,
        engine: &str,
        lines: &str,
        script: &str,
    ) -> Result<Experiment, String> {
        fs::write(directory.path().join("load.sql"), script).unwrap();
        fs::write(directory.path().join("report.sql"), "select 1;").unwrap();
        let path = directory.path().join("e.toml");
        let text = format!(
            "[database]\nengine = \"{engine}\"\n[workload]\nkind = \"script\"\n{lines}\n[[layout]]\nname = \"a\"\n"
        );
        fs::write(&path, text).unwrap();
        let read = Experiment::read(&path, &[]);
        read.map_err(|error| format!("{:?}", miette::Report::new(error)))
    }

    #[test]
    fn scripts_are_read_beside_the_experiment_and_kept_with_it() {
        let lines =
            "scripts = [\"load.sql@9\", \"report.sql\"]\ndefine = { n = 7, blue = \"sky\" }";
        let experiment = read("postgres", lines, "select :n;").unwrap();
        let kept = serde_json::to_string(&experiment).unwrap();
        assert!(kept.contains("select :n;"), "{kept}");
        assert!(kept.contains("\"weight\":9"), "{kept}");
        let again: Experiment = serde_json::from_str(&kept).unwrap();
        assert_eq!(again, experiment);
    }

    #[test]
    fn mistakes_in_scripts_are_shown_where_they_are() {
        let scripts = "scripts = [\"load.sql\"]";
        for (engine, lines, script, wanted) in [
            (
                "postgres",
                scripts,
                "select 1;\n\\set x 1 +\n",
                "load.sql:2:11",
            ),
            (
                "sqlite",
                scripts,
                "\n\\startpipeline\n\\endpipeline",
                "only PostgreSQL's protocol has pipelines",
            ),
            ("postgres", scripts, "select :x;", "nothing sets :x"),
            ("postgres", "", "", "has no scripts"),
            // No other list of files is underlined.
            (
                "postgres",
                "scripts = [\"load.sql\"]\nload = [\"report.sql\"]",
                "",
                "e.toml:5:",
            ),
            (
                "postgres",
                "check = [\"load.sql\"]\nscripts = [\"report.sql\"]\nload = [\"report.sql\"]",
                "",
                "e.toml:5:",
            ),
            (
                "postgres",
                "scripts = [\"load.sql@0\"]",
                "select 1;",
                "has the weight 0",
            ),
            ("postgres", "scripts = [\"load.sql@-1\"]", "", "e.toml:5:12"),
            ("postgres", "scripts = [\"none.sql\"]", "", "none.sql"),
            (
                "postgres",
                "scripts = [\"load.sql\"]\ndefine = { 1x = 2 }",
                "select 1;",
                "no digit first",
            ),
            (
                "kernel",
                scripts,
                "select 1;",
                "the embedded database speaks no SQL",
            ),
        ] {
            let told = read(engine, lines, script).expect_err(lines);
            assert!(told.contains(wanted), "{lines} {script}: {told}");
        }
    }

    #[test]
    fn dumps_that_cannot_be_loaded_are_refused_before_anything_is_made() {
        let remote = "postgres\"\nurl = \"postgres://ann@localhost/shop";
        for (engine, load, dump, wanted) in [
            ("postgres", "none.dump", &b""[..], "No such file"),
            (
                "postgres",
                "shop.dump",
                b"\x1f\x8b\x08",
                "unpack it with gzip",
            ),
            ("mariadb", "shop.dump", b"PGDMP", "it is of PostgreSQL"),
            (
                "postgres",
                "shop.dump",
                b"SQLite format 3\0",
                "it is of SQLite",
            ),
            (
                "sqlite",
                "report.sql\", \"shop.dump",
                b"SQLite format 3\0",
                "copied as a whole",
            ),
            (remote, "shop.dump", b"PGDMP", "its own schema there"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("shop.dump"), dump).unwrap();
            let lines = format!("scripts = [\"load.sql\"]\nload = [\"{load}\"]");
            let told = read_in(&directory, engine, &lines, "select 1;").expect_err(wanted);
            assert!(told.contains(wanted), "{engine} {load}: {told}");
        }
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("shop.dump"), b"PGDMP").unwrap();
        let lines = "scripts = [\"load.sql\"]\nload = [\"shop.dump\"]";
        let experiment = read_in(&directory, "postgres", lines, "select 1;").unwrap();
        let dumps = experiment.workload.dumps();
        assert_eq!(dumps[0].path, directory.path().join("shop.dump"));
    }
}
