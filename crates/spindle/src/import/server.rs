//! A server that counts its statements and knows its tables: what is asked of PostgreSQL and of MariaDB alike. Only
//! `mod` and what implements it may call it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use spindle_engines::sql::Reader;
use spindle_workload::SessionError;

use super::column::{ImportedColumn, ValueOrigin};
use super::error::{ImportError, LeftOutStatement};
use super::mix::Counted;
use super::table::{ImportedTable, Tables};

/// A server that is read, in transactions that change nothing.
pub trait CountingServer {
    /// The statements of the database.
    ///
    /// # Errors
    /// Why they are not told.
    fn statements(&mut self) -> Result<Vec<Counted>, ImportError>;

    /// Bytes of the database, where the user may know.
    fn size_bytes(&mut self) -> Option<u64>;

    /// Where names without a schema are looked for, if that is to be set.
    ///
    /// # Errors
    /// See [`SessionError`]; so for the others.
    fn search_path(&mut self) -> Result<Option<String>, SessionError>;

    /// A table by the parts of its name; `None`: it is not known.
    fn table(&mut self, name: &[String]) -> Result<Option<ImportedTable>, SessionError>;

    /// What is known of the values of a column; `None`: nothing.
    fn column(
        &mut self,
        table: &ImportedTable,
        place: usize,
    ) -> Result<Option<ImportedColumn>, SessionError>;

    /// Looks whether the server takes statements, without carrying them out.
    fn check(&mut self, statements: &[String]) -> Result<(), SessionError>;
}

/// The tables of a server, each of which is asked for once.
pub struct ServerTables<'a> {
    server: &'a mut dyn CountingServer,
    tables: BTreeMap<Vec<String>, Option<Rc<ImportedTable>>>,
    columns: BTreeMap<(String, usize), Option<ImportedColumn>>,
}

impl<'a> ServerTables<'a> {
    /// Those of a server.
    pub fn new(server: &'a mut dyn CountingServer) -> ServerTables<'a> {
        ServerTables {
            server,
            tables: BTreeMap::new(),
            columns: BTreeMap::new(),
        }
    }
}

impl Tables for ServerTables<'_> {
    fn table(&mut self, name: &[String]) -> Result<Option<Rc<ImportedTable>>, LeftOutStatement> {
        if let Some(known) = self.tables.get(name) {
            return Ok(known.clone());
        }
        let found = self.server.table(name)?.map(Rc::new);
        self.tables.insert(name.to_vec(), found.clone());
        Ok(found)
    }

    fn column(
        &mut self,
        table: &ImportedTable,
        place: usize,
    ) -> Result<Option<ImportedColumn>, LeftOutStatement> {
        let key = (table.name.clone(), place);
        if let Some(known) = self.columns.get(&key) {
            return Ok(known.clone());
        }
        let found = self.server.column(table, place)?;
        self.columns.insert(key, found.clone());
        Ok(found)
    }

    fn check(&mut self, statements: &[String]) -> Result<(), LeftOutStatement> {
        self.server
            .check(statements)
            .map_err(LeftOutStatement::Refused)
    }

    fn read_from_rows(&self) -> BTreeSet<String> {
        let known = self.columns.values().flatten();
        let of_rows = known.filter(|column| column.origin == ValueOrigin::Rows);
        of_rows.map(|column| column.name.clone()).collect()
    }
}

/// The first column of an answer, without those that have no value.
///
/// # Errors
/// See [`SessionError`].
pub fn texts(connection: &mut dyn Reader, sql: &str) -> Result<Vec<String>, SessionError> {
    let mut found = Vec::new();
    connection.ask(sql, &mut |row| {
        if !row.is_null(0)? {
            found.push(row.text(0)?);
        }
        Ok(())
    })?;
    Ok(found)
}
