//! The refresh functions, row by row: RF1 puts orders and their lines in, RF2 takes old ones away by their keys.

use super::tables::{LINEITEM, LINES_MAX, ORDERS, encode, order_key, relations};
use crate::keyed::{Ended, IndexOf, Keyed, Procedure, StepFuture, is_missing};
use crate::sql::Value;
use crate::sql::tpch::refresh::{loaded_key, new_orders, orders_of};
use crate::sql::tpch::terms::RF1;

/// The place of a table's primary key among its indexes.
const PRIMARY: usize = 0;

/// A refresh function.
pub(super) struct RefreshInRows {
    pub(super) kind: usize,
    pub(super) set: u32,
    pub(super) scale: f64,
}

impl Procedure for RefreshInRows {
    fn kind(&self) -> usize {
        self.kind
    }

    fn run<'a>(&'a self, rows: &'a mut dyn Keyed) -> StepFuture<'a, Ended> {
        Box::pin(async move {
            match self.kind {
                RF1 => self.insert(rows).await,
                _ => self.delete(rows).await,
            }
        })
    }
}

impl RefreshInRows {
    async fn insert(&self, rows: &mut dyn Keyed) -> Result<Ended, crate::SessionError> {
        let mut made: Vec<(usize, Vec<u8>)> = Vec::new();
        new_orders(self.set, self.scale, |is_order, values: &[Value<'_>]| {
            let table = if is_order { ORDERS } else { LINEITEM };
            let mut row = Vec::new();
            encode(&relations()[table].columns, values, &mut row);
            made.push((table, row));
            Ok(())
        })?;
        for (table, row) in made {
            rows.insert(table, &row).await?;
        }
        Ok(Ended::Done)
    }

    async fn delete(&self, rows: &mut dyn Keyed) -> Result<Ended, crate::SessionError> {
        let primary = |table| IndexOf {
            table,
            index: PRIMARY,
        };
        for order in orders_of(self.set, self.scale) {
            let key = order_key(loaded_key(order));
            for line in 1..=LINES_MAX as u32 {
                // As columns of type integer are written.
                let number = (line ^ 1 << 31).to_be_bytes();
                let line = [&key[..], &number[..]].concat();
                if !rows.delete(primary(LINEITEM), &line).await? {
                    break;
                }
            }
            if !rows.delete(primary(ORDERS), &key).await? {
                return Err(is_missing(format!("order {}", loaded_key(order))));
            }
        }
        Ok(Ended::Done)
    }
}
