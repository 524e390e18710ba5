//! What the import of a log says: what the recording has, what was left out and why, and what to do next.

use std::fmt::Write as _;

use spindle_report::sentences::counted;
use spindle_text::plain::one_line;
use spindle_text::quantity::thousands;

use super::super::error::unread_lines;
use super::super::told::{EXPERIMENT, paragraph};
use super::recorder::Made;
use super::{AskedLog, LogForm, RECORDING};

/// What a recording is, for people.
pub fn told(asked: &AskedLog<'_>, made: &Made) -> String {
    let head = &made.head;
    let number = |count: u64| thousands(count as f64);
    let out = asked.out.display();
    let mut text = format!(
        "{}: {} in {} of {} (at most {} at once), {:.1} s, database {}\n",
        asked.file.display(),
        counted(head.statements as usize, "statement"),
        counted(head.transactions as usize, "transaction"),
        counted(head.sessions, "session"),
        made.clients,
        head.duration_us as f64 / 1e6,
        one_line(&made.database)
    );
    let _ = writeln!(text, "\nWritten to {out}:\n  {RECORDING}\n  {EXPERIMENT}");
    let left: u64 = made.left.values().sum();
    if left > 0 {
        let _ = writeln!(text, "\nLeft out, {}:", counted(left as usize, "statement"));
        let mut reasons: Vec<_> = made.left.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (reason, count) in reasons {
            paragraph(&mut text, &format!("{}: {reason}", number(*count)));
        }
    }
    if made.unended > 0 {
        let said = match made.unended {
            1 => "is not ended in the log: it is rolled back",
            _ => "are not ended in the log: they are rolled back",
        };
        let unended = counted(made.unended as usize, "transaction");
        let _ = writeln!(text, "\n{unended} {said}");
    }
    if let Some((line, fault)) = made.skipped.first {
        let unread = unread_lines(made.skipped.count, line, &fault.to_string());
        let _ = writeln!(text, "\n{unread}");
    }
    text.push_str("\nWhat to know:\n");
    paragraph(&mut text, times(asked.form));
    let holds = format!(
        "{RECORDING} holds the statements with their values, as the log does: keep it as you keep the log."
    );
    paragraph(&mut text, &holds);
    text.push_str("\nNext:\n");
    if asked.load.is_empty() {
        let dump = match asked.form {
            LogForm::Slow | LogForm::General => "mariadb-dump DATABASE > data.sql",
            LogForm::Csv | LogForm::Json => "pg_dump --format=custom --file=data.dump DATABASE",
        };
        let bring = format!(
            "The data is yours to bring, as it was when the log began: `{dump}`, and its name as `load` in {EXPERIMENT}, or \
             --load here."
        );
        paragraph(&mut text, &bring);
    }
    let _ = writeln!(
        text,
        "  spindle plan {}",
        asked.out.join(EXPERIMENT).display()
    );
    text
}

/// How exactly a log tells times.
fn times(form: LogForm) -> &'static str {
    match form {
        LogForm::Csv | LogForm::Json => "The log tells times to a millisecond.",
        LogForm::Slow => {
            "MariaDB's slow log tells times to a second: statements of one second begin together, each as soon as its \
             session has ended the one before. MySQL's tells microseconds."
        }
        LogForm::General => {
            "The general log tells when statements arrived and not how long they took; MariaDB's to a second, MySQL's to a \
             microsecond. Statements that failed are in it like others."
        }
    }
}
