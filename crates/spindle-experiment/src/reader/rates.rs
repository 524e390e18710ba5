//! Rates as the experiment file has them: one, a list of them, or the word that has one searched for.

use std::ops::RangeInclusive;

use spindle_text::quantity::parse_rate_per_s;
use spindle_text::rate::{AskedRate, PERCENT_OF_SLOWEST, Rate};

use super::super::document::{Node, Value};
use super::Reader;

impl Reader<'_> {
    /// Rates, if the key is set.
    pub fn rates(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<AskedRate> {
        if self.is_auto(key) {
            self.known.push(key);
            return Some(AskedRate::Auto);
        }
        let allowed = format!(
            "a rate from \"{}/s\" to \"{}/s\", per s, m or h; a part of what the slowest layout can do, from \"{}%\" to \
             \"{}%\"; a list of different ones, all rates or all parts, such as [\"30%\", \"60%\", \"90%\"]; or \"auto\"",
            range.start(),
            range.end(),
            PERCENT_OF_SLOWEST.start(),
            PERCENT_OF_SLOWEST.end()
        );
        let node = self.node(key)?;
        if let Value::Text(text) = &node.value
            && let Some(per_s) = parse_rate_per_s(text).filter(|per_s| range.contains(per_s))
        {
            return Some(AskedRate::One(per_s));
        }
        let items = match &node.value {
            Value::List(items) if !items.is_empty() => items,
            _ => std::slice::from_ref(node),
        };
        let mut rates: Vec<Rate> = Vec::new();
        for item in items {
            let is_wanted = |rate: &Rate| {
                let is_alike = |other: &Rate| other.is_of_slowest() == rate.is_of_slowest();
                rates.iter().all(is_alike) && !rates.contains(rate)
            };
            match rate(item, &range).filter(is_wanted) {
                Some(rate) => rates.push(rate),
                None => return self.refuse_value(key, item, allowed, None),
            }
        }
        Some(AskedRate::Each(rates))
    }
}

fn rate(item: &Node, range: &RangeInclusive<f64>) -> Option<Rate> {
    let Value::Text(text) = &item.value else {
        return None;
    };
    // A part of a hundred has the size of its per cents.
    Rate::parse(text).filter(|rate| match rate.is_of_slowest() {
        true => rate
            .per_s(Some(100.0))
            .is_some_and(|percent| PERCENT_OF_SLOWEST.contains(&percent)),
        false => rate.per_s(None).is_some_and(|per_s| range.contains(&per_s)),
    })
}
