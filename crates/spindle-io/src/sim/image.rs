//! The bytes of a simulated disk, in chunks that copies share until one of them writes: keeping thousands of disks as
//! they were at some moment costs little more than what changed between them.

use std::sync::Arc;

const CHUNK_BYTES: usize = 4096;

/// Bytes of a disk at one moment.
#[derive(Clone)]
pub struct DiskImage {
    chunks: Vec<Arc<[u8; CHUNK_BYTES]>>,
    bytes: usize,
}

impl DiskImage {
    /// `bytes` bytes of zeros.
    pub fn zeroed(bytes: usize) -> DiskImage {
        let zeros = Arc::new([0; CHUNK_BYTES]);
        DiskImage {
            chunks: vec![zeros; bytes.div_ceil(CHUNK_BYTES)],
            bytes,
        }
    }

    /// Size in bytes.
    pub fn capacity_bytes(&self) -> usize {
        self.bytes
    }

    /// Reads from byte `offset` on until `into` is full.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        assert!(
            offset + into.len() <= self.bytes,
            "a read beyond the end of the image"
        );
        let mut done = 0;
        while done < into.len() {
            let (chunk, start) = ((offset + done) / CHUNK_BYTES, (offset + done) % CHUNK_BYTES);
            let length = (CHUNK_BYTES - start).min(into.len() - done);
            into[done..done + length].copy_from_slice(&self.chunks[chunk][start..start + length]);
            done += length;
        }
    }

    /// Writes `from` at byte `offset`.
    pub fn write(&mut self, offset: usize, from: &[u8]) {
        assert!(
            offset + from.len() <= self.bytes,
            "a write beyond the end of the image"
        );
        let mut done = 0;
        while done < from.len() {
            let (chunk, start) = ((offset + done) / CHUNK_BYTES, (offset + done) % CHUNK_BYTES);
            let length = (CHUNK_BYTES - start).min(from.len() - done);
            Arc::make_mut(&mut self.chunks[chunk])[start..start + length]
                .copy_from_slice(&from[done..done + length]);
            done += length;
        }
    }

    /// Changes the bits of `mask` in byte `at`.
    pub fn flip(&mut self, at: usize, mask: u8) {
        let mut byte = [0];
        self.read(at, &mut byte);
        self.write(at, &[byte[0] ^ mask]);
    }
}

impl PartialEq for DiskImage {
    fn eq(&self, other: &DiskImage) -> bool {
        // `Arc::ptr_eq` first: images of one history share most of their chunks.
        let same = |(mine, theirs): (&Arc<[u8; CHUNK_BYTES]>, &Arc<[u8; CHUNK_BYTES]>)| {
            Arc::ptr_eq(mine, theirs) || mine == theirs
        };
        self.bytes == other.bytes && self.chunks.iter().zip(&other.chunks).all(same)
    }
}

impl Eq for DiskImage {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_keeps_what_it_was() {
        let mut image = DiskImage::zeroed(3 * CHUNK_BYTES);
        image.write(CHUNK_BYTES - 2, &[1, 2, 3, 4]);
        let before = image.clone();
        image.write(CHUNK_BYTES, &[9]);
        let mut bytes = [0; 4];
        before.read(CHUNK_BYTES - 2, &mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4]);
        image.read(CHUNK_BYTES - 2, &mut bytes);
        assert_eq!(bytes, [1, 2, 9, 4]);
    }
}
