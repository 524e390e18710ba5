//! `spindle powercut`: what an experiment's layouts keep when the power goes. Each case is recorded once with
//! dm-log-writes beneath its layout ([`record`]), then the power is cut at hundreds of moments of that log and the
//! database recovered ([`judge`]); the rows make a table ([`table`]). Recordings and rows are kept in a directory as
//! they are made ([`state`]), so that interrupted work can continue. Recording needs device-mapper, judging does not: a
//! virtual machine can do the one, and this machine the other.

pub mod case;
mod error;
pub mod judge;
pub mod logged_device;
pub mod record;
pub mod state;
pub mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spindle_layout::guard::{Guard, Want};
use spindle_layout::spec::{DeviceSpec, LayoutKind, Preparation};
use spindle_layout::tool::Tools;
use spindle_layout::{Facts, LayoutSpec, Ledger, Provision, ProvisionPlan, ledger};
use spindle_system::SystemTree;

pub use error::PowerCutError;

use case::CutCase;
use judge::{CutRow, Judging, judge};
use logged_device::{LoggedDevice, Slice};
use record::{CutRecording, record};
use spindle_experiment::Experiment;
use state::State;

/// Room for each case on the device that is logged, and on the device of the log.
const CASE_BYTES: u64 = 512 << 20;
const CASE_LOG_BYTES: u64 = 1 << 30;
/// Less than this is no device to record on.
const SCRATCH_BYTES_MIN: u64 = CASE_LOG_BYTES;

/// Where writes are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scratch {
    /// On loop devices of files in the table's directory, made for one case after the other.
    Files,
    /// On these two empty block devices, the first logged, the second for the log; nothing is judged.
    Devices(PathBuf, PathBuf),
    /// They are recorded already; the log is in this file.
    Recorded(PathBuf),
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerCutOptions {
    /// The table's directory.
    pub out: PathBuf,
    /// Where images are made while cases are judged; whatever is in it is the program's.
    pub work: PathBuf,
    /// Cuts and their seed.
    pub judging: Judging,
    /// Where.
    pub scratch: Scratch,
}

/// What came of it.
pub struct PowerCutReport {
    /// The rows, in the experiment's order.
    pub rows: Vec<CutRow>,
    /// Layouts without rows, and why.
    pub left_out: Vec<String>,
}

impl Judging {
    fn describe(self) -> String {
        format!("{} cuts, seed {}", self.cuts, self.seed)
    }
}

/// Records and judges what is not done yet. `tell` hears what is being done. Errors: nothing could be done, or a case
/// could not be carried to its end; [`PowerCutError::Interrupted`], when nothing is left of the case under way.
pub fn run(
    experiment: &Experiment,
    options: &PowerCutOptions,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(&str),
) -> Result<PowerCutReport, PowerCutError> {
    let mut state = State::open(&options.out, experiment, &options.judging.describe())?;
    let mut left_out = Vec::new();
    let mut cases = Vec::new();
    for case in CutCase::all(experiment) {
        match case {
            Ok(case) => cases.push(case),
            Err(reason) => left_out.push(reason.to_string()),
        }
    }
    left_out.dedup();
    let work = Work {
        cases: &cases,
        seed: experiment.seed,
        options,
        interrupted,
    };
    let rows = match &options.scratch {
        Scratch::Recorded(log) => work.judge_all(log, &mut state, tell),
        Scratch::Devices(origin, log) => refuse_unless_empty(&[origin, log])
            .and_then(|()| work.record_all([origin, log], &mut state, tell))
            .map(|()| Vec::new()),
        Scratch::Files => work.on_files(&mut state, tell),
    };
    match rows {
        Ok(rows) => Ok(PowerCutReport { rows, left_out }),
        Err(error) => {
            state.discard_if_empty();
            Err(error)
        }
    }
}

/// What is to be done.
struct Work<'a> {
    cases: &'a [CutCase],
    seed: u64,
    options: &'a PowerCutOptions,
    interrupted: &'a AtomicBool,
}

impl Work<'_> {
    /// Records every case, one behind the other on the two devices.
    fn record_all(
        &self,
        scratch: [&Path; 2],
        state: &mut State,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), PowerCutError> {
        refuse_without_device_mapper()?;
        for (number, case) in self.cases.iter().enumerate() {
            if state.recording(&case.key()).is_none() {
                tell(&format!("recording {}", case.key()));
                let slices = slices(scratch, number as u64);
                let run = format!("powercut-{}-{number}", std::process::id());
                // A machine made for this is gone afterwards, and its ledgers with it.
                let ledgers = std::env::temp_dir().join("spindle-ledger");
                state.add_recording(self.record(case, slices, &ledgers, &run)?)?;
            }
        }
        Ok(())
    }

    fn record(
        &self,
        case: &CutCase,
        slices: [Slice; 2],
        ledgers: &Path,
        run: &str,
    ) -> Result<CutRecording, PowerCutError> {
        let recorded = record(case, slices, ledgers, run, self.seed, self.interrupted);
        match recorded {
            Err(left @ PowerCutError::Left { .. }) => Err(left),
            // What is interrupted breaks off with errors of many kinds.
            recorded => self.go_on().and(recorded),
        }
    }

    fn go_on(&self) -> Result<(), PowerCutError> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(PowerCutError::Interrupted),
            false => Ok(()),
        }
    }

    /// Records and judges case by case, on files that exist for one case only.
    fn on_files(
        &self,
        state: &mut State,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Vec<CutRow>, PowerCutError> {
        let mut rows = Vec::new();
        for (number, case) in self.cases.iter().enumerate() {
            if let Some(row) = state.row(&case.key()) {
                rows.push(row.clone());
                continue;
            }
            self.go_on()?;
            refuse_without_device_mapper()?;
            let run = format!("powercut-{}-{number}", std::process::id());
            let files = ScratchFiles::make(case, &self.options.out, &run)?;
            let [origin, log] = files.devices()?;
            tell(&format!("recording {}", case.key()));
            let ledgers = ledger::default_directory();
            let recording = self.record(case, slices([&origin, &log], 0), &ledgers, &run)?;
            tell(&format!("cutting the power of {}", case.key()));
            let row = self.judged(case, &recording, &log)?;
            files.remove()?;
            state.add_row(row.clone())?;
            rows.push(row);
        }
        Ok(rows)
    }

    fn judge_all(
        &self,
        log: &Path,
        state: &mut State,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Vec<CutRow>, PowerCutError> {
        let mut rows = Vec::new();
        for case in self.cases {
            let key = case.key();
            let row = match (state.row(&key), state.recording(&key)) {
                (Some(row), _) => row.clone(),
                (None, None) => return Err(PowerCutError::NothingRecorded { case: key }),
                (None, Some(recording)) => {
                    tell(&format!("cutting the power of {key}"));
                    let row = self.judged(case, recording, log)?;
                    state.add_row(row.clone())?;
                    row
                }
            };
            rows.push(row);
        }
        Ok(rows)
    }

    /// Judges a case in a directory that exists meanwhile.
    fn judged(
        &self,
        case: &CutCase,
        recording: &CutRecording,
        log: &Path,
    ) -> Result<CutRow, PowerCutError> {
        let work = &self.options.work;
        std::fs::create_dir_all(work)
            .map_err(|source| PowerCutError::system("make", work, source))?;
        let judging = self.options.judging;
        let row = judge(case, recording, log, work, judging, &|| self.go_on());
        let removed = std::fs::remove_dir(work);
        let row = row?;
        removed.map_err(|source| PowerCutError::system("remove", work, source))?;
        Ok(row)
    }
}

fn refuse_without_device_mapper() -> Result<(), PowerCutError> {
    match LoggedDevice::obstacle() {
        Some(reason) => Err(PowerCutError::NoRecording { reason }),
        None => Ok(()),
    }
}

/// The parts of the device that is logged, and of the device of the log, for the case of a number.
fn slices(scratch: [&Path; 2], number: u64) -> [Slice; 2] {
    let [origin, log] = scratch.map(Path::to_owned);
    let slice = |device, bytes| Slice {
        device,
        first_byte: number * bytes,
        bytes,
    };
    [slice(origin, CASE_BYTES), slice(log, CASE_LOG_BYTES)]
}

/// Two files that stand in for devices, in their own ledger.
struct ScratchFiles {
    layout: String,
    provision: Provision,
}

impl ScratchFiles {
    fn make(case: &CutCase, directory: &Path, run: &str) -> Result<ScratchFiles, PowerCutError> {
        let directory = std::path::absolute(directory)
            .map_err(|source| PowerCutError::system("find", directory, source))?;
        let file = |name: &str, size_bytes| DeviceSpec::File {
            path: directory.join(name),
            size_bytes,
        };
        let specs = [LayoutSpec {
            name: case.layout.clone(),
            devices: vec![
                file("origin.img", CASE_BYTES),
                file("log.img", CASE_LOG_BYTES),
            ],
            volume: None,
            kind: LayoutKind::Raw,
            share: None,
            erase: Vec::new(),
            preparation: Preparation::default(),
            delay: None,
        }];
        let (tree, run) = (SystemTree::default(), format!("{run}-scratch"));
        let ledger = Ledger::begin(&ledger::default_directory(), &run, &tree)?;
        let plan = ProvisionPlan::of(&specs, &Facts::gather(&specs, &tree), &run);
        let provision = Provision::carry_out(&plan, Arc::new(ledger), &tree, &mut |_| {})?;
        Ok(ScratchFiles {
            layout: case.layout.clone(),
            provision,
        })
    }

    /// The device to be logged, and that of the log.
    fn devices(&self) -> Result<[PathBuf; 2], PowerCutError> {
        let not_made = |reason| PowerCutError::NotMade {
            layout: self.layout.clone(),
            reason,
        };
        match &self.provision.layouts()[0] {
            Ok(made) => match made.target.paths()[..] {
                [origin, log] => Ok([origin.to_owned(), log.to_owned()]),
                _ => Err(not_made("two files did not become two devices".to_owned())),
            },
            Err(error) => Err(not_made(error.to_string())),
        }
    }

    fn remove(self) -> Result<(), PowerCutError> {
        let left = self.provision.teardown();
        if left.is_empty() {
            return Ok(());
        }
        Err(PowerCutError::Left {
            what: left.join("; "),
        })
    }
}

fn refuse_unless_empty(devices: &[&PathBuf]) -> Result<(), PowerCutError> {
    let (tree, tools) = (SystemTree::default(), Tools::new());
    for device in devices {
        Guard::new(&tree, &tools).look(&Want {
            path: device,
            least_bytes: SCRATCH_BYTES_MIN,
            erase: &[],
        })?;
    }
    Ok(())
}
