//! Numbers with what they count.

use spindle_text::quantity::thousands;

/// `1 session`, `1,234 sessions`.
pub fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", thousands(count as f64))
}

/// Lines that could not be read: so many, and why the first could not.
pub fn unread_lines(count: u64, line: u64, reason: &str) -> String {
    match count {
        1 => format!("1 line could not be read, line {line}: {reason}"),
        _ => format!(
            "{} could not be read; the first is line {line}: {reason}",
            counted(count, "line")
        ),
    }
}
