//! Parts that the sections of a page have alike: how a layout is named, how tables stand.

use maud::{Markup, html};
use spindle_result::RunResult;

use crate::chart::colour_class;
use crate::facts::Fact;

/// Number, colour and name of a layout.
pub(super) fn layout_name(result: &RunResult, name: &str) -> Markup {
    let number = result.layout_number(name);
    html! {
        @if let Some(number) = number {
            span class={ "swatch " (colour_class(number - 1)) } aria-hidden="true" {}
            span.number { (number) } " "
        }
        (name)
    }
}

/// Colour and name of a layout, beside another number.
pub(super) fn unnumbered(result: &RunResult, name: &str) -> Markup {
    html! {
        @if let Some(number) = result.layout_number(name) {
            span class={ "swatch " (colour_class(number - 1)) } aria-hidden="true" {}
        }
        (name)
    }
}

/// Settings by their paths, as they stand in a document.
pub(super) fn facts_table(label: &str, facts: Vec<Fact>) -> Markup {
    html! {
        (scrolling(label, html! {
            table.facts {
                tbody { @for fact in facts {
                    tr { th scope="row" { (fact.path) } td.words { (fact.text()) } }
                } }
            }
        }))
    }
}

/// A table that scrolls by itself where the screen is narrow; `label` names it for screen readers.
pub(super) fn scrolling(label: &str, table: Markup) -> Markup {
    html! { div.scroll role="region" aria-label=(label) tabindex="0" { (table) } }
}
