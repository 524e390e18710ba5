//! Query slaves: processes that carry out a step of a query side by side, each with a session, and the granules of a
//! table that they take in turn. One slave is the session's own process.

use std::pin::Pin;
use std::sync::Arc;

use spindle_io::Join;
use spindle_io::env::LocalFuture;
use spindle_io::sync::Latch;
use spindle_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{KernelError, Result};
use crate::session::Session;
use crate::table::Table;
use crate::temp::TempWork;

/// Multi-block reads in a granule: enough that slaves seldom ask, few enough that memory is checked often.
const READS_IN_GRANULE: usize = 2;
/// Granules that fill the memory of a process, at least.
const GRANULES_IN_MEMORY: usize = 4;

/// What a slave does in a step, and what comes of it.
pub(super) type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// Where a slave leaves what came of its step.
type Left<T> = Arc<Latch<Option<Result<T>>>>;

/// The slaves of one query.
pub(super) struct Slaves {
    work: TempWork,
    count: usize,
    /// One has failed: the others end with their granules.
    has_failed: Arc<AtomicBool>,
}

impl Slaves {
    pub(super) fn new(work: &TempWork, count: usize) -> Slaves {
        Slaves {
            work: work.clone(),
            count: count.max(1),
            has_failed: Arc::default(),
        }
    }

    /// The blocks of a table, to be taken by the slaves.
    pub(super) fn granules(&self, table: &Table) -> Arc<Granules> {
        let sga = &self.work.sga;
        let in_memory = self.work.memory_bytes / (GRANULES_IN_MEMORY * sga.settings.block_bytes);
        let wished = READS_IN_GRANULE * sga.multiblock_read_blocks;
        Arc::new(Granules {
            next: AtomicU64::new(0),
            blocks: table.blocks(),
            each: wished.min(in_memory).max(1) as u64,
            has_failed: Arc::clone(&self.has_failed),
        })
    }

    /// Deals things out to the slaves in turn.
    pub(super) fn deal<T>(&self, things: Vec<T>) -> Latch<Vec<Vec<T>>> {
        let mut hands: Vec<Vec<T>> = Vec::new();
        hands.resize_with(self.count, Vec::new);
        for (number, thing) in things.into_iter().enumerate() {
            hands[number % self.count].push(thing);
        }
        Latch::new(hands)
    }

    /// Has every slave carry out a step; what came of each.
    pub(super) async fn all<T: Send + 'static>(
        &self,
        step: impl for<'a> Fn(TempWork, &'a mut Session) -> Step<'a, T> + Send + Sync + 'static,
    ) -> Result<Vec<T>> {
        if self.count == 1 {
            let mut session = Session::beside(&self.work);
            return Ok(vec![step(self.work.clone(), &mut session).await?]);
        }
        let step = Arc::new(step);
        let slaves: Vec<(Join, Left<T>)> = (0..self.count)
            .map(|number| {
                let result: Left<T> = Arc::default();
                let (into, step) = (Arc::clone(&result), Arc::clone(&step));
                let (work, has_failed) = (self.work.clone(), Arc::clone(&self.has_failed));
                let start = Box::new(move || {
                    Box::pin(async move {
                        let mut session = Session::new(Arc::clone(&work.sga));
                        let own = session.work_of(&work.usage, work.deadline_ns);
                        let done = step(own, &mut session).await;
                        if done.is_err() {
                            has_failed.store(true, Ordering::Relaxed);
                        }
                        drop(session);
                        if let Some(had) = work.sga.env.processor_use() {
                            work.sga.statistics.add_slave(had);
                        }
                        *into.lock() = Some(done);
                    }) as LocalFuture
                });
                let env = &self.work.sga.env;
                (env.spawn(&format!("slave{number}"), start), result)
            })
            .collect();
        let mut results = Vec::with_capacity(self.count);
        // All of them end before the query does, whatever one of them says: they have the devices in use.
        for (join, result) in slaves {
            let _ = join.ended().await;
            let said = result.lock().take();
            results.push(said.unwrap_or(Err(KernelError::SlaveLost)));
        }
        results.into_iter().collect()
    }
}

/// The blocks of a table, handed out in pieces.
pub(super) struct Granules {
    next: AtomicU64,
    blocks: u64,
    each: u64,
    has_failed: Arc<AtomicBool>,
}

impl Granules {
    /// The first block of the next granule, counted over the extents, and how many it has.
    pub(super) fn next(&self) -> Option<(u64, u64)> {
        if self.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        let first = self.next.fetch_add(self.each, Ordering::Relaxed);
        (first < self.blocks).then_some((first, self.each))
    }
}
