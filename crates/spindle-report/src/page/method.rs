//! How it was measured: all that is needed to judge the answer and to have it again.

use maud::{Markup, html};

use super::parts::{facts_table, layout_name, scrolling};
use super::why::with_names;
use super::{machine, times};
use crate::comparison::{CHECKS, CHECKS_NOTE};
use crate::diagram;
use crate::facts::facts;
use crate::io_calls;
use crate::sentences::{
    REPEAT, REPEAT_COMMAND, costs, emulation_terms, how_compared, memory_terms,
};
use spindle_result::{Case, RunResult, Trial};
use spindle_text::quantity::thousands;

pub(super) fn section(result: &RunResult) -> Markup {
    html! {
        section aria-labelledby="method" {
            h2 id="method" { "How it was measured" }
            p { (how_compared(result)) " " (memory_terms(result)) (emulation_terms(result)) (costs(result)) }
            (warnings(result))
            h3 id="layouts" { "Layouts" }
            (diagram::diagrams(result))
            details {
                summary { "Layouts in words" }
                (layouts_table(result))
            }
            (machine::section(result))
            h3 id="repeat" { "To repeat it" }
            p { (REPEAT) }
            pre { code { (REPEAT_COMMAND) } }
            details.on-screen {
                summary { "The experiment, with every default" }
                @if result.layouts.iter().any(|layout| layout.engine.is_none()) {
                    p.note { "The engine " code { "kernel" } " is the embedded database." }
                }
                (facts_table("Experiment", facts(result.experiment.document())))
            }
            details.on-screen {
                summary { "Order of trials" }
                (order_table(result))
            }
            @if !result.variances.is_empty() {
                details {
                    summary { "Where the variance is" }
                    ul { @for variance in &result.variances { li { (variance.sentence) } } }
                }
            }
            (times::table(result))
            details.on-screen {
                summary { "Checks of every trial" }
                (checks_table(result))
            }
            details.on-screen {
                summary { "Space" }
                (space_table(result))
            }
        }
    }
}

fn warnings(result: &RunResult) -> Markup {
    html! {
        @if !result.warnings.is_empty() {
            section.warnings aria-labelledby="warnings" {
                h3 id="warnings" { "What weakens this answer" }
                ul { @for warning in &result.warnings { li { (with_names(&warning.text)) } } }
            }
        }
    }
}

fn layouts_table(result: &RunResult) -> Markup {
    scrolling(
        "Layouts",
        html! {
            table {
                thead { tr { @for title in ["layout", "caching", "method", "path", "description", "notes"] { th scope="col" { (title) } } } }
                tbody { @for layout in &result.layouts {
                    tr {
                        th scope="row" { (layout_name(result, &layout.name)) }
                        td { (layout.caching) }
                        td { (layout.method) }
                        td.words { (layout.path) }
                        td.words { (layout.description) }
                        td.words { (layout.all_notes().join("; ")) }
                    }
                } }
            }
        },
    )
}

fn checks_table(result: &RunResult) -> Markup {
    let measured = result.cases.iter().filter(|case| !case.trials.is_empty());
    html! {
        p.note { (CHECKS_NOTE) }
        (scrolling("Checks of every trial", html! {
            table {
                thead { tr {
                    th scope="col" { "layout" }
                    @for check in CHECKS { th.figure scope="col" { (check.title) } }
                } }
                tbody { @for case in measured { @for trial in &case.trials {
                    tr {
                        th scope="row" { (layout_name(result, &case.id.layout)) }
                        @for check in CHECKS { td.figure { ((check.cell)(case, trial)) } }
                    }
                } } }
            }
        }))
        @for line in io_calls::lines(result) { p.note { (line) } }
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
                        th scope="row" { (layout_name(result, &case.id.layout)) }
                        td { (segment.segment) }
                        td.figure { (case.id.load.in_column()) }
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
                    th scope="col" { "layout" }
                    @for title in ["round", "position", "clients", "measured, s", "flush, s", "tpm", "blocks restored", "restored in, ms"] { th.figure scope="col" { (title) } }
                    th scope="col" { "verified" }
                    th scope="col" { "restore method" }
                } }
                tbody { @for (case, trial) in trials_in_order(result) {
                    tr {
                        th scope="row" { (layout_name(result, &case.id.layout)) }
                        td.figure { (trial.round) }
                        td.figure { (trial.position) }
                        td.figure { (case.id.load.in_column()) }
                        td.figure { (format!("{:.1}", trial.measured_s - trial.flush_s().unwrap_or(0.0))) }
                        td.figure { (trial.flush_s().map_or_else(String::new, |seconds| format!("{seconds:.1}"))) }
                        td.figure { (thousands(trial.tpm)) }
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
pub(crate) fn trials_in_order(result: &RunResult) -> Vec<(&Case, &Trial)> {
    let mut trials: Vec<(&Case, &Trial)> = Vec::new();
    for case in &result.cases {
        trials.extend(case.trials.iter().map(|trial| (case, trial)));
    }
    trials.sort_by_key(|(_, trial)| (trial.round, trial.position));
    trials
}
