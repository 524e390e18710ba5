//! `report.html`: one page for people, answer first, that needs neither network nor script.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use super::chart::{self, RelativeSpeed, colour_class};
use super::comparison::{self, CHECKS, CHECKS_NOTE, COLUMNS, NO_FIGURE};
use super::cost;
use super::facts::facts;
use super::throughput::{AVERAGED_SAMPLES, lines};
use crate::experiment::quantity::size_text;
use crate::result::{Case, Comparison, Outcome, Ranking, RunResult, SampledTrial, Trial, Verdict};

/// The page's style: layout, light and dark colours, print.
const STYLE: &str = include_str!("style.css");

/// The whole page. `series` holds the throughput over time of the trials that were sampled.
pub fn html(result: &RunResult, series: &[SampledTrial]) -> String {
    let name = experiment_name(result);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (name) ": " (result.headline) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    p.experiment { "Spindle · " (name) }
                    h1 { (result.headline) }
                }
                main {
                    (warnings(result))
                    @for (index, ranking) in result.rankings.iter().enumerate() {
                        (ranking_section(result, ranking, series, index))
                    }
                    (comparison_section(result))
                    (waits_section(result))
                    (method_section(result))
                }
            }
        }
    };
    page.into_string()
}

/// Name of the experiment, or a plain word for one without.
pub(super) fn experiment_name(result: &RunResult) -> &str {
    result
        .experiment
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or("experiment")
}

fn warnings(result: &RunResult) -> Markup {
    html! {
        @if !result.warnings.is_empty() {
            section.warnings aria-labelledby="warnings" {
                h2 id="warnings" { "What weakens this answer" }
                ul { @for warning in &result.warnings { li { (warning.text) } } }
            }
        }
    }
}

/// Number, colour and name of a layout.
fn layout_name(result: &RunResult, name: &str) -> Markup {
    let number = result.layout_number(name);
    html! {
        @if let Some(number) = number {
            span class={ "swatch " (colour_class(number - 1)) } aria-hidden="true" {}
            span.number { (number) } " "
        }
        (name)
    }
}

fn ranking_section(
    result: &RunResult,
    ranking: &Ranking,
    series: &[SampledTrial],
    index: usize,
) -> Markup {
    let heading = format!("{}, {} clients", ranking.workload, ranking.clients);
    let id = format!("load-{index}");
    let lines = lines(series, ranking);
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { "Ranking: " (heading) }
            (ranking_bars(result, ranking))
            @if !lines.is_empty() {
                h3 { "Throughput over time" }
                figure {
                    (chart::throughput(
                        &lines,
                        &format!("throughput-{index}"),
                        &format!("Throughput over time: {heading}"),
                        "Transactions per minute of every trial over the measured time, one colour per layout. The \
                         means are in the comparison table.",
                    ))
                    figcaption {
                        ul.legend {
                            @for layout in layouts_drawn(&lines) {
                                @if let Some(layout) = result.layouts.get(layout) { li { (layout_name(result, &layout.name)) } }
                            }
                        }
                        p { "One strong line per trial: the moving average of " (AVERAGED_SAMPLES) " samples. Faint: the samples." }
                    }
                }
            }
        }
    }
}

fn layouts_drawn(lines: &[super::throughput::Line]) -> Vec<usize> {
    let mut layouts: Vec<usize> = lines.iter().map(|line| line.layout).collect();
    layouts.dedup();
    layouts
}

/// The best case and every other, the fastest first, as bars relative to the best.
fn ranking_bars(result: &RunResult, ranking: &Ranking) -> Markup {
    let verdicts = result.verdicts.iter();
    let mut others: Vec<&Comparison> = verdicts
        .filter(|verdict| {
            verdict.workload == ranking.workload && verdict.clients == ranking.clients
        })
        .collect();
    others.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let ends = others
        .iter()
        .map(|other| RelativeSpeed::of_other(other).end());
    let scale = ends.fold(1.0 + result.margin, f64::max);
    let index = |name: &str| result.layout_number(name).map_or(0, |number| number - 1);
    let standing = if ranking.winner.is_some() {
        "fastest"
    } else {
        "highest mean"
    };
    html! {
        ol.ranking {
            li {
                p {
                    span.name { (layout_name(result, &ranking.best)) }
                    span.figures { (tpm(result, ranking, &ranking.best)) " · " strong { (standing) } }
                }
                (chart::bar(RelativeSpeed::BEST, index(&ranking.best), result.margin, scale))
            }
            @for other in others {
                @let speed = RelativeSpeed::of_other(other);
                li {
                    p {
                        span.name { (layout_name(result, &other.b)) }
                        span.figures { (tpm(result, ranking, &other.b)) " · " (share(speed)) " · " (standing_of(other, ranking)) }
                    }
                    (chart::bar(speed, index(&other.b), result.margin, scale))
                }
            }
        }
        @for case in result.cases.iter().filter(|case| case.is_ranked_in(ranking) && !case.is_compared()) {
            @if let Some(reason) = case.outcome.reason() {
                p { (layout_name(result, &case.layout)) ": " (case.outcome.status()) ", " (reason) }
            }
        }
        p.note {
            "Bars show throughput relative to the best, round by round; the thin line is the 95 % interval, the shaded band the \
             difference of " (format!("{:.3}", 100.0 * result.margin).trim_end_matches('0').trim_end_matches('.')) " % that counts as a draw."
        }
    }
}

fn tpm(result: &RunResult, ranking: &Ranking, layout: &str) -> String {
    let mut cases = result
        .cases
        .iter()
        .filter(|case| case.is_ranked_in(ranking));
    let mean = cases
        .find(|case| case.layout == layout)
        .and_then(|case| case.tpm)
        .map(|tpm| tpm.mean);
    mean.map_or_else(String::new, |mean| format!("{mean:.0} tpm"))
}

fn share(speed: RelativeSpeed) -> String {
    let percent = |share: f64| format!("{:.0}", 100.0 * share);
    match speed.ci95 {
        Some((low, high)) => format!(
            "{} % ({}-{})",
            percent(speed.share),
            percent(low),
            percent(high)
        ),
        None => format!("{} %", percent(speed.share)),
    }
}

/// What the comparison says of the other case, which is the reverse of what it says of the best.
fn standing_of(comparison: &Comparison, ranking: &Ranking) -> String {
    match comparison.verdict {
        Verdict::Faster if ranking.tied.contains(&comparison.b) => {
            "slower as a pair, not sure among all cases".to_owned()
        }
        Verdict::Faster => "slower".to_owned(),
        Verdict::Slower => "faster".to_owned(),
        Verdict::Draw | Verdict::Undecided => comparison::verdict(comparison, ranking),
    }
}

/// A table that scrolls by itself where the screen is narrow; `label` names it for screen readers.
fn scrolling(label: &str, table: Markup) -> Markup {
    html! { div.scroll role="region" aria-label=(label) tabindex="0" { (table) } }
}

fn comparison_section(result: &RunResult) -> Markup {
    html! {
        section aria-labelledby="comparison" {
            h2 id="comparison" { "Comparison" }
            p.note { "Means over the trials of each case." }
            (scrolling("Comparison of all cases", html! {
                table {
                    thead { tr {
                        th scope="col" { "layout" }
                        th.figure scope="col" { "clients" }
                        @for column in COLUMNS { th.figure scope="col" { (column.title) } }
                    } }
                    tbody { @for case in &result.cases { (comparison_row(result, case)) } }
                }
            }))
            (verdicts_table(result))
            (checks_table(result))
        }
    }
}

/// A case without figures has its status and reason in their place.
fn comparison_row(result: &RunResult, case: &Case) -> Markup {
    let remark = comparison::remark(result, case);
    let summary = case.summary().filter(|_| case.outcome == Outcome::Measured);
    html! {
        tr {
            th scope="row" {
                (layout_name(result, &case.layout))
                @if let (Some(_), Some(remark)) = (&summary, &remark) { small { (remark) } }
            }
            td.figure { (case.clients) }
            @match summary {
                Some(summary) => { @for column in COLUMNS { td.figure { ((column.cell)(&summary)) } } }
                None => { td.words colspan=(COLUMNS.len()) { (remark.as_deref().unwrap_or(case.outcome.status())) } }
            }
        }
    }
}

fn verdicts_table(result: &RunResult) -> Markup {
    let ranking_of = |comparison: &Comparison| {
        let mut rankings = result.rankings.iter();
        rankings.find(|ranking| {
            ranking.workload == comparison.workload && ranking.clients == comparison.clients
        })
    };
    html! {
        @if !result.verdicts.is_empty() {
            h3 { "Verdicts" }
            p.note { "The best case (a) against every other (b): ratio of transactions per minute, paired by round." }
            (scrolling("Verdicts", html! {
                table {
                    thead { tr {
                        th scope="col" { "workload" }
                        th.figure scope="col" { "clients" }
                        @for title in ["a", "b"] { th scope="col" { (title) } }
                        @for title in ["a / b", "95 % interval"] { th.figure scope="col" { (title) } }
                        th scope="col" { "a is" }
                    } }
                    tbody { @for comparison in &result.verdicts {
                        tr {
                            td { (comparison.workload) }
                            td.figure { (comparison.clients) }
                            td { (layout_name(result, &comparison.a)) }
                            td { (layout_name(result, &comparison.b)) }
                            td.figure { (comparison::ratio(comparison.ratio)) }
                            td.figure { (comparison::interval(comparison)) }
                            td { @if let Some(ranking) = ranking_of(comparison) { (comparison::verdict(comparison, ranking)) } }
                        }
                    } }
                }
            }))
        }
    }
}

fn checks_table(result: &RunResult) -> Markup {
    let measured = result.cases.iter().filter(|case| !case.trials.is_empty());
    html! {
        h3 { "Checks" }
        p.note { (CHECKS_NOTE) }
        (scrolling("Checks of every trial", html! {
            table {
                thead { tr {
                    th scope="col" { "layout" }
                    @for check in CHECKS { th.figure scope="col" { (check.title) } }
                } }
                tbody { @for case in measured { @for trial in &case.trials {
                    tr {
                        th scope="row" { (layout_name(result, &case.layout)) }
                        @for check in CHECKS { td.figure { ((check.cell)(case, trial)) } }
                    }
                } } }
            }
        }))
    }
}

/// One table per workload and load level: events down, layouts across.
fn waits_section(result: &RunResult) -> Markup {
    html! {
        section aria-labelledby="waits" {
            h2 id="waits" { "Wait events" }
            @for group in result.groups() {
                @let cases: Vec<&Case> = group.into_iter().filter(|case| !case.trials.is_empty()).collect();
                @let events = events_of(&cases);
                @if let (Some(first), false) = (cases.first(), events.is_empty()) {
                    p.note {
                                (first.workload) ", " (first.clients) " clients: mean time of one wait in milliseconds, below it the time \
                                 waited per transaction in microseconds, all processes together."
                            }
                    (scrolling("Wait events", html! {
                        table {
                            thead { tr {
                                th scope="col" { "event" }
                                @for case in &cases { th.figure scope="col" { (layout_name(result, &case.layout)) } }
                            } }
                            tbody { @for event in events {
                                tr {
                                    th scope="row" { (event) }
                                    @for case in &cases { (wait_cell(case, event)) }
                                }
                            } }
                        }
                    }))
                }
            }
        }
    }
}

/// Every event of the cases once, those waited for longest in the first case first.
pub(super) fn events_of<'a>(cases: &[&'a Case]) -> Vec<&'a str> {
    let mut events: Vec<&str> = Vec::new();
    for event in cases.iter().flat_map(|case| case.wait_events()) {
        if !events.contains(&event) {
            events.push(event);
        }
    }
    events
}

fn wait_cell(case: &Case, event: &str) -> Markup {
    let (count, total_us) = case.total_wait(event);
    let transactions: u64 = case.trials.iter().map(|trial| trial.transactions).sum();
    html! {
        td.figure {
            @if count == 0 {
                (NO_FIGURE)
            } @else {
                (comparison::milliseconds(total_us / count as f64 / 1e3))
                @if transactions > 0 { small { (format!("{:.0}", total_us / transactions as f64)) } }
            }
        }
    }
}

/// How trials were ordered and compared.
pub(super) const METHOD: &str = "\
Every round ran every case once, in random order, each from the same restored database. Cases of one workload and load \
are compared round by round: the logarithms of their ratios, a Student's t interval at 95 %. A winner must beat every \
other of k cases with a two-sided p-value of at most 0.10 / k, so that at most 5 % of experiments name a false one.";

/// Whether every case had the same memory.
pub(super) fn memory_terms(result: &RunResult) -> String {
    match result.memory_budget_bytes {
        Some(bytes) => format!(
            "Buffer cache and page cache together were held to {} in every case.",
            size_text(bytes)
        ),
        None => "Memory was not held to a budget: the page cache of buffered layouts could grow as far as memory was free; \
                 what share of the reads it answered stands under Checks."
            .to_owned(),
    }
}

/// What layouts that were made slower than their devices show, as a sentence to follow others.
pub(super) fn emulation_terms(result: &RunResult) -> &'static str {
    if result
        .layouts
        .iter()
        .all(|layout| layout.emulated.is_empty())
    {
        return "";
    }
    " Some layouts were made slower than their devices, as their descriptions say: a limit holds a device to a rate, as an \
     array does; a delay adds time to each I/O, as a slower disk does. They emulate such hardware and were not measured on it."
}

/// What the instrument itself took, as sentences to follow others.
pub(super) fn costs(result: &RunResult) -> String {
    let costs = [cost::own_cost(result), cost::memory(result)];
    let sentence = |text: String| format!(" {text}.");
    costs.into_iter().flatten().map(sentence).collect()
}

fn method_section(result: &RunResult) -> Markup {
    html! {
        section aria-labelledby="method" {
            h2 id="method" { "How it was measured" }
            p { (METHOD) " " (memory_terms(result)) (emulation_terms(result)) (costs(result)) }
            h3 { "Layouts" }
            (scrolling("Layouts", html! {
                table {
                    thead { tr { @for title in ["layout", "caching", "method", "path", "description", "notes"] { th scope="col" { (title) } } } }
                    tbody { @for layout in &result.layouts {
                        tr {
                            th scope="row" { (layout_name(result, &layout.name)) }
                            td { (layout.caching) }
                            td { (layout.method) }
                            td { (layout.path) }
                            td.words { (layout.description) }
                            td.words { (layout.notes.join("; ")) }
                        }
                    } }
                }
            }))
            h3 { "Order of trials" }
            (order_table(result))
            h3 { "Space" }
            (space_table(result))
            h3 { "Experiment" }
            (facts_table("Experiment", &result.experiment))
            h3 { "Machine" }
            (facts_table("Machine", &result.machine))
        }
    }
}

/// Space of the segments, as the last trial of each layout left them.
fn space_table(result: &RunResult) -> Markup {
    let last_trials = result
        .cases
        .iter()
        .filter_map(|case| Some((case, case.trials.last()?)));
    scrolling(
        "Space",
        html! {
            table {
                thead { tr {
                    @for title in ["layout", "segment"] { th scope="col" { (title) } }
                    @for title in ["clients", "extents", "MiB"] { th.figure scope="col" { (title) } }
                } }
                tbody { @for (case, trial) in last_trials { @for segment in &trial.space {
                    tr {
                        th scope="row" { (layout_name(result, &case.layout)) }
                        td { (segment.segment) }
                        td.figure { (case.clients) }
                        td.figure { (segment.extents) }
                        td.figure { (segment.bytes >> 20) }
                    }
                } } }
            }
        },
    )
}

/// Trials in the order in which they ran, and how each database was put back before it.
fn order_table(result: &RunResult) -> Markup {
    html! {
        (scrolling("Order of trials", html! {
            table {
                thead { tr {
                    @for title in ["round", "position"] { th.figure scope="col" { (title) } }
                    th scope="col" { "layout" }
                    @for title in ["clients", "measured, s", "tpm", "blocks restored", "restored in, ms"] { th.figure scope="col" { (title) } }
                    th scope="col" { "verified" }
                    th scope="col" { "restore method" }
                } }
                tbody { @for (case, trial) in trials_in_order(result) {
                    tr {
                        td.figure { (trial.round) }
                        td.figure { (trial.position) }
                        th scope="row" { (layout_name(result, &case.layout)) }
                        td.figure { (case.clients) }
                        td.figure { (format!("{:.1}", trial.measured_s)) }
                        td.figure { (format!("{:.0}", trial.tpm)) }
                        td.figure { (trial.restore.changed_blocks) }
                        td.figure { (trial.restore.duration_ms) }
                        td { (if trial.restore.verified { "yes" } else { "no" }) }
                        td { (trial.restore.method) }
                    }
                } }
            }
        }))
    }
}

/// All trials in the order in which they ran.
pub(super) fn trials_in_order(result: &RunResult) -> Vec<(&Case, &Trial)> {
    let mut trials: Vec<(&Case, &Trial)> = Vec::new();
    for case in &result.cases {
        trials.extend(case.trials.iter().map(|trial| (case, trial)));
    }
    trials.sort_by_key(|(_, trial)| (trial.round, trial.position));
    trials
}

fn facts_table(label: &str, document: &Value) -> Markup {
    html! {
        (scrolling(label, html! {
            table.facts {
                tbody { @for (key, value) in facts(document) {
                    tr { th scope="row" { (key) } td.words { (value) } }
                } }
            }
        }))
    }
}
