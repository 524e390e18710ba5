//! Below the ranking: every layout beside every other.

use maud::{Markup, html};

use super::parts::{layout_name, scrolling};
use crate::chart::colour_class;
use crate::pairs::{PairTable, left_out};
use crate::sentences::{ALL_PAIRS, compared_by, load_name};
use spindle_result::RunResult;

/// One table for each workload and load level, folded up: the ranking has said what matters most.
pub(super) fn tables(result: &RunResult) -> Markup {
    let matrices: Vec<(String, PairTable<'_>)> = result
        .rankings
        .iter()
        .filter_map(|ranking| {
            Some((
                load_name(result, ranking.load),
                PairTable::of(result, ranking)?,
            ))
        })
        .collect();
    html! {
        @if !matrices.is_empty() {
            details.pairs {
                summary { "Every pair of layouts" }
                @for (load, matrix) in &matrices {
                    h4 { (load) }
                    (scrolling(&format!("Every pair of layouts: {load}"), table(result, matrix)))
                }
                p.note { (ALL_PAIRS) " " (compared_by(result)) }
            }
        }
        @if let Some(left_out) = left_out(result) { p.note { (left_out) } }
    }
}

fn table(result: &RunResult, matrix: &PairTable<'_>) -> Markup {
    html! {
        table {
            thead { tr {
                th scope="col" { "layout, beside" }
                @for column in &matrix.layouts { th.figure scope="col" { (number(result, column)) } }
            } }
            tbody { @for row in &matrix.layouts {
                tr {
                    th scope="row" { (layout_name(result, row)) }
                    @for column in &matrix.layouts {
                        td.figure {
                            @if let Some(cell) = matrix.cell(row, column) {
                                (cell.ratio)
                                small { (cell.interval) }
                                small { (cell.verdict) }
                            }
                        }
                    }
                }
            } }
        }
    }
}

/// A layout at the head of a column, where there is no room for its name.
fn number(result: &RunResult, layout: &str) -> Markup {
    let number = result.layout_number(layout).unwrap_or(1);
    html! {
        abbr title=(layout) {
            span class={ "swatch " (colour_class(number - 1)) } aria-hidden="true" {}
            (number)
        }
    }
}
