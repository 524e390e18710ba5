//! The restore before a trial: a database of 1 GiB of which blocks were changed, put back in place. It should take as
//! long as what was changed asks for, at no less than half the speed at which the device copies from front to back. It
//! is measured with the golden copy in memory, as runs have it where there is room, and with it on the same disk. There
//! single blocks take a read and a write each, and how near it can come is a matter of how many small I/Os the device
//! makes: the goal is a part of the second peer, the same blocks copied with many I/Os under way and nothing checked.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rand_xoshiro::rand_core::RngCore;
use spindle_io::Arena;
use spindle_io::env::seeded_rng;
use spindle_layout::{
    ChangedBlocks, DatabaseFiles, DatabaseShape, FileManager, Golden, GoldenSource, Image,
    ImageSpec, RestoreReport, Verify,
};

use crate::Pace;
use crate::database::BLOCK_BYTES;
use crate::figures::{Figure, Figures, Goal, median};

const BLOCK: u64 = BLOCK_BYTES as u64;
const PIECE_BYTES: usize = 1 << 20;
/// Threads of a copy from front to back, and of one of scattered blocks: enough for a device's full speed.
const FRONT_TO_BACK_THREADS: usize = 4;
const SCATTERED_THREADS: usize = 64;

/// What a trial changed.
#[derive(Clone, Copy)]
struct Pattern {
    /// Of the database.
    percent: u64,
    /// How many blocks lie together, at places drawn at random.
    run_blocks: u64,
}

const fn pattern(percent: u64, run_blocks: u64) -> Pattern {
    Pattern {
        percent,
        run_blocks,
    }
}

/// The third is what the first two are held against.
const PATTERNS: [Pattern; 4] = [pattern(1, 1), pattern(5, 1), pattern(25, 1), pattern(5, 64)];

impl Pattern {
    fn name(self) -> String {
        match self.run_blocks {
            1 => format!("{} % changed", self.percent),
            blocks => format!("{} % changed, {blocks} blocks together", self.percent),
        }
    }
}

fn shape() -> DatabaseShape {
    DatabaseShape {
        block_bytes: BLOCK,
        control_bytes: 8 << 20,
        redo_bytes: vec![16 << 20; 3],
        undo_bytes: 8 << 20,
        data_bytes: vec![240 << 20; 4],
        double_write_bytes: 0,
        temp_bytes: Vec::new(),
    }
}

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    for kept in [GoldenSource::InMemory, GoldenSource::OnDisk] {
        let place = tempfile::tempdir_in(directory).expect("a directory for the bench");
        measure(kept, pace, place.path(), figures);
    }
}

fn measure(kept: GoldenSource, pace: Pace, directory: &Path, figures: &mut Figures) {
    let place = |name: &str| {
        let path = directory.join(name);
        std::fs::create_dir(&path).expect("a directory for the bench");
        path
    };
    let loading =
        Golden::create(&place("golden"), &shape(), 1, &Arc::default()).expect("a golden copy");
    let golden_files = loading.files().clone();
    let golden = loading
        .seal(kept)
        .expect("what is written and random is sealed");
    let spec = ImageSpec {
        files: DatabaseFiles::in_directory(&shape(), &place("image")),
        manager: FileManager::Plain,
        originals: None,
    };
    let image = Image::provision(&golden, spec.clone()).expect("an image of it");
    let mut times: Vec<Vec<Times>> = vec![Vec::new(); PATTERNS.len()];
    for round in 0..pace.pairs as u64 {
        for (number, pattern) in PATTERNS.into_iter().enumerate() {
            let changed = draw(pattern, round * 100 + number as u64);
            change(&spec.files, &changed);
            let report = image.restore(Some(&changed), Verify::Changed);
            let report = report.expect("everything changed is listed");
            times[number].push(Times {
                report,
                unchecked_mb_per_s: copy_mb_per_s(
                    &golden_files,
                    &spec.files,
                    &pieces(&changed),
                    SCATTERED_THREADS,
                ),
                front_to_back_mb_per_s: copy_mb_per_s(
                    &golden_files,
                    &spec.files,
                    &pieces(&front_to_back()),
                    FRONT_TO_BACK_THREADS,
                ),
            });
        }
    }
    let full = image.restore(Some(&ChangedBlocks::new()), Verify::Full);
    let full = full.expect("everything was put back");
    tell(kept, figures, &times, &full);
}

/// Of one restore, and the copies made beside it.
#[derive(Clone)]
struct Times {
    report: RestoreReport,
    unchecked_mb_per_s: f64,
    front_to_back_mb_per_s: f64,
}

impl Times {
    fn megabytes(&self) -> f64 {
        self.report.copied_bytes as f64 / 1e6
    }

    /// Of the restore but for reading again what was written.
    fn s_per_gb(&self) -> f64 {
        let us = self.report.duration_us - self.report.verify_us;
        us as f64 / self.megabytes() / 1e3
    }

    fn mb_per_s(&self) -> f64 {
        1e3 / self.s_per_gb()
    }

    fn verify_s_per_gb(&self) -> f64 {
        self.report.verify_us as f64 / self.megabytes() / 1e3
    }
}

fn tell(kept: GoldenSource, figures: &mut Figures, times: &[Vec<Times>], full: &RestoreReport) {
    let from = match kept {
        GoldenSource::InMemory => "from memory",
        GoldenSource::OnDisk => "from disk",
    };
    for (pattern, times) in PATTERNS.iter().zip(times) {
        let pairs = |peer: fn(&Times) -> f64| -> Vec<(f64, f64)> {
            let pair = |times: &Times| (times.mb_per_s(), peer(times));
            times.iter().map(pair).collect()
        };
        // Each has its goal where it can be reached on any device.
        let (of_front_to_back, of_unchecked) = match (kept, pattern.run_blocks) {
            (GoldenSource::OnDisk, 1) => (None, Some(Goal::AtLeast(0.8))),
            _ => (Some(Goal::AtLeast(0.5)), None),
        };
        let rates = pairs(|times| times.front_to_back_mb_per_s);
        let what = format!("MB/s restored {from}, {}", pattern.name());
        let peer = "copying front to back";
        figures.add(Figure::of_pairs(what, peer, &rates, of_front_to_back));
        let rates = pairs(|times| times.unchecked_mb_per_s);
        let what = "the same".to_owned();
        let peer = "copying unchecked";
        figures.add(Figure::of_pairs(what, peer, &rates, of_unchecked));
        let what = "s per GB to read it again and verify it".to_owned();
        let verify = times.iter().map(Times::verify_s_per_gb);
        figures.add(Figure::alone(what, verify, None));
    }
    let most = &times[2];
    for (pattern, times) in PATTERNS.iter().zip(times).take(2) {
        let pairs: Vec<(f64, f64)> = times
            .iter()
            .zip(most)
            .map(|(times, most)| (times.s_per_gb(), most.s_per_gb()))
            .collect();
        let what = format!("s per GB restored {from}, {}", pattern.name());
        let peer = PATTERNS[2].name();
        // A restore that took as long whatever was changed would have 25 and 5.
        figures.add(Figure::of_pairs(what, &peer, &pairs, Goal::AtMost(2.5)));
    }
    let seconds = full.verify_us as f64 / 1e6;
    let what = "s to verify every block of 1 GiB".to_owned();
    figures.add(Figure::alone(what, std::iter::once(seconds), None));
    let rates = times.iter().flatten();
    let rate = median(rates.map(|times| times.front_to_back_mb_per_s));
    let what = "MB/s copied from front to back".to_owned();
    figures.add(Figure::alone(what, rate.into_iter(), None));
}

/// Draws what a trial changes: of each datafile as much.
fn draw(pattern: Pattern, seed: u64) -> ChangedBlocks {
    let mut chance = seeded_rng(6, seed);
    // Of the whole database, of which the datafiles are fifteen sixteenths.
    let blocks_each = shape().total_bytes() / BLOCK / 4 * pattern.percent / 100;
    let of_file = |bytes: u64| {
        let mut places: Vec<u64> = (0..bytes / BLOCK / pattern.run_blocks).collect();
        let count = (blocks_each / pattern.run_blocks) as usize;
        for at in 0..count {
            let left = (places.len() - at) as u64;
            places.swap(at, at + (chance.next_u64() % left) as usize);
        }
        places.truncate(count);
        places.sort_unstable();
        let run = |place: &u64| place * pattern.run_blocks..(place + 1) * pattern.run_blocks;
        places.iter().map(run).collect::<Vec<_>>()
    };
    let files = shape().data_bytes;
    let named = (1..).zip(files.into_iter().map(of_file));
    named
        .map(|(number, runs)| (format!("data{number}"), runs))
        .collect()
}

/// All of the first datafile.
fn front_to_back() -> ChangedBlocks {
    let step = PIECE_BYTES as u64 / BLOCK;
    let blocks = shape().data_bytes[0] / BLOCK;
    let runs = (0..blocks).step_by(step as usize);
    let runs = runs.map(|first| first..first + step).collect();
    ChangedBlocks::from([("data1".to_owned(), runs)])
}

/// A part of a datafile.
#[derive(Clone, Copy)]
struct Piece {
    file: usize,
    offset: u64,
    bytes: usize,
}

fn pieces(changed: &ChangedBlocks) -> Vec<Piece> {
    let of_file = |(file, runs): (usize, &Vec<std::ops::Range<u64>>)| -> Vec<Piece> {
        let piece = |run: &std::ops::Range<u64>| Piece {
            file,
            offset: run.start * BLOCK,
            bytes: ((run.end - run.start) * BLOCK) as usize,
        };
        runs.iter().map(piece).collect()
    };
    changed.values().enumerate().flat_map(of_file).collect()
}

/// The datafiles, to be read and written past the page cache.
fn open(files: &DatabaseFiles) -> Vec<File> {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_DIRECT);
    let open = |place: &spindle_layout::Place| {
        let file = options.open(place.path());
        file.expect("direct I/O works here")
    };
    files.data.iter().map(open).collect()
}

/// Writes other bytes.
fn change(image: &DatabaseFiles, changed: &ChangedBlocks) {
    let files = open(image);
    for_each(&pieces(changed), SCATTERED_THREADS, |piece, buffer| {
        seeded_rng(7, piece.offset).fill_bytes(buffer);
        let written = files[piece.file].write_all_at(buffer, piece.offset);
        written.expect("blocks are changed");
    });
    for file in &files {
        file.sync_data().expect("changes are durable");
    }
}

/// Copies pieces of the golden copy to where the same bytes lie already, and makes them durable: millions of bytes per
/// second.
fn copy_mb_per_s(
    golden: &DatabaseFiles,
    image: &DatabaseFiles,
    pieces: &[Piece],
    threads: usize,
) -> f64 {
    let (from, to) = (open(golden), open(image));
    let began = Instant::now();
    for_each(pieces, threads, |piece, buffer| {
        let read = from[piece.file].read_exact_at(buffer, piece.offset);
        read.expect("a piece is read");
        let written = to[piece.file].write_all_at(buffer, piece.offset);
        written.expect("a piece is written");
    });
    for file in &to {
        file.sync_data().expect("the copy is durable");
    }
    let bytes: usize = pieces.iter().map(|piece| piece.bytes).sum();
    bytes as f64 / 1e6 / began.elapsed().as_secs_f64()
}

fn for_each(pieces: &[Piece], threads: usize, work: impl Fn(&Piece, &mut [u8]) + Sync) {
    let next = AtomicUsize::new(0);
    let longest = pieces.iter().map(|piece| piece.bytes).max().unwrap_or(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let arena = Arena::new(longest, 1).expect("memory for a piece");
                let frame = arena.allocate().expect("the arena has a frame");
                let mut buffer = frame.try_write_hold().expect("the frame is ours");
                while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(piece, &mut buffer[..piece.bytes]);
                }
            });
        }
    });
}
