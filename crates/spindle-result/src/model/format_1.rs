//! What older versions wrote, in the present form. In `result.json` of format 1 each entry named the workload that is
//! the same for all; there and in journals of that time, that a layout's I/O is not direct stood among its notes.

use serde_json::Value;

use super::{FORMAT_VERSION, Layout, NOT_DIRECT_HERE, RunResult};

/// Reads a `result.json` of format 1.
pub(super) fn read(text: &str) -> Result<RunResult, serde_json::Error> {
    let mut value: Value = serde_json::from_str(text)?;
    let workload = value["cases"][0]["workload"].as_str().unwrap_or_default();
    value["workload"] = Value::from(workload);
    value["format"] = Value::from(FORMAT_VERSION);
    let mut result: RunResult = serde_json::from_value(value)?;
    let layouts = result.layouts.into_iter();
    result.layouts = layouts.map(Layout::of_any_version).collect();
    Ok(result)
}

impl Layout {
    /// The same, with what older versions wrote among its notes where it belongs.
    #[must_use]
    pub fn of_any_version(mut self) -> Layout {
        let why = |note: &str| {
            let rest = note.strip_prefix(NOT_DIRECT_HERE)?;
            rest.strip_prefix(": ").map(str::to_owned)
        };
        let old = self.notes.iter().enumerate();
        let mut old = old.filter_map(|(index, note)| Some((index, why(note)?)));
        if let Some((index, why)) = old.next() {
            self.notes.remove(index);
            self.not_direct = Some(why);
        }
        self
    }
}
