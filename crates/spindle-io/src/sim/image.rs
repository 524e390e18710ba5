//! The bytes of a simulated disk, in chunks that copies share until one of them writes: keeping thousands of disks as
//! they were at some moment costs little more than what changed between them.

use std::sync::Arc;

const CHUNK_BYTES: usize = 4096;

/// Bytes of a disk at one moment.
#[derive(Clone)]
pub struct DiskImage {
    chunks: Vec<Arc<[u8; CHUNK_BYTES]>>,
    /// What a chunk of zeros shares.
    zeros: Arc<[u8; CHUNK_BYTES]>,
    bytes: usize,
}

impl DiskImage {
    /// `bytes` bytes of zeros.
    pub fn zeroed(bytes: usize) -> DiskImage {
        let zeros = Arc::new([0; CHUNK_BYTES]);
        DiskImage {
            chunks: vec![Arc::clone(&zeros); bytes.div_ceil(CHUNK_BYTES)],
            zeros,
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

    /// Writes `bytes` zeros at byte `offset`; whole chunks of them take no memory.
    pub fn zero(&mut self, offset: usize, bytes: usize) {
        let end = offset + bytes;
        let mut at = offset;
        while at < end {
            let next = (at / CHUNK_BYTES + 1) * CHUNK_BYTES;
            if at.is_multiple_of(CHUNK_BYTES) && next <= end {
                self.chunks[at / CHUNK_BYTES] = Arc::clone(&self.zeros);
            } else {
                self.write(at, &[0; CHUNK_BYTES][..next.min(end) - at]);
            }
            at = next;
        }
    }

    /// The parts that are not all zeros: where each begins, and its bytes.
    pub fn parts(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let used = |chunk: &Arc<[u8; CHUNK_BYTES]>| {
            !Arc::ptr_eq(chunk, &self.zeros) && **chunk != [0; CHUNK_BYTES]
        };
        let chunks = self.chunks.iter().enumerate();
        chunks
            .filter(move |(_, chunk)| used(chunk))
            .map(|(number, chunk)| {
                let start = number * CHUNK_BYTES;
                (start, &chunk[..CHUNK_BYTES.min(self.bytes - start)])
            })
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
    fn zeros_are_written_and_left_out_of_the_parts() {
        let mut image = DiskImage::zeroed(3 * CHUNK_BYTES + 100);
        image.write(0, &[7; 3 * CHUNK_BYTES + 100]);
        image.zero(CHUNK_BYTES - 1, CHUNK_BYTES + 1);
        let parts: Vec<_> = image.parts().map(|(at, part)| (at, part.len())).collect();
        let rest = [
            (0, CHUNK_BYTES),
            (2 * CHUNK_BYTES, CHUNK_BYTES),
            (3 * CHUNK_BYTES, 100),
        ];
        assert_eq!(parts, rest);
        let (_, first) = image.parts().next().unwrap();
        assert_eq!(first[CHUNK_BYTES - 2..], [7, 0]);
        image.zero(0, CHUNK_BYTES);
        assert_eq!(image.parts().count(), 2);
    }

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
