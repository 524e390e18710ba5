//! Rows of a table by values instead of bytes: the columns that the dictionary has of it make rows and keys of values,
//! and values of rows. What then happens is what [`super::rows`] and [`super::range`] do.

use std::ops::ControlFlow;
use std::sync::Arc;

use spindle_query::{Cell, RowLayout, RowLayoutError};

use super::Session;
use crate::block::RowId;
use crate::error::{KernelError, Result};
use crate::index::Index;
use crate::table::Table;

/// A table whose rows are read and changed by values, in a session's transaction.
pub struct TypedTable<'s> {
    session: &'s mut Session,
    table: &'s Table,
    columns: &'s RowLayout,
}

impl Session {
    /// A table by the values of its columns.
    ///
    /// # Errors
    /// [`KernelError::NoColumns`] when the dictionary has none of it.
    pub fn typed<'s>(&'s mut self, table: &'s Table) -> Result<TypedTable<'s>> {
        let columns = table.columns().ok_or_else(|| KernelError::NoColumns {
            table: table.name().to_string(),
        })?;
        Ok(TypedTable {
            session: self,
            table,
            columns,
        })
    }
}

/// Values that do not fit are refused with [`KernelError::Columns`], before anything is changed; an index that is not
/// there with [`KernelError::NoSuchIndex`]. A key has a value for each column of the index. Beside that the errors are
/// those of the session's functions of these names.
impl TypedTable<'_> {
    /// Reads the row of a key, the first of them when several have it: `read` gets its values, in the order of the
    /// columns. `None` when there is none.
    pub async fn get<T>(
        &mut self,
        index: &str,
        key: &[Cell<'_>],
        read: impl FnOnce(&[Cell<'_>]) -> T,
    ) -> Result<Option<T>> {
        let (index, key) = self.whole_key(index, key)?;
        let (table, columns) = (self.table, self.columns);
        let read = |_, row: &[u8]| columns.decode(row).map(|values| read(&values));
        let found = self.session.get(&index, &key, read).await?;
        found.transpose().map_err(|error| table.misfit(error))
    }

    /// Reads the rows whose keys are from `from` to `to`, both included, in the order of their keys, all as of one
    /// moment. `read` gets each one's values, and says whether to continue. Values of the key's first columns alone
    /// stand for all keys that begin with them; none at all for every key.
    pub async fn range(
        &mut self,
        index: &str,
        from: &[Cell<'_>],
        to: &[Cell<'_>],
        mut read: impl FnMut(&[Cell<'_>]) -> ControlFlow<()>,
    ) -> Result<()> {
        let (index, from) = self.key(index, from)?;
        let (_, mut end) = self.key(index.name(), to)?;
        if to.len() < key_columns(&index).len() {
            // No key is longer, and none of those that begin so is greater.
            end.resize(index.key_bytes(), u8::MAX);
        }
        let (table, columns) = (self.table, self.columns);
        let mut misfit = None;
        let visit = |_: &[u8], _, row: &[u8]| match columns.decode(row) {
            Ok(values) => read(&values),
            Err(error) => {
                misfit = Some(error);
                ControlFlow::Break(())
            }
        };
        self.session.range(&index, &from, Some(&end), visit).await?;
        misfit.map_or(Ok(()), |error| Err(table.misfit(error)))
    }

    /// Adds a row: a value for each column, in their order.
    pub async fn insert(&mut self, values: &[Cell<'_>]) -> Result<RowId> {
        let mut row = Vec::new();
        self.fitting(self.columns.encode(values, &mut row))?;
        self.session.insert_row(self.table, &row).await
    }

    /// Gives columns, by their names, other values in the row of a key, the first of them when several have it; false
    /// when there is none.
    pub async fn update(
        &mut self,
        index: &str,
        key: &[Cell<'_>],
        changes: &[(&str, Cell<'_>)],
    ) -> Result<bool> {
        let (index, key) = self.whole_key(index, key)?;
        let mut numbered = Vec::with_capacity(changes.len());
        for (name, value) in changes {
            let number = self.fitting(self.columns.number(name))?;
            self.fitting(self.columns.key(&[number], &[*value]))?;
            numbered.push((number, *value));
        }
        let (table, columns) = (self.table, self.columns);
        let mut misfit = None;
        let edit = |row: &mut Vec<u8>| match columns.changed(row, &numbered) {
            Ok(changed) => *row = changed,
            Err(error) => misfit = Some(error),
        };
        let updated = self.session.update_by_key(table, &index, &key, edit);
        let updated = updated.await?;
        misfit.map_or(Ok(updated), |error| Err(table.misfit(error)))
    }

    /// Deletes the row of a key, the first of them when several have it; false when there is none.
    pub async fn delete(&mut self, index: &str, key: &[Cell<'_>]) -> Result<bool> {
        let (index, key) = self.whole_key(index, key)?;
        self.session.delete_by_key(self.table, &index, &key).await
    }

    /// Looks whether the first row by an index has the columns of the dictionary, and is found again by their values.
    ///
    /// # Errors
    /// [`KernelError::DamagedIndex`] when it is not.
    pub async fn check_first(&mut self, index: &str) -> Result<()> {
        let (columns, mut first) = (self.columns, None);
        let read = |values: &[Cell<'_>]| {
            let mut row = Vec::new();
            first = Some(columns.encode(values, &mut row).map(|()| row));
            ControlFlow::Break(())
        };
        self.range(index, &[], &[], read).await?;
        let Some(row) = self.fitting(first.transpose())? else {
            return Ok(());
        };
        let values = self.fitting(columns.decode(&row))?;
        let index = self.table.index(index)?;
        let key = key_columns(&index).iter();
        let key: Vec<_> = key.map(|number| values[usize::from(*number)]).collect();
        let found = self.get(index.name(), &key, |found| found == values);
        match found.await? {
            Some(true) => Ok(()),
            _ => Err(KernelError::DamagedIndex {
                index: index.name().to_string(),
                address: index.root.address,
                reason: "its first row is not found by the values of its columns".to_string(),
            }),
        }
    }

    /// An index, and the key of values for all of its columns.
    fn whole_key(&self, index: &str, values: &[Cell<'_>]) -> Result<(Arc<Index>, Vec<u8>)> {
        let (index, key) = self.key(index, values)?;
        let columns = key_columns(&index).len();
        if values.len() < columns {
            return Err(self.table.misfit(RowLayoutError::ValueCount {
                values: values.len(),
                columns,
            }));
        }
        Ok((index, key))
    }

    /// An index, and the bytes of a key of it, or of its beginning.
    fn key(&self, index: &str, values: &[Cell<'_>]) -> Result<(Arc<Index>, Vec<u8>)> {
        let index = self.table.index(index)?;
        let key = self.fitting(self.columns.key(key_columns(&index), values))?;
        Ok((index, key))
    }

    fn fitting<T>(&self, result: std::result::Result<T, RowLayoutError>) -> Result<T> {
        result.map_err(|error| self.table.misfit(error))
    }
}

/// The columns of an index whose table has columns.
fn key_columns(index: &Index) -> &[u16] {
    index.columns().expect("keys of such tables are of columns")
}
