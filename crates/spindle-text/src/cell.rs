//! Cells of CSV files, which people open in spreadsheets.

/// A text that no spreadsheet takes for a formula: one that begins like a formula gets an apostrophe before it
/// (<https://owasp.org/www-community/attacks/CSV_Injection>). Figures need not pass through here.
pub fn harmless(text: &str) -> String {
    const BEGINS_FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let begins_so = text.trim_start().starts_with(BEGINS_FORMULA);
    let is_trimmed_off = text.starts_with(['\t', '\r', '\n']);
    match begins_so || is_trimmed_off {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_formula() {
        for formula in [
            "=cmd|' /C calc'!A0",
            "+1",
            "-1+2",
            "@SUM(A1)",
            " =1",
            "\t=1",
            "\rx",
            "＝1",
        ] {
            assert_eq!(harmless(formula), format!("'{formula}"));
        }
        for text in ["direct, async", "a=b", "a-b", "'a", ""] {
            assert_eq!(harmless(text), text);
        }
    }
}
