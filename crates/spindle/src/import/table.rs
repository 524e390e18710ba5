//! What is known of tables, and who knows it.

use std::rc::Rc;

use super::column::{Column, Kind};
use super::error::LeftOut;

/// A column, without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// Its type, as arrays of it are cast.
    pub type_name: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name in SQL, quoted where need be.
    pub name: String,
    /// Rows, about.
    pub rows: f64,
    /// Its columns in their order.
    pub columns: Vec<Known>,
    /// The columns of each unique index, by their places among those.
    pub unique: Vec<Vec<usize>>,
}

impl Table {
    /// The place of a column.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// Knows tables.
pub trait Tables {
    /// A table by the parts of its name; `None`: it is not known.
    ///
    /// # Errors
    /// Why that cannot be known now; so for the others.
    fn table(&mut self, name: &[String]) -> Result<Option<Rc<Table>>, LeftOut>;

    /// What is known of the values of a column; `None`: nothing.
    fn column(&mut self, table: &Table, place: usize) -> Result<Option<Column>, LeftOut>;

    /// Looks whether the server takes a statement, without carrying it out.
    fn check(&mut self, statements: &[String]) -> Result<(), LeftOut>;
}

/// There is no server to ask.
pub struct NoTables;

impl Tables for NoTables {
    fn table(&mut self, _: &[String]) -> Result<Option<Rc<Table>>, LeftOut> {
        Err(LeftOut::NoStatistics)
    }

    fn column(&mut self, _: &Table, _: usize) -> Result<Option<Column>, LeftOut> {
        Ok(None)
    }

    fn check(&mut self, _: &[String]) -> Result<(), LeftOut> {
        Ok(())
    }
}
