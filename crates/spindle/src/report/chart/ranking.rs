//! The bars of the ranking, which are part of a list of texts: percentages of the width that the list has, so that they suit
//! a phone and a wide screen alike.

use maud::{Markup, html};

use super::colour_class;
use crate::result::{Comparison, RatioEstimate};

/// Speed of a case relative to the best, and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::report) struct RelativeSpeed {
    /// Throughput over that of the best: 1 for the best itself.
    pub(in crate::report) share: f64,
    /// 95 % interval of the share.
    pub(in crate::report) ci95: Option<(f64, f64)>,
}

impl RelativeSpeed {
    /// The best case.
    pub(in crate::report) const BEST: RelativeSpeed = RelativeSpeed {
        share: 1.0,
        ci95: None,
    };

    /// Case `b` of a comparison whose `a` is the best.
    pub(in crate::report) fn of_other(comparison: &Comparison) -> RelativeSpeed {
        RelativeSpeed {
            share: 1.0 / comparison.ratio,
            ci95: comparison.ci95.map(|(low, high)| (1.0 / high, 1.0 / low)),
        }
    }

    /// A case whose place knows its ratio to the best.
    pub(in crate::report) fn of_best(estimate: &RatioEstimate) -> RelativeSpeed {
        RelativeSpeed {
            share: estimate.ratio,
            ci95: estimate.ci95,
        }
    }

    /// The greatest share that its drawing has to show.
    pub(in crate::report) fn end(&self) -> f64 {
        self.ci95
            .map_or(self.share, |(_, high)| high.max(self.share))
    }
}

/// One bar of the ranking on a scale from 0 to `scale`, with its interval and the band around the best that counts as a
/// draw. The words beside the bar say the same, so it is hidden from screen readers.
pub(in crate::report) fn bar(
    speed: RelativeSpeed,
    layout: usize,
    margin: f64,
    scale: f64,
) -> Markup {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
