//! Do plans that stop by themselves say the same as long fixed ones, and how much sooner? Questions whose answer is
//! known are asked of this machine twice: by 30 rounds of 5 s, and by the plan of `spindle try` with as much time as it
//! wants. `cargo bench -p spindle --bench plans` takes seven minutes and a half for each of the four, of which most are
//! the fixed plan's; words after `--` choose among them, `--rounds N` makes the fixed plan shorter, `--check` ends with
//! 1 when the goal is missed. Runs in the target directory, which takes 1 GiB meanwhile.
#![allow(clippy::disallowed_methods, clippy::print_stdout)] // It lives in the real world, and tells its figures.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use spindle_result::{Pair, RunResult};

/// The plan of the comparison: `plan.measure` of 5 s, so many rounds.
const FIXED_ROUNDS: u32 = 30;
/// Wall time of the shorter plan over that of the fixed one.
const GOAL: f64 = 1.0 / 3.0;

/// A pair of layouts of which is known what is to be said.
struct Question {
    name: &'static str,
    /// What stands between the name and the plan.
    database: &'static str,
    /// What the two layouts have.
    layouts: [&'static str; 2],
}

/// Transactions of one read each, by one client, which a delay makes up nearly all of.
const SLOB: &str = "[database]\nsize = \"64MiB\"\nbuffer_cache = \"1MiB\"\nlog_file_size = \"8MiB\"\n\
                    [workload]\nkind = \"slob\"\nupdate_percent = 0\nwork_unit = 1\nclients = 1\n";
/// As `spindle try` has it.
const MIX: &str = "[database]\nsize = \"256MiB\"\nbuffer_cache = \"16MiB\"\nlog_file_size = \"32MiB\"\n\
                   [workload]\nkind = \"oltp_mix\"\nclients = 8\n";

const QUESTIONS: [Question; 4] = [
    Question {
        name: "equal",
        database: SLOB,
        layouts: ["delay = { read_us = 1000 }", "delay = { read_us = 1000 }"],
    },
    Question {
        name: "slower-by-1-percent",
        database: SLOB,
        layouts: ["delay = { read_us = 1000 }", "delay = { read_us = 1010 }"],
    },
    Question {
        name: "slower-by-5-percent",
        database: SLOB,
        layouts: ["delay = { read_us = 1000 }", "delay = { read_us = 1050 }"],
    },
    Question {
        name: "async-or-sync",
        database: MIX,
        layouts: ["io = { method = \"async\" }", "io = { method = \"sync\" }"],
    },
];

/// What one run said, and the time it took.
struct Answer {
    pair: Pair,
    wall_s: f64,
}

impl Answer {
    fn told(&self) -> String {
        let Pair { ratio, ci95, .. } = &self.pair;
        let interval =
            ci95.map_or_else(String::new, |(low, high)| format!(" ({low:.3}-{high:.3})"));
        format!(
            "{} {ratio:.3}{interval}, {} rounds, {:.0} s",
            self.pair.verdict, self.pair.rounds, self.wall_s
        )
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let after = |word: &str| arguments.iter().skip_while(|at| *at != word).nth(1);
    let rounds = after("--rounds").map_or(FIXED_ROUNDS, |n| n.parse().expect("a number of rounds"));
    let is_any_named = QUESTIONS.iter().any(|question| has(question.name));
    let mut is_met = true;
    println!(
        "{:<22}{:<56}{:<56}wall time",
        "question", "fixed plan", "plan that stops by itself"
    );
    for (number, question) in QUESTIONS.iter().enumerate() {
        if is_any_named && !has(question.name) {
            continue;
        }
        let fixed = format!("warmup = \"1s\"\nmeasure = \"5s\"\nrounds = {rounds}\n");
        let stopping = "warmup = \"700ms\"\nmeasure = \"2s\"\nrounds = \"auto\"\nmax = 100\n";
        // Which comes first alternates, as a machine may change meanwhile.
        let (long, short) = if number % 2 == 0 {
            let long = question.ask(&fixed);
            (long, question.ask(stopping))
        } else {
            let short = question.ask(stopping);
            (question.ask(&fixed), short)
        };
        let part = short.wall_s / long.wall_s;
        println!(
            "{:<22}{:<56}{:<56}{part:.2} x",
            question.name,
            long.told(),
            short.told()
        );
        is_met &= part <= GOAL && long.pair.verdict == short.pair.verdict;
    }
    let goal = "goal: the same verdicts in at most a third of the wall time";
    println!("{goal}: {}", if is_met { "met" } else { "missed" });
    ExitCode::from(u8::from(has("--check") && !is_met))
}

impl Question {
    fn ask(&self, plan: &str) -> Answer {
        let place =
            tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
        let [first, second] = self.layouts;
        let text = format!(
            "name = \"{}\"\n{}[plan]\nquiet = \"2s\"\n{plan}[[layout]]\nname = \"a\"\n{first}\n[[layout]]\nname = \"b\"\n{second}\n",
            self.name, self.database
        );
        fs::write(place.path().join("experiment.toml"), text).expect("the experiment is written");
        let began = Instant::now();
        let ended = Command::new(env!("CARGO_BIN_EXE_spindle"))
            .args(["run", "experiment.toml", "--out", "out", "--quiet"])
            .current_dir(place.path())
            .stdin(Stdio::null())
            .output()
            .expect("spindle runs");
        let wall_s = began.elapsed().as_secs_f64();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{}: {said}", self.name);
        let pair = only_pair(&place.path().join("out/result.json"));
        Answer { pair, wall_s }
    }
}

fn only_pair(result: &Path) -> Pair {
    let text = fs::read_to_string(result).expect("a run leaves its result");
    let result = RunResult::from_json(&text).expect("its own result");
    result
        .pairs
        .into_iter()
        .next()
        .expect("two layouts are a pair")
}
