//! Files made atomically, as Oracle's disk manager does: space is reserved in memory, and the file is filled through
//! its own device. It exists for others when its creation is in the metadata. Nothing of a creation that is dropped, or
//! cut short by a crash, is left. A file is initialised: what has not been written when it is committed is zero, in all
//! copies. Filled from front to back, each byte is written once.

use std::sync::{Arc, Weak};

use spindle_text::quantity::{size, size_exact};

use crate::arena::ReadHold;
use crate::device::{BlockDevice, Completion, IoError, Limits, Operation, Request, Submission};
use crate::disk_group::DiskGroup;
use crate::disk_group::disk::disk_io;
use crate::disk_group::disk::format::BLOCK_BYTES;
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::extents::map::{ExtentMap, UnitPlace};
use crate::disk_group::extents::space::Spread;
use crate::disk_group::extents::striping::{FileExtents, STRIPE_WIDTH, Striping};
use crate::disk_group::file::group_file::GroupFile;
use crate::disk_group::metadata::state::{Change, FileEntry, Redundancy};
use crate::disk_group::mounted::core::{Book, Core};
use crate::disk_group::planted::{Planted, has_planted};
use crate::sync::atomic::Ordering;
use crate::sync::{Latch, Semaphore};

/// Zeros are written in pieces of this size.
const ZERO_BYTES: usize = 1 << 20;
/// Longest name of a file, bytes.
const FILE_NAME_BYTES_MAX: usize = 255;

/// How a kind of file is laid out, as Oracle's templates say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    /// By extents or by fine stripes.
    pub striping: Striping,
    /// `None`: as the group.
    pub redundancy: Option<Redundancy>,
}

impl Default for Template {
    fn default() -> Template {
        Template {
            striping: Striping::Coarse,
            redundancy: None,
        }
    }
}

/// A file being made. Dropped, it never was.
pub struct FileCreation {
    core: Arc<Core>,
    name: String,
    file: Arc<GroupFile>,
    filling: Arc<Filling>,
}

impl DiskGroup {
    /// Reserves space for a file of `bytes` bytes, whole blocks of 4096. Errors: the name is taken or cannot be one,
    /// there is no room, or the group has too few failure groups for the template.
    pub async fn begin_file(
        &self,
        name: &str,
        bytes: u64,
        template: Template,
    ) -> Result<FileCreation, DiskGroupError> {
        let core = &self.core;
        core.check_mounted()?;
        check_file(core, name, bytes)?;
        let (map, reserved) = reserve(core, name, bytes, template)?;
        let map = Arc::new(map);
        let file = GroupFile::new(core, name, &map);
        *file.reserved.lock() = Some(reserved);
        core.book.lock().creations.push(Arc::downgrade(&map));
        if map.copies() > 1 {
            // All at once, instead of one by one at the first write to each extent.
            let places: Vec<UnitPlace> = map
                .extents()
                .iter()
                .flat_map(|extent| extent.places())
                .collect();
            core.mark(&places).await?;
        }
        let filling = Arc::new_cyclic(|me| Filling {
            me: Weak::clone(me),
            file: Arc::clone(&file),
            mark: Latch::new(Mark::default()),
            zeroing: Semaphore::const_new(1),
        });
        Ok(FileCreation {
            core: Arc::clone(core),
            name: name.to_owned(),
            file,
            filling,
        })
    }
}

fn check_file(core: &Core, name: &str, bytes: u64) -> Result<(), DiskGroupError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    if name.is_empty() || name.len() > FILE_NAME_BYTES_MAX || !name.bytes().all(plain) {
        return Err(core.invalid(format!(
            "`{name}` cannot be the name of a file: 1 to {FILE_NAME_BYTES_MAX} letters, digits, `_`, `-`, `.` or `/` are allowed"
        )));
    }
    if bytes == 0 || !bytes.is_multiple_of(BLOCK_BYTES as u64) || bytes >= 1 << 48 {
        return Err(core.invalid(format!(
            "file {name} cannot have {}: a multiple of {} below 256 TiB is allowed",
            size_exact(bytes),
            size(BLOCK_BYTES as u64)
        )));
    }
    let is_taken = core
        .book
        .lock()
        .state
        .files
        .values()
        .any(|file| file.name == name);
    if is_taken {
        return Err(DiskGroupError::FileExists {
            group: core.name.clone(),
            file: name.to_owned(),
        });
    }
    Ok(())
}

/// Takes space for a new file, in memory only.
fn reserve(
    core: &Core,
    name: &str,
    bytes: u64,
    template: Template,
) -> Result<(ExtentMap, Vec<(UnitPlace, u32)>), DiskGroupError> {
    let mut book = core.book.lock();
    let redundancy = template.redundancy.unwrap_or(book.state.redundancy);
    let copies = redundancy.copies();
    if book.state.redundancy == Redundancy::External && copies > 1 {
        return Err(core.invalid(format!(
            "file {name} cannot have {} redundancy: the group has external redundancy",
            redundancy.as_str()
        )));
    }
    let candidates = book.state.candidates();
    let mut groups: Vec<&str> = candidates.iter().map(|disk| &*disk.failure_group).collect();
    groups.sort_unstable();
    groups.dedup();
    if groups.len() < copies {
        return Err(core.invalid(format!(
            "file {name} needs {copies} failure groups for {} redundancy, and {} are online",
            redundancy.as_str(),
            groups.len()
        )));
    }
    let width = candidates.len().min(STRIPE_WIDTH) as u64;
    let shape = FileExtents::new(bytes, template.striping, width, book.state.au_bytes);
    let mut spread = Spread::new(&candidates, copies, book.state.next_file as usize);
    let (mut places, mut reserved) = (Vec::new(), Vec::new());
    for extent in 0..shape.extents() {
        let aus = shape.aus(extent);
        let Some(placed) = spread.place(&mut book.space, aus) else {
            let free = candidates
                .iter()
                .map(|disk| book.space.disks[&disk.disk].free_aus());
            let free_bytes = free.map(u64::from).sum::<u64>() * book.state.au_bytes;
            for (place, aus) in reserved {
                book.space.free(place, aus);
            }
            return Err(DiskGroupError::NoSpace {
                group: core.name.clone(),
                what: match copies {
                    1 => format!("file {name} of {}", size(bytes)),
                    _ => format!("file {name} of {}, {copies} times", size(bytes)),
                },
                free_bytes,
            });
        };
        reserved.extend(placed.iter().map(|place| (*place, aus)));
        places.push(placed);
    }
    Ok((ExtentMap::new(shape, copies, &places), reserved))
}

impl FileCreation {
    /// The file, to be filled.
    pub fn device(&self) -> Arc<dyn BlockDevice> {
        Arc::clone(&self.filling) as Arc<dyn BlockDevice>
    }

    /// Zeroes what was not written, makes everything durable, and gives the file its name, in that order. Errors: a
    /// write was lost, a file of that name has appeared meanwhile, or the group is dismounted; then there is no such
    /// file.
    pub async fn commit(self) -> Result<(), DiskGroupError> {
        let capacity = self.file.limits().capacity_bytes;
        self.filling.zero_up_to(capacity).await?;
        self.core.flush_disks().await?;
        if self.file.has_lost_writes.load(Ordering::Relaxed) {
            return Err(self.core.invalid(format!(
                "file {} cannot be committed: a write to it failed; make it again",
                self.name
            )));
        }
        let turn = self.core.turn().await?;
        check_file(&self.core, &self.name, capacity)?;
        // The space is the file's from here on.
        drop(self.file.reserved.lock().take());
        let decide = |book: &mut Book| {
            book.creations
                .retain(|map| map.as_ptr() != Arc::as_ptr(&self.file.map));
            Ok(Change::FileCreated {
                file: book.state.next_file,
                entry: FileEntry {
                    name: self.name.clone(),
                    map: Arc::clone(&self.file.map),
                },
            })
        };
        if has_planted(Planted::CommitsInMemory) {
            let mut book = self.core.book.lock();
            let change = decide(&mut book)?;
            return book
                .state
                .apply(&change)
                .ok_or_else(|| self.core.invalid("planted"));
        }
        self.core.change(&turn, decide).await
    }
}

/// How far a new file is initialised.
#[derive(Default)]
struct Mark {
    bytes: u64,
    /// Another process writes zeros behind it.
    is_moving: bool,
}

/// A file that is being filled: what lies before the mark is initialised. A write beyond it has what lies between
/// zeroed first.
struct Filling {
    me: Weak<Filling>,
    file: Arc<GroupFile>,
    mark: Latch<Mark>,
    /// One moves the mark over a gap at a time.
    zeroing: Semaphore,
}

impl Filling {
    /// Moves the mark over a write that begins at or before it.
    fn follows(&self, at: u64, end: u64) -> bool {
        let mut mark = self.mark.lock();
        let follows = !mark.is_moving && at <= mark.bytes;
        if follows {
            mark.bytes = mark.bytes.max(end);
        }
        follows
    }

    /// Initialises everything before `end`.
    async fn zero_up_to(&self, end: u64) -> Result<(), DiskGroupError> {
        let _turn = self.zeroing.acquire().await.expect("never closed");
        let from = {
            let mut mark = self.mark.lock();
            mark.is_moving = true;
            mark.bytes
        };
        let zeroed = self.zero(from, end).await;
        let mut mark = self.mark.lock();
        mark.is_moving = false;
        if zeroed.is_ok() {
            mark.bytes = mark.bytes.max(end);
        }
        Ok(zeroed?)
    }

    async fn zero(&self, from: u64, end: u64) -> Result<(), IoError> {
        if from >= end {
            return Ok(());
        }
        let device: disk_io::Device = Arc::clone(&self.file) as disk_io::Device;
        let zeros: ReadHold = disk_io::filled(&device, &vec![0; ZERO_BYTES])?;
        let mut at = from;
        while at < end {
            let length = (end - at).min(ZERO_BYTES as u64) as usize;
            let request =
                Request::write(at, vec![zeros.part(0, length)], false, Submission::Batched);
            self.file.submit(request).await.result?;
            at += length as u64;
        }
        Ok(())
    }
}

impl BlockDevice for Filling {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn limits(&self) -> Limits {
        self.file.limits()
    }

    fn submit(&self, request: Request) -> Completion {
        let (at, end) = (
            request.offset,
            request.offset.saturating_add(request.bytes() as u64),
        );
        let passes = match request.operation {
            Operation::Write { .. } => end > self.limits().capacity_bytes || self.follows(at, end),
            _ => true,
        };
        if passes {
            return self.file.submit(request);
        }
        let file = Arc::clone(&self.file);
        let filling = self.me.upgrade().expect("whoever calls holds it");
        file.in_steps(async move {
            while !filling.follows(at, end) {
                if let Err(error) = filling.zero_up_to(at).await {
                    return filling
                        .file
                        .refused(at, request.operation, error.to_string());
                }
            }
            filling.file.submit(request).await
        })
    }
}
