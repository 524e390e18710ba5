//! A planted bug: a session that commits before each row that its transaction adds. When the power goes right after
//! that, half a transaction is left.

use std::ops::ControlFlow;

use spindle_engines::kernel::KernelSession;
use spindle_workload::{
    ClientSession, Ended, IndexOf, Keyed, RowOperation, SessionError, StepFuture, TableShare,
    TakeRow,
};

pub struct Careless(pub KernelSession);

impl ClientSession for Careless {
    async fn execute(&mut self, operation: &RowOperation) -> Result<(), SessionError> {
        let RowOperation::Call(call) = operation else {
            return self.0.execute(operation).await;
        };
        match call.procedure().run(self).await? {
            Ended::Done => Ok(()),
            Ended::RolledBack => self.0.rollback().await,
        }
    }

    async fn commit(&mut self) -> Result<(), SessionError> {
        self.0.commit().await
    }

    async fn rollback(&mut self) -> Result<(), SessionError> {
        self.0.rollback().await
    }

    async fn visit(
        &mut self,
        table: usize,
        share: TableShare,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), SessionError> {
        self.0.visit(table, share, visit).await
    }
}

impl Keyed for Careless {
    fn get<'a>(&'a mut self, index: IndexOf, key: &'a [u8]) -> StepFuture<'a, Option<Vec<u8>>> {
        self.0.get(index, key)
    }

    fn range<'a>(
        &'a mut self,
        index: IndexOf,
        from: &'a [u8],
        to: &'a [u8],
        visit: &'a mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> StepFuture<'a, ()> {
        self.0.range(index, from, to, visit)
    }

    fn insert<'a>(&'a mut self, table: usize, row: &'a [u8]) -> StepFuture<'a, ()> {
        Box::pin(async move {
            self.0.commit().await?;
            self.0.insert(table, row).await
        })
    }

    fn update<'a>(
        &'a mut self,
        index: IndexOf,
        key: &'a [u8],
        edit: &'a mut dyn FnMut(&mut Vec<u8>),
    ) -> StepFuture<'a, bool> {
        self.0.update(index, key, edit)
    }

    fn delete<'a>(&'a mut self, index: IndexOf, key: &'a [u8]) -> StepFuture<'a, bool> {
        self.0.delete(index, key)
    }

    fn ask<'a>(
        &'a mut self,
        query: &'a spindle_query::Query,
        take: TakeRow<'a>,
    ) -> StepFuture<'a, ()> {
        self.0.ask(query, take)
    }
}
