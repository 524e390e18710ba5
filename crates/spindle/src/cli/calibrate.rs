//! `spindle calibrate`: what storage can do by itself.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use clap::builder::TypedValueParser;
use spindle_calibrate::fio::{FioResults, job_file};
use spindle_calibrate::{
    AskedCaching, Bought, CalibrateError, Calibration, CalibrationSettings, DemandAnswer,
    FioComparison, Judged, LargeType, Need, NoNeed, Orion, OrionMatrix, Run, STRIPE_BYTES,
    Simulate, calibrate, files, latency_us, text,
};
use spindle_experiment::{Changes, Experiment};
use spindle_text::files::{Directory, read_piped, read_text};
use spindle_text::plain;
use spindle_text::quantity::{self, parse_duration_ms, parse_size};
use spindle_text::word::Word;

use crate::calibration_sheet::sheet_of;
use crate::kept_limits::{KeptLimits, keep_limits};

use super::calibrate_layouts::{LayoutsCalibrated, calibrate_layouts};
use super::code::Code;
use super::ending::{ended_by, fail, print, print_then, wrong_experiment};
use super::number::{number, size, time};
use super::signals::{self, AtOnce};
use crate::say::{self, fitted_to_output};

pub(super) const CALIBRATE_HELP: &str = "Examples:
  spindle calibrate /srv/data                 a file is made there, filled, measured, removed
  spindle calibrate /dev/sdb /dev/sdc --simulate raid0
  spindle calibrate datafile --caching buffered --json
  spindle calibrate /srv/data --need 'fdatasync p99 < 10ms' --need 'iops > 5000'
  spindle calibrate /mnt/volume --flushes     do its commits outlive a power cut?
  spindle calibrate /srv/data --run simple --num-disks 2 --out measured
  spindle calibrate /mnt/volume --control /srv/beneath
  spindle calibrate /srv/data --emulate > spindle.fio
  spindle calibrate /srv/data --against fio.json
  spindle calibrate /srv/data --write-percent 30
  spindle calibrate /dev/sdb --write-percent 30 --erase SERIAL     what is on it is LOST
  spindle calibrate layouts.toml --only 'raw,ext4' --time 10m      what the layouts of an experiment stand on

Without --write-percent, block devices and existing files are only read. The command writes to files that it makes, \
and to the devices of an experiment file's layouts: it takes them as a run does, fills them and erases them.

It reads 8 KiB at random by each access path (sync, slaves, libaio, async), at depth 1, 2, 4 and so on. It stops when \
throughput gains under 5 % at two looks, or requests take longer than --max-latency. Then it reads 1 MiB at a time in \
sequence, by each access path where the time allows, or else by sync and async. In a file made for it, 1 writer and \
then 16 call fdatasync after 8 KiB each, and write durably past the page cache; group commits and a burst follow. A \
point lasts until its throughput is steady. Flushes are counted at the disks beneath. They are compared with those of \
a nameless file on the storage beneath, where there is a place for one.

Exit codes: 0 measured; 1 something failed while measuring; 2 the command line or a target is wrong, and nothing was \
made, written or measured; 3 a --need is missed; 4 no --need is missed, but one could not be judged: it was not \
measured, the time was over before the most was found, reads were cached or found only zeros, or flushes do not reach \
a disk.";

/// Arguments that mean nothing where figures of fio are printed alone.
const OF_MEASURING: [&str; 22] = [
    "targets",
    "only",
    "sets",
    "simulate",
    "stripe",
    "caching",
    "size",
    "write_percent",
    "erase",
    "time",
    "hold",
    "max_latency",
    "out",
    "needs",
    "bought_iops",
    "bought_mbps",
    "no_metadata",
    "flushes",
    "control",
    "emulate",
    "against",
    "run",
];

#[derive(Args)]
pub(super) struct Calibrate {
    /// Block devices, files or directories; several are measured as one unit. Or one experiment file (.toml): what its
    /// layouts stand on is made, measured and removed. Each layout gets an equal part of --time.
    #[arg(required_unless_present = "fio_json", value_name = "TARGET")]
    targets: Vec<PathBuf>,
    /// Of an experiment file: these layouts only.
    #[arg(long, value_name = "NAME,...")]
    only: Vec<String>,
    /// Of an experiment file: overrides a setting; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// How several targets make one unit: concat, or raid0 in stripes.
    #[arg(long, value_name = "HOW", default_value = "concat", value_parser = word::<Simulate>)]
    simulate: Simulate,
    /// Length of a stripe; a number alone is of MiB [default: 1MiB].
    #[arg(long, value_name = "SIZE", value_parser = stripe)]
    stripe: Option<u64>,
    /// Past the page cache (direct), through it (buffered), or each access path both ways (both).
    #[arg(long, value_name = "HOW", default_value = "direct", value_parser = word::<AskedCaching>)]
    caching: AskedCaching,
    /// Largest size of a file that is made, or of what is written of a device; a file never takes more than a quarter
    /// of the free space [default: 1GiB].
    #[arg(long, value_parser = size)]
    size: Option<u64>,
    /// How many of 100 requests write, without a flush. They go to files that are made, or to unused block devices that
    /// are empty or named by --erase. A device is erased afterwards.
    #[arg(long, alias = "write", value_name = "N", default_value_t = 0, conflicts_with = "flushes", value_parser = percent())]
    write_percent: u32,
    /// A device whose content may be LOST, as erase of a layout names it: by-id name, serial number, world-wide name or
    /// path; may be given several times.
    #[arg(long, value_name = "DEVICE", requires = "write_percent")]
    erase: Vec<String>,
    /// About how long it may take.
    #[arg(long, default_value = "2m", value_parser = time)]
    time: u64,
    /// How long to hold the best point, on top of --time: a volume's burst credit runs out after minutes [default: a
    /// twelfth of --time, as part of it].
    #[arg(long, value_name = "TIME", value_parser = hold, conflicts_with_all = ["flushes", "run"])]
    hold: Option<u64>,
    /// A point counts for the maximum of IOPS only if its mean latency is no longer. It ends the search of small
    /// requests.
    /// Of a run type of ORION's, it counts only when given [default: 20ms].
    #[arg(long, value_name = "TIME", value_parser = latency)]
    max_latency: Option<f64>,
    /// A new or empty directory for report.html (curves, matrix, latencies), result.json and files under ORION's names:
    /// *_summary.txt, *_iops.csv, *_mbps.csv, *_lat.csv, *_hist.txt, *_trace.txt.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What it must reach, such as 'fdatasync p99 < 10ms' (1 writer), 'read p99 < 1ms', 'iops > 5000', 'mbps > 200';
    /// may be given several times, and decides the exit code.
    #[arg(long = "need", value_name = "NEED", value_parser = need)]
    needs: Vec<Need>,
    /// The IOPS you pay for, shown beside the maximum [default: what the cloud says of its only volume, if it says so].
    #[arg(long, value_name = "IOPS", value_parser = bought, conflicts_with = "flushes")]
    bought_iops: Option<f64>,
    /// The same in MB/s.
    #[arg(long, value_name = "MBPS", value_parser = bought, conflicts_with = "flushes")]
    bought_mbps: Option<f64>,
    /// Do not ask the cloud's metadata service (169.254.169.254). It is asked only where the firmware names a cloud.
    #[arg(long)]
    no_metadata: bool,
    /// Only flushes, in a few seconds: how long they take, and whether they reach a disk.
    #[arg(long)]
    flushes: bool,
    /// A directory on the disk beneath, whose flushes are compared with those of the target [default: one is looked
    /// for].
    #[arg(long, value_name = "DIR")]
    control: Option<PathBuf>,
    /// Measure nothing: print a job file with which fio measures the same points.
    #[arg(long, conflicts_with_all = ["out", "needs", "control", "json", "against"])]
    emulate: bool,
    /// Measure, and print fio's figures beside ours. FIO_JSON is what fio wrote with --output-format=json for a job
    /// file of --emulate.
    #[arg(long, value_name = "FIO_JSON")]
    against: Option<PathBuf>,
    /// Measure nothing: print what fio found, of any job file; - for standard input.
    #[arg(long, value_name = "FIO_JSON", conflicts_with_all = OF_MEASURING)]
    fio_json: Option<PathBuf>,
    /// Print a JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Do not say what is being done.
    #[arg(long)]
    quiet: bool,
    // Last, as its heading would be that of all that follows.
    #[command(flatten)]
    orion: OrionKnobs,
}

/// More disks are not told apart.
const DISKS_MAX: usize = 128;

/// ORION's run types and knobs; its spelling with underscores works, too, and numbers without a unit are in its units.
#[derive(Args)]
#[command(next_help_heading = "ORION's run types")]
struct OrionKnobs {
    /// simple, normal, advanced, oltp or dss, instead of a search for the knee.
    #[arg(long, value_name = "TYPE", value_parser = word::<Run>, conflicts_with = "flushes")]
    run: Option<Run>,
    /// Disks beneath: up to 5 small and 2 large reads under way for each, in 12 levels at most [default: the
    /// number of targets].
    #[arg(long, alias = "num_disks", requires = "run", value_name = "N", value_parser = number(1..=DISKS_MAX as u32))]
    num_disks: Option<u32>,
    /// How long each point lasts; a number alone is of seconds [default: 60s].
    #[arg(long, requires = "run", value_name = "TIME", value_parser = duration)]
    duration: Option<u64>,
    /// How much to read at random before each point, so that the storage's cache holds nothing of use; a number
    /// alone is of MiB [default: nothing].
    #[arg(long, alias = "cache_size", requires = "run", value_name = "SIZE", value_parser = cache_size)]
    cache_size: Option<u64>,
    /// Only with advanced: length of small reads; a number alone is of KiB [default: 8KiB].
    #[arg(long, alias = "size_small", requires = "run", value_name = "SIZE", value_parser = request_size)]
    size_small: Option<u64>,
    /// Only with advanced: length of large reads; a number alone is of KiB [default: 1MiB].
    #[arg(long, alias = "size_large", requires = "run", value_name = "SIZE", value_parser = request_size)]
    size_large: Option<u64>,
    /// Only with advanced: large reads at random (rand), or in streams (seq) [default: rand].
    #[arg(long = "type", requires = "run", value_name = "HOW", value_parser = word::<LargeType>)]
    large_type: Option<LargeType>,
    /// Only with advanced: reads under way for each stream [default: 4].
    #[arg(long, alias = "num_streamIO", requires = "run", value_name = "N", value_parser = number(1..=64_u32))]
    num_stream_io: Option<u32>,
    /// Only with advanced: basic, detailed, point, col, row or max [default: basic].
    #[arg(long, requires = "run", value_name = "HOW", value_parser = word::<OrionMatrix>)]
    matrix: Option<OrionMatrix>,
    /// Small reads under way, for --matrix point, col and max.
    #[arg(long, alias = "num_small", requires = "run", value_name = "N", value_parser = number(0..=640_u32))]
    num_small: Option<u32>,
    /// Large reads or streams under way, for --matrix point, row and max.
    #[arg(long, alias = "num_large", requires = "run", value_name = "N", value_parser = number(0..=256_u32))]
    num_large: Option<u32>,
}

impl OrionKnobs {
    /// What was asked for, with ORION's defaults.
    fn complete(self, targets: usize) -> Result<Option<Orion>, String> {
        let Some(run) = self.run else {
            return Ok(None);
        };
        let of_advanced = [
            ("--size-small", self.size_small.is_some()),
            ("--size-large", self.size_large.is_some()),
            ("--type", self.large_type.is_some()),
            ("--num-stream-io", self.num_stream_io.is_some()),
            ("--matrix", self.matrix.is_some()),
            ("--num-small", self.num_small.is_some()),
            ("--num-large", self.num_large.is_some()),
        ];
        let given = of_advanced.iter().find(|(_, is_given)| *is_given);
        if let (Some((name, _)), true) = (given, run != Run::Advanced) {
            return Err(format!(
                "{name} needs --run advanced; --run {run} has its own"
            ));
        }
        let size_small_bytes = self.size_small.unwrap_or(8 << 10);
        let size_large_bytes = self.size_large.unwrap_or(1 << 20);
        if size_small_bytes > size_large_bytes {
            return Err(format!(
                "--size-small {} is more than --size-large {}: small reads are the shorter ones",
                quantity::size(size_small_bytes),
                quantity::size(size_large_bytes)
            ));
        }
        Ok(Some(Orion {
            run,
            num_disks: self.num_disks.unwrap_or(targets.clamp(1, DISKS_MAX) as u32),
            size_small_bytes,
            size_large_bytes,
            large_type: self.large_type.unwrap_or(LargeType::Rand),
            num_stream_io: self.num_stream_io.unwrap_or(4),
            cache_size_bytes: self.cache_size.unwrap_or(0),
            duration: Duration::from_millis(self.duration.unwrap_or(60_000)),
            matrix: self.matrix.unwrap_or(OrionMatrix::Basic),
            num_small: self.num_small,
            num_large: self.num_large,
        }))
    }
}

fn percent() -> impl TypedValueParser<Value = u32> {
    number(0..=100)
}

fn word<W: Word>(text: &str) -> Result<W, String> {
    let allowed = || W::ALLOWED.iter().map(|(word, _)| *word).collect::<Vec<_>>();
    W::of_word(text).ok_or_else(|| format!("allowed: {}", allowed().join(", ")))
}

/// ORION takes numbers without a unit.
fn with_unit(text: &str, unit: &str) -> String {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    format!("{text}{}", if is_plain { unit } else { "" })
}

fn duration(text: &str) -> Result<u64, String> {
    let time_ms =
        parse_duration_ms(&with_unit(text, "s")).filter(|ms| (1_000..=3_600_000).contains(ms));
    time_ms.ok_or_else(|| "allowed: a duration from 1s to 1h, such as 60s".to_owned())
}

fn cache_size(text: &str) -> Result<u64, String> {
    let bytes = parse_size(&with_unit(text, "MiB")).filter(|bytes| *bytes <= 1 << 40);
    bytes.ok_or_else(|| "allowed: a size up to 1TiB, such as 2GiB".to_owned())
}

fn request_size(text: &str) -> Result<u64, String> {
    let is_fit = |bytes: &u64| bytes.is_power_of_two() && (4 << 10..=1 << 20).contains(bytes);
    let bytes = parse_size(&with_unit(text, "KiB")).filter(is_fit);
    bytes.ok_or_else(|| "allowed: a power of two from 4KiB to 1MiB, such as 16KiB".to_owned())
}

fn stripe(text: &str) -> Result<u64, String> {
    let is_fit = |bytes: &u64| bytes.is_power_of_two() && (1 << 20..=1 << 30).contains(bytes);
    let bytes = parse_size(&with_unit(text, "MiB")).filter(is_fit);
    bytes.ok_or_else(|| "allowed: a power of two from 1MiB to 1GiB, such as 4MiB".to_owned())
}

fn need(text: &str) -> Result<Need, NoNeed> {
    text.parse()
}

fn bought(text: &str) -> Result<f64, String> {
    let value = text
        .parse()
        .ok()
        .filter(|value: &f64| (1.0..=1e9).contains(value));
    value.ok_or_else(|| "allowed: a number from 1 to 1000000000, such as 3000".to_owned())
}

fn hold(text: &str) -> Result<u64, String> {
    let time_ms = parse_duration_ms(text).filter(|ms| (1_000..=86_400_000).contains(ms));
    time_ms.ok_or_else(|| "allowed: a duration from 1s to 24h, such as 30m".to_owned())
}

/// Microseconds.
fn latency(text: &str) -> Result<f64, String> {
    let time_us = latency_us(text).ok();
    let time_us = time_us.filter(|us| (10.0..=1e7).contains(us));
    time_us.ok_or_else(|| "allowed: a duration from 10us to 10s, such as 500us or 20ms".to_owned())
}

/// No result of fio's is larger, bytes.
const FIO_BYTES_MAX: u64 = 64 << 20;

fn of_fio(path: &Path) -> Result<FioResults, CalibrateError> {
    let wrong = |reason: String| CalibrateError::Target {
        path: path.to_owned(),
        reason,
    };
    let text = match path == Path::new("-") {
        true => read_piped(FIO_BYTES_MAX),
        false => read_text(path, FIO_BYTES_MAX),
    };
    let text = text.map_err(|error| wrong(error.to_string()))?;
    FioResults::read(&text).map_err(|error| wrong(error.to_string()))
}

/// What fio found, of jobs that can be compared.
fn comparable(path: &Path) -> Result<FioResults, CalibrateError> {
    let found = of_fio(path)?;
    match found.can_be_compared() {
        true => Ok(found),
        false => Err(CalibrateError::Target {
            path: path.to_owned(),
            reason: "none of its jobs is a point of ours: let fio run a job file of --emulate"
                .to_owned(),
        }),
    }
}

pub(super) fn carry_out(asked: Calibrate) -> ExitCode {
    let done = match &asked.fio_json {
        Some(path) => of_fio(path).map(|found| told_of_fio(&found, asked.json)),
        None => carry_out_on_targets(asked),
    };
    done.unwrap_or_else(|error| ended_by(&error))
}

/// What fio found, alone.
fn told_of_fio(found: &FioResults, is_json: bool) -> ExitCode {
    if !is_json {
        return print(&fitted_to_output(&text::render_fio(found)));
    }
    match serde_json::to_string_pretty(found) {
        Ok(json) => print(&format!("{json}\n")),
        Err(error) => fail(&error.to_string()),
    }
}

/// Whether a target is meant as an experiment.
fn is_experiment(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "toml") && !path.is_dir()
}

fn carry_out_on_targets(asked: Calibrate) -> Result<ExitCode, CalibrateError> {
    if asked.targets.iter().any(|path| is_experiment(path)) {
        return carry_out_on_layouts(asked);
    }
    if !asked.only.is_empty() || !asked.sets.is_empty() {
        return Err(CalibrateError::Settings(
            "--only and --set are for an experiment file (.toml)".to_owned(),
        ));
    }
    let against = asked.against.as_deref().map(comparable).transpose()?;
    let (out, is_json, is_quiet) = (asked.out.clone(), asked.json, asked.quiet);
    let is_emulated = asked.emulate;
    let interrupted = waited_for(match asked.write_percent {
        0 => AtOnce::InReads,
        _ => AtOnce::InCalibration,
    })?;
    let settings = asked.settings(interrupted)?;
    if is_emulated {
        return Ok(print(&job_file(&settings)?));
    }
    let out = out.as_deref().map(empty).transpose()?;
    let mut tell = |what: &str| {
        if !is_quiet {
            say::note(&plain::one_line(what));
        }
    };
    let measured = calibrate(&settings, &mut tell);
    let mut found = measured.inspect_err(|_| out.iter().for_each(Directory::remove_if_made))?;
    found.against = against.map(|fio| FioComparison::of(&found, &fio));
    match keep_limits(&found) {
        KeptLimits::Nothing => {}
        KeptLimits::In(path) => tell(&format!(
            "the limits are kept for later runs on this device, in {}",
            path.display()
        )),
        KeptLimits::Not(why) => tell(&format!("the limits are not kept for later runs: {why}")),
    }
    Ok(report(&found, out, is_json))
}

/// What the layouts of an experiment stand on.
fn carry_out_on_layouts(asked: Calibrate) -> Result<ExitCode, CalibrateError> {
    let refused = |what: &str| Err(CalibrateError::Settings(what.to_owned()));
    let [file] = asked.targets.as_slice() else {
        return refused("an experiment file must be the only target: its layouts name the storage");
    };
    let is_of_targets = asked.emulate
        || asked.against.is_some()
        || asked.control.is_some()
        || !asked.erase.is_empty()
        || asked.stripe.is_some()
        || asked.simulate != Simulate::Concat;
    if is_of_targets {
        return refused(
            "--emulate, --against, --control, --erase, --simulate and --stripe are not for an experiment file: its layouts \
             say what is erased",
        );
    }
    let changes = Changes {
        sets: &asked.sets,
        only: &asked.only,
        ..Changes::default()
    };
    let experiment = match Experiment::read_changed(file, changes) {
        Ok(experiment) => experiment,
        Err(error) => return Ok(wrong_experiment(&error)),
    };
    let (out, is_json, is_quiet) = (asked.out.clone(), asked.json, asked.quiet);
    let settings = asked.settings(waited_for(AtOnce::InCalibration)?)?;
    let out = out.as_deref().map(empty).transpose()?;
    let mut tell = |what: &str| {
        if !is_quiet {
            say::note(&plain::one_line(what));
        }
    };
    let measured = calibrate_layouts(&experiment, &settings, &mut tell);
    let found = measured.inspect_err(|_| out.iter().for_each(Directory::remove_if_made))?;
    let code = match found.has_failed() {
        true => Code::Failed.into(),
        false => code_of(found.layouts.iter().filter_map(|of| of.found.as_ref())),
    };
    let json = match serde_json::to_string_pretty(&found) {
        Ok(json) => format!("{json}\n"),
        Err(error) => return Ok(fail(&error.to_string())),
    };
    let kept = out.map_or(Ok(()), |directory| {
        let why = |error| format!("{}: {error}", directory.path().display());
        write_layouts(&directory, &found, &json).map_err(why)
    });
    let told = match is_json {
        true => json,
        false => fitted_to_output(&found.render()),
    };
    Ok(match kept {
        Ok(()) => print_then(&told, code),
        Err(why) => print_then(&told, fail(&why)),
    })
}

/// Writes `result.json` of all, and for each what a separate calibration would have.
fn write_layouts(
    directory: &Directory,
    found: &LayoutsCalibrated,
    json: &str,
) -> std::io::Result<()> {
    for (index, of) in found.layouts.iter().enumerate() {
        if let Some(found) = &of.found {
            let own = directory.subdirectory(&format!("layout-{}", index + 1))?;
            write(&own, found, &serde_json::to_string_pretty(found)?)?;
        }
    }
    directory.write("result.json", json)
}

impl Calibrate {
    fn settings(self, interrupted: Arc<AtomicBool>) -> Result<CalibrationSettings, CalibrateError> {
        let orion = self.orion.complete(self.targets.len());
        let is_only_read = |path: &PathBuf| path.exists() && !path.is_dir() && !is_experiment(path);
        if self.size.is_some() && self.write_percent == 0 && self.targets.iter().all(is_only_read) {
            return Err(CalibrateError::Settings(
                "--size applies to files that Spindle makes and devices that it writes; these targets are read as a whole"
                    .to_owned(),
            ));
        }
        if self.stripe.is_some() && self.simulate != Simulate::Raid0 {
            return Err(CalibrateError::Settings(
                "--stripe needs --simulate raid0: a concatenation has no stripes".to_owned(),
            ));
        }
        if self.simulate == Simulate::Raid0 && self.targets.len() < 2 {
            return Err(CalibrateError::Settings(
                "--simulate raid0 needs at least two targets to stripe over".to_owned(),
            ));
        }
        Ok(CalibrationSettings {
            targets: self.targets,
            simulate: self.simulate,
            stripe_bytes: self.stripe.unwrap_or(STRIPE_BYTES),
            caching: self.caching,
            size_bytes: self.size.unwrap_or(1 << 30),
            time_ms: self.time,
            hold: self.hold.map(Duration::from_millis),
            max_latency_us: self.max_latency,
            orion: orion.map_err(CalibrateError::Settings)?,
            write_percent: self.write_percent,
            erase: self.erase,
            only_flushes: self.flushes,
            control: self.control,
            bought: Bought {
                iops: self.bought_iops,
                mb_per_s: self.bought_mbps,
            },
            may_ask_cloud: !self.no_metadata,
            needs: self.needs,
            interrupted,
        })
    }
}

fn waited_for(at_once: AtOnce) -> Result<Arc<AtomicBool>, CalibrateError> {
    signals::interrupts(at_once).map_err(CalibrateError::System)
}

/// Keeps what was found, and prints it.
fn report(found: &Calibration, out: Option<Directory>, is_json: bool) -> ExitCode {
    let json = match serde_json::to_string_pretty(found) {
        Ok(json) => format!("{json}\n"),
        Err(error) => return fail(&error.to_string()),
    };
    let kept = out.map_or(Ok(()), |directory| {
        let why = |error| format!("{}: {error}", directory.path().display());
        write(&directory, found, &json).map_err(why)
    });
    let told = if is_json {
        json
    } else {
        fitted_to_output(&text::render(found))
    };
    // What was measured is told also when it cannot be kept.
    match kept {
        Ok(()) => print_then(&told, code_of(std::iter::once(found))),
        Err(why) => print_then(&told, fail(&why)),
    }
}

/// A new or empty directory.
fn empty(path: &Path) -> Result<Directory, CalibrateError> {
    let wrong = |reason: String| CalibrateError::Target {
        path: path.to_owned(),
        reason,
    };
    let directory = Directory::make(path).map_err(|error| wrong(error.to_string()))?;
    let mut names = std::fs::read_dir(path).map_err(|error| wrong(error.to_string()))?;
    match names.next() {
        None => Ok(directory),
        Some(_) => Err(wrong("--out needs a new or an empty directory".to_owned())),
    }
}

/// Writes `result.json`, the page and ORION's files.
fn write(directory: &Directory, found: &Calibration, json: &str) -> std::io::Result<()> {
    let now = jiff::Zoned::now();
    let time = now.strftime("%Y%m%d_%H%M").to_string();
    let sheet = sheet_of(found, &now.strftime("%Y-%m-%d").to_string());
    directory.write("report.html", &spindle_report::calibration_html(&sheet))?;
    for (name, content) in files(found) {
        directory.write(&format!("calibrate_{time}_{name}"), &content)?;
    }
    directory.write("result.json", json)
}

/// What the needs decide.
fn code_of<'a>(all: impl Iterator<Item = &'a Calibration>) -> ExitCode {
    let needs: Vec<&Judged> = all.flat_map(|found| &found.needs).collect();
    let has = |answer: DemandAnswer| needs.iter().any(|judged| judged.answer == answer);
    match (has(DemandAnswer::Missed), has(DemandAnswer::Unknown)) {
        (true, _) => Code::NoAnswer.into(),
        (false, true) => Code::Unsure.into(),
        (false, false) => Code::Done.into(),
    }
}
