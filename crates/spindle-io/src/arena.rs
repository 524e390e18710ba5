//! Aligned memory for I/O. An [`Arena`] is one page-aligned mapping cut into equal frames; a [`Frame`] owns one of
//! them. Bytes are reached only through guards, shared or exclusive, which are tried, never waited for: whether to
//! wait, and under which wait event, is up to the caller. An I/O takes an owned guard ([`ReadHold`], [`WriteHold`])
//! with it and gives it back when it completes, so the device works on the very bytes of the cache and nothing is
//! copied.
#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::sync::atomic::{AtomicI32, Ordering};
use crate::sync::{Latch, has_planted};

/// One page-aligned mapping cut into frames of equal size.
pub struct Arena {
    base: NonNull<u8>,
    frame_bytes: usize,
    frames: usize,
    free: Latch<Vec<u32>>,
}

// SAFETY: the mapping is plain memory; every access to it goes through the frame guards below, whose atomic state
// allows either many readers or one writer, from whatever thread.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Maps `frames` frames of `frame_bytes` bytes each (a multiple of 512) and touches every page, so that memory is
    /// paid for here and not in the middle of a measurement. Huge pages are asked for and not insisted on, as for an
    /// SGA: blocks are visited at random, and each is one piece of memory to the device. Errors: the mapping is refused
    /// (out of memory or limits).
    pub fn new(frame_bytes: usize, frames: usize) -> io::Result<Arc<Arena>> {
        assert!(
            frame_bytes > 0 && frame_bytes.is_multiple_of(512),
            "frames are whole sectors"
        );
        let length = (frame_bytes * frames).max(1);
        // SAFETY: an anonymous private mapping at an address the kernel chooses aliases nothing.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        populate(base, length);
        let base =
            NonNull::new(base.cast::<u8>()).expect("mmap never returns null without MAP_FIXED");
        let free = (0..frames as u32).rev().collect();
        Ok(Arc::new(Arena {
            base,
            frame_bytes,
            frames,
            free: Latch::new(free),
        }))
    }

    /// Takes a free frame, all zero or with stale bytes of an earlier owner; `None` when all are in use.
    pub fn allocate(self: &Arc<Self>) -> Option<Frame> {
        let index = self.free.lock().pop()?;
        Some(Frame {
            core: Arc::new(FrameCore {
                arena: Arc::clone(self),
                index,
                state: AtomicI32::new(FREE),
            }),
        })
    }

    /// Bytes in one frame.
    pub fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// Frames there are, free or not.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Start and length of the whole mapping, for registering it with the kernel once (io_uring fixed buffers).
    pub fn region(&self) -> (NonNull<u8>, usize) {
        (self.base, self.frame_bytes * self.frames)
    }
}

/// Gives every page of a fresh mapping its own memory, in huge pages where the system has them.
fn populate(base: *mut libc::c_void, length: usize) {
    // SAFETY: advice on a mapping that was just made with this length, and is not shared yet.
    let populated = unsafe {
        // Refused by kernels without huge pages, to which the smaller ones are just as good.
        libc::madvise(base, length, libc::MADV_HUGEPAGE);
        libc::madvise(base, length, libc::MADV_POPULATE_WRITE) == 0
    };
    if populated {
        return;
    }
    // Linux before 5.14: page by page.
    for offset in (0..length).step_by(4096) {
        // SAFETY: the byte lies inside the mapping, which is writable and not yet shared.
        unsafe { base.cast::<u8>().add(offset).write_volatile(0) };
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: frames hold an Arc of the arena, so none is left; the mapping was made by `new` with this length.
        unsafe {
            libc::munmap(
                self.base.as_ptr().cast(),
                (self.frame_bytes * self.frames).max(1),
            );
        }
    }
}

/// Planted race: a writer looks whether the frame is free, and then takes it.
const LOOKS_THEN_TAKES: &str = "a writer looks, then takes";
/// Planted race: a writer that becomes a reader lets the frame go in between.
const SHARES_IN_TWO_STEPS: &str = "a writer lets go before it shares";

const FREE: i32 = 0;
const EXCLUSIVE: i32 = -1;

struct FrameCore {
    arena: Arc<Arena>,
    index: u32,
    /// 0: free; n > 0: n readers; -1: one writer. Taken and let go in one order that all agree on (`SeqCst`): a waiter
    /// says so elsewhere and then looks here. A holder that lets go looks there afterwards, so one of the two sees the
    /// other. On x86-64 this costs no more than less would.
    state: AtomicI32,
}

impl FrameCore {
    fn pointer(&self) -> *mut u8 {
        // SAFETY: index < frames, so the frame lies inside the mapping.
        unsafe {
            self.arena
                .base
                .as_ptr()
                .add(self.index as usize * self.arena.frame_bytes)
        }
    }

    fn try_share(&self) -> bool {
        self.state
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
                (state >= FREE).then_some(state + 1)
            })
            .is_ok()
    }

    fn try_exclude(&self) -> bool {
        if has_planted(LOOKS_THEN_TAKES) {
            let is_free = self.state.load(Ordering::Acquire) == FREE;
            if is_free {
                self.state.store(EXCLUSIVE, Ordering::Release);
            }
            return is_free;
        }
        self.state
            .compare_exchange(FREE, EXCLUSIVE, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    fn unshare(&self) {
        let before = self.state.fetch_sub(1, Ordering::SeqCst);
        assert!(before > FREE, "a frame is let go that nobody shares");
    }

    fn unexclude(&self) {
        let before = self.state.swap(FREE, Ordering::SeqCst);
        assert_eq!(
            before, EXCLUSIVE,
            "a frame is let go that nobody has to himself"
        );
    }
}

impl Drop for FrameCore {
    fn drop(&mut self) {
        self.arena.free.lock().push(self.index);
    }
}

/// Owner of one frame of an [`Arena`]; the frame returns to the arena when the owner and every hold are gone.
pub struct Frame {
    core: Arc<FrameCore>,
}

impl Frame {
    /// Shared access for a moment; `None` while someone has it exclusively.
    pub fn try_read(&self) -> Option<FrameRead<'_>> {
        self.core
            .try_share()
            .then(|| FrameRead { core: &self.core })
    }

    /// Exclusive access for a moment; `None` while anyone else has access.
    pub fn try_write(&self) -> Option<FrameWrite<'_>> {
        self.core
            .try_exclude()
            .then(|| FrameWrite { core: &self.core })
    }

    /// Shared access that travels with an I/O (a write to a device); `None` while someone has it exclusively.
    pub fn try_read_hold(&self) -> Option<ReadHold> {
        let length = self.core.arena.frame_bytes;
        self.core.try_share().then(|| ReadHold {
            core: Arc::clone(&self.core),
            start: 0,
            length,
        })
    }

    /// Exclusive access that travels with an I/O (a read from a device); `None` while anyone else has access.
    pub fn try_write_hold(&self) -> Option<WriteHold> {
        self.core.try_exclude().then(|| WriteHold {
            core: Arc::clone(&self.core),
        })
    }

    /// True when no holder has access at this moment.
    pub fn is_free(&self) -> bool {
        self.core.state.load(Ordering::Acquire) == FREE
    }

    /// Bytes in the frame.
    pub fn bytes(&self) -> usize {
        self.core.arena.frame_bytes
    }
}

/// Shared borrow of a frame's bytes.
pub struct FrameRead<'a> {
    core: &'a FrameCore,
}

impl Deref for FrameRead<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the state counts this reader, so no writer exists until it is dropped.
        unsafe { std::slice::from_raw_parts(self.core.pointer(), self.core.arena.frame_bytes) }
    }
}

impl Drop for FrameRead<'_> {
    fn drop(&mut self) {
        self.core.unshare();
    }
}

/// Exclusive borrow of a frame's bytes.
pub struct FrameWrite<'a> {
    core: &'a FrameCore,
}

impl Deref for FrameWrite<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the state is exclusive, held by this guard.
        unsafe { std::slice::from_raw_parts(self.core.pointer(), self.core.arena.frame_bytes) }
    }
}

impl DerefMut for FrameWrite<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the state is exclusive, held by this guard, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.core.pointer(), self.core.arena.frame_bytes) }
    }
}

impl Drop for FrameWrite<'_> {
    fn drop(&mut self) {
        self.core.unexclude();
    }
}

/// Shared, owned access to (a part of) a frame: the source of a write.
pub struct ReadHold {
    core: Arc<FrameCore>,
    start: usize,
    length: usize,
}

impl ReadHold {
    /// Another hold on `length` bytes from `start` of this one (both relative to this hold).
    pub fn part(&self, start: usize, length: usize) -> ReadHold {
        assert!(start + length <= self.length, "a part lies inside its hold");
        // A reader exists (this one), so the count is positive and no writer can come between.
        let before = self.core.state.fetch_add(1, Ordering::Relaxed);
        assert!(before > FREE, "a part of a hold that holds nothing");
        ReadHold {
            core: Arc::clone(&self.core),
            start: self.start + start,
            length,
        }
    }
}

impl Deref for ReadHold {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the state counts this reader; start and length were checked to lie inside the frame.
        unsafe { std::slice::from_raw_parts(self.core.pointer().add(self.start), self.length) }
    }
}

impl Drop for ReadHold {
    fn drop(&mut self) {
        self.core.unshare();
    }
}

/// Exclusive, owned access to a frame: the target of a read, or a buffer being filled for a write.
pub struct WriteHold {
    core: Arc<FrameCore>,
}

impl WriteHold {
    /// Gives up exclusive access for shared access to the first `length` bytes; no other access can come in between.
    pub fn share(self, length: usize) -> ReadHold {
        assert!(
            length <= self.core.arena.frame_bytes,
            "a hold lies inside its frame"
        );
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is neither used nor dropped again, so the count moves out exactly once.
        let core = unsafe { std::ptr::read(&raw const this.core) };
        if has_planted(SHARES_IN_TWO_STEPS) {
            core.state.store(FREE, Ordering::Release);
            core.state.fetch_add(1, Ordering::AcqRel);
        } else {
            core.state.store(1, Ordering::SeqCst);
        }
        ReadHold {
            core,
            start: 0,
            length,
        }
    }
}

impl Deref for WriteHold {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the state is exclusive, held by this hold.
        unsafe { std::slice::from_raw_parts(self.core.pointer(), self.core.arena.frame_bytes) }
    }
}

impl DerefMut for WriteHold {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the state is exclusive, held by this hold, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.core.pointer(), self.core.arena.frame_bytes) }
    }
}

impl Drop for WriteHold {
    fn drop(&mut self) {
        self.core.unexclude();
    }
}

impl fmt::Debug for ReadHold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "ReadHold(frame {}, {}+{})",
            self.core.index, self.start, self.length
        )
    }
}

impl fmt::Debug for WriteHold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "WriteHold(frame {})", self.core.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        let arena = Arena::new(4096, 1).unwrap();
        let frame = arena.allocate().unwrap();
        assert!(arena.allocate().is_none());
        let first = frame.try_read().unwrap();
        let second = frame.try_read_hold().unwrap();
        assert!(frame.try_write().is_none());
        drop(first);
        let part = second.part(512, 512);
        drop(second);
        assert!(frame.try_write_hold().is_none(), "a part keeps readers in");
        drop(part);
        let mut writer = frame.try_write_hold().unwrap();
        writer[0] = 7;
        assert!(frame.try_read().is_none());
        let shared = writer.share(1024);
        assert_eq!((shared[0], shared.len()), (7, 1024));
        assert!(frame.try_write().is_none());
        drop(shared);
        assert!(frame.try_write().is_some());
    }

    #[test]
    fn a_frame_returns_only_when_the_last_hold_is_gone() {
        let arena = Arena::new(512, 1).unwrap();
        let frame = arena.allocate().unwrap();
        let hold = frame.try_read_hold().unwrap();
        drop(frame);
        assert!(arena.allocate().is_none());
        drop(hold);
        assert!(arena.allocate().is_some());
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings {
    use super::*;
    use crate::explore::{Shows, exhaust, explore, must_find, spawn, yield_now};

    /// Fills the frame, leaving room for others to do the same meanwhile, and looks whether they did.
    fn write(bytes: &mut [u8], mark: u8) {
        bytes[0] = mark;
        yield_now();
        assert_eq!(bytes[0], mark, "two writers at once");
        bytes[1] = mark;
    }

    fn read(bytes: &[u8]) {
        let seen = bytes[0];
        yield_now();
        assert_eq!(bytes[..2], [seen, seen], "a writer among readers");
    }

    /// Two writers, one of which hands its frame on to an I/O that reads it in two parts, and a reader.
    fn holds() {
        let arena = Arena::new(512, 1).unwrap();
        let frame = Arc::new(arena.allocate().unwrap());
        let threads = [1, 2, 3].map(|number: u8| {
            let frame = Arc::clone(&frame);
            spawn(move || match number {
                1 => {
                    if let Some(mut hold) = frame.try_write_hold() {
                        write(&mut hold, 1);
                        let shared = hold.share(512);
                        let part = shared.part(0, 256);
                        drop(shared);
                        assert_eq!(
                            part[0], 1,
                            "another thread came between a writer and its sharing"
                        );
                        read(&part);
                    }
                }
                2 => {
                    if let Some(mut bytes) = frame.try_write() {
                        write(&mut bytes, 2);
                    }
                }
                _ => {
                    if let Some(bytes) = frame.try_read() {
                        read(&bytes);
                    }
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(frame.try_write().is_some(), "every hold was given back");
    }

    #[test]
    fn writers_are_alone_and_readers_see_no_writer() {
        explore(5_000, holds);
        must_find(LOOKS_THEN_TAKES, Shows::Panic, 5_000, holds);
        must_find(SHARES_IN_TWO_STEPS, Shows::Panic, 5_000, holds);
    }

    #[test]
    fn the_last_hold_gives_the_frame_back_in_every_order() {
        let orders = exhaust(100_000, || {
            let arena = Arena::new(512, 1).unwrap();
            let frame = arena.allocate().unwrap();
            let hold = frame.try_read_hold().unwrap();
            let other = spawn(move || drop(hold));
            assert!(frame.try_read().is_some(), "readers share");
            drop(frame);
            other.join().unwrap();
            assert!(arena.allocate().is_some());
        });
        assert!(orders > 1);
    }
}
