//! One I/O on a file, however it is carried out: what memory is left to transfer, what a result of the system means
//! (done, short and to be continued, interrupted and to be repeated, failed and in which words), and the blocking way
//! of doing it, which the synchronous method and the I/O slaves share.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

use rustix::io::Errno;

use super::core::Core;
use super::identify::Caching;
use crate::device::{IoError, IoOutcome, Operation};

/// Most buffers one call takes (`IOV_MAX` of Linux).
const VECTOR_LIMIT: usize = 1024;

/// Most bytes asked for in one call; Linux itself cuts a transfer at 2 GiB less a page.
const CALL_LIMIT_BYTES: usize = 1 << 30;

/// An operation and how far it has come.
pub(crate) struct Transfer {
    offset: u64,
    operation: Operation,
    total: usize,
    done: usize,
}

/// Memory still to be transferred.
pub(crate) enum Memory {
    /// One piece: one buffer, or several that follow each other in memory.
    One(libc::iovec),
    /// Pieces in order.
    Several(Vec<libc::iovec>),
}

impl Transfer {
    pub(crate) fn new(offset: u64, operation: Operation, total: usize) -> Transfer {
        Transfer {
            offset,
            operation,
            total,
            done: 0,
        }
    }

    /// Where on the file it continues.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.done as u64
    }

    pub(crate) fn is_read(&self) -> bool {
        matches!(self.operation, Operation::Read(_))
    }

    /// Flags for `preadv2` and its like: O_DSYNC semantics for a durable write, and a promise not to be torn asked for.
    pub(crate) fn flags(&self) -> i32 {
        let Operation::Write {
            durable, atomic, ..
        } = self.operation
        else {
            return 0;
        };
        let flag = |is_wanted, flag| if is_wanted { flag } else { 0 };
        flag(durable, libc::RWF_DSYNC) | flag(atomic, libc::RWF_ATOMIC)
    }

    /// What is left. The pointers are good as long as the transfer lives.
    #[inline]
    pub(crate) fn memory(&mut self) -> Memory {
        let mut pieces = Pieces {
            skip: self.done,
            full: false,
            memory: None,
        };
        match &mut self.operation {
            Operation::Read(into) => {
                for hold in into {
                    let length = hold.len();
                    pieces.push(hold.as_mut_ptr(), length);
                }
            }
            Operation::Write { from, .. } => {
                for hold in from {
                    // Only ever read from: the calls that write a file take it as a source.
                    pieces.push(hold.as_ptr().cast_mut(), hold.len());
                }
            }
            Operation::Flush => {}
        }
        pieces.memory.unwrap_or(Memory::One(libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }))
    }

    /// Takes in the answer of one call; `None` means: continue with what is left.
    pub(crate) fn advance(
        &mut self,
        core: &Core,
        answer: Result<usize, Errno>,
    ) -> Option<Result<(), IoError>> {
        let whole = (&self.operation, self.offset, self.total);
        let ended = advanced(core, whole, &mut self.done, answer);
        if let Some(Ok(())) = ended {
            core.counters.count(&self.operation, self.total);
        }
        ended
    }

    /// Gives the buffers back.
    pub(crate) fn outcome(self, result: Result<(), IoError>) -> IoOutcome {
        IoOutcome {
            result,
            operation: self.operation,
        }
    }

    /// One blocking call for what is left.
    fn call(&mut self, core: &Core) -> Result<usize, Errno> {
        let (fd, position, flags, is_read) = (
            core.file.raw_fd(),
            self.position() as libc::off64_t,
            self.flags(),
            self.is_read(),
        );
        let answer = match self.memory() {
            Memory::One(piece) if is_read => {
                // SAFETY: the piece lies in memory that the operation holds exclusively until after this call.
                unsafe { libc::pread64(fd, piece.iov_base, piece.iov_len, position) }
            }
            Memory::One(piece) if flags == 0 => {
                // SAFETY: the piece lies in memory that the operation holds, readable, until after this call.
                unsafe { libc::pwrite64(fd, piece.iov_base, piece.iov_len, position) }
            }
            // SAFETY: as above; one vector, on the stack.
            Memory::One(piece) => unsafe {
                vectored(libc::SYS_pwritev2, fd, &raw const piece, 1, position, flags)
            },
            Memory::Several(pieces) => {
                let (first, count) = (pieces.as_ptr(), pieces.len() as libc::c_int);
                // SAFETY: `pieces` lives until after the call, and they lie in memory that the operation holds
                // exclusively (read) or readable (write).
                let call = match is_read {
                    true => libc::SYS_preadv2,
                    false => libc::SYS_pwritev2,
                };
                unsafe { vectored(call, fd, first, count, position, flags) }
            }
        };
        usize::try_from(answer).map_err(|_| last_error())
    }
}

/// Takes in the answer of one call for what is left of `whole`: an operation from an offset, and its bytes, of which
/// `done` were done. `None` means: continue with the rest.
pub(crate) fn advanced(
    core: &Core,
    whole: (&Operation, u64, usize),
    done: &mut usize,
    answer: Result<usize, Errno>,
) -> Option<Result<(), IoError>> {
    let (operation, offset, total) = whole;
    let failed = |reason| core.error(operation, offset, total, reason);
    match answer {
        Ok(bytes) => {
            *done += bytes;
            if *done >= total {
                return Some(Ok(()));
            }
            // A short direct read that ends off the grid has met the end of the file: it cannot be continued.
            let grid = core.limits.alignment_bytes as usize;
            match bytes == 0 || !done.is_multiple_of(grid) {
                true => Some(Err(failed(ended_early(operation, *done)))),
                false => None,
            }
        }
        Err(Errno::INTR | Errno::AGAIN) => None,
        Err(error) => Some(Err(failed(words_of(core, error)).of_kind(error.kind()))),
    }
}

fn ended_early(operation: &Operation, done: usize) -> String {
    match operation {
        Operation::Read(_) => format!("unexpected end of file after {done} bytes"),
        _ => format!("the device took only {done} bytes"),
    }
}

fn words_of(core: &Core, error: Errno) -> String {
    let mut reason = io::Error::from(error).to_string();
    if error == Errno::INVAL && core.file.caching == Caching::Direct {
        reason += &format!(
            "; direct I/O here needs offset, length and memory address to be multiples of {} bytes",
            core.limits.alignment_bytes
        );
    }
    reason
}

/// `preadv2` or `pwritev2` of the kernel: the C library has them from glibc 2.26 only.
///
/// # Safety
/// That of `preadv2` (2).
unsafe fn vectored(
    call: libc::c_long,
    fd: RawFd,
    first: *const libc::iovec,
    count: libc::c_int,
    position: libc::off64_t,
    flags: libc::c_int,
) -> isize {
    // The high half of the offset, which 64-bit kernels take from the first.
    let high: libc::c_long = 0;
    // SAFETY: as the caller must see to.
    unsafe { libc::syscall(call, fd, first, count, position, high, flags) as isize }
}

/// Carries an operation out in the calling thread, which blocks until it is done.
pub(crate) fn perform(core: &Core, offset: u64, operation: Operation, total: usize) -> IoOutcome {
    if matches!(operation, Operation::Flush) {
        let result = flush(core, &operation);
        return IoOutcome { result, operation };
    }
    let mut transfer = Transfer::new(offset, operation, total);
    loop {
        let answer = transfer.call(core);
        if let Some(result) = transfer.advance(core, answer) {
            return transfer.outcome(result);
        }
    }
}

fn flush(core: &Core, operation: &Operation) -> Result<(), IoError> {
    rustix::io::retry_on_intr(|| rustix::fs::fdatasync(&*core.file)).map_err(|error| {
        let reason = io::Error::from(error).to_string();
        core.error(operation, 0, 0, reason).of_kind(error.kind())
    })?;
    core.counters.count(operation, 0);
    Ok(())
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Gathers pieces of memory, leaving out what is done and joining neighbours.
struct Pieces {
    skip: usize,
    full: bool,
    memory: Option<Memory>,
}

impl Pieces {
    #[inline]
    fn push(&mut self, start: *mut u8, length: usize) {
        let skipped = self.skip.min(length);
        self.skip -= skipped;
        if skipped == length || self.full {
            return;
        }
        let piece = libc::iovec {
            iov_base: start.wrapping_add(skipped).cast(),
            iov_len: length - skipped,
        };
        match &mut self.memory {
            None => self.memory = Some(Memory::One(piece)),
            Some(Memory::One(last)) => {
                let last = *last;
                if let Some(joined) = join(last, piece) {
                    self.memory = Some(Memory::One(joined));
                } else {
                    self.memory = Some(Memory::Several(vec![last, piece]));
                }
            }
            Some(Memory::Several(pieces)) => {
                let last = pieces.last_mut().expect("several are two at the least");
                if let Some(joined) = join(*last, piece) {
                    *last = joined;
                } else if pieces.len() < VECTOR_LIMIT {
                    pieces.push(piece);
                } else {
                    // The rest is for the next call; nothing may be joined past the gap.
                    self.full = true;
                }
            }
        }
    }
}

/// Two pieces as one, when the second follows the first in memory and both fit in one call.
fn join(first: libc::iovec, second: libc::iovec) -> Option<libc::iovec> {
    let follows = first.iov_base.cast::<u8>().wrapping_add(first.iov_len) == second.iov_base.cast();
    let length = first.iov_len + second.iov_len;
    (follows && length <= CALL_LIMIT_BYTES).then_some(libc::iovec {
        iov_base: first.iov_base,
        iov_len: length,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::sync::Arc;

    use super::*;
    use crate::arena::Arena;
    use crate::device::{Fault, Limits};
    use crate::real::file::identify::OpenFile;

    #[test]
    fn a_full_device_is_told_from_other_faults() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let limits = Limits {
            capacity_bytes: 512,
            alignment_bytes: 1,
            atomic_write_bytes: 512,
        };
        let core = Core::new(Arc::new(OpenFile::of(full)), limits);
        let frame = Arena::new(512, 1).unwrap().allocate().unwrap();
        let write = Operation::Write {
            from: vec![frame.try_write_hold().unwrap().share(512)],
            durable: false,
            atomic: false,
        };
        let failed = perform(&core, 0, write, 512).result.unwrap_err();
        assert_eq!(failed.fault, Fault::NoRoom, "{failed}");
        // It takes no flush either, for another reason.
        let failed = perform(&core, 0, Operation::Flush, 0).result.unwrap_err();
        assert_eq!(failed.fault, Fault::Other, "{failed}");
    }
}
