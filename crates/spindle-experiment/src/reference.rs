//! The tables of the reference that follow from declarations: `docs/experiment-file.md` has them as the crates that
//! obey the settings declare them. `SPINDLE_WRITE_REFERENCE=1 cargo test -p spindle-experiment reference::` writes
//! them.

use std::path::Path;

use spindle_engines::kernel::InstanceSettings;
use spindle_engines::sections::{
    DataSettings, RemoteSettings, ServerSettings, StartedSettings, note_redo_io,
    note_server_settings,
};
use spindle_engines::spec::FileSettings;
use spindle_layout::spec::{
    DeviceSettings, FileDeviceSettings, FileSystemSettings, Precondition, VolumeSpec,
};
use spindle_text::section::{Listing, SettingRow};
use spindle_text::word::Word;
use spindle_workload::driver::ClientSettings;
use spindle_workload::{ArrivalSettings, Hotspot, Transactions, WorkloadKind};

use crate::access_path::{AccessPathSettings, Method};
use crate::database::DatabaseEngine;
use crate::layout::{self, DiskGroupSpec, LayoutSettings, StripingByKind};
use crate::limit::{Delay, Rates};
use crate::load_machine::LoadSettings;
use crate::plan::PlanSettings;
use crate::sections::keys_by_section;
use crate::workload::kinds_that;
use crate::{TopSettings, note_sections};

const PAGE: &str = "../../docs/experiment-file.md";
const SCHEMA: &str = "../../docs/result.schema.json";
/// The section behind the kinds of workload.
const AFTER_KINDS: &str = "## `[plan]`";

/// A table of the page.
struct ReferenceTable {
    /// How the heading above it begins.
    heading: String,
    /// How its first line begins.
    first: &'static str,
    /// Its rows, each with how it begins.
    rows: Vec<(String, String)>,
}

impl ReferenceTable {
    /// Of settings.
    fn of(heading: impl Into<String>, rows: Vec<SettingRow>) -> ReferenceTable {
        let line = |row: SettingRow| {
            let begin = format!("| `{}` |", row.key);
            let line = format!("{begin} {} | {} | {} |", row.default, row.allowed, row.says);
            (begin, line)
        };
        ReferenceTable {
            heading: heading.into(),
            first: "| key |",
            rows: rows.into_iter().map(line).collect(),
        }
    }
}

fn quoted(words: impl IntoIterator<Item = &'static str>) -> String {
    let quoted: Vec<String> = words
        .into_iter()
        .map(|word| format!("`{word:?}`"))
        .collect();
    quoted.join(", ")
}

/// Those of one kind of workload each, and what its comment says of it.
fn of_workloads() -> Vec<(ReferenceTable, &'static str)> {
    let mut all: Vec<(Vec<SettingRow>, ReferenceTable, &str)> = Vec::new();
    for ((word, kind), says) in WorkloadKind::ALLOWED.iter().zip(WorkloadKind::SAYS) {
        let rows = Listing::asked_by(|listing| {
            Transactions::read(*kind, listing);
        });
        // Kinds with the settings of another share its table.
        if all.iter().all(|(others, _, _)| *others != rows) {
            let heading = format!("### `[workload]` with `kind = \"{word}\"`");
            all.push((rows.clone(), ReferenceTable::of(heading, rows), says.trim()));
        }
    }
    all.into_iter()
        .map(|(_, table, says)| (table, says))
        .collect()
}

/// All others that follow from declarations.
fn tables() -> Vec<ReferenceTable> {
    let kinds = |in_sql: bool| quoted(kinds_that(|kind| kind.settings().is_in_sql() == in_sql));
    let kind = SettingRow {
        key: "kind",
        default: "`\"oltp_mix\"`".to_owned(),
        allowed: format!("{}; in SQL also {}", kinds(false), kinds(true)),
        says: "the kind of workload. Those in SQL need another engine than the embedded database"
            .to_owned(),
    };
    let engine = SettingRow {
        key: "engine",
        default: "`\"kernel\"`".to_owned(),
        allowed: quoted(DatabaseEngine::ALLOWED.iter().map(|(word, _)| *word)),
        says: "the database under test: the embedded one, or one that speaks SQL, \
               [below](#database-with-an-engine-that-speaks-sql). `\"oracle\"` is reserved"
            .to_owned(),
    };
    let way = |((word, _), says): (&(&str, Method), &&str)| {
        let begin = format!("| `{word:?}` |");
        let line = format!("{begin} {} |", spindle_text::section::as_in_a_cell(says));
        (begin, line)
    };
    let rows_of = |(heading, rows): (&str, Vec<SettingRow>)| ReferenceTable::of(heading, rows);
    let words = vec![
        ReferenceTable::of(DATABASE, vec![engine]),
        ReferenceTable::of(WORKLOAD, vec![kind]),
        ReferenceTable {
            heading: IO.to_owned(),
            first: "| method |",
            rows: Method::ALLOWED.iter().zip(Method::SAYS).map(way).collect(),
        },
    ];
    words
        .into_iter()
        .chain(sections().into_iter().map(rows_of))
        .collect()
}

const DATABASE: &str = "## `[database]`";
const SERVER: &str = "### `[database]` with an engine that speaks SQL";
const WORKLOAD: &str = "## `[workload]`";
const LAYOUT: &str = "## `[[layout]]`";
const DEVICES: &str = "### `[[layout]]` made by Spindle";
const IO: &str = "### The `io` table of a `[[layout]]`";

/// The keys of a layout that says what Spindle makes.
const OF_DEVICES: [&str; 4] = ["devices", "filesystem", "diskgroup", "volume"];

/// Every section but the kinds of workload, with the heading above its table.
fn sections() -> Vec<(&'static str, Vec<SettingRow>)> {
    let noted = Listing::asked_by(layout::note_tables);
    let (of_devices, of_layout): (Vec<SettingRow>, Vec<SettingRow>) = noted
        .into_iter()
        .partition(|row| OF_DEVICES.contains(&row.key));
    vec![
        ("## At the top", Listing::asked_by(note_sections)),
        ("## At the top", Listing::of::<TopSettings>()),
        (DATABASE, Listing::of::<DataSettings>()),
        (DATABASE, Listing::of::<StartedSettings>()),
        (DATABASE, Listing::of::<FileSettings>()),
        (DATABASE, Listing::of::<InstanceSettings>()),
        (DATABASE, Listing::asked_by(note_redo_io)),
        (SERVER, Listing::asked_by(note_server_settings)),
        (SERVER, Listing::of::<ServerSettings>()),
        (SERVER, Listing::of::<RemoteSettings>()),
        (WORKLOAD, Listing::of::<ClientSettings>()),
        (WORKLOAD, Listing::of::<ArrivalSettings>()),
        (
            "### The `hotspot` table of `slob`",
            Listing::of::<Hotspot>(),
        ),
        ("## `[plan]`", Listing::of::<PlanSettings>()),
        (LAYOUT, of_layout),
        (LAYOUT, Listing::of::<LayoutSettings>()),
        (DEVICES, of_devices),
        (DEVICES, Listing::of::<DeviceSettings>()),
        (
            "#### The `placement` table of a `[[layout]]`",
            Listing::asked_by(layout::note_kinds),
        ),
        (
            "#### An entry of the `devices` of a `[[layout]]`",
            Listing::of::<FileDeviceSettings>(),
        ),
        (
            "#### The `filesystem` table of a `[[layout]]`",
            Listing::of::<FileSystemSettings>(),
        ),
        (
            "#### The `volume` table of a `[[layout]]`",
            Listing::of::<VolumeSpec>(),
        ),
        (
            "#### The `diskgroup` table of a `[[layout]]`",
            Listing::of::<DiskGroupSpec>(),
        ),
        (
            "#### The `striping` table of a `diskgroup`",
            Listing::of::<StripingByKind>(),
        ),
        (
            "#### The `precondition` table of a `[[layout]]`",
            Listing::of::<Precondition>(),
        ),
        (IO, Listing::of::<AccessPathSettings>()),
        (
            "### The `limit` table of a `[[layout]]`",
            Listing::of::<Rates>(),
        ),
        (
            "### The `delay` table of a `[[layout]]`",
            Listing::of::<Delay>(),
        ),
        ("## `[[load]]`", Listing::of::<LoadSettings>()),
    ]
}

/// The page with the rows of a table as they are declared: in their places, new ones at its end.
fn with_rows(page: &str, table: &ReferenceTable) -> String {
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    let begin = lines
        .iter()
        .position(|line| line.starts_with(&table.heading));
    let begin = begin.unwrap_or_else(|| panic!("the page has no heading {}", table.heading));
    let above = lines[begin..]
        .iter()
        .position(|line| line.starts_with(table.first));
    let first = begin + above.expect("a table below the heading");
    for (row, line) in &table.rows {
        let length = lines[first..]
            .iter()
            .take_while(|line| line.starts_with('|'))
            .count();
        let known = &lines[first..first + length];
        match known.iter().position(|line| line.starts_with(row)) {
            Some(at) => lines[first + at].clone_from(line),
            None => lines.insert(first + length, line.clone()),
        }
    }
    lines.join("\n") + "\n"
}

/// The page with a heading for each kind of workload.
fn with_headings(page: &str, kinds: &[(ReferenceTable, &str)]) -> String {
    let mut page = page.to_owned();
    for (table, says) in kinds {
        if !page.contains(&format!("\n{}", table.heading)) {
            let head = "| key | default | allowed | meaning |\n| --- | --- | --- | --- |";
            let section = format!("{}\n\n{says}\n\n{head}\n\n{AFTER_KINDS}", table.heading);
            page = page.replacen(AFTER_KINDS, &section, 1);
        }
    }
    page
}

/// The schema of results with every method.
fn with_methods(schema: &str) -> String {
    let begin = "\"method\": { \"enum\": [";
    let (before, after) = schema.split_once(begin).expect("the schema lists methods");
    let (_, after) = after.split_once(']').expect("the list ends");
    let words = Method::ALLOWED
        .iter()
        .map(|(word, _)| *word)
        .chain(["server's"]);
    let words: Vec<String> = words.map(|word| format!("{word:?}")).collect();
    format!("{before}{begin}{}]{after}", words.join(", "))
}

/// Compares a document with what it is declared to be, or writes it.
fn is_as_declared(path: &str, declared: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let is = std::fs::read_to_string(&path).unwrap();
    let wanted = declared(&is);
    if std::env::var_os("SPINDLE_WRITE_REFERENCE").is_some() {
        std::fs::write(&path, wanted).unwrap();
        return;
    }
    let differing = is
        .lines()
        .zip(wanted.lines())
        .find(|(is, wanted)| is != wanted);
    assert!(
        is == wanted,
        "{} is not as declared: {differing:?}; write it with SPINDLE_WRITE_REFERENCE=1",
        path.display()
    );
}

#[test]
fn the_documents_say_what_is_declared() {
    is_as_declared(PAGE, |page| {
        let kinds = of_workloads();
        let page = with_headings(page, &kinds);
        let all = kinds.into_iter().map(|(table, _)| table).chain(tables());
        all.fold(page, |page, table| with_rows(&page, &table))
    });
    is_as_declared(SCHEMA, with_methods);
}

/// A key that is read in passing, and declared nowhere, would be missing in the reference.
#[test]
fn every_key_that_is_read_is_declared() {
    let mut declared: Vec<&str> = sections()
        .iter()
        .flat_map(|(_, rows)| rows.iter().map(|row| row.key))
        .collect();
    declared.extend(["engine", "kind"]);
    for (_, kind) in WorkloadKind::ALLOWED {
        let rows = Listing::asked_by(|listing| {
            Transactions::read(*kind, listing);
        });
        declared.extend(rows.iter().map(|row| row.key));
    }
    for (section, keys) in keys_by_section() {
        for key in keys {
            assert!(declared.contains(&key), "{key} of {section}");
        }
    }
}

#[test]
fn rows_are_put_right_and_new_ones_are_added() {
    let row = |key, default: &str| SettingRow {
        key,
        default: default.to_owned(),
        allowed: "1 to 2".to_owned(),
        says: "so".to_owned(),
    };
    let page = "# a\n\n| `k` | old |\n\n# b\n\ntext\n\n| key |\n| --- |\n| `k` | old |\nend\n";
    assert_eq!(
        with_rows(
            page,
            &ReferenceTable::of("# b", vec![row("k", "1"), row("l", "2")])
        ),
        "# a\n\n| `k` | old |\n\n# b\n\ntext\n\n| key |\n| --- |\n| `k` | 1 | 1 to 2 | so |\n| `l` | 2 | 1 to 2 | so |\nend\n"
    );
    let page = "# a\n\n## `[plan]`\n";
    let added = with_headings(
        page,
        &[(ReferenceTable::of("### b", Vec::new()), "What b is.")],
    );
    assert!(
        added.starts_with("# a\n\n### b\n\nWhat b is.\n\n| key |"),
        "{added}"
    );
    assert!(added.ends_with("\n\n## `[plan]`\n"), "{added}");
}
