//! The frame of a page: its head, its style and its script. Each page is put into it.

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The page's style: layout, light and dark colours, print.
const STYLE: &str = include_str!("style.css");

/// The style of drawings alone, which goes with a drawing that is kept as a file.
const DRAWING_STYLE: &str = include_str!("drawing.css");

/// The page's script.
const SCRIPT: &str = include_str!("script.js");

/// Holds browsers to it that the page asks for nothing beyond itself, whatever it contains.
const NOTHING_FETCHED: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// A page that stands alone: its style, its script, and nothing that is fetched.
pub(super) fn document(title: &str, header: &Markup, main: &Markup) -> String {
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
