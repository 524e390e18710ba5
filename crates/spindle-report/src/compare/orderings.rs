//! The same layouts under two databases: figures of different engines say nothing beside each other, but the order in
//! which each puts the layouts does. Where the orders are contrary, a layout that is good for one is bad for the other.

use std::cmp::Ordering;

use serde::Serialize;

use spindle_result::{LoadLevel, RankedCase, Ranking, RunResult};

/// The orders of the layouts that both runs measured, at one load level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Orderings {
    /// The engines: of the first run, and of the other.
    pub engines: [String; 2],
    /// The workloads.
    pub workloads: [String; 2],
    /// The load level.
    #[serde(flatten)]
    pub load: LoadLevel,
    /// The layouts, as the first run orders them.
    pub layouts: Vec<OrderedLayout>,
    /// What became of the pairs.
    pub pairs: Pairs,
}

/// A layout in both orders.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrderedLayout {
    /// Its name.
    pub layout: String,
    /// Where it came in the first run, and in the other.
    pub places: [RankedCase; 2],
}

/// Pairs of layouts by what both runs say of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Pairs {
    /// In the same order in both.
    pub same: usize,
    /// In the contrary order.
    pub contrary: usize,
    /// Not told apart by one of them, or by both.
    pub open: usize,
}

/// The orderings at every load level that both runs have; none when both are of one engine.
pub(super) fn orderings(before: &RunResult, after: &RunResult) -> Vec<Orderings> {
    let engines = [before, after].map(engine);
    if engines[0] == engines[1] {
        return Vec::new();
    }
    let rankings = before.rankings.iter().filter_map(|ranking| {
        let mut others = after.rankings.iter();
        let other = others.find(|other| other.load == ranking.load)?;
        let layouts = side_by_side(ranking, other)?;
        Some(Orderings {
            engines: engines.clone(),
            workloads: [before.workload.clone(), after.workload.clone()],
            load: ranking.load,
            pairs: pairs(&layouts),
            layouts,
        })
    });
    rankings.collect()
}

fn engine(result: &RunResult) -> String {
    result.experiment.facts().database.engine.clone()
}

/// The layouts that both rankings hold; `None` where these are no more than one.
fn side_by_side(before: &Ranking, after: &Ranking) -> Option<Vec<OrderedLayout>> {
    let both = |place: &RankedCase| {
        let mut others = after.places.iter();
        let other = others.find(|other| other.layout == place.layout)?;
        Some(OrderedLayout {
            layout: place.layout.clone(),
            places: [place.clone(), other.clone()],
        })
    };
    let layouts: Vec<OrderedLayout> = before.places.iter().filter_map(both).collect();
    (layouts.len() > 1).then_some(layouts)
}

fn pairs(layouts: &[OrderedLayout]) -> Pairs {
    let mut pairs = Pairs::default();
    for (index, one) in layouts.iter().enumerate() {
        for other in &layouts[index + 1..] {
            let order = |run: usize| one.places[run].place.cmp(&other.places[run].place);
            match (order(0), order(1)) {
                (Ordering::Equal, _) | (_, Ordering::Equal) => pairs.open += 1,
                (first, second) if first == second => pairs.same += 1,
                _ => pairs.contrary += 1,
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_result::Measure;

    fn ranking(places: &[(&str, u32)]) -> Ranking {
        let place = |(layout, place): &(&str, u32)| RankedCase {
            keeps: spindle_result::Keeps::default(),
            layout: (*layout).to_owned(),
            place: *place,
            of_best: None,
        };
        Ranking {
            keeps: spindle_result::Keeps::default(),
            load: LoadLevel::of(8),
            measure: Measure::Throughput,
            best: places[0].0.to_owned(),
            winner: None,
            tied: Vec::new(),
            places: places.iter().map(place).collect(),
        }
    }

    #[test]
    fn pairs_are_told_by_what_both_orders_say() {
        let before = ranking(&[("a", 1), ("b", 2), ("c", 3), ("only here", 4)]);
        let after = ranking(&[("b", 1), ("a", 2), ("c", 2)]);
        let both = side_by_side(&before, &after).unwrap();
        assert_eq!(both.len(), 3);
        // a and b the other way round, b before c in both, a and c not told apart by the second.
        let wanted = Pairs {
            same: 1,
            contrary: 1,
            open: 1,
        };
        assert_eq!(pairs(&both), wanted);
        assert_eq!(side_by_side(&before, &ranking(&[("a", 1)])), None);
    }
}
