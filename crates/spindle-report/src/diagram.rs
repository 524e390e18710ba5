//! Layouts as drawings: files above, then the access path, the file system or disk group, the volume, the devices. Made
//! from the parts that the run recorded; a layout of an older run is drawn from its access path and place alone.

use maud::{Markup, html};

use super::chart::colour_class;
use spindle_result::{Layout, RunResult, StackKind, StackPart};

/// Units of a drawing from left to right, about its pixels.
const WIDTH: usize = 300;
/// Height of a box, which holds two lines.
const BOX: usize = 40;
/// Room between rows, for the lines that join them.
const GAP: usize = 14;
/// Room between boxes of a row.
const APART: usize = 6;
/// Units that a character takes.
const CHARACTER: usize = 7;

/// A drawing for each layout.
pub(super) fn diagrams(result: &RunResult) -> Markup {
    html! {
        div.diagrams {
            @for (index, layout) in result.layouts.iter().enumerate() {
                figure.diagram {
                    figcaption {
                        span class={ "swatch " (colour_class(index)) } aria-hidden="true" {}
                        span.number { (index + 1) } " " (layout.name)
                    }
                    @for note in layout.all_notes() { p.note { (note) } }
                    (drawing(&rows(layout), &layout.description))
                }
            }
        }
    }
}

/// The parts of a layout from the files down to the devices; of a run of an older version, what is known of them.
fn rows(layout: &Layout) -> Vec<Vec<StackPart>> {
    let part = |kind, title: String, detail: &str| {
        vec![StackPart {
            kind,
            title,
            detail: detail.to_owned(),
        }]
    };
    let mut rows = layout.stack.clone();
    if rows.is_empty() {
        let path = format!("{}, {}", layout.caching, layout.method);
        rows.push(part(StackKind::AccessPath, path, "access path"));
        let place = layout.path.clone();
        rows.push(part(StackKind::FileSystem, place, "path"));
    }
    let emulated = layout.emulated.iter();
    rows.extend(emulated.map(|text| part(StackKind::AccessPath, "made slower".to_owned(), text)));
    rows
}

/// The class that a part is drawn with.
fn class_of(kind: StackKind) -> &'static str {
    match kind {
        StackKind::Files => "files",
        StackKind::AccessPath => "path",
        StackKind::FileSystem => "system",
        StackKind::Volume => "volume",
        StackKind::Device => "device",
    }
}

fn drawing(rows: &[Vec<StackPart>], label: &str) -> Markup {
    let height = rows.len() * (BOX + GAP) - GAP;
    html! {
        svg.stack viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(label) {
            @for (index, parts) in rows.iter().enumerate() {
                @let top = index * (BOX + GAP);
                @if let Some(below) = rows.get(index + 1) { (joints(parts.len(), below.len(), top + BOX)) }
                @for (position, part) in parts.iter().enumerate() { (part_box(part, position, parts.len(), top)) }
            }
        }
    }
}

/// Width of each of some boxes in a row.
fn box_width(boxes: usize) -> usize {
    (WIDTH - 2 - APART * (boxes - 1)) / boxes
}

/// Lines from the first box of a row, which is the one that stands on the next, to each box below.
fn joints(above: usize, below: usize, top: usize) -> Markup {
    let middle = |position: usize, boxes: usize| {
        1 + position * (box_width(boxes) + APART) + box_width(boxes) / 2
    };
    let from = middle(0, above);
    html! {
        @for position in 0..below {
            @let to = if below == 1 { from } else { middle(position, below) };
            line.joint x1=(from) y1=(top) x2=(to) y2=(top + GAP) {}
        }
    }
}

fn part_box(part: &StackPart, position: usize, boxes: usize, top: usize) -> Markup {
    let width = box_width(boxes);
    let left = 1 + position * (width + APART);
    let middle = left + width / 2;
    let fits = (width - 8) / CHARACTER;
    html! {
        g {
            title { (part.title) ": " (part.detail) }
            rect class={ "box " (class_of(part.kind)) } x=(left) y=(top + 1) width=(width) height=(BOX - 2) rx="5" {}
            text.box-title x=(middle) y=(top + 17) text-anchor="middle" { (shortened(&part.title, fits)) }
            text.box-detail x=(middle) y=(top + 32) text-anchor="middle" { (shortened(&part.detail, fits + 1)) }
        }
    }
}

/// A text with its middle left out when it is longer than what fits: names of devices differ at their ends.
fn shortened(text: &str, fits: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= fits {
        return text.to_owned();
    }
    let kept = fits.saturating_sub(1);
    let start = characters[..kept.div_ceil(2)].iter();
    let end = characters[characters.len() - kept / 2..].iter();
    start.chain(['…'].iter()).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(shortened("nvme0n1", 7), "nvme0n1");
        assert_eq!(shortened("nvme-SAMSUNG-0001", 9), "nvme…0001");
    }
}
