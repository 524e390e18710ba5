//! A JSON document as a flat list of settings, so that an experiment or a machine can be shown without knowing its
//! shape.

use serde_json::Value;

/// Every scalar of a document with its path, in the order of the document: `database.size`, `layout 2 name`. Lists of
/// scalars are one entry; positions in other lists count from 1. A missing value is written as `unknown`.
pub(crate) fn facts(document: &Value) -> Vec<(String, String)> {
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

/// The settings of an experiment, those left out that its engine does not have.
pub(crate) fn experiment_facts(experiment: &Value) -> Vec<(String, String)> {
    let engine = experiment["database"]["engine"].as_str();
    let is_embedded = engine.is_none_or(|engine| engine == "kernel");
    let is_of_server = |key: &str| {
        let Some((_, of_database)) = key.split_once("database.") else {
            return true;
        };
        let name = of_database.split('.').next().unwrap_or_default();
        !OF_THE_EMBEDDED_DATABASE.contains(&name)
    };
    let mut facts = facts(experiment);
    facts.retain(|(key, value)| {
        is_embedded || is_of_server(key) && !(key.ends_with("redo_path") && value == "unknown")
    });
    facts
}

fn collect(value: &Value, path: &str, facts: &mut Vec<(String, String)>) {
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
            let items: Vec<String> = items.iter().map(scalar).collect();
            facts.push((path.to_owned(), items.join(", ")));
        }
        value => facts.push((path.to_owned(), scalar(value))),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
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
            .map(|(key, _)| key)
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
            .map(|(key, value)| format!("{key}={value}"))
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
