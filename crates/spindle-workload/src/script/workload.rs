//! The kind of workload: its settings in the experiment file, and how clients carry it out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use serde::{Deserialize, Serialize};
use spindle_io::sync::Latch;
use spindle_text::load_file::{Dump, LoadFile};
use spindle_text::section::{SettingsRefusal, TextFile};
use spindle_text::settings;

use super::client::{ClientVariables, ScriptTransaction};
use super::own_data::{self, OwnData, refusal};
use super::program::{self, FileMistake, Program};
use super::random::Random;
use super::reached::reached;
use super::value::{Scalar, Variable};
use crate::session::{Complaint, SessionError};
use crate::sql::connection::SqlConnection;
use crate::sql::dialect::Dialect;
use crate::sql::kind::{MadeFor, MadeWorkload, WorkloadSettings};
use crate::sql::{Ours, SqlTransaction, SqlWorkload, StatementOrigin};
use crate::workload::{Acknowledged, CheckError, Client};

settings! {
    /// The workload.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ScriptSettings {
        /// Files in the language of `pgbench`; `"load.sql@9"` is drawn nine times as often as `"report.sql@1"`. Paths
        /// begin beside the experiment file.
        scripts: Vec<TextFile> = weighted_files("scripts"),
        /// SQL files, dumps and copies of servers that make the tables and fill them, once; in SQL, `:name` stands for
        /// a defined variable.
        load: Vec<LoadFile> = load_files("load"),
        /// SQL files whose statements must have the answers after a trial that they had after the load.
        check: Vec<TextFile> = files("check"),
        /// Variables of the scripts, as with `pgbench -D`: `{ scale = 10 }`.
        define: BTreeMap<String, String> = values("define"),
    }
}

/// A workload of scripts.
pub struct ScriptWorkload {
    program: Arc<Program>,
    /// Statements that may have a turn.
    reached: BTreeSet<usize>,
    data: OwnData,
    /// The variables of each client.
    places: Arc<[ClientVariables]>,
    weights: u64,
}

impl ScriptSettings {
    /// The workload for clients of a database; chance that scripts ask for by name comes from `seed`.
    ///
    /// # Errors
    /// A mistake in one of the files.
    fn workload(
        &self,
        dialect: Dialect,
        clients: u64,
        seed: u64,
    ) -> Result<ScriptWorkload, FileMistake<'_>> {
        let mut defined = self.define.clone();
        let mut random = Random::seeded(seed);
        let default_seed = random.next() as i64;
        let mut define = |name: &str, text: String| {
            defined.entry(name.to_owned()).or_insert(text);
        };
        define("scale", "1".to_owned());
        define("random_seed", seed.to_string());
        define("default_seed", default_seed.to_string());
        let program = program::read(&self.scripts, &defined, dialect)?;
        let data = OwnData::read(&self.load, &self.check, &defined, dialect)?;
        let client_id = program.names.known("client_id");
        let place = |number: u64| {
            let mut variables = program.beginning.clone();
            // A definition of it stays, as in pgbench.
            if let Some(client_id) = client_id.filter(|_| !self.define.contains_key("client_id")) {
                variables[client_id] = Variable::Scalar(Scalar::Int(number as i64));
            }
            Latch::new(variables)
        };
        Ok(ScriptWorkload {
            places: (0..clients).map(place).collect(),
            weights: program
                .scripts
                .iter()
                .map(|script| u64::from(script.weight))
                .sum(),
            data,
            reached: reached(&program),
            program: Arc::new(program),
        })
    }
}

impl WorkloadSettings for ScriptSettings {
    fn make(&self, made_for: &MadeFor) -> MadeWorkload {
        let dialect = made_for.dialect.unwrap_or(Dialect::Postgres);
        let made = self.workload(dialect, made_for.clients, made_for.seed);
        let made = made.map_err(|(file, mistake)| format!("{}: {}", file.name, mistake.message));
        MadeWorkload::Sql(Arc::new(
            made.expect("scripts are read when the experiment is"),
        ))
    }

    fn is_in_sql(&self) -> bool {
        true
    }

    fn loaded_from(&self) -> &[LoadFile] {
        &self.load
    }

    fn check(&self, made_for: &MadeFor) -> Vec<SettingsRefusal> {
        let Some(dialect) = made_for.dialect else {
            return Vec::new();
        };
        let mut refused = Vec::new();
        if self.scripts.is_empty() {
            refused.push(refusal(
                &["scripts"],
                "kind = \"script\" has no scripts",
                "scripts names the files that clients carry out",
                "write, for example: scripts = [\"load.sql@9\", \"report.sql@1\"]",
            ));
        } else if self.scripts.iter().all(|file| file.weight == 0) {
            refused.push(refusal(
                &["scripts"],
                "every script has the weight 0",
                "a script of weight 0 is never carried out",
                "give one of them a weight of 1 or more",
            ));
        }
        refused.extend(own_data::refused_dumps(&self.load, dialect));
        let is_empty = self.scripts.is_empty();
        if let (false, Err(mistake)) = (is_empty, self.workload(dialect, 0, 0)) {
            let lists = [
                (&["scripts"][..], &*self.scripts),
                (&["check"], &self.check),
            ];
            refused.push(own_data::refused(mistake, &lists));
        }
        refused
    }
}

impl SqlWorkload for ScriptWorkload {
    fn name(&self) -> &'static str {
        "script"
    }

    fn kinds(&self) -> Vec<String> {
        let scripts = self.program.scripts.iter();
        scripts.map(|script| script.name.clone()).collect()
    }

    fn create_tables(&self, _: Dialect) -> Vec<String> {
        self.data.statements()
    }

    fn dumps(&self) -> Vec<(usize, &Dump)> {
        self.data.dumps()
    }

    fn after_load(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        self.data.keep_answers(connection)
    }

    fn statements(&self, _: Dialect) -> Vec<String> {
        let statements = self.program.statements.iter();
        statements.map(|statement| statement.sql.clone()).collect()
    }

    fn prepare(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        connection.watch_transactions()?;
        let statements = self.statements(connection.dialect());
        for (number, error) in connection.prepare_what_can(&statements)? {
            if self.reached.contains(&number) && !self.program.may_wait(number, &error) {
                return Err(explained(error).at(&self.program.statements[number].place));
            }
        }
        Ok(())
    }

    fn beyond(&self, dialect: Dialect, ours: Ours, others: &[String]) -> Option<String> {
        self.data
            .beyond(&self.program.statements, dialect, ours, others)
    }

    fn place(&self, of: StatementOrigin) -> Option<&str> {
        let statement = match of {
            StatementOrigin::Table(number) => self.data.statement(number),
            StatementOrigin::Statement(number) => self.program.statements.get(number),
        };
        statement.map(|statement| statement.place.as_str())
    }

    fn next(&self, client: &mut Client) -> Box<dyn SqlTransaction> {
        let mut drawn = match self.program.scripts.len() {
            1 => 0,
            _ => client.rng.next_u64() % self.weights,
        };
        let mut script = 0;
        while drawn >= u64::from(self.program.scripts[script].weight) {
            drawn -= u64::from(self.program.scripts[script].weight);
            script += 1;
        }
        Box::new(ScriptTransaction {
            program: Arc::clone(&self.program),
            places: Arc::clone(&self.places),
            client: client.number,
            script,
            random: Random::seeded(client.rng.next_u64()),
        })
    }

    fn check(
        &self,
        connection: &mut dyn SqlConnection,
        _: &[Acknowledged],
    ) -> Result<String, CheckError> {
        self.data.compare_answers(connection)
    }
}

/// What to do about a statement that cannot be prepared, where that is known.
fn explained(error: SessionError) -> SessionError {
    let SessionError::Rejected { complaint, text } = error else {
        return error;
    };
    let advice = match complaint {
        Complaint::ParameterType => {
            "; a prepared statement must know the type: write it behind the variable, as in :x::integer"
        }
        // PostgreSQL names the place of a mistake in words only.
        Complaint::Syntax if text.contains("at or near \"$") => {
            "; a prepared statement has variables in the place of values only, not of names or keywords"
        }
        _ => "",
    };
    SessionError::rejected(complaint, format!("{text}{advice}"))
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn a_load_that_the_server_would_wait_in_is_refused_with_its_place() {
        let file = |name: &str, text: &str| TextFile {
            name: name.to_owned(),
            weight: 1,
            text: text.to_owned(),
        };
        let load = "create table t(a int);\ncopy t from stdin;\nnever ends\n";
        let settings = ScriptSettings {
            scripts: vec![file("x.sql", "select 1;")],
            load: vec![LoadFile::Text(file("load.sql", load))],
            check: Vec::new(),
            define: BTreeMap::new(),
        };
        let made_for = MadeFor {
            data_bytes: 1 << 20,
            block_bytes: 8 << 10,
            clients: 1,
            seed: 7,
            dialect: Some(Dialect::Postgres),
        };
        let refused = settings.check(&made_for).remove(0);
        let shown = refused.shown.unwrap();
        assert_eq!(shown.name, "load.sql");
        assert_eq!(Some(shown.span.start), load.find("copy"));
        assert!(refused.label.contains("rows of COPY"), "{}", refused.label);
    }

    /// Scripts with their weights.
    fn weighted(scripts: &[(&str, u32)]) -> ScriptSettings {
        let scripts = scripts.iter().enumerate();
        ScriptSettings {
            scripts: scripts
                .map(|(number, (text, weight))| TextFile {
                    name: format!("{number}.sql"),
                    weight: *weight,
                    text: (*text).to_owned(),
                })
                .collect(),
            load: Vec::new(),
            check: Vec::new(),
            define: BTreeMap::new(),
        }
    }

    #[test]
    fn a_script_of_weight_0_is_read_and_never_drawn() {
        let made_for = MadeFor {
            data_bytes: 1 << 20,
            block_bytes: 8 << 10,
            clients: 1,
            seed: 7,
            dialect: Some(Dialect::Postgres),
        };
        for (scripts, drawn) in [
            (&[("select 1;", 0), ("select 2;", 1)][..], &[1][..]),
            (&[("select 1;", 1), ("select 2;", 0)], &[0]),
            (
                &[("select 1;", 2), ("select 2;", 0), ("select 3;", 2)],
                &[0, 2],
            ),
        ] {
            let settings = weighted(scripts);
            assert!(settings.check(&made_for).is_empty(), "{scripts:?}");
            let made = settings.workload(Dialect::Postgres, 1, 7);
            let made = made.unwrap_or_else(|(_, mistake)| panic!("{mistake:?}"));
            let mut client = Client {
                number: 0,
                clients: 1,
                changes: 0,
                rng: Xoshiro256PlusPlus::seed_from_u64(1),
            };
            let found: BTreeSet<usize> = (0..200).map(|_| made.next(&mut client).kind()).collect();
            assert!(found.iter().eq(drawn), "{scripts:?}: {found:?}");
        }
        let wrong = weighted(&[("select :x;", 0), ("select 2;", 1)]);
        let told = wrong.check(&made_for).remove(0);
        assert_eq!(told.shown.unwrap().name, "0.sql");
        let none = weighted(&[("select 1;", 0), ("select 2;", 0)]);
        let told = none.check(&made_for).remove(0);
        assert_eq!(told.title, "every script has the weight 0");
    }

    #[test]
    fn a_defined_client_id_is_that_of_all_clients() {
        let client_ids = |define: &[(&str, &str)]| {
            let define = define.iter();
            let settings = ScriptSettings {
                scripts: vec![TextFile {
                    name: "x.sql".to_owned(),
                    weight: 1,
                    text: "select :client_id;".to_owned(),
                }],
                load: Vec::new(),
                check: Vec::new(),
                define: define
                    .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
                    .collect(),
            };
            let made = settings.workload(Dialect::Postgres, 2, 7);
            let made = made.unwrap_or_else(|(_, mistake)| panic!("{mistake:?}"));
            let number = made.program.names.known("client_id").unwrap();
            let ids = made.places.iter();
            ids.map(|variables| variables.lock()[number].clone())
                .collect::<Vec<_>>()
        };
        let of = |number| Variable::Scalar(Scalar::Int(number));
        assert_eq!(client_ids(&[]), [of(0), of(1)]);
        assert_eq!(client_ids(&[("client_id", "5")]), [of(5), of(5)]);
    }
}
