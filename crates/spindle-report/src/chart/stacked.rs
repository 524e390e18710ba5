//! Times of one transaction, stacked: a bar for each layout, a colour for each part, the same in every bar.

use maud::{Markup, html};

use super::figure::{Figure, Figures};
use super::sheet::text_width;
use super::{Axis, Frame, Mark, Size, TEXT_SIZE, both, draw, greatest};
use crate::comparison::milliseconds;
use spindle_result::{OracleEvent, TimeUse};

/// Height of a row in units.
const ROW: u32 = 46;

/// Parts that have their own colour; the smallest of more are put together.
const PARTS_MAX: usize = 8;

/// What a layout's transaction takes, by part.
pub(crate) struct Bar {
    /// Number and name of the layout.
    pub(crate) name: String,
    /// Microseconds of each part; parts may be missing or below zero.
    pub(crate) parts: Vec<(TimeUse, f64)>,
}

/// The chart of some layouts' bars.
pub(crate) fn figure(bars: &[Bar], id: &str, heading: &str, note: &str) -> Markup {
    let parts = parts(bars);
    let longest_us = greatest(
        bars.iter()
            .map(|bar| ends(bar, &parts).last().map_or(0.0, |end| end.1)),
    );
    let label =
        format!("{heading}: milliseconds of each part for every layout; the figures follow.");
    let drawing = both(|size| {
        let frame = Frame {
            size,
            height: 52 + ROW * bars.len() as u32,
            x: Axis::from_zero(longest_us / 1e3),
            x_title: "milliseconds of one transaction",
            y: Axis::Rows(bars.len()),
            y_title: "",
            label: &label,
        };
        draw(&frame, marks(bars, &parts, size, longest_us))
    });
    let mut header = vec!["ms of one transaction".to_owned()];
    header.extend(bars.iter().map(|bar| bar.name.clone()));
    let row = |part: &TimeUse| {
        let times = bars
            .iter()
            .map(|bar| milliseconds(time_us(bar, part) / 1e3));
        [vec![part.own_name().to_owned()], times.collect()].concat()
    };
    Figure {
        id,
        heading,
        legend: parts
            .iter()
            .map(|group| (group.class(), group.name()))
            .collect(),
        drawing,
        note: note.to_owned(),
        controls: html! {},
        figures: Figures::Table {
            header,
            rows: parts
                .iter()
                .flat_map(|group| &group.parts)
                .map(row)
                .collect(),
        },
    }
    .markup()
}

/// Parts that are drawn in one colour: mostly one.
#[derive(Debug, PartialEq)]
struct Group {
    /// From 1; other colours than those of layouts.
    colour: usize,
    parts: Vec<TimeUse>,
}

impl Group {
    fn class(&self) -> String {
        format!("p{}", self.colour)
    }

    fn name(&self) -> String {
        let names: Vec<&str> = self.parts.iter().map(TimeUse::own_name).collect();
        names.join(", ")
    }
}

/// The colour that a part has in every drawing in which it is still free. Of those that share one, some are of sessions
/// and some of background processes, which are seldom drawn together.
fn colour_wished(part: &TimeUse) -> Option<usize> {
    let event = match part {
        TimeUse::UserCpu => return Some(3),
        TimeUse::SystemCpu => return Some(4),
        TimeUse::RunQueue => return Some(8),
        TimeUse::ClientQueue | TimeUse::Unaccounted => return None,
        TimeUse::Wait(event) => event.nearest(),
    };
    let colour = match event {
        OracleEvent::DbFileSequentialRead => 1,
        OracleEvent::LogFileSync => 2,
        OracleEvent::DbFileParallelWrite => 5,
        OracleEvent::FreeBufferWaits => 6,
        OracleEvent::DbFileScatteredRead | OracleEvent::BufferBusyWaits => 7,
        OracleEvent::LogFileParallelWrite => 8,
        _ => return None,
    };
    Some(colour)
}

fn time_us(bar: &Bar, part: &TimeUse) -> f64 {
    let mut parts = bar.parts.iter();
    parts
        .find(|(name, _)| name == part)
        .map_or(0.0, |(_, us)| *us)
}

/// The parts in groups that share a colour, those that take most first; all but the last group are one part.
fn parts(bars: &[Bar]) -> Vec<Group> {
    let mut totals: Vec<(TimeUse, f64)> = Vec::new();
    for (part, us) in bars.iter().flat_map(|bar| &bar.parts) {
        match totals.iter_mut().find(|(name, _)| name == part) {
            Some((_, total)) => *total += us,
            None => totals.push((part.clone(), *us)),
        }
    }
    totals.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let parts = totals.into_iter().map(|(part, _)| part);
    // What nothing accounts for has the last colour.
    let (rest, named): (Vec<TimeUse>, Vec<TimeUse>) =
        parts.partition(|part| *part == TimeUse::Unaccounted);
    let (own, small) = named.split_at(named.len().min(PARTS_MAX));
    let mut free: Vec<usize> = (1..=PARTS_MAX).collect();
    let mut colours: Vec<Option<usize>> = Vec::new();
    for part in own {
        let position = free
            .iter()
            .position(|colour| Some(*colour) == colour_wished(part));
        colours.push(position.map(|position| free.remove(position)));
    }
    let mut free = free.into_iter();
    let mut groups: Vec<Group> = own
        .iter()
        .zip(colours)
        .map(|(part, colour)| Group {
            colour: colour.or_else(|| free.next()).unwrap_or(PARTS_MAX + 1),
            parts: vec![part.clone()],
        })
        .collect();
    let rest = [small, &rest].concat();
    if !rest.is_empty() {
        groups.push(Group {
            colour: PARTS_MAX + 1,
            parts: rest,
        });
    }
    groups
}

/// Where each part of a bar begins and ends, in microseconds. What is below zero cannot be drawn and takes no room.
fn ends(bar: &Bar, parts: &[Group]) -> Vec<(f64, f64)> {
    let mut end = 0.0;
    let times = parts.iter().map(|group| {
        let times = group.parts.iter().map(|part| time_us(bar, part).max(0.0));
        times.sum::<f64>()
    });
    times
        .map(|us| {
            let start = end;
            end += us;
            (start, end)
        })
        .collect()
}

fn marks(bars: &[Bar], parts: &[Group], size: Size, longest_us: f64) -> Vec<Mark> {
    let longest_name = if size == Size::Wide { 90 } else { 46 };
    let units_per_us = f64::from(size.width()) / (longest_us * 1.06).max(1.0);
    let mut marks = Vec::new();
    for (index, bar) in bars.iter().enumerate() {
        let [name_at, top, bottom, middle] =
            [0.30, 0.40, 0.92, 0.75].map(|share| index as f64 + share);
        let name = super::shortened(&bar.name, longest_name);
        marks.push(Mark::text("name", (0.0, name_at), name));
        for ((start, end), group) in ends(bar, parts).into_iter().zip(parts) {
            if end <= start {
                continue;
            }
            let part = group.name();
            let time = milliseconds((end - start) / 1e3);
            marks.push(Mark::filled_box(
                format!("part {}", group.class()),
                [(start / 1e3, top), (end / 1e3, bottom)],
                format!("{}: {part} {time} ms", bar.name),
            ));
            let room = (end - start) * units_per_us - 8.0;
            let fits = |text: &String| text_width(text, f64::from(TEXT_SIZE)) < room;
            let texts = [format!("{part} {time}"), time];
            if let Some(text) = texts.into_iter().find(fits) {
                let at = ((start + end) / 2e3, middle);
                marks.push(Mark::centred_text("inside", at, text));
            }
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(parts: &[(&str, f64)]) -> Bar {
        let parts = parts.iter().map(|(part, us)| ((*part).into(), *us));
        Bar {
            name: "1 a".to_owned(),
            parts: parts.collect(),
        }
    }

    #[test]
    fn parts_have_one_order_in_all_bars() {
        let bars = [bar(&[("cpu", 10.0), ("read", 5.0)]), bar(&[("read", 90.0)])];
        let parts = parts(&bars);
        let names: Vec<String> = parts.iter().map(Group::name).collect();
        assert_eq!(names, ["read", "cpu"]);
        assert_eq!(ends(&bars[0], &parts), [(0.0, 5.0), (5.0, 15.0)]);
        assert_eq!(ends(&bars[1], &parts), [(0.0, 90.0), (90.0, 90.0)]);
    }

    #[test]
    fn what_overlaps_takes_no_room() {
        let bars = [bar(&[("cpu", 10.0), ("other", -3.0)])];
        assert_eq!(ends(&bars[0], &parts(&bars)), [(0.0, 10.0), (10.0, 10.0)]);
    }

    #[test]
    fn a_part_keeps_its_colour_from_drawing_to_drawing() {
        let bars = [bar(&[
            ("other", 9.0),
            ("latch", 8.0),
            ("user CPU", 7.0),
            ("log file sync", 1.0),
        ])];
        let colours: Vec<(usize, String)> = parts(&bars)
            .iter()
            .map(|group| (group.colour, group.name()))
            .collect();
        let expected = [
            (1, "latch"),
            (3, "user CPU"),
            (2, "log file sync"),
            (9, "other"),
        ];
        assert_eq!(
            colours,
            expected.map(|(colour, name)| (colour, name.to_owned()))
        );
    }

    #[test]
    fn the_smallest_of_many_parts_share_a_colour() {
        let names: Vec<String> = (0..12).map(|index| format!("part {index}")).collect();
        let many: Vec<(&str, f64)> = (1..)
            .zip(&names)
            .map(|(us, name)| (name.as_str(), f64::from(us)))
            .collect();
        let parts = parts(&[bar(&many)]);
        assert_eq!(parts.len(), PARTS_MAX + 1);
        assert_eq!(parts[0].name(), "part 11");
        assert_eq!(parts[PARTS_MAX].parts.len(), 4);
        let colours: Vec<usize> = parts.iter().map(|group| group.colour).collect();
        assert_eq!(colours, (1..=PARTS_MAX + 1).collect::<Vec<usize>>());
    }
}
