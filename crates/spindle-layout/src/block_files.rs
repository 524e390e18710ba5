//! The files of a database as numbered blocks, opened for the time of one operation and worked through in runs of up to
//! 1 MiB by a few threads. Files are read and written directly wherever that really bypasses the page cache, else
//! through it, with the cache dropped before anything is read to be judged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use spindle_io::real::facts::{self, DirectIo, DirectProbe, Extents};
use spindle_io::real::{Caching, FileError, Queue, block_on};
use spindle_io::{Arena, BlockDevice, Frame, IoError, Request, Submission};

use crate::changed::{ChangedBlocks, merge};
use crate::error::LayoutError;
use crate::place::{Opening, Place};
use crate::shape::{DatabaseFiles, DatabaseShape};

/// Longest run: large enough for a device's full sequential speed, small enough to share work between threads.
const RUN_BYTES: u64 = 1 << 20;

/// Threads that each have one I/O under way. They mostly wait: a few saturate a device when runs are long, but single
/// changed blocks scattered over a file take as many as a device queues. So there are more of them the shorter the
/// runs.
const THREADS_MIN: usize = 16;
const THREADS_MAX: usize = 64;
/// What they have under way together, unless there are only [`THREADS_MIN`].
const UNDER_WAY_BYTES: u64 = 4 << 20;

/// One file and how to open it.
struct BlockFileEntry {
    name: String,
    place: Place,
    bytes: u64,
    caching: Caching,
}

/// The files of a database, closed.
pub(crate) struct FileSet {
    entries: Vec<BlockFileEntry>,
    block_bytes: u64,
    /// Ends all work.
    interrupted: Arc<AtomicBool>,
}

/// Consecutive blocks of one file, at most [`RUN_BYTES`] of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Which file of the set.
    pub(crate) file: usize,
    /// Its first block.
    pub(crate) first_block: u64,
    /// How many blocks, at least one.
    pub(crate) blocks: usize,
}

impl Run {
    /// Some of its blocks, counted from its first.
    pub(crate) fn part(&self, blocks: std::ops::Range<u64>) -> Run {
        Run {
            file: self.file,
            first_block: self.first_block + blocks.start,
            blocks: (blocks.end - blocks.start) as usize,
        }
    }

    /// Its frames among those of all blocks of all files.
    pub(crate) fn frames<'a>(&self, files: &'a [Vec<Frame>]) -> &'a [Frame] {
        &files[self.file][self.first_block as usize..][..self.blocks]
    }
}

impl FileSet {
    /// Existing files of a shape. Finds out for each whether direct I/O is direct there. Errors: the system's.
    /// `interrupted` ends all work on them.
    pub(crate) fn new(
        shape: &DatabaseShape,
        files: &DatabaseFiles,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<FileSet, LayoutError> {
        let entries = shape.files().into_iter().zip(files.named());
        let entries = entries.map(|(file, (name, place))| {
            Ok(BlockFileEntry {
                name,
                caching: match place {
                    Place::File(path) => best_caching(path, shape.block_bytes)?,
                    Place::Region { .. } | Place::GroupFile { .. } => Caching::Direct,
                },
                place: place.clone(),
                bytes: file.bytes,
            })
        });
        Ok(FileSet {
            entries: entries.collect::<Result<_, FileError>>()?,
            block_bytes: shape.block_bytes,
            interrupted: Arc::clone(interrupted),
        })
    }

    /// Opens and locks all files. Errors: [`FileError::InUse`] when someone has one open (after a moment's waiting),
    /// [`LayoutError::SizeChanged`], or the system's.
    pub(crate) fn open(&self) -> Result<OpenFiles<'_>, LayoutError> {
        let mut opening = Opening::new();
        let open = |entry: &BlockFileEntry| {
            let file = opening.open(&entry.place, entry.caching, Queue::sync(), None);
            let device = block_on(file)?.device;
            let found_bytes = device.limits().capacity_bytes;
            if found_bytes != entry.bytes {
                return Err(LayoutError::SizeChanged {
                    file: entry.name.clone(),
                    bytes: entry.bytes,
                    found_bytes,
                });
            }
            Ok(device)
        };
        let devices = self.entries.iter().map(open).collect::<Result<_, _>>()?;
        // A user without write permission on a file is not told what the page cache holds of it.
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true);
        let mut facts = BTreeMap::new();
        for entry in &self.entries {
            if entry.paths().any(|path| !facts.contains_key(path)) {
                facts.extend(entry.place.open_all(options)?);
            }
        }
        Ok(OpenFiles {
            devices,
            facts,
            set: self,
            opening,
        })
    }

    /// Name of a file.
    pub(crate) fn name(&self, file: usize) -> &str {
        &self.entries[file].name
    }

    /// Size of a block in bytes.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Whether every file is read and written past the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.entries
            .iter()
            .all(|entry| entry.caching == Caching::Direct)
    }

    /// Every block of every file.
    pub(crate) fn all_runs(&self) -> Vec<Run> {
        (0..self.entries.len())
            .flat_map(|file| self.cut(file, 0..self.blocks(file)))
            .collect()
    }

    /// The blocks of a list. Errors: [`LayoutError::NoSuchBlock`].
    pub(crate) fn runs_of(&self, changed: &ChangedBlocks) -> Result<Vec<Run>, LayoutError> {
        let no_such = |what| Err(LayoutError::NoSuchBlock { what });
        let mut runs = Vec::new();
        for (name, ranges) in changed {
            let Some(file) = self.entries.iter().position(|entry| entry.name == *name) else {
                return no_such(format!("the file {name:?}"));
            };
            let mut ranges = ranges.clone();
            ranges.sort_unstable_by_key(|range| range.start);
            for range in merge(ranges) {
                if range.end > self.blocks(file) {
                    return no_such(format!("block {} of {name}", range.end - 1));
                }
                runs.extend(self.cut(file, range));
            }
        }
        Ok(runs)
    }

    fn blocks(&self, file: usize) -> u64 {
        self.entries[file].bytes / self.block_bytes
    }

    fn cut(&self, file: usize, blocks: std::ops::Range<u64>) -> impl Iterator<Item = Run> + use<> {
        let step = RUN_BYTES / self.block_bytes;
        blocks
            .clone()
            .step_by(step as usize)
            .map(move |first_block| Run {
                file,
                first_block,
                blocks: (blocks.end - first_block).min(step) as usize,
            })
    }

    /// Does `work` for each run, in several threads; each has as many block-sized frames as the run has blocks. Returns
    /// what it returned, in no order. The first error ends it.
    pub(crate) fn for_each<T: Send>(
        &self,
        runs: &[Run],
        work: impl Fn(&Run, &[Frame]) -> Result<T, LayoutError> + Sync,
    ) -> Result<Vec<T>, LayoutError> {
        let longest = runs.iter().map(|run| run.blocks).max().unwrap_or(0);
        let longest_bytes = longest as u64 * self.block_bytes;
        let threads = (UNDER_WAY_BYTES / longest_bytes.max(1)) as usize;
        let threads = threads.clamp(THREADS_MIN, THREADS_MAX);
        let frames = || self.frames(longest);
        in_threads(threads, runs, frames, |frames, run| {
            go_on_unless(&self.interrupted)?;
            work(run, &frames[..run.blocks])
        })
    }

    /// How many blocks the longest run has.
    pub(crate) fn run_blocks(&self) -> usize {
        (RUN_BYTES / self.block_bytes) as usize
    }

    /// Block-sized frames, one after the other in memory.
    pub(crate) fn frames(&self, blocks: usize) -> Result<Vec<Frame>, LayoutError> {
        let arena = Arena::new(self.block_bytes as usize, blocks)
            .map_err(|source| LayoutError::Memory { source })?;
        Ok((0..blocks)
            .map(|_| arena.allocate().expect("a new arena has its frames"))
            .collect())
    }

    /// A frame for each block of each file. Errors: there is no memory for them.
    pub(crate) fn frames_of_all(&self) -> Result<Vec<Vec<Frame>>, LayoutError> {
        let files = 0..self.entries.len();
        let frames = files.map(|file| self.frames(self.blocks(file) as usize));
        frames.collect()
    }
}

/// Errors: [`LayoutError::Interrupted`].
pub(crate) fn go_on_unless(interrupted: &AtomicBool) -> Result<(), LayoutError> {
    match interrupted.load(Ordering::Relaxed) {
        true => Err(LayoutError::Interrupted),
        false => Ok(()),
    }
}

/// Does `work` for each item, in at most this many threads, each of which begins with what `prepare` returns. Returns
/// what it returned, in no order. The first error ends it.
fn in_threads<I: Sync, P, T: Send>(
    threads: usize,
    items: &[I],
    prepare: impl Fn() -> Result<P, LayoutError> + Sync,
    work: impl Fn(&P, &I) -> Result<T, LayoutError> + Sync,
) -> Result<Vec<T>, LayoutError> {
    let next = AtomicUsize::new(0);
    let one_thread = || -> Result<Vec<T>, LayoutError> {
        let prepared = prepare()?;
        let mut results = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = work(&prepared, item).inspect_err(|_| {
                next.store(items.len(), Ordering::Relaxed);
            })?;
            results.push(result);
        }
        Ok(results)
    };
    thread::scope(|scope| {
        let threads = 0..threads.min(items.len());
        let threads: Vec<_> = threads.map(|_| scope.spawn(one_thread)).collect();
        let mut results = Vec::with_capacity(items.len());
        for thread in threads {
            match thread.join() {
                Ok(some) => results.extend(some?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(results)
    })
}

/// Direct where that is direct and blocks suit the device's sectors, else buffered.
fn best_caching(path: &Path, block_bytes: u64) -> Result<Caching, FileError> {
    if facts::direct_probe(path)? != DirectProbe::Direct {
        return Ok(Caching::Buffered);
    }
    Ok(match facts::direct_io(path)? {
        DirectIo::Aligned {
            offset_alignment_bytes,
            memory_alignment_bytes,
        } if u64::from(offset_alignment_bytes.max(memory_alignment_bytes)) > block_bytes => {
            Caching::Buffered
        }
        DirectIo::NotSupported { .. } => Caching::Buffered,
        _ => Caching::Direct,
    })
}

/// The files of a database, open and locked.
pub(crate) struct OpenFiles<'a> {
    /// Each file of the set.
    devices: Vec<Arc<dyn BlockDevice>>,
    /// Files and devices that hold them, each once, as ordinary files to ask facts of.
    facts: BTreeMap<PathBuf, File>,
    set: &'a FileSet,
    opening: Opening,
}

impl OpenFiles<'_> {
    /// Reads a run, one block into each frame. Errors: the device's.
    pub(crate) fn read(&self, run: &Run, frames: &[Frame]) -> Result<(), IoError> {
        let holds = frames
            .iter()
            .map(|frame| {
                frame
                    .try_write_hold()
                    .expect("the frame is the thread's own")
            })
            .collect();
        self.submit(
            run,
            Request::read(self.offset(run), holds, Submission::Alone),
        )
    }

    /// Writes a run, one block from each frame. Errors: the device's.
    pub(crate) fn write(&self, run: &Run, frames: &[Frame]) -> Result<(), IoError> {
        let holds = frames
            .iter()
            .map(|frame| {
                frame
                    .try_read_hold()
                    .expect("the frame is the thread's own")
            })
            .collect();
        let durable = false; // `settle` makes all of them durable at once
        self.submit(
            run,
            Request::write(self.offset(run), holds, durable, Submission::Alone),
        )
    }

    fn offset(&self, run: &Run) -> u64 {
        run.first_block * self.set.block_bytes
    }

    fn submit(&self, run: &Run, request: Request) -> Result<(), IoError> {
        // A file of a disk group may take several I/Os for one.
        let ended = self.devices[run.file].submit(request).already();
        ended.unwrap_or_else(block_on).result
    }

    /// Makes everything written durable and drops the files from the page cache, so that what is read next comes from
    /// the device. Returns the pages that stayed. Errors: the system's.
    pub(crate) fn settle(&self) -> Result<u64, LayoutError> {
        self.settle_these(self.facts.keys().map(PathBuf::as_path))
    }

    /// The same for the files of these runs only; the others have not been written to.
    pub(crate) fn settle_files_of(&self, runs: &[Run]) -> Result<(), LayoutError> {
        let files: BTreeSet<usize> = runs.iter().map(|run| run.file).collect();
        let entries = files.into_iter().map(|file| &self.set.entries[file]);
        let paths: BTreeSet<&Path> = entries.flat_map(BlockFileEntry::paths).collect();
        self.settle_these(paths)?;
        Ok(())
    }

    /// The same for files that the page cache holds something of: what is not in it needs no flush, which takes the
    /// device a moment for each file. Returns the pages that stayed. Errors: the system's.
    pub(crate) fn settle_cached(&self) -> Result<u64, LayoutError> {
        let cached = self.facts.iter().filter(|(_, file)| {
            // Or not known.
            !matches!(facts::resident_pages(file), Ok(0))
        });
        self.settle_these(cached.map(|(path, _)| path.as_path()))
    }

    /// Beside each other: devices make one flush of those that are asked of them together.
    fn settle_these<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a Path>,
    ) -> Result<u64, LayoutError> {
        let paths: Vec<&Path> = paths.into_iter().collect();
        let settle = |path: &&Path| {
            let dropped = facts::drop_cache(&self.facts[*path]);
            dropped.map_err(|error| LayoutError::system("flush", path, error))
        };
        let stayed = in_threads(THREADS_MIN, &paths, || Ok(()), |(), path| settle(path))?;
        Ok(stayed.into_iter().sum())
    }

    /// How each file lies on its file system; `None` for those that lie on none. Errors: the system's.
    pub(crate) fn extents(&self) -> Result<Vec<Option<Extents>>, LayoutError> {
        let extents = |entry: &BlockFileEntry| match &entry.place {
            Place::Region { .. } | Place::GroupFile { .. } => Ok(None),
            Place::File(path) => facts::extents(&self.facts[path])
                .map(Some)
                .map_err(|error| LayoutError::system("find the extents of", path, error)),
        };
        self.set.entries.iter().map(extents).collect()
    }
}

impl Drop for OpenFiles<'_> {
    fn drop(&mut self) {
        self.devices.clear();
        // What a dismount leaves undone the next mount does.
        let _ = block_on(std::mem::take(&mut self.opening).close());
    }
}

impl BlockFileEntry {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.place.paths().into_iter()
    }
}
