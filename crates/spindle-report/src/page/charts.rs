//! The charts: one set for each workload and load level, and how layouts scale from one level to the next.

use maud::{Markup, html};

use super::parts::{layout_name, scrolling};
use super::why::events_of;
use crate::bulk_load;
use crate::chart::load::{figure as latency_over_load, figure_of_levels};
use crate::chart::stacked::{self, Bar};
use crate::chart::{device, latency, probe, queries, scaling, throughput};
use crate::costs;
use crate::load_curve::LoadCurve;
use crate::queries::{rates_table, seconds_table, temporary_space_table, time_table};
use crate::sentences::load_name;
use crate::side_by_side::{self, SideBySide};
use crate::timeline::Timeline;
use spindle_result::{Case, Measure, Ranking, RunResult, SampledTrial, TimeUse};

const WAITS_NOTE: &str = "\
Time waited per transaction, sessions and background processes together: what overlaps is counted more than once.";

pub(super) fn section(result: &RunResult, series: &[SampledTrial]) -> Markup {
    html! {
        @if !result.rankings.is_empty() {
            section aria-labelledby="charts" {
                h2 id="charts" { "Charts" }
                @if is_throughput_found(result) {
                    @let heading = format!("Scaling: {}", result.workload);
                    @if let Some(figure) = scaling::figure(result, "scaling-0", &heading) { (figure) }
                }
                @for (index, curve) in LoadCurve::all(result).iter().enumerate() {
                    (figure_of_levels(result, curve, &format!("rates-{index}")))
                }
                @for (index, ranking) in result.rankings.iter().enumerate() {
                    (of_load(result, series, ranking, index))
                }
                @if let Some(figure) = probe::figure(result) { (figure) }
            }
        }
    }
}

/// Whether throughput was found, and not given by a fixed rate.
fn is_throughput_found(result: &RunResult) -> bool {
    let mut rankings = result.rankings.iter();
    rankings.any(|ranking| ranking.measure == Measure::Throughput)
}

fn of_load(result: &RunResult, series: &[SampledTrial], ranking: &Ranking, index: usize) -> Markup {
    let load = load_name(result, ranking.load);
    let cases = result.cases_at(ranking.load);
    let cases: Vec<&Case> = cases.filter(|case| case.is_compared()).collect();
    let timeline = Timeline::of(result, series, ranking);
    let table = seconds_table(result, &cases);
    let more_tables = [
        rates_table(result, &cases),
        temporary_space_table(result, &cases),
        time_table(result, &cases),
        bulk_load::table(result, &cases),
    ];
    html! {
        h3 { (load) }
        @if let Some(table) = &table {
            @if let Some(figure) = queries::figure(result, &cases, table, &format!("queries-{index}")) { (figure) }
        }
        @for table in more_tables.iter().flatten() { (figures(table)) }
        @if let Some(timeline) = &timeline {
            (throughput::figure(result, timeline, &format!("throughput-{index}"), &format!("Throughput over time: {load}")))
        }
        @if let Some(figure) = latency::figure(result, &cases, &format!("latency-{index}"), &format!("Transaction time: {load}")) { (figure) }
        (costs_of(result, ranking))
        @if let Some(figure) = latency_over_load(result, &cases, &format!("load-{index}"), &format!("Latency over load: {load}")) { (figure) }
        (waits(result, &cases, &format!("waits-{index}"), &format!("Waits: {load}")))
        @if let Some(timeline) = &timeline { (devices(result, timeline, &load, index)) }
    }
}

fn costs_of(result: &RunResult, ranking: &Ranking) -> Markup {
    let rows = costs::rows(result, ranking);
    html! {
        @if !rows.is_empty() {
            h4 { "Costs" }
            (scrolling("Costs", html! {
                table.facts {
                    thead { tr { @for title in costs::HEADER { th scope="col" { (title) } } } }
                    tbody { @for row in &rows { tr { @for cell in row { td { (cell) } } } } }
                }
            }))
            p.note { (costs::NOTE) }
        }
    }
}

fn figures(table: &SideBySide) -> Markup {
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
        name: side_by_side::name(result, case),
        parts: events
            .iter()
            .filter_map(|event| {
                let us = case.wait_us_per_transaction(event)?;
                Some((TimeUse::Wait((*event).clone()), us))
            })
            .collect(),
    };
    let bars: Vec<Bar> = cases.iter().map(bar).collect();
    html! { @if !events.is_empty() { (stacked::figure(&bars, id, heading, WAITS_NOTE)) } }
}

fn devices(result: &RunResult, timeline: &Timeline<'_>, load: &str, index: usize) -> Markup {
    let figures = device::figures(result, timeline, &format!("system-{index}"));
    let layouts = timeline.typical().map(|trial| &trial.case.layout);
    html! {
        @if let Some(figures) = figures {
            h4 { "Devices and system over time: " (load) ", round " (timeline.typical_round) }
            ul.legend {
                @for layout in layouts { li { (layout_name(result, layout)) } }
            }
            (figures)
        }
    }
}
