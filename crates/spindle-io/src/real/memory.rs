//! [`MemoryDevice`]: a device that is memory. Every request is done within `submit`, whatever its submission, and the
//! bytes are kept, so that a database on it works and its blocks verify. What a transaction costs there is what
//! clients, database and bookkeeping cost without storage.

use std::sync::Arc;

use super::counts::{Counters, IoCounts};
use crate::device::{
    BlockDevice, Completion, Fault, IoError, IoFailure, IoOutcome, Limits, Operation, Request,
};
use crate::sync::{self, Latch};

/// Bytes behind one latch.
const PIECE_BYTES: usize = 64 << 10;
/// What memory holds before it is first written: not zero, so that it is all paid for when the device is made.
const NEVER_WRITTEN: u8 = 0x5A;

/// A device of memory, gone when it is dropped.
pub struct MemoryDevice {
    name: String,
    limits: Limits,
    pieces: Box<[Latch<Box<[u8]>>]>,
    counters: Counters,
}

impl MemoryDevice {
    /// A device of `capacity_bytes`, all of it taken from memory at once; `name` is for messages.
    pub fn new(name: &str, capacity_bytes: u64) -> Arc<MemoryDevice> {
        let piece = || Latch::new(vec![NEVER_WRITTEN; PIECE_BYTES].into_boxed_slice());
        let pieces = capacity_bytes.div_ceil(PIECE_BYTES as u64);
        Arc::new(MemoryDevice {
            name: name.to_owned(),
            limits: Limits {
                capacity_bytes,
                alignment_bytes: 1,
                // What no power cut survives, none can tear.
                atomic_write_bytes: 64 << 10,
            },
            pieces: (0..pieces).map(|_| piece()).collect(),
            counters: Counters::default(),
        })
    }

    /// What this device has done since it was made.
    pub fn counters(&self) -> IoCounts {
        self.counters.read()
    }

    /// Gives `visit` the memory of `length` bytes from `offset`, piece by piece: what of the device, and where in the
    /// request it belongs.
    fn pieces_of(&self, offset: u64, length: usize, mut visit: impl FnMut(&mut [u8], usize)) {
        let mut done = 0;
        while done < length {
            let at = offset as usize + done;
            let (piece, start) = (at / PIECE_BYTES, at % PIECE_BYTES);
            let step = (PIECE_BYTES - start).min(length - done);
            visit(&mut self.pieces[piece].lock()[start..start + step], done);
            done += step;
        }
    }

    fn transfer(&self, mut offset: u64, operation: &mut Operation) {
        match operation {
            Operation::Read(into) => {
                for hold in into {
                    self.pieces_of(offset, hold.len(), |bytes, at| {
                        hold[at..at + bytes.len()].copy_from_slice(bytes);
                    });
                    offset += hold.len() as u64;
                }
            }
            Operation::Write { from, .. } => {
                for hold in from {
                    self.pieces_of(offset, hold.len(), |bytes, at| {
                        bytes.copy_from_slice(&hold[at..at + bytes.len()]);
                    });
                    offset += hold.len() as u64;
                }
            }
            Operation::Flush => {}
        }
    }
}

impl BlockDevice for MemoryDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> Limits {
        self.limits.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        sync::assert_no_latch_held();
        let bytes = request.bytes();
        let Request {
            offset,
            mut operation,
            ..
        } = request;
        let end = offset.checked_add(bytes as u64);
        let result = if end.is_some_and(|end| end <= self.limits.capacity_bytes) {
            self.transfer(offset, &mut operation);
            self.counters.count(&operation, bytes);
            Ok(())
        } else {
            Err(IoError::from(IoFailure {
                device: self.name.clone(),
                operation: operation.name(),
                offset,
                bytes,
                reason: format!(
                    "past the end: it holds {} bytes",
                    self.limits.capacity_bytes
                ),
                fault: Fault::Other,
            }))
        };
        Completion::ready(IoOutcome { result, operation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::device::Submission;

    fn done(device: &MemoryDevice, request: Request) -> IoOutcome {
        let completion = device.submit(request);
        completion.already().expect("done within submit")
    }

    #[test]
    fn what_was_written_is_read_across_pieces() {
        let device = MemoryDevice::new("memory", 3 * PIECE_BYTES as u64);
        let arena = Arena::new(4096, 3).unwrap();
        let frames: Vec<_> = (0..3).map(|_| arena.allocate().unwrap()).collect();
        // Three blocks, the second across the edge of the first piece.
        let offset = PIECE_BYTES as u64 - 6144;
        let from = |value: u8, frame: &crate::Frame| {
            let mut hold = frame.try_write_hold().unwrap();
            hold.fill(value);
            hold.share(4096)
        };
        let from = (1..).zip(&frames).map(|(value, frame)| from(value, frame));
        let write = Request::write(offset, from.collect(), true, Submission::Batched);
        assert_eq!(done(&device, write).result, Ok(()));
        let into = frames.iter().map(|frame| frame.try_write_hold().unwrap());
        let read = Request::read(offset, into.collect(), Submission::Alone);
        let Operation::Read(blocks) = done(&device, read).operation else {
            panic!("a read comes back as a read");
        };
        for (value, block) in (1..).zip(&blocks) {
            assert!(block.iter().all(|byte| *byte == value));
        }
        let counts = device.counters();
        assert_eq!((counts.reads, counts.writes), (1, 1));
        assert_eq!((counts.read_bytes, counts.write_bytes), (12288, 12288));
    }

    #[test]
    fn past_the_end_is_an_error() {
        let device = MemoryDevice::new("memory", 8192);
        let arena = Arena::new(4096, 1).unwrap();
        let hold = arena.allocate().unwrap().try_write_hold().unwrap();
        let outcome = done(&device, Request::read(8192, vec![hold], Submission::Alone));
        let error = outcome.result.unwrap_err().to_string();
        assert!(error.contains("read of 4096 bytes at byte 8192 of memory: past the end"));
        assert_eq!(device.counters().reads, 0);
        assert_eq!(done(&device, Request::flush()).result, Ok(()));
    }
}
