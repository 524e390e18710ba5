//! What requests are drawn from: the next request, the seed of its place, and the bytes of a write. The code that keeps
//! requests under way uses it.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is written differs at short intervals from everything else, as storage that keeps equal blocks once does not
/// measure writes.
const STAMP_EVERY_BYTES: usize = 4096;

/// The next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextRequest {
    /// Its first byte.
    pub(crate) offset: u64,
    /// Whether it writes.
    pub(crate) is_write: bool,
}

/// Draws the next request.
pub(crate) type Draw<'a> = Box<dyn FnMut() -> NextRequest + Send + 'a>;

/// Makes bytes that are to be written unlike all others, by a number of the thread and one of its request.
pub(crate) fn stamp(buffer: &mut [u8], numbers: [u64; 2]) {
    for piece in buffer.chunks_mut(STAMP_EVERY_BYTES) {
        for (bytes, number) in piece.chunks_exact_mut(8).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
    }
}

/// A seed that differs from point to point: the same places again would be answered by caches.
pub(crate) fn fresh_seed() -> u64 {
    static POINTS: AtomicU64 = AtomicU64::new(0);
    POINTS.fetch_add(1, Ordering::Relaxed) ^ (u64::from(std::process::id()) << 32)
}
