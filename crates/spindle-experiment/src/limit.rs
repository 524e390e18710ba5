//! The `limit` and `delay` tables of a layout: how much slower than they are its devices are to be. A limit holds each
//! device to a rate, as an array does; a delay adds time to each I/O, as a slower disk does.

pub use spindle_io::real::Delay;
pub use spindle_layout::spec::Rates;

use super::reader::Reader;
use spindle_text::quantity::size_text;
use spindle_text::section::{Listing, Section};

/// Reads the `limit` table of a layout, if there is one: the most that each device of it does for the database, at
/// least one rate of four.
pub(super) fn read_limit(layout: &mut Reader<'_>) -> Option<Rates> {
    let mut table = layout.section("limit");
    let limit = Section::read(&mut table);
    finish::<Rates>(layout, &table, "limit", "{ read_iops = 500 }");
    layout.has("limit").then_some(limit)
}

/// `limited by Spindle (500 reads/s, 40MiB/s written)`.
pub fn limited_by(limit: &Rates) -> String {
    let count = |rate: Option<u64>, what| rate.map(|rate| format!("{rate} {what}/s"));
    let bytes = |rate: Option<u64>, what| rate.map(|rate| format!("{}/s {what}", size_text(rate)));
    let rates = [
        count(limit.read_iops, "reads"),
        count(limit.write_iops, "writes"),
        bytes(limit.read_bps, "read"),
        bytes(limit.write_bps, "written"),
    ];
    let rates: Vec<String> = rates.into_iter().flatten().collect();
    format!("limited by Spindle ({})", rates.join(", "))
}

/// Reads the `delay` table of a layout, if there is one.
pub(super) fn read_delay(layout: &mut Reader<'_>) -> Option<Delay> {
    let mut table = layout.section("delay");
    let delay = Section::read(&mut table);
    finish::<Delay>(layout, &table, "delay", "{ read_us = 5000 }");
    layout.has("delay").then_some(delay)
}

/// Refuses unknown keys, and a table that sets nothing.
fn finish<S: Section>(layout: &Reader<'_>, table: &Reader<'_>, name: &'static str, example: &str) {
    table.finish();
    if layout.has(name) && table.table().entries.is_empty() {
        let keys: Vec<&str> = Listing::of::<S>().iter().map(|row| row.key).collect();
        layout.refuse(
            &[name],
            format!("{name} says nothing"),
            format!("at least one of {} is needed", keys.join(", ")),
            format!("write {name} = {example}, or leave {name} out"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::limited_by;
    use crate::Experiment;

    fn parse(keys: &str) -> Result<Experiment, (String, Option<String>)> {
        let text = format!("[[layout]]\nname = \"a\"\n{keys}\n");
        Experiment::parse("x.toml", &text, &[])
            .map_err(|error| (error.to_string(), error.key().map(str::to_owned)))
    }

    #[test]
    fn rates_and_times_are_read_and_said() {
        let experiment = parse(
            "limit = { read_iops = 500, write_bps = \"40MiB\" }\ndelay = { read_us = 5000, flush_us = 1 }",
        )
        .unwrap();
        let layout = &experiment.layouts[0];
        let (limit, delay) = (layout.limit.unwrap(), layout.delay.unwrap());
        assert_eq!((limit.read_iops, limit.write_iops), (Some(500), None));
        assert_eq!((limit.read_bps, limit.write_bps), (None, Some(40 << 20)));
        assert_eq!(
            (delay.read_us, delay.write_us, delay.flush_us),
            (5000, 0, 1)
        );
        assert_eq!(
            limited_by(&limit),
            "limited by Spindle (500 reads/s, 40MiB/s written)"
        );
        assert_eq!(delay.to_string(), "read 5 ms, flush 1 us");
        let json = serde_json::to_string(&experiment).unwrap();
        assert_eq!(
            serde_json::from_str::<Experiment>(&json).unwrap(),
            experiment
        );
    }

    #[test]
    fn left_out_they_are_none_and_not_in_the_journal() {
        let experiment = parse("").unwrap();
        let layout = &experiment.layouts[0];
        assert_eq!((layout.limit, layout.delay), (None, None));
        let json = serde_json::to_string(layout).unwrap();
        assert!(
            !json.contains("limit\"") && !json.contains("delay"),
            "{json}"
        );
    }

    #[test]
    fn what_limits_nothing_is_a_mistake() {
        for (keys, key) in [
            ("limit = {}", "layout.\"a\".limit"),
            ("delay = {}", "layout.\"a\".delay"),
            ("limit = 500", "layout.\"a\".limit"),
            ("limit = { read_iops = 0 }", "layout.\"a\".limit.read_iops"),
            ("limit = { read_iops = -5 }", "layout.\"a\".limit.read_iops"),
            (
                "limit = { read_iops = 4_294_967_295 }",
                "layout.\"a\".limit.read_iops",
            ),
            (
                "limit = { read_bps = \"1KiB\" }",
                "layout.\"a\".limit.read_bps",
            ),
            (
                "limit = { write_bps = \"40MB\" }",
                "layout.\"a\".limit.write_bps",
            ),
            (
                "limit = { reads_iops = 500 }",
                "layout.\"a\".limit.reads_iops",
            ),
            ("delay = { write_us = 0 }", "layout.\"a\".delay.write_us"),
            (
                "delay = { write_us = \"5ms\" }",
                "layout.\"a\".delay.write_us",
            ),
            (
                "delay = { read_us = 10_000_001 }",
                "layout.\"a\".delay.read_us",
            ),
        ] {
            let (message, at) = parse(keys).expect_err(keys);
            assert_eq!(at.as_deref(), Some(key), "{keys}: {message}");
        }
        let (message, _) = parse("limit = {}").unwrap_err();
        assert_eq!(message, "limit says nothing");
    }
}
