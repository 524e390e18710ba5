//! How many writes DBWR has under way, in the simulated world: few for a checkpoint that moves along, so that LGWR's
//! writes find the device free; all of a batch for one that someone waits for.

use std::sync::Arc;

use spindle_io::env::LocalFuture;
use spindle_io::sim::{DiskImage, DiskTiming, SimDisk, World};
use spindle_io::sync::Latch;
use spindle_io::{BlockDevice, Completion, Env, Limits, Operation, Request};
use spindle_kernel::{
    CONTROL_FILE_BYTES, Instance, KernelError, KernelSettings, Shutdown, Storage, create_database,
};

const BLOCK_BYTES: usize = 2048;
const ROWS: u64 = 6000;
const ROW_BYTES: usize = 100;
/// Rows from one that is changed to the next: more than a block has, so that few changed blocks are neighbours.
const STRIDE: usize = 50;
/// Writes of a writer that nobody waits for, at most (docs/decisions/0090).
const PACED: usize = 8;

/// Writes under way, and the most there were.
#[derive(Default)]
struct Seen {
    now: usize,
    most: usize,
}

/// A device that counts writes under way.
struct Watched {
    inner: Arc<SimDisk>,
    env: Arc<dyn Env>,
    seen: Arc<Latch<Seen>>,
}

impl BlockDevice for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn submit(&self, request: Request) -> Completion {
        if !matches!(request.operation, Operation::Write { .. }) {
            return self.inner.submit(request);
        }
        {
            let mut seen = self.seen.lock();
            seen.now += 1;
            seen.most = seen.most.max(seen.now);
        }
        let (completer, outer) = Completion::pending();
        let (inner, seen) = (self.inner.submit(request), Arc::clone(&self.seen));
        let wait = async move {
            let outcome = inner.await;
            seen.lock().now -= 1;
            completer.complete(outcome);
        };
        let wait = Box::new(move || Box::pin(wait) as LocalFuture);
        self.env.spawn("watch", wait);
        outer
    }
}

/// The most writes under way: of checkpoints that moved along by this lag, or of one that was waited for.
fn most_writes(lag_bytes: Option<u64>) -> usize {
    let mut world = World::new(3);
    let env: Arc<dyn Env> = world.env();
    let log_bytes = 4 << 20;
    let sizes = [
        CONTROL_FILE_BYTES as usize,
        log_bytes,
        log_bytes,
        64 * BLOCK_BYTES,
        (4 << 20) + 2 * BLOCK_BYTES,
    ];
    let disks: Vec<_> = (0..)
        .zip(sizes)
        .map(|(number, bytes)| {
            let image = DiskImage::zeroed(bytes);
            SimDisk::new(world.env(), number, image, 512, DiskTiming::default())
        })
        .collect();
    let seen = Arc::new(Latch::new(Seen::default()));
    let device = |index: usize| Arc::clone(&disks[index]) as Arc<dyn BlockDevice>;
    let watched = Watched {
        inner: Arc::clone(&disks[4]),
        env: Arc::clone(&env),
        seen: Arc::clone(&seen),
    };
    let storage = Storage {
        control: device(0),
        redo: vec![device(1), device(2)],
        undo: device(3),
        data: vec![Arc::new(watched)],
        double_write: None,
        temp: Vec::new(),
    };
    // Every block has a buffer, so that nobody waits for one. LGWR writes so much at once that many blocks are due.
    let settings = KernelSettings {
        block_bytes: BLOCK_BYTES,
        buffer_cache_bytes: 4096 * BLOCK_BYTES as u64,
        log_buffer_bytes: 256 << 10,
        checkpoint_lag_bytes: lag_bytes,
        ..KernelSettings::default()
    };
    let played = world.run(async move {
        create_database(&env, &storage, &settings, 4711, 8).await?;
        let instance = Instance::startup(&env, &storage, &settings).await?;
        instance
            .create_table("rows", ROW_BYTES, ROWS, |_, _| {})
            .await?;
        instance.checkpoint().await?;
        *seen.lock() = Seen::default();
        for number in 1..=5 {
            change(&instance, number).await?;
        }
        if lag_bytes.is_none() {
            instance.checkpoint().await?;
        }
        let most = seen.lock().most;
        instance.shutdown(Shutdown::Normal).await?;
        Ok::<_, KernelError>(most)
    });
    played.unwrap().unwrap()
}

/// Changes a row of every other block or so.
async fn change(instance: &Instance, number: u8) -> Result<(), KernelError> {
    let table = instance.table("rows")?;
    let mut session = instance.session();
    for row in (0..ROWS).step_by(STRIDE) {
        let set = |bytes: &mut [u8]| bytes[0] = number;
        session
            .update_row(table.row_id(row), 0..ROW_BYTES, set)
            .await?;
    }
    session.commit().await
}

#[test]
fn few_writes_are_under_way_unless_someone_waits() {
    let paced = most_writes(Some(64 << 10));
    assert!(
        (PACED / 2..=PACED).contains(&paced),
        "{paced} writes under way"
    );
    let waited_for = most_writes(None);
    assert!(waited_for > PACED, "{waited_for} writes under way");
}
