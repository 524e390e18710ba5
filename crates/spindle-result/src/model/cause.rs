//! Why cases differ: their response times beside each other, and findings with their evidence.

use serde::{Deserialize, Serialize};

use super::{CaseId, LoadLevel, TimeUse};

/// The difference of two layouts' response times, split into its parts. One for each verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// Load level.
    #[serde(flatten)]
    pub load: LoadLevel,
    /// Name of the layout whose transactions take longer on average; at a fixed rate its p99 may be the shorter one.
    pub slower: String,
    /// Name of the other.
    pub faster: String,
    /// By how much longer a transaction of `slower` takes, in microseconds.
    pub difference_us: f64,
    /// 95 % interval of it (Student's t over the rounds that both finished); `None` with a single one.
    #[serde(default)]
    pub ci95_us: Option<(f64, f64)>,
    /// What the difference is made of, the largest first whatever their sign; they add up to it.
    pub parts: Vec<PartDifference>,
    /// All of it in one sentence.
    pub sentence: String,
}

/// How much longer, or shorter, one part of a transaction's time is on the slower layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartDifference {
    /// As in [`super::TimePart`].
    pub part: TimeUse,
    /// Microseconds of one transaction; below zero when the slower layout spends less on it.
    pub us: f64,
    /// 95 % interval of it; `None` with a single common round.
    #[serde(default)]
    pub ci95_us: Option<(f64, f64)>,
    /// What the part is, in the words of this pair of layouts, such as "copying through the page cache".
    pub explanation: Option<String>,
}

/// Something that the data show and that a person can act on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its kind in a word or two, such as `double buffering`; the same for every run.
    pub kind: String,
    /// Names of the layouts that it was found on.
    pub layouts: Vec<String>,
    /// Load levels that it was found at, on one of them or more.
    pub clients: Vec<u32>,
    /// Exactly where it was found; empty in the results of older versions.
    #[serde(default)]
    pub cases: Vec<CaseId>,
    /// What was found, in a sentence.
    pub text: String,
    /// The figures that show it, each a sentence.
    pub evidence: Vec<String>,
    /// What can be done.
    pub remedy: String,
}

impl Finding {
    /// Its layouts and the loads at which it was found on them: `a at 8 clients`, `a; b; at 8 clients`, or
    /// `a at 1 client; b at 1 and 8 clients`.
    pub fn places(&self) -> String {
        if let (Some(loads), [_, _, ..]) = (self.loads(), self.layouts.as_slice()) {
            return format!("{}; at {loads}", self.layouts.join("; "));
        }
        let layouts = self.layouts.iter();
        let places = layouts.map(|layout| format!("{layout} at {}", self.loads_of(layout)));
        places.collect::<Vec<_>>().join("; ")
    }

    /// The loads at which it was found, where these are the same on all of its layouts.
    pub fn loads(&self) -> Option<String> {
        let mut layouts = self.layouts.iter().map(|layout| self.loads_of(layout));
        let loads = layouts.next()?;
        layouts.all(|other| other == loads).then_some(loads)
    }

    /// The loads at which it was found on a layout: `1 client`, `1 and 4 clients`, `4 clients at 200/s`.
    pub fn loads_of(&self, layout: &str) -> String {
        let cases = self.cases.iter();
        let mut loads: Vec<LoadLevel> = cases
            .filter(|case| case.layout == layout)
            .map(|case| case.load)
            .collect();
        if self.cases.is_empty() {
            loads = self.clients.iter().copied().map(LoadLevel::of).collect();
        }
        let words: Vec<String> = match loads.iter().all(|load| load.rate.is_none()) {
            // The last one says what they all are.
            true => match loads.split_last() {
                None => Vec::new(),
                Some((last, others)) => {
                    let others = others.iter().map(LoadLevel::in_column);
                    others.chain([last.to_string()]).collect()
                }
            },
            false => loads.iter().map(LoadLevel::to_string).collect(),
        };
        match words.as_slice() {
            [init @ .., before, last] if !init.is_empty() => {
                format!("{}, {before} and {last}", init.join(", "))
            }
            words => words.join(" and "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layout_is_told_with_its_own_loads() {
        let places = |cases: &[(&str, u32)]| {
            let finding = Finding {
                kind: String::new(),
                layouts: vec!["default".to_owned(), "ckpt10".to_owned()],
                clients: vec![1, 4],
                cases: cases
                    .iter()
                    .map(|&(name, clients)| CaseId::new(name, clients))
                    .collect(),
                text: String::new(),
                evidence: Vec::new(),
                remedy: String::new(),
            };
            finding.places()
        };
        let both = [("default", 1), ("ckpt10", 1), ("ckpt10", 4)];
        assert_eq!(
            places(&both),
            "default at 1 client; ckpt10 at 1 and 4 clients"
        );
        assert_eq!(places(&both[..2]), "default; ckpt10; at 1 client");
        assert_eq!(places(&[]), "default; ckpt10; at 1 and 4 clients");
        let three = [
            ("default", 1),
            ("default", 2),
            ("default", 4),
            ("ckpt10", 4),
        ];
        assert_eq!(
            places(&three),
            "default at 1, 2 and 4 clients; ckpt10 at 4 clients"
        );
    }
}
