//! A delayed device: each kind of I/O takes at least its delay by every method, and how delays add up or overlap is the
//! method's. Times are bounded from below only, but for one: requests under way together do not wait for each other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_io::real::{
    Caching, Delay, DelayedDevice, FileDevice, IoCounts, Method, Queue, SlavePool, block_on,
};
use spindle_io::{
    Arena, BlockDevice, Completion, Frame, IoOutcome, Limits, Operation, Request, Submission,
};
use spindle_text::word::Word;

const BLOCK: usize = 4096;
const BLOCKS: usize = 16;
const DELAY: Duration = Duration::from_millis(20);

const ALL: Delay = Delay {
    read_us: 20_000,
    write_us: 20_000,
    flush_us: 20_000,
};

/// A file device, and the same delayed.
struct Scene {
    arena: Arc<Arena>,
    file: Arc<FileDevice>,
    delayed: DelayedDevice,
    _directory: tempfile::TempDir,
}

impl Scene {
    fn new(method: Queue, delay: Delay) -> Scene {
        // Beside the sources: /tmp may be memory.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = directory.path().join("data.dbf");
        std::fs::write(&path, vec![7; BLOCK * BLOCKS]).unwrap();
        let file = FileDevice::open(&path, Caching::Buffered, method.clone()).unwrap();
        let file = Arc::new(file);
        let inner: Arc<dyn BlockDevice> = file.clone();
        Scene {
            arena: Arena::new(BLOCK, 2 * BLOCKS).unwrap(),
            delayed: DelayedDevice::new(inner, delay, &method),
            file,
            _directory: directory,
        }
    }

    fn frame(&self, byte: u8) -> Frame {
        let frame = self.arena.allocate().unwrap();
        frame.try_write().unwrap().fill(byte);
        frame
    }

    fn read(&self, block: usize, submission: Submission) -> Request {
        let into = self.frame(0).try_write_hold().unwrap();
        Request::read((block * BLOCK) as u64, vec![into], submission)
    }

    fn write(&self, block: usize, byte: u8, durable: bool, submission: Submission) -> Request {
        let from = self.frame(byte).try_read_hold().unwrap();
        Request::write((block * BLOCK) as u64, vec![from], durable, submission)
    }

    /// How long a request takes until it has ended, well.
    fn time(&self, request: Request) -> Duration {
        let began = Instant::now();
        let outcome = block_on(async { self.delayed.submit(request).await });
        outcome.result.unwrap();
        began.elapsed()
    }

    /// How long this many batched reads take together.
    fn time_together(&self, reads: usize) -> Duration {
        let began = Instant::now();
        block_on(async {
            let under_way: Vec<Completion> = (0..reads)
                .map(|block| self.delayed.submit(self.read(block, Submission::Batched)))
                .collect();
            // The last first: no order of waiting holds the others up.
            for completion in under_way.into_iter().rev() {
                assert_eq!(byte_of(&completion.await), 7);
            }
        });
        began.elapsed()
    }
}

fn byte_of(outcome: &IoOutcome) -> u8 {
    assert_eq!(outcome.result, Ok(()));
    match &outcome.operation {
        Operation::Read(blocks) => {
            assert!(blocks[0].iter().all(|byte| *byte == blocks[0][0]));
            blocks[0][0]
        }
        other => panic!("a read was submitted, not a {}", other.name()),
    }
}

/// The methods that this system has.
fn all_methods() -> Vec<Queue> {
    let all = Method::ALLOWED.iter();
    let there = all.filter(|(_, method)| match method.available() {
        Ok(()) => true,
        Err(reason) => {
            spindle_harness::skip(format_args!("{method}: {reason}"));
            false
        }
    });
    there.map(|(_, method)| method.open(2).unwrap()).collect()
}

/// Those that have several requests under way together.
fn together() -> Vec<Queue> {
    let mut methods = all_methods();
    methods.retain(|queue| queue.method().is_asynchronous());
    methods
}

#[test]
fn each_kind_takes_its_delay_by_every_method() {
    for method in all_methods() {
        let scene = Scene::new(method, ALL);
        for submission in [Submission::Alone, Submission::Batched] {
            assert!(scene.time(scene.read(0, submission)) >= DELAY);
            assert!(scene.time(scene.write(1, 9, false, submission)) >= DELAY);
            assert!(scene.time(scene.write(1, 9, true, submission)) >= 2 * DELAY);
        }
        assert!(scene.time(Request::flush()) >= DELAY);
        // The counters stay those of the device beneath.
        let IoCounts { reads, writes, .. } = scene.file.counters();
        assert_eq!((reads, writes), (2, 4), "{:?}", scene.delayed);
    }
}

#[test]
fn a_kind_without_a_delay_is_passed_on_at_once() {
    let only_reads = Delay {
        read_us: 3_600_000_000,
        ..Delay::default()
    };
    for method in all_methods() {
        let scene = Scene::new(method, only_reads);
        // Would take an hour.
        scene.time(scene.write(0, 1, true, Submission::Batched));
        scene.time(Request::flush());
    }
}

#[test]
fn bytes_are_those_of_the_device() {
    for method in all_methods() {
        let scene = Scene::new(method, ALL);
        block_on(async {
            let writes: Vec<_> = (0..BLOCKS)
                .map(|block| scene.write(block, block as u8 + 1, true, Submission::Batched))
                .map(|write| scene.delayed.submit(write))
                .collect();
            for write in writes {
                write.await.result.unwrap();
            }
            for block in 0..BLOCKS {
                let read = scene.file.submit(scene.read(block, Submission::Alone));
                assert_eq!(byte_of(&read.await), block as u8 + 1);
            }
        });
    }
}

#[test]
fn who_waits_is_the_methods() {
    const READS: u32 = 8;
    let sync = Scene::new(Queue::sync(), ALL);
    assert!(sync.time_together(READS as usize) >= READS * DELAY);
    let slaves = Queue::slaves(SlavePool::new(2).unwrap());
    let two = Scene::new(slaves, ALL);
    assert!(two.time_together(READS as usize) >= READS / 2 * DELAY);
    for method in together() {
        let scene = Scene::new(method, ALL);
        // A busy machine may add to a time; it never removes.
        let is_overlapped = (0..10).any(|_| {
            let time = scene.time_together(READS as usize);
            assert!(time >= DELAY, "{:?}: {time:?}", scene.delayed);
            time < READS * DELAY
        });
        assert!(is_overlapped, "{:?}", scene.delayed);
    }
}

#[test]
fn an_io_whose_completion_is_dropped_goes_on() {
    for method in together() {
        let scene = Scene::new(method, ALL);
        block_on(async {
            drop(
                scene
                    .delayed
                    .submit(scene.write(3, 5, false, Submission::Batched)),
            );
            // Submitted later, with the same delay: its end comes after the other's beginning.
            let later = scene
                .delayed
                .submit(scene.write(4, 6, false, Submission::Batched));
            later.await.result.unwrap();
            while scene.file.counters().writes < 2 {
                scene
                    .delayed
                    .submit(scene.read(0, Submission::Batched))
                    .await;
            }
            let read = scene.file.submit(scene.read(3, Submission::Alone));
            assert_eq!(byte_of(&read.await), 5);
        });
    }
}

#[test]
fn errors_and_limits_are_those_of_the_device() {
    for method in all_methods() {
        let scene = Scene::new(method, ALL);
        let Limits { capacity_bytes, .. } = scene.delayed.limits();
        assert_eq!(capacity_bytes, (BLOCK * BLOCKS) as u64);
        for submission in [Submission::Alone, Submission::Batched] {
            let beyond = scene.read(BLOCKS, submission);
            let outcome = block_on(async { scene.delayed.submit(beyond).await });
            let error = outcome.result.unwrap_err();
            assert_eq!(error.device, scene.delayed.name());
            assert!(error.reason.contains("past the end"), "{error}");
            assert!(matches!(outcome.operation, Operation::Read(blocks) if blocks.len() == 1));
        }
    }
}
