//! The engines that may be asked for: their words, and the settings of each that are worth a comparison. What a server
//! is called and compared by, it says itself.

use spindle_engines::sql::{ComparableSettings, ServerKind, server};
use spindle_experiment::DatabaseEngine;
use spindle_text::word::Word;

use super::draft::value_of;
use super::error::UnknownEngine;

/// What is worth a comparison on the embedded database.
const OF_THE_KERNEL: &[ComparableSettings] = &[
    ComparableSettings {
        word: "access",
        says: "ways of reading and writing: buffered or direct, one by one or all together",
        asks: "which way of reading and writing is fastest",
        settings: &[(
            "io",
            &[
                "{ caching = \"buffered\", method = \"sync\" }",
                "{ caching = \"direct\", method = \"sync\" }",
                "{ caching = \"direct\", method = \"async\" }",
            ],
        )],
    },
    ComparableSettings {
        word: "writers",
        says: "one database writer or four, with synchronous and asynchronous I/O",
        asks: "which is faster, one database writer or four",
        settings: &[
            ("database.writers", &["1", "4"]),
            ("io.method", &["sync", "async"]),
        ],
    },
];

/// What is worth a comparison on an engine.
pub fn comparisons(engine: DatabaseEngine) -> &'static [ComparableSettings] {
    match engine {
        DatabaseEngine::Kernel => OF_THE_KERNEL,
        DatabaseEngine::Server(kind) => server(kind).comparisons(),
    }
}

/// Whether a server's processes are started for it.
pub fn has_processes(engine: DatabaseEngine) -> bool {
    matches!(engine, DatabaseEngine::Server(kind) if !server(kind).is_library())
}

/// Values as a list of an experiment file.
pub fn listed(values: &[&str]) -> String {
    let values: Vec<String> = values.iter().map(|value| value_of(value)).collect();
    format!("[{}]", values.join(", "))
}

/// The engine of a word, also of one that people have for it.
///
/// # Errors
/// The words that there are.
pub fn engine_of(word: &str) -> Result<DatabaseEngine, UnknownEngine> {
    let word = word.to_lowercase();
    let known = DatabaseEngine::of_word(&word).or_else(|| DatabaseEngine::of_other_word(&word));
    known.ok_or_else(|| {
        let servers = ServerKind::ALLOWED.iter().map(|(own, _)| *own);
        UnknownEngine {
            servers: servers.collect(),
        }
    })
}
