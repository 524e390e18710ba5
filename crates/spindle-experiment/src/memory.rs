//! What `[database]` says of the memory of a database that Spindle starts, whichever it is.

use spindle_engines::sections::StartedSettings;
use spindle_engines::spec::DatabaseMemory;
use spindle_text::quantity::size_exact;

use super::doubts::anywhere;
use super::of_workload::OfWorkload;
use super::reader::Reader;

/// The memory of a database that Spindle starts. What is left out is the experiment's, `memory_bytes`, or twice the
/// buffer cache.
pub(super) fn memory_of(said: &StartedSettings, memory_bytes: Option<u64>) -> DatabaseMemory {
    let buffer_cache_bytes = said.buffer_cache_bytes;
    let memory_bytes = said.memory_bytes.or(memory_bytes);
    DatabaseMemory {
        buffer_cache_bytes,
        memory_bytes: memory_bytes.unwrap_or(2 * buffer_cache_bytes),
    }
}

/// Checks what no single setting of the memory can know.
pub(super) fn check_memory(
    reader: &Reader<'_>,
    memory: DatabaseMemory,
    size_bytes: u64,
    of_workload: &OfWorkload,
) {
    let [data, cache, budget] =
        [size_bytes, memory.buffer_cache_bytes, memory.memory_bytes].map(size_exact);
    let is_loaded = of_workload.data.is_none_or(|data| data.is_loaded);
    if memory.buffer_cache_bytes >= size_bytes && is_loaded {
        let (label, help) = match of_workload.data {
            None => (
                "buffer_cache must be smaller than size",
                "nothing would be read from storage: make size several times the buffer cache",
            ),
            Some(_) => (
                "the workload says how much data there is, and it must be more than buffer_cache",
                "nothing would be read from storage: set a larger scale or more warehouses in [workload], or a smaller \
                 buffer_cache",
            ),
        };
        let title = format!("a buffer cache of {cache} holds all the data, {data}");
        let refused = reader.conflict(&["buffer_cache", "size"], title, label, help);
        // The memory of an existing server is its own.
        let given = of_workload.keys().chain([anywhere("url")]);
        reader.note(refused.given(given));
    }
    if memory.memory_bytes < memory.buffer_cache_bytes {
        reader.refuse(
            &["memory", "buffer_cache"],
            format!("memory is {budget}, less than the buffer cache of {cache}"),
            "memory is the budget for buffer cache and page cache together",
            "set memory to at least buffer_cache; left out, it is twice the buffer_cache of [database]",
        );
    }
}
