//! A series as a line of small bars, one character each.

/// The bars, the lowest first (Unicode block elements, U+2581 to U+2588).
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// `values` in at most `cells` characters; each is the mean of the values that fall into it, and one at `full` or above
/// is a whole bar. Empty without values, or when `full` is not above zero.
pub fn sparkline(values: &[f64], full: f64, cells: usize) -> String {
    let cells = cells.min(values.len());
    if full <= 0.0 {
        return String::new();
    }
    let bar = |cell: usize| {
        let (begin, end) = (
            cell * values.len() / cells,
            (cell + 1) * values.len() / cells,
        );
        let part = &values[begin..end];
        let height = part.iter().sum::<f64>() / part.len() as f64 / full;
        BARS[((height * BARS.len() as f64) as usize).min(BARS.len() - 1)]
    };
    (0..cells).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_rise_with_the_values() {
        let values: Vec<f64> = (0..8).map(f64::from).collect();
        assert_eq!(sparkline(&values, 8.0, 20), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&values, 16.0, 20), "▁▁▂▂▃▃▄▄");
        assert_eq!(sparkline(&[8.0, 9.0], 8.0, 20), "██");
    }

    #[test]
    fn more_values_than_cells_are_averaged() {
        assert_eq!(sparkline(&[0.0, 8.0, 0.0, 0.0], 8.0, 2), "▅▁");
        let many: Vec<f64> = (0..1_800).map(|_| 1.0).collect();
        assert_eq!(sparkline(&many, 1.0, 7).chars().count(), 7);
    }

    #[test]
    fn nothing_to_draw_is_nothing() {
        assert_eq!(sparkline(&[], 1.0, 10), "");
        assert_eq!(sparkline(&[0.0, 0.0], 0.0, 10), "");
    }
}
