//! The golden copy: the loaded database, made once for every shape and kept apart from the files that trials use. The
//! engine loads it into a [`LoadingGolden`]; sealing that reads every block past the page cache, keeps a checksum of
//! each (CRC32C, which any single changed block escapes with a chance of one in 2^32), and refuses data that are not
//! real: never written, or compressible.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lz4_flex::block::{compress_into, get_maximum_output_size};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use spindle_io::Frame;

use crate::block_files::{FileSet, OpenFiles, Run, go_on_unless};
use crate::creation::{Unfinished, create_file};
use crate::error::LayoutError;
use crate::shape::{DatabaseFiles, DatabaseShape, FileKind, FileManager};

/// What must be left of a data or undo file when LZ4 has packed it, in percent of its size. Short rows have counters
/// and empty fields, a fifth of their bytes; what compresses storage in units of 4 KiB or larger gains nothing in most
/// database blocks of 8 KiB before two thirds.
const LEAST_PACKED_PERCENT: u64 = 66;

/// The files of a golden copy while the engine loads the database into them.
pub struct LoadingGolden {
    shape: DatabaseShape,
    files: DatabaseFiles,
    interrupted: Arc<AtomicBool>,
}

/// Where a golden copy's blocks are taken from once it is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoldenSource {
    /// From its files: putting a block back is a read and a write.
    OnDisk,
    /// From memory, of which it takes as much as its files have bytes: putting a block back is a write.
    InMemory,
}

/// A loaded database, sealed: what every image is made from and put back to.
pub struct Golden {
    shape: DatabaseShape,
    files: FileSet,
    /// CRC32C of each block of each file.
    sums: Vec<Vec<u32>>,
    /// Each block of each file, when they are kept in memory.
    blocks: Option<Vec<Vec<Frame>>>,
    interrupted: Arc<AtomicBool>,
}

/// A golden copy while blocks are taken from it.
pub(crate) struct OpenGolden<'a> {
    golden: &'a Golden,
    source: Source<'a>,
}

enum Source<'a> {
    Memory(&'a [Vec<Frame>]),
    Files(OpenFiles<'a>),
}

impl Golden {
    /// Makes the files of `shape` in `directory`, the plain way, full of pseudo-random bytes from `seed`: whatever the
    /// load leaves untouched is written and does not compress. Once `interrupted`, it fails, and so does whatever is
    /// done with the golden copy or with images of it. Errors: [`LayoutError::BadShape`], [`LayoutError::Interrupted`],
    /// a file exists, no space; nothing is left then.
    pub fn create(
        directory: &Path,
        shape: &DatabaseShape,
        seed: u64,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<LoadingGolden, LayoutError> {
        shape.check()?;
        let files = DatabaseFiles::in_directory(shape, directory);
        let mut unfinished = Unfinished::default();
        for ((number, file), (_, place)) in (0..).zip(shape.files()).zip(files.named()) {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(number));
            create_file(FileManager::Plain, place, file.bytes, |_, piece| {
                go_on_unless(interrupted)?;
                random.fill_bytes(piece);
                Ok(())
            })?;
            unfinished.add(place);
        }
        unfinished.keep();
        Ok(LoadingGolden {
            shape: shape.clone(),
            files,
            interrupted: Arc::clone(interrupted),
        })
    }
}

impl LoadingGolden {
    /// The files to load the database into. Their sizes must stay.
    pub fn files(&self) -> &DatabaseFiles {
        &self.files
    }

    /// Reads and judges what was loaded, after the engine has closed the files, and keeps it in memory if asked.
    /// Control and redo files are mostly what they were filled with, or mostly empty in engines that clear them, and
    /// are written before they are read: they must be written, but may compress. Errors: [`LayoutError::Unwritten`],
    /// [`LayoutError::Compressible`], [`LayoutError::Memory`], [`spindle_io::real::FileError::InUse`], or the device's.
    pub fn seal(self, kept: GoldenSource) -> Result<Arc<Golden>, LayoutError> {
        let files = FileSet::new(&self.shape, &self.files, &self.interrupted)?;
        let open = files.open()?;
        open.settle()?;
        check_written(&self.shape, &open)?;
        let blocks = match kept {
            GoldenSource::OnDisk => None,
            GoldenSource::InMemory => Some(files.frames_of_all()?),
        };
        let sums = examine(&self.shape, &files, &open, blocks.as_deref())?;
        open.settle()?;
        drop(open);
        Ok(Arc::new(Golden {
            shape: self.shape,
            files,
            sums,
            blocks,
            interrupted: self.interrupted,
        }))
    }
}

/// Errors: [`LayoutError::Unwritten`] for the first file with holes or unwritten extents.
pub(crate) fn check_written(
    shape: &DatabaseShape,
    open: &OpenFiles<'_>,
) -> Result<(), LayoutError> {
    for (file, extents) in shape.files().iter().zip(open.extents()?) {
        if let Some(extents) = extents
            && extents.unwritten_bytes > 0
        {
            return Err(LayoutError::Unwritten {
                file: file.name(),
                unwritten_bytes: extents.unwritten_bytes,
                file_bytes: file.bytes,
            });
        }
    }
    Ok(())
}

/// What one run of blocks is like.
struct Examined {
    run: Run,
    sums: Vec<u32>,
    packed_bytes: u64,
}

/// Reads everything, into `blocks` if they are given; returns the checksums of all blocks. Errors:
/// [`LayoutError::Compressible`] for a file that holds data, or the device's.
fn examine(
    shape: &DatabaseShape,
    files: &FileSet,
    open: &OpenFiles<'_>,
    blocks: Option<&[Vec<Frame>]>,
) -> Result<Vec<Vec<u32>>, LayoutError> {
    let shape_files = shape.files();
    let is_judged = |file: usize| matches!(shape_files[file].kind, FileKind::Undo | FileKind::Data);
    let examined = files.for_each(&files.all_runs(), |run, frames| {
        let frames = blocks.map_or(frames, |blocks| run.frames(blocks));
        open.read(run, frames)?;
        Ok(Examined {
            run: *run,
            sums: frames.iter().map(sum).collect(),
            packed_bytes: if is_judged(run.file) { pack(frames) } else { 0 },
        })
    })?;
    let mut sums: Vec<Vec<u32>> = shape_files
        .iter()
        .map(|file| vec![0; (file.bytes / shape.block_bytes) as usize])
        .collect();
    let mut packed_bytes = vec![0; shape_files.len()];
    for Examined {
        run,
        sums: of_run,
        packed_bytes: more,
    } in examined
    {
        let first = run.first_block as usize;
        sums[run.file][first..first + run.blocks].copy_from_slice(&of_run);
        packed_bytes[run.file] += more;
    }
    for (index, file) in shape_files
        .iter()
        .enumerate()
        .filter(|(index, _)| is_judged(*index))
    {
        let packed_percent = packed_bytes[index] * 100 / file.bytes;
        if packed_percent < LEAST_PACKED_PERCENT {
            return Err(LayoutError::Compressible {
                file: file.name(),
                packed_percent,
                least_percent: LEAST_PACKED_PERCENT,
            });
        }
    }
    Ok(sums)
}

fn sum(frame: &Frame) -> u32 {
    crc32c::crc32c(&frame.try_read().expect("the frame is the thread's own"))
}

/// Bytes left when LZ4 packs these blocks as one piece, so that repetition from block to block shows as well.
fn pack(frames: &[Frame]) -> u64 {
    let mut bytes = Vec::new();
    for frame in frames {
        bytes.extend_from_slice(&frame.try_read().expect("the frame is the thread's own"));
    }
    let mut packed = vec![0; get_maximum_output_size(bytes.len())];
    compress_into(&bytes, &mut packed).expect("the output has room for the worst case") as u64
}

impl Golden {
    /// The sizes it was made with.
    pub fn shape(&self) -> &DatabaseShape {
        &self.shape
    }

    pub(crate) fn files(&self) -> &FileSet {
        &self.files
    }

    /// See [`Golden::create`].
    pub(crate) fn interrupted(&self) -> &Arc<AtomicBool> {
        &self.interrupted
    }

    /// Makes ready to take blocks from it. Errors: as [`FileSet::open`].
    pub(crate) fn open(&self) -> Result<OpenGolden<'_>, LayoutError> {
        Ok(OpenGolden {
            golden: self,
            source: match &self.blocks {
                Some(blocks) => Source::Memory(blocks),
                None => Source::Files(self.files.open()?),
            },
        })
    }

    /// Which blocks of a run, as read into `frames`, are not the golden ones; counted from the run's first.
    pub(crate) fn differing(&self, run: &Run, frames: &[Frame]) -> Vec<u64> {
        let golden = &self.sums[run.file][run.first_block as usize..];
        (0..)
            .zip(frames.iter().zip(golden))
            .filter(|(_, (frame, golden))| sum(frame) != **golden)
            .map(|(block, _)| block)
            .collect()
    }
}

impl OpenGolden<'_> {
    /// Blocks of the golden copy, read into `frames` unless they are kept in memory, and made sure to be what was
    /// sealed. Errors: [`LayoutError::GoldenDamaged`], or the device's.
    pub(crate) fn blocks<'a>(
        &'a self,
        run: &Run,
        frames: &'a [Frame],
    ) -> Result<&'a [Frame], LayoutError> {
        let frames = match &self.source {
            Source::Memory(blocks) => run.frames(blocks),
            Source::Files(files) => {
                files.read(run, frames)?;
                frames
            }
        };
        let golden = self.golden;
        match golden.differing(run, frames).first() {
            None => Ok(frames),
            Some(block) => Err(LayoutError::GoldenDamaged {
                file: golden.files.name(run.file).to_owned(),
                block: run.first_block + block,
            }),
        }
    }

    /// See [`OpenFiles::settle_cached`].
    pub(crate) fn settle_cached(&self) -> Result<u64, LayoutError> {
        match &self.source {
            Source::Memory(_) => Ok(0),
            Source::Files(files) => files.settle_cached(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_changed_in_memory_is_not_handed_out() {
        let place = tempfile::tempdir().unwrap();
        let shape = DatabaseShape {
            block_bytes: 8192,
            control_bytes: 1 << 20,
            redo_bytes: vec![1 << 20; 2],
            undo_bytes: 1 << 20,
            data_bytes: vec![1 << 20],
            double_write_bytes: 0,
            temp_bytes: Vec::new(),
        };
        let loading = Golden::create(place.path(), &shape, 1, &Arc::default()).unwrap();
        let golden = loading.seal(GoldenSource::InMemory).unwrap();
        let run = Run {
            file: 4,
            first_block: 6,
            blocks: 3,
        };
        let open = golden.open().unwrap();
        assert_eq!(open.blocks(&run, &[]).unwrap().len(), 3);
        golden.blocks.as_ref().unwrap()[4][7]
            .try_write()
            .expect("nobody has it")[5000] ^= 1;
        match open.blocks(&run, &[]) {
            Err(LayoutError::GoldenDamaged { file, block }) => {
                assert_eq!((file.as_str(), block), ("data1", 7));
            }
            other => panic!("{:?}", other.map(<[Frame]>::len)),
        }
    }
}
