//! The drawings of the page, as SVG that the page's own style colours: bars of the ranking, throughput over time.
//!
//! Lengths are percentages of the drawing and text keeps its size, so one drawing suits a phone and a wide screen. Why not
//! a plotting library: `docs/decisions/0004-report.md`.

use std::fmt::Write as _;

use maud::{Markup, html};
use spindle_stats::TimeSeries;

use super::throughput::{AVERAGED_SAMPLES, Line};
use crate::result::Comparison;

/// How many colours the page's style defines; further layouts take them again, dashed.
const COLOURS: usize = 8;

/// Width and height of the coordinates of the lines, which the browser stretches to the size of the drawing.
const CANVAS: (f64, f64) = (1_000.0, 400.0);

/// About how many grid lines an axis has.
const GRID_LINES: f64 = 5.0;

/// Classes that give a layout its colour, by its index.
pub(super) fn colour_class(layout: usize) -> String {
    let colour = format!("c{}", layout % COLOURS + 1);
    if layout < COLOURS {
        colour
    } else {
        colour + " again"
    }
}

/// Speed of a case relative to the best, and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RelativeSpeed {
    /// Throughput over that of the best: 1 for the best itself.
    pub(super) share: f64,
    /// 95 % interval of the share.
    pub(super) ci95: Option<(f64, f64)>,
}

impl RelativeSpeed {
    /// The best case.
    pub(super) const BEST: RelativeSpeed = RelativeSpeed {
        share: 1.0,
        ci95: None,
    };

    /// Case `b` of a comparison whose `a` is the best.
    pub(super) fn of_other(comparison: &Comparison) -> RelativeSpeed {
        RelativeSpeed {
            share: 1.0 / comparison.ratio,
            ci95: comparison.ci95.map(|(low, high)| (1.0 / high, 1.0 / low)),
        }
    }

    /// The greatest share that its drawing has to show.
    pub(super) fn end(&self) -> f64 {
        self.ci95
            .map_or(self.share, |(_, high)| high.max(self.share))
    }
}

/// One bar of the ranking on a scale from 0 to `scale`, with its interval and the band around the best that counts as a
/// draw. The words beside the bar say the same, so it is hidden from screen readers.
pub(super) fn bar(speed: RelativeSpeed, layout: usize, margin: f64, scale: f64) -> Markup {
    let at = |share: f64| format!("{:.2}%", 100.0 * share / scale);
    let class = format!("fill {}", colour_class(layout));
    html! {
        svg.bar aria-hidden="true" {
            rect.band x=(at(1.0 - margin)) y="0" width=(at(2.0 * margin)) height="100%" {}
            rect class=(class) x="0" y="20%" width=(at(speed.share)) height="60%" {}
            @if let Some((low, high)) = speed.ci95 {
                // Drawn in the colour of the paper first, so that it shows on a bar of any colour.
                @for class in ["halo", "whisker"] {
                    line class=(class) x1=(at(low)) x2=(at(high)) y1="50%" y2="50%" {}
                    @for end in [low, high] {
                        line class=(class) x1=(at(end)) x2=(at(end)) y1="30%" y2="70%" {}
                    }
                }
            }
            line.best x1=(at(1.0)) x2=(at(1.0)) y1="0" y2="100%" {}
        }
    }
}

/// Throughput of all trials over time on common axes that start at zero: samples faint, moving averages strong. `id`
/// tells this drawing's title from those of others on the page.
pub(super) fn throughput(lines: &[Line], id: &str, title: &str, description: &str) -> Markup {
    let duration_s = greatest(lines.iter().map(|line| seconds(&line.samples)));
    let (x_ticks, x_end) = axis(duration_s, duration_s);
    let highest = greatest(lines.iter().filter_map(|line| line.samples.best()));
    let (y_ticks, y_end) = axis(highest, f64::INFINITY);
    let (title_id, description_id) = (format!("{id}-title"), format!("{id}-desc"));
    html! {
        svg.plot role="img" aria-labelledby={ (title_id) " " (description_id) } {
            title id=(title_id) { (title) }
            desc id=(description_id) { (description) }
            @for tick in y_ticks {
                @let y = format!("{:.2}%", 100.0 * (1.0 - tick / y_end));
                line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
                text x="-8" y=(y) dy="0.32em" text-anchor="end" { (number(tick)) }
            }
            @for tick in x_ticks {
                @let x = format!("{:.2}%", 100.0 * tick / x_end);
                line.grid x1=(x) x2=(x) y1="0" y2="100%" {}
                text x=(x) y="100%" dy="1.4em" text-anchor="middle" { (number(tick)) }
            }
            text.axis x="50%" y="100%" dy="2.8em" text-anchor="middle" { "seconds since the start of measurement" }
            text.axis x="0" y="0" dx="-3.6em" dy="-0.9em" { "transactions per minute" }
            svg viewBox={ "0 0 " (CANVAS.0) " " (CANVAS.1) } preserveAspectRatio="none" width="100%" height="100%" {
                @for line in lines {
                    polyline class={ "raw " (colour_class(line.layout)) } points=(points(&line.samples, x_end, y_end)) {}
                }
                @for line in lines {
                    polyline class={ "average " (colour_class(line.layout)) } points=(points(&line.averages, x_end, y_end)) {
                        title { "round " (line.round) ", moving average of " (AVERAGED_SAMPLES) " samples" }
                    }
                }
            }
        }
    }
}

fn seconds(series: &TimeSeries) -> f64 {
    series.step().as_secs_f64() * series.samples().len() as f64
}

fn greatest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

/// Grid positions from zero at steps of 1, 2 or 5 times a power of ten, and the end of the axis: `limit`, or, when that is
/// open, the first grid position that holds `greatest`.
fn axis(greatest: f64, limit: f64) -> (Vec<f64>, f64) {
    // Without anything to show, any scale will do.
    let greatest = if greatest > 0.0 { greatest } else { 1.0 };
    let rough = greatest / GRID_LINES;
    let magnitude = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * magnitude >= rough);
    let step = factor.unwrap_or(10.0) * magnitude;
    // A hair less than the quotient: 0.6 / 0.2 is a little more than 3 in binary.
    let steps = (greatest / step - 1e-9).ceil();
    let end = limit.min(step * steps).max(f64::MIN_POSITIVE);
    let ticks = (0..=steps as u32).map(|index| step * f64::from(index));
    (
        ticks.filter(|&tick| tick <= end * (1.0 + 1e-9)).collect(),
        end,
    )
}

/// A position on an axis without needless zeros or binary noise.
fn number(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    format!("{rounded}")
}

/// The samples as coordinates on the canvas, each in the middle of the time it covers.
fn points(series: &TimeSeries, x_end: f64, y_end: f64) -> String {
    let step_s = series.step().as_secs_f64();
    let mut points = String::new();
    for (index, sample) in series.samples().iter().enumerate() {
        let x = CANVAS.0 * (index as f64 + 0.5) * step_s / x_end;
        let y = CANVAS.1 * (1.0 - sample / y_end);
        let _ = write!(points, "{x:.1},{y:.1} ");
    }
    points.truncate(points.trim_end().len());
    points
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_axis_has_round_steps_and_holds_the_greatest_value() {
        assert_eq!(axis(0.6, f64::INFINITY).0.len(), 4);
        assert_eq!(
            axis(4_200.0, f64::INFINITY),
            (
                vec![0.0, 1_000.0, 2_000.0, 3_000.0, 4_000.0, 5_000.0],
                5_000.0
            )
        );
        assert_eq!(axis(5.0, 5.0), (vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 5.0));
        assert_eq!(axis(5.3, 5.3), (vec![0.0, 2.0, 4.0], 5.3));
        assert_eq!(axis(0.0, f64::INFINITY).1, 1.0);
    }

    #[test]
    fn samples_stand_in_the_middle_of_their_time() {
        let series = TimeSeries::from_samples(Duration::from_secs(1), vec![0.0, 5.0]);
        assert_eq!(points(&series, 2.0, 10.0), "250.0,400.0 750.0,200.0");
    }

    #[test]
    fn the_other_side_of_a_ratio_is_its_inverse() {
        let comparison = Comparison {
            workload: "oltp_mix".to_owned(),
            clients: 8,
            a: "a".to_owned(),
            b: "b".to_owned(),
            ratio: 2.0,
            ci95: Some((1.6, 2.5)),
            verdict: crate::result::Verdict::Faster,
            rounds_needed: None,
            rounds: 3,
            p99: None,
            cpu: None,
        };
        let speed = RelativeSpeed::of_other(&comparison);
        assert_eq!(speed.share, 0.5);
        assert_eq!(speed.ci95, Some((0.4, 0.625)));
        assert_eq!(speed.end(), 0.625);
    }

    #[test]
    fn the_ninth_layout_takes_the_first_colour_dashed() {
        assert_eq!(colour_class(7), "c8");
        assert_eq!(colour_class(8), "c1 again");
    }
}
