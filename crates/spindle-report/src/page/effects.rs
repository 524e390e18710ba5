//! What each setting of a matrix does.

use maud::{Markup, html};

use super::parts::scrolling;
use crate::effects::{EffectTable, HEADER, INTERACTIONS_HEADER};
use crate::sentences::{EFFECTS, of_half};
use spindle_result::RunResult;

/// Nothing where nothing was varied.
pub(super) fn section(result: &RunResult) -> Markup {
    let rows = EffectTable::of(result);
    html! {
        @if !result.factor_answers.is_empty() {
            section aria-labelledby="effects" {
                h2 id="effects" { "Effects" }
                p { (EFFECTS) ":" }
                ul { @for answer in &result.factor_answers {
                    li { (answer.told()) " (" (answer.load) ")" }
                } }
                @if let Some(half) = of_half(result) { p.note { (half) } }
                (table("Effects", &HEADER, &rows.effects))
                @if !rows.interactions.is_empty() {
                    details {
                        summary { "Do settings depend on each other?" }
                        (table("Interactions", &INTERACTIONS_HEADER, &rows.interactions))
                        p.note {
                            "The effect of a setting at two values of another, and how far the two effects differ. Their intervals \
                             hold together, too."
                        }
                    }
                }
            }
        }
    }
}

fn table(label: &str, header: &[&str], rows: &[Vec<String>]) -> Markup {
    scrolling(
        label,
        html! {
            table {
                thead { tr { @for title in header { th scope="col" { (title) } } } }
                tbody { @for row in rows { tr { @for cell in row { td { (cell) } } } } }
            }
        },
    )
}
