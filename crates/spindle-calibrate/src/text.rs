//! A calibration for people: ORION's three lines, a short table, flushes, and what weakens the figures.

use std::fmt::Write as _;

use spindle_io::real::Caching;
use spindle_text::plain;
use spindle_text::quantity::{size, thousands, thousands_or_tenths, time};

use crate::cloud::Reached;
use crate::figures::{
    Cached, CutShort, Extreme, Point, TELLING_HOLD_S, TargetKind, What, WriteFigures,
};
use crate::fio::{FioResults, aligned};
use crate::result::{
    Calibration, DemandAnswer, FioComparison, FioLeftOut, Held, Judged, MatrixResult, NotJudged,
    PathCurve, TargetFacts,
};

mod durable;

pub use durable::{commit_lines, durable_by, trust_word, witness_lines};

/// The whole text, with a line feed at its end.
pub fn render(found: &Calibration) -> String {
    let found = &on_their_lines(found);
    let mut text = String::new();
    for target in &found.targets {
        let _ = writeln!(text, "{}", target_line(target));
    }
    if let Some(says) = write_line(found) {
        let _ = writeln!(text, "{says}");
    }
    let _ = writeln!(text);
    let has_reads = !found.curves.is_empty() || found.matrix.is_some();
    // What takes the figures away from the device is said beside them, and the rest below.
    let is_of_others = found.cache.cached.is_of_others();
    if has_reads {
        extremes(&mut text, found);
        if is_of_others {
            cached(&mut text, found);
        }
        let _ = writeln!(text);
    }
    match &found.matrix {
        Some(of) => matrix(&mut text, of, found.write_percent),
        None if has_reads => table(&mut text, found),
        None => {}
    }
    at_rates(&mut text, found);
    if let Some(held) = &found.held {
        let _ = writeln!(text, "{}.\n", held_line(held));
    }
    if !found.commits.is_empty() {
        durable::flushes(&mut text, found);
        let _ = writeln!(text);
    }
    if has_reads && !is_of_others {
        cached(&mut text, found);
    }
    for says in cloud_lines(found) {
        let _ = writeln!(text, "{says}.");
    }
    for honesty in &found.honesty {
        durable::trust(&mut text, honesty, found.honesty.len() > 1);
    }
    if let Some(beside) = &found.against {
        against(&mut text, beside);
    }
    for judged in &found.needs {
        let _ = writeln!(text, "Need {}: {}.", judged.need, need_word(judged));
    }
    for note in &found.notes {
        let _ = writeln!(text, "Note: {note}.");
    }
    text
}

/// The same with names that cannot end a line or move the cursor: a directory may be called anything, and would forge
/// an answer.
fn on_their_lines(found: &Calibration) -> Calibration {
    let mut plain = found.clone();
    let targets = plain.targets.iter_mut().map(|target| &mut target.path);
    let of_flushes = plain.flushes.iter_mut().map(|flushed| &mut flushed.target);
    let of_commits = plain.commits.iter_mut().map(|commits| &mut commits.target);
    let of_honesty = plain.honesty.iter_mut().flat_map(|honesty| {
        let control = honesty.control.iter_mut();
        let of_control = control.flat_map(|control| [&mut control.path, &mut control.says]);
        [
            &mut honesty.target,
            &mut honesty.because,
            &mut honesty.control_because,
        ]
        .into_iter()
        .chain(&mut honesty.beneath)
        .chain(of_control)
    });
    let all = targets
        .chain(of_flushes)
        .chain(of_commits)
        .chain(of_honesty)
        .chain(&mut plain.notes);
    for name in all {
        *name = plain::one_line(name).into_owned();
    }
    plain
}

/// How many requests write, in a line; `None` where all read.
pub fn write_line(found: &Calibration) -> Option<String> {
    let percent = found.write_percent;
    (percent > 0).then(|| format!("{percent} % of the requests write; no write is flushed"))
}

/// What came of a need, without a point.
pub fn need_word(judged: &Judged) -> String {
    match (judged.answer, judged.unknown_because) {
        (DemandAnswer::Met, _) => "met".to_owned(),
        (DemandAnswer::Missed, _) => format!("MISSED{}", found_instead(judged)),
        (DemandAnswer::Unknown, why) => {
            format!("not known: {}", why.unwrap_or(NotJudged::NotMeasured))
        }
    }
}

/// What was found where a need is missed, in the unit of the need.
fn found_instead(judged: &Judged) -> String {
    judged.found.map_or(String::new(), |found| {
        let told = match judged.is_time {
            true => time(found),
            false => thousands_or_tenths(found),
        };
        format!(", it was {told}")
    })
}

fn cached(text: &mut String, found: &Calibration) {
    let word = match found.cache.cached {
        Cached::Yes => "CACHED",
        Cached::Zeros => "ZEROS",
        Cached::NotSeen => "no cache seen",
        Cached::Unknown => "cache unknown",
    };
    let _ = writeln!(text, "{word}: {}.", found.cache.because);
}

/// A target, in a line.
pub fn target_line(target: &TargetFacts) -> String {
    let what = match (target.kind, target.is_written) {
        (TargetKind::Directory, _) => "a file made here, and removed",
        (TargetKind::File, false) => "an existing file, only read",
        (TargetKind::File, true) => "a file in the place of a device, written from its beginning",
        (TargetKind::Device, false) => "a block device, only read",
        (TargetKind::Device, true) => "a block device, written from its beginning, and erased",
    };
    let on = match (&target.file_system, &target.device) {
        (Some(kind), Some(device)) => format!(", {kind} on {device}"),
        (None, Some(device)) => format!(", {device}"),
        (Some(kind), None) => format!(", {kind}"),
        (None, None) => String::new(),
    };
    format!("{}: {what}, {}{on}", target.path, size(target.bytes))
}

/// ORION's three lines.
fn extremes(text: &mut String, found: &Calibration) {
    let mut line = |name: &str, extreme: &Option<Extreme>, figure: &dyn Fn(&Point) -> String| {
        let told = match extreme {
            Some(extreme) => format!(
                "{:>12}   {}, {}, depth {}{}{}",
                figure(&extreme.point),
                extreme.caching,
                extreme.method,
                extreme.point.depth,
                beside(extreme),
                doubt(extreme)
            ),
            None => format!("{:>12}", "not measured"),
        };
        let _ = writeln!(text, "{name:<24}{told}");
    };
    line("Maximum small IOPS", &found.maximum_iops, &|point| {
        thousands(point.iops)
    });
    line("Maximum large MB/s", &found.maximum_mb_per_s, &|point| {
        thousands_or_tenths(point.mb_per_s)
    });
    line("Minimum small latency", &found.minimum_latency, &|point| {
        time(point.mean_us)
    });
}

/// What was under way beside it, after its point.
pub fn beside(extreme: &Extreme) -> String {
    match extreme.beside {
        0 => String::new(),
        count => format!(", beside {count} of the other size"),
    }
}

/// What weakens it, after its point.
pub fn doubt(extreme: &Extreme) -> &'static str {
    match (extreme.point.is_steady, extreme.is_confirmed) {
        (true, true) => "",
        (false, _) => " (not steady)",
        (_, false) => " (measured once)",
    }
}

/// Why a maximum may be less than a figure of the table.
const SECOND_LOOK: &str =
    "a maximum is a second look at the best point, so that it is not best by chance";

/// Whether a figure of the table is above the maximum that was told.
fn is_above_maximum(found: &Calibration) -> bool {
    let is_above = |extreme: &Option<Extreme>, what| {
        let most = extreme.as_ref().filter(|extreme| extreme.is_confirmed);
        most.is_some_and(|most| {
            let mut curves = found.curves.iter();
            curves.any(|curve| {
                let is_alike = curve.what == what && curve.caching == most.caching;
                let mut points = curve.points.iter();
                is_alike && points.any(|point| point.iops > most.point.iops)
            })
        })
    };
    is_above(&found.maximum_iops, What::SmallRandom)
        || is_above(&found.maximum_mb_per_s, What::LargeSequential)
}

fn table(text: &mut String, found: &Calibration) {
    // With writes there is a column more, and no access path through the page cache, whose names are longer.
    let width = 9;
    let name_width = match found.write_percent {
        0 => 24,
        _ => 17,
    };
    let _ = writeln!(
        text,
        "{:<name_width$}{:>6}{:>10}{:>7}{:>width$}{:>width$}{:>width$}{}",
        "",
        "depth",
        "IOPS",
        "MB/s",
        "mean",
        "p50",
        "p99",
        write_heading(found.write_percent)
    );
    for curve in &found.curves {
        let mut name = curve_name(curve);
        for point in &curve.points {
            let unsteady = if point.is_steady { "" } else { " ~" };
            let _ = writeln!(
                text,
                "{name:<name_width$}{:>6}{:>10}{:>7}{:>width$}{:>width$}{:>width$}{}{unsteady}",
                point.depth,
                thousands(point.iops),
                thousands_or_tenths(point.mb_per_s),
                time(point.mean_us),
                time(point.p50_us),
                time(point.p99_us),
                write_time(found.write_percent, point.writes.as_ref()),
            );
            name = String::new();
        }
        if let Some(note) = &curve.note {
            let _ = writeln!(text, "{name:<name_width$}  {note}");
        }
    }
    if found
        .curves
        .iter()
        .flat_map(|curve| &curve.points)
        .any(|point| !point.is_steady)
    {
        let _ = writeln!(text, "{}", durable::UNSTEADY);
    }
    if is_above_maximum(found) {
        let _ = writeln!(text, "{SECOND_LOOK}");
    }
    let _ = writeln!(text);
}

/// A separate column where there are writes.
fn write_heading(write_percent: u32) -> String {
    match write_percent {
        0 => String::new(),
        _ => format!("{:>10}", "write p99"),
    }
}

fn write_time(write_percent: u32, writes: Option<&WriteFigures>) -> String {
    match write_percent {
        0 => String::new(),
        _ => format!(
            "{:>10}",
            writes.map_or("-".to_owned(), |writes| time(writes.p99_us))
        ),
    }
}

/// A run type, and what its requests are.
pub fn matrix_title(found: &MatrixResult) -> String {
    format!(
        "run {}, {}: small requests of {} at random, large ones of {} {}",
        found.run,
        found.method,
        size(found.size_small_bytes),
        size(found.size_large_bytes),
        found.large_type.in_words()
    )
}

/// The points of a run type of ORION's.
fn matrix(text: &mut String, found: &MatrixResult, write_percent: u32) {
    let _ = writeln!(text, "{}", matrix_title(found));
    let _ = writeln!(
        text,
        "{:>6}{:>6}{:>10}{:>8}{:>10}{:>10}{:>10}{}",
        "small",
        "large",
        "IOPS",
        "MB/s",
        "mean",
        "p50",
        "p99",
        write_heading(write_percent)
    );
    let told =
        |figure: Option<f64>, how: &dyn Fn(f64) -> String| figure.map_or("-".to_owned(), how);
    for point in &found.points {
        let _ = writeln!(
            text,
            "{:>6}{:>6}{:>10}{:>8}{:>10}{:>10}{:>10}{}{}",
            point.small,
            point.large,
            told(point.iops, &thousands),
            told(point.mb_per_s, &thousands_or_tenths),
            told(point.mean_us.or(point.large_mean_us), &time),
            told(point.p50_us.or(point.large_p50_us), &time),
            told(point.p99_us.or(point.large_p99_us), &time),
            write_time(write_percent, point.small_writes.as_ref()),
            if point.is_steady { "" } else { " ~" },
        );
    }
    if found.points.iter().any(|point| !point.is_steady) {
        let _ = writeln!(text, "{}", durable::UNSTEADY);
    }
    let _ = writeln!(text);
}

/// What is measured and how, in a few words.
pub fn curve_name(curve: &PathCurve) -> String {
    let what = match curve.what {
        What::SmallRandom => "8K random",
        What::LargeSequential => "1M seq",
    };
    let caching = match curve.caching {
        Caching::Direct => "",
        Caching::Buffered => " buf.",
    };
    format!("{what}, {}{caching}", curve.method)
}

/// Latency at fixed rates.
fn at_rates(text: &mut String, found: &Calibration) {
    if found.at_rates.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "{:<28}{:>10}{:>8}{:>10}{:>10}{:>10}",
        "8K random at a fixed rate", "IOPS", "", "mean", "p50", "p99"
    );
    for point in &found.at_rates {
        let _ = writeln!(
            text,
            "{:>28}{:>10}{:>8}{:>10}{:>10}{:>10}{}",
            format!("{} due", thousands(point.due_per_s)),
            thousands(point.iops),
            "",
            time(point.mean_us),
            time(point.p50_us),
            point.p99_us.map_or("-".to_owned(), time),
            if point.is_kept_up { "" } else { " not kept up" },
        );
    }
    let _ = writeln!(text);
}

/// What the cloud says, and what was reached beside what was bought; a sentence each, without their points.
pub fn cloud_lines(found: &Calibration) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(facts) = &found.cloud {
        let machine = plain::one_line(facts.machine_type.as_deref().unwrap_or("unknown"));
        lines.push(format!("Cloud {}: machine {machine}", facts.cloud));
        for volume in &facts.volumes {
            let (name, kind) = (plain::one_line(&volume.name), plain::one_line(&volume.kind));
            let figure = |value: Option<f64>, unit: &str| {
                value.map_or(String::new(), |value| {
                    format!(", {} {unit}", thousands(value))
                })
            };
            let (iops, mb) = (figure(volume.iops, "IOPS"), figure(volume.mb_per_s, "MB/s"));
            lines.push(format!("Volume {name}: {kind}{iops}{mb}"));
        }
        let has_none = found.bought.iops.is_none() && found.bought.mb_per_s.is_none();
        if has_none {
            let why = facts
                .missing
                .as_deref()
                .unwrap_or("it does not say what the volume may do");
            lines.push(format!(
                "What was bought is not known: {why}; or give --bought-iops and --bought-mbps"
            ));
        }
    }
    let most = |of: &Option<Extreme>, what, figure: fn(&Point) -> f64| {
        Some(Reached {
            figure: figure(&of.as_ref()?.point),
            is_out_of_time: found.is_cut_short(what, CutShort::Time),
            is_of_others: found.cache.cached.is_of_others(),
        })
    };
    let iops = most(&found.maximum_iops, What::SmallRandom, |point| point.iops);
    let mb_per_s = most(&found.maximum_mb_per_s, What::LargeSequential, |point| {
        point.mb_per_s
    });
    lines.extend(found.bought.lines(iops, mb_per_s));
    lines
}

/// What came of holding the best point.
pub fn held_line(held: &Held) -> String {
    let (at, depth) = (held.method, held.depth);
    match &held.fell {
        Some(fell) => format!(
            "FELL while held ({at}, depth {depth}): {} IOPS for {:.1} s, then {}. Credit that runs out looks like this; \
             plan with the second",
            thousands(fell.before),
            fell.after_s,
            thousands(fell.after)
        ),
        None => {
            let tells = match held.lasted_s < TELLING_HOLD_S {
                true => "too short to tell whether it falls: --hold 1m tells",
                false => "without a fall",
            };
            format!(
                "Held for {} ({at}, depth {depth}): {} IOPS, {tells}",
                time(held.lasted_s * 1e6),
                thousands(held.iops)
            )
        }
    }
}

/// Our figures beside those of fio.
fn against(text: &mut String, beside: &FioComparison) {
    let _ = writeln!(text);
    let heading = format!("beside {}", plain::one_line(&beside.version));
    let mut rows = vec![cells([
        &heading, "IOPS", "fio", "ratio", "mean", "fio", "ratio", "p99", "fio",
    ])];
    let told = |value_us: Option<f64>| value_us.map_or("-".to_owned(), time);
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
    rows.extend(beside.rows.iter().map(|row| {
        vec![
            row.name.clone(),
            thousands(row.iops.0),
            thousands(row.iops.1),
            ratio(Some(row.iops_ratio)),
            told(row.mean_us.0),
            time(row.mean_us.1),
            ratio(row.mean_ratio),
            told(row.p99_us.0),
            told(row.p99_us.1),
        ]
    }));
    text.push_str(&aligned(&[17, 9, 9, 6, 8, 8, 6, 8, 8], &rows));
    for says in not_compared_lines(beside) {
        let _ = writeln!(text, "{says}");
    }
    let _ = writeln!(text);
}

/// Jobs of fio that are not compared, and why.
pub fn not_compared_lines(beside: &FioComparison) -> Vec<String> {
    let jobs = &beside.not_compared;
    let unknown = (!jobs.is_empty()).then(|| {
        let jobs = plain::one_line(&jobs.join(", ")).into_owned();
        format!("not compared, for these points were not measured here: {jobs}")
    });
    let rest = left_out("not compared", &beside.left_out);
    unknown.into_iter().chain(rest).collect()
}

fn cells<const COLUMNS: usize>(of: [&str; COLUMNS]) -> Vec<String> {
    of.map(str::to_owned).to_vec()
}

/// Jobs of fio without a row, and why.
fn left_out(word: &str, jobs: &[FioLeftOut]) -> Vec<String> {
    let line = |left: &FioLeftOut| format!("{word}: {}: {}", left.job, left.why);
    let lines = jobs.iter().map(line);
    lines
        .map(|line| plain::one_line(&line).into_owned())
        .collect()
}

/// What fio found, alone.
pub fn render_fio(found: &FioResults) -> String {
    let told = |value_us: Option<f64>| value_us.map_or("-".to_owned(), time);
    let mut rows = vec![cells(["job", "IOPS", "MB/s", "mean", "p50", "p99"])];
    rows.extend(found.points.iter().map(|point| {
        vec![
            plain::one_line(&point.job).into_owned(),
            thousands(point.iops),
            thousands_or_tenths(point.mb_per_s),
            time(point.mean_us),
            told(point.p50_us),
            told(point.p99_us),
        ]
    }));
    let lines = left_out("not told", &found.left_out);
    let left_out: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!(
        "{}\n\n{}{left_out}",
        plain::one_line(&found.version),
        aligned(&[22, 10, 8, 11, 11, 11], &rows),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::below::Below;
    use crate::figures::FellTo;
    use crate::honesty::unwritten;
    use crate::result::Control;
    use crate::result::Honesty;
    use spindle_io::real::Method;

    #[test]
    fn no_name_begins_a_line_of_the_answer() {
        let forged = "d\nFLUSHES IGNORED, d: all of it\u{1b}[2J";
        let mut found = crate::need::tests::found(1.0);
        found.targets.push(TargetFacts {
            path: forged.to_owned(),
            kind: TargetKind::Directory,
            bytes: 1,
            file_system: None,
            device: None,
            device_unknown_because: None,
            is_written: false,
        });
        let control = Control {
            path: forged.to_owned(),
            times_sooner: 1.0,
            is_suspect: false,
            says: forged.to_owned(),
            turns_us: Vec::new(),
            flushes: Vec::new(),
        };
        let honesty = Honesty {
            because: forged.to_owned(),
            control: Some(control),
            control_because: forged.to_owned(),
            ..unwritten(forged, &Below::default())
        };
        found.honesty = vec![honesty.clone(), honesty];
        found.honesty[0].beneath = vec![forged.to_owned()];
        found.notes.push(forged.to_owned());
        let told = render(&found);
        let lines: Vec<&str> = told.lines().collect();
        let is_forged = |line: &&str| line.starts_with("FLUSHES IGNORED");
        assert_eq!(lines.into_iter().find(is_forged), None, "{told}");
        assert!(!told.contains('\u{1b}'), "{told}");
    }

    #[test]
    fn a_maximum_below_the_table_is_explained() {
        let told = |in_table| {
            let point = |iops| Point {
                depth: 4,
                iops,
                mb_per_s: 1.0,
                mean_us: 1.0,
                p50_us: 1.0,
                p99_us: 1.0,
                max_us: 1.0,
                is_steady: true,
                measured_s: 1.0,
                requests: 1,
                writes: None,
                histogram: Vec::new(),
            };
            let mut found = crate::need::tests::found(1.0);
            found.maximum_iops = Some(Extreme {
                method: Method::Sync,
                caching: Caching::Direct,
                point: point(100.0),
                beside: 0,
                is_confirmed: true,
            });
            found.curves = vec![PathCurve {
                method: Method::Sync,
                caching: Caching::Direct,
                what: What::SmallRandom,
                points: vec![point(in_table)],
                note: None,
                cut_short: None,
            }];
            render(&found).contains(SECOND_LOOK)
        };
        assert!(told(101.0));
        assert!(!told(99.0));
    }

    #[test]
    fn a_short_hold_does_not_deny_a_fall() {
        let line = |lasted_s, fell| {
            held_line(&Held {
                method: Method::Sync,
                depth: 1,
                lasted_s,
                iops: 1.0,
                fell,
            })
        };
        let fell = FellTo {
            after_s: 4.0,
            before: 12_343.0,
            after: 300.0,
        };
        let told = line(9.6, Some(fell));
        assert!(told.contains("Credit"), "{told}");
        let told = line(9.6, None);
        assert!(told.ends_with("without a fall"), "{told}");
        let short = line(0.8, None);
        assert!(short.contains("--hold"), "{short}");
        assert!(!short.contains("without a fall"), "{short}");
    }
}
