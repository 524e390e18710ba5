//! Queries as plans: rows with typed columns, expressions over them, and scans, joins, groups and orders put together
//! from them. A plan is data. Workloads write plans, and the embedded database carries them out; neither knows the
//! other. Start at [`QueryPlan`] and [`Query`]. And the columns of tables, as a dictionary stores them: [`RowLayout`].

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

mod bound;
mod columns;
mod error;
mod expression;
mod layout;
mod pattern;
mod plan;
mod row;

pub use bound::{Bound, Test};
pub use columns::{Columns, Encoder, Type};
pub use error::{QueryError, Result};
pub use expression::{Condition, Expr, col, date, decimal, number, text, when};
pub use layout::{COLUMNS_MAX, Column, DataType, Form, NAME_BYTES_MAX, RowLayout, RowLayoutError};
pub use pattern::Pattern;
pub use plan::{
    Aggregate, Direction, JoinKind, Query, QueryPlan, Relation, count, greatest, least, sum,
};
pub use row::{Cell, Projection, Row, RowHeading, SLOTS_MAX, cell};
