//! Reads the whole database after a run and says whether anything was lost: by one session, or by several that read a
//! share of every table each.

use std::sync::Arc;

use spindle_io::Env;
use spindle_io::env::LocalFuture;
use spindle_io::sync::Latch;

use crate::session::{Session, SessionError, Share};
use crate::workload::{Acknowledged, CheckError, Checker, Workload};

/// What one session has read of every table.
type Part = Result<Box<dyn Checker>, CheckError>;

/// Reads the whole database in this session.
pub async fn check<S: Session>(
    session: &mut S,
    workload: &dyn Workload,
    acknowledged: Vec<Acknowledged>,
) -> Result<String, CheckError> {
    let whole = read(session, workload, acknowledged, Share::WHOLE).await?;
    whole.finish()
}

/// The same by `sessions` at once, each in a separate process. Nothing may change the database meanwhile, as each
/// session reads as of a different moment.
pub async fn check_together<S: Session + 'static>(
    env: &Arc<dyn Env>,
    workload: &Arc<dyn Workload>,
    acknowledged: &[Acknowledged],
    sessions: u64,
    connect: impl Fn() -> S + Send + Sync + 'static,
) -> Result<String, CheckError> {
    let connect = Arc::new(connect);
    let parts: Vec<_> = (0..sessions.max(1))
        .map(|part| {
            let (workload, connect) = (Arc::clone(workload), Arc::clone(&connect));
            let acknowledged = acknowledged.to_vec();
            let share = Share::new(part, sessions.max(1));
            let found = Arc::new(Latch::new(None));
            let told = Arc::clone(&found);
            let start = Box::new(move || {
                Box::pin(async move {
                    let mut session = connect();
                    let part = read(&mut session, &*workload, acknowledged, share).await;
                    *told.lock() = Some(part);
                }) as LocalFuture
            });
            (env.spawn(&format!("check{part}"), start), found)
        })
        .collect();
    let mut all: Option<Part> = None;
    for (join, found) in parts {
        // One that panicked has told nothing. All are waited for: a session must not outlive the check.
        let _ = join.ended().await;
        let part = found.lock().take();
        let panicked = || SessionError::Failed("a session of the check panicked".to_owned());
        let part = part.unwrap_or_else(|| Err(panicked().into()));
        all = Some(match (all, part) {
            (None, part) => part,
            (Some(Ok(mut whole)), Ok(part)) => {
                whole.add(part);
                Ok(whole)
            }
            (Some(Err(first)), _) | (Some(Ok(_)), Err(first)) => Err(first),
        });
    }
    let whole = all.expect("there is a session at least")?;
    whole.finish()
}

async fn read<S: Session>(
    session: &mut S,
    workload: &dyn Workload,
    acknowledged: Vec<Acknowledged>,
    share: Share,
) -> Part {
    let mut checker = workload.checker(acknowledged);
    for table in 0..workload.tables().len() {
        let visited = session
            .visit(table, share, &mut |bytes| checker.row(table, bytes))
            .await;
        visited?;
    }
    Ok(checker)
}
