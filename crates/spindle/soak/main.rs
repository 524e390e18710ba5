//! The soak of the verdicts: small real runs whose truth is known. Half of the pairs are one layout under two names, so
//! every winner among them is false; in the others one layout is slowed by 5 %, and has to be found. And runs of six
//! equal layouts, each in a directory with files made for it, of which anything that is called different is false. The
//! same pairs again, each layout on an image, a loop device and its own file system, which may lie well or badly:
//! those want root. `make soak-verdicts` runs it; stop it as you like, it goes on where it was. It is an example to
//! Cargo, so that `cargo test` builds it and does not run it.

#![allow(clippy::disallowed_methods)]

mod tally;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::Parser;
use spindle::cli;
use spindle::reports::write_reports;
use spindle_experiment::Experiment;
use spindle_result::RunResult;
use spindle_run::journal::{self, Event};
use spindle_run::listener::Nobody;
use spindle_run::runner::{RunError, Runner};
use spindle_run::trial::supervisor::WORKER_COMMAND;
use spindle_text::files::Directory;
use tally::Tally;

/// Runs of six equal layouts, and of each kind that has [`PAIRS_PER_RUN`] pairs a run: 200 equal pairs, 100 of them
/// under each plan, and 100 slowed ones.
const RUNS_PER_KIND: usize = 25;
/// Equal and slowed pairs on images of their own: a run each, so that every pair has images that no other has.
const RUNS_ON_IMAGES: usize = 200;
const RUNS_ON_IMAGES_SLOWED: usize = 100;
/// Equal layouts of a run that has six.
const LAYOUTS_OF_SIX: usize = 6;
/// Load levels of a run: each is a separate pair.
const PAIRS_PER_RUN: usize = 4;
/// The most rounds of equal pairs and of slowed ones, where the plan stops by itself.
const ROUNDS_MAX_EQUAL: u32 = 12;
const ROUNDS_MAX_SLOWED: u32 = 30;

const DATABASE: &str = r#"
[database]
buffer_cache = "1MiB"
datafiles = 1
log_file_size = "2MiB"
"#;

/// What is known of a run's pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Equal, three rounds.
    EqualFixed,
    /// Equal, as many rounds as it takes.
    EqualAuto,
    /// The second layout's I/O takes 5 % longer, and transactions wait for hardly anything else.
    Slowed,
    /// Six equal layouts, each in a directory with files made for it, five rounds.
    Six,
    /// Equal, each on an image, a loop device and its own file system, five rounds.
    Images,
    /// The same, with the I/O of the second slowed as in `Slowed`.
    ImagesSlowed,
}

impl Kind {
    const ALL: [Kind; 6] = [
        Kind::EqualFixed,
        Kind::EqualAuto,
        Kind::Slowed,
        Kind::Six,
        Kind::Images,
        Kind::ImagesSlowed,
    ];

    fn name(self) -> &'static str {
        match self {
            Kind::EqualFixed => "equal-fixed",
            Kind::EqualAuto => "equal-auto",
            Kind::Slowed => "slowed",
            Kind::Six => "six",
            Kind::Images => "images",
            Kind::ImagesSlowed => "images-slowed",
        }
    }

    /// Whether a layout is a file system on its own image, which only root can mount.
    fn is_on_images(self) -> bool {
        matches!(self, Kind::Images | Kind::ImagesSlowed)
    }

    fn is_slowed(self) -> bool {
        matches!(self, Kind::Slowed | Kind::ImagesSlowed)
    }

    fn runs(self) -> usize {
        match self {
            Kind::EqualFixed | Kind::EqualAuto | Kind::Slowed | Kind::Six => RUNS_PER_KIND,
            Kind::Images => RUNS_ON_IMAGES,
            Kind::ImagesSlowed => RUNS_ON_IMAGES_SLOWED,
        }
    }

    /// Layouts beside the best, at all load levels together.
    fn verdicts_per_run(self) -> usize {
        match self {
            Kind::EqualFixed | Kind::EqualAuto | Kind::Slowed => PAIRS_PER_RUN,
            Kind::Six => LAYOUTS_OF_SIX - 1,
            Kind::Images | Kind::ImagesSlowed => 1,
        }
    }

    /// No margin: what would be a false winner shall not count as a draw.
    fn plan(self) -> String {
        let auto = |precision, rounds_max| {
            format!("rounds = \"auto\"\nprecision = \"{precision}%\"\nmax = {rounds_max}")
        };
        let rounds = match self {
            Kind::EqualFixed => "rounds = 3".to_string(),
            Kind::EqualAuto => auto("10", ROUNDS_MAX_EQUAL),
            Kind::Slowed | Kind::ImagesSlowed => auto("2.5", ROUNDS_MAX_SLOWED),
            Kind::Six | Kind::Images => "rounds = 5".to_string(),
        };
        let measure = if self.is_slowed() { "1s" } else { "300ms" };
        // Pairs on images are to survive whatever else the machine does: they wait for no rest.
        let quiet = if self.is_on_images() {
            "quiet = \"0s\"\n"
        } else {
            ""
        };
        format!(
            "[plan]\nwarmup = \"100ms\"\nmeasure = \"{measure}\"\nmargin = \"0%\"\n{quiet}{rounds}\n"
        )
    }

    /// How large the database is, and what runs on it. Slowed pairs only read, each transaction one block that is
    /// seldom cached: in the mixture of the others clients wait for each other too, by turns of luck, and what 5 % more
    /// of each I/O does to its throughput nobody knows.
    fn database(self) -> &'static str {
        match self.is_slowed() {
            false => "size = \"4MiB\"\nmemory = \"4MiB\"\n[workload]\n",
            true => {
                "size = \"8MiB\"\nmemory = \"8MiB\"\n[workload]\nkind = \"slob\"\nupdate_percent = 0\nwork_unit = 1\n"
            }
        }
    }

    /// The layouts. Slowed ones have a delay that makes up nearly all of a transaction's time, and one that is 5 %
    /// longer.
    fn layouts(self) -> Vec<String> {
        let delay =
            |us: u32| format!("delay = {{ read_us = {us}, write_us = {us}, flush_us = {us} }}\n");
        match self {
            Kind::EqualFixed | Kind::EqualAuto => vec![String::new(); 2],
            Kind::Slowed => vec![delay(1_000), delay(1_050)],
            Kind::Six => (1..=LAYOUTS_OF_SIX)
                .map(|layout| format!("path = \"{}\"\n", directory_of(layout)))
                .collect(),
            Kind::Images => [1, 2].map(on_image).into(),
            Kind::ImagesSlowed => [on_image(1) + &delay(1_000), on_image(2) + &delay(1_050)].into(),
        }
    }

    /// Each load level is a separate pair; six layouts have one.
    fn clients(self) -> &'static str {
        match self {
            Kind::EqualFixed | Kind::EqualAuto | Kind::Slowed => "[1, 2, 3, 4]",
            Kind::Six => "[2]",
            Kind::Images | Kind::ImagesSlowed => "[1]",
        }
    }

    fn experiment(self, seed: usize) -> Experiment {
        let named = ["a", "b", "c", "d", "e", "f"].iter().zip(self.layouts());
        let layouts: String = named
            .map(|(name, layout)| format!("[[layout]]\nname = \"{name}\"\n{layout}"))
            .collect();
        let text = format!(
            "name = \"{}\"\nseed = {seed}\n{DATABASE}{}clients = {}\n{}{layouts}",
            self.name(),
            self.database(),
            self.clients(),
            self.plan()
        );
        Experiment::parse("soak", &text, &[]).expect("the soak's own experiment is right")
    }
}

/// A layout on an image that is made for the run, and gone after it.
fn on_image(layout: usize) -> String {
    format!(
        "devices = [{{ file = \"image-{layout}\", size = \"128MiB\" }}]\nfilesystem = \"ext4\"\n"
    )
}

/// Where one of the six equal layouts has its files, below the directory of the soak.
fn directory_of(layout: usize) -> String {
    format!("files-{layout}")
}

/// Small real runs whose truth is known; goes on where it was.
#[derive(Parser)]
struct Options {
    /// Where the runs are, and the databases while they run: the file system that is measured
    #[arg(long, default_value = "target/soak-verdicts")]
    directory: PathBuf,
    /// Begin no more runs after this many minutes
    #[arg(long)]
    minutes: Option<u64>,
    /// Begin only runs of this kind: equal-fixed, equal-auto, slowed, six, images or images-slowed
    #[arg(long, value_parser = Kind::ALL.map(Kind::name))]
    kind: Option<String>,
    /// Write docs/soak-verdicts.md from the runs so far, and stop
    #[arg(long)]
    record: bool,
}

fn main() -> ExitCode {
    // The process of a trial is this program once more.
    if env::args().nth(1).as_deref() == Some(WORKER_COMMAND) {
        return cli::main();
    }
    match soak(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("{words}");
            ExitCode::FAILURE
        }
    }
}

fn soak(options: &Options) -> Result<(), String> {
    let document = env::current_dir()
        .map_err(|error| error.to_string())?
        .join("docs/soak-verdicts.md");
    let at = |error: std::io::Error| format!("{}: {error}", options.directory.display());
    fs::create_dir_all(&options.directory).map_err(at)?;
    let directory = options.directory.canonicalize().map_err(at)?;
    env::set_current_dir(&directory).map_err(at)?;
    for layout in 1..=LAYOUTS_OF_SIX {
        fs::create_dir_all(directory_of(layout)).map_err(at)?;
    }
    let began = Instant::now();
    let budget = options
        .minutes
        .map(|minutes| Duration::from_secs(60 * minutes));
    let mut tally = Tally::default();
    let mut is_complete = true;
    for run in 0..RUNS_ON_IMAGES {
        for kind in Kind::ALL.into_iter().filter(|kind| run < kind.runs()) {
            let place = directory.join(format!("{}-{run:02}", kind.name()));
            let is_other = options
                .kind
                .as_ref()
                .is_some_and(|only| only != kind.name());
            let is_over = options.record
                || is_other
                || budget.is_some_and(|budget| began.elapsed() >= budget);
            match finished(&place) {
                Some(result) => tally.add(kind, &result),
                None if is_over => is_complete = false,
                None => {
                    tally.add(kind, &run_in(&place, kind.experiment(run + 1))?);
                    eprintln!("{}: {}", place.display(), tally.line());
                }
            }
        }
    }
    println!("{}", tally.document());
    if options.record || is_complete {
        fs::write(&document, tally.document())
            .map_err(|error| format!("{}: {error}", document.display()))?;
    }
    tally.judge()
}

/// The result of a run that is done.
fn finished(place: &Path) -> Option<RunResult> {
    let events = journal::replay(place).ok()?;
    events.contains(&Event::RunFinished).then_some(())?;
    RunResult::from_json(&fs::read_to_string(place.join("result.json")).ok()?).ok()
}

fn run_in(place: &Path, experiment: Experiment) -> Result<RunResult, String> {
    let never = Arc::new(AtomicBool::new(false));
    let directory =
        Directory::make(place).map_err(|error| format!("{}: {error}", place.display()))?;
    let runner = match journal::replay(place) {
        Ok(_) => Runner::go_on(directory, never, |_| Ok(Box::new(Nobody))),
        Err(_) => Runner::begin(experiment, directory, never, |_| Ok(Box::new(Nobody))),
    };
    let wrap = |error: RunError| format!("{}: {error}", place.display());
    runner.map_err(wrap)?.run().map_err(wrap)?;
    write_reports(place).map_err(|error| error.to_string())
}
