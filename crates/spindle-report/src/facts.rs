//! A JSON document as a flat list of settings, so that an experiment or a machine can be shown without knowing its
//! shape.

use serde_json::Value;
use spindle_result::machine::Machine;

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

/// Every scalar of a document with its path, in the order of the document: `database.size`, `layout 2 name`. Lists of
/// scalars are one entry; positions in other lists count from 1.
pub(crate) fn facts(document: &Value) -> Vec<Fact> {
    let mut facts = Vec::new();
    collect(document, "", &mut facts);
    facts
}

/// The same of the machine; nothing where it was not looked at.
pub(crate) fn facts_of_machine(machine: Option<&Machine>) -> Vec<Fact> {
    machine.map_or_else(Vec::new, |machine| {
        let document = serde_json::to_value(machine).expect("plain data becomes JSON");
        facts(&document)
    })
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
