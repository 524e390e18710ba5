//! What no experiment file says: a journal that a stranger changed may say it all the same. A run continues only with
//! values that a reader would have given.

use spindle_engines::sections::{BUFFER_CACHE_BYTES, SIZE_BYTES};
use spindle_engines::spec::DatabaseSpec;
use spindle_text::plain::is_invisible;
use spindle_text::section::Section;
use spindle_workload::driver::CLIENTS;

use super::database::Database;
use super::experiment::Experiment;
use super::plan::{Plan, ROUNDS, RUNS};
use super::workload::WorkloadChoice;

impl Experiment {
    /// The key of a value that no reader gives; `None` where all may be.
    pub fn outside(&self) -> Option<&'static str> {
        let databases = self.layouts.iter().map(|layout| &layout.database);
        let mut databases = databases.chain([&self.database]);
        if self.layouts.is_empty()
            || self
                .layouts
                .iter()
                .any(|of| of.name.chars().any(is_invisible))
        {
            return Some("layout.name");
        }
        databases
            .find_map(of_database)
            .or_else(|| of_plan(&self.plan))
            .or_else(|| of_workload(&self.workload))
    }
}

fn of_database(database: &Database) -> Option<&'static str> {
    // A server that runs already has its own memory and data.
    let memory = database.spec.memory()?;
    if !SIZE_BYTES.contains(&database.size_bytes) {
        return Some("size");
    }
    if !BUFFER_CACHE_BYTES.contains(&memory.buffer_cache_bytes) {
        return Some("buffer_cache");
    }
    if memory.memory_bytes < memory.buffer_cache_bytes {
        return Some("memory");
    }
    match &database.spec {
        DatabaseSpec::Kernel(kernel) => {
            kernel.files.outside().or_else(|| kernel.instance.outside())
        }
        DatabaseSpec::Server(_) | DatabaseSpec::Remote(_) => None,
    }
}

fn of_plan(plan: &Plan) -> Option<&'static str> {
    if !ROUNDS.contains(&plan.rounds) {
        Some("rounds")
    } else if !RUNS.contains(&plan.runs) {
        Some("runs")
    } else if plan.measure_ms == 0 {
        Some("measure")
    } else if plan.interleave_ms == Some(0) {
        Some("interleave")
    } else {
        None
    }
}

fn of_workload(workload: &WorkloadChoice) -> Option<&'static str> {
    let clients = &workload.clients;
    if clients.is_empty() || clients.iter().any(|count| !CLIENTS.contains(count)) {
        return Some("clients");
    }
    workload.transactions.outside()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(from: &str, to: &str) -> Option<&'static str> {
        let text = "[[layout]]\nname = \"a\"\n";
        let experiment = Experiment::parse("x.toml", text, &[]).unwrap();
        let kept = serde_json::to_string(&experiment).unwrap();
        assert!(kept.contains(from), "{kept}");
        serde_json::from_str::<Experiment>(&kept.replace(from, to))
            .unwrap()
            .outside()
    }

    #[test]
    fn what_no_reader_gives_is_found_by_its_key() {
        assert_eq!(changed("\"a\"", "\"b\""), None);
        for (from, to, key) in [
            (
                "\"block_size_bytes\":8192",
                "\"block_size_bytes\":0",
                "block_size",
            ),
            (
                "\"block_size_bytes\":8192",
                "\"block_size_bytes\":8193",
                "block_size",
            ),
            ("\"datafiles\":4", "\"datafiles\":0", "datafiles"),
            ("\"log_files\":3", "\"log_files\":1", "log_files"),
            ("\"writers\":1", "\"writers\":0", "writers"),
            (
                "\"buffer_cache_bytes\":67108864",
                "\"buffer_cache_bytes\":0",
                "buffer_cache",
            ),
            (
                "\"buffer_cache_bytes\":67108864",
                "\"buffer_cache_bytes\":68719476736",
                "memory",
            ),
            ("\"rounds\":3", "\"rounds\":0", "rounds"),
            ("\"runs\":1", "\"runs\":4000000000", "runs"),
            ("\"clients\":[8]", "\"clients\":[]", "clients"),
            ("\"clients\":[8]", "\"clients\":[0]", "clients"),
            ("\"clients\":[8]", "\"clients\":[4000000000]", "clients"),
            ("\"name\":\"a\"", "\"name\":\"a\u{200b}\"", "layout.name"),
        ] {
            assert_eq!(changed(from, to), Some(key), "{to}");
        }
    }
}
