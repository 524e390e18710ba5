//! BenchBase (github.com/cmu-db/benchbase), which knows no sockets: by loopback.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::tpcc::{CLIENTS, Peer, WAREHOUSES};
use super::{Private, Reached, ended_children_cpu_s};

const DATABASE: &str = "benchbase";

pub(super) struct BenchBase {
    /// Where it was unpacked, `benchbase.jar` in it.
    home: PathBuf,
    /// Its configuration and its results.
    place: PathBuf,
}

impl BenchBase {
    pub(super) const NAME: &str = "BenchBase";

    pub(super) fn find(place: &Path) -> Option<BenchBase> {
        let home = PathBuf::from(std::env::var_os("BENCHBASE").unwrap_or_default());
        if !home.join("benchbase.jar").is_file() {
            eprintln!(
                "  skipped: the environment variable BENCHBASE names no directory with benchbase.jar"
            );
            return None;
        }
        let place = place.to_path_buf();
        Some(BenchBase { home, place })
    }

    /// Has a server that is to be started listen where BenchBase can reach it.
    pub(super) fn let_in(data: &Path) {
        let conf = data.join("cluster/postgresql.auto.conf");
        let text = std::fs::read_to_string(&conf).expect("initdb made it");
        let written = std::fs::write(&conf, format!("{text}listen_addresses = '127.0.0.1'\n"));
        written.expect("the server's settings");
    }

    fn carry_out(&self, private: &Private, measure_s: u64, steps: [&str; 3]) -> String {
        let configuration = self.place.join("benchbase.xml");
        let password = private.password();
        let text = format!(
            "<?xml version=\"1.0\"?><parameters><type>POSTGRES</type><driver>org.postgresql.Driver</driver>\
             <url>jdbc:postgresql://127.0.0.1:5432/{DATABASE}?sslmode=disable&amp;reWriteBatchedInserts=true</url>\
             <username>spindle</username><password>{password}</password>\
             <isolation>TRANSACTION_READ_COMMITTED</isolation><batchsize>128</batchsize>\
             <scalefactor>{WAREHOUSES}</scalefactor><terminals>{CLIENTS}</terminals>\
             <works><work><time>{measure_s}</time><rate>unlimited</rate><weights>45,43,4,4,4</weights></work></works>\
             <transactiontypes>{}</transactiontypes></parameters>\n",
            [
                "NewOrder",
                "Payment",
                "OrderStatus",
                "Delivery",
                "StockLevel"
            ]
            .map(|name| format!("<transactiontype><name>{name}</name></transactiontype>"))
            .concat()
        );
        std::fs::write(&configuration, text).expect("its configuration");
        let [create, load, execute] = steps;
        let output = Command::new("java")
            .current_dir(&self.home)
            .args(["-jar", "benchbase.jar", "-b", "tpcc", "-c"])
            .arg(&configuration)
            .args([format!("--create={create}"), format!("--load={load}")])
            .arg(format!("--execute={execute}"))
            .arg("-d")
            .arg(self.place.join("benchbase-results"))
            .output()
            .expect("java runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(output.status.success(), "BenchBase: {said}");
        said
    }
}

impl Peer for BenchBase {
    fn name(&self) -> &'static str {
        BenchBase::NAME
    }

    fn load(&self, private: &Private) -> f64 {
        private.create_database(DATABASE);
        let began = Instant::now();
        self.carry_out(private, 1, ["true", "true", "false"]);
        began.elapsed().as_secs_f64()
    }

    fn run(&self, private: &Private, measure_s: u64) -> Reached {
        let before = ended_children_cpu_s();
        let said = self.carry_out(private, measure_s, ["false", "false", "true"]);
        let cpu_s = ended_children_cpu_s() - before;
        let transactions = measured_requests(&said);
        let transactions = transactions.unwrap_or_else(|| panic!("BenchBase: {said}"));
        Reached {
            tps: transactions / measure_s as f64,
            cpu_us: cpu_s * 1e6 / transactions,
        }
    }
}

/// `Results(state=EXIT, nanoSeconds=..., measuredRequests=12345) = ...`
fn measured_requests(said: &str) -> Option<f64> {
    let (_, rest) = said.split_once("measuredRequests=")?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    digits.parse().ok()
}
