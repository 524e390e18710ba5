//! The axes of all drawings: one type, so that every chart may choose a logarithmic one when its values need it.

use std::ops::Range;

use plotters::coord::combinators::{IntoLogRange, LogCoord};
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

/// How many times the smallest value the greatest must be for small ones to be lost on a linear axis.
const SPREAD_FOR_LOGARITHM: f64 = 30.0;

/// Room beyond the greatest value, as a factor.
const HEADROOM: f64 = 1.05;

/// One axis of a drawing.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Axis {
    /// Equal steps.
    Linear(Range<f64>),
    /// Equal factors. Values must be above zero.
    Logarithmic(Range<f64>),
    /// Rows from the top, numbered from 0; nothing is written beside them.
    Rows(usize),
}

/// The least and the greatest value that is drawn. Beyond them, steps between marks are no longer numbers, and drawing
/// them would not end. What a run measures lies far within.
const DRAWN: Range<f64> = 1e-30..1e30;

/// A value that can be drawn.
fn drawn(value: f64) -> f64 {
    match value.abs() {
        _ if value.is_nan() => 0.0,
        size if size < DRAWN.start => 0.0,
        size if size > DRAWN.end => DRAWN.end.copysign(value),
        _ => value,
    }
}

impl Axis {
    /// From one value to a greater one.
    pub(super) fn linear(start: f64, end: f64) -> Axis {
        let (start, end) = (drawn(start), drawn(end));
        // Without anything to show, or too little to be told apart, any scale will do.
        let is_told_apart = end - start > 1e-9 * start.abs().max(end.abs());
        let end = match is_told_apart {
            true => end,
            false => start + start.abs().max(1.0),
        };
        Axis::Linear(start..end)
    }

    /// From zero to somewhat beyond the greatest value.
    pub(super) fn from_zero(greatest: f64) -> Axis {
        Axis::linear(0.0, greatest * HEADROOM)
    }

    /// From zero, unless the values lie so far apart that only equal factors show them all.
    pub(super) fn for_all(values: impl IntoIterator<Item = f64>) -> Axis {
        let values = values.into_iter().map(drawn);
        let positive: Vec<f64> = values.filter(|value| *value > 0.0).collect();
        let least = positive.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = super::greatest(positive);
        if greatest > least * SPREAD_FOR_LOGARITHM {
            Axis::Logarithmic(least / 1.3..greatest * 1.3)
        } else {
            Axis::from_zero(greatest)
        }
    }

    /// Whether equal steps are equal factors.
    pub(super) fn is_logarithmic(&self) -> bool {
        matches!(self, Axis::Logarithmic(_))
    }

    /// The first and the last value.
    pub(super) fn ends(&self) -> (f64, f64) {
        let range = self.range();
        (range.start, range.end)
    }
}

fn linear(range: &Range<f64>) -> RangedCoordf64 {
    range.clone().into()
}

fn logarithmic(range: &Range<f64>) -> LogCoord<f64> {
    range.clone().log_scale().into()
}

/// Round values over equal factors, as many as have room; `None` where even powers of ten have not.
fn round_factors(range: &Range<f64>, most: usize) -> Option<Vec<f64>> {
    let decades = range.start.log10().floor() as i32..=range.end.log10().ceil() as i32;
    let steps: [&[f64]; 3] = [&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
    let points = steps.into_iter().map(|steps| {
        let points = decades
            .clone()
            .flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
        points.filter(|point| range.contains(point)).collect()
    });
    let mut fitting = points.filter(|points: &Vec<f64>| points.len() <= most);
    fitting.next().filter(|points| !points.is_empty())
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match self {
            Axis::Linear(range) => linear(range).map(value, limit),
            Axis::Logarithmic(range) => logarithmic(range).map(value, limit),
            Axis::Rows(rows) => {
                let (bottom, top) = limit;
                top + ((value / *rows as f64) * f64::from(bottom - top)).round() as i32
            }
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self {
            Axis::Linear(range) => linear(range).key_points(hint),
            Axis::Logarithmic(range) => {
                let most = hint.max_num_points();
                round_factors(range, most).unwrap_or_else(|| logarithmic(range).key_points(hint))
            }
            Axis::Rows(_) => Vec::new(),
        }
    }

    fn range(&self) -> Range<f64> {
        match self {
            Axis::Linear(range) | Axis::Logarithmic(range) => range.clone(),
            Axis::Rows(rows) => 0.0..*rows as f64,
        }
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        number(*value)
    }
}

/// A value beside an axis, without needless zeros or binary noise; thousands and millions in short.
pub(super) fn number(value: f64) -> String {
    let short = |value: f64| format!("{}", (value * 1e4).round() / 1e4);
    match value.abs() {
        size if size >= 1e9 => short(value / 1e9) + "G",
        size if size >= 1e6 => short(value / 1e6) + "M",
        size if size >= 1e4 => short(value / 1e3) + "k",
        _ => short(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beside_an_axis_are_short() {
        let values = [0.0, 0.2, 0.1 + 0.2, 2_000.0, 60_000.0, 1.5e6, 2e9];
        let texts = ["0", "0.2", "0.3", "2000", "60k", "1.5M", "2G"];
        assert_eq!(values.map(number), texts);
    }

    #[test]
    fn small_values_beside_great_ones_need_a_logarithm() {
        assert!(Axis::for_all([1.0, 31.0]).is_logarithmic());
        assert!(!Axis::for_all([1.0, 29.0]).is_logarithmic());
        assert!(!Axis::for_all([0.0, 29.0]).is_logarithmic());
        assert_eq!(Axis::for_all([]).ends(), (0.0, 1.0));
    }

    #[test]
    fn a_logarithmic_axis_has_marks_for_each_part_of_it() {
        let points = round_factors(&(1.3..52.0), 8).unwrap();
        let texts: Vec<String> = points.into_iter().map(number).collect();
        assert_eq!(texts, ["2", "5", "10", "20", "50"]);
        assert_eq!(round_factors(&(1.3..52.0), 3).unwrap().len(), 3);
        assert_eq!(round_factors(&(1e-9..1e9), 5), None);
    }

    #[test]
    fn numbers_that_nobody_measures_are_drawn_all_the_same() {
        for values in [
            [1e-308, 0.0],
            [1e-308, 5.0],
            [1e308, 1.0],
            [f64::INFINITY, f64::NAN],
            [5e-324, 1e308],
        ] {
            let (start, end) = Axis::for_all(values).ends();
            assert!(
                start.is_finite() && end.is_finite() && start < end,
                "{values:?}"
            );
            assert!((end - start).is_normal() && end < 1e31, "{values:?}");
        }
        let (start, end) = Axis::linear(1e20, 1e20 + 1.0).ends();
        assert!(end - start > 1e10);
    }

    #[test]
    fn rows_begin_at_the_top() {
        let axis = Axis::Rows(4);
        assert_eq!(
            [0.0, 1.0, 4.0].map(|row| axis.map(&row, (400, 0))),
            [0, 100, 400]
        );
    }
}
