//! What storage can do by itself, as a page: the figures of a calibration, drawn. The page is a function of
//! [`CalibrationSheet`].

use maud::{Markup, html};
use spindle_text::quantity::{thousands, time};

use super::document::document;
use super::parts::scrolling;
use crate::calibration_sheet::{CalibrationSheet, LimitCurve, LoadCell, LoadMatrix};
use crate::chart::{histogram, limits, rates};

/// The whole page.
pub fn html(sheet: &CalibrationSheet) -> String {
    let header = html! {
        p.experiment {
            "Spindle calibrate"
            @for line in &sheet.context { br; (line) }
        }
        h1 { (sheet.headline) }
        @for caution in &sheet.cautions { p.weakness { (caution) } }
        @for need in &sheet.needs {
            @let says = html! { "Need " code { (need.need) } ": " (need.answer) "." };
            @if need.is_met { p { (says) } } @else { p.weakness { (says) } }
        }
    };
    let main = html! {
        (extremes(sheet))
        (curves(sheet))
        (matrix(sheet))
        (latencies(sheet))
        (flushes(sheet))
        (beside(sheet))
        @if !sheet.notes.is_empty() {
            section { h2 { "Notes" } ul.sentences { @for note in &sheet.notes { li { (note) } } } }
        }
    };
    document(&format!("calibrate: {}", sheet.headline), &header, &main)
}

fn extremes(sheet: &CalibrationSheet) -> Markup {
    html! {
        @if !sheet.extremes.is_empty() { section {
            h2 { "Limits" }
            (scrolling("Limits", html! { table.parts { tbody { @for line in &sheet.extremes { tr {
                th scope="row" { (line.name) }
                td.figure { strong { (line.figure) } }
                td.words { (line.reached) }
            } } } } }))
            @if !sheet.cache.is_empty() { p.note { (sheet.cache) } }
        } }
    }
}

fn curves(sheet: &CalibrationSheet) -> Markup {
    let of = |is_large| -> Vec<&LimitCurve> {
        let curves = sheet.curves.iter();
        curves
            .filter(|curve| curve.is_large == is_large && !curve.points.is_empty())
            .collect()
    };
    let mut methods: Vec<&str> = Vec::new();
    for curve in &sheet.curves {
        if !methods.contains(&curve.method.as_str()) {
            methods.push(&curve.method);
        }
    }
    let chart = |is_large, id, over: &str| {
        let curves = of(is_large);
        let heading = curves.first().map(|curve| {
            let requests = &curve.requests;
            format!("{requests}: time of a request over {over}")
        });
        limits::figure(&curves, &methods, id, &heading.unwrap_or_default())
    };
    html! {
        @if sheet.curves.iter().any(|curve| !curve.points.is_empty()) { section {
            h2 { @if sheet.matrix.is_some() { "One size alone" } @else { "From one request to the knee" } }
            (chart(false, "small-requests", "requests per second"))
            (chart(true, "large-requests", "MB per second"))
            (rates::figure(&sheet.at_rates, "rates", "8 KiB at random, at fixed rates"))
            @for curve in &sheet.curves {
                @if !curve.note.is_empty() { p.note { (curve.name) ": " (curve.note) "." } }
            }
        } }
    }
}

/// A figure of a point of a matrix.
type CellFigure = fn(&LoadCell) -> Option<f64>;

/// A table for each figure; the darker a cell, the larger the figure.
fn matrix(sheet: &CalibrationSheet) -> Markup {
    let figures: [(&str, CellFigure); 3] = [
        ("Small requests per second", |cell| cell.iops),
        ("MB per second of large requests", |cell| cell.mb_per_s),
        ("Mean time of a small request, us", |cell| cell.mean_us),
    ];
    html! {
        @if let Some(matrix) = &sheet.matrix { section {
            h2 { "Matrix" }
            p.note { (matrix.title) ". A row is a large load, a column a small one." }
            @for (title, figure) in figures {
                @if matrix.cells.iter().any(|cell| figure(cell).is_some()) {
                    h3 { (title) }
                    (scrolling(title, heat_map(matrix, figure)))
                }
            }
        } }
    }
}

fn heat_map(matrix: &LoadMatrix, figure: CellFigure) -> Markup {
    let loads = |load: fn(&LoadCell) -> u32| {
        let mut loads: Vec<u32> = matrix.cells.iter().map(load).collect();
        loads.sort_unstable();
        loads.dedup();
        loads
    };
    let (smalls, larges) = (loads(|cell| cell.small), loads(|cell| cell.large));
    let greatest = crate::chart::greatest(matrix.cells.iter().filter_map(figure));
    let at = |small, large| {
        let mut cells = matrix.cells.iter();
        cells
            .find(|cell| (cell.small, cell.large) == (small, large))
            .and_then(figure)
    };
    html! {
        table.heat {
            thead { tr {
                th scope="col" { "large \\ small" }
                @for small in &smalls { th.figure scope="col" { (small) } }
            } }
            tbody { @for large in &larges { tr {
                th scope="row" { (large) }
                @for small in &smalls {
                    @match at(*small, *large) {
                        Some(value) => td.figure style=(heat(value / greatest)) { (thousands(value)) },
                        None => td.figure { "" },
                    }
                }
            } } }
        }
    }
}

/// How dark a cell is, of its share of the greatest.
fn heat(share: f64) -> String {
    format!("--heat: {:.0}%", share.clamp(0.0, 1.0) * 100.0)
}

fn latencies(sheet: &CalibrationSheet) -> Markup {
    let drawn = sheet.histograms.iter().enumerate();
    let drawn = drawn.filter(|(_, bars)| !bars.buckets.is_empty());
    html! {
        @if sheet.histograms.iter().any(|bars| !bars.buckets.is_empty()) { section {
            h2 { "How long requests took" }
            @for (index, bars) in drawn {
                (histogram::figure(bars, &format!("latencies-{index}")))
            }
        } }
    }
}

fn flushes(sheet: &CalibrationSheet) -> Markup {
    html! {
        @if !sheet.flushes.is_empty() || !sheet.trust.is_empty() { section {
            h2 { "Flushes" }
            @if !sheet.flushes.is_empty() { (scrolling("Flushes", html! { table {
                thead { tr {
                    th scope="col" { "8 KiB made durable" }
                    @for title in ["per second", "p50", "p99", "longest"] { th.figure scope="col" { (title) } }
                } }
                tbody { @for line in &sheet.flushes { tr {
                    th scope="row" { (line.name) ", " (crate::sentences::counted(line.writers as usize, "writer")) }
                    td.figure { (thousands(line.per_s)) }
                    @for time_us in [line.p50_us, line.p99_us, line.max_us] {
                        td.figure { (time(time_us)) }
                    }
                } } }
            } })) }
            @for says in &sheet.commits { p { (says) } }
            @for trust in &sheet.trust {
                p { strong { (trust.answer) } ": " (trust.because) }
                @for witness in &trust.witnesses { p.note { (witness) "." } }
            }
        } }
    }
}

fn beside(sheet: &CalibrationSheet) -> Markup {
    let told = |time_us: Option<f64>| time_us.map_or("–".to_owned(), time);
    let ratio = |own: f64, other: f64| format!("{:.2}", own / other);
    html! {
        @if let Some(beside) = &sheet.beside { section {
            h2 { "Beside " (beside.program) }
            p.note { "Of each pair of columns the first is Spindle's, the second the other's." }
            (scrolling("Beside another program", html! { table {
                thead { tr {
                    th scope="col" { "point" }
                    @for title in ["requests/s", "other", "ratio", "mean", "other", "ratio", "p99", "other"] {
                        th.figure scope="col" { (title) }
                    }
                } }
                tbody { @for line in &beside.lines { tr {
                    th scope="row" { (line.name) }
                    td.figure { (thousands(line.iops.0)) }
                    td.figure { (thousands(line.iops.1)) }
                    td.figure { (ratio(line.iops.0, line.iops.1)) }
                    td.figure { (told(line.mean_us.0)) }
                    td.figure { (time(line.mean_us.1)) }
                    td.figure { (line.mean_us.0.map_or("–".to_owned(), |own| ratio(own, line.mean_us.1))) }
                    @for time_us in [line.p99_us.0, line.p99_us.1] { td.figure { (told(time_us)) } }
                } } }
            } }))
            @for says in &beside.not_compared { p.note { (says) "." } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration_sheet::{
        BesideTable, FlushLine, LatencyBars, LimitPoint, NeedLine, RateLine, TrustLine,
    };

    fn sheet() -> CalibrationSheet {
        let point = |depth: u32, iops, mean_us| LimitPoint {
            depth,
            iops,
            mean_us,
            mb_per_s: iops * 0.008192,
            p50_us: mean_us,
            p99_us: mean_us * 3.0,
            write_p99_us: Some(7_700.0),
            is_unsteady: false,
        };
        let cell = |small, large, iops| LoadCell {
            small,
            large,
            iops,
            ..LoadCell::default()
        };
        CalibrationSheet {
            headline: "<b>19,000 IOPS</b>".to_owned(),
            cautions: vec!["CACHED: memory answered".to_owned()],
            curves: vec![LimitCurve {
                name: "direct, async".to_owned(),
                note: "the time was over".to_owned(),
                method: "async".to_owned(),
                is_buffered: false,
                is_large: false,
                requests: "8 KiB at random".to_owned(),
                points: vec![point(1, 10_000.0, 100.0), point(2, 19_000.0, 105.0)],
                best_depth: Some(2),
            }],
            matrix: Some(LoadMatrix {
                title: "run normal".to_owned(),
                cells: vec![
                    cell(1, 0, Some(50.0)),
                    cell(2, 0, Some(100.0)),
                    cell(0, 1, None),
                ],
            }),
            histograms: vec![LatencyBars {
                name: "depth 2".to_owned(),
                buckets: vec![(90.0, 10), (100.0, 80), (400.0, 10)],
            }],
            at_rates: vec![RateLine {
                rate_per_s: 1_900.0,
                p50_us: 90.0,
                p99_us: Some(200.0),
                is_kept_up: true,
            }],
            flushes: vec![FlushLine {
                name: "fdatasync, page cache".to_owned(),
                writers: 1,
                per_s: 300.0,
                p50_us: 3_000.0,
                p99_us: 9_000.0,
                max_us: 2e6,
            }],
            needs: vec![NeedLine {
                need: "iops > 20000".to_owned(),
                answer: "MISSED, it was 19,000".to_owned(),
                is_met: false,
            }],
            trust: vec![TrustLine {
                answer: "flushes arrive, /srv".to_owned(),
                because: "vda counted them.".to_owned(),
                witnesses: vec!["beneath: ext4 on / > vda".to_owned()],
            }],
            beside: Some(BesideTable {
                program: "fio-3.39".to_owned(),
                lines: Vec::new(),
                not_compared: vec!["not compared: small-async-8: bs is 4096".to_owned()],
            }),
            ..CalibrationSheet::default()
        }
    }

    #[test]
    fn the_page_draws_what_there_is_and_fetches_nothing() {
        let page = html(&sheet());
        for part in [
            "&lt;b&gt;19,000",
            "Matrix",
            "--heat: 50%",
            "--heat: 100%",
            "id=\"small-requests\"",
            "8 KiB at random: time of a request over requests per second",
            "id=\"latencies-0\"",
            "id=\"rates\"",
            "2.0 s",
            "default-src 'none'",
            "MISSED, it was 19,000",
            "p99 of writes",
            "7.70 ms",
            "direct, async: the time was over.",
            "beneath: ext4 on / &gt; vda.",
            "small-async-8: bs is 4096.",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(
            !page.contains("id=\"large-requests\"") && !page.contains("http://www.w3.org/1999")
        );
        let flushes_alone = CalibrationSheet {
            flushes: sheet().flushes,
            ..CalibrationSheet::default()
        };
        let page = html(&flushes_alone);
        assert!(!page.contains("Matrix") && !page.contains("knee") && page.contains("Flushes"));
    }
}
