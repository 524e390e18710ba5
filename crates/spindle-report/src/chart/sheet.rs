//! The paper that `plotters` draws on: SVG without its own colours. Lines that the library draws are the grid;
//! everything else is a [`super::Mark`], which brings its class.

use std::convert::Infallible;
use std::fmt::Write as _;

use maud::{PreEscaped, html};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

/// The library counts in whole steps; a unit of the drawing has this many.
pub(super) const SUBUNITS: u32 = 10;

/// Width of a character on average, as a share of its height: that of common sans-serif fonts, a little more to be
/// safe.
const CHARACTER_WIDTH: f64 = 0.58;

/// A position in units of the drawing.
pub(super) fn units(steps: i32) -> f64 {
    f64::from(steps) / f64::from(SUBUNITS)
}

/// How wide a text will be, in the unit of its height.
pub(super) fn text_width(text: &str, height: f64) -> f64 {
    text.chars().count() as f64 * height * CHARACTER_WIDTH
}

/// SVG being written.
pub(super) struct Sheet<'a> {
    svg: &'a mut String,
    size: (u32, u32),
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

/// The styles of lines in `drawing.css`: each has a stroke there and is not filled.
const LINE_STYLES: [&str; 6] = ["grid", "raw", "average", "checkpoint", "span", "interval"];

impl<'a> Sheet<'a> {
    /// An empty sheet of this many units; what is drawn is added to `svg`.
    pub(super) fn new(svg: &'a mut String, width: u32, height: u32) -> Sheet<'a> {
        Sheet {
            svg,
            size: (width * SUBUNITS, height * SUBUNITS),
        }
    }

    /// A line through points, with the classes of its style, of which the first is one of [`LINE_STYLES`].
    pub(super) fn line(&mut self, class: &str, points: impl IntoIterator<Item = BackendCoord>) {
        debug_assert!(
            LINE_STYLES
                .iter()
                .any(|style| class.split(' ').next() == Some(style)),
            "{class}: a line without a style would be filled with black"
        );
        let _ = write!(self.svg, "<path class=\"{class}\" d=\"");
        for (index, (x, y)) in points.into_iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(self.svg, "{command}{} {}", units(x), units(y));
        }
        self.svg.push_str("\"></path>");
    }

    /// A box between two corners. Its text shows when it is pointed at.
    pub(super) fn filled_box(
        &mut self,
        class: &str,
        from: BackendCoord,
        to: BackendCoord,
        text: &str,
    ) {
        let (x, y) = (units(from.0.min(to.0)), units(from.1.min(to.1)));
        let (width, height) = (units((to.0 - from.0).abs()), units((to.1 - from.1).abs()));
        self.add(html! {
            rect class=(class) x=(x) y=(y) width=(width) height=(height) { title { (text) } }
        });
    }

    /// A dot. Its text shows when it is pointed at.
    pub(super) fn dot(&mut self, class: &str, at: BackendCoord, radius: f64, text: &str) {
        self.add(html! {
            circle class=(class) cx=(units(at.0)) cy=(units(at.1)) r=(radius) { title { (text) } }
        });
    }

    /// A text that begins at a place, or has its middle there.
    pub(super) fn text(&mut self, class: &str, at: BackendCoord, centred: bool, text: &str) {
        self.add(html! {
            text class=(class) x=(units(at.0)) y=(units(at.1)) text-anchor=[centred.then_some("middle")] { (text) }
        });
    }

    fn add(&mut self, markup: PreEscaped<String>) {
        self.svg.push_str(&markup.0);
    }
}

impl DrawingBackend for Sheet<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    /// A sheet has no pixels; nothing that is drawn here asks for one.
    fn draw_pixel(&mut self, _: BackendCoord, _: BackendColor) -> Drawn {
        Ok(())
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        if style.color().alpha > 0.0 {
            self.line("grid", path);
        }
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let below = match style.anchor().v_pos {
            VPos::Top => "0.8em",
            VPos::Center => "0.35em",
            VPos::Bottom => "0",
        };
        self.add(html! {
            text x=(units(at.0)) y=(units(at.1)) dy=(below) text-anchor=(anchor) { (text) }
        });
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let height = style.size();
        Ok((text_width(text, height).ceil() as u32, height.ceil() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_stroked_and_not_filled() {
        let rules = include_str!("../page/drawing.css");
        for style in LINE_STYLES {
            let is_it =
                |rule: &&str| rule.contains(&format!(".{style}")) && rule.contains("fill: none");
            let rule = rules.split('}').find(is_it);
            assert!(rule.is_some_and(|rule| rule.contains("stroke:")), "{style}");
        }
    }
}
