//! Where the wall time of a run went: a row for each thing that was done, over all trials.

use maud::{Markup, html};

use super::parts::scrolling;
use crate::times::parts;
use spindle_result::RunResult;

/// The table; nothing for runs of versions that did not keep these times.
pub(super) fn table(result: &RunResult) -> Markup {
    let parts = parts(result);
    html! {
        @if !parts.is_empty() {
            details {
                summary { "Where the time went" }
                (scrolling("Where the time went", html! {
                    table {
                        thead { tr {
                            th scope="col" { "what" }
                            th.figure scope="col" { "seconds" }
                            th.figure scope="col" { "share" }
                        } }
                        tbody { @for part in &parts { tr {
                            th scope="row" { (part.what) }
                            td.figure { (format!("{:.1}", part.ms as f64 / 1e3)) }
                            td.figure { (format!("{:.0} %", part.percent)) }
                        } } }
                    }
                }))
            }
        }
    }
}
