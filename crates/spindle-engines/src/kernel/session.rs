//! Sessions of the embedded database, as a workload's clients and its check want them.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use spindle_io::Fault;
use spindle_kernel::{
    AnswerRow, GroupOrder, Index, KernelError, KernelQuery, KeyPart, QueryShape, RowFilter, Table,
    ask, ask_plan,
};
use spindle_workload::{
    AnswerJudge, ClientSession, Edit, Ended, IndexOf, Keyed, RowOperation, SessionError,
    StepFuture, TableQuery, TableQueryPlan, TableShare, TakeRow,
};

/// A session of the embedded database.
pub struct KernelSession {
    session: spindle_kernel::Session,
    tables: Vec<Arc<Table>>,
    /// Of each table.
    indexes: Vec<Arc<[Arc<Index>]>>,
}

fn session_error(error: KernelError) -> SessionError {
    match error {
        KernelError::Deadlock { .. } => SessionError::Deadlock(error.to_string()),
        KernelError::LockTimeout { .. } | KernelError::SnapshotTooOld { .. } => {
            SessionError::Retry(error.to_string())
        }
        KernelError::DuplicateKey { .. } => SessionError::Refused(error.to_string()),
        _ if error.fault() == Fault::NoRoom => SessionError::NoRoom(error.to_string()),
        _ => SessionError::Failed(error.to_string()),
    }
}

/// A query that found no room, took too long, or whose tempfile refused an I/O, has ended: others may continue.
fn query_error(error: KernelError) -> SessionError {
    match error {
        KernelError::TempFull { .. } | KernelError::TempIo { .. } | KernelError::QueryTooLong => {
            SessionError::Refused(error.to_string())
        }
        other => session_error(other),
    }
}

/// A query as the database wants to know it.
fn plan_of(query: &TableQuery) -> KernelQuery {
    let part = |&(offset, bytes): &(u16, u16)| KeyPart { offset, bytes };
    let parts = |places: &[(u16, u16)]| places.iter().map(part).collect();
    KernelQuery {
        filter: query.filter.as_ref().map(|(number, range)| RowFilter {
            number: part(number),
            range: range.clone(),
        }),
        plan: match query.plan {
            TableQueryPlan::Groups { key, sum, by_sum } => QueryShape::Aggregate {
                key: parts(key),
                sums: vec![part(&sum)],
                order: match by_sum {
                    true => GroupOrder::LargestSum,
                    false => GroupOrder::Key,
                },
            },
            TableQueryPlan::Rows { key } => QueryShape::Sort { key: parts(key) },
        },
        slaves: query.slaves as usize,
    }
}

impl KernelSession {
    pub(super) fn new(session: spindle_kernel::Session, tables: Vec<Arc<Table>>) -> KernelSession {
        KernelSession {
            session,
            indexes: tables.iter().map(|table| table.indexes()).collect(),
            tables,
        }
    }

    /// Checks the blocks of every table and the structure of every index, while no session changes them, and that rows
    /// have the columns of the dictionary; says what each index is made of.
    pub(super) async fn check_structure(&mut self) -> Result<String, KernelError> {
        let mut found = String::new();
        for table in &self.tables {
            self.session.check_table(table).await?;
            for index in table.indexes().iter() {
                let shape = self.session.check_index(table, index).await?;
                let key = key_names(table, index);
                found += &format!(
                    "; index {}{key}: {} entries in {} blocks, each of its row",
                    index.name(),
                    shape.entries,
                    shape.nodes
                );
                if table.columns().is_some() {
                    let mut typed = self.session.typed(table)?;
                    typed.check_first(index.name()).await?;
                }
            }
        }
        Ok(found)
    }

    /// Asks a query, and looks whether the answer is the right one.
    async fn query(&mut self, query: &TableQuery) -> Result<(), SessionError> {
        let mut judge = AnswerJudge::new(query);
        let take = |answer: AnswerRow<'_>| match answer {
            AnswerRow::Group { key, counters } => judge.group(key, counters[0], counters[1]),
            AnswerRow::Row(row) => judge.row(row),
        };
        let plan = Arc::new(plan_of(query));
        let asked = ask(&mut self.session, &self.tables[query.table], &plan, take).await;
        asked.map_err(query_error)?;
        match judge.wrong() {
            None => Ok(()),
            Some(wrong) => Err(SessionError::Failed(wrong)),
        }
    }

    /// Adds rows that differ in their counters.
    async fn insert(
        &mut self,
        table: usize,
        first: &[u8],
        rows: u64,
        counters: &[usize],
    ) -> Result<(), KernelError> {
        let mut row = first.to_vec();
        for number in 0..rows {
            if number > 0 {
                RowOperation::count_on(&mut row, counters);
            }
            self.session.insert_row(&self.tables[table], &row).await?;
        }
        Ok(())
    }
}

/// The names of the columns of an index's key, in brackets; nothing where the table has none.
fn key_names(table: &Table, index: &Index) -> String {
    match (table.columns(), index.columns()) {
        (Some(layout), Some(key)) => format!(" ({})", layout.names(key).join(", ")),
        _ => String::new(),
    }
}

impl ClientSession for KernelSession {
    async fn execute(&mut self, operation: &RowOperation) -> Result<(), SessionError> {
        let done = match operation {
            RowOperation::Read { table, row } => {
                let row_id = self.tables[*table].row_id(*row);
                let found = self
                    .session
                    .read_row(row_id, own_number)
                    .await
                    .map_err(session_error)?;
                return check_own_number(*row, found);
            }
            RowOperation::Update { table, row, edits } => {
                let start = edits
                    .iter()
                    .map(|edit| edit.range().start)
                    .min()
                    .unwrap_or(0);
                let end = edits.iter().map(|edit| edit.range().end).max().unwrap_or(0);
                let apply =
                    |part: &mut [u8]| edits.iter().for_each(|edit: &Edit| edit.apply(part, start));
                self.session
                    .update_row(self.tables[*table].row_id(*row), start..end, apply)
                    .await
            }
            RowOperation::Insert {
                table,
                first,
                rows,
                counters,
            } => self.insert(*table, first, *rows, counters).await,
            RowOperation::Call(call) => {
                return match call.procedure().run(self).await? {
                    Ended::Done => Ok(()),
                    // Then there is nothing left to commit.
                    Ended::RolledBack => self.rollback().await,
                };
            }
            RowOperation::Query(query) => return self.query(query).await,
            RowOperation::Scan {
                table,
                first_block,
                blocks,
            } => {
                self.session
                    .scan(&self.tables[*table], *first_block, *blocks, |_, _| {})
                    .await
            }
        };
        done.map_err(session_error)
    }

    async fn commit(&mut self) -> Result<(), SessionError> {
        self.session.commit().await.map_err(session_error)
    }

    async fn rollback(&mut self) -> Result<(), SessionError> {
        self.session.rollback().await.map_err(session_error)
    }

    fn temporary_bytes(&mut self) -> Option<u64> {
        Some(self.session.take_temporary_bytes())
    }

    async fn visit(
        &mut self,
        table: usize,
        share: TableShare,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), SessionError> {
        let table = Arc::clone(&self.tables[table]);
        let Range { start, end } = share.of(table.blocks());
        self.session
            .scan(&table, start, end - start, |_, bytes| visit(bytes))
            .await
            .map_err(session_error)
    }
}

impl Keyed for KernelSession {
    fn get<'a>(&'a mut self, index: IndexOf, key: &'a [u8]) -> StepFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let index = &self.indexes[index.table][index.index];
            let found = self.session.get(index, key, |_, row| row.to_vec());
            found.await.map_err(session_error)
        })
    }

    fn range<'a>(
        &'a mut self,
        index: IndexOf,
        from: &'a [u8],
        to: &'a [u8],
        visit: &'a mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> StepFuture<'a, ()> {
        Box::pin(async move {
            let index = &self.indexes[index.table][index.index];
            let visit = |_: &[u8], _, row: &[u8]| visit(row);
            let read = self.session.range(index, from, Some(to), visit);
            read.await.map_err(session_error)
        })
    }

    fn insert<'a>(&'a mut self, table: usize, row: &'a [u8]) -> StepFuture<'a, ()> {
        Box::pin(async move {
            let inserted = self.session.insert_row(&self.tables[table], row).await;
            inserted.map(drop).map_err(session_error)
        })
    }

    fn update<'a>(
        &'a mut self,
        index: IndexOf,
        key: &'a [u8],
        edit: &'a mut dyn FnMut(&mut Vec<u8>),
    ) -> StepFuture<'a, bool> {
        Box::pin(async move {
            let table = &self.tables[index.table];
            let index = &self.indexes[index.table][index.index];
            let updated = self.session.update_by_key(table, index, key, edit);
            updated.await.map_err(session_error)
        })
    }

    fn delete<'a>(&'a mut self, index: IndexOf, key: &'a [u8]) -> StepFuture<'a, bool> {
        Box::pin(async move {
            let table = &self.tables[index.table];
            let index = &self.indexes[index.table][index.index];
            let deleted = self.session.delete_by_key(table, index, key);
            deleted.await.map_err(session_error)
        })
    }

    fn ask<'a>(
        &'a mut self,
        query: &'a spindle_query::Query,
        take: TakeRow<'a>,
    ) -> StepFuture<'a, ()> {
        Box::pin(async move {
            let asked = ask_plan(&mut self.session, &self.tables, query, take);
            asked.await.map_err(query_error)
        })
    }
}

/// Rows of the workloads begin with their own number.
fn own_number(row: &[u8]) -> u64 {
    u64::from_le_bytes(
        row[..8]
            .try_into()
            .expect("rows are longer than eight bytes"),
    )
}

fn check_own_number(expected: u64, found: u64) -> Result<(), SessionError> {
    if expected == found {
        Ok(())
    } else {
        Err(SessionError::Failed(format!(
            "row {expected} was read and is row {found}"
        )))
    }
}
