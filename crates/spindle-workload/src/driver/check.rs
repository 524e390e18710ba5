//! Reads the whole database after a run and says whether anything was lost: by one session, or by several that read a
//! share of every table each.

use std::sync::Arc;

use spindle_io::Env;
use spindle_io::env::LocalFuture;
use spindle_io::sync::Latch;

use crate::session::{ClientSession, SessionError, TableShare};
use crate::workload::{Acknowledged, CheckError, Checker, Workload};

/// Reads the whole database in this session.
pub async fn check<S: ClientSession>(
    session: &mut S,
    workload: &dyn Workload,
    acknowledged: Vec<Acknowledged>,
) -> Result<String, CheckError> {
    let checker = workload.checker(acknowledged);
    read(session, workload, &*checker, TableShare::WHOLE).await?;
    checker.finish()
}

/// The same by `sessions` at once, each in a separate process. Nothing may change the database meanwhile, as each
/// session reads as of a different moment.
pub async fn check_together<S: ClientSession + 'static>(
    env: &Arc<dyn Env>,
    workload: &Arc<dyn Workload>,
    acknowledged: &[Acknowledged],
    sessions: u64,
    connect: impl Fn() -> S + Send + Sync + 'static,
) -> Result<String, CheckError> {
    let connect = Arc::new(connect);
    let checker = workload.checker(acknowledged.to_vec());
    let parts: Vec<_> = (0..sessions.max(1))
        .map(|part| {
            let (workload, connect) = (Arc::clone(workload), Arc::clone(&connect));
            let checker = Arc::clone(&checker);
            let share = TableShare::new(part, sessions.max(1));
            let found = Arc::new(Latch::new(None));
            let told = Arc::clone(&found);
            let start = Box::new(move || {
                Box::pin(async move {
                    let mut session = connect();
                    let part = read(&mut session, &*workload, &*checker, share).await;
                    *told.lock() = Some(part);
                }) as LocalFuture
            });
            (env.spawn(&format!("check{part}"), start), found)
        })
        .collect();
    let mut all = Ok(());
    for (join, found) in parts {
        // One that panicked has told nothing. All are waited for: a session must not outlive the check.
        let _ = join.ended().await;
        let part = found.lock().take();
        let panicked = || SessionError::Failed("a session of the check panicked".to_owned());
        let part = part.unwrap_or_else(|| Err(panicked().into()));
        all = all.and(part);
    }
    all?;
    checker.finish()
}

async fn read<S: ClientSession>(
    session: &mut S,
    workload: &dyn Workload,
    checker: &dyn Checker,
    share: TableShare,
) -> Result<(), CheckError> {
    let mut seen = checker.share();
    for table in 0..workload.tables().len() {
        let visited = session
            .visit(table, share, &mut |bytes| seen.row(table, bytes))
            .await;
        visited?;
    }
    seen.end();
    Ok(())
}
