//! The kind of workload: its settings in the experiment file, and how clients carry it out.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use serde::{Deserialize, Serialize};
use spindle_io::sync::Latch;
use spindle_text::load_file::{Dump, DumpForm, LoadFile};
use spindle_text::section::{Refusal, Shown, TextFile};
use spindle_text::settings;

use super::answers;
use super::client::{Place, ScriptTransaction};
use super::program::{self, FileMistake, Placed, Program};
use super::random::Random;
use super::value::{Scalar, Variable};
use crate::session::SessionError;
use crate::sql::connection::{LoadPart, SqlConnection};
use crate::sql::dialect::Dialect;
use crate::sql::kind::{Kind, Made, MadeFor};
use crate::sql::{Origin, SqlTransaction, SqlWorkload};
use crate::workload::{Acknowledged, Client};

settings! {
    /// The workload.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ScriptSettings {
        /// Files in the language of `pgbench`; `"load.sql@9"` is drawn nine times as often as `"report.sql@1"`. Paths
        /// begin beside the experiment file.
        scripts: Vec<TextFile> = weighted_files("scripts"),
        /// SQL files and dumps that make the tables and fill them, once; in SQL, `:name` stands for a defined variable.
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
    load: Vec<Placed>,
    /// Dumps, each with the number of statements of `load` that come before it.
    dumps: Vec<(usize, Dump)>,
    check: Vec<Placed>,
    /// The variables of each client.
    places: Arc<[Place]>,
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
        let (mut load, mut dumps) = (Vec::new(), Vec::new());
        for file in &self.load {
            match file {
                LoadFile::Text(file) => load.extend(program::statements(file, &defined, dialect)?),
                LoadFile::Dump(dump) => dumps.push((load.len(), dump.clone())),
            }
        }
        let mut check = Vec::new();
        for file in &self.check {
            check.extend(program::statements(file, &defined, dialect)?);
        }
        let client_id = program.names.known("client_id");
        let place = |number: u64| {
            let mut variables = program.beginning.clone();
            if let Some(client_id) = client_id {
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
            load,
            dumps,
            check,
            program: Arc::new(program),
        })
    }
}

/// The database whose tools restore a dump.
fn dialect_of(form: DumpForm) -> (Dialect, &'static str) {
    match form {
        DumpForm::PostgresCustom
        | DumpForm::PostgresDirectory
        | DumpForm::PostgresTar
        | DumpForm::PostgresPlain => (Dialect::Postgres, "PostgreSQL"),
        DumpForm::MariaDb => (Dialect::MariaDb, "MariaDB or MySQL"),
        DumpForm::Sqlite => (Dialect::Sqlite, "SQLite"),
    }
}

fn refusal(keys: &'static [&'static str], title: &str, label: &str, help: &'static str) -> Refusal {
    Refusal {
        keys,
        title: title.to_owned(),
        label: label.to_owned(),
        help,
        shown: None,
    }
}

/// Refuses dumps of another database, and a copy that something would be lost by.
fn check_dumps(load: &[LoadFile], dialect: Dialect) -> Result<(), Refusal> {
    for (number, file) in load.iter().enumerate() {
        let LoadFile::Dump(dump) = file else {
            continue;
        };
        let (of, database) = dialect_of(dump.form);
        if of != dialect {
            return Err(refusal(
                &["load"],
                &format!("{} cannot be loaded", dump.name),
                &format!("it is of {database}, and the engine is another"),
                "choose the dump's own engine in [database], or load SQL that the engine knows",
            ));
        }
        if dump.form == DumpForm::Sqlite && number > 0 {
            return Err(refusal(
                &["load"],
                &format!(
                    "{} would take the place of what is loaded before it",
                    dump.name
                ),
                "a database file of SQLite is copied as a whole",
                "name it first",
            ));
        }
    }
    Ok(())
}

impl Kind for ScriptSettings {
    fn make(&self, made_for: &MadeFor) -> Made {
        let dialect = made_for.dialect.unwrap_or(Dialect::Postgres);
        let made = self.workload(dialect, made_for.clients, made_for.seed);
        let made = made.map_err(|(file, mistake)| format!("{}: {}", file.name, mistake.message));
        Made::Sql(Arc::new(
            made.expect("scripts are read when the experiment is"),
        ))
    }

    fn is_in_sql(&self) -> bool {
        true
    }

    fn dumps(&self) -> Vec<&Dump> {
        let dumps = self.load.iter().filter_map(|file| match file {
            LoadFile::Dump(dump) => Some(dump),
            LoadFile::Text(_) => None,
        });
        dumps.collect()
    }

    fn check(&self, made_for: &MadeFor) -> Result<(), Refusal> {
        let Some(dialect) = made_for.dialect else {
            return Ok(());
        };
        if self.scripts.is_empty() {
            return Err(refusal(
                &["scripts"],
                "kind = \"script\" has no scripts",
                "scripts names the files that clients carry out",
                "write, for example: scripts = [\"load.sql@9\", \"report.sql@1\"]",
            ));
        }
        if self.scripts.iter().all(|file| file.weight == 0) {
            return Err(refusal(
                &["scripts"],
                "every script has the weight 0",
                "a script of weight 0 is never carried out",
                "give one of them a weight of 1 or more",
            ));
        }
        check_dumps(&self.load, dialect)?;
        match self.workload(dialect, 0, 0) {
            Ok(_) => Ok(()),
            Err((file, mistake)) => Err(Refusal {
                keys: &["scripts", "load", "check"],
                title: format!("{} cannot be carried out", file.name),
                label: mistake.message,
                help: "docs/how-to/your-own-sql.md says what scripts may hold",
                shown: Some(Box::new(Shown {
                    name: file.name.clone(),
                    text: file.text.clone(),
                    span: mistake.span,
                })),
            }),
        }
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
        self.load
            .iter()
            .map(|statement| statement.sql.clone())
            .collect()
    }

    fn dumps(&self) -> Vec<(usize, &Dump)> {
        let dumps = self.dumps.iter();
        dumps.map(|(before, dump)| (*before, dump)).collect()
    }

    fn load_parts(&self, _: Dialect) -> Vec<LoadPart> {
        Vec::new()
    }

    fn create_indexes(&self, _: Dialect) -> Vec<String> {
        Vec::new()
    }

    fn after_load(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        answers::keep(&self.check, connection)
    }

    fn statements(&self, _: Dialect) -> Vec<String> {
        let statements = self.program.statements.iter();
        statements.map(|statement| statement.sql.clone()).collect()
    }

    fn place(&self, of: Origin) -> Option<&str> {
        let (statements, number) = match of {
            Origin::Table(number) => (&self.load, number),
            Origin::Statement(number) => (&self.program.statements, number),
        };
        statements
            .get(number)
            .map(|statement| statement.place.as_str())
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
    ) -> Result<String, String> {
        answers::compare(&self.check, connection).map_err(|error| error.to_string())
    }
}
