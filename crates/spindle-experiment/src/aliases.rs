//! Other words for keys, as engines themselves have them: `shared_buffers` is `buffer_cache`, `wal` is `redo`. They are
//! put right in the tree of the file before it is read, so that nothing else knows of them.

use super::document::{Document, DocumentTable, KeyValue, Node, Value};
use super::doubts::anywhere;
use super::error::ExperimentError;

/// Words for keys of a database, and what they are called here.
const OF_DATABASE: [(&str, &str); 5] = [
    ("shared_buffers", "buffer_cache"),
    ("innodb_buffer_pool_size", "buffer_cache"),
    ("wal_path", "redo_path"),
    ("innodb_log_group_home_dir", "redo_path"),
    ("wal_io", "redo_io"),
];
/// Words for kinds of files in a placement.
const OF_PLACEMENT: [(&str, &str); 1] = [("wal", "redo")];

/// Words of engines, each with the key that it is called here.
pub fn aliases() -> impl Iterator<Item = (&'static str, &'static str)> {
    OF_DATABASE.into_iter().chain(OF_PLACEMENT)
}

/// Puts all of them right.
pub(super) fn put_right(document: &mut Document) {
    if let Some(mut database) = document.table("database") {
        rename(document, &mut database, &OF_DATABASE);
        document.put_table("database", database);
    }
    let Some(layouts) = document.list("layout").map(<[Node]>::to_vec) else {
        return;
    };
    let mut right = Vec::new();
    for mut layout in layouts {
        if let Value::Table(table) = &mut layout.value {
            of_layout(document, table);
        }
        right.push(layout);
    }
    document.put_list("layout", right);
}

/// The path of a key of a layout, in the words used here.
pub(super) fn path_put_right(path: Vec<String>) -> Vec<String> {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let right_of = |word: &str, words: &[(&str, &'static str)]| {
        let mut words = words.iter();
        words
            .find(|(other, _)| *other == word)
            .map(|(_, right)| *right)
    };
    match words.as_slice() {
        ["settings", _, ..] => [vec!["database".to_owned()], path].concat(),
        ["placement", kind] if let Some(right) = right_of(kind, &OF_PLACEMENT) => {
            vec!["placement".to_owned(), right.to_owned()]
        }
        ["database", key] | [key] if let Some(right) = right_of(key, &OF_DATABASE) => {
            vec!["database".to_owned(), right.to_owned()]
        }
        _ => path,
    }
}

fn of_layout(document: &Document, layout: &mut DocumentTable) {
    for entry in &mut layout.entries {
        let words: &[(&str, &str)] = match entry.key.as_str() {
            "database" => &OF_DATABASE,
            "placement" => &OF_PLACEMENT,
            _ => continue,
        };
        if let Value::Table(table) = &mut entry.node.value {
            rename(document, table, words);
        }
    }
    // The settings of a server may stand in the layout itself.
    if let Some(settings) = layout.take("settings") {
        let mut database = match layout.take("database").map(|entry| entry.node.value) {
            Some(Value::Table(database)) => database,
            _ => DocumentTable::EMPTY,
        };
        if let Some(twice) = database.get("settings") {
            let error = ExperimentError::new("the settings of a layout are given twice")
                .help("keep one of settings and database.settings");
            document.note(document.mark(error, &twice.place, "these are settings, too"));
            database.take("settings");
        }
        let place = settings.key_place.clone();
        database.entries.push(settings);
        layout.put("database", Value::Table(database), &place);
    }
}

fn rename(document: &Document, table: &mut DocumentTable, words: &[(&str, &str)]) {
    for (word, right) in words {
        let Some(entry) = table.take(word) else {
            continue;
        };
        if let Some(other) = table.get(right) {
            // What the command line says counts, in whichever words; but it may say one thing only.
            let (one, again) = (entry.node.place.text, other.place.text);
            if again > one && one == 0 {
                continue;
            }
            if again == one || (again > 0 && one > 0) {
                // Which of them counts is not known.
                let error = ExperimentError::new(format!("{word} and {right} are one setting"))
                    .at_key((*right).to_owned())
                    .doubting([anywhere(right)])
                    .help("keep one of them");
                let label = format!("{right} is set, too");
                document.note(document.mark(error, &entry.key_place, label));
            }
            table.take(right);
        }
        table.entries.push(KeyValue {
            key: (*right).to_owned(),
            ..entry
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Changes, Database, DatabaseSpec, Experiment};
    use std::path::Path;

    const LAYOUTS: &str = "[[layout]]\nname = \"a\"\nplacement = { wal = \"b\" }\nsettings = { work_mem = \"8MB\" }\n\
                           [[layout]]\nname = \"b\"\ndatabase = { shared_buffers = \"32MiB\" }\n";

    fn cache_bytes(database: &Database) -> u64 {
        database.spec.memory().unwrap().buffer_cache_bytes
    }

    fn read(text: &str, sets: &[&str], vary: &[&str]) -> Result<Experiment, String> {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (sets, vary) = (owned(sets), owned(vary));
        let changes = Changes {
            sets: &sets,
            vary: &vary,
            ..Changes::default()
        };
        let read = Experiment::from_text(Path::new("x.toml"), text, changes, false);
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn an_engine_may_have_another_name() {
        for (word, engine) in [
            ("mysql", "mariadb"),
            ("postgresql", "postgres"),
            ("embedded", "kernel"),
        ] {
            let of = |word: &str| {
                let text = format!("[database]\nengine = \"{word}\"\n[[layout]]\nname = \"a\"\n");
                read(&text, &[], &[])
            };
            let (found, expected) = (of(word).unwrap(), of(engine).unwrap());
            assert_eq!(found.database, expected.database, "{word}");
        }
    }

    #[test]
    fn keys_may_be_in_the_words_of_the_engine() {
        let text =
            format!("[database]\nengine = \"postgres\"\nshared_buffers = \"16MiB\"\n{LAYOUTS}");
        let experiment = read(&text, &[], &[]).unwrap();
        assert_eq!(cache_bytes(&experiment.database), 16 << 20);
        assert_eq!(cache_bytes(experiment.database_of(1)), 32 << 20);
        assert_eq!(
            experiment.layouts[0]
                .placement
                .layouts()
                .collect::<Vec<_>>(),
            ["b"]
        );
        let DatabaseSpec::Server(server) = &experiment.database_of(0).spec else {
            panic!("it is a server of Spindle's own");
        };
        assert_eq!(server.settings["work_mem"], "8MB");
        let set = read(&text, &["database.buffer_cache=24MiB"], &[]).unwrap();
        assert_eq!(cache_bytes(&set.database), 24 << 20);
        let vary = read(&text, &[], &["shared_buffers=8MiB,12MiB"]).unwrap();
        assert_eq!(cache_bytes(vary.database_of(0)), 8 << 20);
        assert!(
            vary.layouts[1].name.ends_with("buffer_cache 12MiB"),
            "{}",
            vary.layouts[1].name
        );
    }

    #[test]
    fn the_command_line_counts_in_whichever_words() {
        let text =
            format!("[database]\nengine = \"postgres\"\nbuffer_cache = \"16MiB\"\n{LAYOUTS}");
        let set = read(&text, &["database.shared_buffers=24MiB"], &[]).unwrap();
        assert_eq!(cache_bytes(&set.database), 24 << 20);
        let twice =
            format!("[database]\nbuffer_cache = \"16MiB\"\nshared_buffers = \"8MiB\"\n{LAYOUTS}");
        assert_eq!(
            read(&twice, &[], &[]).unwrap_err(),
            "shared_buffers and buffer_cache are one setting"
        );
        let both = [
            "database.shared_buffers=24MiB",
            "database.buffer_cache=32MiB",
        ];
        for sets in [both, [both[1], both[0]]] {
            assert_eq!(
                read(&text, &sets, &[]).unwrap_err(),
                "shared_buffers and buffer_cache are one setting"
            );
        }
    }
}
