//! The middle of some values.

/// The middle of some values, of an even number the upper of the two; `None` without values.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_even_number_it_is_the_upper_of_the_two() {
        let of = |values: &[f64]| median(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(of(&[3.0, 1.0, 2.0, 4.0]), Some(3.0));
        assert_eq!(of(&[]), None);
    }
}
