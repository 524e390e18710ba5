//! Where the wall time of a run went: a row for each thing that was done, over all trials.

use maud::{Markup, html};

use super::parts::scrolling;
use spindle_result::{RunResult, Trial, TrialTimes};

/// What a part is called, and its milliseconds.
type Part = (&'static str, fn(&TrialTimes) -> u64);

/// The parts of a trial, in their order.
const PARTS: [Part; 9] = [
    ("putting databases back", |times| times.restore_ms),
    ("waiting for quiet", |times| times.quiet_ms),
    ("probing the devices", |times| times.probe_ms),
    ("starting databases", |times| times.start_ms),
    ("warm-up", |times| times.warm_up_ms),
    ("measured", |times| times.measured_ms),
    ("flush at the end", |times| times.flush_ms),
    ("checking that nothing was lost", |times| times.check_ms),
    ("stopping databases", |times| times.stop_ms),
];

/// The table; nothing for runs of versions that did not keep these times.
pub(super) fn table(result: &RunResult) -> Markup {
    let rows = rows(result);
    html! {
        @if !rows.is_empty() {
            details {
                summary { "Where the time went" }
                (scrolling("Where the time went", html! {
                    table {
                        thead { tr {
                            th scope="col" { "what" }
                            th.figure scope="col" { "seconds" }
                            th.figure scope="col" { "share" }
                        } }
                        tbody { @for (what, seconds, percent) in &rows { tr {
                            th scope="row" { (what) }
                            td.figure { (format!("{seconds:.1}")) }
                            td.figure { (format!("{percent:.0} %")) }
                        } } }
                    }
                }))
            }
        }
    }
}

/// What was done, seconds, percent of all: before the trials, and in them.
fn rows(result: &RunResult) -> Vec<(String, f64, f64)> {
    let set_aside = result.cases.iter().flat_map(|case| &case.set_aside);
    let aside = set_aside.map(|of| &of.trial);
    let counted = result.cases.iter().flat_map(|case| &case.trials);
    let times_of = |trial: &Trial| trial.conditions.times;
    let times: Vec<TrialTimes> = counted.filter_map(times_of).collect();
    let aside_ms: u64 = aside.filter_map(times_of).map(|times| times.whole_ms).sum();
    let mut parts: Vec<(String, u64)> = result
        .phases
        .iter()
        .map(|phase| (phase.what.clone(), phase.ms))
        .collect();
    let sum = |of: fn(&TrialTimes) -> u64| times.iter().map(of).sum::<u64>();
    parts.extend(
        PARTS
            .iter()
            .map(|(what, of)| ((*what).to_owned(), sum(*of))),
    );
    let known: u64 = PARTS.iter().map(|(_, of)| sum(*of)).sum();
    let whole = sum(|times| times.whole_ms);
    parts.push(("other, in trials".to_owned(), whole.saturating_sub(known)));
    parts.push(("trials that were set aside".to_owned(), aside_ms));
    let all: u64 = parts.iter().map(|(_, ms)| ms).sum();
    let parts = parts.into_iter().filter(|(_, ms)| *ms > 0);
    parts
        .map(|(what, ms)| (what, ms as f64 / 1e3, 100.0 * ms as f64 / all as f64))
        .collect()
}
