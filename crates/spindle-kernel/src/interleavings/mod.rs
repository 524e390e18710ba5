//! The kernel's own parts on threads, in thousands of orders of their steps, by the model checker `shuttle`: nothing is
//! copied, LGWR, DBWR, log buffer, cache and locks are the ones that the program has. Time stands still, so a lost
//! wake-up is a deadlock. Each scenario must also fail when a race is planted.

mod blocks;
mod buffers;
mod instance;
mod redo;
mod rows;

use std::sync::Arc;

use spindle_io::env::LocalFuture;
use spindle_io::explore::{ExploredEnv, JoinHandle, SlowDevice, spawn};
use spindle_io::real::{MemoryDevice, block_on};
use spindle_io::{Arena, BlockDevice, Env, Join, Request, Submission};

use crate::block::{self, BlockAddress, RowVersion, heap};
use crate::cache::{ExclusiveBlock, Pin};
use crate::change::blocks::change;
use crate::control_file::UNDO_SEGMENT;
use crate::control_file::{CheckpointRecord, Contents, ControlFile, Extent, Segment};
use crate::error::Result;
use crate::log::buffer::FIRST_POSITION;
use crate::log::files::LOG_FILE_HEADER_BYTES;
use crate::log::marks::Location;
use crate::log::redo::{RecordBuilder, VectorKind};
use crate::settings::KernelSettings;
use crate::sga::Sga;
use crate::storage::{Storage, UNDO_FILE};
use crate::wait_event::ProcessWaits;

const BLOCK_BYTES: usize = 2048;
/// Says slot 0, offset or kind 0, and a version that no transaction has made.
const FIRST_ROW: [u8; 4 + RowVersion::BYTES] = [0; 4 + RowVersion::BYTES];
const DATA_BLOCKS: u32 = 20;
const LOG_BUFFER_BYTES: usize = 16 * BLOCK_BYTES;
const LOG_FILE_BYTES: u64 = 8192 + 6 * LOG_BUFFER_BYTES as u64;

fn settings() -> KernelSettings {
    KernelSettings {
        block_bytes: BLOCK_BYTES,
        buffer_cache_bytes: 16 * BLOCK_BYTES as u64,
        log_buffer_bytes: LOG_BUFFER_BYTES,
        log_write_bytes_max: 8192,
        ..KernelSettings::default()
    }
}

fn memory(name: &str, bytes: u64) -> Arc<dyn BlockDevice> {
    SlowDevice::new(MemoryDevice::new(name, bytes))
}

const START: Location = Location {
    position: FIRST_POSITION,
    file: 0,
    sequence: 1,
    offset: LOG_FILE_HEADER_BYTES,
};

/// The SGA of an empty database, whose processes a scenario starts as it needs them.
fn new_sga(settings: KernelSettings) -> Arc<Sga> {
    new_sga_in(ExploredEnv::new(0), settings)
}

fn new_sga_in(env: Arc<ExploredEnv>, settings: KernelSettings) -> Arc<Sga> {
    let env: Arc<dyn Env> = env;
    let blocks = |count: u32| u64::from(count) * BLOCK_BYTES as u64;
    let storage = Storage {
        control: memory("control", 4096),
        redo: vec![
            memory("redo0", LOG_FILE_BYTES),
            memory("redo1", LOG_FILE_BYTES),
        ],
        double_write: None,
        temp: Vec::new(),
        undo: memory("undo", blocks(8)),
        data: vec![memory("data1", blocks(DATA_BLOCKS))],
    };
    let undo = Segment {
        number: UNDO_SEGMENT,
        name: "undo".to_string(),
        row_bytes: 1,
        loaded_rows: 0,
        columns: None,
        extents: vec![Extent {
            file: UNDO_FILE,
            first_block: 1,
            blocks: 7,
        }],
    };
    let contents = Contents {
        database: 4711,
        block_bytes: BLOCK_BYTES as u32,
        checkpoint: CheckpointRecord {
            position: FIRST_POSITION,
            location: START,
        },
        next_free: vec![8, 1],
        file_blocks: vec![8, DATA_BLOCKS],
        segments: vec![undo],
        indexes: Vec::new(),
        has_maps: false,
    };
    let control = ControlFile::create(Arc::clone(&storage.control), contents);
    let sga = Sga::new(&env, &storage, &settings, control).unwrap();
    sga.log_files.reset(START);
    sga
}

/// A background process on its own thread.
fn process<F: Future<Output = ()> + 'static>(
    sga: &Arc<Sga>,
    run: impl FnOnce(Arc<Sga>) -> F + Send + 'static,
) -> Join {
    let for_process = Arc::clone(sga);
    let start = move || Box::pin(run(for_process)) as LocalFuture;
    sga.env.spawn("process", Box::new(start))
}

/// A session on its own thread; the handle gives what it returns.
fn session<T: Send + 'static, F: Future<Output = T> + 'static>(
    sga: &Arc<Sga>,
    run: impl FnOnce(Arc<Sga>, Arc<ProcessWaits>) -> F + Send + 'static,
) -> JoinHandle<T> {
    let sga = Arc::clone(sga);
    spawn(move || {
        let waits = sga.waits.register();
        block_on(run(sga, waits))
    })
}

/// Stops the processes and waits for them to end.
fn stop(sga: &Sga, processes: impl IntoIterator<Item = Join>) {
    sga.fail("the scenario is over".to_string());
    for process in processes {
        block_on(process.ended()).unwrap();
    }
}

fn data_block(block: u32) -> BlockAddress {
    BlockAddress { file: 1, block }
}

/// The block in the cache, its present bytes not being asked for, formatted as a heap block with a row in slot 0.
async fn formatted(sga: &Sga, waits: &ProcessWaits, block: u32) -> Pin {
    let found = sga.cache.get_new(sga, waits, data_block(block)).await;
    let pin = found.unwrap();
    format(sga, waits, &pin, &[0; 8]).await;
    pin
}

/// Writes a block with the number 5 in its row to the datafile.
fn store(sga: &Sga, number: u32) {
    let arena = Arena::new(BLOCK_BYTES, 1).unwrap();
    let frame = arena.allocate().unwrap();
    let mut bytes = frame.try_write_hold().unwrap();
    heap::format_heap(&mut bytes, data_block(number), 7);
    let row = 5u64.to_le_bytes();
    heap::put_row(&mut bytes, 0, heap::RowKind::Row, RowVersion::LOADED, &row);
    block::seal(&mut bytes);
    let place = u64::from(number) * BLOCK_BYTES as u64;
    let bytes = vec![bytes.share(BLOCK_BYTES)];
    let write = Request::write(place, bytes, true, Submission::Alone);
    let written = block_on(sga.storage.data[0].submit(write));
    written.result.unwrap();
}

/// Formats the block afresh with a row of half a block, for the sake of much redo.
async fn refill(sga: &Sga, waits: &ProcessWaits, pin: &Pin) {
    format(sga, waits, pin, &[1; BLOCK_BYTES / 2]).await;
}

async fn format(sga: &Sga, waits: &ProcessWaits, pin: &Pin, row: &[u8]) {
    let mut builder = RecordBuilder::default();
    let plan = |_: &[ExclusiveBlock<'_>], builder: &mut RecordBuilder| {
        let segment = 7u32.to_le_bytes();
        builder.push(VectorKind::FormatHeap, pin.address(), &[&segment]);
        builder.push(VectorKind::SetRow, pin.address(), &[&FIRST_ROW, row]);
        Ok(())
    };
    change(sga, waits, &mut builder, &[pin], plan)
        .await
        .unwrap();
}

/// Adds one to the row of each block, in one redo record; returns the position after it.
async fn add_one(sga: &Sga, waits: &ProcessWaits, pins: &[&Pin]) -> Result<u64> {
    let mut builder = RecordBuilder::default();
    let plan = |blocks: &[ExclusiveBlock<'_>], builder: &mut RecordBuilder| {
        for (pin, block) in pins.iter().zip(blocks) {
            let next = number_in(block) + 1;
            let payload: [&[u8]; 2] = [&FIRST_ROW, &next.to_le_bytes()];
            builder.push(VectorKind::PatchRow, pin.address(), &payload);
        }
        Ok(())
    };
    let changed = change(sga, waits, &mut builder, pins, plan).await?;
    Ok(changed.1)
}

/// The number in the row of a block.
fn number_in(block: &[u8]) -> u64 {
    let (_, row) = heap::stored(block, 0).expect("the block has a row");
    u64::from_le_bytes(row.try_into().expect("eight bytes"))
}
