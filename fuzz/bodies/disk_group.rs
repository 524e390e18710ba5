//! Any bytes in the metadata of a disk group: headers, change maps, snapshots and logs of two disks are altered here
//! and there and, so that it is not the checksums that refuse them all, sealed again. The group is mounted, read and
//! checked, or refused with a reason; nothing is written past the end of a disk.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use spindle_io::disk_group::{Disk, DiskGroup, DiskGroupOptions, Redundancy, Striping, Template};
use spindle_io::real::{RealEnv, block_on};
use spindle_io::{
    Arena, BlockDevice, Completion, Env, Fault, IoError, IoFailure, IoOutcome, Limits, Operation,
    Request, Submission,
};

const BLOCK: usize = 4096;
const AU: usize = 1 << 20;
const DISKS: usize = 2;
const DISK_BYTES: usize = 10 * AU;
/// Blocks of a disk that are altered: header and change maps, the header's copy, the begin of both slots.
const ALTERED: [(usize, usize); 4] = [(0, 3), (2 * AU / BLOCK - 1, 1), (512, 6), (768, 6)];

/// Pieces of five bytes: disk and block, place in it (two bytes), a value, and how it is put there. An odd first byte:
/// blocks that were altered are not sealed again.
pub fn run(bytes: &[u8]) {
    let disks: Vec<Arc<Altered>> = group().iter().map(Altered::of).collect();
    let (seals, pieces) = match bytes.split_first() {
        Some((first, pieces)) => (first % 2 == 0, pieces),
        None => (true, &[][..]),
    };
    for piece in pieces.chunks_exact(5) {
        let disk = &disks[usize::from(piece[0]) / 128];
        let blocks: Vec<usize> = ALTERED
            .into_iter()
            .flat_map(|(first, count)| first..first + count)
            .collect();
        let block = blocks[usize::from(piece[0]) % blocks.len()];
        let at = usize::from(u16::from_le_bytes([piece[1], piece[2]])) % BLOCK;
        disk.alter(block, |bytes| match piece[4] % 3 {
            0 => bytes[at] = piece[3],
            1 => bytes[at] = bytes[at].wrapping_add(piece[3]),
            _ => bytes[at] ^= piece[3],
        });
    }
    if seals {
        disks.iter().for_each(|disk| disk.seal());
    }
    let devices: Vec<Arc<dyn BlockDevice>> = disks.iter().map(|disk| disk.clone() as _).collect();
    let is_as_made = pieces.len() < 5;
    block_on(judge(&devices, is_as_made));
}

async fn judge(devices: &[Arc<dyn BlockDevice>], is_as_made: bool) {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let group = match DiskGroup::mount(&env, devices).await {
        Ok(group) => group,
        Err(error) => {
            assert!(!is_as_made, "{error}");
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let names: Vec<String> = group
        .describe()
        .files
        .into_iter()
        .map(|file| file.name)
        .collect();
    for name in &names {
        let file = group.open_file(name).expect("it is described");
        let bytes = file.limits().capacity_bytes;
        for offset in [0, bytes / 2 / BLOCK as u64 * BLOCK as u64] {
            let arena = Arena::new(BLOCK, 1).expect("memory for a block");
            let frame = arena.allocate().expect("the arena has a frame");
            let into = vec![frame.try_write_hold().expect("nobody else has it")];
            let read = Request::read(offset, into, Submission::Alone);
            // It may be refused: that is for who mounted the group to hear.
            let outcome = file.submit(read).await;
            assert!(!is_as_made || outcome.result.is_ok());
        }
    }
    let checked = group.check().await;
    if is_as_made {
        assert_eq!(names, ["system", "users"]);
        assert_eq!(checked.expect("the disks can be read").findings, []);
    }
    let _ = group.dismount().await;
}

/// Nothing altered, and a byte of each block altered, sealed again and not.
pub fn beginnings() -> Vec<Vec<u8>> {
    let mut beginnings = vec![vec![0]];
    for first in [0, 1] {
        for block in 0..16 {
            beginnings.push(vec![first, block, 72, 0, 1, 1]);
            beginnings.push(vec![first, 128 + block, 48, 0, 1, 1, block, 16, 0, 0xff, 0]);
        }
    }
    beginnings
}

/// The disks of a group that was made once.
fn group() -> &'static [Arc<[u8]>] {
    static GROUP: OnceLock<Vec<Arc<[u8]>>> = OnceLock::new();
    GROUP.get_or_init(|| {
        let blank: Arc<[u8]> = vec![0; DISK_BYTES].into();
        let disks: Vec<Arc<Altered>> = (0..DISKS).map(|_| Altered::of(&blank)).collect();
        let members = disks.iter().enumerate().map(|(number, disk)| Disk {
            name: format!("d{number}"),
            failure_group: None,
            device: disk.clone(),
        });
        let options = DiskGroupOptions {
            allocation_unit_bytes: AU as u64,
            redundancy: Redundancy::Normal,
            identity: Some([7; 16]),
        };
        let members = members.collect();
        block_on(async {
            let env: Arc<dyn Env> = RealEnv::new(1);
            let group = DiskGroup::create(&env, "data", members, options).await;
            let group = group.expect("a group can be made");
            for (name, striping) in [("system", Striping::Fine), ("users", Striping::Coarse)] {
                let template = Template {
                    striping,
                    redundancy: None,
                };
                let creation = group.begin_file(name, AU as u64, template).await;
                let committed = creation.expect("it has room").commit().await;
                committed.expect("no disk fails");
            }
            group.dismount().await.expect("no disk fails");
        });
        disks.iter().map(|disk| disk.content()).collect()
    })
}

/// A disk: what it held, and the blocks that differ.
struct Altered {
    base: Arc<[u8]>,
    blocks: Mutex<BTreeMap<usize, Vec<u8>>>,
}

impl Altered {
    fn of(base: &Arc<[u8]>) -> Arc<Altered> {
        Arc::new(Altered {
            base: Arc::clone(base),
            blocks: Mutex::default(),
        })
    }

    fn alter(&self, block: usize, change: impl FnOnce(&mut [u8])) {
        let mut blocks = self.blocks.lock().expect("nobody panics with it");
        let from = || self.base[block * BLOCK..(block + 1) * BLOCK].to_vec();
        change(blocks.entry(block).or_insert_with(from));
    }

    fn content(&self) -> Arc<[u8]> {
        let mut bytes = self.base.to_vec();
        for (block, held) in &*self.blocks.lock().expect("nobody panics with it") {
            bytes[block * BLOCK..(block + 1) * BLOCK].copy_from_slice(held);
        }
        bytes.into()
    }

    /// Enters the checksum of what was altered: CRC32C at byte 8 of a block, or of a record of several whose length is
    /// at byte 48 of its first.
    fn seal(&self) {
        let altered: Vec<usize> = {
            let blocks = self.blocks.lock().expect("nobody panics with it");
            blocks.keys().copied().collect()
        };
        let content = self.content();
        for block in altered {
            let at = block * BLOCK;
            let length = match &content[at..at + 8] {
                b"SPNDLMET" => {
                    let field = content[at + 48..at + 56].try_into();
                    let payload = u64::from_le_bytes(field.expect("eight bytes"));
                    let whole = (payload.saturating_add(64)).div_ceil(BLOCK as u64);
                    (whole as usize).min(8) * BLOCK
                }
                _ => BLOCK,
            };
            let mut record = content[at..at + length].to_vec();
            record[8..12].fill(0);
            let sum = crc32c::crc32c(&record).to_le_bytes();
            self.alter(block, |bytes| bytes[8..12].copy_from_slice(&sum));
        }
    }

    /// Gives `visit` the memory of each part of a range: which of the range, and what holds it.
    fn visit(&self, offset: usize, length: usize, mut visit: impl FnMut(usize, &mut [u8])) {
        let mut done = 0;
        while done < length {
            let (block, from) = ((offset + done) / BLOCK, (offset + done) % BLOCK);
            let step = (BLOCK - from).min(length - done);
            self.alter(block, |bytes| visit(done, &mut bytes[from..from + step]));
            done += step;
        }
    }
}

impl BlockDevice for Altered {
    fn name(&self) -> &str {
        "altered"
    }

    fn limits(&self) -> Limits {
        Limits {
            capacity_bytes: self.base.len() as u64,
            alignment_bytes: 512,
            atomic_write_bytes: 512,
        }
    }

    fn submit(&self, request: Request) -> Completion {
        let bytes = request.bytes();
        let end = request.offset.checked_add(bytes as u64);
        if end.is_none_or(|end| end > self.base.len() as u64) {
            let is_read = matches!(request.operation, Operation::Read(_));
            assert!(is_read, "a write past the end of a disk");
            let error = IoError::from(IoFailure {
                device: self.name().to_owned(),
                operation: "read",
                offset: request.offset,
                bytes,
                reason: "past the end".to_owned(),
                fault: Fault::Other,
            });
            return Completion::ready(IoOutcome {
                result: Err(error),
                operation: request.operation,
            });
        }
        let (mut offset, mut operation) = (request.offset as usize, request.operation);
        match &mut operation {
            Operation::Read(into) => {
                for hold in into {
                    let length = hold.len();
                    self.visit(offset, length, |at, held| {
                        hold[at..at + held.len()].copy_from_slice(held);
                    });
                    offset += length;
                }
            }
            Operation::Write { from, .. } => {
                for hold in from {
                    self.visit(offset, hold.len(), |at, held| {
                        held.copy_from_slice(&hold[at..at + held.len()]);
                    });
                    offset += hold.len();
                }
            }
            Operation::Flush => {}
        }
        Completion::ready(IoOutcome {
            result: Ok(()),
            operation,
        })
    }
}
