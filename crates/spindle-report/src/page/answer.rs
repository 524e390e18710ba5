//! The first screen: the ranking with its intervals, the table of all cases, the verdicts.

use maud::{Markup, html};

use super::pairs;
use super::parts::{layout_name, scrolling, unnumbered};
use crate::chart::ranking::{RelativeSpeed, bar, scale};
use crate::comparison::{self, FigureColumn, NO_FIGURE, milliseconds, ratio_title};
use crate::sentences::{compared_by, load_name, measure_of};
use spindle_result::{
    Case, CaseId, CaseStatus, Keeps, Measure, PairComparison, Ranking, RatioEstimate, RunResult,
    Verdict, format_interval, percent, unit,
};
use spindle_text::quantity::thousands;

pub(super) fn section(result: &RunResult) -> Markup {
    let columns = comparison::columns(result);
    html! {
        section aria-labelledby="ranking" {
            h2 id="ranking" { "Ranking" }
            div.rankings {
                @for (index, ranking) in result.rankings.iter().enumerate() {
                    @let id = format!("ranking-{index}");
                    section aria-labelledby=(id) {
                        h3 id=(id) { (load_name(result, ranking.load)) }
                        (ranking_bars(result, ranking))
                    }
                }
            }
            p.note {
                (what_bars_show(result)) " Thin line: its 95 % interval. Shaded band: the difference of "
                (percent(result.margin)) " % that counts as a draw."
                @if result.rankings.iter().any(|ranking| is_cut(result, ranking)) {
                    " Arrow: it goes on beyond the scale."
                }
            }
            (pairs::tables(result))
        }
        section aria-labelledby="comparison" {
            h2 id="comparison" { "Comparison" }
            (scrolling("Comparison of all cases", html! {
                table {
                    thead { tr {
                        th scope="col" { "layout" }
                        th scope="col" { (comparison::KEEPS) }
                        th.figure scope="col" { "clients" }
                        @for column in &columns { th.figure scope="col" { (column.title) } }
                    } }
                    tbody { @for case in &result.cases { (comparison_row(result, case, &columns)) } }
                }
            }))
            @for weakness in comparison::weaknesses(result) { p.note { (weakness) "." } }
            p.note { "Means over the trials of each case. Reads, writes and KB are the database's own, " (comparison::words(result).log) " included." }
            (verdicts_table(result))
        }
    }
}

fn what_bars_show(result: &RunResult) -> &'static str {
    match measure_of(result) {
        Some(Measure::Throughput) => "Bars: throughput relative to the best, round by round.",
        None => {
            "Bars, round by round: without a rate, throughput relative to the best; at a rate, the best 99th percentile of \
             the transaction time over each layout's own."
        }
        Some(Measure::P99) => {
            "Bars: the best 99th percentile of the transaction time over each layout's own, round by round; half as long is twice the \
             time."
        }
    }
}

/// How those stand of whom none is known to be better than all others.
const TIED: &str = "tied for first";

/// A layout in a ranking.
struct Placed<'a> {
    layout: &'a str,
    keeps: Keeps,
    place: Option<u32>,
    speed: RelativeSpeed,
    standing: String,
}

/// Whether a bar or an interval of a ranking lies beyond what is drawn.
fn is_cut(result: &RunResult, ranking: &Ranking) -> bool {
    let placed = placed(result, ranking);
    let speeds = || placed.iter().map(|placed| placed.speed);
    let scale = scale(speeds(), result.margin);
    speeds().any(|speed| speed.end() > scale)
}

/// The best case and every other, the fastest first.
fn placed<'a>(result: &'a RunResult, ranking: &'a Ranking) -> Vec<Placed<'a>> {
    let place_of = |layout: &str| ranking.places.iter().find(|place| place.layout == layout);
    let standing = match (&ranking.winner, ranking.measure) {
        (Some(_), Measure::Throughput) => "fastest",
        (Some(_), Measure::P99) => "soonest",
        (None, _) if !ranking.tied.is_empty() => TIED,
        (None, _) => "measured alone",
    };
    let mut placed = vec![Placed {
        layout: &ranking.best,
        keeps: ranking.keeps,
        place: place_of(&ranking.best).map(|place| place.place),
        speed: RelativeSpeed::BEST,
        standing: standing.to_owned(),
    }];
    placed.extend(result.verdicts_of(ranking).map(|other| {
        let place = place_of(&other.cases.b);
        let of_best = place.and_then(|place| place.of_best.as_ref());
        Placed {
            layout: &other.cases.b,
            keeps: ranking.keeps_of(&other.cases.b),
            place: place.map(|place| place.place),
            speed: of_best.map_or_else(|| RelativeSpeed::of_other(other), RelativeSpeed::of_best),
            standing: match ranking.winner {
                None if ranking.tied.contains(&other.cases.b) => {
                    format!("{TIED}: {}", standing_of(result, other))
                }
                _ => standing_of(result, other),
            },
        }
    }));
    placed[1..].sort_by(|a, b| {
        let by_place = (a.keeps, a.place).cmp(&(b.keeps, b.place));
        by_place.then(b.speed.share.total_cmp(&a.speed.share))
    });
    placed
}

fn ranking_bars(result: &RunResult, ranking: &Ranking) -> Markup {
    let placed = placed(result, ranking);
    let scale = scale(placed.iter().map(|placed| placed.speed), result.margin);
    let index = |name: &str| result.layout_number(name).map_or(0, |number| number - 1);
    let before = |position: usize| placed[position - 1].keeps;
    html! {
        ol.ranking {
            @for (position, placed) in placed.iter().enumerate() {
                @let begins = position == 0 || placed.keeps != before(position);
                @if ranking.has_weaker() && begins { li.keeps { "Layouts that " (placed.keeps.of_group()) } }
                li {
                    p {
                        span.name {
                            @if let Some(place) = placed.place { span.place { (place) ". " } }
                            (unnumbered(result, placed.layout))
                        }
                        span.figures {
                            (figure(result, ranking, placed.layout))
                            @if position > 0 { " · " (beside_best(placed.speed, ranking.measure)) }
                            " · " span.standing[position == 0] { (placed.standing) }
                        }
                    }
                    (bar(placed.speed, index(placed.layout), result.margin, scale))
                    @let case = result.case(&CaseId::new(placed.layout, ranking.load));
                    @if let Some(common) = case.and_then(|case| comparison::common_rounds(result, case)) {
                        small { (common) }
                    }
                }
            }
        }
        @for case in result.cases_at(ranking.load).filter(|case| !case.is_compared()) {
            @if let Some(reason) = case.outcome.reason() {
                p { (layout_name(result, &case.id.layout)) ": " (case.outcome.status()) ", " (reason) }
            }
        }
    }
}

/// What a case is ranked by.
fn figure(result: &RunResult, ranking: &Ranking, layout: &str) -> String {
    let case = result.case(&CaseId::new(layout, ranking.load));
    let summary = case.and_then(Case::summary);
    summary.map_or_else(String::new, |summary| match ranking.measure {
        Measure::Throughput => match summary.nopm {
            Some(nopm) => format!("{} tpm, {} NOPM", thousands(summary.tpm), thousands(nopm)),
            None => format!("{} tpm", thousands(summary.tpm)),
        },
        Measure::P99 => format!("p99 {} ms", milliseconds(summary.p99_ms)),
    })
}

/// A case beside the best: the share of its throughput, or how many times its time.
fn beside_best(speed: RelativeSpeed, measure: Measure) -> String {
    match (measure, speed.ci95) {
        (Measure::Throughput, _) => share(speed),
        (Measure::P99, None) => format!("{} x", comparison::ratio(1.0 / speed.share)),
        (Measure::P99, Some((low, high))) => format!(
            "{} x ({})",
            comparison::ratio(1.0 / speed.share),
            format_interval((1.0 / high, 1.0 / low))
        ),
    }
}

/// Shares from here on are told as multiples.
const PERCENT_TO: f64 = 10.0;

fn share(speed: RelativeSpeed) -> String {
    let most = speed.ci95.map_or(speed.share, |(_, high)| high);
    let percent = |share: f64| format!("{:.0}", 100.0 * share);
    let (share, interval) = match most.max(speed.share) >= PERCENT_TO {
        true => (
            format!("{} x", comparison::ratio(speed.share)),
            speed.ci95.map(format_interval),
        ),
        false => (
            format!("{} %", percent(speed.share)),
            speed
                .ci95
                .map(|(low, high)| format!("{}-{}", percent(low), percent(high))),
        ),
    };
    interval.map_or_else(|| share.clone(), |interval| format!("{share} ({interval})"))
}

/// What the comparison says of the other case, which is the reverse of what it says of the best.
fn standing_of(result: &RunResult, comparison: &PairComparison) -> String {
    match comparison.verdict {
        Verdict::Faster => "slower".to_owned(),
        Verdict::Slower => "faster".to_owned(),
        Verdict::Draw | Verdict::Undecided => comparison::verdict(result, comparison),
    }
}

/// A case without figures has its status and reason in their place.
fn comparison_row(result: &RunResult, case: &Case, columns: &[FigureColumn]) -> Markup {
    let remark = comparison::remark(result, case);
    let summary = case
        .summary()
        .filter(|_| case.outcome == CaseStatus::Measured);
    html! {
        tr {
            th scope="row" {
                (layout_name(result, &case.id.layout))
                @if let (Some(_), Some(remark)) = (&summary, &remark) { small { (remark) } }
            }
            td { (comparison::keeps(case)) }
            td.figure { (case.id.load.in_column()) }
            @match summary {
                Some(summary) => { @for column in columns { td.figure { (column.cell(&summary)) } } }
                None => { td.words colspan=(columns.len()) { (remark.as_deref().unwrap_or(case.outcome.status())) } }
            }
        }
    }
}

fn verdicts_table(result: &RunResult) -> Markup {
    let is_known = |ratio: fn(&PairComparison) -> Option<RatioEstimate>| {
        result
            .verdicts
            .iter()
            .any(|verdict| ratio(verdict).is_some())
    };
    let measure = measure_of(result);
    let (with_p99, with_cpu) = (
        measure != Some(Measure::P99) && is_known(|verdict| verdict.p99),
        is_known(|verdict| verdict.cpu),
    );
    html! {
        @if !result.verdicts.is_empty() {
            h3 { "Verdicts" }
            (scrolling("Verdicts", html! {
                table {
                    thead { tr {
                        th scope="col" { "workload" }
                        th.figure scope="col" { "clients" }
                        @for title in ["a", "b"] { th scope="col" { (title) } }
                        @for title in [ratio_title(measure), "95 % interval"] { th.figure scope="col" { (title) } }
                        th scope="col" { "a is" }
                        @if with_p99 { th.figure scope="col" { "p99, a / b" } }
                        @if with_cpu { th.figure scope="col" { "CPU a transaction, a / b" } }
                    } }
                    tbody { @for comparison in &result.verdicts {
                        tr {
                            td { (result.workload) }
                            td.figure { (comparison.cases.load.in_column()) }
                            td { (layout_name(result, &comparison.cases.a)) }
                            td { (layout_name(result, &comparison.cases.b)) }
                            td.figure { (comparison::ratio(comparison.ratio)) }
                            td.figure { (comparison::interval(comparison)) }
                            td { (comparison::verdict(result, comparison)) }
                            @if with_p99 { td.figure { (estimate(comparison.p99)) } }
                            @if with_cpu { td.figure { (estimate(comparison.cpu)) } }
                        }
                    } }
                }
            }))
            p.note { "The best case (a) against every other (b), paired by " (unit(result)) ". " (compared_by(result)) }
        }
    }
}

/// A ratio and its interval, as far as they are known.
fn estimate(estimate: Option<RatioEstimate>) -> String {
    let Some(estimate) = estimate else {
        return NO_FIGURE.to_owned();
    };
    let ratio = comparison::ratio(estimate.ratio);
    match estimate.ci95 {
        Some(interval) => format!("{ratio} ({})", format_interval(interval)),
        None => ratio,
    }
}
