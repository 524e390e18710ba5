//! The mean of figures of which there may be none.

/// Arithmetic mean; `None` without values.
pub(super) fn mean_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
