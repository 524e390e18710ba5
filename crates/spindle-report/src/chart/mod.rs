//! The drawings of the page. One file holds one chart: it says which marks stand where, and gives them to [`draw`].
//! Axes, ticks, grid and the way from a value to a place on the paper are those of the library `plotters`; [`sheet`] is
//! its paper, which writes SVG that the page's own style colours, so that one drawing serves light, dark and print. A
//! chart is drawn twice, for a screen and for a phone, as text that shrinks with its drawing cannot be read. Why so:
//! `docs/decisions/0024-the-page.md`.

mod axis;
pub(super) mod device;
mod figure;
pub(super) mod histogram;
pub(super) mod latency;
pub(super) mod limits;
pub(super) mod load;
mod mark;
pub(super) mod probe;
pub(super) mod queries;
pub(super) mod ranking;
pub(super) mod rates;
pub(super) mod scaling;
mod sheet;
pub(super) mod stacked;
pub(super) mod thin;
pub(super) mod throughput;

use maud::{Markup, PreEscaped, html};
use plotters::prelude::{ChartBuilder, IntoDrawingArea, IntoFont, TRANSPARENT};

use axis::Axis;
use mark::Mark;
use sheet::{SUBUNITS, Sheet};
use spindle_result::RunResult;

/// How many colours the page's style defines; further layouts take them again, dashed.
const COLOURS: usize = 8;

/// Height of the text of a drawing, in its units; the page's style has the same.
const TEXT_SIZE: u32 = 12;

/// Room at the sides for half of the last value's text, in units.
const MARGIN: u32 = 16;

/// Classes that give a layout its colour, by its index.
pub(super) fn colour_class(layout: usize) -> String {
    let colour = format!("c{}", layout % COLOURS + 1);
    if layout < COLOURS {
        colour
    } else {
        colour + " again"
    }
}

/// Index of a layout, by which it has its colour.
fn layout_index(result: &RunResult, layout: &str) -> usize {
    let number = result.layout_number(layout);
    number.map_or(0, |number| number - 1)
}

/// Number and name of a layout, as drawings show it.
fn numbered(result: &RunResult, layout: &str) -> String {
    format!("{} {layout}", layout_index(result, layout) + 1)
}

/// Where a drawing is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    /// On a screen or on paper, over the width of the page.
    Wide,
    /// On a phone.
    Narrow,
    /// As one of several that stand beside each other.
    Small,
}

impl Size {
    /// Units of a drawing from left to right: about the pixels that it takes.
    const fn width(self) -> u32 {
        match self {
            Size::Wide => 1_000,
            Size::Narrow => 340,
            Size::Small => 370,
        }
    }

    /// The class by which the page's style shows one of the two.
    const fn class(self) -> &'static str {
        match self {
            Size::Wide => "wide",
            Size::Narrow => "narrow",
            Size::Small => "small",
        }
    }

    /// About how many values an axis names.
    const fn ticks(self) -> usize {
        match self {
            Size::Wide => 8,
            Size::Narrow | Size::Small => 4,
        }
    }
}

/// The paper of a drawing, its axes and what it is called.
struct Frame<'a> {
    /// Where it is looked at.
    size: Size,
    /// Its height in units.
    height: u32,
    /// The axis from left to right.
    x: Axis,
    /// What stands on it, with its unit.
    x_title: &'a str,
    /// The axis from bottom to top.
    y: Axis,
    /// What stands on it, with its unit; empty where the marks are rows with their own names.
    y_title: &'a str,
    /// What a screen reader says instead of the drawing.
    label: &'a str,
}

/// A drawing as SVG. Where its area lies and what it spans stand in its attributes, for the page's script.
fn draw(frame: &Frame<'_>, marks: Vec<Mark>) -> Markup {
    let (width, height) = (frame.size.width(), frame.height);
    let mut body = String::new();
    let area = plot(frame, marks, &mut body);
    let class = format!("plot {}", frame.size.class());
    let view_box = format!("0 0 {width} {height}");
    let [x, y] = [&frame.x, &frame.y].map(|axis| {
        let (start, end) = axis.ends();
        format!("{start} {end}")
    });
    html! {
        svg xmlns=(SVG_NAMESPACE) class=(class) viewBox=(view_box) role="img" aria-label=(frame.label)
            data-area=(area) data-x=(x) data-y=(y) {
            (PreEscaped(body))
            @if !frame.y_title.is_empty() { text.title x="0" y=(TEXT_SIZE) { (frame.y_title) } }
            text.title x=(width - MARGIN) y=(height - 4) text-anchor="end" { (frame.x_title) }
        }
    }
}

/// Needed by a drawing that is kept as a separate file.
const SVG_NAMESPACE: &str = "http://www.w3.org/2000/svg";

/// Lets the library draw axes and marks, and returns the edges of the area between the axes: left, top, right, bottom.
fn plot(frame: &Frame<'_>, marks: Vec<Mark>, body: &mut String) -> String {
    const NEVER: &str = "the sheet takes all that is drawn on it";
    let scaled = |units: u32| units * SUBUNITS;
    let rows = frame.y_title.is_empty();
    let root = Sheet::new(body, frame.size.width(), frame.height).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin_top(scaled(if rows { 2 } else { 2 * TEXT_SIZE }))
        .margin_right(scaled(MARGIN))
        .margin_bottom(scaled(TEXT_SIZE + 8))
        .x_label_area_size(scaled(TEXT_SIZE + 8))
        .y_label_area_size(scaled(if rows { MARGIN } else { 44 }))
        .build_cartesian_2d(frame.x.clone(), frame.y.clone())
        .expect(NEVER);
    let font = ("sans-serif", scaled(TEXT_SIZE)).into_font();
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT)
        .label_style(font)
        .set_all_tick_mark_size(scaled(4))
        .x_labels(frame.size.ticks())
        .y_labels(5);
    if rows {
        mesh.disable_y_mesh().disable_y_axis();
    }
    mesh.draw().expect(NEVER);
    chart.draw_series(marks).expect(NEVER);
    let (x, y) = chart.plotting_area().get_pixel_range();
    let edges = [x.start, y.start, x.end, y.end].map(|edge| sheet::units(edge).to_string());
    edges.join(" ")
}

/// The drawing for a screen and the one for a phone.
fn both(draw: impl Fn(Size) -> Markup) -> Markup {
    html! { (draw(Size::Wide)) (draw(Size::Narrow)) }
}

/// A text of at most this many characters; one that is longer ends in an ellipsis.
fn shortened(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    let kept: String = text.chars().take(longest - 1).collect();
    format!("{}…", kept.trim_end())
}

/// The greatest of some values, and 0 without any.
pub(super) fn greatest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ninth_layout_takes_the_first_colour_dashed() {
        assert_eq!(colour_class(7), "c8");
        assert_eq!(colour_class(8), "c1 again");
    }

    #[test]
    fn a_long_name_ends_in_an_ellipsis() {
        assert_eq!(shortened("direct, async", 13), "direct, async");
        assert_eq!(shortened("direct, async", 9), "direct,…");
    }

    #[test]
    fn marks_stand_where_the_axes_say() {
        let frame = Frame {
            size: Size::Narrow,
            height: 200,
            x: Axis::linear(0.0, 10.0),
            x_title: "seconds",
            y: Axis::linear(0.0, 100.0),
            y_title: "per minute",
            label: "a line",
        };
        let marks = vec![Mark::line("raw", vec![(0.0, 0.0), (10.0, 100.0)])];
        let svg = draw(&frame, marks).into_string();
        let numbers = |after: &str, end: char| -> Vec<f64> {
            let rest = svg.split(after).nth(1).expect("it is there");
            let text = rest.split(end).next().unwrap_or_default();
            let numbers = text.split([' ', 'L']).map(|number| number.parse());
            numbers.collect::<Result<_, _>>().expect("numbers")
        };
        let [left, top, right, bottom] = numbers("data-area=\"", '"')[..] else {
            panic!("{svg}");
        };
        let line = numbers("class=\"raw\" d=\"M", '"');
        let off = line.iter().zip([left, bottom, right, top]);
        assert!(
            off.clone().all(|(place, edge)| (place - edge).abs() < 0.2),
            "{svg}"
        );
        assert!(svg.contains(">50</text>"), "{svg}");
    }
}
