//! Carries out plans of queries ([`spindle_query`]). A plan is taken apart into steps: each reads rows from somewhere,
//! takes every row through filters and joins with what is in memory, and keeps what comes out for the next step:
//! groups, the side of a join that is kept, or the answer. Slaves carry out each step side by side. Programs call
//! [`ask_plan`].

mod group;
mod join;
mod pairs;
mod pipeline;
mod rows;
mod source;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use spindle_query::{
    Aggregate, Bound, Cell, Columns, Direction, JoinKind, Query, QueryPlan, Relation, RowHeading,
    RowLayout, Test, cell,
};

use super::slaves::Slaves;
use crate::change::transaction::statement_scn;
use crate::error::Result;
use crate::index::Index;
use crate::session::Session;
use crate::table::Table;
use crate::temp::sort::{self, Merge};
use group::GroupShape;
use join::{InMemory, JoinShape, found_column};
use pairs::Pair;
use pipeline::{Keep, Kept, Op, Order, Output, ROWS_BETWEEN_LOOKS};
use rows::{KeptRows, add_all};
use source::{LookupShape, Source};

/// Carries a query out for a session; `take` gets each row of the answer, and the names of its columns. It sees what
/// had been committed when it began, and nothing of the session's own transaction.
///
/// # Errors
/// [`crate::KernelError::Query`] of a plan that cannot be; as [`super::ask`]; and
/// [`crate::KernelError::QueryTooLong`].
pub async fn ask_plan(
    session: &mut Session,
    tables: &[Arc<Table>],
    query: &Query,
    mut take: impl FnMut(&Columns, &[Cell<'_>]),
) -> Result<()> {
    query.check()?;
    let mut work = session.work();
    let sga = Arc::clone(&work.sga);
    work.deadline_ns = query
        .limit_ns
        .map(|limit| sga.env.now().saturating_add(limit));
    let work = &work;
    let running = sga.statements.begin(|| statement_scn(&sga));
    let carrier = Carrier {
        slaves: Slaves::new(work, query.slaves),
        tables,
        scn: running.scn(),
    };
    let step = carrier.step(&query.rows, Needed::All).await?;
    let columns = step.heading.only(|_| true);
    let mut by = Vec::new();
    for (name, direction) in &query.order {
        let of = Bound::of(&spindle_query::col(name), &step.heading)?;
        by.push((of, *direction == Direction::Down));
    }
    let shown = columns.columns().clone();
    let order = Order {
        by,
        columns,
        limit: query.limit,
    };
    let sorted = carrier.run(step, Keep::Sorted(order)).await?.sorted;
    let mut merge = Merge::new(work, sorted).await?;
    let (mut record, mut rows) = (Vec::new(), 0);
    while query.limit.is_none_or(|limit| rows < limit) && merge.next(&mut record).await? {
        if rows.is_multiple_of(ROWS_BETWEEN_LOOKS) {
            work.check()?;
        }
        let row = Order::row_of(&record);
        let cells: Vec<Cell<'_>> = (0..shown.count())
            .map(|number| cell(&shown, row, number))
            .collect();
        take(&shown, &cells);
        rows += 1;
    }
    if rows == 0 && query.rows.is_one_row() {
        take(&shown, &vec![Cell::Null; shown.count()]);
    }
    Ok(())
}

/// Which columns of a step's rows are needed after it.
#[derive(Clone)]
enum Needed {
    All,
    These(BTreeSet<String>),
}

impl Needed {
    fn has(&self, name: &str) -> bool {
        match self {
            Needed::All => true,
            Needed::These(names) => names.contains(name),
        }
    }

    /// And those that a step names.
    fn and(&self, plan: &QueryPlan) -> Needed {
        match self {
            Needed::All => Needed::All,
            Needed::These(names) => {
                let mut names = names.clone();
                plan.add_needed(&mut names);
                Needed::These(names)
            }
        }
    }

    /// Those that a step names, and no others.
    fn only(plan: &QueryPlan) -> Needed {
        Needed::These(BTreeSet::new()).and(plan)
    }
}

/// Rows on their way: from where, through what, and what they are then.
struct OpenStep {
    source: Source,
    ops: Vec<Op>,
    heading: RowHeading,
}

/// What came of a step, of all slaves together.
#[derive(Default)]
struct StepOutcome {
    parts: Vec<KeptRows>,
    sorted: Vec<sort::SortedPart>,
}

type Opened<'a> = Pin<Box<dyn Future<Output = Result<OpenStep>> + 'a>>;

/// Carries out one query.
struct Carrier<'a> {
    slaves: Slaves,
    tables: &'a [Arc<Table>],
    scn: u64,
}

impl Carrier<'_> {
    fn table(&self, relation: &Relation) -> Result<Arc<Table>> {
        let found = self
            .tables
            .iter()
            .find(|table| table.name() == relation.name);
        let table = found.ok_or_else(|| crate::KernelError::NoSuchTable {
            name: relation.name.to_owned(),
        })?;
        match table.columns() {
            Some(columns) if RowLayout::try_from(&relation.columns).as_ref() != Ok(columns) => {
                Err(crate::KernelError::OtherColumns {
                    table: relation.name.to_owned(),
                    columns: columns.clone(),
                })
            }
            _ => Ok(Arc::clone(table)),
        }
    }

    /// The last step of a plan, once those before it have been carried out.
    fn step<'a>(&'a self, plan: &'a QueryPlan, needed: Needed) -> Opened<'a> {
        Box::pin(async move {
            match plan {
                QueryPlan::Scan(relation) => Ok(OpenStep {
                    source: Source::Table(self.table(relation)?),
                    ops: Vec::new(),
                    heading: RowHeading::of(relation.columns.clone()),
                }),
                QueryPlan::Filter(rows, condition) => {
                    let mut step = self.step(rows, needed.and(plan)).await?;
                    let test = Test::of(condition, &step.heading)?;
                    step.ops.push(Op::Filter(test));
                    Ok(step)
                }
                QueryPlan::Select(rows, columns) => {
                    let mut step = self.step(rows, Needed::only(plan)).await?;
                    let mut exprs = Vec::new();
                    for (_, of) in columns {
                        exprs.push(Bound::of(of, &step.heading)?);
                    }
                    let names = columns.iter().map(|(name, _)| name.clone());
                    let types = exprs.iter().map(Bound::type_of);
                    let columns = Columns::new(names.zip(types));
                    step.heading = RowHeading::of(columns.clone());
                    step.ops.push(Op::Select(columns, exprs));
                    Ok(step)
                }
                QueryPlan::Join {
                    rows,
                    with,
                    on,
                    kind,
                } => {
                    let below = needed.and(plan);
                    let kept = self.kept_side(with, on, kind, &needed, below.clone());
                    let kept = kept.await?;
                    let step = self.step(rows, below.clone()).await?;
                    self.joined(step, kept, on, kind, &below).await
                }
                QueryPlan::Lookup {
                    rows,
                    table,
                    index,
                    on,
                } => {
                    self.looked_up(rows, (table, index), on, needed.and(plan))
                        .await
                }
                QueryPlan::Group { rows, by, of } => {
                    self.grouped(rows, by, of, Needed::only(plan)).await
                }
            }
        })
    }

    /// Carries out the step of a join's kept side.
    async fn kept_side(
        &self,
        with: &QueryPlan,
        on: &[(String, String)],
        kind: &JoinKind,
        needed: &Needed,
        below: Needed,
    ) -> Result<KeptSide> {
        let step = self.step(with, below).await?;
        let names: Vec<&String> = on.iter().map(|(_, right)| right).collect();
        let key = step.heading.named(&names)?;
        let is_shown = matches!(kind, JoinKind::Inner | JoinKind::Outer(_));
        let columns = step.heading.only(|name| is_shown && needed.has(name));
        let shown = columns.columns().clone();
        let key_bytes = key.lengths().iter().sum();
        // Keys are made as the side that is read makes them.
        let shape = Arc::new(JoinShape::new(&JoinKind::Inner, key, &shown));
        let keep = Keep::Keyed {
            shape,
            columns,
            is_spilled: false,
        };
        let parts = self.run(step, keep).await?.parts;
        Ok(KeptSide {
            parts,
            columns: shown,
            key_bytes,
        })
    }

    /// A step whose rows are joined with a side that was kept.
    async fn joined(
        &self,
        mut step: OpenStep,
        kept: KeptSide,
        on: &[(String, String)],
        kind: &JoinKind,
        below: &Needed,
    ) -> Result<OpenStep> {
        let names: Vec<&String> = on.iter().map(|(left, _)| left).collect();
        let key = step.heading.named(&names)?;
        let shape = Arc::new(JoinShape::new(kind, key, &kept.columns));
        let after = |heading: &RowHeading| -> Result<RowHeading> {
            Ok(match kind {
                JoinKind::Semi | JoinKind::Anti => heading.clone(),
                JoinKind::Inner => heading.and(kept.columns.clone())?,
                JoinKind::Outer(found) => {
                    let with = heading.and(kept.columns.clone())?;
                    with.and(found_column(found))?
                }
            })
        };
        if kept.parts.iter().all(|part| part.runs.is_empty()) {
            step.heading = after(&step.heading)?;
            let tables = self.tables_of(kept.parts, kept.key_bytes).await?;
            step.ops.push(Op::Join(InMemory { tables, shape }));
            return Ok(step);
        }
        let columns = step.heading.only(|name| below.has(name));
        let read = RowHeading::of(columns.columns().clone());
        let heading = after(&read)?;
        let kept = self.spilled(kept.parts).await?;
        let keep = Keep::Keyed {
            shape: Arc::clone(&shape),
            columns,
            is_spilled: true,
        };
        let read = self.run(step, keep).await?.parts;
        let pairs = kept.into_iter().zip(read);
        let pairs = pairs.map(|(kept, read)| Pair::new(kept, read)).collect();
        Ok(OpenStep {
            source: Source::Pairs(pairs, shape),
            ops: Vec::new(),
            heading,
        })
    }

    /// The slaves make the tables of partitions in memory, each some of them.
    async fn tables_of(
        &self,
        parts: Vec<KeptRows>,
        key_bytes: usize,
    ) -> Result<Vec<join::JoinTable>> {
        let numbered: Vec<(usize, KeptRows)> = parts.into_iter().enumerate().collect();
        let dealt = self.slaves.deal(numbered);
        let made = self.slaves.all(move |work, _| {
            let mine = dealt.lock().pop().unwrap_or_default();
            Box::pin(async move {
                let table = |(number, part): (usize, KeptRows)| {
                    Ok((number, join::JoinTable::new(&work, part.chunks, key_bytes)?))
                };
                mine.into_iter().map(table).collect::<Result<Vec<_>>>()
            })
        });
        Ok(in_order(made.await?))
    }

    /// The slaves write what they still have in memory of partitions to temporary segments, each of some.
    async fn spilled(&self, parts: Vec<KeptRows>) -> Result<Vec<KeptRows>> {
        let numbered: Vec<(usize, KeptRows)> = parts.into_iter().enumerate().collect();
        let dealt = self.slaves.deal(numbered);
        let made = self.slaves.all(move |work, _| {
            let mine = dealt.lock().pop().unwrap_or_default();
            Box::pin(async move {
                let mut spilled = Vec::new();
                for (number, part) in mine {
                    spilled.push((number, part.spilled(&work).await?));
                }
                Ok(spilled)
            })
        });
        Ok(in_order(made.await?))
    }

    async fn looked_up(
        &self,
        rows: &QueryPlan,
        (table, index): (&Relation, &str),
        on: &[String],
        below: Needed,
    ) -> Result<OpenStep> {
        let index = self.table(table)?.index(index)?;
        check_key(&index, &rows.columns()?, on)?;
        let step = self.step(rows, below.clone()).await?;
        let columns = step.heading.only(|name| below.has(name));
        let outer = RowHeading::of(columns.columns().clone());
        let shape = LookupShape {
            key: outer.named(on)?,
            key_bytes: index.key_bytes(),
            index,
        };
        let parts = self.run(step, Keep::Rows(columns)).await?.parts;
        Ok(OpenStep {
            source: Source::Lookup(parts, Arc::new(shape)),
            ops: Vec::new(),
            heading: outer.and(table.columns.clone())?,
        })
    }

    async fn grouped(
        &self,
        rows: &QueryPlan,
        by: &[String],
        of: &[(String, Aggregate)],
        needed: Needed,
    ) -> Result<OpenStep> {
        let step = self.step(rows, needed).await?;
        let mut numbers = Vec::new();
        for (name, of) in of {
            let expr = of.expr().map(|of| Bound::of(of, &step.heading));
            let type_ = of.type_of(&step.heading)?;
            numbers.push((name.clone(), type_, of, expr.transpose()?));
        }
        let shape = Arc::new(GroupShape::new(step.heading.named(by)?, numbers));
        let parts = self
            .run(step, Keep::Groups(Arc::clone(&shape)))
            .await?
            .parts;
        let [key, numbers] = shape.columns().map(Clone::clone);
        Ok(OpenStep {
            source: Source::Groups(parts, shape),
            ops: Vec::new(),
            heading: RowHeading::of(key).and(numbers)?,
        })
    }

    /// Has the slaves carry out a step.
    async fn run(&self, step: OpenStep, keep: Keep) -> Result<StepOutcome> {
        let source = step.source.share(&self.slaves);
        let stage = Arc::new((source, step.ops, keep));
        let scn = self.scn;
        let kept = self.slaves.all(move |work, session| {
            let stage = Arc::clone(&stage);
            Box::pin(async move {
                let (source, ops, keep) = &*stage;
                let mut output = Output::new(&work, ops, keep);
                source.drive(&work, session, scn, &mut output).await?;
                output.finish().await
            })
        });
        let mut outcome = StepOutcome::default();
        for of_slave in kept.await? {
            match of_slave {
                Kept::Parts(parts) => add_all(&mut outcome.parts, parts),
                Kept::Sorted(parts) => outcome.sorted.extend(parts),
            }
        }
        Ok(outcome)
    }
}

/// Error when columns are not as long as the first parts of an index's key.
fn check_key(index: &Index, columns: &Columns, on: &[String]) -> Result<()> {
    let mut parts = index.key().parts.iter();
    for (number, name) in on.iter().enumerate() {
        let (_, bytes) = columns.key_part(name)?;
        if parts.next().is_none_or(|part| part.bytes != bytes) {
            let right = format!("part {} of index {}", number + 1, index.name());
            let left = name.clone();
            return Err(spindle_query::QueryError::UnequalKeys { left, right }.into());
        }
    }
    Ok(())
}

/// Numbered things that slaves have made, without their numbers.
fn in_order<T>(made: Vec<Vec<(usize, T)>>) -> Vec<T> {
    let mut things: Vec<(usize, T)> = made.into_iter().flatten().collect();
    things.sort_by_key(|(number, _)| *number);
    things.into_iter().map(|(_, thing)| thing).collect()
}

/// The side of a join that was kept.
struct KeptSide {
    parts: Vec<KeptRows>,
    columns: Columns,
    /// Of its key.
    key_bytes: usize,
}
