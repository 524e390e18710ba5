//! `spindle calibrate`: what storage can do by itself.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use spindle_calibrate::{
    Answer, CalibrateError, Calibration, Need, NoNeed, Settings, Simulate, calibrate, text,
};
use spindle_io::real::Caching;
use spindle_text::quantity::{parse_duration_ms, parse_size};
use spindle_text::word::Word;

use super::{fail, print_then};
use crate::say;

pub(super) const CALIBRATE_HELP: &str = "Examples:
  spindle calibrate /srv/data                 a file is made there, filled, measured, removed
  spindle calibrate /dev/sdb /dev/sdc --simulate raid0
  spindle calibrate datafile --caching buffered --json
  spindle calibrate /srv/data --need 'fdatasync p99 < 10ms' --need 'iops > 5000'
  spindle calibrate /mnt/volume --flushes     do its commits outlive a power cut?
  spindle calibrate /mnt/volume --control /srv/beneath

Block devices and existing files are only read. Nothing is opened for writing but files that the command makes. Random \
reads of 8 KiB at depth 1, 2, 4 and so on until throughput gains under 5 % or requests take longer than --max-latency, \
by each access path (sync, slaves, libaio, async); sequential reads of 1 MiB; fdatasync after a write of 8 KiB, by 1 \
writer and by 16, in a file made for it. A point lasts until its throughput is steady. Flushes are counted at the \
disks beneath, and timed beside a file without a name on the storage beneath, where there is a place for one.

Exit codes: 0 measured; 1 something failed while measuring; 2 the command line or a target is wrong, and nothing was \
made, written or measured; 3 a --need is missed; 4 no --need is missed, but one could not be judged: it was not \
measured, reads were cached, or flushes do not reach a disk.";

const NEED_MISSED: u8 = 3;
const NEED_UNKNOWN: u8 = 4;

#[derive(Args)]
pub(super) struct Calibrate {
    /// Block devices, files, directories; several are one unit.
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<PathBuf>,
    /// How several targets make one unit: concat, or raid0 with stripes of 1 MiB.
    #[arg(long, value_name = "HOW", default_value = "concat", value_parser = simulate)]
    simulate: Simulate,
    /// Past the page cache (direct), or through it (buffered).
    #[arg(long, value_name = "HOW", default_value = "direct", value_parser = caching)]
    caching: Caching,
    /// Size of a file that is made, at most; a quarter of the free space is never exceeded.
    #[arg(long, default_value = "1GiB", value_parser = size)]
    size: u64,
    /// How long it may take, about.
    #[arg(long, default_value = "2m", value_parser = time)]
    time: u64,
    /// Points of a longer mean time do not count for the maximum of IOPS.
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = latency)]
    max_latency: u64,
    /// What it must reach, such as 'fdatasync p99 < 10ms' (1 writer), 'read p99 < 1ms', 'iops > 5000', 'mbps > 200';
    /// may be given several times, and decides the exit code.
    #[arg(long = "need", value_name = "NEED", value_parser = need)]
    needs: Vec<Need>,
    /// Only flushes, in a few seconds: how long they take, and whether they reach a disk.
    #[arg(long)]
    flushes: bool,
    /// A directory on the disk beneath, whose flushes are compared with those of the target; else one is looked for.
    #[arg(long, value_name = "DIR")]
    control: Option<PathBuf>,
    /// Print a JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Do not say what is done at the moment.
    #[arg(long)]
    quiet: bool,
}

fn simulate(word: &str) -> Result<Simulate, String> {
    Simulate::of_word(word).ok_or_else(|| "allowed: concat, raid0".to_owned())
}

fn caching(word: &str) -> Result<Caching, String> {
    Caching::of_word(word).ok_or_else(|| "allowed: direct, buffered".to_owned())
}

fn need(text: &str) -> Result<Need, NoNeed> {
    text.parse()
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text).filter(|bytes| (16 << 20..=64 << 40).contains(bytes));
    bytes.ok_or_else(|| "allowed: a size from 16MiB to 64TiB, such as 4GiB".to_owned())
}

fn time(text: &str) -> Result<u64, String> {
    let time_ms = parse_duration_ms(text).filter(|ms| (10_000..=86_400_000).contains(ms));
    time_ms.ok_or_else(|| "allowed: a duration from 10s to 24h, such as 2m".to_owned())
}

fn latency(text: &str) -> Result<u64, String> {
    let time_ms = parse_duration_ms(text).filter(|ms| (1..=10_000).contains(ms));
    time_ms.ok_or_else(|| "allowed: a duration from 1ms to 10s, such as 20ms".to_owned())
}

pub(super) fn carry_out(asked: Calibrate) -> ExitCode {
    let settings = Settings {
        targets: asked.targets,
        simulate: asked.simulate,
        caching: asked.caching,
        size_bytes: asked.size,
        time_ms: asked.time,
        max_latency_us: asked.max_latency as f64 * 1000.0,
        only_flushes: asked.flushes,
        control: asked.control,
        needs: asked.needs,
    };
    let mut tell = |what: &str| {
        if !asked.quiet {
            say::note(what);
        }
    };
    match calibrate(&settings, &mut tell) {
        Ok(found) if asked.json => match serde_json::to_string_pretty(&found) {
            Ok(json) => print_then(&format!("{json}\n"), code_of(&found)),
            Err(error) => fail(&error.to_string()),
        },
        Ok(found) => print_then(&text::render(&found), code_of(&found)),
        Err(error) => wrong(&error),
    }
}

/// What the needs decide.
fn code_of(found: &Calibration) -> ExitCode {
    let has = |answer: Answer| found.needs.iter().any(|judged| judged.answer == answer);
    match (has(Answer::Missed), has(Answer::Unknown)) {
        (true, _) => ExitCode::from(NEED_MISSED),
        (false, true) => ExitCode::from(NEED_UNKNOWN),
        (false, false) => ExitCode::SUCCESS,
    }
}

fn wrong(error: &CalibrateError) -> ExitCode {
    let code = fail(&error.to_string());
    match error.is_about_target() {
        true => ExitCode::from(2),
        false => code,
    }
}
