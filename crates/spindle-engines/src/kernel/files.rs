//! How large the files of a workload's database are: what is loaded, what clients add, undo, redo.

use spindle_kernel::{
    CONTROL_FILE_BYTES, datafile_blocks, growth_blocks, row_bytes_max, table_blocks,
};
use spindle_layout::DatabaseShape;
use spindle_workload::{IndexSpec, Inserts, RowLength, TableSize, TableSpec, Workload};

/// Undo at least, bytes: small enough to stay out of the way.
const UNDO_BYTES_MIN: u64 = 16 << 20;
/// Undo blocks for each client: one it writes to, and as many again that wait to be used again.
const UNDO_BLOCKS_PER_CLIENT: u64 = 8;
/// Tempfiles are whole multiples of this.
const TEMP_UNIT_BYTES: u64 = 1 << 20;
/// What a row takes in its block beyond its own bytes, at most.
const ROW_OVERHEAD_BYTES: u64 = 24;
/// What an entry of an index takes beyond its key, at most.
const ENTRY_OVERHEAD_BYTES: u64 = 20;
/// What an index's block keeps for itself beyond two keys, at most.
const NODE_OVERHEAD_BYTES: u64 = 96;
/// What an undo record takes beyond a key, at most.
const UNDO_RECORD_BYTES: u64 = 64;

/// The files, but for double write areas, that a workload's database takes for `clients` clients, with `datafiles`
/// datafiles and `log_files` log files of `log_file_bytes`.
pub fn files_of(
    workload: &dyn Workload,
    clients: usize,
    block_bytes: usize,
    datafiles: usize,
    log_files: usize,
    log_file_bytes: u64,
) -> DatabaseShape {
    let tables = workload.tables();
    let inserts = workload.inserts();
    let mut blocks = 0;
    let mut segments = tables.len() as u64;
    for (number, spec) in tables.iter().enumerate() {
        let (row_bytes, loaded_rows) = row_shape(spec, block_bytes);
        let loaded = table_blocks(block_bytes, row_bytes, loaded_rows);
        blocks += loaded;
        let added = inserts.iter().find(|of| of.table == number);
        blocks += added.map_or(0, |of| {
            let of_rows = added_blocks(of, clients, block_bytes);
            of_rows + growth_blocks(block_bytes, loaded + of_rows)
        });
        let rows = loaded_rows + added.map_or(0, |of| added_rows(of, clients));
        for index in workload.indexes(number) {
            // One that only loads fills is filled in order.
            let clients = added.map_or(1, |_| clients);
            let of_index = index_blocks(index, rows, clients, block_bytes);
            blocks += of_index.next_multiple_of(table_blocks(block_bytes, 1, 1));
            blocks += growth_blocks(block_bytes, of_index);
            segments += 1;
        }
    }
    let undo_bytes = inserts.iter().map(|of| {
        let indexes = workload.indexes(of.table);
        undo_bytes(of, indexes, clients, block_bytes)
    });
    // Extents are dealt out file by file: one may get an extent of every segment more than another.
    let extent_blocks = table_blocks(block_bytes, 1, 1);
    let extents_per_file = (blocks / extent_blocks).div_ceil(datafiles as u64) + segments;
    let data_blocks = datafile_blocks(block_bytes, extents_per_file * extent_blocks);
    let data_bytes = data_blocks * block_bytes as u64;
    DatabaseShape {
        block_bytes: block_bytes as u64,
        control_bytes: CONTROL_FILE_BYTES,
        redo_bytes: vec![log_file_bytes / block_bytes as u64 * block_bytes as u64; log_files],
        undo_bytes: UNDO_BYTES_MIN
            .max(clients as u64 * UNDO_BLOCKS_PER_CLIENT * block_bytes as u64)
            .max(undo_bytes.max().unwrap_or(0)),
        data_bytes: vec![data_bytes; datafiles],
        double_write_bytes: 0,
        temp_bytes: temp_bytes(workload.temp_bytes(), datafiles),
    }
}

/// Tempfiles, as many as datafiles, so that temporary segments lie over as many places; none where no query needs them.
fn temp_bytes(bytes: u64, datafiles: usize) -> Vec<u64> {
    match bytes {
        0 => Vec::new(),
        bytes => {
            let each = bytes.div_ceil(datafiles as u64);
            vec![each.next_multiple_of(TEMP_UNIT_BYTES); datafiles]
        }
    }
}

/// Rows that clients add to a table: each client's last transaction may be one more than its share.
fn added_rows(of: &Inserts, clients: usize) -> u64 {
    of.rows + of.rows_per_transaction * clients as u64
}

/// Blocks for them, whole extents. Inserts leave a tenth of each block free.
fn added_blocks(of: &Inserts, clients: usize, block_bytes: usize) -> u64 {
    let filled_bytes = block_bytes as u64 * 8 / 10;
    let rows_per_block = filled_bytes / (of.row_bytes as u64 + ROW_OVERHEAD_BYTES);
    // Each client adds to its own block.
    let blocks = added_rows(of, clients).div_ceil(rows_per_block.max(1)) + clients as u64;
    blocks.next_multiple_of(table_blocks(block_bytes, 1, 1))
}

/// Blocks of an index of this many rows. Splits fill blocks where keys only grow; clients that add side by side may
/// leave them half empty.
fn index_blocks(index: &IndexSpec, rows: u64, clients: usize, block_bytes: usize) -> u64 {
    let room_bytes = block_bytes as u64 - NODE_OVERHEAD_BYTES - 2 * index.key_bytes();
    let filled_bytes = match clients {
        1 => room_bytes * 8 / 10,
        _ => room_bytes / 2,
    };
    let entries = filled_bytes / (index.key_bytes() + ENTRY_OVERHEAD_BYTES);
    let mut level = rows.div_ceil(entries.max(2));
    // The header, and every level up to the root.
    let mut blocks = 1 + level;
    while level > 1 {
        level = level.div_ceil(entries.max(2));
        blocks += level;
    }
    blocks
}

/// Undo of the transactions that all clients have under way, and as much again that waits to be used again.
fn undo_bytes(of: &Inserts, indexes: &[IndexSpec], clients: usize, block_bytes: usize) -> u64 {
    let keys_bytes: u64 = indexes.iter().map(IndexSpec::key_bytes).sum();
    let records = 1 + indexes.len() as u64;
    let row_bytes = keys_bytes + records * UNDO_RECORD_BYTES;
    let bytes = 2 * clients as u64 * of.rows_per_transaction * row_bytes;
    bytes.next_multiple_of(block_bytes as u64)
}

/// Row length and number of rows of a table.
pub(super) fn row_shape(spec: &TableSpec, block_bytes: usize) -> (usize, u64) {
    let row_bytes = match spec.row {
        RowLength::Bytes(bytes) => bytes,
        RowLength::WholeBlock => row_bytes_max(block_bytes),
    };
    let rows = match spec.size {
        TableSize::Rows(rows) => rows,
        TableSize::Bytes(bytes) => {
            let per_block =
                spindle_kernel::block::heap::slots_per_block(block_bytes, row_bytes) as u64;
            (bytes / block_bytes as u64).max(1) * per_block
        }
    };
    (row_bytes, rows)
}
