//! A whole calibration within its time: a search for the knee on each access path, large requests, the best points once
//! more, flushes. What time did not allow is left out and named.

use std::path::Path;
use std::time::{Duration, Instant};

use spindle_io::real::{Caching, Method};
use spindle_stats::fall;
use spindle_system::{Beneath, SystemTree};
use spindle_text::quantity::{MIB, size, time};

use crate::below::{Below, NoControl, place_beneath};
use crate::budget::TimeBudget;
use crate::cloud::{Bought, Cloud, CloudFacts};
use crate::commits::{Commits, Watch};
use crate::coverage::CoverageCounts;
use crate::error::CalibrateError;
use crate::figures::{
    CutShort, DeviceShare, Extreme, FellTo, Flushed, Point, TELLING_HOLD_S, What,
};
use crate::honesty::Beside;
use crate::mix::extreme_of;
use crate::observe::Timing;
use crate::open_loop::SHARES;
use crate::orion::Orion;
use crate::point::{Bench, PointLoad};
use crate::result::{
    CacheFinding, Calibration, Held, Honesty, MatrixPoint, MatrixResult, PathCurve, RatePoint,
    TargetFacts,
};
use crate::search::{End, best, depths, knee, matrix_method, paths};
use crate::settings::{AskedCaching, CalibrationSettings, FILLED_AT, FLUSHED_BYTES};
use crate::target::{Filling, ReadyTarget, Target};
use crate::unit::UnitShape;
use crate::{cache, cloud, commits, honesty};

/// Of [`Calibration::format`].
const FORMAT: u32 = 1;
/// A point of the usual budget is sampled every 10 ms, and so lasts a second at least. With half of it or less, and at
/// a first look at large requests, a point lasts half a second: the kernel keeps a limit in slices of 100 ms, and few
/// of them would not tell it.
const SAMPLES_PER_BUDGET: u32 = 12_000;
const SAMPLE_MIN: Duration = Duration::from_millis(5);
const SAMPLE_MAX: Duration = Duration::from_millis(10);
/// Reads at a lower rate would hardly come while they are waited for.
const RATE_MIN_PER_S: f64 = 1.0;
/// A point of a slow device lasts up to twice as long, until it has as many small or large requests.
const REQUESTS_WANTED: (u64, u64) = (200, 40);
/// Samples of a point at a rate: this many until enough reads came.
const SAMPLES_AT_RATE: (u32, u32) = (100, 400);
/// The least number of samples of a point, and of one that is measured again, and the most of both.
const SAMPLES: (u32, u32) = (100, 150);
const SAMPLES_AGAIN: (u32, u32) = (300, 800);
/// What is looked at briefly: samples of half the usual length.
const SAMPLES_BRIEF: (u32, u32) = (100, 150);
const SAMPLE_BRIEF_MIN: Duration = Duration::from_millis(2);
/// The part of the time for which the best point is held, and in how many samples.
const HELD_PART: f64 = 0.08;
const HELD_SAMPLES: u32 = 60;
/// The part of the time in which a burst is written, and its most.
const BURST_PART: f64 = 0.04;
const BURST_MAX: Duration = Duration::from_secs(60);
/// Two looks at a point that differ by more than this part are followed by a third.
const LOOKS_APART: f64 = 0.1;
/// Points that differ by no more than this part count as equal.
const EQUAL_PART: f64 = 0.05;
/// This many of the best points are measured again at most.
const CONTENDERS: usize = 3;
/// Parts of the time after which no more small and no more large requests are begun.
const SMALL_UNTIL: f64 = 0.47;
const LARGE_UNTIL: f64 = 0.60;
/// Where access paths are measured direct and buffered: the part of the time for direct ones, and of the rest, that of
/// small requests.
const DIRECT_PART: f64 = 0.6;
const BUFFERED_SMALL_PART: f64 = 0.75;
/// After this part no point is measured again.
const AGAIN_UNTIL: f64 = 0.78;
/// After this part none is measured at a rate. The best one is held then.
const RATES_UNTIL: f64 = 0.91;

/// Before the first point.
const NOTHING_READ: DeviceShare = DeviceShare {
    asked_bytes: 0,
    device_bytes: 0,
    disks_bytes: Some(0),
};

/// A calibration under way.
pub(crate) struct Work<'a> {
    bench: Bench<'a>,
    settings: &'a CalibrationSettings,
    began: Instant,
    /// When targets were ready.
    filled: Instant,
    /// Of requests, from then on; what is left of the time that was asked for is for commits.
    time: Duration,
    /// The part of it in which the limits are searched. It decides on the access paths of both ways, past the page
    /// cache and through it.
    search_time: Duration,
    tell: &'a mut dyn FnMut(&str),
    sample: Duration,
    /// Of all points so far; `None` when the counters are not known.
    device: Option<DeviceShare>,
    notes: Vec<String>,
}

/// What came of the requests, beside flushes.
struct MeasuredRequests {
    curves: Vec<PathCurve>,
    at_rates: Vec<RatePoint>,
    held: Option<Held>,
    matrix: Option<MatrixResult>,
    maximum_iops: Option<Extreme>,
    maximum_mb_per_s: Option<Extreme>,
    minimum_latency: Option<Extreme>,
    cache: CacheFinding,
}

impl MeasuredRequests {
    fn none() -> MeasuredRequests {
        MeasuredRequests {
            curves: Vec::new(),
            at_rates: Vec::new(),
            held: None,
            matrix: None,
            maximum_iops: None,
            maximum_mb_per_s: None,
            minimum_latency: None,
            cache: CacheFinding::without_reads(),
        }
    }
}

impl<'a> Work<'a> {
    pub(crate) fn new(
        settings: &'a CalibrationSettings,
        made: &'a [ReadyTarget],
        began: Instant,
        tell: &'a mut dyn FnMut(&str),
    ) -> Work<'a> {
        let asked = Duration::from_millis(settings.time_ms);
        let written = made.iter().filter(|made| made.is_writable()).count();
        let budget = TimeBudget::of(asked, began.elapsed(), written);
        let time = budget.requests;
        if let Some(longer) = budget.takes_longer().filter(|_| !settings.only_flushes) {
            tell(&longer);
        }
        let how = (settings.simulate, settings.stripe_bytes);
        let shape = UnitShape::new(made.iter().map(ReadyTarget::bytes), how);
        Work {
            bench: Bench {
                coverage: CoverageCounts::new(shape.capacity_bytes()),
                shape,
                targets: made,
                caching: settings.caching.of_limits(),
                write_percent: settings.write_percent,
                interrupted: &settings.interrupted,
            },
            settings,
            began,
            filled: Instant::now(),
            time,
            search_time: match settings.caching {
                AskedCaching::Both => time.mul_f64(DIRECT_PART),
                AskedCaching::Direct | AskedCaching::Buffered => time,
            },
            tell,
            sample: (asked / SAMPLES_PER_BUDGET).clamp(SAMPLE_MIN, SAMPLE_MAX),
            device: Some(NOTHING_READ),
            notes: Vec::new(),
        }
    }

    /// Measures everything.
    ///
    /// # Errors
    /// See [`CalibrateError`].
    pub(crate) fn all(
        &mut self,
        control: Option<&ReadyTarget>,
    ) -> Result<Calibration, CalibrateError> {
        let cloud = self.cloud();
        let measured = match (&self.settings.orion, self.settings.only_flushes) {
            (_, true) => MeasuredRequests::none(),
            (Some(orion), _) => self.matrix(orion)?,
            (None, _) => self.search()?,
        };
        let (flushes, commits) = self.flushes()?;
        let honesty = self.honesty(control)?;
        let targets = self.bench.targets;
        let mut found = Calibration {
            format: FORMAT,
            targets: targets.iter().map(|target| self.facts(target)).collect(),
            write_percent: self.settings.write_percent,
            max_latency_us: self.settings.latency_limit_us(),
            maximum_iops: measured.maximum_iops,
            maximum_mb_per_s: measured.maximum_mb_per_s,
            minimum_latency: measured.minimum_latency,
            held: measured.held,
            flushes,
            commits,
            honesty,
            needs: Vec::new(),
            cache: measured.cache,
            curves: measured.curves,
            at_rates: measured.at_rates,
            matrix: measured.matrix,
            bought: Bought::of(self.settings.bought, cloud.as_ref()),
            cloud,
            against: None,
            notes: self.all_notes(),
            took_s: self.began.elapsed().as_secs_f64(),
        };
        let needs = self.settings.needs.iter();
        found.needs = needs.map(|need| need.judge(&found)).collect();
        Ok(found)
    }

    /// What the cloud says, where the machine is one's.
    fn cloud(&mut self) -> Option<CloudFacts> {
        let is_asked = self.settings.may_ask_cloud && !self.settings.only_flushes;
        let cloud = Cloud::of(&SystemTree::default()).filter(|_| is_asked)?;
        (self.tell)(&format!("the metadata service of {cloud} is asked"));
        Some(cloud.ask(cloud::SERVICE, cloud::LIMIT))
    }

    /// The curves, ORION's figures, and whether a cache answered.
    fn search(&mut self) -> Result<MeasuredRequests, CalibrateError> {
        let read_twice = cache::read_twice(&self.bench)?;
        let is_both = self.settings.caching == AskedCaching::Both;
        let whole = self.time;
        if is_both {
            self.time = self.search_time;
        }
        let mut curves = self.curves((SMALL_UNTIL, LARGE_UNTIL))?;
        let maximum_iops = self.extreme(&curves, What::SmallRandom, |point| point.iops)?;
        self.note_latency(maximum_iops.as_ref(), self.settings.latency_limit_us());
        let maximum_mb_per_s = self.extreme(&curves, What::LargeSequential, |point| point.iops)?;
        let minimum_latency = self.extreme(&curves, What::SmallRandom, |point| {
            1.0 / point.mean_us.max(1e-3)
        })?;
        curves = without_histograms(curves);
        let at_rates = self.at_rates(maximum_iops.as_ref())?;
        let held = self.held(maximum_iops.as_ref())?;
        let cache = self.cache_finding(read_twice);
        if is_both {
            self.time = whole;
            curves = side_by_side(curves, self.buffered_curves()?);
        }
        Ok(MeasuredRequests {
            at_rates,
            held,
            cache,
            curves,
            matrix: None,
            maximum_iops,
            maximum_mb_per_s,
            minimum_latency,
        })
    }

    /// Each access path until its knee; `until` are the parts of the time after which no small and no large requests
    /// are begun.
    fn curves(&mut self, until: (f64, f64)) -> Result<Vec<PathCurve>, CalibrateError> {
        let mut curves = Vec::new();
        let (of_small, of_large) = until;
        for (what, until) in [
            (What::SmallRandom, of_small),
            (What::LargeSequential, of_large),
        ] {
            let paths = paths(what, self.search_time);
            // Each path has its share of the time, and what those before it left of theirs.
            let (from, count) = (self.part_passed(), paths.len() as f64);
            for (index, (method, depth_max)) in paths.into_iter().enumerate() {
                let share = (index + 1) as f64 / count;
                let until = from + (until - from).max(0.0) * share;
                curves.push(self.curve(what, method, depth_max, until)?);
            }
        }
        Ok(curves)
    }

    /// The same access paths through the page cache. They count for no limit: what memory answers is told of each.
    fn buffered_curves(&mut self) -> Result<Vec<PathCurve>, CalibrateError> {
        let (caching, device) = (self.bench.caching, self.device);
        self.bench.caching = Caching::Buffered;
        let from = self.part_passed();
        let until = |part: f64| from + (1.0 - from).max(0.0) * part;
        let curves = self.curves((until(BUFFERED_SMALL_PART), until(1.0)));
        (self.bench.caching, self.device) = (caching, device);
        curves.map(without_histograms)
    }

    /// Latency at parts of the most requests per second.
    fn at_rates(&mut self, most: Option<&Extreme>) -> Result<Vec<RatePoint>, CalibrateError> {
        let mut points = Vec::new();
        let Some(most) = most.filter(|_| self.settings.write_percent == 0) else {
            return Ok(points);
        };
        for (tried, share) in SHARES.into_iter().enumerate() {
            // A first point, however little time there is.
            if self.is_past(RATES_UNTIL) && tried > 0 {
                self.notes.push(format!(
                    "the time was over after {tried} of {} fixed rates: --time gives more",
                    SHARES.len()
                ));
                break;
            }
            let rate_per_s = most.point.iops * share;
            if rate_per_s < RATE_MIN_PER_S {
                continue;
            }
            (self.tell)(&format!("random reads at {rate_per_s:.0} per second"));
            let (point, device) = self
                .bench
                .at_rate(rate_per_s, self.timing(SAMPLES_AT_RATE))?;
            self.note_share(device);
            if point.requests > 0 {
                points.push(point);
            }
        }
        points.sort_by(|a, b| a.due_per_s.total_cmp(&b.due_per_s));
        Ok(points)
    }

    /// The points of a run type of ORION's, each for its own time, by the best access path that there is.
    fn matrix(&mut self, orion: &Orion) -> Result<MeasuredRequests, CalibrateError> {
        let read_twice = cache::read_twice(&self.bench)?;
        let method = matrix_method();
        let loads = orion.loads()?;
        let mut points = Vec::new();
        for (index, load) in loads.iter().enumerate() {
            (self.tell)(&format!(
                "point {} of {}, {} s: small {}, large {}",
                index + 1,
                loads.len(),
                orion.duration.as_secs(),
                load.0,
                load.1
            ));
            let (point, share) = self.bench.mix(orion, method, *load)?;
            self.note_share(share);
            points.push(point);
        }
        let limit_us = self.settings.max_latency_us.unwrap_or(f64::INFINITY);
        let within = |point: &MatrixPoint| point.iops.filter(|_| point.mean_us <= Some(limit_us));
        let as_found = ((method, self.bench.caching), orion);
        let maximum_iops = extreme_of(&points, &within, true, as_found)
            .or_else(|| extreme_of(&points, &|point| point.iops, true, as_found));
        self.note_latency(maximum_iops.as_ref(), limit_us);
        Ok(MeasuredRequests {
            curves: Vec::new(),
            at_rates: Vec::new(),
            held: None,
            maximum_iops,
            maximum_mb_per_s: extreme_of(&points, &|point| point.mb_per_s, false, as_found),
            minimum_latency: extreme_of(&points, &|point| Some(-point.mean_us?), true, as_found),
            cache: self.cache_finding(read_twice),
            matrix: Some(MatrixResult {
                run: orion.run,
                method,
                size_small_bytes: orion.size_small_bytes,
                size_large_bytes: orion.size_large_bytes,
                large_type: orion.large_type,
                points,
            }),
        })
    }

    /// Says that the most requests took longer than they may, where no point was within the limit.
    fn note_latency(&mut self, most: Option<&Extreme>, limit_us: f64) {
        if let Some(most) = most.filter(|most| most.point.mean_us > limit_us) {
            self.notes.push(format!(
                "no point was within --max-latency, {}: at the maximum of IOPS a request took {} on average",
                time(limit_us),
                time(most.point.mean_us)
            ));
        }
    }

    fn cache_finding(&self, read_twice: cache::ReadTwice) -> CacheFinding {
        let mut shares = self.bench.targets.iter().map(ReadyTarget::resident_share);
        let resident_share = shares.try_fold(0.0, |most: f64, share| Some(most.max(share?)));
        let how = (self.bench.caching, self.bench.coverage.coverage());
        cache::judge(self.device, read_twice, resident_share, how)
    }

    /// Whether the flushes of each target arrive.
    fn honesty(&mut self, given: Option<&ReadyTarget>) -> Result<Vec<Honesty>, CalibrateError> {
        let targets = self.bench.targets;
        targets
            .iter()
            .map(|target| self.honesty_of(target, given))
            .collect()
    }

    fn honesty_of(
        &mut self,
        target: &ReadyTarget,
        given: Option<&ReadyTarget>,
    ) -> Result<Honesty, CalibrateError> {
        let tree = SystemTree::default();
        let path = target.target().path();
        let name = path.display().to_string();
        let beneath = Beneath::of(&tree, path);
        let below = Below::of(&beneath);
        let Some(file) = target.writable() else {
            return Ok(honesty::unwritten(&name, &below));
        };
        (self.tell)(&format!("flushes of {name} beside the storage beneath"));
        let memory = below.memory.as_ref().or(below.memory_part.as_ref());
        let found = match (given, memory) {
            (Some(_), _) => Err(NoControl::Given),
            (None, Some(what)) => Err(NoControl::Memory(what.clone())),
            (None, None) => self.control_beneath(&tree, path, &beneath),
        };
        let control = given.or(found.as_ref().ok().map(|(made, _)| made));
        let beside = control.and_then(|made| {
            Some(Beside {
                file: made.writable()?,
                path: made.target().path().display().to_string(),
                is_given: given.is_some(),
            })
        });
        let mut honesty = honesty::examine(&name, &below, file, beside.as_ref())?;
        if let (Some(of), Some(made)) = (&mut honesty.control, control) {
            of.flushes = commits::of_control(made, self.watch(), self.tell)?;
        }
        honesty.control_because =
            found.map_or_else(|none| none.to_string(), |(_, as_what)| as_what);
        Ok(honesty)
    }

    /// A file on the storage beneath a directory, and how its place was found; or why there is none.
    fn control_beneath(
        &mut self,
        tree: &SystemTree,
        directory: &Path,
        beneath: &Beneath,
    ) -> Result<(ReadyTarget, String), NoControl> {
        let place = place_beneath(tree, directory, beneath)?;
        (self.tell)(&format!(
            "a file without a name in {}, {}, is the control",
            place.directory.display(),
            place.found_as
        ));
        let filling = Filling {
            bytes: FLUSHED_BYTES,
            time: self.time.mul_f64(FILLED_AT),
            caching: self.bench.caching,
            interrupted: &self.settings.interrupted,
        };
        let target = Target::look(&place.directory);
        let made = target.and_then(|target| target.make(None, filling));
        Ok((made?, place.found_as))
    }

    /// Searches the knee of an access path; `until` is the part of the time after which no point is begun.
    fn curve(
        &mut self,
        what: What,
        method: Method,
        depth_max: u32,
        until: f64,
    ) -> Result<PathCurve, CalibrateError> {
        let mut curve = PathCurve {
            method,
            caching: self.bench.caching,
            what,
            points: Vec::new(),
            note: method.available().err().map(|why| why.to_string()),
            cut_short: None,
        };
        if curve.note.is_some() {
            return Ok(curve);
        }
        let is_beside = curve.caching != self.settings.caching.of_limits();
        if is_beside {
            self.bench.targets.iter().for_each(ReadyTarget::forget);
            self.device = Some(NOTHING_READ);
        }
        self.tell_curve(&curve);
        let asked = Duration::from_millis(self.settings.time_ms);
        let limit_us = self.limit_us(what);
        let sample = match what {
            What::SmallRandom => self.sample,
            // Their throughput varies less, and the best of them is looked at again, for longer.
            What::LargeSequential => (self.sample / 2).max(SAMPLE_MIN),
        };
        let (points, end) = knee(depths(what, asked, depth_max), limit_us, |depth| {
            // A first point of each, however little time there is.
            if depth > 1 && self.is_past(until) {
                return Ok(None);
            }
            let load = PointLoad {
                what,
                method,
                depth,
            };
            Ok(Some(self.measure(load, Timing::of(sample, SAMPLES))?))
        })?;
        let ended = match end {
            End::Knee | End::Deepest => None,
            End::Time => Some("the time was over before its knee was reached".to_owned()),
            End::Latency => points.last().map(|last| {
                format!(
                    "ended before its knee: requests take {}, and --max-latency is {}",
                    time(last.mean_us),
                    time(limit_us)
                )
            }),
        };
        let answered = self.device.filter(|_| is_beside).map(of_page_cache);
        let notes: Vec<String> = answered.into_iter().chain(ended).collect();
        curve.note = (!notes.is_empty()).then(|| notes.join("; "));
        curve.cut_short = match end {
            End::Time => Some(CutShort::Time),
            End::Latency => Some(CutShort::Latency),
            End::Knee | End::Deepest => None,
        };
        curve.points = points;
        Ok(curve)
    }

    fn tell_curve(&mut self, curve: &PathCurve) {
        let requests = match self.settings.write_percent {
            0 => "reads",
            _ => "reads and writes",
        };
        let through = match curve.caching {
            Caching::Direct => "",
            Caching::Buffered => ", through the page cache",
        };
        let method = curve.method;
        (self.tell)(&match curve.what {
            What::SmallRandom => format!("random {requests} of 8 KiB, {method}{through}"),
            What::LargeSequential => {
                format!("sequential {requests} of 1 MiB, {method}{through}")
            }
        });
    }

    /// The mean time that ends a search: it is about small requests.
    fn limit_us(&self, what: What) -> f64 {
        match what {
            What::SmallRandom => self.settings.latency_limit_us(),
            What::LargeSequential => f64::INFINITY,
        }
    }

    fn measure(&mut self, load: PointLoad, timing: Timing) -> Result<Point, CalibrateError> {
        let timing = Timing {
            requests: match load.what {
                What::SmallRandom => REQUESTS_WANTED.0,
                What::LargeSequential => REQUESTS_WANTED.1,
            },
            ..timing
        };
        let (point, share) = self.bench.measure(load, timing)?;
        self.note_share(share);
        Ok(point)
    }

    fn note_share(&mut self, share: Option<DeviceShare>) {
        self.device = self.device.zip(share).map(|(all, share)| DeviceShare {
            asked_bytes: all.asked_bytes + share.asked_bytes,
            device_bytes: all.device_bytes + share.device_bytes,
            // Unknown once is unknown for all: a part of them beside all that was asked for would look cached.
            disks_bytes: all
                .disks_bytes
                .zip(share.disks_bytes)
                .map(|(all, share)| all + share),
        });
    }

    fn timing(&self, samples: (u32, u32)) -> Timing {
        Timing::of(self.sample, samples)
    }

    fn is_past(&self, part: f64) -> bool {
        self.part_passed() > part
    }

    fn part_passed(&self) -> f64 {
        self.filled.elapsed().as_secs_f64() / self.time.as_secs_f64()
    }

    /// The point of the largest figure of all curves, measured once more where there is time; the next ones, too, when
    /// that one was only lucky.
    fn extreme(
        &mut self,
        curves: &[PathCurve],
        what: What,
        figure: fn(&Point) -> f64,
    ) -> Result<Option<Extreme>, CalibrateError> {
        let limit_us = self.limit_us(what);
        let mut contenders: Vec<(&PathCurve, &Point)> = Vec::new();
        for curve in curves.iter().filter(|curve| curve.what == what) {
            let points = [best(&curve.points, limit_us), curve.points.first()];
            contenders.extend(points.into_iter().flatten().map(|point| (curve, point)));
        }
        contenders.sort_by(|a, b| figure(b.1).total_cmp(&figure(a.1)));
        let found = |curve: &PathCurve, point: Point, is_confirmed| Extreme {
            method: curve.method,
            caching: curve.caching,
            point,
            beside: 0,
            is_confirmed,
        };
        // The best of several looks at equal points would be more than any of them can do.
        let is_settled = |again: &Option<Extreme>, next: &Point| {
            let again = again.as_ref().map(|extreme| figure(&extreme.point));
            again.is_some_and(|again| figure(next) <= again * (1.0 + EQUAL_PART))
        };
        let mut again: Option<Extreme> = None;
        for (index, (curve, point)) in contenders.into_iter().enumerate() {
            if is_settled(&again, point) {
                return Ok(again);
            }
            if self.is_past(AGAIN_UNTIL) || index == CONTENDERS {
                // It stands, though measured once: what was looked at again came to less.
                return Ok(Some(found(curve, point.clone(), false)));
            }
            let looked = self.look_again(what, curve.method, point, figure)?;
            let best = again.as_ref().map(|extreme| figure(&extreme.point));
            if best.is_none_or(|best| figure(&looked) > best) {
                again = Some(found(curve, looked, true));
            }
        }
        Ok(again)
    }

    /// Measures a point once more; a third time where the two looks are far apart, as something else had a part in one
    /// of them.
    fn look_again(
        &mut self,
        what: What,
        method: Method,
        point: &Point,
        figure: fn(&Point) -> f64,
    ) -> Result<Point, CalibrateError> {
        let depth = point.depth;
        (self.tell)(&format!("the best point again: {method}, depth {depth}"));
        let load = PointLoad {
            what,
            method,
            depth,
        };
        let looked = self.measure(load, self.timing(SAMPLES_AGAIN))?;
        let is_worse = figure(&looked) < figure(point) * (1.0 - LOOKS_APART);
        if !is_worse || self.is_past(AGAIN_UNTIL) {
            return Ok(looked);
        }
        let third = self.measure(load, self.timing(SAMPLES_AGAIN))?;
        Ok(match figure(&third) > figure(&looked) {
            true => third,
            false => looked,
        })
    }

    /// Flushes of each target that may be written, and what else commits meet there.
    fn flushes(&mut self) -> Result<(Vec<Flushed>, Vec<Commits>), CalibrateError> {
        let watch = self.watch();
        let (mut flushes, mut commits) = (Vec::new(), Vec::new());
        for target in self.bench.targets {
            if let Some((of_each, more)) = commits::measure(target, watch, self.tell)? {
                flushes.extend(of_each);
                commits.push(more);
            }
        }
        if commits.is_empty() {
            self.notes.push(
                "flush latency is measured in a file that was made for it: name a directory"
                    .to_owned(),
            );
        }
        Ok((flushes, commits))
    }

    /// How flushes are watched.
    fn watch(&self) -> Watch<'a> {
        let usual = self.timing(SAMPLES);
        let sample = (self.sample / 2).max(SAMPLE_BRIEF_MIN);
        let burst = (self.time.mul_f64(BURST_PART)).min(BURST_MAX);
        Watch {
            usual,
            brief: Timing::of(sample, SAMPLES_BRIEF),
            burst: (!self.settings.only_flushes).then_some(burst),
            interrupted: self.bench.interrupted,
        }
    }

    /// Holds the point of the most requests, as credit lasts for a while.
    fn held(&mut self, most: Option<&Extreme>) -> Result<Option<Held>, CalibrateError> {
        let asked = self.settings.hold;
        let lasts = asked.unwrap_or(self.time.mul_f64(HELD_PART));
        let Some(most) = most else {
            return Ok(None);
        };
        let load = PointLoad {
            what: What::SmallRandom,
            method: most.method,
            depth: most.point.depth,
        };
        let seconds = lasts.as_secs_f64();
        (self.tell)(&format!(
            "the best point is held for {}: {}, depth {}",
            time(seconds * 1e6),
            load.method,
            load.depth
        ));
        let timing = Timing::fixed(lasts, HELD_SAMPLES);
        let (observed, device) = self.bench.hold(load, timing)?;
        self.note_share(device);
        let tells = seconds >= TELLING_HOLD_S;
        let fell = fall(&observed.rates).filter(|_| tells);
        let fell = fell.map(|fall| FellTo::of(fall, timing.sample, 1.0));
        Ok(Some(Held {
            method: load.method,
            depth: load.depth,
            lasted_s: seconds,
            iops: match fell {
                Some(_) => observed.all_per_s,
                // An allowance that was saved up before is no part of it.
                None => observed.per_s,
            },
            fell,
        }))
    }

    fn all_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(
            self.bench.shape.left_out().map(|part| {
                format!("raid0 uses as much of each target as the smallest has: {part}")
            }),
        );
        for target in self.bench.targets {
            let name = target.target().path().display();
            let is_uncounted = self.device.is_none();
            if let Some(reason) = target.device_unknown_because().filter(|_| is_uncounted) {
                notes.push(format!(
                    "{name}: the device beneath is unknown ({reason}), so its counters cannot be compared"
                ));
            }
            let is_small = target.bytes() < self.settings.size_bytes / MIB * MIB;
            if target.is_writable() && is_small && !self.settings.only_flushes {
                notes.push(format!(
                    "{name}: the file has {} instead of {}: a quarter of the free space and of the time may be used for it",
                    size(target.bytes()),
                    size(self.settings.size_bytes)
                ));
            }
        }
        notes
    }

    fn facts(&self, target: &ReadyTarget) -> TargetFacts {
        TargetFacts {
            path: target.target().path().display().to_string(),
            kind: target.target().kind(),
            bytes: target.bytes(),
            file_system: target.file_system(),
            device: target.device_name(),
            device_unknown_because: target.device_unknown_because(),
            is_written: self.settings.write_percent > 0 || target.is_writable(),
        }
    }
}

/// Only the best points keep theirs, and those are copies.
fn without_histograms(mut curves: Vec<PathCurve>) -> Vec<PathCurve> {
    let points = curves.iter_mut().flat_map(|curve| &mut curve.points);
    points.for_each(|point| point.histogram.clear());
    curves
}

/// How much of what was read came from memory, in words. A device that read ahead, or for others, hides a part of it.
fn of_page_cache(share: DeviceShare) -> String {
    let answered = (1.0 - share.ratio()).clamp(0.0, 1.0);
    format!("the page cache answered {:.0} % of it", answered * 100.0)
}

/// Each access path, and behind it the same through the page cache.
fn side_by_side(direct: Vec<PathCurve>, buffered: Vec<PathCurve>) -> Vec<PathCurve> {
    let (mut buffered, mut all) = (buffered.into_iter(), Vec::new());
    for curve in direct {
        all.push(curve);
        all.extend(buffered.next());
    }
    all
}
