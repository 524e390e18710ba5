//! The curve of what storage can do: the mean time of a request over the throughput, a line for each access path, from
//! one request under way to the knee. The best point of all is named.

use maud::{Markup, html};
use spindle_text::quantity::{thousands, thousands_or_tenths, time};

use super::figure::{Figure, Figures};
use super::{Axis, Frame, Mark, Size, both, colour_class, draw, greatest};
use crate::calibration_sheet::{LimitCurve, LimitPoint};

/// The chart of these curves; empty without any. Each of the methods has its colour in all charts.
pub(crate) fn figure(curves: &[&LimitCurve], methods: &[&str], id: &str, heading: &str) -> Markup {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    if points().next().is_none() {
        return html! {};
    }
    let is_large = curves.iter().any(|curve| curve.is_large);
    let (throughput, x_title): (fn(&LimitPoint) -> f64, _) = match is_large {
        true => (|point| point.mb_per_s, "MB per second"),
        false => (|point| point.iops, "requests per second"),
    };
    let y = Axis::for_all(points().map(|point| point.mean_us));
    let y_title = match y.is_logarithmic() {
        true => "mean time, us, logarithmic",
        false => "mean time, us",
    };
    let most = greatest(points().map(throughput));
    let label = format!("{heading}, of every access path; the figures follow.");
    let classes = classes(curves, methods);
    let drawing = both(|size| {
        let frame = Frame {
            size,
            height: if size == Size::Wide { 380 } else { 300 },
            x: Axis::from_zero(most),
            x_title,
            y: y.clone(),
            y_title,
            label: &label,
        };
        draw(&frame, marks(curves, &classes, &throughput))
    });
    let has_writes = points().any(|point| point.write_p99_us.is_some());
    let mut header = vec![
        "access path",
        "depth",
        "requests/s",
        "MB/s",
        "mean",
        "p50",
        "p99",
    ];
    header.extend(has_writes.then_some("p99 of writes"));
    let figure = Figure {
        id,
        heading,
        legend: classes
            .iter()
            .zip(curves)
            .map(|(class, curve)| (class.clone(), curve.name.clone()))
            .collect(),
        drawing,
        note: note(curves),
        controls: html! {},
        figures: Figures::Table {
            header: header.into_iter().map(str::to_owned).collect(),
            rows: curves
                .iter()
                .flat_map(|curve| {
                    curve
                        .points
                        .iter()
                        .map(|point| row(curve, point, has_writes))
                })
                .collect(),
        },
    };
    figure.markup()
}

fn note(curves: &[&LimitCurve]) -> String {
    let has_dashed = curves.iter().any(|curve| is_beside_direct(curves, curve));
    format!(
        "A dot for each load, the smallest first. Where a line turns upwards, more requests only wait \
         longer. The large dot is the best point of all. ~ marks a mean that is not known to within 2 %.{}",
        if has_dashed {
            " Dashed: through the page cache."
        } else {
            ""
        }
    )
}

/// The class of each curve's marks: a colour for each method, dashed through the page cache where the same is drawn
/// without it.
fn classes(curves: &[&LimitCurve], methods: &[&str]) -> Vec<String> {
    let class = |curve: &&LimitCurve| {
        let colour = methods.iter().position(|method| *method == curve.method);
        let colour = colour_class(colour.unwrap_or_default());
        match is_beside_direct(curves, curve) {
            true => colour + " again",
            false => colour,
        }
    };
    curves.iter().map(class).collect()
}

fn is_beside_direct(curves: &[&LimitCurve], curve: &LimitCurve) -> bool {
    let is_direct = |other: &&LimitCurve| !other.is_buffered && other.method == curve.method;
    curve.is_buffered && curves.iter().any(is_direct)
}

fn row(curve: &LimitCurve, point: &LimitPoint, has_writes: bool) -> Vec<String> {
    let unsteady = if point.is_unsteady { " ~" } else { "" };
    let mut cells = vec![
        curve.name.clone(),
        point.depth.to_string(),
        format!("{}{unsteady}", thousands(point.iops)),
        thousands_or_tenths(point.mb_per_s),
        time(point.mean_us),
        time(point.p50_us),
        time(point.p99_us),
    ];
    let of_writes = point.write_p99_us.map_or("–".to_owned(), time);
    cells.extend(has_writes.then_some(of_writes));
    cells
}

fn marks(
    curves: &[&LimitCurve],
    classes: &[String],
    throughput: &dyn Fn(&LimitPoint) -> f64,
) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (curve, class) in curves.iter().zip(classes) {
        let at = |point: &LimitPoint| (throughput(point), point.mean_us);
        let line = curve.points.iter().map(at).collect();
        marks.push(Mark::line(format!("average {class}"), line));
        for point in &curve.points {
            let is_best = curve.best_depth == Some(point.depth);
            let says = format!(
                "{}, depth {}: {} per second, {} MB/s, mean {}, p99 {}",
                curve.name,
                point.depth,
                thousands(point.iops),
                thousands_or_tenths(point.mb_per_s),
                time(point.mean_us),
                time(point.p99_us)
            );
            let radius = if is_best { 7.0 } else { 4.0 };
            marks.push(Mark::dot(format!("dot {class}"), at(point), radius, says));
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffered_curves_are_dashed_beside_direct_ones_of_their_colour() {
        let curve = |method: &str, is_buffered| LimitCurve {
            method: method.to_owned(),
            is_buffered,
            ..LimitCurve::default()
        };
        let all = [
            curve("sync", false),
            curve("sync", true),
            curve("async", false),
            curve("async", true),
        ];
        let classes =
            |curves: &[LimitCurve]| classes(&curves.iter().collect::<Vec<_>>(), &["sync", "async"]);
        assert_eq!(classes(&all), ["c1", "c1 again", "c2", "c2 again"]);
        assert_eq!(classes(&all[2..]), ["c2", "c2 again"]);
        let alone = [curve("sync", true), curve("async", true)];
        assert_eq!(classes(&alone), ["c1", "c2"]);
    }
}
