//! What transactions cost on layouts that have a price: at the highest rate that keeps a promise, where that was
//! searched for, else at the throughput. And which layouts are dominated: another surely does more for no more money,
//! or as much for less.

use spindle_stats::Verdict;

use super::wording::{listed, named};
use super::{Case, Pair, Price, Ranking, RunResult};

/// Seconds of a month of 730 hours.
const MONTH_S: f64 = 730.0 * 3600.0;

/// What transactions cost on a layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The layout's name.
    pub layout: String,
    /// Its price.
    pub price: Price,
    /// Transactions per second that it is reckoned with.
    pub rate_per_s: f64,
    /// Of a million transactions, in the currency's unit, if it did as many all the time.
    pub per_million: f64,
    /// The layout that does as much or more, and costs no more; `None`: there is none that surely does.
    pub dominated_by: Option<String>,
}

impl Cost {
    /// What a million transactions cost, with three figures at least that are not 0.
    pub fn amount(&self) -> String {
        let figures = 2.0 - self.per_million.log10().floor();
        let decimals = figures.clamp(3.0, 12.0) as usize;
        format!("{:.decimals$} {}", self.per_million, self.price.currency)
    }
}

/// The costs at a load level, the least first; none unless all that were compared have a price in one currency.
pub fn costs(result: &RunResult, ranking: &Ranking) -> Vec<Cost> {
    let cases: Vec<&Case> = result
        .cases_at(ranking.load)
        .filter(|case| case.is_compared())
        .collect();
    let costs: Option<Vec<Cost>> = cases.iter().map(|case| cost(result, case)).collect();
    let mut costs = costs.unwrap_or_default();
    let is_one_currency = |cost: &Cost| cost.price.currency == costs[0].price.currency;
    if costs.len() < 2 || !costs.iter().all(is_one_currency) {
        return Vec::new();
    }
    let pairs: Vec<&Pair> = result.pairs_of(ranking).collect();
    let dominated: Vec<Option<String>> = costs
        .iter()
        .map(|cost| {
            let mut others = costs.iter();
            let other = others.find(|other| dominates(other, cost, &pairs))?;
            Some(other.layout.clone())
        })
        .collect();
    for (cost, dominated_by) in costs.iter_mut().zip(dominated) {
        cost.dominated_by = dominated_by;
    }
    costs.sort_by(|a, b| a.per_million.total_cmp(&b.per_million));
    costs
}

fn cost(result: &RunResult, case: &Case) -> Option<Cost> {
    let layout = result
        .layouts
        .iter()
        .find(|layout| layout.name == case.id.layout)?;
    let price = layout.price.as_deref()?.clone();
    let rate_per_s = match case.capacity() {
        Some(capacity) => capacity.rate_per_s,
        None => case.tpm?.mean / 60.0,
    };
    let per_month = price.hundredths_per_month as f64 / 100.0;
    (rate_per_s > 0.0).then(|| Cost {
        layout: case.id.layout.clone(),
        per_million: 1e6 * per_month / (MONTH_S * rate_per_s),
        price,
        rate_per_s,
        dominated_by: None,
    })
}

/// Whether `other` dominates `cost`, as far as the verdicts of pairs say.
fn dominates(other: &Cost, cost: &Cost, pairs: &[&Pair]) -> bool {
    let verdict = pairs
        .iter()
        .find_map(|pair| match (&pair.cases.a, &pair.cases.b) {
            (a, b) if *a == other.layout && *b == cost.layout => Some(pair.verdict),
            (a, b) if *a == cost.layout && *b == other.layout => Some(match pair.verdict {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                same => same,
            }),
            _ => None,
        });
    let (theirs, own) = (
        other.price.hundredths_per_month,
        cost.price.hundredths_per_month,
    );
    match verdict {
        Some(Verdict::Faster) => theirs <= own,
        Some(Verdict::Draw) => theirs < own,
        _ => false,
    }
}

/// Who is cheapest, for the headline; `None` without prices, or at several load levels.
pub(super) fn sentence(result: &RunResult) -> Option<String> {
    let [ranking] = result.rankings.as_slice() else {
        return None;
    };
    let costs = costs(result, ranking);
    let (cheapest, others) = costs.split_first()?;
    let told = |cost: &Cost| format!("{} {}", named(&cost.layout), cost.amount());
    let pairs: Vec<&Pair> = result.pairs_of(ranking).collect();
    let is_sure = others
        .iter()
        .all(|other| surely_costs_less(cheapest, other, &pairs));
    let others: Vec<String> = others.iter().map(told).collect();
    let dominated = costs.iter().filter_map(|cost| {
        let by = cost.dominated_by.as_ref()?;
        Some(format!(
            " {} does as much as {} or more, and costs no more.",
            named(by),
            named(&cost.layout)
        ))
    });
    let (cheapest, others) = (told(cheapest), others.join(", "));
    let costs = match is_sure {
        true => format!("A million transactions cost least on {cheapest}; {others}."),
        false => format!(
            "A million transactions cost about: {cheapest}, {others}. Which costs least is not decided."
        ),
    };
    Some(format!("{costs}{}", dominated.collect::<String>()))
}

/// Whether transactions cost less on one layout than on another whatever the interval of their ratio leaves open. At
/// one price that is for the verdict to say.
fn surely_costs_less(less: &Cost, more: &Cost, pairs: &[&Pair]) -> bool {
    let ratio_of_prices =
        more.price.hundredths_per_month as f64 / less.price.hundredths_per_month.max(1) as f64;
    let is_one_price = less.price.hundredths_per_month == more.price.hundredths_per_month;
    pairs.iter().any(|pair| {
        let (faster, least_ratio) = match (&pair.cases.a, &pair.cases.b) {
            (a, b) if *a == less.layout && *b == more.layout => {
                (Verdict::Faster, pair.ci95.map(|(low, _)| low))
            }
            (a, b) if *a == more.layout && *b == less.layout => {
                (Verdict::Slower, pair.ci95.map(|(_, high)| 1.0 / high))
            }
            _ => return false,
        };
        let is_less = least_ratio.is_some_and(|ratio| ratio * ratio_of_prices > 1.0);
        is_less && (!is_one_price || pair.verdict == faster)
    })
}

/// That some layouts have a price and others none, or in another currency.
pub(super) fn note(result: &RunResult) -> Option<String> {
    let (with, without): (Vec<_>, Vec<_>) = result
        .layouts
        .iter()
        .partition(|layout| layout.price.is_some());
    let first = with.first()?.price.as_deref()?;
    let names = |layouts: &[&super::Layout]| {
        let names: Vec<&str> = layouts.iter().map(|layout| layout.name.as_str()).collect();
        listed(&names)
    };
    if !without.is_empty() {
        return Some(format!(
            "Costs are not compared: {} has no price.",
            names(&without)
        ));
    }
    let is_other = |layout: &&&super::Layout| {
        layout
            .price
            .as_ref()
            .is_some_and(|price| price.currency != first.currency)
    };
    let others: Vec<&super::Layout> = with.iter().filter(is_other).copied().collect();
    (!others.is_empty()).then(|| {
        format!(
            "Costs are not compared: the price of {} is not in {}.",
            names(&others),
            first.currency
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Price, RunResult, build, sample};
    use super::costs;

    /// A layout, its throughput in each round, and its price a month.
    type Priced<'a> = (&'a str, &'a [f64], Option<(u64, &'a str)>);

    fn priced(prices: &[Priced<'_>]) -> RunResult {
        let cases: Vec<(&str, &[f64])> =
            prices.iter().map(|(name, tpm, _)| (*name, *tpm)).collect();
        let mut record = sample::record(&cases);
        for (layout, (_, _, price)) in record.layouts.iter_mut().zip(prices) {
            layout.price = price.map(|(units, currency)| {
                Box::new(Price {
                    hundredths_per_month: units * 100,
                    currency: currency.to_owned(),
                })
            });
        }
        build(&record).unwrap()
    }

    const SLOW: &[f64] = &[6_000.0, 6_010.0, 5_990.0];
    const QUICK: &[f64] = &[12_000.0, 12_010.0, 11_990.0];

    #[test]
    fn a_million_transactions_have_a_cost_and_who_costs_more_for_less_is_dominated() {
        let usd = |units| Some((units, "USD"));
        let result = priced(&[
            ("dear", SLOW, usd(600)),
            ("cheap", SLOW, usd(100)),
            ("large", QUICK, usd(600)),
        ]);
        let found = costs(&result, &result.rankings[0]);
        let names: Vec<&str> = found.iter().map(|cost| cost.layout.as_str()).collect();
        assert_eq!(names, ["cheap", "large", "dear"]);
        // 100 a second for 730 hours are 262.8 million.
        assert!(
            (found[0].per_million - 100.0 / 262.8).abs() < 1e-6,
            "{found:?}"
        );
        // The large one does more than the cheap one, and costs more: both may be chosen.
        assert_eq!(found[0].dominated_by, None);
        assert_eq!(found[1].dominated_by, None);
        assert_eq!(found[2].dominated_by.as_deref(), Some("cheap"));
        assert!(
            result.headline.ends_with(
                "A million transactions cost least on cheap 0.381 USD; large 1.142 USD, dear 2.283 USD. cheap does as much \
                 as dear or more, and costs no more."
            ),
            "{}",
            result.headline
        );
    }

    #[test]
    fn who_costs_least_is_said_when_it_is_sure_and_small_costs_keep_their_figures() {
        let cent = Some((1, "USD"));
        let equal = priced(&[("one", SLOW, cent), ("two", SLOW, cent)]);
        assert!(
            equal.headline.ends_with(
                "A million transactions cost about: one 0.00381 USD, two 0.00381 USD. Which costs least is not decided."
            ),
            "{}",
            equal.headline
        );
        let apart = priced(&[("one", SLOW, cent), ("two", QUICK, cent)]);
        let said = "A million transactions cost least on two 0.00190 USD; one 0.00381 USD.";
        assert!(apart.headline.contains(said), "{}", apart.headline);
    }

    #[test]
    fn prices_that_cannot_be_compared_are_told() {
        let said = |result: &RunResult| {
            result
                .warnings
                .iter()
                .any(|it| it.text.starts_with("Costs are not compared"))
        };
        let result = priced(&[("a", SLOW, Some((5, "USD"))), ("b", QUICK, None)]);
        assert!(said(&result) && costs(&result, &result.rankings[0]).is_empty());
        let result = priced(&[
            ("a", SLOW, Some((5, "USD"))),
            ("b", QUICK, Some((5, "EUR"))),
        ]);
        assert!(said(&result) && costs(&result, &result.rankings[0]).is_empty());
        assert!(!said(&priced(&[("a", SLOW, None), ("b", QUICK, None)])));
    }
}
