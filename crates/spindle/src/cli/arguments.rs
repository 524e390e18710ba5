//! All that people may type: the commands and their help. What a command alone has is declared beside it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use spindle_run::agent::protocol::AGENT_COMMAND;
use spindle_run::trial;
use spindle_run::trial::load::words::LOAD_COMMAND;

use super::number::number;
use super::options::{Changed, RUNS, Show, Watch};
use super::{ask, calibrate, import, init, results};
use crate::disk_group::DiskGroupCommand;

const EXIT_CODES: &str = "Exit codes: 0 done; 1 the run or a command failed; 2 the experiment file or the command line \
is wrong, and nothing was created; 3 no answer, because layouts could not be measured; 130 interrupted, go on with `spindle resume`. \
`spindle compare` and `spindle calibrate` have their own.";

/// Runs the same database workload on every storage layout you consider, and says which is faster, by how much, and how
/// sure it is.
#[derive(Parser)]
#[command(version, about, long_about = None, after_help = EXIT_CODES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Run an experiment: every layout, several rounds, one table and a verdict.
    #[command(
        after_help = "Example:\n  spindle run examples/quickstart.toml --set plan.rounds=5 --out runs/today\n  spindle run examples/quickstart.toml \
                      --vary database.writers=1,4 --only 'direct, async, writers 1' --quick\n  spindle run runs/today"
    )]
    Run {
        /// The experiment file; or the directory of an earlier run, to run its experiment again.
        file: PathBuf,
        /// The run directory [default: runs/NAME-TIME].
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        #[command(flatten)]
        changed: Changed,
        #[command(flatten)]
        show: Show,
        #[command(flatten)]
        watch: Watch,
    },
    /// Compare directories, or settings, without an experiment file: an answer in two minutes.
    #[command(after_help = ask::TRY_HELP)]
    Try(ask::Try),
    /// Ask five questions, and write an experiment file.
    #[command(after_help = init::INIT_HELP)]
    Init(init::Init),
    /// Continue a run that was interrupted, killed, or had failures; finished trials are kept.
    #[command(after_help = "Example:\n  spindle resume runs/quickstart-20260101-120000")]
    Resume {
        /// The run directory.
        directory: PathBuf,
        #[command(flatten)]
        show: Show,
        #[command(flatten)]
        watch: Watch,
    },
    /// Make the reports of a run again from its journal, and print its table.
    #[command(
        after_help = "Example:\n  spindle report runs/quickstart-20260101-120000 --json | jq .headline"
    )]
    Report {
        /// The run directory.
        directory: PathBuf,
        #[command(flatten)]
        show: Show,
    },
    /// Show a run on the terminal, from the answer down to what weakens it; writes nothing.
    #[command(after_help = "Example:\n  spindle show runs/quickstart-20260101-120000")]
    Show {
        /// The run directory.
        directory: PathBuf,
    },
    /// Print a run for other programs; or write runs into a PostgreSQL database.
    #[command(after_help = results::EXPORT_HELP)]
    Export(results::Export),
    /// Compare runs of different days or machines: the first with each of the others.
    #[command(after_help = results::COMPARE_HELP)]
    Compare(results::Compare),
    /// Tell when the runs of an experiment became faster or slower: change points over many runs.
    #[command(after_help = results::HISTORY_HELP)]
    History {
        /// Where to look.
        #[arg(default_value = RUNS)]
        directory: PathBuf,
        /// Text, or JSON for programs (described in docs/history.md).
        #[arg(long, value_enum, default_value_t = results::TellFormat::Text)]
        format: results::TellFormat,
    },
    /// List the runs below a directory.
    #[command(after_help = "Example:\n  spindle list /srv/runs")]
    List {
        /// Where to look.
        #[arg(default_value = RUNS)]
        directory: PathBuf,
    },
    /// Say what an experiment would make, write and take; touch nothing.
    #[command(after_help = "Example:\n  spindle plan examples/quickstart.toml --set plan.rounds=5")]
    Plan {
        /// The experiment file.
        file: PathBuf,
        #[command(flatten)]
        changed: Changed,
    },
    /// List experiment files to start from, or copy one of them here.
    #[command(after_help = "Example:\n  spindle examples --copy quickstart")]
    Examples {
        /// Copies the one of this name into the current directory.
        #[arg(long, value_name = "NAME")]
        copy: Option<String>,
    },
    /// Say what a word of a report or of an experiment file means: a finding, a column, a wait event, a setting.
    #[command(after_help = "Example:\n  spindle explain double buffering")]
    Explain {
        /// The word, or words [default: list them all].
        word: Vec<String>,
    },
    /// Remove what killed runs left: mounts, loop devices, volumes, files, control groups.
    #[command(after_help = "Example:\n  spindle clean --dry-run")]
    Clean {
        /// Only say what would be removed.
        #[arg(long)]
        dry_run: bool,
    },
    /// Tell what this machine can do, and what makes its results noisy; or look at an existing server.
    #[command(
        after_help = "Example:\n  spindle doctor\n  spindle doctor 'postgres://ann@db1/lab?sslmode=require' --password-env DB1_PASSWORD\n\n\
                      A server is only read: nothing of it is changed."
    )]
    Doctor {
        /// The address of a server that is running, as `url` of an experiment file.
        url: Option<String>,
        /// The environment variable that its password is in [default: where the server's own clients look].
        #[arg(long, value_name = "NAME", requires = "url")]
        password_env: Option<String>,
    },
    /// Turn what clients do to a server of yours into scripts and an experiment file.
    #[command(subcommand)]
    Import(import::Import),
    /// Measure what storage can do by itself: most IOPS, most MB/s, least latency, flushes.
    #[command(after_help = calibrate::CALIBRATE_HELP)]
    Calibrate(Box<calibrate::Calibrate>),
    /// Make, show, change and check disk groups on block devices and files.
    #[command(name = "diskgroup", subcommand)]
    DiskGroup(DiskGroupCommand),
    /// Cut the power of every layout, at many moments, and print what was lost. Needs root and device-mapper.
    #[command(
        after_help = "Example:\n  spindle powercut examples/power-cut.toml --cuts 200\n\nExit codes: 0 nothing was lost \
                      that had been promised; 1 something was, or a command failed; 2 the experiment file is wrong."
    )]
    Powercut(PowerCuts),
    /// Print what a shell needs to complete commands and options.
    #[command(
        after_help = "Example:\n  spindle completions bash > ~/.local/share/bash-completion/completions/spindle"
    )]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the manual pages, one a command, into a directory; for those who make packages.
    #[command(name = "man", hide = true)]
    Manual {
        /// An existing directory.
        directory: PathBuf,
    },
    /// Looks at the machine of an existing server; brought there and started by `run`, not by people.
    #[command(name = AGENT_COMMAND, hide = true)]
    Agent {
        /// The directory that was made for this program's file; both are removed.
        #[arg(long, value_name = "DIR")]
        made_for_it: Option<PathBuf>,
    },
    /// Runs clients of a load that is spread over machines; brought there and started by `run`, not by people.
    #[command(name = LOAD_COMMAND, hide = true)]
    LoadWorker {
        /// The directory that was made for this program's file; both are removed.
        #[arg(long, value_name = "DIR")]
        made_for_it: Option<PathBuf>,
    },
    /// The process of one trial; started by `run`, not by people.
    #[command(name = trial::supervisor::WORKER_COMMAND, hide = true)]
    TrialWorker,
}

#[derive(Args)]
pub(super) struct PowerCuts {
    /// The experiment file; its layouts are made small, on devices that stand in for theirs.
    pub(super) file: PathBuf,
    /// Cuts of each layout, with commits that wait and again with commits that do not.
    #[arg(long, default_value_t = 200, value_parser = number(1..=1_000_000_usize))]
    pub(super) cuts: usize,
    /// Draws the moments.
    #[arg(long, default_value_t = 1, value_parser = number(0..=u64::MAX))]
    pub(super) seed: u64,
    /// Where recordings and rows are kept [default: runs/powercut-NAME].
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Write the table into this Markdown file, too.
    #[arg(long, value_name = "FILE")]
    pub(super) document: Option<PathBuf>,
    /// An empty or new directory for images while power is cut; fast on tmpfs [default: work in --out's].
    #[arg(long, value_name = "DIR")]
    pub(super) work: Option<PathBuf>,
    /// Overrides a setting; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) sets: Vec<String>,
    /// Only record, on these two empty block devices.
    #[arg(long, num_args = 2, value_names = ["DEVICE", "LOG"], conflicts_with = "recorded")]
    pub(super) record_on: Option<Vec<PathBuf>>,
    /// Only cut, from the log that was recorded in this file or on this device.
    #[arg(long, value_name = "LOG")]
    pub(super) recorded: Option<PathBuf>,
}
