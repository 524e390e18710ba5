//! TPC-B and the point select beside pgbench: the same statements, prepared, eight clients.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{Purpose, ServerKind, create_and_load, server};
use spindle_text::section::TextFile;
use spindle_workload::sql::{Dialect, SqlWorkload, Tpcb};
use spindle_workload::{MadeFor, ScriptSettings, WorkloadSettings};

use super::{
    CACHE_BYTES, Private, Reached, add_pairs, ended_children_cpu_s, ours, program_of_postgres,
};
use crate::Pace;
use crate::figures::{Figures, Goal};

const CLIENTS: usize = 8;
const SCALE: u32 = 20;
/// What Spindle's workload does, as pgbench's built-in scripts are written.
const TPCB: &str = "\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM accounts WHERE aid = :aid;
UPDATE tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO history (tid, bid, aid, delta, mtime, client, number) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP, :client_id, :aid);
END;
";
const SELECT: &str = "\\set aid random(1, 100000 * :scale)
SELECT abalance FROM accounts WHERE aid = :aid;
";

/// TPC-B as Spindle has it built in.
pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    compare(pace, directory, figures, false);
}

/// The very files that pgbench reads, as a workload of scripts.
pub fn scripts(pace: Pace, directory: &Path, figures: &mut Figures) {
    compare(pace, directory, figures, true);
}

fn compare(pace: Pace, directory: &Path, figures: &mut Figures, are_scripts: bool) {
    let Some(request) = Private::request(
        ServerKind::Postgres,
        CLIENTS,
        CACHE_BYTES,
        Tpcb::loaded_bytes(SCALE),
    ) else {
        return;
    };
    let Some(pgbench) = program_of_postgres("pgbench") else {
        eprintln!("  skipped: pgbench is not installed");
        return;
    };
    let directories = Private::directories(directory);
    let loaded = Tpcb::new(SCALE, false);
    let postgres = server(ServerKind::Postgres);
    create_and_load(postgres, &request, &directories, &loaded, &Arc::default())
        .expect("TPC-B is loaded");
    let private = Private::start(ServerKind::Postgres, &request, directories, Purpose::Trial);
    for (what, select_only, script) in [("TPC-B", false, TPCB), ("select", true, SELECT)] {
        let (engine, of) = match are_scripts {
            true => (private.engine_of(scripted(script)), " from a script"),
            false => (built_in(&private, select_only), ""),
        };
        let path = directory.join("script.sql");
        std::fs::write(&path, script).expect("the script is written");
        let measure = pace.measure * 2;
        let theirs = || beside(&pgbench, &private, &path, measure.as_secs().max(1));
        // Both once, to fill the cache.
        ours(&engine, CLIENTS, pace.warm_up);
        theirs();
        let pairs: Vec<(Reached, Reached)> = (0..pace.pairs)
            .map(|_| (ours(&engine, CLIENTS, measure), theirs()))
            .collect();
        add_pairs(
            figures,
            &format!("PostgreSQL {what}{of}"),
            "pgbench -M prepared -c 8",
            &pairs,
            (Some(Goal::AtLeast(0.97)), Some(Goal::AtMost(1.0))),
        );
    }
}

fn built_in(private: &Private, select_only: bool) -> Arc<dyn RunningEngine> {
    private.engine(Tpcb::new(SCALE, select_only))
}

/// A script as a workload; the tables are there.
fn scripted(script: &str) -> Arc<dyn SqlWorkload> {
    let settings = ScriptSettings {
        scripts: vec![TextFile {
            name: "script.sql".to_owned(),
            weight: 1,
            text: script.to_owned(),
        }],
        load: Vec::new(),
        check: Vec::new(),
        define: BTreeMap::from([("scale".to_owned(), SCALE.to_string())]),
    };
    let made_for = MadeFor {
        data_bytes: Tpcb::loaded_bytes(SCALE),
        block_bytes: 8 << 10,
        clients: CLIENTS as u64,
        seed: 1,
        dialect: Some(Dialect::Postgres),
    };
    settings.make(&made_for).in_sql(1)
}

fn beside(pgbench: &Path, private: &Private, script: &Path, measure_s: u64) -> Reached {
    let mut command = Command::new(pgbench);
    command
        .env("PGPASSWORD", private.password())
        .args(["-n", "-M", "prepared", "-j", "2", "-U", "spindle"])
        .args(["-c", &CLIENTS.to_string()])
        .args(["-T", &measure_s.to_string()])
        .args(["-D", &format!("scale={SCALE}")])
        .arg("-h")
        .arg(private.socket_directory())
        .arg("-f")
        .arg(script)
        .arg("postgres");
    let before = ended_children_cpu_s();
    let output = command.output().expect("pgbench runs");
    let cpu_s = ended_children_cpu_s() - before;
    let transactions = figure(&output, "number of transactions actually processed: ");
    Reached {
        tps: figure(&output, "tps = "),
        cpu_us: cpu_s * 1e6 / transactions,
    }
}

fn figure(output: &Output, before: &str) -> f64 {
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.split_once(before).map(|(_, rest)| rest);
    let number = found.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or_else(|| {
        let error = String::from_utf8_lossy(&output.stderr);
        panic!("pgbench said no {before:?}: {text} {error}")
    })
}
