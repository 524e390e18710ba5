//! What the database itself costs: row reads from the cache, random single-block reads beside a plain pread loop on the
//! same file, and commits beside a plain overwrite with fdatasync of as many bytes. Prints tables; takes half a minute
//! and 600 MB in the target directory. `cargo bench -p spindle-kernel [-- cache | reads | commits]`.
#![allow(clippy::disallowed_methods)] // It lives in the real world.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_io::real::{Caching, FileDevice, Method, RealEnv, block_on};
use spindle_io::{Arena, BlockDevice, Env};
use spindle_kernel::{
    CONTROL_FILE_BYTES, Instance, Settings, Shutdown, Storage, Table, create_database,
};

const BLOCK_BYTES: usize = 8192;
const ROW_BYTES: usize = 128;
const MEASURE: Duration = Duration::from_secs(1);
const LOG_BYTES: u64 = 64 << 20;

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    if is_wanted("cache") {
        cache(&directory.path().join("cache"));
    }
    if is_wanted("reads") {
        reads(&directory.path().join("reads"));
    }
    if is_wanted("commits") {
        commits(&directory.path().join("commits"));
    }
}

/// A database of one table.
struct Database {
    instance: Instance,
    table: Arc<Table>,
    directory: PathBuf,
}

impl Database {
    fn create(directory: &Path, data_bytes: u64, cache_bytes: u64) -> Database {
        std::fs::create_dir(directory).unwrap();
        let open = |name: &str, bytes: u64| {
            let path = directory.join(name);
            written_file(&path, if name.starts_with("data") { 0 } else { bytes })
                .set_len(bytes)
                .unwrap();
            Arc::new(FileDevice::open(&path, Caching::Direct, Method::Sync).unwrap())
                as Arc<dyn BlockDevice>
        };
        let storage = Storage {
            control: open("control", CONTROL_FILE_BYTES),
            redo: vec![
                open("redo0", LOG_BYTES),
                open("redo1", LOG_BYTES),
                open("redo2", LOG_BYTES),
            ],
            undo: open("undo", 16 << 20),
            data: vec![open("data", data_bytes + (2 << 20))],
        };
        let settings = Settings {
            block_bytes: BLOCK_BYTES,
            buffer_cache_bytes: cache_bytes,
            ..Settings::default()
        };
        let env: Arc<dyn Env> = RealEnv::new(1);
        let (instance, table) = block_on(async {
            create_database(&env, &storage, &settings, 1, 100)
                .await
                .unwrap();
            let instance = Instance::startup(&env, &storage, &settings).await.unwrap();
            let per_block =
                spindle_kernel::block::heap::slots_per_block(BLOCK_BYTES, ROW_BYTES) as u64;
            let rows = data_bytes / BLOCK_BYTES as u64 * per_block;
            let table = instance
                .create_table("rows", ROW_BYTES, rows, |_, _| {})
                .await
                .unwrap();
            (instance, table)
        });
        Database {
            instance,
            table,
            directory: directory.to_owned(),
        }
    }

    /// Reads random rows with `sessions` sessions; returns how many, and what they cost.
    fn read_rows(&self, sessions: usize) -> Cost {
        measure(sessions, |me, ended| {
            let mut session = self.instance.session();
            let mut rng = seeded_rng(2, me as u64);
            let rows = self.table.loaded_rows();
            block_on(async {
                let (mut count, mut sum) = (0, 0);
                while !ended.load(Ordering::Relaxed) {
                    let row = self.table.row_id(rng.next_u64() % rows);
                    sum += session
                        .read_row(row, |bytes| u64::from(bytes[0]))
                        .await
                        .unwrap();
                    count += 1;
                }
                std::hint::black_box(sum);
                count
            })
        })
    }

    fn shutdown(self) {
        block_on(self.instance.shutdown(Shutdown::Normal)).unwrap();
        std::fs::remove_dir_all(self.directory).unwrap();
    }
}

fn written_file(path: &Path, bytes: u64) -> File {
    let file = File::create_new(path).unwrap();
    let mut piece = vec![0; 1 << 20];
    seeded_rng(3, 0).fill_bytes(&mut piece);
    for offset in (0..bytes).step_by(piece.len()) {
        file.write_all_at(&piece, offset).unwrap();
    }
    file.sync_all().unwrap();
    file
}

/// What a number of operations took.
#[derive(Clone, Copy)]
struct Cost {
    count: u64,
    seconds: f64,
    cpu_seconds: f64,
}

impl Cost {
    fn per_second(&self) -> f64 {
        self.count as f64 / self.seconds
    }

    fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.count as f64
    }
}

/// Runs `work` on so many threads for the measured time; each returns how much it did.
fn measure(threads: usize, work: impl Fn(usize, &AtomicBool) -> u64 + Sync) -> Cost {
    let (ended, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let (began, cpu_began) = (Instant::now(), cpu_seconds());
    std::thread::scope(|scope| {
        for me in 0..threads {
            let (work, ended, count) = (&work, &ended, &count);
            scope.spawn(move || count.fetch_add(work(me, ended), Ordering::Relaxed));
        }
        std::thread::sleep(MEASURE);
        ended.store(true, Ordering::Relaxed);
    });
    Cost {
        count: count.into_inner(),
        seconds: began.elapsed().as_secs_f64(),
        cpu_seconds: cpu_seconds() - cpu_began,
    }
}

/// Processor time of the whole process, in ticks of 10 ms (fields 14 and 15 of `proc_pid_stat(5)`).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks = |field: usize| fields[field - 3].parse::<f64>().unwrap();
    (ticks(14) + ticks(15)) / 100.0
}

fn cache(directory: &Path) {
    let database = Database::create(directory, 32 << 20, 64 << 20);
    let mut session = database.instance.session();
    block_on(session.scan(&database.table, 0, u64::MAX, |_, _| {})).unwrap();
    println!(
        "row reads from the cache\n{:>9} {:>14} {:>12}",
        "sessions", "rows/s", "CPU ns/row"
    );
    for sessions in [1, 2, 8, 1, 2, 8] {
        let cost = database.read_rows(sessions);
        println!(
            "{sessions:>9} {:>14.0} {:>12.0}",
            cost.per_second(),
            cost.cpu_us() * 1e3
        );
    }
    database.shutdown();
}

fn reads(directory: &Path) {
    let database = Database::create(directory, 512 << 20, 16 << 20);
    let file = direct(&database.directory.join("data"));
    println!("random 8 KiB reads, direct, 512 MiB through a cache of 16 MiB");
    println!(
        "{:>9} {:>8} {:>12} {:>12}",
        "sessions", "what", "reads/s", "CPU us/read"
    );
    for sessions in [1, 8, 32] {
        for _ in 0..2 {
            let plain = pread(&file, sessions);
            let before = database.instance.statistics();
            let mut kernel = database.read_rows(sessions);
            kernel.count = (database.instance.statistics() - before).physical_read_ios;
            for (what, cost) in [("pread", plain), ("kernel", kernel)] {
                println!(
                    "{sessions:>9} {what:>8} {:>12.0} {:>12.2}",
                    cost.per_second(),
                    cost.cpu_us()
                );
            }
        }
    }
    database.shutdown();
}

fn direct(path: &Path) -> File {
    File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .unwrap()
}

fn pread(file: &File, threads: usize) -> Cost {
    let blocks = file.metadata().unwrap().len() / BLOCK_BYTES as u64;
    measure(threads, |me, ended| {
        let arena = Arena::new(BLOCK_BYTES, 1).unwrap();
        let frame = arena.allocate().unwrap();
        let mut buffer = frame.try_write_hold().unwrap();
        let mut rng = seeded_rng(4, me as u64);
        let mut count = 0;
        while !ended.load(Ordering::Relaxed) {
            let offset = rng.next_u64() % blocks * BLOCK_BYTES as u64;
            file.read_exact_at(&mut buffer, offset).unwrap();
            count += 1;
        }
        count
    })
}

fn commits(directory: &Path) {
    let database = Database::create(directory, 32 << 20, 64 << 20);
    let beside = directory.join("beside");
    written_file(&beside, LOG_BYTES);
    let file = direct(&beside);
    println!("commits of one updated row; redo direct and durable");
    println!(
        "{:>9} {:>10} {:>12} {:>10} {:>12} {:>16}",
        "sessions", "what", "per second", "mean us", "CPU us each", "commits/write"
    );
    for sessions in [1, 1, 1, 8, 64] {
        let before = database.instance.statistics();
        let cost = measure(sessions, |me, ended| {
            let mut session = database.instance.session();
            let mut rng = seeded_rng(5, me as u64);
            // Every session has rows of its own.
            let (rows, mine) = (database.table.loaded_rows() / 64, me as u64);
            block_on(async {
                let mut count = 0;
                while !ended.load(Ordering::Relaxed) {
                    let row = database.table.row_id(mine * rows + rng.next_u64() % rows);
                    session
                        .update_row(row, 0..8, |bytes| bytes[0] ^= 1)
                        .await
                        .unwrap();
                    session.commit().await.unwrap();
                    count += 1;
                }
                count
            })
        });
        let done = database.instance.statistics() - before;
        let print = |what: &str, cost: &Cost, grouped: f64| {
            let mean_us = cost.seconds * 1e6 * sessions as f64 / cost.count as f64;
            println!(
                "{sessions:>9} {what:>10} {:>12.0} {mean_us:>10.1} {:>12.1} {grouped:>16.2}",
                cost.per_second(),
                cost.cpu_us(),
            );
        };
        print(
            "commit",
            &cost,
            done.commits as f64 / done.redo_writes as f64,
        );
        if sessions == 1 {
            let bytes = (done.redo_bytes + done.redo_wastage_bytes) / done.redo_writes;
            let padded = bytes.next_multiple_of(512) as usize;
            print(&format!("{padded} B"), &overwrite(&file, padded), 1.0);
        }
    }
    database.shutdown();
}

/// Overwrites a file from front to back, with fdatasync after each write.
fn overwrite(file: &File, bytes: usize) -> Cost {
    measure(1, |_, ended| {
        let arena = Arena::new(bytes, 1).unwrap();
        let frame = arena.allocate().unwrap();
        let mut buffer = frame.try_write_hold().unwrap();
        seeded_rng(6, 0).fill_bytes(&mut buffer);
        let mut count = 0;
        while !ended.load(Ordering::Relaxed) {
            let offset = count * bytes as u64 % (LOG_BYTES - bytes as u64);
            file.write_all_at(&buffer, offset / 512 * 512).unwrap();
            file.sync_data().unwrap();
            count += 1;
        }
        count
    })
}
