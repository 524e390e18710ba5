//! The image: the files that trials use, made from the golden copy by a file manager and put back to it, in place,
//! before every trial. In place means that blocks are overwritten where they lie: no truncating, no renaming, no new
//! extents, so that no trial pays for allocation. Either the blocks that the last trial says it wrote are copied back,
//! or (after a trial that died) every block is compared and those that differ are. Reading everything again afterwards
//! shows any block that the list missed. When a person asks for it, the files share their blocks with originals beside
//! them and are put back by sharing them again, or the volume beneath them is put back; they are verified in the same
//! way.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use spindle_io::real::facts::Extents;
use spindle_text::words;

use crate::block_files::{FileSet, OpenFiles, Run, go_on_unless};
use crate::changed::{ChangedBlocks, ranges};
use crate::creation::{Unfinished, create_file};
use crate::error::LayoutError;
use crate::golden::{Golden, OpenGolden, check_written};
use crate::reflink::{make_clones, put_back_clones};
use crate::shape::{DatabaseFiles, FileManager};

/// What makes one image differ from another of the same golden copy. Layouts that agree in it share an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSpec {
    /// Where its files are to be.
    pub files: DatabaseFiles,
    /// What makes those that lie on a file system.
    pub manager: FileManager,
    /// Files that they share their blocks with, if they do: made first, on the same file systems.
    pub originals: Option<DatabaseFiles>,
}

words! {
    /// How much of the database is read back to prove that it was restored before a trial.
    pub enum Verify {
        /// Every block of every file.
        Full = "full",
        /// The blocks that the trial before had changed; one that was written but not listed goes unseen.
        Changed = "changed",
    }
}

/// How blocks were put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestoreMethod {
    /// Copied, found by the list of what was written.
    Listed,
    /// Copied, found by comparing every block with its checksum.
    Compared,
    /// Not copied: all files share the blocks of their originals again.
    Cloned,
    /// Not copied: the volume beneath them was put back to a snapshot.
    RolledBack,
    /// Files of a server were compared, and what differed was written back in place.
    Files,
}

impl RestoreMethod {
    /// Whether blocks were written one by one.
    fn is_copying(self) -> bool {
        matches!(self, RestoreMethod::Listed | RestoreMethod::Compared)
    }
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreReport {
    /// How blocks were put back.
    pub method: RestoreMethod,
    /// Whether all image files were read and written past the page cache; if not, the page cache was dropped before
    /// they were read, as far as their file system lets it go (`resident_pages`).
    pub direct: bool,
    /// Blocks put back, as far as they are known: 0 after a trial that died and was not put back by copying.
    pub changed_blocks: u64,
    /// Bytes copied.
    pub copied_bytes: u64,
    /// What was verified in the end; `Full` after comparing, too.
    pub verified: Verify,
    /// Pages of image and golden files still in the page cache afterwards.
    pub resident_pages: u64,
    /// Image files that no longer lie as they did when they were made (file systems that copy on write do that): trials
    /// on them are not on equal terms.
    pub moved_files: Vec<String>,
    /// Time it took, microseconds.
    pub duration_us: u64,
    /// How much of it went into reading again what had been written, microseconds.
    pub verify_us: u64,
}

/// The files that trials use.
pub struct Image {
    golden: Arc<Golden>,
    set: FileSet,
    files: DatabaseFiles,
    originals: Option<DatabaseFiles>,
    /// How the files lay when they were made; regions lie where they lie.
    extents: Vec<Option<Extents>>,
}

/// Blocks that are not the golden ones.
#[derive(Debug, PartialEq, Eq)]
struct Differing {
    file: String,
    block: u64,
    blocks: u64,
}

impl Differing {
    /// What is wrong when blocks differ after they were put back in this way.
    fn after(self, method: RestoreMethod) -> LayoutError {
        let Differing {
            file,
            block,
            blocks,
        } = self;
        match method {
            RestoreMethod::Listed | RestoreMethod::Compared => LayoutError::RestoreMissed {
                file,
                block,
                blocks,
            },
            RestoreMethod::Cloned | RestoreMethod::RolledBack | RestoreMethod::Files => {
                LayoutError::NotPutBack {
                    file,
                    block,
                    blocks,
                }
            }
        }
    }
}

/// What has been put back and is yet to be verified.
struct Unverified {
    method: RestoreMethod,
    /// Blocks that were not as they should be; `None` when that may be any.
    touched: Option<Vec<Run>>,
    started: Instant,
}

/// Makes files with the golden copy's contents.
fn copy_golden(
    golden: &Golden,
    files: &DatabaseFiles,
    manager: FileManager,
    unfinished: &mut Unfinished,
) -> Result<(), LayoutError> {
    let source = golden.open()?;
    let frames = golden.files().frames(golden.files().run_blocks())?;
    let block_bytes = golden.shape().block_bytes;
    let (shape_files, places) = (golden.shape().files(), files.named());
    for (index, (file, (_, place))) in shape_files.iter().zip(places).enumerate() {
        create_file(manager, place, file.bytes, |offset, piece| {
            go_on_unless(golden.interrupted())?;
            let run = Run {
                file: index,
                first_block: offset / block_bytes,
                blocks: piece.len() / block_bytes as usize,
            };
            let frames = source.blocks(&run, &frames[..run.blocks])?;
            for (block, frame) in piece.chunks_exact_mut(block_bytes as usize).zip(frames) {
                block.copy_from_slice(&frame.try_read().expect("nobody else has the frame"));
            }
            Ok(())
        })?;
        unfinished.add(place);
    }
    source.settle_cached()?;
    Ok(())
}

impl Image {
    /// Makes the files of an image with the golden copy's contents, reads them back past the page cache, and remembers
    /// how they lie. Errors: a file exists, no space, direct I/O refused (to the ODM manager),
    /// [`LayoutError::GoldenDamaged`], [`LayoutError::CopyDiffers`], [`LayoutError::Unwritten`], and with originals
    /// those of a file system that cannot share blocks ([`crate::reflink_refusal`]); the files made so far are removed
    /// then.
    pub fn provision(golden: &Arc<Golden>, spec: ImageSpec) -> Result<Image, LayoutError> {
        let mut unfinished = Unfinished::default();
        let ImageSpec {
            files,
            manager,
            originals,
        } = spec;
        match &originals {
            None => copy_golden(golden, &files, manager, &mut unfinished)?,
            Some(originals) => {
                copy_golden(golden, originals, manager, &mut unfinished)?;
                make_clones(originals, &files, &mut unfinished)?;
            }
        }
        let mut image = Image {
            golden: Arc::clone(golden),
            set: FileSet::new(golden.shape(), &files, golden.interrupted())?,
            files,
            originals,
            extents: Vec::new(),
        };
        image.extents = image.examine()?;
        unfinished.keep();
        Ok(image)
    }

    /// Makes sure that a new image is whole and written; returns how it lies.
    fn examine(&self) -> Result<Vec<Option<Extents>>, LayoutError> {
        let open = self.set.open()?;
        open.settle()?;
        if let Some(Differing {
            file,
            block,
            blocks,
        }) = self.differing(&open, &self.set.all_runs())?
        {
            return Err(LayoutError::CopyDiffers {
                file,
                block,
                blocks,
            });
        }
        open.settle()?;
        check_written(self.golden.shape(), &open)?;
        open.extents()
    }

    /// Its files.
    pub fn files(&self) -> &DatabaseFiles {
        &self.files
    }

    /// Puts the image back to the golden copy and leaves nothing of either in the page cache. With a list, its blocks
    /// are copied, then verified as asked. Without one, every block is read and compared, and those that differ are
    /// copied and read again, which verifies all of them whatever is asked. Files that share blocks with originals
    /// share all of them again instead, and everything is verified unless only the list is asked for. Files are locked
    /// meanwhile. Errors: [`LayoutError::RestoreMissed`] when blocks differ in the end (listed ones have been copied
    /// back nevertheless), or [`LayoutError::NotPutBack`] when they share blocks, [`LayoutError::NoSuchBlock`] before
    /// anything is done, [`LayoutError::SizeChanged`], [`LayoutError::GoldenDamaged`],
    /// [`spindle_io::real::FileError::InUse`] when a process still has a file open after a second's waiting, or the
    /// device's.
    pub fn restore(
        &self,
        changed: Option<&ChangedBlocks>,
        verify: Verify,
    ) -> Result<RestoreReport, LayoutError> {
        let started = Instant::now();
        let listed = changed.map(|list| self.set.runs_of(list)).transpose()?;
        let image = self.set.open()?;
        let golden = self.golden.open()?;
        image.settle_cached()?;
        let (method, touched) = match (&self.originals, listed) {
            (Some(originals), listed) => {
                put_back_clones(originals, &self.files)?;
                (RestoreMethod::Cloned, listed)
            }
            (None, Some(listed)) => {
                self.copy(&golden, &image, &listed)?;
                (RestoreMethod::Listed, Some(listed))
            }
            (None, None) => (RestoreMethod::Compared, Some(self.repair(&golden, &image)?)),
        };
        let restored = Unverified {
            method,
            touched,
            started,
        };
        self.verify(restored, verify, &image, &golden)
    }

    /// Makes sure, as [`Self::restore`] does, that an image is the golden copy after the volume beneath it was put
    /// back, which began at `started`. Errors: [`LayoutError::NotPutBack`], or as there.
    pub fn rolled_back(
        &self,
        changed: Option<&ChangedBlocks>,
        verify: Verify,
        started: Instant,
    ) -> Result<RestoreReport, LayoutError> {
        let restored = Unverified {
            method: RestoreMethod::RolledBack,
            touched: changed.map(|list| self.set.runs_of(list)).transpose()?,
            started,
        };
        let (image, golden) = (self.set.open()?, self.golden.open()?);
        self.verify(restored, verify, &image, &golden)
    }

    fn verify(
        &self,
        restored: Unverified,
        verify: Verify,
        image: &OpenFiles<'_>,
        golden: &OpenGolden<'_>,
    ) -> Result<RestoreReport, LayoutError> {
        let Unverified {
            method,
            touched,
            started,
        } = restored;
        match &touched {
            // The other files have not been written to.
            Some(runs) if method.is_copying() => image.settle_files_of(runs)?,
            _ => {
                image.settle()?;
            }
        }
        let verified = match (method, &touched) {
            // What was compared and found right has been read once already.
            (RestoreMethod::Compared, _) | (_, None) => Verify::Full,
            (_, Some(_)) => verify,
        };
        let began_to_verify = Instant::now();
        let missed = match (method, &touched, verify) {
            (RestoreMethod::Compared, Some(runs), _) | (_, Some(runs), Verify::Changed) => {
                self.differing(image, runs)?
            }
            _ => self.differing(image, &self.set.all_runs())?,
        };
        let verify_us = us_since(began_to_verify);
        if let Some(differing) = missed {
            return Err(differing.after(method));
        }
        let touched = touched.unwrap_or_default();
        let changed_blocks = touched.iter().map(|run| run.blocks as u64).sum();
        Ok(RestoreReport {
            method,
            direct: self.set.is_direct(),
            changed_blocks,
            copied_bytes: u64::from(method.is_copying()) * changed_blocks * self.set.block_bytes(),
            verified,
            moved_files: self.moved(image)?,
            resident_pages: image.settle_cached()? + golden.settle_cached()?,
            duration_us: us_since(started),
            verify_us,
        })
    }

    fn copy(
        &self,
        golden: &OpenGolden<'_>,
        image: &OpenFiles<'_>,
        runs: &[Run],
    ) -> Result<(), LayoutError> {
        self.set.for_each(runs, |run, frames| {
            Ok(image.write(run, golden.blocks(run, frames)?)?)
        })?;
        Ok(())
    }

    /// Compares every block and copies those that differ; returns them.
    fn repair(
        &self,
        golden: &OpenGolden<'_>,
        image: &OpenFiles<'_>,
    ) -> Result<Vec<Run>, LayoutError> {
        let repaired = self.set.for_each(&self.set.all_runs(), |run, frames| {
            image.read(run, frames)?;
            let mut parts = Vec::new();
            for blocks in ranges(self.golden.differing(run, frames)) {
                let part = run.part(blocks);
                let blocks = golden.blocks(&part, &frames[..part.blocks])?;
                image.write(&part, blocks)?;
                parts.push(part);
            }
            Ok(parts)
        })?;
        Ok(repaired.into_iter().flatten().collect())
    }

    /// Reads runs and compares them with the golden checksums.
    fn differing(
        &self,
        image: &OpenFiles<'_>,
        runs: &[Run],
    ) -> Result<Option<Differing>, LayoutError> {
        let found = self.set.for_each(runs, |run, frames| {
            image.read(run, frames)?;
            let blocks = self.golden.differing(run, frames);
            let first = blocks
                .first()
                .map(|block| (run.file, run.first_block + block));
            Ok((first, blocks.len() as u64))
        })?;
        let first = found.iter().filter_map(|(first, _)| *first).min();
        Ok(first.map(|(file, block)| Differing {
            file: self.set.name(file).to_owned(),
            block,
            blocks: found.iter().map(|(_, blocks)| blocks).sum(),
        }))
    }

    /// Files that do not lie as they did.
    fn moved(&self, image: &OpenFiles<'_>) -> Result<Vec<String>, LayoutError> {
        let now = image.extents()?;
        let files = self.extents.iter().zip(&now).enumerate();
        Ok(files
            .filter(|(_, (then, now))| then != now)
            .map(|(file, _)| self.set.name(file).to_owned())
            .collect())
    }
}

fn us_since(moment: Instant) -> u64 {
    u64::try_from(moment.elapsed().as_micros()).unwrap_or(u64::MAX)
}
