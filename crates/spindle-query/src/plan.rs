//! Plans: which rows, and what is made of them. Each method puts a step behind those before it; a join's other side is
//! a plan, too.

use std::collections::BTreeSet;

use crate::bound::{Bound, Test};
use crate::columns::{Columns, Type};
use crate::error::{QueryError, Result};
use crate::expression::{Condition, Expr, col};
use crate::row::RowHeading;

/// A table and its columns.
#[derive(Debug, Clone)]
pub struct Relation {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: Columns,
}

/// What a join keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinKind {
    /// Each pair of rows with equal keys.
    Inner,
    /// Rows of the first side that have one of the other.
    Semi,
    /// Rows of the first side that have none of the other.
    Anti,
    /// Each pair, and rows of the first side that have none of the other, with zeros and empty texts in its place. The
    /// column of this name is 1 in pairs and 0 in the others.
    Outer(String),
}

/// What a group has apart from its key.
#[derive(Debug, Clone)]
pub enum Aggregate {
    /// How many rows.
    Count,
    /// The sum of a number.
    Sum(Expr),
    /// The least of a number.
    Least(Expr),
    /// The greatest of a number.
    Greatest(Expr),
}

/// How many rows.
pub fn count() -> Aggregate {
    Aggregate::Count
}

/// The sum of a number.
pub fn sum(of: Expr) -> Aggregate {
    Aggregate::Sum(of)
}

/// The least of a number.
pub fn least(of: Expr) -> Aggregate {
    Aggregate::Least(of)
}

/// The greatest of a number.
pub fn greatest(of: Expr) -> Aggregate {
    Aggregate::Greatest(of)
}

impl Aggregate {
    /// The number it is made of.
    pub fn expr(&self) -> Option<&Expr> {
        match self {
            Aggregate::Count => None,
            Aggregate::Sum(of) | Aggregate::Least(of) | Aggregate::Greatest(of) => Some(of),
        }
    }

    /// The type of its values.
    ///
    /// # Errors
    /// See [`crate::QueryError`].
    pub fn type_of(&self, heading: &RowHeading) -> Result<Type> {
        let of = self.expr().map(|of| Bound::of(of, heading)).transpose()?;
        Ok(match (self, of.map(|of| of.type_of())) {
            (Aggregate::Least(_) | Aggregate::Greatest(_), Some(of)) => of,
            (_, Some(of)) => Type::Sum(of.scale().unwrap_or(0)),
            (_, None) => Type::Key,
        })
    }
}

/// Which way an order goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The least first.
    Up,
    /// The greatest first.
    Down,
}

/// Rows, and how they come about.
#[derive(Debug, Clone)]
pub enum QueryPlan {
    /// All rows of a table.
    Scan(Relation),
    /// Those for which a condition holds.
    Filter(Box<QueryPlan>, Condition),
    /// Other columns made of them.
    Select(Box<QueryPlan>, Vec<(String, Expr)>),
    /// Pairs with the rows of another plan, which are kept in memory by their keys, or in temporary segments.
    Join {
        /// The side that is read once.
        rows: Box<QueryPlan>,
        /// The side that is kept: the smaller one.
        with: Box<QueryPlan>,
        /// Columns of both that must be equal; none: every row with every other.
        on: Vec<(String, String)>,
        /// What is kept.
        kind: JoinKind,
    },
    /// Pairs with the rows that an index of a table has for columns of theirs.
    Lookup {
        /// The rows.
        rows: Box<QueryPlan>,
        /// The table.
        table: Relation,
        /// Its index.
        index: &'static str,
        /// Columns of the rows, equal to the first parts of the index's key.
        on: Vec<String>,
    },
    /// Groups of rows with equal columns.
    Group {
        /// The rows.
        rows: Box<QueryPlan>,
        /// The columns.
        by: Vec<String>,
        /// What a group has apart from its key.
        of: Vec<(String, Aggregate)>,
    },
}

/// A plan, and how its rows are shown.
#[derive(Debug, Clone)]
pub struct Query {
    /// The rows.
    pub rows: QueryPlan,
    /// The order of the answer, by its columns.
    pub order: Vec<(String, Direction)>,
    /// How many rows of it at most.
    pub limit: Option<usize>,
    /// Processes that carry it out side by side; 1: the session's own.
    pub slaves: usize,
    /// A query that takes longer ends with an error, nanoseconds.
    pub limit_ns: Option<u64>,
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

impl QueryPlan {
    /// All rows of a table.
    pub fn scan(table: &Relation) -> QueryPlan {
        QueryPlan::Scan(table.clone())
    }

    /// Those for which a condition holds.
    #[must_use]
    pub fn filter(self, condition: Condition) -> QueryPlan {
        QueryPlan::Filter(Box::new(self), condition)
    }

    /// Other columns made of them.
    #[must_use]
    pub fn select(self, columns: Vec<(&str, Expr)>) -> QueryPlan {
        let columns = columns.into_iter();
        let columns = columns.map(|(name, of)| (name.to_owned(), of)).collect();
        QueryPlan::Select(Box::new(self), columns)
    }

    /// Some columns under other names.
    #[must_use]
    pub fn renamed(self, columns: &[(&str, &str)]) -> QueryPlan {
        let columns = columns.iter().map(|(old, new)| (*new, col(old)));
        self.select(columns.collect())
    }

    fn joined(self, with: QueryPlan, on: &[(&str, &str)], kind: JoinKind) -> QueryPlan {
        let pair = |(left, right): &(&str, &str)| ((*left).to_owned(), (*right).to_owned());
        QueryPlan::Join {
            rows: Box::new(self),
            with: Box::new(with),
            on: on.iter().map(pair).collect(),
            kind,
        }
    }

    /// Each pair with the rows of another plan whose columns are equal.
    #[must_use]
    pub fn join(self, with: QueryPlan, on: &[(&str, &str)]) -> QueryPlan {
        self.joined(with, on, JoinKind::Inner)
    }

    /// Those that have a row of another plan.
    #[must_use]
    pub fn semi_join(self, with: QueryPlan, on: &[(&str, &str)]) -> QueryPlan {
        self.joined(with, on, JoinKind::Semi)
    }

    /// Those that have no row of another plan.
    #[must_use]
    pub fn anti_join(self, with: QueryPlan, on: &[(&str, &str)]) -> QueryPlan {
        self.joined(with, on, JoinKind::Anti)
    }

    /// Each pair, and those that have no row of the other plan; the column `found` tells them apart.
    #[must_use]
    pub fn outer_join(self, with: QueryPlan, on: &[(&str, &str)], found: &str) -> QueryPlan {
        self.joined(with, on, JoinKind::Outer(found.to_owned()))
    }

    /// Each pair with the rows that an index has for these columns.
    #[must_use]
    pub fn lookup(self, table: &Relation, index: &'static str, on: &[&str]) -> QueryPlan {
        QueryPlan::Lookup {
            rows: Box::new(self),
            table: table.clone(),
            index,
            on: owned(on),
        }
    }

    /// Groups of rows with equal columns; without columns all rows are one.
    #[must_use]
    pub fn group(self, by: &[&str], of: Vec<(&str, Aggregate)>) -> QueryPlan {
        let of = of.into_iter().map(|(name, of)| (name.to_owned(), of));
        QueryPlan::Group {
            rows: Box::new(self),
            by: owned(by),
            of: of.collect(),
        }
    }

    /// As an answer in an order.
    pub fn order(self, by: &[(&str, Direction)]) -> Query {
        Query {
            rows: self,
            order: by
                .iter()
                .map(|(name, direction)| ((*name).to_owned(), *direction))
                .collect(),
            limit: None,
            slaves: 1,
            limit_ns: None,
        }
    }

    /// The columns of its rows. Whatever is wrong with it is found here, before a row is read.
    ///
    /// # Errors
    /// See [`crate::QueryError`].
    pub fn columns(&self) -> Result<Columns> {
        let heading = |rows: &QueryPlan| rows.columns().map(RowHeading::of);
        match self {
            QueryPlan::Scan(relation) => Ok(relation.columns.clone()),
            QueryPlan::Filter(rows, condition) => {
                let columns = rows.columns()?;
                Test::of(condition, &RowHeading::of(columns.clone()))?;
                Ok(columns)
            }
            QueryPlan::Select(rows, columns) => {
                let heading = heading(rows)?;
                let typed = columns.iter().map(|(name, of)| {
                    let of = Bound::of(of, &heading)?;
                    Ok((name.clone(), of.type_of()))
                });
                Ok(Columns::new(typed.collect::<Result<Vec<_>>>()?))
            }
            QueryPlan::Join {
                rows,
                with,
                on,
                kind,
            } => joined_columns(&rows.columns()?, &with.columns()?, on, kind),
            QueryPlan::Lookup {
                rows, table, on, ..
            } => {
                let columns = rows.columns()?;
                for name in on {
                    columns.key_part(name)?;
                }
                Ok(columns.and(&table.columns))
            }
            QueryPlan::Group { rows, by, of } => {
                let heading = heading(rows)?;
                let numbers = of.iter().map(|(name, of)| {
                    let of = of.type_of(&heading)?;
                    Ok((name.clone(), of))
                });
                let numbers = Columns::new(numbers.collect::<Result<Vec<_>>>()?);
                Ok(heading.named(by)?.columns().and(&numbers))
            }
        }
    }

    /// Adds the columns of the rows before a step that it names to those that are needed of them.
    pub fn add_needed(&self, needed: &mut BTreeSet<String>) {
        let mut hear = |name: &str| {
            needed.insert(name.to_owned());
        };
        match self {
            QueryPlan::Scan(_) => {}
            QueryPlan::Filter(_, condition) => condition.columns(&mut hear),
            QueryPlan::Select(_, columns) => {
                columns.iter().for_each(|(_, of)| of.columns(&mut hear))
            }
            QueryPlan::Join { on, .. } => on.iter().for_each(|(left, right)| {
                hear(left);
                hear(right);
            }),
            QueryPlan::Lookup { on, .. } => on.iter().for_each(|name| hear(name)),
            QueryPlan::Group { by, of, .. } => {
                by.iter().for_each(|name| hear(name));
                let exprs = of.iter().filter_map(|(_, of)| of.expr());
                exprs.for_each(|of| of.columns(&mut hear));
            }
        }
    }

    /// True when it has one row whatever there is: all rows are one group.
    pub fn is_one_row(&self) -> bool {
        match self {
            QueryPlan::Group { by, .. } => by.is_empty(),
            QueryPlan::Select(rows, _) => rows.is_one_row(),
            _ => false,
        }
    }
}

/// The columns of a join. Equal keys are equal bytes only where both sides have the same type, and no lengths vary.
fn joined_columns(
    rows: &Columns,
    with: &Columns,
    on: &[(String, String)],
    kind: &JoinKind,
) -> Result<Columns> {
    for (left, right) in on {
        let of = [rows.place(left)?.of, with.place(right)?.of];
        if of[0] != of[1] || of[0].is_varying() {
            return Err(QueryError::UnequalKeys {
                left: left.clone(),
                right: right.clone(),
            });
        }
    }
    Ok(match kind {
        JoinKind::Semi | JoinKind::Anti => rows.clone(),
        JoinKind::Inner => rows.and(with),
        JoinKind::Outer(found) => {
            let found = Columns::new([(found.as_str(), Type::Integer)]);
            rows.and(with).and(&found)
        }
    })
}

impl Query {
    /// Whether it can be carried out.
    ///
    /// # Errors
    /// See [`crate::QueryError`].
    pub fn check(&self) -> Result<()> {
        let heading = RowHeading::of(self.rows.columns()?);
        for (name, _) in &self.order {
            heading.find(name)?;
        }
        Ok(())
    }

    /// Its first rows only.
    #[must_use]
    pub fn first(mut self, rows: usize) -> Query {
        self.limit = Some(rows);
        self
    }
}
