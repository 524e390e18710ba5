//! Long series drawn with no more points than the eye can tell apart.

/// The values of a series with the lowest and the highest of each of `buckets` equal stretches, in their order: what
/// stands out still does. A series that is short enough is kept as it is.
pub(crate) fn thin(values: &[(f64, f64)], buckets: usize) -> Vec<(f64, f64)> {
    if values.len() <= 2 * buckets {
        return values.to_vec();
    }
    let mut thinned = Vec::with_capacity(2 * buckets);
    for bucket in 0..buckets {
        let stretch =
            &values[bucket * values.len() / buckets..(bucket + 1) * values.len() / buckets];
        let by_value = |a: &usize, b: &usize| stretch[*a].1.total_cmp(&stretch[*b].1);
        let lowest = (0..stretch.len()).min_by(by_value);
        // The first of equals, as for the lowest: of a level stretch one value is enough.
        let highest = (0..stretch.len()).rev().max_by(by_value);
        if let (Some(lowest), Some(highest)) = (lowest, highest) {
            thinned.push(stretch[lowest.min(highest)]);
            if lowest != highest {
                thinned.push(stretch[lowest.max(highest)]);
            }
        }
    }
    thinned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_spike_survives() {
        let mut values: Vec<(f64, f64)> = (0..1_800).map(|index| (f64::from(index), 5.0)).collect();
        values[777].1 = 90.0;
        values[1_201].1 = 0.0;
        let thinned = thin(&values, 100);
        assert!(thinned.len() <= 200, "{}", thinned.len());
        assert!(thinned.contains(&(777.0, 90.0)) && thinned.contains(&(1_201.0, 0.0)));
        assert!(thinned.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn a_short_series_stays_as_it_is() {
        let values = [(0.0, 1.0), (1.0, 3.0), (2.0, 2.0)];
        assert_eq!(thin(&values, 2), values);
    }
}
