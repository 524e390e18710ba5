//! Any bytes as a log of dm-log-writes: read, or refused with a reason, and never more made of it than it holds.

use std::io;

use spindle_layout::power_cut::{Content, WriteLog};

/// Reads the log.
pub fn run(bytes: &[u8]) {
    let read = |offset: u64, into: &mut [u8]| {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = from.saturating_add(into.len());
        let found = bytes.get(from..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(found);
        Ok(())
    };
    let log = match WriteLog::read(read) {
        Ok(log) => log,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let held = log.entries.iter().map(|entry| match &entry.content {
        Content::Bytes(bytes) => bytes.len(),
        Content::Zeros(_) => 0,
    });
    assert!(held.sum::<usize>() <= bytes.len(), "more than was there");
    assert!(log.entries.len() <= bytes.len() / 512);
    assert!(log.flushes() <= log.entries.len());
}

/// A log of two writes, a discard, a flush and a mark.
pub fn beginnings() -> Vec<Vec<u8>> {
    const SECTOR: usize = 512;
    let mut log = Vec::new();
    let piece = |numbers: &[u64], rest: &[u8], log: &mut Vec<u8>| {
        let start = log.len();
        numbers
            .iter()
            .for_each(|number| log.extend(number.to_le_bytes()));
        log.extend(rest);
        log.resize(start + SECTOR, 0);
    };
    piece(&[0x006a_7366_7773_6872, 1, 5, SECTOR as u64], &[], &mut log);
    // First sector, sectors, flags, length of a mark.
    piece(&[8, 1, 0, 0], &[], &mut log);
    piece(&[], &[7; SECTOR], &mut log);
    piece(&[9, 1, 2, 0], &[], &mut log);
    piece(&[], &[0; SECTOR], &mut log);
    piece(&[16, 64, 4, 0], &[], &mut log);
    piece(&[0, 0, 1, 0], &[], &mut log);
    piece(&[0, 0, 8, 4], b"here", &mut log);
    vec![log]
}
