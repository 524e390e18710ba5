//! The whole instance.

use super::*;
use crate::instance::CHECKPOINT_BEFORE_RECOVERY;
use crate::{CONTROL_FILE_BYTES, Instance, Shutdown, create_database};
use spindle_io::sync::explore::{Shows, explore, must_find};

fn storage() -> Storage {
    let blocks = |count: u64| count * BLOCK_BYTES as u64;
    Storage {
        control: memory("control", CONTROL_FILE_BYTES),
        redo: vec![
            memory("redo0", LOG_FILE_BYTES),
            memory("redo1", LOG_FILE_BYTES),
        ],
        undo: memory("undo", blocks(16)),
        data: vec![memory("data1", blocks(513))],
    }
}

/// A database is made, started, stopped at once and started again, while CKPT's time comes now and then.
fn starts() {
    let env: Arc<dyn Env> = ExploredEnv::new(12);
    let (storage, settings) = (storage(), settings());
    block_on(async {
        create_database(&env, &storage, &settings, 4711, 4)
            .await
            .unwrap();
        for _ in 0..2 {
            let instance = Instance::startup(&env, &storage, &settings).await.unwrap();
            instance.shutdown(Shutdown::Abort).await.unwrap();
        }
    });
}

/// Two sessions change the same two rows and commit, each row by itself in the same order; then the instance stops in
/// order, is started again, and has every committed change.
fn sessions() {
    let env: Arc<dyn Env> = ExploredEnv::new(0);
    let (storage, settings) = (storage(), settings());
    let fill = |_, row: &mut Vec<u8>| row.fill(0);
    let (instance, rows) = block_on(async {
        create_database(&env, &storage, &settings, 4711, 4)
            .await
            .unwrap();
        let instance = Instance::startup(&env, &storage, &settings).await.unwrap();
        let table = instance.create_table("numbers", 8, 2, fill).await.unwrap();
        let rows = [0, 1].map(|row| table.row_id(row));
        (instance, rows)
    });
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
fn no_checkpoint_is_made_before_recovery_is_done() {
    explore(50, starts);
    must_find(CHECKPOINT_BEFORE_RECOVERY, Shows::Panic, 500, starts);
}

#[test]
fn sessions_commit_and_the_next_start_has_it() {
    explore(50, sessions);
}
