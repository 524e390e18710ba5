//! File devices on a real file system: every method, buffered and direct; durability; limits of the ring; errors.

use std::fs::File;
use std::future::{Future, poll_fn};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use spindle_io::real::facts::{self, DirectProbe};
use spindle_io::real::{
    Caching, FileDevice, FileError, FixedBuffers, IoCounts, Method, Queue, RingConfig, SlavePool,
    StorageIdentity, WrittenBlocks, block_on, create, identify,
};
use spindle_io::{
    Arena, BlockDevice, Completion, Frame, IoOutcome, Operation, Request, Submission,
};
use spindle_text::word::Word;

const BLOCK: usize = 8192;

/// On the file system the sources are on, not in a /tmp that may be memory.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn file_of(directory: &tempfile::TempDir, blocks: usize) -> PathBuf {
    let path = directory.path().join("data.dbf");
    create::create_plain(&path, (blocks * BLOCK) as u64, |offset, piece| {
        for (index, block) in piece.chunks_mut(BLOCK).enumerate() {
            block.fill(byte_of(offset as usize / BLOCK + index, 0));
        }
        Ok::<(), FileError>(())
    })
    .unwrap();
    path
}

/// What a block holds; differs between neighbours and between versions.
fn byte_of(block: usize, version: usize) -> u8 {
    (block * 7 + version * 101 + 1) as u8
}

fn filled(arena: &Arc<Arena>, byte: u8) -> Frame {
    let frame = arena.allocate().unwrap();
    frame.try_write().unwrap().fill(byte);
    frame
}

fn write_of(frame: &Frame, block: usize, durable: bool) -> Request {
    Request::write(
        (block * BLOCK) as u64,
        vec![frame.try_read_hold().unwrap()],
        durable,
        Submission::Batched,
    )
}

fn read_of(frames: &[Frame], block: usize) -> Request {
    let holds = frames
        .iter()
        .map(|frame| frame.try_write_hold().unwrap())
        .collect();
    Request::read((block * BLOCK) as u64, holds, Submission::Batched)
}

fn wait_all(completions: Vec<Completion>) -> Vec<IoOutcome> {
    block_on(async {
        let mut outcomes = Vec::new();
        for completion in completions {
            outcomes.push(completion.await);
        }
        outcomes
    })
}

/// All that this system has.
fn methods() -> Vec<Queue> {
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

fn ring_is_missing() -> bool {
    facts::io_uring_available()
        .inspect_err(|reason| spindle_harness::skip(reason))
        .is_err()
}

fn direct_is_missing(at: &Path) -> bool {
    match facts::direct_probe(at).unwrap() {
        DirectProbe::Direct => false,
        DirectProbe::NotDirect { reason, .. } => {
            spindle_harness::skip(reason);
            true
        }
    }
}

#[test]
fn what_is_written_is_read_back_by_every_method_buffered_and_direct() {
    const BLOCKS: usize = 40;
    let directory = directory();
    let path = file_of(&directory, BLOCKS);
    let arena = Arena::new(BLOCK, 2 * BLOCKS).unwrap();
    for (version, caching) in [Caching::Buffered, Caching::Direct].into_iter().enumerate() {
        if caching == Caching::Direct && direct_is_missing(&path) {
            continue;
        }
        for method in methods() {
            let version = 1 + version * 10 + method.method().as_str().len();
            let device = FileDevice::open(&path, caching, method).unwrap();
            let frames: Vec<_> = (0..BLOCKS)
                .map(|block| filled(&arena, byte_of(block, version)))
                .collect();
            let writes = (0..BLOCKS)
                .map(|block| device.submit(write_of(&frames[block], block, block % 2 == 0)));
            for outcome in wait_all(writes.collect()) {
                outcome.result.unwrap();
            }
            drop(frames);

            // A scattered read of neighbours and strangers in memory, one of all blocks, and one of one block alone.
            let shuffled = |count: usize| -> Vec<_> {
                let mut frames: Vec<_> = (0..count).map(|_| filled(&arena, 0)).collect();
                frames.swap(0, count / 2);
                frames
            };
            let (all, some) = (shuffled(BLOCKS), shuffled(4));
            let reads = vec![
                device.submit(read_of(&all, 0)),
                device.submit(read_of(&some, 30)),
            ];
            for outcome in wait_all(reads) {
                outcome.result.unwrap();
            }
            for (frames, first) in [(&all, 0), (&some, 30)] {
                for (index, frame) in frames.iter().enumerate() {
                    let (expected, got) =
                        (byte_of(first + index, version), frame.try_read().unwrap());
                    assert!(
                        got.iter().all(|byte| *byte == expected),
                        "{device:?} block {}",
                        first + index
                    );
                }
            }
            let alone = filled(&arena, 0);
            let request =
                Request::read(0, vec![alone.try_write_hold().unwrap()], Submission::Alone);
            block_on(device.submit(request)).result.unwrap();
            assert_eq!(alone.try_read().unwrap()[BLOCK - 1], byte_of(0, version));
            block_on(device.submit(Request::flush())).result.unwrap();

            let expected = IoCounts {
                reads: 3,
                multi_block_reads: 2,
                read_bytes: ((BLOCKS + 5) * BLOCK) as u64,
                writes: BLOCKS as u64,
                multi_block_writes: 0,
                write_bytes: (BLOCKS * BLOCK) as u64,
                flushes: 1,
            };
            assert_eq!(device.counters(), expected, "{device:?}");
        }
    }
}

#[test]
fn durable_writes_leave_nothing_dirty_and_others_do() {
    let directory = directory();
    let path = file_of(&directory, 64);
    let file = File::open(&path).unwrap();
    file.sync_all().unwrap();
    if facts::cached(&file, 0, 0).is_none() {
        spindle_harness::skip("this kernel has no cachestat");
        return;
    }
    if facts::file_system(&path).unwrap().type_name == "tmpfs" {
        spindle_harness::skip("tmpfs has no device to write to");
        return;
    }
    let arena = Arena::new(BLOCK, 64).unwrap();
    for method in methods() {
        let device = FileDevice::open(&path, Caching::Buffered, method).unwrap();
        for durable in [true, false] {
            let frames: Vec<_> = (0..64)
                .map(|block| filled(&arena, byte_of(block, durable.into())))
                .collect();
            let writes =
                (0..64).map(|block| device.submit(write_of(&frames[block], block, durable)));
            wait_all(writes.collect())
                .into_iter()
                .for_each(|outcome| outcome.result.unwrap());
            let state = facts::cached(&file, 0, 0).unwrap();
            let unwritten = state.dirty_pages + state.writeback_pages;
            assert_eq!(
                unwritten == 0,
                durable,
                "{device:?} durable {durable}: {state:?}"
            );
        }
        block_on(device.submit(Request::flush())).result.unwrap();
        let state = facts::cached(&file, 0, 0).unwrap();
        assert_eq!(
            state.dirty_pages + state.writeback_pages,
            0,
            "a flush writes everything"
        );
    }
}

#[test]
fn more_requests_than_a_ring_has_entries_and_than_it_can_complete_at_once() {
    if ring_is_missing() {
        return;
    }
    const BLOCKS: usize = 1200;
    let directory = directory();
    let path = file_of(&directory, BLOCKS);
    let arena = Arena::new(BLOCK, BLOCKS).unwrap();
    for odm in [false, true] {
        // Each on its own thread: a thread keeps the ring of its first device.
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let config = Arc::new(RingConfig::new());
                let method = if odm {
                    Queue::odm(config)
                } else {
                    Queue::uring(config)
                };
                let device = FileDevice::open(&path, Caching::Buffered, method).unwrap();
                let frames: Vec<_> = (0..BLOCKS).map(|_| filled(&arena, 0)).collect();
                let reads =
                    (0..BLOCKS).map(|block| device.submit(read_of(&frames[block..=block], block)));
                wait_all(reads.collect())
                    .into_iter()
                    .for_each(|outcome| outcome.result.unwrap());
                for (block, frame) in frames.iter().enumerate() {
                    assert_eq!(frame.try_read().unwrap()[BLOCK / 2], byte_of(block, 0));
                }
                assert_eq!(device.counters().reads, BLOCKS as u64);
            });
            thread.join().unwrap();
        });
    }
}

#[test]
fn a_batch_whose_completions_are_dropped_is_still_done_and_gives_its_buffers_back() {
    if ring_is_missing() {
        return;
    }
    let directory = directory();
    let path = file_of(&directory, 64);
    let arena = Arena::new(BLOCK, 64).unwrap();
    let thread = std::thread::spawn({
        let (path, arena) = (path.clone(), Arc::clone(&arena));
        move || {
            let config = Arc::new(RingConfig::new());
            let device = FileDevice::open(&path, Caching::Buffered, Queue::odm(config)).unwrap();
            for block in 0..64 {
                drop(device.submit(write_of(&filled(&arena, byte_of(block, 5)), block, false)));
            }
            // Neither the device nor anyone waiting is left: the ring ends with the thread.
        }
    });
    thread.join().unwrap();
    let frames: Vec<_> = (0..64)
        .map(|_| arena.allocate().expect("every buffer is back"))
        .collect();
    assert_eq!(frames.len(), 64);
    let mut content = vec![0; 64 * BLOCK];
    File::open(&path)
        .unwrap()
        .read_exact_at(&mut content, 0)
        .unwrap();
    for (block, bytes) in content.chunks(BLOCK).enumerate() {
        assert_eq!(bytes[17], byte_of(block, 5));
    }
    identify(&path, Caching::Buffered).expect("the ring has let go of the file and of its lock");
}

/// Notes on which threads a waker was used.
#[derive(Default)]
struct Wakers(Mutex<Vec<String>>);

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        let name = std::thread::current()
            .name()
            .unwrap_or("nameless")
            .to_owned();
        self.0.lock().unwrap().push(name);
    }
}

#[test]
fn slaves_work_on_threads_of_their_own() {
    let directory = directory();
    let path = file_of(&directory, 64);
    let pool = SlavePool::new(3).unwrap();
    let device =
        FileDevice::open(&path, Caching::Buffered, Queue::slaves(Arc::clone(&pool))).unwrap();
    let arena = Arena::new(BLOCK, 64).unwrap();
    let frames: Vec<_> = (0..64)
        .map(|block| filled(&arena, byte_of(block, 3)))
        .collect();
    let wakers = Arc::new(Wakers::default());
    let waker = Waker::from(Arc::clone(&wakers));
    let mut written = 0;
    // 64 durable writes take longer than handing them over, unless this thread does not run meanwhile.
    let is_one_pending = (0..20).any(|_| {
        let mut completions: Vec<_> = (0..64)
            .map(|block| device.submit(write_of(&frames[block], block, true)))
            .collect();
        completions.retain_mut(|completion| {
            let poll = std::pin::Pin::new(completion).poll(&mut Context::from_waker(&waker));
            poll.is_pending()
        });
        let is_one_pending = !completions.is_empty();
        wait_all(completions)
            .into_iter()
            .for_each(|outcome| outcome.result.unwrap());
        written += 64;
        is_one_pending
    });
    assert!(is_one_pending, "handing over waits for the writes");
    assert_eq!(pool.served().len(), 3);
    assert_eq!(pool.served().iter().sum::<u64>(), written);
    let names = wakers.0.lock().unwrap();
    assert!(
        names.iter().all(|name| name.starts_with("ioslave")),
        "{names:?}"
    );

    // Alone means the caller's own thread, with slaves too.
    let request = Request::read(
        0,
        vec![frames[0].try_write_hold().unwrap()],
        Submission::Alone,
    );
    block_on(device.submit(request)).result.unwrap();
    assert_eq!(pool.served().iter().sum::<u64>(), written);
}

#[test]
fn fixed_buffers_are_used_where_locked_memory_suffices() {
    if ring_is_missing() {
        return;
    }
    let directory = directory();
    let path = file_of(&directory, 64);
    let (arena, other) = (
        Arena::new(BLOCK, 32).unwrap(),
        Arena::new(BLOCK, 32).unwrap(),
    );
    let config = Arc::new(RingConfig::new());
    config.register(Arc::clone(&arena));
    assert_eq!(config.fixed_buffers(), FixedBuffers::NotYet);
    assert_eq!(RingConfig::new().fixed_buffers(), FixedBuffers::NotAsked);
    write_and_read(&path, &arena, &other, &config);
    match config.fixed_buffers() {
        FixedBuffers::Used => assert_eq!(config.unregistered_files(), None),
        FixedBuffers::Dropped { reason } => spindle_harness::skip(reason),
        state => panic!("{state:?}"),
    }
    // The memory is let go when the config is: the arena's last owner is this test.
    drop(config);
    assert_eq!(Arc::strong_count(&arena), 1);
}

/// Writes 32 blocks from `arena` and 32 from `other` through one ring and reads all of them back.
fn write_and_read(path: &Path, arena: &Arc<Arena>, other: &Arc<Arena>, config: &Arc<RingConfig>) {
    let device = FileDevice::open(path, Caching::Buffered, Queue::odm(Arc::clone(config))).unwrap();
    let frames: Vec<_> = (0..64)
        .map(|block| {
            filled(
                if block % 2 == 0 { arena } else { other },
                byte_of(block, 8),
            )
        })
        .collect();
    let writes = (0..64).map(|block| device.submit(write_of(&frames[block], block, false)));
    wait_all(writes.collect())
        .into_iter()
        .for_each(|outcome| outcome.result.unwrap());
    frames
        .iter()
        .for_each(|frame| frame.try_write().unwrap().fill(0));
    let reads = (0..64).map(|block| device.submit(read_of(&frames[block..=block], block)));
    wait_all(reads.collect())
        .into_iter()
        .for_each(|outcome| outcome.result.unwrap());
    for (block, frame) in frames.iter().enumerate() {
        assert_eq!(frame.try_read().unwrap()[BLOCK - 1], byte_of(block, 8));
    }
}

const CHILD: &str = "SPINDLE_TEST_LITTLE_LOCKED_MEMORY";

#[test]
fn fixed_buffers_are_dropped_and_reported_where_locked_memory_is_short() {
    if ring_is_missing() {
        return;
    }
    // In its own process: limits and capabilities are the process's.
    let child = spindle_harness::child!(child_with_little_locked_memory)
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "run by fixed_buffers_are_dropped_and_reported_where_locked_memory_is_short"]
fn child_with_little_locked_memory() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    assert!(std::env::var_os(CHILD).is_some(), "not to be run by itself");
    let directory = directory();
    let path = file_of(&directory, 64);
    let (arena, other) = (
        Arena::new(BLOCK, 32).unwrap(),
        Arena::new(BLOCK, 32).unwrap(),
    );
    // A ring notes at its making whether its owner may exceed the limit.
    let mut sets = capabilities(None).unwrap();
    sets.effective.remove(CapabilitySet::IPC_LOCK);
    set_capabilities(None, sets).unwrap();
    // The ring itself may count as locked memory: it is made before that is short.
    write_and_read(&path, &arena, &other, &Arc::new(RingConfig::new()));
    setrlimit(
        Resource::Memlock,
        Rlimit {
            current: Some(4096),
            ..getrlimit(Resource::Memlock)
        },
    )
    .unwrap();
    assert_eq!(facts::locked_memory_limit_bytes(), Some(4096));

    let config = Arc::new(RingConfig::new());
    config.register(Arc::clone(&arena));
    write_and_read(&path, &arena, &other, &config);
    let FixedBuffers::Dropped { reason } = config.fixed_buffers() else {
        panic!("{:?}", config.fixed_buffers())
    };
    let reason = reason.to_string();
    assert!(
        reason.contains("256 KiB") && reason.contains("4 KiB") && reason.contains("ulimit -l"),
        "{reason}"
    );
}

#[test]
fn a_tracker_marks_what_is_written() {
    let directory = directory();
    let path = file_of(&directory, 64);
    let tracker = WrittenBlocks::new((64 * BLOCK) as u64, BLOCK as u64);
    let device = FileDevice::open(&path, Caching::Buffered, Queue::sync())
        .unwrap()
        .with_tracker(Arc::clone(&tracker));
    let arena = Arena::new(BLOCK, 4).unwrap();
    let frames: Vec<_> = (0..4).map(|_| filled(&arena, 9)).collect();
    wait_all(vec![
        device.submit(write_of(&frames[0], 3, true)),
        device.submit(read_of(&frames[1..2], 7)),
    ]);
    let holds = frames
        .iter()
        .map(|frame| frame.try_read_hold().unwrap())
        .collect();
    wait_all(vec![device.submit(Request::write(
        (60 * BLOCK) as u64,
        holds,
        false,
        Submission::Batched,
    ))]);
    assert_eq!(tracker.written().collect::<Vec<_>>(), [3, 60, 61, 62, 63]);
    assert_eq!(device.counters().multi_block_writes, 1);
}

#[test]
fn errors_say_what_where_and_why() {
    let directory = directory();
    let path = file_of(&directory, 4);
    let arena = Arena::new(BLOCK, 4).unwrap();
    let frame = filled(&arena, 1);
    for method in methods() {
        let device = FileDevice::open(&path, Caching::Buffered, method).unwrap();
        let requests = [
            |frame: &Frame| read_of(std::slice::from_ref(frame), 4),
            |frame: &Frame| write_of(frame, 4, true),
        ];
        for request in requests {
            let past = wait_all(vec![device.submit(request(&frame))]).remove(0);
            let error = past.result.unwrap_err();
            assert_eq!((error.offset, error.bytes), (4 * BLOCK as u64, BLOCK));
            let said = error.to_string();
            assert!(said.contains(path.to_str().unwrap()), "{said}");
            assert!(
                said.ends_with("past the end: it holds 32768 bytes"),
                "{said}"
            );
        }

        // The file is cut behind the device's back: the first half of block 1 is there, block 2 is not.
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len((BLOCK + BLOCK / 2) as u64).unwrap();
        for (block, there) in [(1, BLOCK / 2), (2, 0)] {
            let outcome = wait_all(vec![
                device.submit(read_of(std::slice::from_ref(&frame), block)),
            ])
            .remove(0);
            let Operation::Read(holds) = &outcome.operation else {
                panic!("the operation comes back")
            };
            assert_eq!(holds.len(), 1);
            let said = outcome.result.unwrap_err().to_string();
            assert!(
                said.ends_with(&format!("unexpected end of file after {there} bytes")),
                "{said}"
            );
        }
        assert_eq!(
            device.counters(),
            IoCounts::default(),
            "failures are not counted"
        );
        file.set_len((4 * BLOCK) as u64).unwrap();
    }
}

#[test]
fn misaligned_direct_io_is_explained() {
    let directory = directory();
    let path = file_of(&directory, 4);
    if direct_is_missing(&path) {
        return;
    }
    let arena = Arena::new(BLOCK, 1).unwrap();
    let frame = filled(&arena, 1);
    for method in methods() {
        let device = FileDevice::open(&path, Caching::Direct, method).unwrap();
        assert!(device.limits().alignment_bytes >= 512);
        let request = Request::read(
            7,
            vec![frame.try_write_hold().unwrap()],
            Submission::Batched,
        );
        let said = wait_all(vec![device.submit(request)])
            .remove(0)
            .result
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("Invalid argument") && said.contains("multiples of"),
            "{said}"
        );
    }
}

#[test]
fn an_identified_file_is_identified_once_and_not_removed() {
    let directory = directory();
    let path = file_of(&directory, 4);
    let device = FileDevice::open(&path, Caching::Buffered, Queue::sync()).unwrap();
    assert!(matches!(
        identify(&path, Caching::Buffered),
        Err(FileError::InUse { .. })
    ));
    drop(device);
    let identified = identify(&path, Caching::Buffered).unwrap();
    assert!(matches!(
        identify(&path, Caching::Buffered),
        Err(FileError::InUse { .. })
    ));
    let said = create::remove(&path).unwrap_err().to_string();
    assert!(
        said.contains("in use") && said.contains("data.dbf"),
        "{said}"
    );
    // The identifier serves several devices.
    let config = Arc::new(RingConfig::new());
    let devices = [(); 2]
        .map(|()| FileDevice::on_identified(&identified, Queue::odm(Arc::clone(&config))).unwrap());
    drop(identified);
    assert!(matches!(
        create::remove(&path),
        Err(FileError::InUse { .. })
    ));
    drop(devices);
    create::remove(&path).unwrap();
    assert!(!path.exists());
}

/// Whether some ring of this process has the file in its table (`UserFiles` of proc_pid_fdinfo(5)).
fn is_registered(path: &Path) -> bool {
    let descriptors = std::fs::read_dir("/proc/self/fdinfo").unwrap();
    descriptors.flatten().any(|descriptor| {
        // Another test may close its own meanwhile.
        let said = std::fs::read_to_string(descriptor.path()).unwrap_or_default();
        said.contains("UserFiles:") && said.contains(path.to_str().unwrap())
    })
}

#[test]
fn a_file_that_is_only_read_is_registered_with_the_ring_until_it_is_closed() {
    if ring_is_missing() {
        return;
    }
    let directory = directory();
    let path = file_of(&directory, 1);
    let which = StorageIdentity::of(&File::open(&path).unwrap()).unwrap();
    let queue = Queue::uring(Arc::new(RingConfig::new()));
    let device = FileDevice::open_to_read(&path, &path, which, Caching::Buffered, queue).unwrap();
    let frames = [Arena::new(BLOCK, 1).unwrap().allocate().unwrap()];
    assert!(!is_registered(&path));
    let read = wait_all(vec![device.submit(read_of(&frames, 0))]).remove(0);
    read.result.unwrap();
    assert!(is_registered(&path));
    drop(device);
    assert!(!is_registered(&path));
}

const VICTIM: &str = "SPINDLE_TEST_VICTIM";

#[test]
fn the_files_of_a_killed_process_can_be_identified_at_once() {
    if ring_is_missing() {
        return;
    }
    let directory = directory();
    let path = file_of(&directory, 64);
    let child = spindle_harness::child!(child_killed_with_io_under_way)
        .env(VICTIM, &path)
        .output()
        .unwrap();
    assert_eq!(
        child.status.code(),
        None,
        "ended by a signal: {}",
        String::from_utf8_lossy(&child.stderr)
    );
    identify(&path, Caching::Buffered).unwrap();
}

#[test]
#[ignore = "run by the_files_of_a_killed_process_can_be_identified_at_once"]
fn child_killed_with_io_under_way() {
    let path = PathBuf::from(std::env::var_os(VICTIM).expect("not to be run by itself"));
    let method = Queue::odm(Arc::new(RingConfig::new()));
    let device = FileDevice::open(&path, Caching::Buffered, method).unwrap();
    let arena = Arena::new(BLOCK, 64).unwrap();
    let frames: Vec<_> = (0..64).map(|_| filled(&arena, 1)).collect();
    let writes: Vec<_> = (0..64)
        .map(|block| device.submit(write_of(&frames[block], block, true)))
        .collect();
    block_on(async {
        for (done, write) in writes.into_iter().enumerate() {
            write.await.result.unwrap();
            if done == 3 {
                rustix::process::kill_process(
                    rustix::process::getpid(),
                    rustix::process::Signal::KILL,
                )
                .unwrap();
            }
        }
    });
}

#[test]
fn a_missing_file_is_named() {
    let said = FileDevice::open(
        Path::new("/no/such/data.dbf"),
        Caching::Direct,
        Queue::sync(),
    )
    .unwrap_err()
    .to_string();
    assert!(
        said.contains("/no/such/data.dbf") && said.contains("No such file"),
        "{said}"
    );
}

#[test]
fn a_completion_is_pending_until_the_thread_waits() {
    if ring_is_missing() {
        return;
    }
    let directory = directory();
    let path = file_of(&directory, 4);
    let device = FileDevice::open(
        &path,
        Caching::Buffered,
        Queue::uring(Arc::new(RingConfig::new())),
    )
    .unwrap();
    let arena = Arena::new(BLOCK, 1).unwrap();
    let frames = [filled(&arena, 0)];
    let mut completion = device.submit(read_of(&frames, 2));
    let mut polls = 0;
    block_on(poll_fn(|context| {
        polls += 1;
        let poll = std::pin::Pin::new(&mut completion).poll(context);
        if polls == 1 {
            assert!(poll.is_pending(), "queued, not submitted");
        }
        poll.map(|outcome| outcome.result.unwrap())
    }));
    assert_eq!(frames[0].try_read().unwrap()[0], byte_of(2, 0));
    assert!(matches!(block_on(async { Poll::Ready(7) }), Poll::Ready(7)));
}
