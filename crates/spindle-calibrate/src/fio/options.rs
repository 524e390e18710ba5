//! Options of a job as fio's JSON spells them, and where they differ from those of our own job of the same point
//! ([`super::job`]). [`super::beside`] asks.

use std::collections::BTreeMap;

use serde_json::Value;

use super::job::OwnOptions;

/// As a JSON object has them.
pub(super) type Listed = BTreeMap<String, Value>;

/// What makes the figures of a point; where its bytes lie may differ.
const COMPARED: [&str; 8] = [
    "bs",
    "rw",
    "rwmixwrite",
    "direct",
    "ioengine",
    "iodepth",
    "numjobs",
    "fdatasync",
];
/// Options that no job of ours has: they stand in place of one length.
const LENGTHS: [&str; 2] = ["bsrange", "bssplit"];

/// Options by name, global ones and the job's own.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FioOptions(BTreeMap<String, String>);

impl FioOptions {
    /// Those of a job come before global ones.
    pub(super) fn of(global: &Listed, job: &Listed) -> FioOptions {
        let all = global.iter().chain(job);
        FioOptions(
            all.map(|(name, value)| named_as_ours(name, value))
                .collect(),
        )
    }

    /// Whether requests of the job trim.
    pub(super) fn trims(&self) -> bool {
        self.0.get("rw").is_some_and(|rw| rw.contains("trim"))
    }

    /// How the job differs from ours, of which a group has several sections; fio tells the options of one of them.
    pub(super) fn difference(&self, sections: &[OwnOptions]) -> Option<String> {
        let found: Vec<Option<String>> = sections.iter().map(|own| self.differs(own)).collect();
        match found.iter().any(Option::is_none) {
            true => None,
            // fio 3 tells those of the last.
            false => found.into_iter().next_back().flatten(),
        }
    }

    fn differs(&self, own: &OwnOptions) -> Option<String> {
        let is_given = |name: &&&str| self.0.contains_key(**name);
        if let Some(name) = LENGTHS.iter().find(is_given) {
            return Some(format!(
                "{name} is {} there and not used here",
                self.0[*name]
            ));
        }
        own.iter().find_map(|(name, ours)| {
            let spelled = self.0.get(*name).filter(|_| COMPARED.contains(name))?;
            let theirs = match *name {
                "bs" => self.lengths(spelled),
                "rw" => usual(spelled).to_owned(),
                _ => spelled.clone(),
            };
            (theirs != *ours).then(|| format!("{name} is {theirs} there and {ours} here"))
        })
    }

    /// Bytes of the job's requests. fio spells those of reads, then of writes, then of trims; each is that before it
    /// where it is missing.
    fn lengths(&self, spelled: &str) -> String {
        let kilo = match self.0.get("kb_base").map(String::as_str) {
            Some("1000") => 1000,
            _ => 1024,
        };
        let parts: Option<Vec<u64>> = spelled.split(',').map(|part| bytes(part, kilo)).collect();
        let Some([of_reads, rest @ ..]) = parts.as_deref() else {
            return spelled.to_owned();
        };
        let of_writes = rest.first().unwrap_or(of_reads);
        match self.0.get("rw").map_or("read", |rw| usual(rw)) {
            "write" | "randwrite" => of_writes.to_string(),
            "rw" | "randrw" if of_reads != of_writes => format!("{of_reads},{of_writes}"),
            _ => of_reads.to_string(),
        }
    }
}

/// Some options are the opposite of one of ours.
fn named_as_ours(name: &str, value: &Value) -> (String, String) {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    let opposite = match (name, text.parse::<u32>()) {
        ("buffered", Ok(number)) => Some(("direct", u32::from(number == 0))),
        ("rwmixread", Ok(percent @ 0..=100)) => Some(("rwmixwrite", 100 - percent)),
        _ => None,
    };
    match opposite {
        Some((name, number)) => (name.to_owned(), number.to_string()),
        None => (name.to_owned(), text),
    }
}

fn usual(rw: &str) -> &str {
    match rw {
        "readwrite" => "rw",
        other => other,
    }
}

/// A length as fio 3.33 reads it: `kilo` is 1,024 unless `kb_base` says 1,000, and `KiB` is then the other of both, as
/// its manual warns (fio(1), "kb_base").
fn bytes(text: &str, kilo: u64) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let end = text.find(|letter: char| !letter.is_ascii_digit());
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: u64 = digits.parse().ok()?;
    let (power, rest) = match unit.split_at_checked(1) {
        Some(("k", rest)) => (1, rest),
        Some(("m", rest)) => (2, rest),
        Some(("g", rest)) => (3, rest),
        _ => (0, unit),
    };
    let factor = match (power, rest) {
        (0, "" | "b") => 1,
        (1.., "" | "b" | "i") => kilo,
        (1.., "ib") => 2024 - kilo,
        _ => return None,
    };
    number.checked_mul(u64::checked_pow(factor, power)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(of: &[(&str, &str)]) -> Listed {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), Value::from(*value));
        of.iter().map(pair).collect()
    }

    fn difference(theirs: &[(&str, &str)], ours: &[(&'static str, &str)]) -> Option<String> {
        let ours = ours
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        FioOptions::of(&Listed::new(), &listed(theirs)).difference(&[ours.collect()])
    }

    #[test]
    fn lengths_are_read_as_fio_reads_them() {
        // Each was tried with fio 3.33.
        for (text, kilo, meant) in [
            ("8k", 1024, Some(8192)),
            ("8K", 1024, Some(8192)),
            ("8Kb", 1024, Some(8192)),
            ("8Ki", 1024, Some(8192)),
            ("8KiB", 1024, Some(8000)),
            ("8KiB", 1000, Some(8192)),
            ("8k", 1000, Some(8000)),
            ("8192", 1000, Some(8192)),
            ("8192b", 1024, Some(8192)),
            ("0x2000", 1024, Some(8192)),
            ("1m", 1024, Some(1 << 20)),
            ("", 1024, None),
            ("8x", 1024, None),
            ("99999999999999999g", 1024, None),
        ] {
            assert_eq!(bytes(text, kilo), meant, "{text} of {kilo}");
        }
    }

    #[test]
    fn what_is_spelled_otherwise_is_the_same() {
        let ours = [
            ("bs", "8192"),
            ("rw", "rw"),
            ("rwmixwrite", "30"),
            ("direct", "1"),
        ];
        for theirs in [
            &[("bs", "8k"), ("rw", "readwrite"), ("rwmixread", "70")][..],
            &[("bs", "8192,8k,4k"), ("buffered", "0"), ("filename", "/f")],
            &[],
        ] {
            assert_eq!(difference(theirs, &ours), None, "{theirs:?}");
        }
        assert_eq!(difference(&[("bs", "8k,4k")], &[("bs", "8192")]), None);
    }

    #[test]
    fn what_differs_is_told_with_both_values() {
        for (theirs, ours, told) in [
            (
                ("bs", "4k"),
                ("bs", "8192"),
                "bs is 4096 there and 8192 here",
            ),
            (
                ("rw", "randwrite"),
                ("rw", "randread"),
                "rw is randwrite there",
            ),
            (
                ("rwmixread", "50"),
                ("rwmixwrite", "30"),
                "rwmixwrite is 50 there",
            ),
            (("buffered", "1"), ("direct", "1"), "direct is 0 there"),
            (
                ("ioengine", "sync"),
                ("ioengine", "psync"),
                "ioengine is sync there",
            ),
            (
                ("iodepth", "16"),
                ("iodepth", "8"),
                "iodepth is 16 there and 8 here",
            ),
            (("numjobs", "2"), ("numjobs", "1"), "numjobs is 2 there"),
            (
                ("fdatasync", "4"),
                ("fdatasync", "1"),
                "fdatasync is 4 there",
            ),
            (
                ("bssplit", "4k/50"),
                ("bs", "8192"),
                "bssplit is 4k/50 there",
            ),
        ] {
            let found = difference(&[theirs], &[ours]).unwrap();
            assert!(found.contains(told), "{found}");
        }
    }

    #[test]
    fn a_jobs_own_options_come_before_global_ones() {
        let options = FioOptions::of(
            &listed(&[("direct", "1"), ("bs", "4k")]),
            &listed(&[("buffered", "1")]),
        );
        let own = |direct: &str| vec![("direct", direct.to_owned()), ("bs", "4096".to_owned())];
        assert_eq!(options.difference(&[own("0")]), None);
        assert!(options.difference(&[own("1")]).is_some());
        // A group is ours when the section that fio tells is one of its own.
        assert_eq!(options.difference(&[own("0"), own("1")]), None);
        assert_eq!(options.difference(&[]), None);
    }
}
