//! A device for tests: memory with a volatile cache, whose power can be cut at any I/O.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use spindle_io::{
    BlockDevice, Completion, Fault, IoError, IoFailure, IoOutcome, Limits, Operation, Request,
};

const SECTOR_BYTES: usize = 512;

/// What a device of tests is like.
#[derive(Clone)]
pub struct Medium {
    pub bytes: u64,
    pub block_bytes: u32,
    /// The I/O, counted from 1, in which the power is cut.
    pub cut_at: Option<u64>,
    /// Planted fault: a flush is acknowledged, and nothing was flushed.
    pub flush_does_nothing: bool,
    /// I/Os end later, on another thread.
    pub ends_later: bool,
    pub seed: u64,
}

impl Default for Medium {
    fn default() -> Medium {
        Medium {
            bytes: 4 << 20,
            block_bytes: 512,
            cut_at: None,
            flush_does_nothing: false,
            ends_later: false,
            seed: 1,
        }
    }
}

pub struct TestDevice {
    medium: Medium,
    /// Files that are kept as they are when the power is cut, and as what.
    frozen: Vec<(PathBuf, PathBuf)>,
    state: Mutex<State>,
}

struct State {
    /// As the device reads now.
    now: Vec<u8>,
    /// What survives a power cut for sure.
    stable: Vec<u8>,
    /// Writes since the last flush.
    unstable: Vec<(usize, Vec<u8>)>,
    ios: u64,
    is_cut: bool,
}

impl TestDevice {
    /// A device that begins with these bytes; the rest of it is what others left.
    pub fn new(medium: Medium, begin: &[u8], frozen: Vec<(PathBuf, PathBuf)>) -> Arc<TestDevice> {
        let mut now = vec![0x5A; medium.bytes as usize];
        now[..begin.len()].copy_from_slice(begin);
        Arc::new(TestDevice {
            medium,
            frozen,
            state: Mutex::new(State {
                stable: now.clone(),
                now,
                unstable: Vec::new(),
                ios: 0,
                is_cut: false,
            }),
        })
    }

    /// All bytes, as after the power cut if there was one.
    pub fn bytes(&self) -> Vec<u8> {
        self.state.lock().unwrap().now.clone()
    }

    pub fn ios(&self) -> u64 {
        self.state.lock().unwrap().ios
    }

    pub fn is_cut(&self) -> bool {
        self.state.lock().unwrap().is_cut
    }

    fn carry_out(&self, request: Request) -> IoOutcome {
        let (offset, bytes) = (request.offset as usize, request.bytes());
        let mut operation = request.operation;
        if !matches!(operation, Operation::Flush) {
            for edge in [offset, bytes] {
                assert_eq!(edge % self.medium.block_bytes as usize, 0, "{operation:?}");
            }
            assert!(offset + bytes <= self.medium.bytes as usize);
        }
        let mut state = self.state.lock().unwrap();
        state.ios += 1;
        if let Operation::Write { from, .. } = &operation
            && !state.is_cut
        {
            let written: Vec<u8> = from.iter().flat_map(|hold| hold.to_vec()).collect();
            state.now[offset..offset + bytes].copy_from_slice(&written);
            state.unstable.push((offset, written));
        }
        if self.medium.cut_at == Some(state.ios) {
            self.cut(&mut state);
        }
        if state.is_cut {
            let error = IoError::from(IoFailure {
                device: self.name().to_owned(),
                operation: operation.name(),
                offset: offset as u64,
                bytes,
                reason: "the power is off".to_owned(),
                fault: Fault::Other,
            });
            return IoOutcome {
                result: Err(error),
                operation,
            };
        }
        match &mut operation {
            Operation::Read(into) => {
                let mut at = offset;
                for hold in into {
                    let length = hold.len();
                    hold.copy_from_slice(&state.now[at..at + length]);
                    at += length;
                }
            }
            Operation::Flush if !self.medium.flush_does_nothing => {
                let State {
                    now,
                    stable,
                    unstable,
                    ..
                } = &mut *state;
                stable.copy_from_slice(now);
                unstable.clear();
            }
            _ => {}
        }
        IoOutcome {
            result: Ok(()),
            operation,
        }
    }

    /// Each write that was not flushed is there, is not, or is there in part.
    fn cut(&self, state: &mut State) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.medium.seed);
        for (offset, written) in std::mem::take(&mut state.unstable) {
            let sectors = written.len() / SECTOR_BYTES;
            let kept = match random.next_u64() % 3 {
                0 => 0,
                1 => sectors,
                _ => random.next_u64() as usize % (sectors + 1),
            } * SECTOR_BYTES;
            state.stable[offset..offset + kept].copy_from_slice(&written[..kept]);
        }
        state.now = state.stable.clone();
        state.is_cut = true;
        for (from, to) in &self.frozen {
            if from.exists() {
                std::fs::copy(from, to).unwrap();
            }
        }
    }
}

/// The device that others hold.
pub struct Handed(pub Arc<TestDevice>);

impl BlockDevice for Handed {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn submit(&self, request: Request) -> Completion {
        if !self.0.medium.ends_later {
            return self.0.submit(request);
        }
        let (completer, completion) = Completion::pending();
        let device = Arc::clone(&self.0);
        std::thread::spawn(move || completer.complete(device.carry_out(request)));
        completion
    }
}

impl BlockDevice for TestDevice {
    fn name(&self) -> &str {
        "test device"
    }

    fn limits(&self) -> Limits {
        Limits {
            capacity_bytes: self.medium.bytes,
            alignment_bytes: self.medium.block_bytes,
            atomic_write_bytes: SECTOR_BYTES as u32,
        }
    }

    fn submit(&self, request: Request) -> Completion {
        Completion::ready(self.carry_out(request))
    }
}
