//! What stands around a drawing: its heading, what its colours mean, its figures as a table, and the buttons that keep
//! it as SVG or CSV, which show when scripts run.

use maud::{Markup, PreEscaped, html};
use serde_json::Value;

/// The figures of a drawing.
pub(crate) enum Figures {
    /// A table, for those who cannot or do not want to see the drawing.
    Table {
        /// What the columns are.
        header: Vec<String>,
        /// A cell for each of them.
        rows: Vec<Vec<String>>,
    },
    /// Series over time: too long to be read, there for the script.
    Series(Value),
}

/// A drawing with everything around it.
pub(super) struct Figure<'a> {
    /// Unlike that of any other on the page; the name of files that are kept of it.
    pub(super) id: &'a str,
    /// What is drawn.
    pub(super) heading: &'a str,
    /// What the colours mean: class and name of each.
    pub(super) legend: Vec<(String, String)>,
    /// The drawing.
    pub(super) drawing: Markup,
    /// How it is to be read.
    pub(super) note: String,
    /// What else the script can change.
    pub(super) controls: Markup,
    /// What is drawn, as figures.
    pub(super) figures: Figures,
}

impl Figure<'_> {
    pub(super) fn markup(self) -> Markup {
        html! {
            figure.chart id=(self.id) {
                figcaption { (self.heading) }
                @if !self.legend.is_empty() {
                    ul.legend {
                        @for (class, name) in &self.legend {
                            li { span class={ "swatch " (class) } aria-hidden="true" {} (name) }
                        }
                    }
                }
                (self.drawing)
                @if !self.note.is_empty() { p.note { (self.note) } }
                div.tools hidden {
                    (self.controls)
                    button type="button" data-keep="svg" aria-label={ (self.heading) " as SVG" } { "SVG" }
                    button type="button" data-keep="csv" aria-label={ (self.heading) " as CSV" } { "CSV" }
                }
                @match &self.figures {
                    Figures::Table { header, rows } => (table(header, rows)),
                    Figures::Series(series) => script type="application/json" { (embedded(series)) },
                }
            }
        }
    }
}

fn table(header: &[String], rows: &[Vec<String>]) -> Markup {
    html! {
        details {
            summary { "Figures" }
            div.scroll tabindex="0" role="region" aria-label="Figures of the chart" {
                table {
                    thead { tr { @for (index, title) in header.iter().enumerate() {
                        th.figure[index > 0] scope="col" { (title) }
                    } } }
                    tbody { @for row in rows { tr {
                        @for (index, cell) in row.iter().enumerate() {
                            @if index == 0 { th scope="row" { (cell) } } @else { td.figure { (cell) } }
                        }
                    } } }
                }
            }
        }
    }
}

/// JSON that cannot end the element it stands in, as every `<` is written as an escape.
fn embedded(value: &Value) -> PreEscaped<String> {
    PreEscaped(value.to_string().replace('<', "\\u003c"))
}
