//! go-tpc (github.com/pingcap/go-tpc) by the server's socket.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Instant;

use super::tpcc::{CLIENTS, Peer, WAREHOUSES};
use super::{Private, Reached, ended_children_cpu_s, on_path};

const DATABASE: &str = "go_tpc";

pub(super) struct GoTpc {
    program: PathBuf,
}

impl GoTpc {
    pub(super) fn find() -> Option<GoTpc> {
        let program = on_path("go-tpc");
        if program.is_none() {
            eprintln!("  skipped: go-tpc is not on the path");
        }
        program.map(|program| GoTpc { program })
    }

    fn carry_out(&self, private: &Private, what: &[&str]) -> Output {
        // Of two hosts lib/pq takes the one that sorts last (`ParseURL` of its url.go), so "!" gives way to the socket.
        let socket = private.socket_directory().display().to_string();
        let parameters = format!("sslmode=disable&host={}", socket.replace('/', "%2F"));
        let mut command = Command::new(&self.program);
        command
            .args(["tpcc", what[0], "-d", "postgres", "-U", "spindle"])
            .args(["-p", &private.password(), "-D", DATABASE])
            .args(["-H", "!", "-P", "5432"])
            .args(["--conn-params", &parameters])
            .args(["--warehouses", &WAREHOUSES.to_string()])
            .args(["-T", &CLIENTS.to_string()])
            .args(&what[1..]);
        let output = command.output().expect("go-tpc runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "go-tpc {}: {said}", what[0]);
        output
    }
}

impl Peer for GoTpc {
    fn name(&self) -> &'static str {
        "go-tpc"
    }

    fn load(&self, private: &Private) -> f64 {
        private.create_database(DATABASE);
        let began = Instant::now();
        self.carry_out(private, &["prepare", "--no-check"]);
        began.elapsed().as_secs_f64()
    }

    fn run(&self, private: &Private, measure_s: u64) -> Reached {
        let time = format!("{measure_s}s");
        let before = ended_children_cpu_s();
        let output = self.carry_out(private, &["run", "--time", &time]);
        let cpu_s = ended_children_cpu_s() - before;
        let text = String::from_utf8_lossy(&output.stdout);
        let transactions: f64 = text.lines().filter_map(count).sum();
        assert!(transactions > 0.0, "go-tpc did nothing: {text}");
        Reached {
            tps: transactions / measure_s as f64,
            cpu_us: cpu_s * 1e6 / transactions,
        }
    }
}

/// Transactions of a kind: `[Summary] DELIVERY - Takes(s): 5.9, Count: 312, ...`; those that failed have a kind of
/// their own.
fn count(line: &str) -> Option<f64> {
    let rest = line.strip_prefix("[Summary] ")?;
    let (kind, figures) = rest.split_once(" - Takes")?;
    let (_, count) = figures.split_once("Count: ")?;
    let is_done = !kind.trim().ends_with("_ERR");
    is_done.then(|| count.split(',').next()?.trim().parse().ok())?
}
