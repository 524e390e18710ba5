//! Scenarios: what a simulated run does and what goes wrong in it, as TOML in `tests/scenarios`. `[database]` and
//! `[workload]` are those of an experiment file, read by the same reader; `[schedule]` says how much of it, `[faults]`
//! what fails. A new scenario is a file.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use spindle_engines::kernel::KernelSettings;
use spindle_engines::spec::DatabaseSpec;
use spindle_experiment::Experiment;
use spindle_harness::stride;
use spindle_io::sim::{DiskTiming, Lasts};
use spindle_workload::Workload;

use super::{Machine, Story};

/// What does not stand in an experiment file.
#[derive(Deserialize)]
struct Scenario {
    schedule: Schedule,
    faults: Faults,
    /// As in an experiment file.
    #[serde(flatten)]
    experiment: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Schedule {
    /// Loaded data, KiB.
    data_kib: u64,
    /// Of each client; none where the workload ends by itself.
    transactions: Option<u64>,
    /// By which it is drawn what happens.
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Faults {
    /// The power is cut at one I/O of this many: every write that is not stable is lost; or kept, lost or torn.
    power_cut_every: Option<usize>,
    /// One I/O of this many fails once.
    failed_io_every: Option<usize>,
    /// From one I/O of this many on, all of that disk fail.
    failed_disk_every: Option<usize>,
    /// Reads, writes and flushes take this many times as long.
    slow_disk: Option<u64>,
}

impl Scenario {
    fn read(text: &str) -> Result<Scenario, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    fn story(&self) -> Result<Story, String> {
        let sections = toml::to_string(&self.experiment).map_err(|error| error.to_string())?;
        let text = format!("{sections}\n[[layout]]\nname = \"here\"\npath = \".\"\n");
        let read = Experiment::parse("scenario", &text, &[]);
        let experiment = read.map_err(|error| error.to_string())?;
        let DatabaseSpec::Kernel(spec) = experiment.spec() else {
            return Err("only the embedded database is simulated".to_owned());
        };
        let mut small = spec.clone();
        let machine = Machine::default();
        small.files.block_size_bytes = machine.settings.block_bytes as u64;
        let mut settings = KernelSettings {
            block_bytes: machine.settings.block_bytes,
            buffer_cache_bytes: machine.settings.buffer_cache_bytes,
            log_buffer_bytes: machine.settings.log_buffer_bytes,
            ..spec.settings()
        };
        settings.instance.checkpoint_interval_ns = machine.settings.instance.checkpoint_interval_ns;
        let slower = self.faults.slow_disk.unwrap_or(1);
        let timing = DiskTiming::default();
        let machine = Machine {
            settings,
            clients: experiment.workload.clients_max() as usize,
            seed: self.schedule.seed,
            timing: DiskTiming {
                read_ns: timing.read_ns * slower,
                write_ns: timing.write_ns * slower,
                flush_ns: timing.flush_ns * slower,
                ..timing
            },
        };
        let workload =
            experiment
                .workload
                .of_rows(self.schedule.data_kib << 10, &small, self.schedule.seed);
        let workload: Arc<dyn Workload> = Arc::from(workload);
        Ok(Story::on(machine, workload, self.schedule.transactions))
    }

    /// What was wrong.
    fn play(&self) -> Result<Vec<String>, String> {
        let story = self.story()?;
        let whole = story.whole();
        let mut wrong = Vec::new();
        let mut tried = 0;
        if let Some(every) = self.faults.power_cut_every {
            let cuts = story.cut_everywhere(whole.ios, stride(every));
            tried += cuts.said.len();
            wrong.extend(cuts.wrong);
        }
        let failing = [
            (self.faults.failed_io_every, Lasts::Once),
            (self.faults.failed_disk_every, Lasts::ForEver),
        ];
        for (every, lasts) in failing {
            if let Some(every) = every {
                let cuts = story.fail_some(whole.ios, stride(every), lasts);
                tried += cuts.said.len();
                wrong.extend(cuts.wrong);
            }
        }
        let told = story.with_more_promised(&whole);
        if !told.contains("promised") {
            wrong.push(format!("a promise that was not kept was not told: {told}"));
        }
        match tried {
            0 if wrong.is_empty() => Err("nothing goes wrong in it".to_owned()),
            _ => Ok(wrong),
        }
    }
}

#[test]
fn no_scenario_breaks_a_promise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(paths.len() > 2);
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let wrong = Scenario::read(&text).and_then(|scenario| scenario.play());
        assert_eq!(wrong, Ok(Vec::new()), "{}", path.display());
    }
}

#[test]
fn a_scenario_is_read_strictly() {
    let text = |workload: &str, faults: &str| {
        format!(
            "[workload]\n{workload}\n[schedule]\ndata_kib = 128\nseed = 1\n[faults]\n{faults}\n"
        )
    };
    let error_of = |workload: &str, faults: &str| {
        let read = Scenario::read(&text(workload, faults));
        read.and_then(|scenario| scenario.story().map(|_| ()))
            .unwrap_err()
    };
    assert!(error_of("kind = \"oltp_mix\"", "powercut = 1").contains("powercut"));
    assert!(error_of("kind = \"oltp_mic\"", "").contains("oltp_mic"));
    assert!(error_of("read_percent = 101", "").contains("101"));
    let without = Scenario::read(&text("clients = 2", "")).unwrap();
    let without = Scenario {
        schedule: Schedule {
            transactions: Some(1),
            ..without.schedule
        },
        ..without
    };
    assert!(without.play().unwrap_err().contains("nothing goes wrong"));
}
