//! The bars of the ranking, which are part of a list of texts: percentages of the width that the list has, so that they
//! suit a phone and a wide screen alike.

use maud::{Markup, html};

use super::colour_class;
use spindle_result::{PairComparison, RatioEstimate};

/// Speed of a case relative to the best, and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RelativeSpeed {
    /// Throughput over that of the best: 1 for the best itself.
    pub(crate) share: f64,
    /// 95 % interval of the share.
    pub(crate) ci95: Option<(f64, f64)>,
}

impl RelativeSpeed {
    /// The best case.
    pub(crate) const BEST: RelativeSpeed = RelativeSpeed {
        share: 1.0,
        ci95: None,
    };

    /// Case `b` of a comparison whose `a` is the best.
    pub(crate) fn of_other(comparison: &PairComparison) -> RelativeSpeed {
        RelativeSpeed {
            share: 1.0 / comparison.ratio,
            ci95: comparison.ci95.map(|(low, high)| (1.0 / high, 1.0 / low)),
        }
    }

    /// A case whose place knows its ratio to the best.
    pub(crate) fn of_best(estimate: &RatioEstimate) -> RelativeSpeed {
        RelativeSpeed {
            share: estimate.ratio,
            ci95: estimate.ci95,
        }
    }

    /// The greatest share that its drawing has to show.
    pub(crate) fn end(&self) -> f64 {
        self.ci95
            .map_or(self.share, |(_, high)| high.max(self.share))
    }
}

/// The greatest share that is drawn. The interval of a few unsteady rounds may reach a thousand times as far, and would
/// leave nothing of the bars to be seen.
const SHARE_MAX: f64 = 1.5;

/// The scale of a ranking's bars, which begin at 0: the margin around the best fits, and so do the intervals if they
/// can.
pub(crate) fn scale(speeds: impl Iterator<Item = RelativeSpeed>, margin: f64) -> f64 {
    let ends = speeds.map(|speed| speed.end().min(SHARE_MAX));
    ends.fold(1.0 + margin, f64::max)
}

/// One bar of the ranking on a scale from 0 to `scale`, with its interval and the band around the best that counts as a
/// draw. The words beside the bar say the same, so it is hidden from screen readers.
pub(crate) fn bar(speed: RelativeSpeed, layout: usize, margin: f64, scale: f64) -> Markup {
    let at = |share: f64| format!("{:.2}%", 100.0 * share / scale);
    let class = format!("fill {}", colour_class(layout));
    html! {
        svg.bar aria-hidden="true" {
            rect.band x=(at(1.0 - margin)) y="0" width=(at(2.0 * margin)) height="100%" {}
            rect class=(class) x="0" y="20%" width=(at(speed.share.min(scale))) height="60%" {}
            @if let Some((low, high)) = speed.ci95 {
                // Drawn in the colour of the paper first, so that it shows on a bar of any colour.
                @for class in ["halo", "whisker"] {
                    line class=(class) x1=(at(low)) x2=(at(high.min(scale))) y1="50%" y2="50%" {}
                    @for end in [low, high].into_iter().filter(|end| *end <= scale) {
                        line class=(class) x1=(at(end)) x2=(at(end)) y1="30%" y2="70%" {}
                    }
                }
            }
            // What lies beyond the scale ends in an arrow, not as if it were measured so.
            @if speed.end() > scale {
                text.beyond x="100%" y="50%" { "›" }
            }
            line.best x1=(at(1.0)) x2=(at(1.0)) y1="0" y2="100%" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_result::{CaseId, CasePair};

    #[test]
    fn an_interval_beyond_the_scale_is_drawn_open() {
        let speed = |share, ci95| RelativeSpeed { share, ci95 };
        let wide = speed(0.9, Some((0.1, 2_300.0)));
        let ends = scale([RelativeSpeed::BEST, wide].into_iter(), 0.03);
        assert_eq!(ends, SHARE_MAX);
        let open = bar(wide, 0, 0.03, ends).into_string();
        let closed = bar(speed(0.9, Some((0.8, 1.0))), 0, 0.03, ends).into_string();
        let lines = |drawing: &str| drawing.matches("<line class=\"whisker\"").count();
        assert_eq!((lines(&open), lines(&closed)), (2, 3));
        assert!(open.contains("x2=\"100.00%\""), "{open}");
        assert!(
            open.contains("class=\"beyond\"") && !closed.contains("beyond"),
            "{open}"
        );
        let far = bar(speed(7.0, None), 0, 0.03, ends).into_string();
        assert!(
            far.contains("class=\"beyond\"") && far.contains("width=\"100.00%\""),
            "{far}"
        );
        assert_eq!(scale([RelativeSpeed::BEST].into_iter(), 0.03), 1.03);
    }

    #[test]
    fn the_other_side_of_a_ratio_is_its_inverse() {
        let comparison = PairComparison {
            cases: CasePair::of(&CaseId::new("a", 8), &CaseId::new("b", 8)),
            ratio: 2.0,
            ci95: Some((1.6, 2.5)),
            verdict: spindle_result::Verdict::Faster,
            rounds_needed: None,
            rounds_to_find: None,
            rounds_to_win: None,
            rounds: 3,
            p99: None,
            cpu: None,
        };
        let speed = RelativeSpeed::of_other(&comparison);
        assert_eq!(speed.share, 0.5);
        assert_eq!(speed.ci95, Some((0.4, 0.625)));
        assert_eq!(speed.end(), 0.625);
    }
}
