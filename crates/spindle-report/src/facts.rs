//! A JSON document as a flat list of settings, so that an experiment or a machine can be shown without knowing its
//! shape.

use serde::Deserialize;
use serde_json::Value;

/// One setting of a document.
pub(crate) struct Fact {
    /// Its path.
    pub(crate) path: String,
    /// Its value; `None` when it is not known, or not set.
    pub(crate) value: Option<String>,
}

impl Fact {
    /// The value for people.
    pub(crate) fn text(self) -> String {
        self.value.unwrap_or_else(|| "unknown".to_owned())
    }
}

/// Whose settings an experiment's database has, as its engine says.
#[derive(Deserialize, PartialEq, Eq)]
enum SettingsOf {
    /// The embedded database's.
    #[serde(rename = "kernel")]
    TheEmbedded,
    /// Those of any other.
    #[serde(other)]
    AServer,
}

/// Every scalar of a document with its path, in the order of the document: `database.size`, `layout 2 name`. Lists of
/// scalars are one entry; positions in other lists count from 1.
pub(crate) fn facts(document: &Value) -> Vec<Fact> {
    let mut facts = Vec::new();
    collect(document, "", &mut facts);
    facts
}

/// Settings of the embedded database, which a server does not have.
const OF_THE_EMBEDDED_DATABASE: [&str; 12] = [
    "block_size_bytes",
    "datafiles",
    "writers",
    "write_sync",
    "commit",
    "torn_blocks",
    "log_file_size_bytes",
    "log_files",
    "checkpoint_interval_ms",
    "lock_timeout_ms",
    "fixed_buffers",
    "redo_io",
];

/// Settings that a server may have, and has not when they are not set.
const SELDOM_OF_A_SERVER: [&str; 1] = ["redo_path"];

/// The settings of an experiment, those left out that its engine does not have.
pub(crate) fn experiment_facts(experiment: &Value) -> Vec<Fact> {
    // An experiment that does not say it has the embedded database.
    let settings = SettingsOf::deserialize(&experiment["database"]["engine"])
        .unwrap_or(SettingsOf::TheEmbedded);
    let mut facts = facts(experiment);
    facts.retain(|fact| settings == SettingsOf::TheEmbedded || is_of_server(fact));
    facts
}

fn is_of_server(fact: &Fact) -> bool {
    let Some((_, of_database)) = fact.path.split_once("database.") else {
        return true;
    };
    let name = of_database.split('.').next().unwrap_or_default();
    let is_set = fact.value.is_some() || !SELDOM_OF_A_SERVER.contains(&name);
    !OF_THE_EMBEDDED_DATABASE.contains(&name) && is_set
}

fn collect(value: &Value, path: &str, facts: &mut Vec<Fact>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = match path {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                collect(value, &path, facts);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (number, item) in (1..).zip(items) {
                collect(item, &format!("{path} {number}"), facts);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().filter_map(scalar).collect();
            facts.push(fact(path, Some(items.join(", "))));
        }
        value => facts.push(fact(path, scalar(value))),
    }
}

fn fact(path: &str, value: Option<String>) -> Fact {
    Fact {
        path: path.to_owned(),
        value,
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_has_no_settings_of_the_embedded_database() {
        let of = |engine: &str| {
            experiment_facts(&json!({
                "database": { "engine": engine, "size_bytes": 1, "torn_blocks": "images", "redo_path": null,
                    "server": { "settings": { "full_page_writes": "off" } } },
                "layouts": [{ "database": { "write_sync": "dsync" } }],
            }))
            .into_iter()
            .map(|fact| fact.path)
            .collect::<Vec<_>>()
        };
        let expected = [
            "database.engine",
            "database.server.settings.full_page_writes",
            "database.size_bytes",
        ];
        let mut found = of("postgres");
        found.sort();
        assert_eq!(found, expected);
        assert_eq!(of("kernel").len(), 6);
    }

    #[test]
    fn nested_settings_are_written_as_paths() {
        let document = json!({
            "name": "x",
            "workload": { "clients": [8, 64], "think": null },
            "layout": [{ "name": "a" }, { "name": "b" }],
        });
        let lines: Vec<String> = facts(&document)
            .into_iter()
            .map(|fact| format!("{}={}", fact.path.clone(), fact.text()))
            .collect();
        assert_eq!(
            lines,
            [
                "name=x",
                "workload.clients=8, 64",
                "workload.think=unknown",
                "layout 1.name=a",
                "layout 2.name=b",
            ]
        );
    }
}
