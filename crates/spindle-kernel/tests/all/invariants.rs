//! What the kernel promises itself is looked at in every build: each fault planted here trips a check, and the instance
//! fails with the reason. Background processes that end or panic fail it, too, and nobody waits for them for ever.

use std::sync::Arc;

use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_kernel::{Instance, KernelError, PlantedFault, Shutdown};

use crate::files::{Files, Way, watched};
use crate::simulated::live::Live;
use crate::simulated::{Scenario, loaded};

/// Changes one row after another, each in a transaction, until something fails.
async fn change_rows(instance: &Instance, changes: u64) -> Result<(), KernelError> {
    let (table, mut session) = (instance.table("accounts")?, instance.session());
    for change in 0..changes {
        let row = table.row_id(change * 7 % 3000);
        let mark = change.to_le_bytes();
        let changed = session.update_row(row, 0..8, |bytes| bytes.copy_from_slice(&mark));
        changed.await?;
        session.commit().await?;
    }
    Ok(())
}

/// What the instance says of its end when it works with the fault.
fn said(fault: PlantedFault, scenario: Scenario, changes: u64) -> String {
    let images = loaded(scenario);
    let scenario = Scenario {
        planted: Some(fault),
        ..scenario
    };
    let mut live = Live::on(scenario, &images);
    let instance = match live.start() {
        Ok(instance) => Arc::new(instance),
        Err(error) => return error.to_string(),
    };
    let shared = Arc::clone(&instance);
    let changed = live.run(async move { change_rows(&shared, changes).await });
    let instance = Arc::into_inner(instance).unwrap();
    let stopped = live.run(instance.shutdown(Shutdown::Normal));
    match (changed, stopped) {
        (Err(error), _) | (_, Err(error)) => error.to_string(),
        (Ok(()), Ok(())) => "nothing".to_string(),
    }
}

#[test]
fn what_is_broken_fails_the_instance_with_the_reason() {
    let (plain, fast_redo) = (Scenario::plain(21), Scenario::fast_redo(21));
    use PlantedFault::*;
    for (fault, scenario, changes, reason) in [
        (ScnHandedOutTwice, plain, 300, "would go to"),
        (BlockMisplaced, plain, 300, "it bears the address 9.999"),
        // Of more the cache would run out of buffers.
        (PinKept, plain, 1, "still have the buffer of block"),
        (RedoEndMiscounted, plain, 300, "redo from position"),
        (CheckpointBeyondRedo, plain, 300, "a checkpoint at"),
        (RoomOverstated, fast_redo, 1500, "holds redo up to"),
    ] {
        let said = said(fault, scenario, changes);
        println!("{fault:?}: {said}");
        let found = "the database found itself broken: ";
        assert!(
            said.contains(found) && said.contains(reason),
            "{fault:?}: {said}"
        );
    }
}

#[test]
fn without_a_fault_nothing_is_broken() {
    for (scenario, changes) in [(Scenario::plain(21), 300), (Scenario::fast_redo(21), 1500)] {
        let images = loaded(scenario);
        let mut live = Live::on(scenario, &images);
        let instance = Arc::new(live.start().unwrap());
        let shared = Arc::clone(&instance);
        live.run(async move { change_rows(&shared, changes).await })
            .unwrap();
        let instance = Arc::into_inner(instance).unwrap();
        live.run(instance.shutdown(Shutdown::Normal)).unwrap();
    }
}

/// A process that is gone before it did anything: whoever needs it hears why.
#[test]
fn nobody_waits_for_a_process_that_is_gone() {
    for process in ["lgwr", "ckpt", "pmon", "dbw0"] {
        for (fault, reason) in [
            (
                PlantedFault::ProcessEnds(process),
                "ended while others need it",
            ),
            (PlantedFault::ProcessPanics(process), "panicked: planted"),
        ] {
            watched(format!("{fault:?}"), move || {
                let (way, files) = (Way::plain("sync"), Files::new());
                let bank = files.create(way).unwrap();
                block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
                let storage = files.open(way).unwrap();
                let settings = spindle_kernel::KernelSettings {
                    planted: Some(fault),
                    ..way.settings()
                };
                let env: Arc<dyn Env> = RealEnv::new(9);
                let said = block_on(async {
                    let instance = match Instance::startup(&env, &storage, &settings).await {
                        Ok(instance) => instance,
                        Err(error) => return error,
                    };
                    let error = loop {
                        if let Err(error) = change_rows(&instance, 1000).await {
                            break error;
                        }
                    };
                    let _ = instance.shutdown(Shutdown::Abort).await;
                    error
                });
                let reason = format!("process {process} {reason}");
                assert!(said.to_string().contains(&reason), "{said}");
            });
        }
    }
}
