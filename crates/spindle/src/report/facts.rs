//! A JSON document as a flat list of settings, so that an experiment or a machine can be shown without knowing its shape.

use serde_json::Value;

/// Every scalar of a document with its path, in the order of the document: `database.size`, `layout 2 name`. Lists of
/// scalars are one entry; positions in other lists count from 1. A missing value is written as `unknown`.
pub(crate) fn facts(document: &Value) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    collect(document, "", &mut facts);
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
