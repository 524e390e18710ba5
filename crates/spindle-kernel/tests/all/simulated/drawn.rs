//! Scenarios drawn from a seed: every size, timing and rare behaviour that a database can have here, and the history
//! that a seed makes.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::Env;
use spindle_io::env::seeded_rng;
use spindle_io::sim::{DiskTiming, PowerCut, World};
use spindle_kernel::{Switch, Switches, TornBlocks, WriteSync};

use super::crashes::FIRST;
use super::{Method, SESSIONS, Scenario, load, recover, run};

/// The stream of a seed's chance that draws its scenario.
const STREAM: u64 = 0xD4A3;

/// Draws from a seed.
struct Draw(Xoshiro256PlusPlus);

impl Draw {
    fn of<T: Copy>(&mut self, among: &[T]) -> T {
        among[(self.0.next_u64() % among.len() as u64) as usize]
    }

    fn from(&mut self, least: usize, most: usize) -> usize {
        least + (self.0.next_u64() % (most - least + 1) as u64) as usize
    }

    /// None in every other scenario, else each with one chance in three.
    fn switches(&mut self) -> Switches {
        if self.of(&[true, false]) {
            return Switches::OFF;
        }
        let all = Switch::ALL.iter().copied();
        let on: Vec<Switch> = all.filter(|_| self.of(&[true, false, false])).collect();
        Switches::of(&on)
    }

    fn method(&mut self) -> Method {
        let slaves = self.from(1, 3);
        self.of(&[Method::Sync, Method::Slaves(slaves), Method::Async])
    }

    fn log_timing(&mut self) -> DiskTiming {
        DiskTiming {
            write_ns: self.of(&[5_000, 20_000, 300_000]),
            flush_ns: self.of(&[20_000, 100_000, 2_000_000]),
            jitter_ns: self.of(&[0, 40_000, 400_000]),
            at_once: self.of(&[1, 8]),
            ..DiskTiming::default()
        }
    }
}

impl Scenario {
    /// The scenario of a seed.
    pub fn drawn(seed: u64) -> Scenario {
        let mut draw = Draw(seeded_rng(seed, STREAM));
        let plain = Scenario::plain(seed);
        let block_bytes = draw.of(&[2 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10]);
        let cache_blocks_max = (4 << 20) / block_bytes as u64;
        let log_buffer_bytes = (16 * block_bytes * draw.from(1, 2)).max(32 << 10);
        let log_timing = draw.log_timing();
        let accounts = draw.of(&[40, 400, 3000]);
        let data_write_ns = draw.of(&[20_000, 100_000, 400_000, 3_000_000, 15_000_000]);
        let datafiles = draw.from(1, 3);
        let sessions = draw.from(1, SESSIONS);
        let hot_accounts = draw.of(&[2, 5, 40, 1000]).min(accounts);
        let changes_max = draw.of(&[1, 3, 3, 12, 40]);
        let scenario = Scenario {
            sessions,
            transactions: draw.of(&[3, 6, 10, 16]),
            block_bytes,
            row_bytes: draw.of(&[16, 48, 130, 400]),
            line_bytes_max: draw.of(&[17, 120, 400]),
            // Of the longest one block takes two.
            note_bytes_max: draw.of(&[60, block_bytes * 7 / 16]),
            accounts,
            undo_blocks: 64,
            datafiles,
            datafile_extents: 9usize.div_ceil(datafiles),
            method: draw.method(),
            write_sync: draw.of(&[WriteSync::Dsync, WriteSync::Checkpoint]),
            torn_blocks: draw.of(&[
                TornBlocks::Images,
                TornBlocks::Images,
                TornBlocks::DoubleWrite,
                TornBlocks::Atomic,
            ]),
            writers: draw.from(1, 4) as u32,
            checkpoint_progress_ns: draw.of(&[500_000, 3_000_000, 20_000_000]),
            checkpoint_lag_bytes: draw.of(&[None, None, Some(32 << 10), Some(256 << 10)]),
            log_files: draw.from(2, 3),
            control_write_ns: draw.of(&[20_000, 20_000, 5_000_000]),
            checkpoint_interval_ns: draw.of(&[
                400_000,
                4_000_000,
                20_000_000,
                100_000_000,
                10_000_000_000,
            ]),
            cache_blocks: draw.of(&[16, 20, 32, 64, 256, 512]).min(cache_blocks_max),
            write_batch_blocks: draw.of(&[1, 8, 128]),
            log_buffer_bytes,
            log_write_bytes_max: draw.of(&[4 << 10, 8 << 10, 256 << 10]),
            log_file_bytes: (12 << 10) + draw.from(6, 14) * log_buffer_bytes,
            // Long enough for a slow transaction to end, or sessions would only break each other's.
            lock_timeout_ns: 8_000_000 + 4 * (data_write_ns + log_timing.flush_ns),
            data_write_ns,
            data_read_ns: draw.of(&[20_000, 80_000, 500_000]),
            data_at_once: draw.of(&[1, 2, 8, 32]),
            log_timing,
            atomic_bytes: draw.of(&[512, 512, 4096]),
            hot_accounts,
            changes_max,
            // Long ones would deadlock most of the time, and do nothing else.
            in_order: changes_max > 3,
            switches: draw.switches(),
            ..plain
        };
        let scenario = scenario.with_words(draw.of(&[0, 6, 12, 12]), draw.of(&[true, false]));
        let scenario = match draw.from(1, 6) {
            1 => scenario.with_fast_redo(),
            2 => scenario.with_little_undo(),
            _ => scenario,
        };
        Scenario {
            history_blocks: scenario.blocks_for(scenario.line_bytes_max),
            note_blocks: scenario.blocks_for(scenario.note_bytes_max),
            ..scenario
        }
    }

    /// With a table that has indexes, and perhaps sessions that are slow on their way through them.
    fn with_words(self, words: usize, are_slow: bool) -> Scenario {
        let mut switches = self.switches.list();
        if words > 0 && are_slow {
            switches.push(Switch::SessionPausesOnItsWay);
        }
        Scenario {
            words,
            undo_blocks: self.undo_blocks + 8 * words,
            switches: Switches::of(&switches),
            ..self
        }
    }

    /// Sessions that fill the log files while CKPT notes one position.
    fn with_fast_redo(self) -> Scenario {
        let log_buffer_bytes = 32 << 10;
        Scenario {
            sessions: self.sessions.max(4),
            in_order: true,
            transactions: 60,
            block_bytes: 2 << 10,
            row_bytes: 48,
            note_bytes_max: 60,
            accounts: 3000,
            hot_accounts: 1000,
            cache_blocks: 256,
            data_write_ns: 15_000_000,
            control_write_ns: 400_000_000,
            log_files: 2,
            log_buffer_bytes,
            log_file_bytes: (12 << 10) + 6 * log_buffer_bytes,
            changes_max: 4,
            switches: Switches::OFF,
            words: 0,
            ..self
        }
    }

    /// Transactions that together have more undo than the undo file takes.
    fn with_little_undo(self) -> Scenario {
        let log_buffer_bytes = 32 << 10;
        Scenario {
            sessions: self.sessions.max(4),
            in_order: true,
            transactions: 3,
            block_bytes: 2 << 10,
            row_bytes: 48,
            note_bytes_max: 60,
            accounts: 3000,
            hot_accounts: 1000,
            changes_max: 200,
            undo_blocks: 12,
            lock_timeout_ns: 10 * self.lock_timeout_ns,
            log_buffer_bytes,
            log_file_bytes: (12 << 10) + 8 * log_buffer_bytes,
            words: 0,
            ..self
        }
    }

    /// This many blocks hold a row of `row_bytes` from every transaction ever, each session writing to one of its own.
    fn blocks_for(&self, row_bytes: usize) -> u64 {
        let rows = 2 * self.sessions as u64 * self.transactions;
        let rows_per_block = (self.block_bytes / (row_bytes + 32)) as u64;
        rows.div_ceil(rows_per_block) + 2 * self.sessions as u64
    }
}

/// What a seed does, in numbers that must be the same whenever and however it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trace {
    /// Of every I/O and its time.
    pub hash: u64,
    pub ios: u64,
    pub virtual_ns: u64,
}

impl Trace {
    /// Joins the history of a world to it.
    pub fn add(&mut self, world: &World) {
        self.hash = self.hash.rotate_left(7) ^ world.trace_hash();
        self.ios += world.io_count();
        self.virtual_ns += world.env().now();
    }
}

/// Loads the database, runs it up to a crash, and recovers.
pub fn trace(scenario: Scenario) -> Result<Trace, String> {
    let mut trace = Trace::default();
    let (images, world) = load(scenario);
    trace.add(&world);
    let mut draw = Draw(seeded_rng(scenario.seed, STREAM + 1));
    let cut_at = draw.from(50, 600) as u64;
    let (disks, promised, world, _) = run(scenario, &images, scenario.seed, FIRST, Some(cut_at));
    trace.add(&world);
    let left = disks.after(PowerCut::Damage(draw.0.next_u64()));
    let (found, _, world) = recover(scenario, &left, promised)?;
    trace.add(&world);
    let sum: u64 = found.iter().sum();
    trace.hash = trace.hash.rotate_left(7) ^ sum;
    Ok(trace)
}
