//! A person's own data: SQL files and dumps that make the tables and fill them, and check scripts whose answers must
//! stay what they were. Used by the kinds of workloads that bring no tables: scripts and replays.

use std::collections::BTreeMap;

use spindle_text::load_file::{Dump, DumpForm, LoadFile};
use spindle_text::section::{SettingsRefusal, ShownPlace, TextFile};

use super::mistake::Mistake;
use super::program::{self, FileMistake, Placed};
use super::{answers, beyond};
use crate::session::SessionError;
use crate::sql::{Dialect, Ours, SqlConnection};
use crate::workload::CheckError;

/// Of statements that are refused for one reason, this many places are told.
const PLACES_MAX: usize = 5;

/// What is loaded, and what is asked before and after.
pub(crate) struct OwnData {
    load: Vec<Placed>,
    /// Dumps, each with the number of statements of `load` that come before it.
    dumps: Vec<(usize, Dump)>,
    check: Vec<Placed>,
}

impl OwnData {
    /// Reads the files.
    ///
    /// # Errors
    /// A mistake in one of them.
    pub fn read<'a>(
        load: &'a [LoadFile],
        check: &'a [TextFile],
        defined: &BTreeMap<String, String>,
        dialect: Dialect,
    ) -> Result<OwnData, FileMistake<'a>> {
        let mut data = OwnData {
            load: Vec::new(),
            dumps: Vec::new(),
            check: Vec::new(),
        };
        for file in load {
            match file {
                LoadFile::Text(file) => {
                    let unfit = beyond::no_load;
                    let statements = program::statements(file, defined, dialect, unfit)?;
                    data.load.extend(statements);
                }
                LoadFile::Dump(dump) => data.dumps.push((data.load.len(), dump.clone())),
            }
        }
        for file in check {
            let unfit = beyond::no_question;
            let statements = program::statements(file, defined, dialect, unfit)?;
            if statements.is_empty() {
                let message = "there is no statement in it, so nothing would be checked";
                return Err((file, Mistake::new(0..0, message)));
            }
            data.check.extend(statements);
        }
        Ok(data)
    }

    /// The statements that load.
    pub fn statements(&self) -> Vec<String> {
        let statements = self.load.iter();
        statements.map(|statement| statement.sql.clone()).collect()
    }

    /// Which of the statements that load, or of others, may not be carried out where `ours` is put back, and why;
    /// `None`: all may. `elsewhere` are the schemas or databases that are not Spindle's.
    pub fn beyond<'a>(
        &'a self,
        others: &'a [Placed],
        dialect: Dialect,
        ours: Ours,
        elsewhere: &[String],
    ) -> Option<String> {
        let mut refused: Vec<(&str, Vec<&str>)> = Vec::new();
        for Placed { sql, place } in self.load.iter().chain(&self.check).chain(others) {
            let Some(reason) = beyond::reason(sql, dialect, ours, elsewhere) else {
                continue;
            };
            match refused.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, places)) => places.push(place),
                None => refused.push((reason, vec![place])),
            }
        }
        let told = refused.iter().map(|(reason, places)| {
            let shown = places.iter().take(PLACES_MAX).copied();
            let shown = shown.collect::<Vec<&str>>().join(", ");
            match places.len().saturating_sub(PLACES_MAX) {
                0 => format!("{shown}: {reason}"),
                more => format!("{shown} and {more} more: {reason}"),
            }
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// One of them.
    pub fn statement(&self, number: usize) -> Option<&Placed> {
        self.load.get(number)
    }

    /// The dumps, each with the number of statements that come before it.
    pub fn dumps(&self) -> Vec<(usize, &Dump)> {
        let dumps = self.dumps.iter();
        dumps.map(|(before, dump)| (*before, dump)).collect()
    }

    /// Asks the check scripts, and keeps the answers beside the data.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn keep_answers(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        answers::keep(&self.check, connection)
    }

    /// Asks them again; says what was found.
    ///
    /// # Errors
    /// An answer is another one, or cannot be given.
    pub fn compare_answers(
        &self,
        connection: &mut dyn SqlConnection,
    ) -> Result<String, CheckError> {
        answers::compare(&self.check, connection)
    }
}

/// The database whose tools restore a dump.
fn dialect_of(form: DumpForm) -> (Dialect, &'static str) {
    match form {
        DumpForm::PostgresCustom
        | DumpForm::PostgresDirectory
        | DumpForm::PostgresTar
        | DumpForm::PostgresPlain
        | DumpForm::PostgresFiles => (Dialect::Postgres, "PostgreSQL"),
        DumpForm::MariaDb | DumpForm::MariaDbFiles => (Dialect::MariaDb, "MariaDB or MySQL"),
        DumpForm::Sqlite => (Dialect::Sqlite, "SQLite"),
    }
}

/// Why settings do not go together, when that is in no file.
pub(crate) fn refusal(
    keys: &'static [&'static str],
    title: &str,
    label: &str,
    help: &'static str,
) -> SettingsRefusal {
    SettingsRefusal {
        keys,
        title: title.to_owned(),
        label: label.to_owned(),
        help,
        shown: None,
    }
}

/// Why dumps are refused: those of another database, and copies by which something would be lost.
pub(crate) fn refused_dumps(load: &[LoadFile], dialect: Dialect) -> Vec<SettingsRefusal> {
    let dumps = load.iter().enumerate();
    let refused = dumps.filter_map(|(number, file)| match file {
        LoadFile::Dump(dump) => refused_dump(number, dump, dialect),
        _ => None,
    });
    refused.collect()
}

fn refused_dump(number: usize, dump: &Dump, dialect: Dialect) -> Option<SettingsRefusal> {
    let (of, database) = dialect_of(dump.form);
    if of != dialect {
        return Some(refusal(
            &["load"],
            &format!("{} cannot be loaded", dump.name),
            &format!("it is of {database}, and the engine is another"),
            "choose the dump's own engine in [database], or load SQL that the engine knows",
        ));
    }
    let is_whole = dump.form == DumpForm::Sqlite || dump.form.is_of_files();
    (is_whole && number > 0).then(|| {
        refusal(
            &["load"],
            &format!(
                "{} would take the place of what is loaded before it",
                dump.name
            ),
            "files of a database are copied as a whole",
            "name it first",
        )
    })
}

/// A mistake in a file; `lists` are the keys that name files, with these.
pub(crate) fn refused(
    (file, mistake): FileMistake<'_>,
    lists: &[(&'static [&'static str], &[TextFile])],
) -> SettingsRefusal {
    let has = |files: &[TextFile]| files.iter().any(|of_list| std::ptr::eq(of_list, file));
    let list = lists.iter().find(|(_, files)| has(files));
    SettingsRefusal {
        // What is in no other list is loaded.
        keys: list.map_or(&["load"], |(key, _)| *key),
        title: format!("{} cannot be carried out", file.name),
        label: mistake.message,
        help: "docs/how-to/your-own-sql.md says what scripts may hold",
        // Nothing can be shown of an empty one.
        shown: (!file.text.is_empty()).then(|| {
            Box::new(ShownPlace {
                name: file.name.clone(),
                text: file.text.clone(),
                span: mistake.span,
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_refused_is_told_at_once() {
        let text = |name: &str, text: &str| TextFile {
            name: name.to_owned(),
            weight: 1,
            text: text.to_owned(),
        };
        let many = "delete from public.t;\n".repeat(7);
        let load = [
            LoadFile::Text(text("load.sql", &many)),
            LoadFile::Text(text("more.sql", "select 1;\nvacuum;\ndelete from t;")),
        ];
        let data = OwnData::read(&load, &[], &BTreeMap::new(), Dialect::Postgres);
        let data = data.map_err(|(_, mistake)| mistake.message).unwrap();
        let elsewhere = ["public".to_owned()];
        let told = |ours| data.beyond(&[], Dialect::Postgres, ours, &elsewhere);
        let all = told(Ours::Schema).unwrap();
        let (named, tables) = all.split_once("; ").unwrap();
        assert!(
            named.starts_with("load.sql:1:1, load.sql:2:1, load.sql:3:1, load.sql:4:1, load.sql:5:1 and 2 more: the name says"),
            "{all}"
        );
        assert!(
            tables.starts_with("more.sql:2:1: this works on every table"),
            "{all}"
        );
        assert_eq!(told(Ours::Server), None);
    }
}
