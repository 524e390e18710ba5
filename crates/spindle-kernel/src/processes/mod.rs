//! The background processes: starting them, and watching that none of them ends before the instance does.

pub(crate) mod checkpoint;
pub(crate) mod dbwr;
pub(crate) mod double_write;
pub(crate) mod lgwr;
pub(crate) mod pmon;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use spindle_io::Join;
use spindle_io::env::LocalFuture;

use crate::settings::{KernelSettings, PlantedFault};
use crate::sga::Sga;

/// Starts LGWR, CKPT, PMON and the DBWRs.
pub(crate) fn start_processes(sga: &Arc<Sga>) -> Vec<Join> {
    let start = |name: String, run: Box<dyn FnOnce(Arc<Sga>) -> LocalFuture + Send>| {
        let (for_process, process_name) = (Arc::clone(sga), name.clone());
        let start = move || {
            let process = planted(&for_process.settings, &process_name)
                .unwrap_or_else(|| run(Arc::clone(&for_process)));
            Box::pin(watched(for_process, process_name, process)) as LocalFuture
        };
        sga.env.spawn(&name, Box::new(start))
    };
    let mut processes = vec![
        start("lgwr".to_string(), Box::new(|it| Box::pin(lgwr::run(it)))),
        start(
            "ckpt".to_string(),
            Box::new(|it| Box::pin(checkpoint::run(it))),
        ),
        start("pmon".to_string(), Box::new(|it| Box::pin(pmon::run(it)))),
    ];
    for number in 0..sga.settings.instance.writers as usize {
        let run = Box::new(move |it| Box::pin(dbwr::run(it, number)) as LocalFuture);
        processes.push(start(format!("dbw{number}"), run));
    }
    processes
}

/// What a planted fault runs in place of a process.
fn planted(settings: &KernelSettings, process: &str) -> Option<LocalFuture> {
    if !cfg!(feature = "planted") {
        return None;
    }
    match settings.planted {
        Some(PlantedFault::ProcessEnds(which)) if which == process => Some(Box::pin(async {})),
        Some(PlantedFault::ProcessPanics(which)) if which == process => {
            Some(Box::pin(async { panic!("planted") }))
        }
        _ => None,
    }
}

/// Runs a process. One that panics, or ends before the instance stops, fails the instance with the reason: others would
/// wait for it forever.
async fn watched(sga: Arc<Sga>, name: String, mut process: LocalFuture) {
    let attempt = poll_fn(|context| {
        let poll = || process.as_mut().poll(context);
        catch_unwind(AssertUnwindSafe(poll)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let words = text.unwrap_or_else(|| "no reason given".to_string());
            sga.fail(format!("process {name} panicked: {words}"));
            resume_unwind(panic)
        })
    });
    attempt.await;
    if !sga.health.is_stopping() {
        sga.fail(format!("process {name} ended while others need it"));
    }
}
