//! TPC-H (revision 3 of the standard), and TPC-D, of which it took 17 of its queries: eight tables of a wholesale
//! supplier, 22 questions of a manager about them, and two functions that refresh them. A client is a stream of
//! queries: one alone is the power run (RF1, the queries in the order of stream 0, RF2), several are the throughput run
//! (a stream each, and one more client that refreshes, once for each stream). Times are no official TPC results,
//! whatever they are: those are audited.
//!
//! [`schema`] and [`load`] make the tables, [`queries`] and [`parameters`] the questions, [`streams`] their order,
//! [`refresh`] the functions, [`in_plans`] the same for the embedded database; [`answers`] compares what came back with
//! what is right. [`terms`] has what SQL and plans share.

pub mod answers;
pub mod in_plans;
mod load;
mod parameters;
mod queries;
mod refresh;
mod schema;
mod streams;
mod terms;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_text::section::{Key, Keys, Section, SettingsRefusal};

use self::answers::KeptAnswer;
use self::terms::{Keeps, RF1};
use super::{Dialect, LoadPart, SqlConnection, SqlRow, SqlTransaction, SqlWorkload};
use crate::session::SessionError;
use crate::sql::kind::{Data, MadeFor, MadeWorkload, TrialPace, WorkloadSettings};
use crate::workload::{Acknowledged, CheckError, Client, Workload};

pub use self::terms::{KINDS, Parameters, Tpch, TpchVersion};

/// What a unit of scale takes in a database, tables and indexes together, about.
const BYTES_PER_SCALE: f64 = 1.6e9;

/// The least scale factor.
const SCALE_MIN: f64 = 0.01;

/// Settings of `tpch` and `tpcd`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queries {
    /// Size of the data: 1 is about a gigabyte of text.
    pub scale: f64,
    /// The queries that are asked, by number.
    pub queries: Vec<u32>,
    /// Whether the refresh functions run.
    pub refresh: bool,
    /// A query that takes longer is cancelled and counted as an error.
    pub query_limit_ms: u64,
    /// Where their parameters come from.
    pub parameters: Parameters,
    /// Whether answers are kept.
    #[serde(default)]
    pub keep_answers: bool,
    /// Query slaves of the embedded database.
    #[serde(default = "slaves_by_default")]
    pub slaves: u32,
}

/// Query slaves by default.
const SLAVES: u32 = 2;

fn slaves_by_default() -> u32 {
    SLAVES
}

impl Queries {
    fn read<K: Keys>(version: TpchVersion, keys: &mut K) -> Queries {
        let key = |name, says| Key { name, says };
        let numbers = version.queries();
        Queries {
            scale: keys.scale(
                key(
                    "scale",
                    "the scale factor; `database.size` follows from it, about 1.6 GB for a unit with its indexes, and is \
                     left out",
                ),
                1.0,
                SCALE_MIN..=10_000.0,
            ),
            queries: keys.numbers(
                key(
                    "queries",
                    "the queries that are asked; power and throughput are those of all of them, and missing otherwise",
                ),
                u32::from(*numbers.start())..=u32::from(*numbers.end()),
            ),
            refresh: keys.flag(
                key(
                    "refresh",
                    "whether the refresh functions RF1 and RF2 run, which add and remove a thousandth of the orders",
                ),
                false,
            ),
            query_limit_ms: keys.duration_ms(
                key(
                    "query_limit",
                    "a query that takes longer is cancelled and counted as an error",
                ),
                600_000,
                100..=3_600_000,
            ),
            parameters: keys.word(
                key(
                    "parameters",
                    "what the queries ask for: drawn by the standard's rules, for each stream its own and in every trial \
                     and layout the same (they follow from `seed`); or the values for which the standard has answers",
                ),
                Parameters::Random,
            ),
            keep_answers: keys.flag(
                key(
                    "keep_answers",
                    "whether answers are kept, as CSV below `answers/` in the run directory: those of the first trial, and \
                     any that differ later; `--keep-answers` is short for it",
                ),
                false,
            ),
            slaves: keys.number(
                key(
                    "slaves",
                    "query slaves of the embedded database: processes that carry out each query side by side; 1: the \
                     client's own. Each may use `sort_area` of memory. Other databases have their own settings",
                ),
                SLAVES,
                1..=64,
            ),
        }
    }

    /// The same with tables no larger than about `bytes`, as far as they can be so small.
    pub fn within(mut self, bytes: u64) -> Queries {
        let scale = (bytes as f64 / BYTES_PER_SCALE).max(SCALE_MIN);
        self.scale = self.scale.min(scale);
        self
    }

    fn make(&self, version: TpchVersion, made_for: &MadeFor) -> MadeWorkload {
        let tpch = Tpch {
            version,
            scale: self.scale,
            queries: self.queries.iter().map(|&query| query as u8).collect(),
            refresh: self.refresh,
            parameters: self.parameters,
            query_limit: Some(Duration::from_millis(self.query_limit_ms)),
            kept: self.keep_answers.then(Arc::default),
            seed: made_for.seed,
        };
        match made_for.dialect {
            Some(_) => MadeWorkload::Sql(Arc::new(tpch)),
            None => MadeWorkload::Rows(tpch.in_plans(made_for.clients, self.slaves)),
        }
    }

    fn check(&self, made_for: &MadeFor) -> Vec<SettingsRefusal> {
        if made_for.dialect.is_none() || self.slaves == SLAVES {
            return Vec::new();
        }
        vec![SettingsRefusal {
            keys: &["slaves"],
            title: "slaves does not apply to a database that speaks SQL".to_owned(),
            label: "it has its own processes".to_owned(),
            help: "leave slaves out, and set what the database has for it in [database.settings]",
            shown: None,
        }]
    }
}

macro_rules! settings_of {
    ($name:ident, $version:expr, $says:literal) => {
        #[doc = $says]
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Queries);

        impl Section for $name {
            fn read<K: Keys>(keys: &mut K) -> $name {
                $name(Queries::read($version, keys))
            }
        }

        impl WorkloadSettings for $name {
            fn make(&self, made_for: &MadeFor) -> MadeWorkload {
                self.0.make($version, made_for)
            }

            fn pace(&self) -> TrialPace {
                TrialPace::Streams
            }

            fn data(&self) -> Option<Data> {
                Some(Data {
                    bytes: (self.0.scale * BYTES_PER_SCALE) as u64,
                    is_loaded: true,
                })
            }

            fn is_in_sql(&self) -> bool {
                false
            }

            fn check(&self, made_for: &MadeFor) -> Vec<SettingsRefusal> {
                self.0.check(made_for)
            }

            fn processes(&self) -> u32 {
                self.0.slaves
            }

            fn sessions(&self, clients: u32) -> u32 {
                Tpch::clients_of(clients as usize, self.0.refresh) as u32
            }
        }
    };
}

settings_of!(TpchSettings, TpchVersion::H, "Settings of `tpch`.");
settings_of!(TpcdSettings, TpchVersion::D, "Settings of `tpcd`.");

impl Tpch {
    /// As the embedded database carries it out, for this many streams, with this many query slaves.
    pub fn in_plans(self, streams: u64, slaves: u32) -> Box<dyn Workload> {
        if self.refresh {
            // Before anything is measured.
            refresh::text();
        }
        Box::new(in_plans::TpchInPlans {
            tpch: self,
            streams,
            slaves,
        })
    }
}

impl SqlWorkload for Tpch {
    fn name(&self) -> &'static str {
        self.word()
    }

    fn kinds(&self) -> Vec<String> {
        KINDS.map(str::to_owned).to_vec()
    }

    fn create_tables(&self, dialect: Dialect) -> Vec<String> {
        let tables = schema::TABLES.iter();
        tables.map(|table| table.create(dialect)).collect()
    }

    fn load_parts(&self, _: Dialect) -> Vec<LoadPart> {
        load::parts(self.scale)
    }

    fn create_indexes(&self, dialect: Dialect) -> Vec<String> {
        let tables = schema::TABLES.iter();
        tables
            .flat_map(|table| table.create_indexes(dialect))
            .collect()
    }

    fn statements(&self, _: Dialect) -> Vec<String> {
        if self.refresh {
            // Before anything is measured.
            refresh::text();
            return refresh::statements();
        }
        Vec::new()
    }

    fn transactions(&self, client: usize, clients: usize) -> Option<u64> {
        let role = self.role(client, clients);
        Some(self.steps(&role).len() as u64)
    }

    fn statement_limit(&self) -> Option<Duration> {
        self.query_limit
    }

    fn watches_temporary_space(&self) -> bool {
        true
    }

    fn next(&self, client: &mut Client) -> Box<dyn SqlTransaction> {
        let next = self.next_step(client);
        if next.kind >= RF1 {
            return Box::new(Refresh {
                kind: next.kind,
                set: next.set,
                scale: self.scale,
                number: client.changes,
            });
        }
        let text = |dialect| self.query(next.kind as u8 + 1, next.stream, dialect);
        Box::new(Query {
            kind: next.kind,
            text: [Dialect::Postgres, Dialect::MariaDb, Dialect::Sqlite].map(text),
            keeps: self.keeps(&next),
        })
    }

    fn kept_answers(&self) -> Vec<KeptAnswer> {
        self.all_kept_answers()
    }

    /// Whether the refresh functions that were acknowledged are in the tables. Queries change nothing.
    fn check(
        &self,
        connection: &mut dyn SqlConnection,
        acknowledged: &[Acknowledged],
    ) -> Result<String, CheckError> {
        let done = self.refreshed(acknowledged).map(|count| count as i64);
        let orders = count(connection, "select count(*) from orders")?;
        let of_set = refresh::set_orders(self.scale);
        let wanted = refresh::loaded_orders(self.scale) + (done[0] - done[1]) * of_set;
        if orders != wanted {
            return Err(CheckError::Lost(format!(
                "there are {orders} orders, not {wanted}"
            )));
        }
        for set in 0..done[1] as u32 {
            let (first, last) = refresh::old_keys(set, self.scale);
            let sql = format!(
                "select count(*) from orders where o_orderkey between {first} and {last} and o_orderkey % 32 < 8"
            );
            let left = count(connection, &sql)?;
            if left != 0 {
                return Err(CheckError::Lost(format!(
                    "{left} orders are there that were removed"
                )));
            }
        }
        Ok(format!("{orders} orders, as many as there should be"))
    }
}

fn count(connection: &mut dyn SqlConnection, sql: &str) -> Result<i64, SessionError> {
    let mut count = 0;
    let asked = connection.ask(sql, &mut |row: &dyn SqlRow| {
        count = row.int(0)?;
        Ok(())
    });
    asked.map(|()| count)
}

/// A query, in every dialect.
struct Query {
    kind: usize,
    text: [String; 3],
    keeps: Option<Keeps>,
}

impl SqlTransaction for Query {
    fn kind(&self) -> usize {
        self.kind
    }

    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        let text = match connection.dialect() {
            Dialect::Postgres => &self.text[0],
            Dialect::MariaDb => &self.text[1],
            Dialect::Sqlite => &self.text[2],
        };
        let Some(keeps) = &self.keeps else {
            return connection.ask(text, &mut |_| Ok(()));
        };
        let mut found = keeps.answer(self.kind);
        connection.ask(text, &mut |row| found.add(row))?;
        keeps.kept.keep(found);
        Ok(())
    }
}

/// A refresh function.
struct Refresh {
    kind: usize,
    set: u32,
    scale: f64,
    number: u64,
}

impl SqlTransaction for Refresh {
    fn kind(&self) -> usize {
        self.kind
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        match self.kind {
            RF1 => refresh::insert(self.set, self.scale, connection),
            _ => refresh::delete(self.set, self.scale, connection),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(refresh: bool, queries: Vec<u8>) -> Tpch {
        Tpch {
            version: TpchVersion::H,
            scale: 0.01,
            queries,
            refresh,
            parameters: Parameters::Random,
            query_limit: None,
            kept: None,
            seed: 1,
        }
    }

    fn kinds(workload: &Tpch, client: usize, clients: usize) -> Vec<&'static str> {
        let steps = workload.steps(&workload.role(client, clients));
        steps.into_iter().map(|kind| KINDS[kind]).collect()
    }

    #[test]
    fn one_client_is_the_power_run_and_more_are_streams_and_one_that_refreshes() {
        let all: Vec<u8> = TpchVersion::H.queries().collect();
        let with = workload(true, all.clone());
        let power = kinds(&with, 0, 1);
        assert_eq!((power[0], power[1], power[23]), ("RF1", "Q14", "RF2"));
        assert_eq!(Tpch::clients_of(2, true), 3);
        assert_eq!(kinds(&with, 0, 3)[..2], ["Q21", "Q3"]);
        assert_eq!(kinds(&with, 1, 3)[..2], ["Q6", "Q17"]);
        assert_eq!(kinds(&with, 2, 3), ["RF1", "RF2", "RF1", "RF2"]);
        let without = workload(false, all);
        assert_eq!(Tpch::clients_of(2, false), 2);
        assert_eq!(kinds(&without, 0, 1).len(), 22);
        assert_eq!(kinds(&without, 1, 2).len(), 22);
        let few = workload(false, vec![1, 6]);
        assert_eq!(kinds(&few, 0, 1), ["Q6", "Q1"]);
    }

    #[test]
    fn streams_draw_parameters_of_their_own_and_every_run_the_same() {
        let of = |stream| workload(false, vec![9]).query(9, stream, Dialect::Postgres);
        assert_eq!(of(1), of(1));
        assert!((2..8).any(|stream| of(stream) != of(1)));
    }

    #[test]
    fn the_ancestor_asked_about_clerks() {
        let workload = Tpch {
            version: TpchVersion::D,
            parameters: Parameters::Validation,
            ..workload(false, TpchVersion::D.queries().collect())
        };
        assert!(
            workload
                .query(13, 0, Dialect::Sqlite)
                .contains("Clerk#000000088")
        );
        assert_eq!(kinds(&workload, 0, 1).len(), 17);
    }
}
