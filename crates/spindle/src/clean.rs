//! `spindle clean`: removes what dead runs left, by their ledgers, and says what it did.

use std::fmt::Write;
use std::path::Path;

use spindle_layout::{Cleaned, LedgerError};
use spindle_system::SystemTree;

use spindle_run::schemas::drop_recorded;
use spindle_system::own_group;

/// What cleaning came to.
pub struct CleanReport {
    /// For people.
    pub text: String,
    /// Whether nothing is left that a dead run made.
    pub is_clean: bool,
}

/// Removes what dead runs left; with `dry_run`, says what would be removed.
///
/// # Errors
/// The directory of the ledgers cannot be read.
pub fn clean(ledgers: &Path, dry_run: bool) -> Result<CleanReport, LedgerError> {
    let cleaned = spindle_layout::clean(
        ledgers,
        &SystemTree::default(),
        dry_run,
        Some(drop_recorded),
    )?;
    let mut report = describe(&cleaned, dry_run);
    if !dry_run {
        // Groups of runs that had no ledger, too.
        for group in own_group::remove_leftovers(&SystemTree::default()) {
            let done = if group.removed {
                "removed"
            } else {
                "left, for a process is in it"
            };
            let _ = writeln!(
                report.text,
                "the control group {}: {done}",
                group.path.display()
            );
            report.is_clean &= group.removed;
        }
    }
    if !dry_run && cleaned.iter().any(|run| !run.left.is_empty()) {
        let _ = writeln!(
            report.text,
            "`spindle clean` tries again what is still there. If it went for good, as with a server that is no more, delete \
             the file of that run in {}",
            ledgers.display()
        );
    }
    if !dry_run && cleaned.iter().any(|run| !run.not_ours.is_empty()) {
        let _ = writeln!(
            report.text,
            "What was left in place is reported each time. To stop that, delete the file of that run in {}",
            ledgers.display()
        );
    }
    if dry_run && cleaned.iter().any(|run| !run.removed.is_empty()) {
        report
            .text
            .push_str("What turns out to be no longer the run's would be left alone.\n");
    }
    if report.text.is_empty() {
        report.text = format!(
            "nothing to clean: no run left anything ({})\n",
            ledgers.display()
        );
    }
    Ok(report)
}

fn describe(cleaned: &[Cleaned], dry_run: bool) -> CleanReport {
    let mut text = String::new();
    for run in cleaned {
        if run.alive {
            let _ = writeln!(text, "{}: still going on, left alone", run.run);
            continue;
        }
        let done = if dry_run {
            "would be removed"
        } else {
            "removed"
        };
        let is_empty = run.removed.is_empty() && run.not_ours.is_empty() && run.left.is_empty();
        let _ = writeln!(
            text,
            "{}:{}",
            run.run,
            if is_empty { " nothing was left" } else { "" }
        );
        for what in &run.removed {
            let _ = writeln!(text, "  {done}: {what}");
        }
        for what in &run.not_ours {
            let _ = writeln!(text, "  {what}");
        }
        for what in &run.left {
            let _ = writeln!(text, "  STILL THERE: {what}");
        }
    }
    CleanReport {
        text,
        is_clean: cleaned.iter().all(|run| run.left.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_run_is_told_of() {
        let dead = Cleaned {
            run: "a-1".to_owned(),
            removed: words(&["the mount of /dev/loop0 on /run/spindle/a"]),
            not_ours: words(&["the file /d: left alone, it is another file of that name"]),
            left: words(&["the mount of /dev/loop1 on /b: /b is still in use"]),
            ..Cleaned::default()
        };
        let alive = Cleaned {
            run: "b-2".to_owned(),
            alive: true,
            ..Cleaned::default()
        };
        let report = describe(&[dead, alive], false);
        assert!(!report.is_clean);
        insta::assert_snapshot!(report.text);
    }
}
