//! Results of a server speak of it in its own words, and not in those of the embedded database.

use serde_json::json;
use spindle_harness::foreign_words;
use spindle_report::table::{self, Style};
use spindle_report::{brief, html, markdown, show};
use spindle_result::{
    CpuMicroseconds, ResponseTime, RunRecord, StoredRun, TimePart, TimeUse, Wait, Warning, build,
};

use super::fixture;

/// A server: its word, what it says it is, and its waits for a read, a commit, a write of the log and of the database.
struct Server {
    engine: &'static str,
    version: &'static str,
    waits: [&'static str; 4],
}

const SERVERS: [Server; 3] = [
    Server {
        engine: "postgres",
        version: "PostgreSQL 15.18",
        waits: [
            "DataFileRead (db file sequential read)",
            "WALSync (log file sync)",
            "WALWrite (log file parallel write)",
            "DataFileWrite (db file parallel write)",
        ],
    },
    Server {
        engine: "mariadb",
        version: "MariaDB 10.11",
        waits: [
            "innodb_data_file read (db file sequential read)",
            "stage/sql/Commit (log file sync)",
            "innodb_log_file write (log file parallel write)",
            "innodb_data_file write (db file parallel write)",
        ],
    },
    Server {
        engine: "sqlite",
        version: "SQLite 3.46",
        waits: [
            "read of the database (db file sequential read)",
            "sync of the log (log file sync)",
            "write of the log (log file parallel write)",
            "write of the database (db file parallel write)",
        ],
    },
];

/// The fixture's run as one of a server.
fn record_of(server: &Server) -> RunRecord {
    let mut record = fixture::record();
    let mut document = record.experiment.document().clone();
    document["database"]["engine"] = json!(server.engine);
    record.experiment = document.try_into().expect("an experiment");
    record.memory_budget_bytes = Some(64 << 20);
    record.own_cost = None;
    for layout in &mut record.layouts {
        layout.engine = Some(server.version.to_owned());
        layout.description = format!("{} on ext4", server.version);
    }
    for trial in record.cases.iter_mut().flat_map(|case| &mut case.trials) {
        trial.memory = None;
        trial.audit.dirty_buffer_bytes_at_end = None;
        let [read, commit, log_write, write] = server.waits;
        let of = |name: &str| -> String {
            match name {
                "db file sequential read" => read,
                "log file sync" => commit,
                "log file parallel write" => log_write,
                _ => write,
            }
            .to_owned()
        };
        trial.waits = trial
            .waits
            .iter()
            .map(|wait| Wait {
                event: of(wait.event.name()).into(),
                ..wait.clone()
            })
            .collect();
        let mean_us = trial.latency_us.mean;
        let part = |part: &str, share: f64| TimePart {
            part: TimeUse::from(part),
            us: share * mean_us,
        };
        trial.response_time = Some(ResponseTime {
            mean_us,
            parts: vec![
                part(read, 0.4),
                part(commit, 0.3),
                part("user CPU", 0.2),
                part("other", 0.1),
            ],
            excess_us: 0.0,
        });
        trial.cpu_us_per_transaction = Some(CpuMicroseconds {
            user: 180.0,
            system: 90.0,
        });
    }
    record
}

/// A page without its tags, its styles and its scripts.
fn read_by_people(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let is_code = tag.starts_with("style") || tag.starts_with("script");
        let end = match is_code {
            true => tag.find("</").map_or(tag.len(), |at| at + 2),
            false => 0,
        };
        rest = tag[end..].split_once('>').map_or("", |(_, after)| after);
    }
    text
}

#[test]
fn what_is_said_of_a_server_is_in_its_own_words() {
    for server in &SERVERS {
        let record = record_of(server);
        let mut result = build(&record).expect("the record is consistent");
        // What they say is up to the findings.
        result.findings.clear();
        result.warnings.push(Warning {
            text: "a warning of the run".to_owned(),
        });
        let run = StoredRun {
            directory: "runs/one".into(),
            id: "one".to_owned(),
            started_at: "2026-01-01T12:00:00Z".to_owned(),
            is_finished: true,
            result: result.clone(),
            record: record.clone(),
        };
        let style = Style::default();
        for (what, text) in [
            ("table", table::render(&result, style)),
            ("show", show::render(&run, style)),
            ("brief", brief::render(&result, "report.html", style)),
            ("markdown", markdown(&result, &record.series)),
            ("page", read_by_people(&html(&result, &record.series))),
        ] {
            let found = foreign_words(server.engine, &text);
            assert!(
                found.is_empty(),
                "{what} of {}: {found:?}\n{text}",
                server.engine
            );
        }
        let own = server.waits[1].split(" (").next().unwrap();
        let shown = show::render(&run, style);
        assert!(shown.contains(own), "{own}: {shown}");
    }
    // The embedded database has Oracle's.
    let embedded = build(&fixture::record()).unwrap();
    let told = table::render(&embedded, Style::default());
    assert!(
        foreign_words("postgres", &told).contains(&"log file parallel write"),
        "{told}"
    );
}
