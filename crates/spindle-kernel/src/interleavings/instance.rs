//! The whole instance.

use super::*;
use crate::instance::CHECKPOINT_BEFORE_RECOVERY;
use crate::processes::checkpoint::CHECKPOINT_AFTER_FAILURE;
use crate::{CONTROL_FILE_BYTES, Instance, RowId, Shutdown, create_database, datafile_blocks};
use spindle_io::explore::{Shows, explore, must_find};
use spindle_io::{Completion, Fault, IoError, IoFailure, IoOutcome, Limits, Operation};
use std::sync::atomic::{AtomicBool, Ordering};

fn storage() -> Storage {
    let blocks = |count: u64| count * BLOCK_BYTES as u64;
    Storage {
        control: memory("control", CONTROL_FILE_BYTES),
        redo: vec![
            memory("redo0", LOG_FILE_BYTES),
            memory("redo1", LOG_FILE_BYTES),
        ],
        double_write: None,
        temp: Vec::new(),
        undo: memory("undo", blocks(16)),
        data: vec![memory("data1", blocks(datafile_blocks(BLOCK_BYTES, 512)))],
    }
}

/// A device whose writes fail while it is broken.
struct Breakable {
    device: Arc<dyn BlockDevice>,
    is_broken: AtomicBool,
}

impl BlockDevice for Breakable {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn limits(&self) -> Limits {
        self.device.limits()
    }

    fn submit(&self, request: Request) -> Completion {
        let is_write = matches!(request.operation, Operation::Write { .. });
        if !is_write || !self.is_broken.load(Ordering::Relaxed) {
            return self.device.submit(request);
        }
        let error = IoError::from(IoFailure {
            device: self.name().to_string(),
            operation: "write",
            offset: request.offset,
            bytes: request.bytes(),
            reason: "broken".to_string(),
            fault: Fault::Other,
        });
        Completion::ready(IoOutcome {
            result: Err(error),
            operation: request.operation,
        })
    }
}

/// Recovery fails when it has read the redo and before its blocks are written, while CKPT's time comes now and then.
/// The next start has what was committed before.
fn recovery_fails() {
    let env = |short_sleeps| ExploredEnv::new(short_sleeps) as Arc<dyn Env>;
    let (mut storage, settings) = (storage(), settings());
    let data = Arc::new(Breakable {
        device: storage.data.remove(0),
        is_broken: AtomicBool::new(false),
    });
    storage.data = vec![Arc::clone(&data) as Arc<dyn BlockDevice>];
    block_on(async {
        let (instance, rows) = loaded(&env(0), &storage, &settings).await;
        let mut session = instance.session();
        let fill = |bytes: &mut [u8]| bytes[0] = 7;
        session.update_row(rows[0], 0..8, fill).await.unwrap();
        session.commit().await.unwrap();
        drop(session);
        instance.shutdown(Shutdown::Abort).await.unwrap();

        data.is_broken.store(true, Ordering::Relaxed);
        let failed = Instance::startup(&env(12), &storage, &settings).await;
        assert!(failed.is_err(), "nothing was written");
        data.is_broken.store(false, Ordering::Relaxed);
        let instance = Instance::startup(&env(0), &storage, &settings)
            .await
            .unwrap();
        let mut session = instance.session();
        let seen = session.read_row(rows[0], |bytes| bytes[0]).await.unwrap();
        assert_eq!(seen, 7, "an acknowledged commit was lost");
        drop(session);
        instance.shutdown(Shutdown::Abort).await.unwrap();
    });
}

/// A started database with a table of two rows.
async fn loaded(
    env: &Arc<dyn Env>,
    storage: &Storage,
    settings: &KernelSettings,
) -> (Instance, [RowId; 2]) {
    create_database(env, storage, settings, 4711, 4)
        .await
        .unwrap();
    let instance = Instance::startup(env, storage, settings).await.unwrap();
    let fill = |_, row: &mut Vec<u8>| row.fill(0);
    let table = instance.create_table("numbers", 8, 2, fill).await.unwrap();
    (instance, [0, 1].map(|row| table.row_id(row)))
}

/// Two sessions change the same two rows and commit, each row by itself in the same order; then the instance stops in
/// order, is started again, and has every committed change.
fn sessions() {
    let env: Arc<dyn Env> = ExploredEnv::new(0);
    let (storage, settings) = (storage(), settings());
    let (instance, rows) = block_on(loaded(&env, &storage, &settings));
    let clients = [(), ()].map(|()| {
        let mut session = instance.session();
        spawn(move || {
            block_on(async {
                for row in rows {
                    let add = |bytes: &mut [u8]| bytes[0] += 1;
                    session.update_row(row, 0..8, add).await.unwrap();
                }
                session.commit().await.unwrap();
            });
        })
    });
    clients
        .into_iter()
        .for_each(|client| client.join().unwrap());
    block_on(async {
        instance.shutdown(Shutdown::Abort).await.unwrap();
        let instance = Instance::startup(&env, &storage, &settings).await.unwrap();
        let mut session = instance.session();
        for row in rows {
            let seen = session.read_row(row, |bytes| bytes[0]).await.unwrap();
            assert_eq!(seen, 2, "an acknowledged commit was lost");
        }
        drop(session);
        instance.shutdown(Shutdown::Normal).await.unwrap();
    });
}

#[test]
fn no_checkpoint_is_made_of_a_recovery_that_is_not_done() {
    explore(100, recovery_fails);
    for race in [CHECKPOINT_BEFORE_RECOVERY, CHECKPOINT_AFTER_FAILURE] {
        must_find(race, Shows::Panic, 2_000, recovery_fails);
    }
}

#[test]
fn sessions_commit_and_the_next_start_has_it() {
    explore(50, sessions);
}
