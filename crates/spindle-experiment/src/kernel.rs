//! What `[database]` says of the embedded database: blocks, files, redo and its instance.

use super::access_path::{AccessPath, Caching, Method, read_access_path};
use super::memory::memory_of;
use super::of_workload::OfWorkload;
use super::reader::Reader;
use spindle_engines::sections::{StartedSettings, note_redo_io};
use spindle_engines::spec::KernelSpec;
use spindle_text::quantity::{size, size_free, size_text};
use spindle_text::section::Section;

/// Fewest blocks that a buffer cache or a datafile can work with.
const BLOCKS_MIN: u64 = 64;
/// Fewest of a log file: six log buffers of 16 blocks each at least, and its header.
const LOG_BLOCKS_MIN: u64 = 97;

/// Reads the keys of the embedded database. `memory_bytes` is the budget that a layout has from the experiment.
pub(super) fn read(reader: &mut Reader<'_>, memory_bytes: Option<u64>) -> KernelSpec {
    let said: StartedSettings = Section::read(reader);
    KernelSpec {
        files: Section::read(reader),
        memory: memory_of(&said, memory_bytes),
        instance: Section::read(reader),
        redo_path: said.redo_path,
        redo_io: read_redo_io(reader),
    }
}

/// Reads `redo_io`; `None` when it is left out. A key left out of it has a fixed default, so that a path given once for
/// the whole experiment is the same path in every case.
fn read_redo_io(reader: &mut Reader<'_>) -> Option<AccessPath> {
    note_redo_io(reader);
    let is_given = reader.has("redo_io");
    let default = AccessPath::new(Caching::Direct, Method::Sync);
    let path = read_access_path(&mut reader.section("redo_io"), default);
    is_given.then_some(path)
}

/// Refuses a cache and files that hold too few blocks.
pub(super) fn check_blocks(
    reader: &Reader<'_>,
    spec: &KernelSpec,
    size_bytes: u64,
    of_workload: &OfWorkload,
) {
    let block = size(spec.files.block_size_bytes);
    let least_bytes = BLOCKS_MIN * spec.files.block_size_bytes;
    for (key, what, bytes, blocks_min) in [
        (
            "buffer_cache",
            "a buffer cache",
            spec.memory.buffer_cache_bytes,
            BLOCKS_MIN,
        ),
        (
            "log_file_size",
            "a log file",
            spec.files.log_file_size_bytes,
            LOG_BLOCKS_MIN,
        ),
    ] {
        if bytes < blocks_min * spec.files.block_size_bytes {
            let least = size_text(blocks_min * spec.files.block_size_bytes);
            let size = size_free(bytes);
            reader.refuse(
                &[key, "block_size"],
                format!("{what} of {size} holds fewer than {blocks_min} blocks of {block}"),
                format!("{key} must be at least {least} with this block_size"),
                format!("make {key} larger or block_size smaller"),
            );
        }
    }
    if size_bytes / u64::from(spec.files.datafiles) < least_bytes {
        let datafiles_max = (size_bytes / least_bytes).clamp(1, 1000);
        let refused = reader.conflict(
            &["datafiles", "size", "block_size"],
            format!(
                "{} datafiles for {} hold fewer than {BLOCKS_MIN} blocks of {block} each",
                spec.files.datafiles,
                size(size_bytes)
            ),
            format!("at most {datafiles_max} datafiles with this size and block_size"),
            match of_workload.data {
                None => "set fewer datafiles or a larger size",
                Some(_) => "set fewer datafiles, or more rows in [workload]",
            },
        );
        reader.note(refused.given(of_workload.keys()));
    }
}
