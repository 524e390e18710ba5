//! What is known of tables, and who knows it.

use std::rc::Rc;

use super::column::{Column, Kind};

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
    /// Why that cannot be known now, in words; so for the others.
    fn table(&mut self, name: &[String]) -> Result<Option<Rc<Table>>, String>;

    /// What is known of the values of a column; `None`: nothing.
    fn column(&mut self, table: &Table, place: usize) -> Result<Option<Column>, String>;

    /// Looks whether the server takes a statement, without carrying it out.
    fn check(&mut self, statements: &[String]) -> Result<(), String>;
}

/// There is no server to ask.
pub struct NoTables;

impl Tables for NoTables {
    fn table(&mut self, _: &[String]) -> Result<Option<Rc<Table>>, String> {
        Err("its parameters cannot be sampled without the server's statistics: add --statistics URL".to_owned())
    }

    fn column(&mut self, _: &Table, _: usize) -> Result<Option<Column>, String> {
        Ok(None)
    }

    fn check(&mut self, _: &[String]) -> Result<(), String> {
        Ok(())
    }
}
