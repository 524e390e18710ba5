//! What the import of a log says: what the recording has, what was left out and why, and what to do next.

use std::fmt::Write as _;

use spindle_report::sentences::counted;
use spindle_text::plain::one_line;
use spindle_text::quantity::thousands;

use super::super::error::unread_lines;
use super::super::told::{EXPERIMENT, paragraph};
use super::recorder::FinishedRecording;
use super::{AskedLog, LogForm, RECORDING};

/// What a recording is, for people.
pub fn told(asked: &AskedLog<'_>, made: &FinishedRecording) -> String {
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
    if let Some(remedy) = remedy_of_begins(asked.form).filter(|_| !made.has_begins) {
        let unknown = format!(
            "Transactions are unknown: the log lacks where they begin, so each statement is one by itself. A log of slow \
             statements alone lacks BEGIN and COMMIT. If the sessions had transactions, have the server log them: {remedy}."
        );
        paragraph(&mut text, &unknown);
    }
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

/// How a server comes to log where transactions begin; `None`: it logs that always.
fn remedy_of_begins(form: LogForm) -> Option<&'static str> {
    match form {
        LogForm::Csv | LogForm::Json => {
            Some("log_min_duration_statement = 0, or log_statement = 'all' with log_duration = on")
        }
        LogForm::Slow => Some("long_query_time = 0"),
        LogForm::General => None,
    }
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use spindle_workload::sql::Dialect;

    use super::super::recorder::{Recorder, StatementCall};
    use super::*;

    /// What is said of a log of one session with these statements.
    fn said(form: LogForm, statements: &[&str]) -> String {
        let dialect = match form {
            LogForm::Csv | LogForm::Json => Dialect::Postgres,
            LogForm::Slow | LogForm::General => Dialect::MariaDb,
        };
        let mut recorder = Recorder::new(dialect, None);
        for (at_us, text) in (0..).zip(statements) {
            recorder.call(&StatementCall {
                session: "1",
                database: "shop",
                from_us: at_us,
                to_us: at_us,
                text,
                parameters: Vec::new(),
            });
        }
        let asked = AskedLog {
            form,
            file: Path::new("log"),
            database: None,
            load: &[],
            out: Path::new("out"),
        };
        let told = told(&asked, &recorder.finish().unwrap());
        told.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_log_without_begins_is_told_with_its_remedy() {
        let plain = ["update t set a = 1", "update t set a = 2"];
        let whole = ["begin", "update t set a = 1", "commit"];
        let late = [
            "update t set a = 1",
            "commit",
            "begin",
            "select 1",
            "commit",
        ];
        let ends = ["begin", "select 1", "commit", "commit", "commit"];
        for (form, statements, remedy) in [
            (
                LogForm::Csv,
                &plain[..],
                Some("log_min_duration_statement = 0"),
            ),
            (
                LogForm::Csv,
                &ends,
                Some("log_statement = 'all' with log_duration = on"),
            ),
            (LogForm::Csv, &whole, None),
            // The log begins within a transaction.
            (LogForm::Csv, &late, None),
            (
                LogForm::Slow,
                &plain,
                Some("have the server log them: long_query_time = 0"),
            ),
            (
                LogForm::Slow,
                &["set autocommit = 0", "update t set a = 1", "commit"],
                None,
            ),
            (LogForm::Slow, &ends, None),
            (LogForm::General, &plain, None),
        ] {
            let said = said(form, statements);
            assert_eq!(
                said.contains("Transactions are unknown"),
                remedy.is_some(),
                "{said}"
            );
            assert!(remedy.is_none_or(|remedy| said.contains(remedy)), "{said}");
        }
    }
}
