//! HammerDB (github.com/TPC-Council/HammerDB) by the server's socket: the tables and routines, and the script of a
//! timed run, that its own code writes, carried out by `tclsh` without its interface (`hammerdb.tcl`). Each virtual
//! user is a process; it has no keying or thinking time, keeps to one warehouse and writes nothing about its
//! transactions. It calls either procedures, with the statement's text, or functions by prepared statements, which is
//! its default.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use spindle_workload::sql::TpccMix;

use super::tpcc::{CLIENTS, WAREHOUSES};
use super::{Private, Reached, cpu_of_threads, on_path};

const USER: &str = "hammerdb";
const WITHOUT_INTERFACE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/benches/speed/postgres/hammerdb.tcl"
);

/// One of the two ways.
pub(super) struct HammerDb {
    pub(super) name: &'static str,
    /// Its tables and routines.
    database: &'static str,
    /// Whether they are procedures.
    procedures: bool,
    tclsh: PathBuf,
    /// Its source.
    home: PathBuf,
}

impl HammerDb {
    /// Of 23 transactions (`loadtimedpgtpcc` of its pgoltp.tcl).
    pub(super) const MIX: TpccMix = TpccMix {
        new_order: 10,
        payment: 10,
        order_status: 1,
        delivery: 1,
        stock_level: 1,
    };

    /// Both ways, when it is found.
    pub(super) fn find() -> Vec<HammerDb> {
        let home = PathBuf::from(std::env::var_os("HAMMERDB").unwrap_or_default());
        if !home.join("src/postgresql/pgoltp.tcl").is_file() {
            eprintln!(
                "  skipped: the environment variable HAMMERDB names no directory with src/postgresql/pgoltp.tcl"
            );
            return Vec::new();
        }
        let Some(tclsh) = on_path("tclsh") else {
            eprintln!("  skipped: HammerDB is found, but tclsh is not on the path");
            return Vec::new();
        };
        let found = |(name, database, procedures)| HammerDb {
            name,
            database,
            procedures,
            tclsh: tclsh.clone(),
            home: home.clone(),
        };
        let ways = [
            ("HammerDB's procedures", "hammerdb_procedures", true),
            ("HammerDB's functions", "hammerdb_functions", false),
        ];
        let ways = ways.map(found);
        let checked = ways[0].command("check").output().expect("tclsh runs");
        if !checked.status.success() {
            let said = String::from_utf8_lossy(&checked.stderr);
            let why = said.lines().next().unwrap_or_default();
            eprintln!("  skipped: HammerDB is found, but tclsh says: {why}");
            return Vec::new();
        }
        ways.into()
    }

    /// Makes its tables and routines in their own database.
    pub(super) fn build(&self, private: &Private) {
        let mut command = self.command("build");
        let output = self
            .set(&mut command, private)
            .output()
            .expect("tclsh runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "HammerDB's tables: {said}");
    }

    /// Runs its users for a while: their processor time, and their transactions as the server counts them, from the
    /// moment they are set off. By then they are connected and have carried out a few.
    pub(super) fn run(&self, private: &Private, measure: Duration) -> Reached {
        let user = |_| {
            let mut command = self.command("drive");
            self.set(&mut command, private).stdin(Stdio::piped());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("tclsh runs")
        };
        let mut users = Users((0..CLIENTS).map(user).collect());
        users.wait_until_ready();
        let before = self.transactions(private);
        let look = |users: &Users| (Instant::now(), users.cpu());
        let (began, cpu) = look(&users);
        users.set_off();
        std::thread::sleep(measure);
        let (ended, cpu_then) = look(&users);
        users.kill();
        while self.ask(private, "select count(*) from pg_stat_activity") > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let transactions = (self.transactions(private) - before) as f64;
        Reached {
            tps: transactions / (ended - began).as_secs_f64(),
            cpu_us: (cpu_then - cpu).as_nanos() as f64 / 1e3 / transactions,
        }
    }

    fn command(&self, what: &str) -> Command {
        let mut command = Command::new(&self.tclsh);
        command.arg(WITHOUT_INTERFACE).arg(&self.home).arg(what);
        command
    }

    /// HammerDB's settings (config/postgresql.xml), as it comes but for the warehouses, the procedures, the server, and
    /// that errors end a user. It is killed long before it has carried out this many transactions.
    fn set<'a>(&self, command: &'a mut Command, private: &Private) -> &'a mut Command {
        let socket = private.socket_directory().display().to_string();
        let password = private.password();
        let warehouses = WAREHOUSES.to_string();
        let procedures = self.procedures.to_string();
        let settings = [
            ("pg_host", socket.as_str()),
            ("pg_port", "5432"),
            ("pg_sslmode", "disable"),
            ("pg_superuser", "spindle"),
            ("pg_superuserpass", &password),
            ("pg_defaultdbase", "postgres"),
            ("pg_user", USER),
            ("pg_pass", &password),
            ("pg_dbase", self.database),
            ("pg_tspace", "pg_default"),
            ("pg_count_ware", &warehouses),
            ("pg_num_vu", "1"),
            ("pg_storedprocs", &procedures),
            ("pg_oracompat", "false"),
            ("pg_cituscompat", "false"),
            ("pg_partition", "false"),
            ("pg_vacuum", "false"),
            ("pg_dritasnap", "false"),
            ("pg_total_iterations", "1000000000"),
            ("pg_raiseerror", "true"),
            ("pg_keyandthink", "false"),
            ("pg_rampup", "0"),
            ("pg_duration", "1"),
            ("pg_async_scale", "false"),
            ("pg_connect_pool", "false"),
        ];
        for (setting, value) in settings {
            command.args([setting, value]);
        }
        command
    }

    /// Transactions that did what they were to do. A procedure of HammerDB's that finds a deadlock rolls back and says
    /// nothing, and what is left of the call then counts as a commit, too; a function fails, which ends the user.
    fn transactions(&self, private: &Private) -> i64 {
        let question = "select xact_commit - xact_rollback from pg_stat_database";
        self.ask(private, question)
    }

    /// Asks something about its database.
    fn ask(&self, private: &Private, question: &str) -> i64 {
        let mut connection = private.running.connect().expect("a connection");
        let question = format!("{question} where datname = '{}'", self.database);
        let mut answer = 0;
        let asked = connection.ask(&question, &mut |row| {
            answer = row.int(0)?;
            Ok(())
        });
        asked.expect("the server's statistics");
        answer
    }
}

/// Processes of virtual users; killed when dropped.
struct Users(Vec<Child>);

impl Users {
    fn wait_until_ready(&mut self) {
        for user in &mut self.0 {
            let output = user.stdout.take().expect("its output");
            let mut lines = BufReader::new(output).lines();
            let is_ready = lines.any(|line| line.is_ok_and(|line| line == "ready"));
            assert!(is_ready, "HammerDB: {}", last_words(user));
        }
    }

    fn set_off(&mut self) {
        for user in &mut self.0 {
            let mut input = user.stdin.take().expect("it waits for a line");
            input.write_all(b"begin\n").expect("it reads the line");
        }
    }

    fn cpu(&self) -> Duration {
        let each = self.0.iter().map(|user| cpu_of_threads(user.id(), ""));
        each.sum()
    }

    /// Kills those that are still at work, as all of them must be.
    fn kill(&mut self) {
        for user in &mut self.0 {
            let has_ended = user.try_wait().expect("our own child").is_some();
            assert!(!has_ended, "HammerDB: {}", last_words(user));
            user.kill().expect("our own child");
        }
        for user in &mut self.0 {
            user.wait().expect("our own child");
        }
    }
}

impl Drop for Users {
    fn drop(&mut self) {
        for user in &mut self.0 {
            // It may have ended.
            let _ = user.kill();
            let _ = user.wait();
        }
    }
}

/// What a user said that ended by itself.
fn last_words(user: &mut Child) -> String {
    let mut said = String::new();
    let mut error = user.stderr.take().expect("its errors are ours to read");
    error.read_to_string(&mut said).expect("it speaks UTF-8");
    said
}
