//! Why: what a transaction's time goes to, what makes the difference, what can be done; and how far the machine is to
//! be trusted.

use maud::{Markup, html};

use super::parts::{layout_name, scrolling};
use crate::chart::stacked::{self, Bar};
use crate::comparison::{self, NO_FIGURE};
use crate::kinds::{self, TransactionKind, kinds_of};
use crate::queries::statements_table;
use crate::sentences::{drift, load_name, noise, stopping};
use crate::side_by_side;
use spindle_result::{Case, Finding, RunResult, WaitEvent};

const RESPONSE_TIME_NOTE: &str = "\
Mean time from the begin of a transaction to the end of its commit, as its session spent it. Parts add up to the whole.";

pub(super) fn section(result: &RunResult) -> Markup {
    html! {
        section aria-labelledby="why" {
            h2 id="why" { "Why" }
            @for (index, group) in result.groups().iter().enumerate() { (response_times(result, group, index)) }
            (attributions(result))
            (findings(result))
            (trust(result))
            (kinds(result))
            (statements(result))
            (waits(result))
        }
    }
}

fn response_times(result: &RunResult, group: &[&Case], index: usize) -> Markup {
    let bars: Vec<Bar> = group
        .iter()
        .filter_map(|case| {
            let parts = case.response_time.as_ref()?.parts.iter();
            Some(Bar {
                name: side_by_side::name(result, case),
                parts: parts.map(|part| (part.part.clone(), part.us)).collect(),
            })
        })
        .collect();
    html! {
        @if let (Some(case), false) = (group.first(), bars.is_empty()) {
            @let heading = format!("Response time: {}", load_name(result, case.id.load));
            (stacked::figure(&bars, &format!("response-time-{index}"), &heading, RESPONSE_TIME_NOTE))
        }
    }
}

fn attributions(result: &RunResult) -> Markup {
    let attributions = &result.attributions;
    html! {
        @if !attributions.is_empty() {
            h3 { "What makes the difference" }
            ul.sentences {
                @for attribution in attributions {
                    li { (with_names(&attribution.sentence)) " "
                        small { "(" (result.workload) ")" } }
                }
            }
        }
    }
}

/// A sentence in which names of events and settings stand between backticks.
pub(super) fn with_names(sentence: &str) -> Markup {
    html! {
        @for (index, piece) in sentence.split('`').enumerate() {
            @if index % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}

fn findings(result: &RunResult) -> Markup {
    html! {
        @if !result.findings.is_empty() {
            h3 { "Findings" }
            div.findings { @for finding in &result.findings { (finding_card(result, finding)) } }
        }
    }
}

fn finding_card(result: &RunResult, finding: &Finding) -> Markup {
    let loads = finding.loads();
    html! {
        article.finding {
            h4 { (finding.kind) }
            p { (with_names(&finding.text)) }
            ul.evidence { @for evidence in &finding.evidence { li { (with_names(evidence)) } } }
            p.remedy { strong { "Remedy: " } (with_names(&finding.remedy)) }
            p.where {
                @for layout in &finding.layouts {
                    span {
                        (layout_name(result, layout))
                        @if loads.is_none() { ", " (finding.loads_of(layout)) }
                    } " "
                }
                span { (result.workload) @if let Some(loads) = &loads { ", " (loads) } }
            }
        }
    }
}

/// The machine's own noise, drift, and what stopping early saved.
fn trust(result: &RunResult) -> Markup {
    let mut sentences: Vec<String> = result.noise.iter().map(noise).collect();
    sentences.extend(result.drifts.iter().map(drift));
    sentences.extend(result.stopping.as_ref().map(stopping));
    html! {
        @if !sentences.is_empty() {
            h3 { "Noise, drift and time" }
            ul.sentences { @for sentence in sentences { li { (with_names(&sentence)) } } }
        }
    }
}

/// The kinds of transactions apart, one table per workload and load level that has several: the layouts of each kind
/// together.
fn kinds(result: &RunResult) -> Markup {
    html! {
        @for group in result.groups() {
            @let kinds = kinds_of(&group);
            @if let (Some(first), false) = (group.first(), kinds.is_empty()) {
                details {
                    summary { "Kinds of transactions: " (load_name(result, first.id.load)) }
                    (scrolling("Kinds of transactions", html! {
                        table {
                            thead { tr {
                                th scope="col" { (kinds::COLUMNS[0]) ", " (kinds::COLUMNS[1]) }
                                @for title in &kinds::COLUMNS[2..] { th.figure scope="col" { (title) } }
                            } }
                            @for kind in &kinds { (layouts_of_kind(result, kind)) }
                        }
                    }))
                    p.note { "Means over the trials of each case." }
                    @for sentence in kinds::deferred(&group) { p.note { (sentence) } }
                }
            }
        }
    }
}

/// What each statement took, a table for each load level that has some.
fn statements(result: &RunResult) -> Markup {
    html! {
        @for group in result.groups() {
            @if let Some(of) = statements_table(result, &group) {
                details {
                    summary { (of.title) }
                    (scrolling(&of.title, html! {
                        table.statements {
                            thead { tr { @for (index, title) in of.header.iter().enumerate() {
                                th.figure[index > 0] scope="col" { (title) }
                            } } }
                            tbody { @for row in &of.rows { tr {
                                @for (index, cell) in row.iter().enumerate() {
                                    @if index == 0 { th scope="row" { code { (cell) } } } @else { td.figure { (cell) } }
                                }
                            } } }
                        }
                    }))
                    p.note { (of.note) }
                }
            }
        }
    }
}

fn layouts_of_kind(result: &RunResult, kind: &TransactionKind) -> Markup {
    html! {
        tbody {
            tr { th scope="rowgroup" colspan=(kinds::COLUMNS.len() - 1) { span { (kind.kind) } } }
            @for (layout, figures) in &kind.layouts {
                tr {
                    th scope="row" { (layout_name(result, layout)) }
                    @for figure in figures { td.figure { (figure) } }
                }
            }
        }
    }
}

/// One table per workload and load level: events down, layouts across.
fn waits(result: &RunResult) -> Markup {
    html! {
        @for group in result.groups() {
            @let cases: Vec<&Case> = group.into_iter().filter(|case| !case.trials.is_empty()).collect();
            @let events = events_of(&cases);
            @if let (Some(first), false) = (cases.first(), events.is_empty()) {
                details {
                    summary { "Wait events: " (load_name(result, first.id.load)) }
                    (scrolling("Wait events", html! {
                    table {
                        thead { tr {
                            th scope="col" { "event" }
                            @for case in &cases { th.figure scope="col" { (layout_name(result, &case.id.layout)) } }
                        } }
                        tbody { @for event in events {
                            tr {
                                th scope="row" { (event.own_name()) }
                                @for case in &cases { (wait_cell(case, event)) }
                            }
                        } }
                    }
                }))
                    p.note { "Mean time of one wait, below it the time waited per transaction by all processes together, both in \
                              milliseconds. Of a wait that was seen in samples the mean is not known." }
                }
            }
        }
    }
}

/// Every event of the cases once, those waited for longest in the first case first.
pub(crate) fn events_of<'a>(cases: &[&'a Case]) -> Vec<&'a WaitEvent> {
    let mut events: Vec<&WaitEvent> = Vec::new();
    for event in cases.iter().flat_map(|case| case.wait_events()) {
        if !events.contains(&event) {
            events.push(event);
        }
    }
    events
}

/// Milliseconds, of which small ones keep a figure: a transaction waits for little of many things.
fn fine_milliseconds(value: f64) -> String {
    match value < 0.095 {
        true => format!("{value:.3}"),
        false => comparison::milliseconds(value),
    }
}

fn wait_cell(case: &Case, event: &WaitEvent) -> Markup {
    let mean = case.mean_wait_ms(event).map(comparison::milliseconds);
    html! {
        td.figure {
            @if case.total_wait(|it| it == event).0 == 0 {
                (NO_FIGURE)
            } @else {
                @if let Some(mean) = mean { (mean) }
                @if let Some(us) = case.wait_us_per_transaction(event) { small { (fine_milliseconds(us / 1e3)) } }
            }
        }
    }
}
