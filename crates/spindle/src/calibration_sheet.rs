//! A calibration as the page of `spindle_report` shows it.

use spindle_calibrate::text::{curve_name, trust_word};
use spindle_calibrate::{
    Cached, Calibration, Commits, DemandAnswer, Extreme, FioComparison, Flushed, Honesty,
    LargeType, MatrixPoint, MatrixResult, PathCurve, Trust, What, text,
};
use spindle_io::real::Caching;
use spindle_report::calibration_sheet::{
    BesideLine, BesideTable, CalibrationSheet, ExtremeLine, FlushLine, LatencyBars, LimitCurve,
    LimitPoint, LoadCell, LoadMatrix, NeedLine, RateLine, TrustLine,
};
use spindle_text::quantity::{size, thousands, thousands_or_tenths, time};

/// What the page shows of it; `day` is that of the measurement.
pub fn sheet_of(found: &Calibration, day: &str) -> CalibrationSheet {
    let took = format!("{day} · {:.0} s", found.took_s);
    let targets = found.targets.iter().map(text::target_line);
    CalibrationSheet {
        headline: headline(found),
        context: targets
            .chain(text::write_line(found))
            .chain([took])
            .collect(),
        cautions: cautions(found),
        needs: needs(found),
        extremes: extremes(found),
        curves: curves(found),
        at_rates: found
            .at_rates
            .iter()
            .map(|point| RateLine {
                rate_per_s: point.due_per_s,
                p50_us: point.p50_us,
                p99_us: point.p99_us,
                is_kept_up: point.is_kept_up,
            })
            .collect(),
        matrix: matrix_of(found),
        histograms: histograms(found),
        flushes: flushes(found),
        trust: found.honesty.iter().map(trust_of).collect(),
        cache: match has_reads(found) {
            true => format!("Of a cache: {}.", found.cache.because),
            false => String::new(),
        },
        beside: found.against.as_ref().map(beside_of),
        notes: found.notes.clone(),
        commits: commits(found),
    }
}

fn needs(found: &Calibration) -> Vec<NeedLine> {
    let needs = found.needs.iter().map(|judged| NeedLine {
        need: judged.need.clone(),
        answer: text::need_word(judged),
        is_met: judged.answer == DemandAnswer::Met,
    });
    needs.collect()
}

fn trust_of(honesty: &Honesty) -> TrustLine {
    TrustLine {
        answer: format!("{}, {}", trust_word(honesty.trust), honesty.target),
        because: format!("{}.", honesty.because),
        witnesses: text::witness_lines(honesty),
    }
}

fn beside_of(fio: &FioComparison) -> BesideTable {
    let lines = fio.rows.iter().map(|row| BesideLine {
        name: row.name.clone(),
        iops: row.iops,
        mean_us: row.mean_us,
        p99_us: row.p99_us,
    });
    BesideTable {
        program: fio.version.clone(),
        lines: lines.collect(),
        not_compared: text::not_compared_lines(fio),
    }
}

/// Those of the targets, then those of their controls.
fn flushes(found: &Calibration) -> Vec<FlushLine> {
    let line = |name: String, flushed: &Flushed| FlushLine {
        name,
        writers: flushed.writers,
        per_s: flushed.flushes_per_s,
        p50_us: flushed.p50_us,
        p99_us: flushed.p99_us,
        max_us: flushed.max_us,
    };
    let own = found.flushes.iter();
    let own = own.map(|flushed| line(flush_name(found, flushed), flushed));
    let controls = found.honesty.iter();
    let of_controls = controls.flat_map(|honesty| honesty.control.iter());
    let of_controls = of_controls.flat_map(|control| &control.flushes);
    let of_controls = of_controls.map(|flushed| {
        let by = text::durable_by(flushed.by);
        line(format!("{by}, of the control {}", flushed.target), flushed)
    });
    own.chain(of_controls).collect()
}

fn flush_name(found: &Calibration, flushed: &Flushed) -> String {
    let by = text::durable_by(flushed.by);
    match found.commits.len() {
        1 => by.to_owned(),
        _ => format!("{by}, {}", flushed.target),
    }
}

/// What commits meet, what came of holding the best point, and what was bought.
fn commits(found: &Calibration) -> Vec<String> {
    let held = found
        .held
        .iter()
        .map(|held| format!("{}.", text::held_line(held)));
    let of = |commits: &Commits| {
        let lines = text::commit_lines(commits, found);
        let told = match found.commits.len() {
            1 => lines.join(". "),
            _ => format!("{}: {}", commits.target, lines.join(". ")),
        };
        format!("{told}.")
    };
    let bought = text::cloud_lines(found)
        .into_iter()
        .map(|line| format!("{line}."));
    held.chain(bought)
        .chain(found.commits.iter().map(of))
        .collect()
}

fn has_reads(found: &Calibration) -> bool {
    !found.curves.is_empty() || found.matrix.is_some()
}

fn headline(found: &Calibration) -> String {
    let [iops, mb_per_s, latency] =
        told(found).map(|(_, extreme, figure)| extreme.as_ref().map(figure));
    let most: Vec<String> = [
        iops.map(|iops| iops + " IOPS"),
        mb_per_s.map(|mb| mb + " MB/s"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let parts = [
        (!most.is_empty()).then(|| format!("{} at most", most.join(" and "))),
        latency.map(|latency| format!("{latency} at least")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match (parts.is_empty(), found.honesty.first()) {
        (false, _) => parts.join(", "),
        (true, Some(honesty)) => trust_word(honesty.trust).to_owned(),
        (true, None) => "nothing was measured".to_owned(),
    }
}

fn cautions(found: &Calibration) -> Vec<String> {
    let mut cautions = Vec::new();
    let because = &found.cache.because;
    match found.cache.cached {
        Cached::Yes => cautions.push(format!(
            "CACHED, so these are not the device's figures: {because}."
        )),
        Cached::Zeros => cautions.push(format!("ZEROS: {because}.")),
        Cached::NotSeen | Cached::Unknown => {}
    }
    for honesty in &found.honesty {
        if matches!(honesty.trust, Trust::Ignored | Trust::Memory) {
            let word = trust_word(honesty.trust);
            cautions.push(format!("{word}, {}: {}.", honesty.target, honesty.because));
        }
    }
    cautions
}

/// ORION's figures, their names, and how each is told.
type Told<'a> = (&'static str, &'a Option<Extreme>, fn(&Extreme) -> String);

fn told(found: &Calibration) -> [Told<'_>; 3] {
    [
        ("Maximum small IOPS", &found.maximum_iops, |extreme| {
            thousands(extreme.point.iops)
        }),
        ("Maximum large MB/s", &found.maximum_mb_per_s, |extreme| {
            thousands_or_tenths(extreme.point.mb_per_s)
        }),
        ("Minimum small latency", &found.minimum_latency, |extreme| {
            time(extreme.point.mean_us)
        }),
    ]
}

fn reached(extreme: &Extreme) -> String {
    let (caching, method, depth) = (extreme.caching, extreme.method, extreme.point.depth);
    let doubt = text::doubt(extreme);
    let beside = text::beside(extreme);
    format!("{caching}, {method}, depth {depth}{beside}{doubt}")
}

fn extremes(found: &Calibration) -> Vec<ExtremeLine> {
    let line = |(name, extreme, figure): Told<'_>| {
        extreme.as_ref().map(|extreme| ExtremeLine {
            name: name.to_owned(),
            figure: figure(extreme),
            reached: reached(extreme),
        })
    };
    told(found).into_iter().filter_map(line).collect()
}

fn histograms(found: &Calibration) -> Vec<LatencyBars> {
    let bars = |(name, extreme, _): Told<'_>| {
        extreme.as_ref().map(|extreme| LatencyBars {
            name: format!("{name}: {}", reached(extreme)),
            buckets: extreme.point.histogram.clone(),
        })
    };
    told(found).into_iter().filter_map(bars).collect()
}

/// Those of the access paths, and of a run type those of small requests alone and of large ones alone.
fn curves(found: &Calibration) -> Vec<LimitCurve> {
    let searched = found.curves.iter().map(|curve| curve_of(found, curve));
    let of_matrix = found.matrix.iter().flat_map(|matrix| {
        let curves = [What::SmallRandom, What::LargeSequential];
        curves.map(|what| curve_of_matrix(found, matrix, what))
    });
    searched.chain(of_matrix.flatten()).collect()
}

fn best_of(found: &Calibration, what: What) -> Option<&Extreme> {
    match what {
        What::SmallRandom => found.maximum_iops.as_ref(),
        What::LargeSequential => found.maximum_mb_per_s.as_ref(),
    }
}

/// `None` where such requests alone were measured at one point or none, which is no curve.
fn curve_of_matrix(found: &Calibration, matrix: &MatrixResult, what: What) -> Option<LimitCurve> {
    let point_of = |point: &MatrixPoint| match (what, point.small, point.large) {
        (What::SmallRandom, depth, 0) => Some(LimitPoint {
            depth,
            iops: point.iops?,
            mb_per_s: point.iops? * matrix.size_small_bytes as f64 / 1e6,
            mean_us: point.mean_us?,
            p50_us: point.p50_us?,
            p99_us: point.p99_us?,
            write_p99_us: point.small_writes.as_ref().map(|writes| writes.p99_us),
            is_unsteady: !point.is_steady,
        }),
        (What::LargeSequential, 0, depth) => Some(LimitPoint {
            depth,
            iops: point.mb_per_s? * 1e6 / matrix.size_large_bytes as f64,
            mb_per_s: point.mb_per_s?,
            mean_us: point.large_mean_us?,
            p50_us: point.large_p50_us?,
            p99_us: point.large_p99_us?,
            write_p99_us: point.large_writes.as_ref().map(|writes| writes.p99_us),
            is_unsteady: !point.is_steady,
        }),
        _ => None,
    };
    let mut points: Vec<LimitPoint> = matrix.points.iter().filter_map(point_of).collect();
    points.sort_by_key(|point| point.depth);
    let (lie, bytes) = match what {
        What::SmallRandom => (LargeType::Rand, matrix.size_small_bytes),
        What::LargeSequential => (matrix.large_type, matrix.size_large_bytes),
    };
    let best = best_of(found, what);
    let is_buffered = best.is_some_and(|best| best.caching == Caching::Buffered);
    let best = best.filter(|best| best.beside == 0);
    let best = best.map(|best| best.point.depth);
    let caching = if is_buffered { " buf." } else { "" };
    (points.len() > 1).then(|| LimitCurve {
        name: format!("{}{caching}", matrix.method),
        note: String::new(),
        method: matrix.method.to_string(),
        is_buffered,
        is_large: what == What::LargeSequential,
        requests: format!("{} {}", size(bytes), lie.in_words()),
        best_depth: best.filter(|best| points.iter().any(|point| point.depth == *best)),
        points,
    })
}

fn curve_of(found: &Calibration, curve: &PathCurve) -> LimitCurve {
    let best = best_of(found, curve.what);
    let is_of_it = |best: &&Extreme| (best.method, best.caching) == (curve.method, curve.caching);
    let requests = match curve.what {
        What::SmallRandom => "8 KiB at random".to_owned(),
        What::LargeSequential => "1 MiB one after the other".to_owned(),
    };
    LimitCurve {
        name: curve_name(curve),
        note: curve.note.clone().unwrap_or_default(),
        method: curve.method.to_string(),
        is_buffered: curve.caching == Caching::Buffered,
        is_large: curve.what == What::LargeSequential,
        requests,
        points: curve
            .points
            .iter()
            .map(|point| LimitPoint {
                depth: point.depth,
                iops: point.iops,
                mb_per_s: point.mb_per_s,
                mean_us: point.mean_us,
                p50_us: point.p50_us,
                p99_us: point.p99_us,
                write_p99_us: point.writes.as_ref().map(|writes| writes.p99_us),
                is_unsteady: !point.is_steady,
            })
            .collect(),
        best_depth: best.filter(is_of_it).map(|best| best.point.depth),
    }
}

fn matrix_of(found: &Calibration) -> Option<LoadMatrix> {
    let matrix = found.matrix.as_ref()?;
    let cells = matrix.points.iter().map(|point| LoadCell {
        small: point.small,
        large: point.large,
        iops: point.iops,
        mb_per_s: point.mb_per_s,
        mean_us: point.mean_us,
    });
    Some(LoadMatrix {
        title: text::matrix_title(matrix),
        cells: cells.collect(),
    })
}
