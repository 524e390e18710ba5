//! A ring for a thread that keeps a number of requests under way and does nothing else: there is no future, no waker
//! and no memory for each. `spindle calibrate` measures with it, as what it finds is to be the device's cost and not
//! this program's. It belongs to the thread that makes it.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;

use io_uring::squeue::Entry;
use io_uring::types::{Fd, Fixed};
use io_uring::{IoUring, opcode};
use rustix::io::Errno;

use super::queue::queue_calls::QueueCalls;
use super::queue::ring::build;
use super::queue::ring_refusal::why_refused;
use crate::arena::WriteHold;
use crate::device::{IoError, Operation};
use crate::real::file::core::Core;
use crate::real::file::transfer;
use crate::real::file_device::FileDevice;

/// Fewer requests at once cost more calls than the device gains.
const BUNCH_LEAST: usize = 8;

/// Requests on some files, each with its own buffer. What they do is not in the counts of the files.
pub struct BareRing {
    uring: IoUring,
    files: Vec<Arc<Core>>,
    /// Whether requests name files by their place in the ring's table.
    has_table: bool,
    /// Whether the buffers are registered, each in the place of its number.
    has_fixed: bool,
    buffers: Vec<Buffer>,
    /// Numbers of buffers whose requests are to be handed over.
    queued: Vec<u32>,
    under_way: usize,
    /// Requests that go to the system at once while others are under way.
    bunch: usize,
    read: Operation,
    write: Operation,
}

/// A buffer, and the request that has it, or had it last.
struct Buffer {
    hold: WriteHold,
    asked: RingRequest,
    done: usize,
    is_under_way: bool,
}

/// A request for a whole buffer.
#[derive(Debug, Clone, Copy)]
pub struct RingRequest {
    /// The number of its file, in the order in which they were given.
    pub file: usize,
    /// First byte on the file.
    pub offset: u64,
    /// Whether the buffer is written; else it is read into.
    pub is_write: bool,
}

impl BareRing {
    /// A ring of the calling thread for requests on these files, one at a time for each buffer. `has_fixed`: the
    /// buffers are to be registered with it, where the limit of locked memory allows.
    ///
    /// # Errors
    /// There is no io_uring, in words, or the system refuses one more.
    pub fn new(
        files: &[&FileDevice],
        buffers: Vec<WriteHold>,
        has_fixed: bool,
    ) -> io::Result<BareRing> {
        let entries = buffers.len().next_power_of_two().try_into();
        let entries = entries.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let refused = |error: io::Error| io::Error::new(error.kind(), why_refused(&error));
        let uring = build(entries).map_err(refused)?;
        let files: Vec<Arc<Core>> = files.iter().map(|file| file.core()).collect();
        let numbers: Vec<i32> = files.iter().map(|core| core.file.raw_fd()).collect();
        let has_table = uring.submitter().register_files(&numbers).is_ok();
        let vectors: Vec<libc::iovec> = buffers.iter().map(memory_of).collect();
        // SAFETY: the ring has the buffers for as long as they are registered.
        let has_fixed =
            has_fixed && unsafe { uring.submitter().register_buffers(&vectors) }.is_ok();
        let idle = |hold| Buffer {
            hold,
            asked: RingRequest {
                file: 0,
                offset: 0,
                is_write: false,
            },
            done: 0,
            is_under_way: false,
        };
        Ok(BareRing {
            uring,
            files,
            has_table,
            has_fixed,
            queued: Vec::with_capacity(buffers.len()),
            bunch: (buffers.len() / 4).max(BUNCH_LEAST),
            buffers: buffers.into_iter().map(idle).collect(),
            under_way: 0,
            read: Operation::Read(Vec::new()),
            write: Operation::Write {
                from: Vec::new(),
                durable: false,
                atomic: false,
            },
        })
    }

    /// Requests that have begun and not ended.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// The bytes of a buffer that no request has.
    ///
    /// # Panics
    /// A request has it.
    pub fn bytes(&mut self, buffer: u32) -> &mut [u8] {
        let buffer = &mut self.buffers[buffer as usize];
        assert!(!buffer.is_under_way, "a request has the buffer");
        &mut buffer.hold
    }

    /// Begins a request, which goes to the system with the next [`BareRing::wait`], or sooner.
    ///
    /// # Errors
    /// It reaches past the end of the file.
    ///
    /// # Panics
    /// Another request has the buffer.
    pub fn begin(&mut self, number: u32, asked: RingRequest) -> Result<(), IoError> {
        let core = &self.files[asked.file];
        let buffer = &mut self.buffers[number as usize];
        assert!(!buffer.is_under_way, "a request has the buffer");
        let operation = match asked.is_write {
            true => &self.write,
            false => &self.read,
        };
        core.check_bounds(operation, asked.offset, buffer.hold.len())?;
        (buffer.asked, buffer.done, buffer.is_under_way) = (asked, 0, true);
        self.queued.push(number);
        self.under_way += 1;
        // Else all would end together, begin together, and leave the device idle in between.
        if self.queued.len() >= self.bunch && self.under_way > self.queued.len() {
            self.hand_over(0);
        }
        Ok(())
    }

    /// Hands over what has begun, and waits until a request has ended, unless there is none. The numbers of the buffers
    /// of all that have ended are in `ended` then, instead of what it held.
    ///
    /// # Errors
    /// One of them failed.
    pub fn wait(&mut self, ended: &mut Vec<u32>) -> Result<(), IoError> {
        ended.clear();
        while ended.is_empty() && self.under_way > 0 {
            self.hand_over(1);
            self.reap(ended)?;
        }
        Ok(())
    }

    /// Hands over what has begun, and waits for the end of this many requests.
    fn hand_over(&mut self, ends: usize) {
        let mut submission = self.uring.submission();
        for number in self.queued.drain(..) {
            let entry = entry_of(
                number,
                &mut self.buffers[number as usize],
                &self.files,
                (self.has_table, self.has_fixed),
            );
            // SAFETY: the buffer and the file belong to this ring, which waits for every request before it goes.
            unsafe { submission.push(&entry) }.expect("there is an entry for each buffer");
        }
        drop(submission);
        let answer = self.uring.submit_and_wait(ends);
        QueueCalls::count(*answer.as_ref().unwrap_or(&0));
        match answer.map_err(|error| Errno::from_io_error(&error)) {
            Ok(_) | Err(Some(Errno::INTR)) => {}
            Err(Some(Errno::AGAIN | Errno::BUSY)) => std::thread::yield_now(),
            // The kernel owns buffers and does not say until when: nothing can be saved.
            Err(error) => panic!("io_uring_enter failed: {error:?}"),
        }
    }

    /// Takes in what has ended.
    fn reap(&mut self, ended: &mut Vec<u32>) -> Result<(), IoError> {
        let mut failed = Ok(());
        for entry in self.uring.completion() {
            let number = entry.user_data() as u32;
            let buffer = &mut self.buffers[number as usize];
            let (asked, total) = (buffer.asked, buffer.hold.len());
            let answer = usize::try_from(entry.result())
                .map_err(|_| Errno::from_raw_os_error(-entry.result()));
            if answer == Ok(total) {
                buffer.is_under_way = false;
                ended.push(number);
                self.under_way -= 1;
                continue;
            }
            let operation = match asked.is_write {
                true => &self.write,
                false => &self.read,
            };
            let core = &self.files[asked.file];
            let whole = (operation, core.first_byte + asked.offset, total);
            match transfer::advanced(core, whole, &mut buffer.done, answer) {
                None => self.queued.push(number),
                Some(result) => {
                    buffer.is_under_way = false;
                    ended.push(number);
                    self.under_way -= 1;
                    failed = failed.and(result);
                }
            }
        }
        failed
    }
}

fn memory_of(hold: &WriteHold) -> libc::iovec {
    libc::iovec {
        iov_base: hold.as_ptr().cast_mut().cast(),
        iov_len: hold.len(),
    }
}

/// What asks for the rest of a buffer's request.
fn entry_of(
    number: u32,
    buffer: &mut Buffer,
    files: &[Arc<Core>],
    (has_table, has_fixed): (bool, bool),
) -> Entry {
    let core = &files[buffer.asked.file];
    let position = core.first_byte + buffer.asked.offset + buffer.done as u64;
    let rest = &mut buffer.hold[buffer.done..];
    let (start, length) = (rest.as_mut_ptr(), rest.len() as u32);
    let slot = number as u16;
    macro_rules! of_file {
        ($file:expr) => {
            match (buffer.asked.is_write, has_fixed) {
                (false, true) => opcode::ReadFixed::new($file, start, length, slot)
                    .offset(position)
                    .build(),
                (false, false) => opcode::Read::new($file, start, length)
                    .offset(position)
                    .build(),
                (true, true) => opcode::WriteFixed::new($file, start, length, slot)
                    .offset(position)
                    .build(),
                (true, false) => opcode::Write::new($file, start, length)
                    .offset(position)
                    .build(),
            }
        };
    }
    let entry = match has_table {
        true => of_file!(Fixed(buffer.asked.file as u32)),
        false => of_file!(Fd(core.file.raw_fd())),
    };
    entry.user_data(number.into())
}

impl Drop for BareRing {
    fn drop(&mut self) {
        let mut ended = Vec::new();
        while self.under_way > 0 {
            self.hand_over(1);
            // No one is left to tell of a failure.
            let _ = self.reap(&mut ended);
        }
        // The kernel closes a ring some time later; files and locked memory are to be free now. There may be no table.
        let _ = self.uring.submitter().unregister_files();
        let _ = self.uring.submitter().unregister_buffers();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::arena::Arena;
    use crate::real::facts::io_uring_available;
    use crate::real::{Caching, Queue};

    const BYTES: usize = 4096;
    const BUFFERS: u32 = 8;

    /// A file of numbered blocks, and a ring on it; `None`, with a note, where there is no io_uring.
    fn ring_on(blocks: u8, has_fixed: bool) -> Option<(tempfile::NamedTempFile, BareRing)> {
        if let Err(reason) = io_uring_available() {
            spindle_harness::skip(reason);
            return None;
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for block in 0..blocks {
            file.write_all(&[block; BYTES]).unwrap();
        }
        let device = FileDevice::open(file.path(), Caching::Buffered, Queue::sync()).unwrap();
        let arena = Arena::new(BYTES, BUFFERS as usize).unwrap();
        let buffer = |_| arena.allocate().unwrap().try_write_hold().unwrap();
        let buffers = (0..BUFFERS).map(buffer).collect();
        let ring = BareRing::new(&[&device], buffers, has_fixed).unwrap();
        Some((file, ring))
    }

    fn block(number: u64, is_write: bool) -> RingRequest {
        RingRequest {
            file: 0,
            offset: number * BYTES as u64,
            is_write,
        }
    }

    #[test]
    fn each_buffer_gets_the_block_it_asked_for() {
        for has_fixed in [false, true] {
            let Some((_file, mut ring)) = ring_on(64, has_fixed) else {
                return;
            };
            let (mut next, mut seen, mut ended) = (0, 0, Vec::from_iter(0..BUFFERS));
            let mut asked_for = [0; BUFFERS as usize];
            while seen < 64 {
                for &number in &ended {
                    if next < 64 {
                        asked_for[number as usize] = next;
                        ring.begin(number, block(next, false)).unwrap();
                        next += 1;
                    }
                }
                ring.wait(&mut ended).unwrap();
                for &number in &ended {
                    let wanted = asked_for[number as usize] as u8;
                    assert!(ring.bytes(number).iter().all(|byte| *byte == wanted));
                    seen += 1;
                }
            }
            assert_eq!(ring.under_way(), 0);
        }
    }

    #[test]
    fn what_is_written_is_in_the_file_when_the_ring_has_gone() {
        let Some((file, mut ring)) = ring_on(4, true) else {
            return;
        };
        for number in 0..4 {
            ring.bytes(number).fill(100 + number as u8);
            ring.begin(number, block(3 - u64::from(number), true))
                .unwrap();
        }
        drop(ring);
        let bytes = std::fs::read(file.path()).unwrap();
        let firsts: Vec<u8> = bytes.chunks(BYTES).map(|block| block[0]).collect();
        assert_eq!(firsts, [103, 102, 101, 100]);
    }

    #[test]
    fn past_the_end_is_refused_and_a_file_cut_short_is_told() {
        let Some((file, mut ring)) = ring_on(4, true) else {
            return;
        };
        let told = ring.begin(0, block(4, false)).unwrap_err().to_string();
        assert!(
            told.ends_with("past the end: it holds 16384 bytes"),
            "{told}"
        );
        file.as_file().set_len(3 * BYTES as u64 + 100).unwrap();
        ring.begin(0, block(3, false)).unwrap();
        let mut ended = Vec::new();
        let told = ring.wait(&mut ended).unwrap_err().to_string();
        assert!(
            told.ends_with("unexpected end of file after 100 bytes"),
            "{told}"
        );
        assert_eq!((ended, ring.under_way()), (vec![0], 0));
    }
}
