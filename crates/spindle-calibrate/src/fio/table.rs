//! Rows of cells that stay in their columns, whatever a foreign file puts into them. [`crate::text`] prints them.

/// Lines of cells: the first column begins each line, the others end at their columns. A first cell that is longer than
/// its column loses its middle. Other columns grow with their longest cell, so that a blank is always before it.
pub(crate) fn aligned(widths: &[usize], rows: &[Vec<String>]) -> String {
    let length = |cell: &String| cell.chars().count();
    let width = |(column, least): (usize, &usize)| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let longest = cells.map(length).max().unwrap_or_default();
        match column {
            0 => *least,
            _ => longest.saturating_add(1).max(*least),
        }
    };
    let widths: Vec<usize> = widths.iter().enumerate().map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            line += &match column {
                0 => format!("{:<width$}", without_middle(cell, *width)),
                _ => format!("{cell:>width$}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The begin and the end of a text, at most this many characters with the ellipsis between them.
fn without_middle(text: &str, length_max: usize) -> String {
    let length = text.chars().count();
    if length <= length_max {
        return text.to_owned();
    }
    let kept = length_max.saturating_sub(1);
    let of_end = kept / 2;
    let begin = text.chars().take(kept - of_end);
    let end = text.chars().skip(length - of_end);
    begin.chain(['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_and_a_large_figure_stay_apart() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let text = aligned(
            &[9, 6, 6],
            &[
                row(["job", "IOPS", "mean"]),
                row(["random-read-of-a-long-name-q8", "1,000,000,000", "5 ms"]),
                row(["exactly-9", "7", "5 ms"]),
            ],
        );
        assert_eq!(
            text,
            "job                IOPS  mean\n\
             rand…e-q8 1,000,000,000  5 ms\n\
             exactly-9             7  5 ms\n"
        );
    }
}
