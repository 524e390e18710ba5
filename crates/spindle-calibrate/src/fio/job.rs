//! A job file of `fio` with the points of a calibration, so that another program can measure them. Each point is a job
//! under its name, after the one before; both kinds of requests of a matrix's point run together.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use spindle_io::real::{Caching, Method};

use super::point::PointName;
use crate::calibrate::look;
use crate::error::CalibrateError;
use crate::figures::{TargetKind, What};
use crate::flush::{PART_BYTES, WRITE_BYTES, WRITERS};
use crate::mix::stream_writes;
use crate::orion::{LargeType, Orion};
use crate::point::PointLoad;
use crate::result::MatrixResult;
use crate::search::{depths, matrix_method, paths};
use crate::settings::{AskedCaching, CalibrationSettings};
use crate::target::Target;
use crate::unit::Simulate;
use spindle_system::SystemTree;

/// Options of a job by their names, as fio spells both.
pub(super) type OwnOptions = Vec<(&'static str, String)>;

/// Seconds of a point of a search, and before it, in which nothing counts.
const POINT_S: u64 = 3;
const RAMP_S: u64 = 1;
/// What fio makes in a directory.
const FILE: &str = "spindle-calibrate.fio";
/// Bytes of all names; fio reads lines of 4,096 bytes.
const NAMES_BYTES_MAX: usize = 4000;

/// The job file of what would be measured. Looks at the targets, and changes nothing.
///
/// # Errors
/// As of [`calibrate`](crate::calibrate()); what fio would write to a block device.
pub fn job_file(settings: &CalibrationSettings) -> Result<String, CalibrateError> {
    if settings.caching == AskedCaching::Both {
        return Err(CalibrateError::Settings(
            "a job file has one --caching: direct or buffered".to_owned(),
        ));
    }
    let targets = look(settings, &SystemTree::default())?.targets;
    let has = |kind| targets.iter().any(|target| target.kind() == kind);
    if settings.write_percent > 0 && has(TargetKind::Device) {
        return Err(CalibrateError::Settings(
            "fio writes to block devices without asking, so no job file is made for them; name a directory"
                .to_owned(),
        ));
    }
    if has(TargetKind::Directory) && (has(TargetKind::Device) || has(TargetKind::File)) {
        return Err(CalibrateError::Settings(
            "a job file has directories alone, or none: fio makes files of one size for all"
                .to_owned(),
        ));
    }
    for target in &targets {
        if let Some(why) = why_not_named(target.path()) {
            return Err(CalibrateError::target(target.path(), why));
        }
    }
    let files = FioFiles::of(&targets, settings.size_bytes)?;
    if files.joined().len() > NAMES_BYTES_MAX {
        return Err(CalibrateError::Settings(format!(
            "the names of the targets are longer together than a line of a job file: {NAMES_BYTES_MAX} bytes"
        )));
    }
    let mut text = heading(settings, &files);
    if !settings.only_flushes {
        match &settings.orion {
            Some(orion) => matrix(&mut text, settings, orion)?,
            None => curves(&mut text, settings),
        }
    }
    if let Some(directory) = &files.flushed {
        flushes(&mut text, directory);
    }
    Ok(text)
}

/// What fio opens.
struct FioFiles {
    names: Vec<PathBuf>,
    /// How large the files are that fio makes, which all have one size; `None` where it makes none.
    made_bytes: Option<u64>,
    flushed: Option<PathBuf>,
}

impl FioFiles {
    fn of(targets: &[Target], size_bytes: u64) -> Result<FioFiles, CalibrateError> {
        let is_directory = |target: &&Target| target.kind() == TargetKind::Directory;
        let path = |target: &Target| match target.kind() {
            TargetKind::Directory => target.path().join(FILE),
            TargetKind::File | TargetKind::Device => target.path().to_owned(),
        };
        let rooms = targets.iter().filter(is_directory);
        let rooms = rooms.map(|target| target.room(size_bytes));
        let rooms = rooms.collect::<Result<Vec<u64>, _>>()?;
        Ok(FioFiles {
            names: targets.iter().map(path).collect(),
            made_bytes: rooms.into_iter().min(),
            flushed: targets
                .iter()
                .find(is_directory)
                .map(|target| target.path().to_owned()),
        })
    }

    /// For `filename=`: names between colons, with colons in them escaped.
    fn joined(&self) -> String {
        let names = self.names.iter().map(|path| escaped(path));
        names.collect::<Vec<_>>().join(":")
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn escaped(path: &Path) -> String {
    absolute(path).display().to_string().replace(':', "\\:")
}

/// Why no job file can say this name, and so fio would open, or write, something else; `None` when it can.
fn why_not_named(path: &Path) -> Option<String> {
    let absolute = absolute(path);
    let what = match absolute.to_str() {
        None => "bytes that are not UTF-8",
        Some(name) if name.contains(char::is_control) => {
            "a line break or another control character"
        }
        // A comment begins at either wherever it stands, a dollar begins a variable, a backslash escapes.
        Some(name) if name.contains([';', '#', '$', '\\']) => "one of ; # $ and \\",
        Some(name) if name.ends_with(char::is_whitespace) => "a blank at its end",
        Some(_) => return None,
    };
    Some(format!(
        "its name has {what}, which a job file of fio cannot say: measure it by another name"
    ))
}

fn heading(settings: &CalibrationSettings, files: &FioFiles) -> String {
    let is_read_only = settings.write_percent == 0 && files.made_bytes.is_none();
    let read_only = if is_read_only { "--readonly " } else { "" };
    let mut text = format!(
        "; The points of spindle calibrate, for fio. Have them measured, and compare:\n\
         ;   fio {read_only}--output-format=json --output=fio.json THIS_FILE\n\
         ;   spindle calibrate ... --against fio.json\n\
         ; What differs: fio measures each point for a fixed time. Threads of sync read parts of the file one after the\n\
         ; other, where Spindle's share one place. There is nothing like I/O slaves.\n"
    );
    if files.made_bytes.is_some() {
        let _ = writeln!(
            text,
            "; fio makes files called {FILE}* in each directory and leaves them there: remove them in the end."
        );
    }
    if files.names.len() > 1 {
        text.push_str(
            "; Of several targets fio takes each as often, whatever their sizes and --stripe.\n",
        );
    }
    if settings
        .orion
        .as_ref()
        .is_some_and(|orion| orion.cache_size_bytes > 0)
    {
        text.push_str(
            "; --cache-size is left out: fio reads nothing else before a point, so a cache may answer it.\n",
        );
    }
    let (runtime_s, ramp_s) = match &settings.orion {
        Some(orion) => (orion.duration.as_secs(), 0),
        None => (POINT_S, RAMP_S),
    };
    let direct = direct(settings.caching.of_limits());
    let _ = write!(
        text,
        "\n[global]\nfilename={}\ndirect={direct}\nthread=1\ngroup_reporting=1\ntime_based=1\nruntime={runtime_s}\n\
         ramp_time={ramp_s}\nnorandommap=1\nrandrepeat=0\nrefill_buffers=1\nlat_percentiles=1\nclat_percentiles=0\n\
         percentile_list=50:99\nunified_rw_reporting=1\n",
        files.joined()
    );
    if let Some(bytes) = files.made_bytes {
        let _ = writeln!(text, "filesize={bytes}");
    }
    if files.names.len() > 1 {
        let _ = writeln!(
            text,
            "file_service_type={}",
            match settings.simulate {
                Simulate::Concat => "random",
                Simulate::Raid0 => "roundrobin:1",
            }
        );
    }
    text
}

fn curves(text: &mut String, settings: &CalibrationSettings) {
    for what in [What::SmallRandom, What::LargeSequential] {
        let time = Duration::from_millis(settings.time_ms);
        for (method, depth_max) in paths(what, time) {
            for depth in depths(what, time, depth_max) {
                let load = PointLoad {
                    what,
                    method,
                    depth,
                };
                if let Some(jobs) = curve_jobs(load, settings.write_percent) {
                    jobs.write(text, &load.threads());
                }
            }
        }
    }
}

/// `None` for what fio does not have.
fn curve_jobs(load: PointLoad, write_percent: u32) -> Option<FioJobs> {
    let PointLoad {
        what,
        method,
        depth,
    } = load;
    Some(FioJobs {
        name: PointName::Curve {
            what,
            method,
            depth,
        },
        begins: Begins::AfterAll,
        engine: FioEngine::of(method)?,
        is_random: what == What::SmallRandom,
        length_bytes: what.length_bytes(),
        write_percent,
    })
}

/// The points of a run type of ORION's.
fn matrix(
    text: &mut String,
    settings: &CalibrationSettings,
    orion: &Orion,
) -> Result<(), CalibrateError> {
    let method = matrix_method();
    for (small, large) in orion.loads()? {
        let jobs = |is_small| {
            let name = PointName::Matrix {
                small,
                large,
                is_small,
            };
            let length_bytes = match is_small {
                true => orion.size_small_bytes,
                false => orion.size_large_bytes,
            };
            let begins = match (is_small, small) {
                (false, 1..) => Begins::Beside,
                _ => Begins::AfterAll,
            };
            FioJobs {
                begins,
                ..matrix_jobs(name, method, length_bytes, settings.write_percent)
            }
        };
        if small > 0 {
            jobs(true).write(text, &matrix_threads(method, small));
        }
        match (large, orion.large_type) {
            (0, _) => {}
            (_, LargeType::Rand) => jobs(false).write(text, &matrix_threads(method, large)),
            (_, LargeType::Seq) => streams(text, jobs(false), large, orion),
        }
    }
    Ok(())
}

fn matrix_jobs(name: PointName, method: Method, length_bytes: u64, write_percent: u32) -> FioJobs {
    FioJobs {
        name,
        begins: Begins::AfterAll,
        engine: FioEngine::of(method).unwrap_or(FioEngine::Psync),
        is_random: true,
        length_bytes,
        write_percent,
    }
}

fn matrix_threads(method: Method, depth: u32) -> Vec<u32> {
    let what = What::SmallRandom;
    PointLoad {
        what,
        method,
        depth,
    }
    .threads()
}

fn streams(text: &mut String, jobs: FioJobs, streams: u32, orion: &Orion) {
    let mut begins = jobs.begins;
    for (jobs, count) in stream_jobs(jobs, streams) {
        FioJobs { begins, ..jobs }.write(text, &vec![orion.num_stream_io; count]);
        begins = Begins::InGroup;
    }
}

/// Streams that only read, and streams that only write, and how many of each.
fn stream_jobs(jobs: FioJobs, streams: u32) -> impl Iterator<Item = (FioJobs, usize)> {
    let writing = (0..streams)
        .filter(|stream| stream_writes(*stream, jobs.write_percent))
        .count();
    let counts = [(streams as usize - writing, 0), (writing, 100)];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    counts.map(move |(count, write_percent)| {
        let jobs = FioJobs {
            is_random: false,
            write_percent,
            ..jobs
        };
        (jobs, count)
    })
}

/// Options of the jobs of a curve's point, those of each section; none for what fio does not have.
pub(super) fn curve_options(
    load: PointLoad,
    caching: Caching,
    write_percent: u32,
) -> Vec<OwnOptions> {
    let jobs = curve_jobs(load, write_percent).into_iter();
    jobs.flat_map(|jobs| jobs.compared(&load.threads(), Some(caching)))
        .collect()
}

/// The same of a point of a matrix. A result does not say how many requests of a stream are under way.
pub(super) fn matrix_options(
    found: &MatrixResult,
    name: PointName,
    caching: Option<Caching>,
    write_percent: u32,
) -> Vec<OwnOptions> {
    let PointName::Matrix {
        small,
        large,
        is_small,
    } = name
    else {
        return Vec::new();
    };
    let jobs = |bytes| matrix_jobs(name, found.method, bytes, write_percent);
    let threads = |depth| matrix_threads(found.method, depth);
    match (is_small, found.large_type) {
        (true, _) => jobs(found.size_small_bytes).compared(&threads(small), caching),
        (false, LargeType::Rand) => jobs(found.size_large_bytes).compared(&threads(large), caching),
        (false, LargeType::Seq) => {
            let each = stream_jobs(jobs(found.size_large_bytes), large);
            let mut all: Vec<OwnOptions> = each
                .flat_map(|(jobs, count)| jobs.compared(&vec![1; count], caching))
                .collect();
            let is_known = |name: &str| match name {
                "iodepth" => false,
                "numjobs" => found.method.is_asynchronous(),
                _ => true,
            };
            for own in &mut all {
                own.retain(|(name, _)| is_known(name));
            }
            all
        }
    }
}

/// How jobs come to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// When all before have ended.
    AfterAll,
    /// With those before, and is told apart from them.
    Beside,
    /// With those before, and is told together with them.
    InGroup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FioEngine {
    Psync,
    Libaio,
    IoUring,
}

impl FioEngine {
    /// `None` for what fio does not have.
    fn of(method: Method) -> Option<FioEngine> {
        match method {
            Method::Sync => Some(FioEngine::Psync),
            Method::Libaio => Some(FioEngine::Libaio),
            Method::Async => Some(FioEngine::IoUring),
            _ => None,
        }
    }
}

/// Threads of the same requests.
#[derive(Debug, Clone, Copy)]
struct FioJobs {
    name: PointName,
    begins: Begins,
    engine: FioEngine,
    is_random: bool,
    length_bytes: u64,
    write_percent: u32,
}

impl FioJobs {
    /// `threads`: requests under way of each.
    fn write(self, text: &mut String, threads: &[u32]) {
        let mut begins = self.begins;
        for section in sections(threads) {
            self.section(text, begins, section, threads.len());
            begins = Begins::InGroup;
        }
    }

    fn section(self, text: &mut String, begins: Begins, section: (u32, usize), all: usize) {
        // Those told together are called as the first of them.
        let (name, begins) = match begins {
            Begins::AfterAll => (self.name.to_string(), "stonewall\n"),
            Begins::Beside => (self.name.to_string(), "new_group\n"),
            Begins::InGroup => (format!("{}, the others", self.name), ""),
        };
        let _ = write!(text, "\n[{name}]\n{begins}");
        let is_said = |(name, value): &(&str, String)| (*name, value.as_str()) != ("numjobs", "1");
        write_options(text, self.options(section).into_iter().filter(is_said));
        if !self.is_random && all > 1 {
            let _ = writeln!(text, "offset_increment={}%", 100 / all);
        }
    }

    /// Of `count` threads with `depth` requests under way each.
    fn options(self, (depth, count): (u32, usize)) -> OwnOptions {
        let how = match (self.is_random, self.write_percent) {
            (true, 0) => "randread",
            (true, 100) => "randwrite",
            (true, _) => "randrw",
            (false, 0) => "read",
            (false, 100) => "write",
            (false, _) => "rw",
        };
        let mut all = vec![
            ("bs", self.length_bytes.to_string()),
            ("rw", how.to_owned()),
        ];
        if (1..100).contains(&self.write_percent) {
            all.push(("rwmixwrite", self.write_percent.to_string()));
        }
        let (engine, count) = match self.engine {
            FioEngine::Psync => ("psync", count * depth as usize),
            FioEngine::Libaio => ("libaio", count),
            FioEngine::IoUring => ("io_uring", count),
        };
        all.push(("ioengine", engine.to_owned()));
        if self.engine == FioEngine::IoUring {
            all.push(("fixedbufs", "1".to_owned()));
        }
        if self.engine != FioEngine::Psync {
            all.push(("iodepth", depth.to_string()));
        }
        all.push(("numjobs", count.to_string()));
        all
    }

    /// The options of each section, with what the heading says for all.
    fn compared(self, threads: &[u32], caching: Option<Caching>) -> Vec<OwnOptions> {
        let direct = caching.map(|caching| ("direct", direct(caching).to_string()));
        let of = |section| {
            let own = self.options(section).into_iter();
            own.chain(direct.clone()).collect()
        };
        sections(threads).into_iter().map(of).collect()
    }
}

/// Neighbours of the same depth, and how many they are.
fn sections(threads: &[u32]) -> Vec<(u32, usize)> {
    let equal = threads.chunk_by(|one, other| one == other);
    equal.map(|group| (group[0], group.len())).collect()
}

fn direct(caching: Caching) -> u8 {
    u8::from(caching == Caching::Direct)
}

fn write_options(text: &mut String, options: impl IntoIterator<Item = (&'static str, String)>) {
    for (name, value) in options {
        let _ = writeln!(text, "{name}={value}");
    }
}

/// `fdatasync` after each write, as in [`crate::flush`].
fn flushes(text: &mut String, directory: &Path) {
    for writers in WRITERS {
        let name = PointName::Flush { writers };
        let file = escaped(&directory.join(format!("{FILE}-flush")));
        let filesize = PART_BYTES * u64::from(WRITERS[1]);
        let _ = write!(
            text,
            "\n[{name}]\nstonewall\nfilename={file}\nfilesize={filesize}\nsize={PART_BYTES}\n\
             offset_increment={PART_BYTES}\nunified_rw_reporting=0\n"
        );
        write_options(text, flush_options(writers));
    }
}

/// Options of the job of this many writers.
pub(super) fn flush_options(writers: u32) -> OwnOptions {
    vec![
        ("direct", "0".to_owned()),
        ("rw", "write".to_owned()),
        ("bs", WRITE_BYTES.to_string()),
        ("fdatasync", "1".to_owned()),
        ("ioengine", "psync".to_owned()),
        ("numjobs", writers.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_that_the_job_file_says() {
        let load = |method, depth| PointLoad {
            what: What::SmallRandom,
            method,
            depth,
        };
        let said = |load: PointLoad| {
            let mut text = String::new();
            let jobs = curve_jobs(load, 30).unwrap();
            jobs.write(&mut text, &load.threads());
            text
        };
        for (load, alone) in [
            (load(Method::Sync, 4), "numjobs=4\n"),
            (load(Method::Libaio, 8), "iodepth=8\n"),
        ] {
            let text = said(load);
            assert!(text.contains(alone), "{text}");
            let own = curve_options(load, Caching::Direct, 30);
            for (name, value) in &own[0] {
                let is_in_heading =
                    *name == "direct" || (*name, value.as_str()) == ("numjobs", "1");
                let line = format!("\n{name}={value}\n");
                assert!(is_in_heading || text.contains(&line), "{line}{text}");
            }
            assert!(own[0].contains(&("direct", "1".to_owned())), "{own:?}");
            assert!(own[0].iter().any(|(name, _)| *name == "numjobs"), "{own:?}");
        }
    }

    #[test]
    fn neighbours_of_one_depth_are_one_section() {
        assert_eq!(sections(&[3, 3, 2]), [(3, 2), (2, 1)]);
        assert_eq!(sections(&[]), []);
    }

    #[test]
    fn only_names_that_fio_reads_as_they_are_come_into_a_job_file() {
        for name in ["/a b", "/a:b", "/a=b,c[d]", "/\u{fc}"] {
            assert_eq!(why_not_named(Path::new(name)), None, "{name}");
        }
        for (name, part) in [
            (
                "/e\n[evil]\nrw=randwrite\nfilename=/tmp/victim\n;x",
                "line break",
            ),
            ("/tab\there", "control character"),
            ("/${HOME}", "one of"),
            ("/$jobname", "one of"),
            ("/a;b", "one of"),
            ("/a#b", "one of"),
            ("/a\\", "one of"),
            ("/a ", "a blank"),
        ] {
            let why = why_not_named(Path::new(name)).unwrap();
            assert!(why.contains(part), "{name:?}: {why}");
        }
    }
}
