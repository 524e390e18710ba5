//! What is known of tables, and who knows it.

use std::collections::BTreeSet;
use std::rc::Rc;

use spindle_workload::sql::Dialect;

use super::column::{ImportedColumn, ValueKind};
use super::error::LeftOutStatement;

/// A column, without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: ValueKind,
    /// Its type, as arrays of it are cast.
    pub type_name: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedTable {
    /// Its name: of PostgreSQL with its schema, quoted where need be.
    pub name: String,
    /// Rows, about.
    pub rows: f64,
    /// Its columns in their order.
    pub columns: Vec<Known>,
    /// The columns of each unique index, by their places among those.
    pub unique: Vec<Vec<usize>>,
}

impl ImportedTable {
    /// The place of a column. MariaDB and MySQL know columns by names in large and in small letters.
    pub fn place(&self, name: &str, dialect: Dialect) -> Option<usize> {
        let is_meant = |column: &Known| match dialect {
            Dialect::MariaDb => column.name.eq_ignore_ascii_case(name),
            Dialect::Postgres | Dialect::Sqlite => column.name == name,
        };
        self.columns.iter().position(is_meant)
    }
}

/// Knows tables.
pub trait Tables {
    /// A table by the parts of its name; `None`: it is not known.
    ///
    /// # Errors
    /// Why that cannot be known now; so for the others.
    fn table(&mut self, name: &[String]) -> Result<Option<Rc<ImportedTable>>, LeftOutStatement>;

    /// What is known of the values of a column; `None`: nothing.
    fn column(
        &mut self,
        table: &ImportedTable,
        place: usize,
    ) -> Result<Option<ImportedColumn>, LeftOutStatement>;

    /// Looks whether the server takes a statement, without carrying it out.
    fn check(&mut self, statements: &[String]) -> Result<(), LeftOutStatement>;

    /// The columns whose values were read from rows.
    fn read_from_rows(&self) -> BTreeSet<String>;
}

/// There is no server to ask.
pub struct NoTables;

impl Tables for NoTables {
    fn table(&mut self, _: &[String]) -> Result<Option<Rc<ImportedTable>>, LeftOutStatement> {
        Err(LeftOutStatement::NoStatistics)
    }

    fn column(
        &mut self,
        _: &ImportedTable,
        _: usize,
    ) -> Result<Option<ImportedColumn>, LeftOutStatement> {
        Ok(None)
    }

    fn check(&mut self, _: &[String]) -> Result<(), LeftOutStatement> {
        Ok(())
    }

    fn read_from_rows(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }
}
