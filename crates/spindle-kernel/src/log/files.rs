//! The online log files: a ring of preallocated files, where the next batch goes in it, and how much of it recovery
//! would have to read. When the ring runs short of files that a checkpoint has freed, changes are held back.

use std::sync::Arc;

use spindle_io::sync::Latch;
use spindle_io::sync::atomic::{AtomicU64, Ordering};
use spindle_io::{Arena, BlockDevice, Request, Submission};
use spindle_text::quantity::{size, size_free, size_needed};

use crate::error::{KernelError, Result};
use crate::fixed_sga::FixedSga;
use crate::settings::{KernelSettings, PlantedFault};

use super::buffer::PADDING_MAX;
use super::marks::{Location, RingMarks};

/// Bytes before the first batch of a log file.
pub(crate) const LOG_FILE_HEADER_BYTES: u64 = 4096;
const MAGIC: u32 = 0x5350_4C46;
/// The ring of log files.
pub(crate) struct LogFiles {
    devices: Vec<Arc<dyn BlockDevice>>,
    redo_block_bytes: u64,
    /// Where the next batch goes, as of the last batch that is on stable storage.
    location: Latch<Location>,
    marks: Latch<RingMarks>,
    /// Recovery should not have to read more than this, bytes.
    lag_bytes: u64,
    /// Position from which recovery would not have to read more than that.
    target: AtomicU64,
    /// Position from which recovery would not have to read more than half of that.
    images_from: AtomicU64,
    /// Position after the last record of each file's present contents.
    ends: Latch<Vec<u64>>,
    /// Where recovery would start to read: what lies before it is no longer needed.
    needed_from: AtomicU64,
    /// Looking at the room and saying what was seen is one step: LGWR and CKPT both do it, and the later look counts.
    pub(crate) room_turn: Latch<()>,
}

/// The header of a log file.
pub(crate) fn seal_file_header(bytes: &mut [u8], database: u64, sequence: u32, position: u64) {
    bytes.fill(0);
    bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..16].copy_from_slice(&database.to_le_bytes());
    bytes[16..20].copy_from_slice(&sequence.to_le_bytes());
    bytes[24..32].copy_from_slice(&position.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// Sequence number and first position, when the header is one of this database.
pub(crate) fn read_file_header(bytes: &[u8], database: u64) -> Option<(u32, u64)> {
    let whole = crc32c::crc32c(&bytes[8..]).to_le_bytes() == bytes[4..8];
    let ours = bytes[0..4] == MAGIC.to_le_bytes() && bytes[8..16] == database.to_le_bytes();
    let sequence = u32::from_le_bytes(bytes[16..20].try_into().expect("four bytes"));
    let position = u64::from_le_bytes(bytes[24..32].try_into().expect("eight bytes"));
    (whole && ours).then_some((sequence, position))
}

impl LogFiles {
    /// The ring, before recovery has said where it stands.
    pub(crate) fn new(
        devices: Vec<Arc<dyn BlockDevice>>,
        settings: &KernelSettings,
    ) -> Result<LogFiles> {
        let log_buffer_bytes = settings.log_buffer_bytes;
        let refuse = |device: &Arc<dyn BlockDevice>, reason: String| {
            Err(KernelError::Storage {
                device: device.name().to_string(),
                reason,
            })
        };
        let mut redo_block_bytes = 512;
        for device in &devices {
            let limits = device.limits();
            redo_block_bytes = redo_block_bytes.max(u64::from(limits.alignment_bytes));
            let needed = LOG_FILE_HEADER_BYTES + PADDING_MAX as u64 + 6 * log_buffer_bytes as u64;
            if limits.capacity_bytes < needed {
                return refuse(
                    device,
                    format!(
                        "a log file of {} is too small: at least {}",
                        size_free(limits.capacity_bytes),
                        size_needed(needed)
                    ),
                );
            }
            if redo_block_bytes > PADDING_MAX as u64 {
                return refuse(
                    device,
                    format!(
                        "its sectors of {} are larger than 4 KiB",
                        size(redo_block_bytes)
                    ),
                );
            }
        }
        if devices.len() < 2 {
            let device = devices.first().map_or("log files", |device| device.name());
            return Err(KernelError::Storage {
                device: device.to_string(),
                reason: "at least two log files are needed".to_string(),
            });
        }
        let ends = Latch::new(vec![0; devices.len()]);
        let location = Location {
            position: 0,
            file: 0,
            sequence: 0,
            offset: LOG_FILE_HEADER_BYTES,
        };
        let lag_bytes = settings
            .checkpoint_lag_bytes
            .unwrap_or(u64::MAX)
            .min(lag_bytes_max(&devices, log_buffer_bytes));
        let interval_ns = settings.instance.checkpoint_interval_ns;
        let marks = RingMarks::new(location, lag_bytes, interval_ns);
        Ok(LogFiles {
            devices,
            redo_block_bytes,
            location: Latch::new(location),
            marks: Latch::new(marks),
            lag_bytes,
            target: AtomicU64::new(0),
            images_from: AtomicU64::new(0),
            ends,
            needed_from: AtomicU64::new(0),
            room_turn: Latch::default(),
        })
    }

    /// The files.
    pub(crate) fn devices(&self) -> &[Arc<dyn BlockDevice>] {
        &self.devices
    }

    /// Redo blocks are this long; batches begin at multiples of it.
    pub(crate) fn redo_block_bytes(&self) -> u64 {
        self.redo_block_bytes
    }

    /// Where the next batch goes, as of what is on stable storage.
    pub(crate) fn location(&self) -> Location {
        *self.location.lock()
    }

    /// Sets where the ring stands after recovery; everything before `location` may be overwritten.
    pub(crate) fn reset(&self, location: Location) {
        *self.location.lock() = location;
        self.marks.lock().reset(location);
        self.ends.lock().fill(location.position);
        self.needed_from.store(location.position, Ordering::Release);
    }

    /// Where to begin to read in order to come to `position`.
    pub(crate) fn place_of(&self, position: u64) -> Location {
        self.marks.lock().place_of(position)
    }

    /// A position before which everything was changed at `at_ns` or earlier.
    pub(crate) fn changed_by(&self, at_ns: u64) -> u64 {
        self.marks.lock().changed_by(at_ns)
    }

    /// An image before this position is better replaced by a new one, so that its block need not be written again soon.
    pub(crate) fn images_from(&self) -> u64 {
        self.images_from.load(Ordering::Relaxed)
    }

    /// Where recovery would begin to read.
    pub(crate) fn needed_from(&self) -> u64 {
        self.needed_from.load(Ordering::Acquire)
    }

    /// Moves along what DBWR is to have written, so that recovery never has to read more than the lag; `None` when that
    /// has not changed. For LGWR, which alone moves it.
    pub(crate) fn move_target(&self) -> Option<u64> {
        let (target, images_from) = {
            let marks = self.marks.lock();
            (
                marks.lagging(self.lag_bytes),
                marks.lagging(self.lag_bytes / 2),
            )
        };
        self.images_from.store(images_from, Ordering::Relaxed);
        (self.target.swap(target, Ordering::Relaxed) != target).then_some(target)
    }

    /// The checkpoint has moved, and recovery would read from `location` on. (The checkpoint's own position may lie in
    /// a later file, but the way there leads through this one.)
    pub(crate) fn checkpointed(&self, location: Location) {
        self.marks.lock().forget_before(location.position);
        self.needed_from
            .fetch_max(location.position, Ordering::AcqRel);
    }

    /// Makes the next file of the ring the current one. Its old contents must not be needed any more.
    pub(crate) async fn open_next(
        &self,
        fixed: &FixedSga,
        database: u64,
        position: u64,
    ) -> Result<()> {
        let now = self.location();
        let file = (now.file + 1) % self.devices.len();
        let sequence = now.sequence + 1;
        let arena =
            Arena::new(LOG_FILE_HEADER_BYTES as usize, 1).map_err(|error| KernelError::Memory {
                what: "a log file header",
                reason: error.to_string(),
            })?;
        let frame = arena.allocate().expect("the arena has a frame");
        let mut hold = frame.try_write_hold().expect("the frame is ours");
        seal_file_header(&mut hold, database, sequence, position);
        let request = Request::write(
            0,
            vec![hold.share(LOG_FILE_HEADER_BYTES as usize)],
            !fixed
                .settings
                .has_planted(PlantedFault::LogHeaderNotDurable),
            Submission::Alone,
        );
        self.devices[file].submit(request).await.result?;
        self.ends.lock()[now.file] = position;
        let location = Location {
            position,
            file,
            sequence,
            offset: LOG_FILE_HEADER_BYTES,
        };
        self.advance(location, 0, fixed.env.now());
        Ok(())
    }

    /// The next batch goes to `location`, `bytes` further on; everything before it was on stable storage at `at_ns`.
    pub(crate) fn advance(&self, location: Location, bytes: u64, at_ns: u64) {
        *self.location.lock() = location;
        self.marks.lock().advance(location, bytes, at_ns);
    }

    /// Position after the last record that the next file holds.
    pub(crate) fn end_of_next(&self) -> u64 {
        let next = (self.location().file + 1) % self.devices.len();
        self.ends.lock()[next]
    }

    /// True when recovery needs nothing of the next file.
    pub(crate) fn next_is_free(&self) -> bool {
        self.end_of_next() <= self.needed_from()
    }

    /// Bytes left in the current file. The last redo block's worth stays free, so that reading may round up.
    pub(crate) fn left(&self) -> u64 {
        let location = self.location();
        let capacity = self.devices[location.file].limits().capacity_bytes - PADDING_MAX as u64;
        capacity.saturating_sub(location.offset)
    }

    /// True while everything that may be in the log buffer can be written without a further checkpoint: the next file
    /// is free, or the current one takes the batch under way, the one being filled, one filled while this answer
    /// travels, and a last one's rounding up.
    pub(crate) fn has_room(&self, frame_bytes: usize) -> bool {
        self.next_is_free() || self.left() >= 4 * frame_bytes as u64
    }

    /// Bytes that this many take in the file: whole redo blocks.
    pub(crate) fn padded(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.redo_block_bytes)
    }
}

/// 90 % of what the smallest log file takes before changes are held back for the next to become free. Oracle's bound is
/// 90 % of the smallest log file (Database Reference, V$INSTANCE_RECOVERY: the size of the smallest redo log is one of
/// the mechanisms that limit recovery); here its four log buffers of reserve do not count.
fn lag_bytes_max(devices: &[Arc<dyn BlockDevice>], log_buffer_bytes: usize) -> u64 {
    let sizes = devices.iter().map(|device| device.limits().capacity_bytes);
    let smallest = sizes.min().unwrap_or(0);
    let reserve = LOG_FILE_HEADER_BYTES + PADDING_MAX as u64 + 4 * log_buffer_bytes as u64;
    smallest.saturating_sub(reserve) / 10 * 9
}
