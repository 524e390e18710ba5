//! What the heads of columns mean that stand in tables beside the comparison: checks, verdicts, effects, costs, rates,
//! kinds of transactions. `spindle explain` tells it; a test holds every table's heads to this list.

/// A head as it stands in a table, and what it means.
pub type TableHeading = (&'static str, &'static str);

/// All of them.
pub const HEADINGS: &[TableHeading] = &[
    // Checks.
    (
        "clients / in tpm x mean time",
        "clients, and how many of them throughput times mean transaction time accounts for: the two should be equal",
    ),
    ("transactions tried again", "after a deadlock or the like"),
    (
        "reads, program / device",
        "reads that the program counted, and those that the device did",
    ),
    (
        "writes, program / device",
        "writes that the program counted, and those that the device did",
    ),
    (
        "bytes read, ratio",
        "bytes that the program read over those of the device",
    ),
    (
        "bytes written, ratio",
        "bytes that the program wrote over those of the device",
    ),
    (
        "read from page cache",
        "share of the bytes read that came from memory",
    ),
    (
        "dirty in page cache at the end",
        "bytes of the files that the system had not written when measuring ended",
    ),
    (
        "dirty in the database's cache at the end",
        "bytes of blocks that the database had not written when measuring ended",
    ),
    (
        "flush at the end, ms",
        "how long those took to be written; the time counts as measured",
    ),
    (
        "CPU user / system per transaction, µs",
        "processor time of the program, and of the system on its behalf",
    ),
    (
        "memory of instance / a session",
        "memory of the database, and of one session",
    ),
    // Verdicts and pairs.
    (
        "a is",
        "the verdict on a, of two layouts that are called a and b",
    ),
    ("tpm, a / b", "throughput of a over that of b"),
    (
        "p99, b / a",
        "99th percentile of the transaction time of b over that of a, at a fixed rate: above 1, a is better",
    ),
    (
        "p99, a / b",
        "99th percentile of the transaction time of a over that of b: below 1, a is better",
    ),
    (
        "CPU a transaction, a / b",
        "processor time of a transaction of a over that of b",
    ),
    (
        "layout, beside",
        "the row's layout over the column's: ratio of their throughput",
    ),
    // Effects.
    ("setting", "what was varied"),
    ("value", "the value that is compared"),
    ("against", "the value that it is compared with"),
    (
        "value is",
        "the verdict on the value, over all others of the matrix",
    ),
    ("layouts", "how many layouts the effect comes from"),
    ("depends on", "the other setting"),
    ("at", "the two values of the other setting"),
    (
        "one ratio over the other",
        "how much the effect of a setting depends on the other one: 1 if not at all",
    ),
    (
        "it is",
        "the verdict on that: greater, smaller, the same, or not clear",
    ),
    // Costs and rates.
    ("price per month", "of a layout, as the experiment says"),
    ("transactions per second", "throughput of a layout"),
    (
        "cost of a million",
        "price of the time that a million transactions take",
    ),
    (
        "dominated by",
        "another layout that does as much for less money",
    ),
    (
        "p99 promised, ms",
        "the time that 99 of 100 transactions have to stay below",
    ),
    (
        "of the closed loop",
        "the rate over the throughput of as many clients that never pause",
    ),
    (
        "knee, per second",
        "the rate beyond which response times rise and throughput hardly does",
    ),
    ("arrivals per second", "at which transactions become due"),
    // Kinds of transactions, statements, times.
    ("kind", "of transactions: new order, payment and the like"),
    ("per minute", "transactions of a kind that ended"),
    (
        "p50 ms",
        "the time that half of the transactions stay below",
    ),
    ("p95 ms", "the time that 95 of 100 transactions stay below"),
    ("statement, ms", "mean time of a statement"),
    (
        "in a transaction",
        "how often a statement is executed in a transaction",
    ),
    ("what", "what the time of the run went to"),
    ("seconds", "time in all"),
    ("share", "part of the whole time"),
    (
        "event, mean ms",
        "what is waited for, and how long on average",
    ),
    ("event", "what is waited for"),
    // How it was measured.
    ("extents", "contiguous runs of blocks that a segment has"),
    ("MiB", "space that a segment takes"),
    ("position", "of a trial in its round, from 1"),
    (
        "measured, s",
        "measured time of a trial, the flush included",
    ),
    ("flush, s", "time that the flush at the end took"),
    (
        "blocks restored",
        "blocks that were put back before a trial",
    ),
    ("restored in, ms", "how long that took"),
    (
        "segment",
        "a table, an index or the undo, which takes space",
    ),
    (
        "verified",
        "how the image was compared with the golden copy",
    ),
    (
        "restore method",
        "how the image was put back before a trial",
    ),
    (
        "8 KiB made durable",
        "mean time of a durable write, as the probe before each trial found it",
    ),
    (
        "best sample, tpm",
        "highest throughput of a sample of the round that is shown",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{CHECKS, all_columns, ratio_title};
    use spindle_result::Measure;

    /// Words that the glossary explains.
    const OF_GLOSSARY: [&str; 14] = [
        "layout",
        "clients",
        "workload",
        "round",
        "tpm",
        "ratio",
        "95 % interval",
        "caching",
        "method",
        "path",
        "description",
        "notes",
        "a",
        "b",
    ];

    /// Texts that stand in heads of columns of a page.
    fn of_source(source: &str) -> Vec<&str> {
        let heads = source.split("scope=\"col\" { ").skip(1);
        let quoted = heads.filter_map(|head| head.strip_prefix('"')?.split('"').next());
        let several = source.split("@for title in [").skip(1);
        let several = several.filter_map(|list| list.split(']').next());
        let several = several.flat_map(|list| list.split('"').skip(1).step_by(2));
        quoted.chain(several).collect()
    }

    #[test]
    fn every_head_of_a_column_is_explained() {
        let sources = [
            include_str!("page/answer.rs"),
            include_str!("page/pairs.rs"),
            include_str!("page/why.rs"),
            include_str!("page/times.rs"),
            include_str!("page/method.rs"),
        ];
        let of_pages: Vec<&str> = sources
            .iter()
            .flat_map(|source| of_source(source))
            .collect();
        assert!(of_pages.len() > 15, "{of_pages:?}");
        let lists = [
            &crate::effects::HEADER[..],
            &crate::effects::INTERACTIONS_HEADER[..],
            &crate::costs::HEADER[..],
            &crate::capacity::HEADER[..],
            &crate::kinds::COLUMNS[..],
        ];
        let of_lists = lists.into_iter().flatten().copied();
        let checks = CHECKS.iter().map(|check| check.title);
        let measures = [Measure::Throughput, Measure::P99].map(Some);
        let ratios = measures.map(ratio_title).into_iter();
        let heads = of_pages.into_iter().chain(of_lists);
        for head in heads.chain(checks).chain(ratios) {
            let is_column = all_columns().iter().any(|column| column.title == head);
            let is_here = HEADINGS.iter().any(|(known, _)| *known == head);
            assert!(
                is_here || is_column || OF_GLOSSARY.contains(&head) || head == "p99 ms",
                "{head:?} is not explained: add it to the list"
            );
        }
    }
}
