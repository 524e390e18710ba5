//! `result.json` of format 1, where each entry named the workload that is the same for all.

use serde_json::Value;

use super::FORMAT_VERSION;

/// The same in the present format: the workload stands once, in the head.
pub(super) fn lifted(mut result: Value) -> Value {
    let workload = result["cases"][0]["workload"].as_str().unwrap_or_default();
    result["workload"] = Value::from(workload);
    result["format"] = Value::from(FORMAT_VERSION);
    result
}
