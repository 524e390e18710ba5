//! The experiment of a run as results know it: the document as it was read, to be shown whole, and what results and
//! reports need of it, by type. The document is read here and nowhere else; one that lacks what every version has
//! written is an error. Reports ask [`ExperimentRecord`].

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The experiment as it was read, defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct ExperimentRecord {
    document: Value,
    facts: ExperimentFacts,
}

impl TryFrom<Value> for ExperimentRecord {
    type Error = serde_json::Error;

    /// Reads the facts. Fails where the document is not that of an experiment.
    fn try_from(document: Value) -> Result<ExperimentRecord, serde_json::Error> {
        let facts = ExperimentFacts::deserialize(&document)?;
        Ok(ExperimentRecord { document, facts })
    }
}

impl From<ExperimentRecord> for Value {
    fn from(record: ExperimentRecord) -> Value {
        record.document
    }
}

impl ExperimentRecord {
    /// All of it, to be listed.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// What results and reports need of it.
    pub fn facts(&self) -> &ExperimentFacts {
        &self.facts
    }

    /// Its name, which heads reports.
    pub fn name(&self) -> &str {
        &self.facts.name
    }
}

/// What results and reports need of an experiment. Where a field may be missing, versions left it out.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ExperimentFacts {
    /// What it is called.
    pub name: String,
    /// The database, before any layout's own settings.
    pub database: DatabaseAsked,
    /// What the clients do.
    pub workload: WorkloadAsked,
    /// How the trials are run.
    pub plan: PlanAsked,
    /// The candidates, and layouts that hold files of others.
    pub layouts: Vec<LayoutAsked>,
    /// What was varied, if the candidates are combinations of settings.
    #[serde(default)]
    pub matrix: Option<MatrixAsked>,
}

/// The database of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DatabaseAsked {
    /// Its word, such as `kernel` or `postgres`.
    pub engine: String,
    /// Loaded data.
    pub size_bytes: u64,
}

/// The workload of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadAsked {
    /// Names of the files that its data was loaded from, as the experiment spells them; empty where Spindle made it.
    pub loaded_from: Vec<String>,
    /// Its settings, but for those by which cases are matched: [`CaseId`](crate::CaseId) has them.
    pub settings: Value,
}

/// The plan of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PlanAsked {
    /// Time a trial runs before it is measured.
    pub warmup_ms: u64,
    /// Time a trial is measured.
    pub measure_ms: u64,
    /// How long each turn is, where the trials of a round are measured by turns.
    #[serde(default)]
    pub interleave_ms: Option<u64>,
}

/// A layout of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutAsked {
    /// Its name.
    pub name: String,
    /// Its settings, but for those that only name it or its place: what lies there is the machine's to tell.
    pub settings: Value,
}

/// The combinations of an experiment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MatrixAsked {
    /// One for each combination that became a layout.
    pub cells: Vec<IgnoredAny>,
    /// Whether they are half of all combinations.
    #[serde(default)]
    pub is_half: bool,
    /// Those that cannot be used.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

/// A combination that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LeftOut {
    /// Name of the layout that it would be.
    pub layout: String,
    /// Why not, in words.
    pub reason: String,
}

/// Settings of a workload by which cases are matched.
const LEVELS_OF_WORKLOAD: [&str; 2] = ["clients", "levels"];
/// Settings of a layout that only name it or its place.
const PLACE_OF_LAYOUT: [&str; 4] = ["name", "path", "redo_path", "candidate"];

impl<'de> Deserialize<'de> for WorkloadAsked {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<WorkloadAsked, D::Error> {
        #[derive(Deserialize)]
        struct Head {
            transactions: Transactions,
        }
        #[derive(Deserialize)]
        struct Transactions {
            #[serde(default)]
            load: Vec<Named>,
        }
        let mut settings = Value::deserialize(from)?;
        let head = Head::deserialize(&settings).map_err(serde::de::Error::custom)?;
        remove(&mut settings, &LEVELS_OF_WORKLOAD);
        let files = head.transactions.load.into_iter();
        Ok(WorkloadAsked {
            loaded_from: files.map(|file| file.name).collect(),
            settings,
        })
    }
}

impl<'de> Deserialize<'de> for LayoutAsked {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<LayoutAsked, D::Error> {
        let mut settings = Value::deserialize(from)?;
        let Named { name } = Named::deserialize(&settings).map_err(serde::de::Error::custom)?;
        remove(&mut settings, &PLACE_OF_LAYOUT);
        Ok(LayoutAsked { name, settings })
    }
}

/// Anything with a name.
#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Removes keys, wherever they stand.
fn remove(document: &mut Value, keys: &[&str]) {
    match document {
        Value::Object(fields) => {
            fields.retain(|key, _| !keys.contains(&key.as_str()));
            fields.values_mut().for_each(|value| remove(value, keys));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove(item, keys)),
        _ => {}
    }
}
