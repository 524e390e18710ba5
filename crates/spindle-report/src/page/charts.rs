//! The charts: one set for each workload and load level, and how layouts scale from one level to the next.

use maud::{Markup, html};

use super::why::{bar_name, events_of};
use super::{load_name, scrolling};
use crate::chart::stacked::{self, Bar};
use crate::chart::{colour_class, device, latency, probe, queries, scaling, throughput};
use crate::queries::{QueryTable, rates_table, seconds_table, temporary_space_table};
use crate::timeline::Timeline;
use spindle_result::{Case, Measure, Ranking, RunResult, SampledTrial};

const WAITS_NOTE: &str = "\
Time waited per transaction, sessions and background processes together: what overlaps is counted more than once.";

pub(super) fn section(result: &RunResult, series: &[SampledTrial]) -> Markup {
    html! {
        @if !result.rankings.is_empty() {
            section aria-labelledby="charts" {
                h2 id="charts" { "Charts" }
                @for (index, workload) in workloads(result).into_iter().enumerate() {
                    @let heading = format!("Scaling: {workload}");
                    @if let Some(figure) = scaling::figure(result, workload, &format!("scaling-{index}"), &heading) { (figure) }
                }
                @for (index, ranking) in result.rankings.iter().enumerate() {
                    (of_load(result, series, ranking, index))
                }
                @if let Some(figure) = probe::figure(result) { (figure) }
            }
        }
    }
}

/// Workloads whose throughput was found, and not given by a fixed rate.
fn workloads(result: &RunResult) -> Vec<&str> {
    let mut workloads: Vec<&str> = result
        .rankings
        .iter()
        .filter(|ranking| ranking.measure == Measure::Throughput)
        .map(|ranking| ranking.workload.as_str())
        .collect();
    workloads.dedup();
    workloads
}

fn of_load(result: &RunResult, series: &[SampledTrial], ranking: &Ranking, index: usize) -> Markup {
    let load = load_name(ranking);
    let cases = result
        .cases
        .iter()
        .filter(|case| case.is_ranked_in(ranking) && case.is_compared());
    let cases: Vec<&Case> = cases.collect();
    let timeline = Timeline::of(result, series, ranking);
    let table = seconds_table(result, &cases);
    let more_of_queries = [
        rates_table(result, &cases),
        temporary_space_table(result, &cases),
    ];
    html! {
        h3 { (load) }
        @if let Some(table) = &table {
            @if let Some(figure) = queries::figure(result, &cases, table, &format!("queries-{index}")) { (figure) }
        }
        @for table in more_of_queries.iter().flatten() { (table_of_queries(table)) }
        @if let Some(timeline) = &timeline {
            (throughput::figure(result, timeline, &format!("throughput-{index}"), &format!("Throughput over time: {load}")))
        }
        @if let Some(figure) = latency::figure(result, &cases, &format!("latency-{index}"), &format!("Transaction time: {load}")) { (figure) }
        (waits(result, &cases, &format!("waits-{index}"), &format!("Waits: {load}")))
        @if let Some(timeline) = &timeline { (devices(result, timeline, &load, index)) }
    }
}

fn table_of_queries(table: &QueryTable) -> Markup {
    html! {
        h4 { (table.title) }
        (scrolling(&table.title, html! {
            table.facts {
                thead { tr { @for (index, title) in table.header.iter().enumerate() {
                    th.figure[index > 0] scope="col" { (title) }
                } } }
                tbody { @for row in &table.rows { tr {
                    @for (index, cell) in row.iter().enumerate() {
                        @if index == 0 { th scope="row" { (cell) } } @else { td.figure { (cell) } }
                    }
                } } }
            }
        }))
        p.note { (table.note) }
    }
}

fn waits(result: &RunResult, cases: &[&Case], id: &str, heading: &str) -> Markup {
    let events = events_of(cases);
    let bar = |case: &&Case| Bar {
        name: bar_name(result, case),
        parts: events
            .iter()
            .filter_map(|event| Some(((*event).to_owned(), case.wait_us_per_transaction(event)?)))
            .collect(),
    };
    let bars: Vec<Bar> = cases.iter().map(bar).collect();
    html! { @if !events.is_empty() { (stacked::figure(&bars, id, heading, WAITS_NOTE)) } }
}

fn devices(result: &RunResult, timeline: &Timeline<'_>, load: &str, index: usize) -> Markup {
    let figures = device::figures(result, timeline, &format!("system-{index}"));
    let layouts = timeline.typical().map(|trial| trial.layout);
    html! {
        @if let Some(figures) = figures {
            h4 { "Devices and system over time: " (load) ", round " (timeline.typical_round) }
            ul.legend {
                @for (index, layout) in layouts.filter_map(|index| Some((index, result.layouts.get(index)?))) {
                    li { span class={ "swatch " (colour_class(index)) } aria-hidden="true" {} (index + 1) " " (layout.name) }
                }
            }
            (figures)
        }
    }
}
