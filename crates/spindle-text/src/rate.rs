//! A rate of arrivals as the experiment file spells it: `"200/s"`, or `"30%"` of what the slowest layout can do. Exact,
//! so that it can name a load level.

use std::fmt;
use std::ops::RangeInclusive;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::quantity::{parse_percent, parse_rate_per_s};

/// Parts of a unit that a rate is kept in.
const THOUSAND: f64 = 1000.0;

/// Parts of the maximum of the slowest layout that may be asked for, per cent.
pub const PERCENT_OF_SLOWEST: RangeInclusive<f64> = 1.0..=200.0;

/// What is said of the rate of a load.
#[derive(Debug, Clone, PartialEq)]
pub enum AskedRate {
    /// It is searched for.
    Auto,
    /// This one, per second.
    One(f64),
    /// Each of these, one kind of them.
    Each(Vec<Rate>),
}

/// How often transactions come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rate {
    /// Thousandths of a transaction a second.
    PerSecond(u64),
    /// Thousandths of a per cent of the maximum of the slowest layout, which is measured first.
    OfSlowest(u64),
}

impl Rate {
    /// What a text means, to three decimals; `None` when it is not a rate.
    pub fn parse(text: &str) -> Option<Rate> {
        let thousandths = |number: f64| (number * THOUSAND).round() as u64;
        let per_s = parse_rate_per_s(text).map(|per_s| Rate::PerSecond(thousandths(per_s)));
        per_s.or_else(|| parse_percent(text).map(|percent| Rate::OfSlowest(thousandths(percent))))
    }

    /// Arrivals a second, where the slowest layout does `slowest_per_s`; `None` while that is needed and not known. A
    /// part of it has three figures and three decimals at most, as a maximum is known no better.
    pub fn per_s(self, slowest_per_s: Option<f64>) -> Option<f64> {
        match self {
            Rate::PerSecond(thousandths) => Some(thousandths as f64 / THOUSAND),
            Rate::OfSlowest(thousandths) => {
                let part = |slowest: f64| slowest * thousandths as f64 / (100.0 * THOUSAND);
                slowest_per_s.map(|slowest| three_figures(part(slowest)))
            }
        }
    }

    /// As it stands in names of files: `200ps`, `30pc`.
    pub fn in_file_names(self) -> String {
        match self {
            Rate::PerSecond(thousandths) => format!("{}ps", thousandths as f64 / THOUSAND),
            Rate::OfSlowest(thousandths) => format!("{}pc", thousandths as f64 / THOUSAND),
        }
    }

    /// Whether it is a part of a maximum.
    pub fn is_of_slowest(self) -> bool {
        matches!(self, Rate::OfSlowest(_))
    }
}

/// A number with three figures and three decimals at most, and no less than the last of these.
fn three_figures(number: f64) -> f64 {
    let unit = 10_f64.powf((number.log10().floor() - 2.0).max(-3.0));
    let rounded = (number / unit).round() * unit;
    ((rounded * THOUSAND).round() / THOUSAND).max(1.0 / THOUSAND)
}

impl fmt::Display for Rate {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::PerSecond(thousandths) => write!(text, "{}/s", *thousandths as f64 / THOUSAND),
            Rate::OfSlowest(thousandths) => write!(text, "{}%", *thousandths as f64 / THOUSAND),
        }
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        let text = String::deserialize(deserializer)?;
        Rate::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is not a rate")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_back_as_it_is_spelled() {
        for (text, spelled) in [
            ("200/s", "200/s"),
            ("0.01/s", "0.01/s"),
            ("1000/m", "16.667/s"),
            ("30%", "30%"),
            ("62.5 %", "62.5%"),
        ] {
            let rate = Rate::parse(text).unwrap();
            assert_eq!(rate.to_string(), spelled);
            assert_eq!(Rate::parse(spelled), Some(rate));
            let json = serde_json::to_string(&rate).unwrap();
            assert_eq!(serde_json::from_str::<Rate>(&json).unwrap(), rate);
        }
        for wrong in ["200", "30", "-1/s", "", "fast"] {
            assert_eq!(Rate::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_part_of_a_maximum_is_a_rate_once_that_is_known() {
        let part = Rate::parse("30%").unwrap();
        assert_eq!(
            (part.per_s(None), part.per_s(Some(500.0))),
            (None, Some(150.0))
        );
        for (slowest, rate) in [
            (207.839, 62.4),
            (61_234.0, 18_400.0),
            (3.9, 1.17),
            (0.011, 0.003),
            (0.0001, 0.001),
        ] {
            assert_eq!(part.per_s(Some(slowest)), Some(rate), "{slowest}");
        }
        let rate = Rate::parse("200/s").unwrap();
        assert_eq!(
            (rate.per_s(None), rate.per_s(Some(500.0))),
            (Some(200.0), Some(200.0))
        );
    }
}
