//! `report.html`: one page for people, answer first. All of it is there without scripts; the script adds what a pointer
//! asks for: values under it, other rounds, other windows of the moving average, drawings and figures as files.
//!
//! [`calibration`] is the page of what storage can do by itself.
//!
//! Each section is a file: [`answer`] (ranking, comparison; in [`pairs`] every pair), [`why`], [`charts`], [`method`],
//! [`machine`].

mod answer;
mod calibration;
mod charts;
mod effects;
mod machine;
mod method;
mod pairs;
mod times;
mod why;

pub use calibration::html as calibration_html;
pub(super) use method::trials_in_order;
pub(super) use why::events_of;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::colour_class;
use super::facts::Fact;
use super::sentences::{context, experiment_name};
use spindle_result::{RunResult, SampledTrial};

/// The page's style: layout, light and dark colours, print.
const STYLE: &str = include_str!("style.css");

/// The style of drawings alone, which goes with a drawing that is kept as a file.
const DRAWING_STYLE: &str = include_str!("drawing.css");

/// Characters of a headline that stand in large letters and leave room for the ranking.
const SHORT_HEADLINE: usize = 200;

/// The page's script.
const SCRIPT: &str = include_str!("script.js");

/// Holds browsers to it that the page asks for nothing beyond itself, whatever it contains.
const NOTHING_FETCHED: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The whole page. `series` holds the throughput over time of the trials that were sampled.
pub fn html(result: &RunResult, series: &[SampledTrial]) -> String {
    let name = experiment_name(result);
    let header = html! {
        p.experiment { "Spindle · " (name) br; (context(result)) }
        h1.long[result.headline.chars().count() > SHORT_HEADLINE] { (result.headline) }
        (weakness(result))
        (contents(result))
    };
    let main = html! {
        (answer::section(result))
        (effects::section(result))
        (why::section(result))
        (charts::section(result, series))
        (method::section(result))
    };
    document(&format!("{name}: {}", result.headline), &header, &main)
}

/// A page that stands alone: its style, its script, and nothing that is fetched.
fn document(title: &str, header: &Markup, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(NOTHING_FETCHED);
                title { (title) }
                style { (PreEscaped(STYLE)) }
                style id="drawing-style" { (PreEscaped(DRAWING_STYLE)) }
            }
            body {
                header { (header) }
                main { (main) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Links to what the page has.
fn contents(result: &RunResult) -> Markup {
    let sections = [
        ("ranking", "Ranking", true),
        ("comparison", "Comparison", true),
        ("effects", "Effects", !result.factor_answers.is_empty()),
        ("why", "Why", true),
        ("charts", "Charts", !result.rankings.is_empty()),
        ("method", "How it was measured", true),
        ("layouts", "Layouts", true),
        ("machine", "Machine", true),
        ("repeat", "To repeat it", true),
    ];
    html! {
        nav.contents aria-label="Contents" { ul {
            @for (id, title, _) in sections.iter().filter(|(_, _, is_there)| *is_there) {
                li { a href={ "#" (id) } { (title) } }
            }
        } }
    }
}

/// The gravest of what weakens the answer, beside the answer; all of it stands with the method.
fn weakness(result: &RunResult) -> Markup {
    html! {
        @if let Some(gravest) = result.warnings.first() {
            p.weakness {
                strong { "What weakens this answer: " }
                (why::with_names(&gravest.text)) " "
                @if result.warnings.len() > 1 {
                    a href="#warnings" { "All " (result.warnings.len()) " warnings" }
                }
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

/// Colour and name of a layout, beside another number.
fn unnumbered(result: &RunResult, name: &str) -> Markup {
    html! {
        @if let Some(number) = result.layout_number(name) {
            span class={ "swatch " (colour_class(number - 1)) } aria-hidden="true" {}
        }
        (name)
    }
}

/// Settings by their paths, as they stand in a document.
fn facts_table(label: &str, facts: Vec<Fact>) -> Markup {
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
fn scrolling(label: &str, table: Markup) -> Markup {
    html! { div.scroll role="region" aria-label=(label) tabindex="0" { (table) } }
}
