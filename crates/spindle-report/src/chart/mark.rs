//! What is drawn between the axes. A mark knows its values, the class that gives it its colour, and its text.

use plotters::element::{Drawable, PointCollection};
use plotters_backend::{BackendCoord, DrawingBackend, DrawingErrorKind};

use super::sheet::Sheet;

/// A line, a box, a dot or a text at values of the axes.
pub(super) struct Mark {
    shape: MarkShape,
    class: String,
    values: Vec<(f64, f64)>,
    /// Shown when the mark is pointed at; of a text, the text itself.
    text: String,
}

enum MarkShape {
    Line,
    Box,
    Dot { radius: f64 },
    Text { centred: bool },
}

impl Mark {
    /// A line through values.
    pub(super) fn line(class: impl Into<String>, values: Vec<(f64, f64)>) -> Mark {
        Mark::new(MarkShape::Line, class, values, "")
    }

    /// A box between two corners.
    pub(super) fn filled_box(
        class: impl Into<String>,
        corners: [(f64, f64); 2],
        text: impl Into<String>,
    ) -> Mark {
        Mark::new(MarkShape::Box, class, corners.to_vec(), text)
    }

    /// A dot of a radius in units of the drawing.
    pub(super) fn dot(
        class: impl Into<String>,
        at: (f64, f64),
        radius: f64,
        text: impl Into<String>,
    ) -> Mark {
        Mark::new(MarkShape::Dot { radius }, class, vec![at], text)
    }

    /// A text that begins at a place.
    pub(super) fn text(class: impl Into<String>, at: (f64, f64), text: impl Into<String>) -> Mark {
        Mark::new(MarkShape::Text { centred: false }, class, vec![at], text)
    }

    /// A text with its middle at a place.
    pub(super) fn centred_text(
        class: impl Into<String>,
        at: (f64, f64),
        text: impl Into<String>,
    ) -> Mark {
        Mark::new(MarkShape::Text { centred: true }, class, vec![at], text)
    }

    /// Where the mark stands.
    #[cfg(test)]
    pub(super) fn values(&self) -> &[(f64, f64)] {
        &self.values
    }

    fn new(
        shape: MarkShape,
        class: impl Into<String>,
        values: Vec<(f64, f64)>,
        text: impl Into<String>,
    ) -> Mark {
        Mark {
            shape,
            class: class.into(),
            values,
            text: text.into(),
        }
    }
}

impl<'a> PointCollection<'a, (f64, f64)> for &'a Mark {
    type Point = &'a (f64, f64);
    type IntoIter = std::slice::Iter<'a, (f64, f64)>;

    fn point_iter(self) -> Self::IntoIter {
        self.values.iter()
    }
}

impl<'a> Drawable<Sheet<'a>> for Mark {
    fn draw<I: Iterator<Item = BackendCoord>>(
        &self,
        mut places: I,
        sheet: &mut Sheet<'a>,
        _: (u32, u32),
    ) -> Result<(), DrawingErrorKind<<Sheet<'a> as DrawingBackend>::ErrorType>> {
        match self.shape {
            MarkShape::Line => sheet.line(&self.class, places),
            MarkShape::Box => {
                if let (Some(from), Some(to)) = (places.next(), places.next()) {
                    sheet.filled_box(&self.class, from, to, &self.text);
                }
            }
            MarkShape::Dot { radius } => {
                if let Some(at) = places.next() {
                    sheet.dot(&self.class, at, radius, &self.text);
                }
            }
            MarkShape::Text { centred } => {
                if let Some(at) = places.next() {
                    sheet.text(&self.class, at, centred, &self.text);
                }
            }
        }
        Ok(())
    }
}
