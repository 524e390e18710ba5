//! A small database on files of a scratch directory, and clients on threads whose every acknowledged effect can be
//! computed afresh from one number per client: the last transaction that its ledger row names.
#![allow(clippy::disallowed_methods)] // It lives in the real world.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_io::real::{Caching, FileDevice, FileError, Method, Queue, RealEnv, block_on};
use spindle_io::{BlockDevice, Env};
use spindle_kernel::{
    CONTROL_FILE_BYTES, Instance, InstanceSettings, KernelError, KernelSettings, Result, RowId,
    Session, Shutdown, Storage, Table, WriteSync, create_database,
};
use spindle_text::word::Word;

pub const CLIENTS: usize = 8;
const ACCOUNTS: u64 = 3000;
const HOT_ACCOUNTS: u64 = 40;
const ROW_BYTES: usize = 200;
const BLOCK_BYTES: usize = 2048;
const LOG_BUFFER_BYTES: usize = 32 << 10;
/// A client keeps this many lines of history.
const LINES_KEPT: u64 = 3;
/// The two halves of an account make this much together in every committed version of its row.
pub const WHOLE: i64 = 1000;

/// How the datafiles are reached, by the word people write.
pub fn methods() -> impl Iterator<Item = &'static str> {
    Method::ALLOWED.iter().map(|(word, _)| *word)
}

/// One way to run the database.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub method: &'static str,
    pub caching: Caching,
    pub write_sync: WriteSync,
    pub writers: u32,
}

impl Way {
    pub fn plain(method: &'static str) -> Way {
        Way {
            method,
            caching: Caching::Buffered,
            write_sync: WriteSync::Dsync,
            writers: 1,
        }
    }

    pub fn settings(&self) -> KernelSettings {
        KernelSettings {
            block_bytes: BLOCK_BYTES,
            // Three shards, and a third of the accounts.
            buffer_cache_bytes: 192 * BLOCK_BYTES as u64,
            write_batch_blocks: 16,
            log_buffer_bytes: LOG_BUFFER_BYTES,
            log_write_bytes_max: 8 << 10,
            instance: InstanceSettings {
                writers: self.writers,
                write_sync: self.write_sync,
                checkpoint_interval_ns: 20_000_000,
                lock_timeout_ns: 30_000_000,
                ..InstanceSettings::default()
            },
            ..KernelSettings::default()
        }
    }

    /// `None` where the system does not have it.
    fn queue(&self) -> Option<Queue> {
        let method = Method::of_word(self.method).expect("a method");
        match method.available() {
            Ok(()) => Some(method.open(3).unwrap()),
            Err(reason) => {
                spindle_harness::skip(format_args!("{self:?}: {reason}"));
                None
            }
        }
    }
}

/// A scratch directory with the files of one database.
pub struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    /// With log files that hold so little that they wrap all the time.
    pub fn new() -> Files {
        Files::with_log_bytes(8192 + 6 * LOG_BUFFER_BYTES as u64 + 4096)
    }

    pub fn with_log_bytes(log_bytes: u64) -> Files {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let files = Files { directory };
        let data_bytes = (4 << 20) + 2 * BLOCK_BYTES as u64;
        let make = |name: &str, bytes: u64| {
            std::fs::File::create_new(files.path(name))
                .unwrap()
                .set_len(bytes)
                .unwrap();
        };
        make("control", CONTROL_FILE_BYTES);
        (0..2).for_each(|log| make(&format!("redo{log}"), log_bytes));
        make("undo", 120 * BLOCK_BYTES as u64);
        (0..2).for_each(|file| make(&format!("data{file}"), data_bytes));
        files
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Opens everything; `None` (with a note) where this machine lacks the way.
    pub fn open(&self, way: Way) -> Option<Storage> {
        let method = way.queue()?;
        let open =
            |name: &str| match FileDevice::open(&self.path(name), way.caching, method.clone()) {
                Ok(device) => Some(Arc::new(device) as Arc<dyn BlockDevice>),
                Err(FileError::DirectRefused { path, file_system }) => {
                    spindle_harness::skip(format_args!(
                        "{way:?}: {file_system} refuses it at {}",
                        path.display()
                    ));
                    None
                }
                Err(error) => panic!("{error}"),
            };
        let storage = Storage {
            control: open("control")?,
            redo: vec![open("redo0")?, open("redo1")?],
            undo: open("undo")?,
            data: vec![open("data0")?, open("data1")?],
            double_write: None,
            temp: Vec::new(),
        };
        let sector_bytes = storage.undo.limits().alignment_bytes as usize;
        if sector_bytes > BLOCK_BYTES {
            spindle_harness::skip(format_args!("{way:?}: sectors have {sector_bytes} bytes"));
            return None;
        }
        Some(storage)
    }

    /// Makes the database of [`ACCOUNTS`] accounts and starts it.
    pub fn create(&self, way: Way) -> Option<Bank> {
        let storage = self.open(way)?;
        let env: Arc<dyn Env> = RealEnv::new(7);
        block_on(async {
            let settings = way.settings();
            create_database(&env, &storage, &settings, 4711, CLIENTS)
                .await
                .unwrap();
            let instance = Instance::startup(&env, &storage, &settings).await.unwrap();
            let account = |_, row: &mut Vec<u8>| {
                row[..24].fill(0);
                row[..8].copy_from_slice(&WHOLE.to_le_bytes());
            };
            let zero = |_, row: &mut Vec<u8>| row.fill(0);
            instance
                .create_table("accounts", ROW_BYTES, ACCOUNTS, account)
                .await
                .unwrap();
            instance
                .create_table("ledger", ROW_BYTES, CLIENTS as u64, zero)
                .await
                .unwrap();
            instance
                .create_table("history", ROW_BYTES, 0, zero)
                .await
                .unwrap();
            instance.shutdown(Shutdown::Normal).await.unwrap();
            Some(Bank::start(&env, &storage, &settings).await.unwrap())
        })
    }

    /// Starts the database that is there.
    pub fn start(&self, way: Way) -> Result<Bank> {
        let storage = self.open(way).expect("opened before");
        let env: Arc<dyn Env> = RealEnv::new(8);
        block_on(Bank::start(&env, &storage, &way.settings()))
    }
}

/// Overwrites bytes of a file behind the database's back.
pub fn overwrite(path: &Path, offset: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

/// A running instance and its tables.
pub struct Bank {
    pub instance: Instance,
    pub accounts: Arc<Table>,
    ledger: Arc<Table>,
    history: Arc<Table>,
}

/// What a client's transaction does besides its lines of history and its ledger row.
struct Effects {
    from: u64,
    to: u64,
    points: i64,
    /// Moved between the halves of `from`.
    moved: i64,
}

fn effects(client: usize, number: u64) -> Effects {
    let mut rng = seeded_rng(client as u64, number);
    let range = if number.is_multiple_of(4) {
        HOT_ACCOUNTS
    } else {
        ACCOUNTS
    };
    let from = rng.next_u64() % range;
    Effects {
        from,
        to: (from + 1 + rng.next_u64() % (range - 1)) % range,
        points: (rng.next_u64() % 100) as i64,
        moved: (rng.next_u64() % 100) as i64 - 50,
    }
}

pub fn get(row: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(row[at..at + 8].try_into().unwrap())
}

fn add(bytes: &mut [u8], amount: i64) {
    let sum = get(bytes, 0) + amount;
    bytes.copy_from_slice(&sum.to_le_bytes());
}

impl Bank {
    async fn start(
        env: &Arc<dyn Env>,
        storage: &Storage,
        settings: &KernelSettings,
    ) -> Result<Bank> {
        Bank::of(Instance::startup(env, storage, settings).await?)
    }

    pub fn of(instance: Instance) -> Result<Bank> {
        Ok(Bank {
            accounts: instance.table("accounts")?,
            ledger: instance.table("ledger")?,
            history: instance.table("history")?,
            instance,
        })
    }

    /// A client that goes on after transaction `last`.
    pub fn client(&self, me: usize, last: u64) -> Client {
        let mut session = self.instance.session();
        let mut lines = Vec::new();
        let mine = |row, bytes: &[u8]| {
            if get(bytes, 0) == me as i64 {
                lines.push((get(bytes, 8), row));
            }
        };
        // Only what is there when the devices are whole.
        if last > 0 {
            block_on(session.scan(&self.history, 0, u64::MAX, mine)).unwrap();
        }
        lines.sort_unstable();
        Client {
            session,
            accounts: Arc::clone(&self.accounts),
            ledger: Arc::clone(&self.ledger),
            history: Arc::clone(&self.history),
            lines: lines.into_iter().map(|(_, row)| row).collect(),
            me,
            last,
        }
    }

    /// Says what of each client is there, and panics unless it is exactly what those transactions make, and at least
    /// what was acknowledged (and at most one more).
    pub fn check(&self, acknowledged: [u64; CLIENTS]) -> [u64; CLIENTS] {
        block_on(async {
            let mut session = self.instance.session();
            let mut found = [0; CLIENTS];
            for (me, last) in found.iter_mut().enumerate() {
                let row = self.ledger.row_id(me as u64);
                *last = session
                    .read_row(row, |row| get(row, 0) as u64)
                    .await
                    .unwrap();
                let promised = acknowledged[me];
                assert!(
                    (promised..=promised + 1).contains(last),
                    "client {me}: {promised} was acknowledged, {last} is there"
                );
            }
            let mut expected = vec![[WHOLE, 0, 0]; ACCOUNTS as usize];
            let mut lines = Vec::new();
            for (me, &last) in found.iter().enumerate() {
                for number in 1..=last {
                    let effects = effects(me, number);
                    let from = &mut expected[effects.from as usize];
                    *from = [
                        from[0] - effects.moved,
                        from[1] + effects.moved,
                        from[2] - effects.points,
                    ];
                    expected[effects.to as usize][2] += effects.points;
                }
                let first = last.saturating_sub(LINES_KEPT - 1).max(1);
                lines.extend((first..=last).map(|number| (me as i64, number as i64)));
            }
            for (account, expected) in expected.iter().enumerate() {
                let row = self.accounts.row_id(account as u64);
                let is = session
                    .read_row(row, |row| [get(row, 0), get(row, 8), get(row, 16)])
                    .await
                    .unwrap();
                assert_eq!(is, *expected, "account {account}");
            }
            let mut seen = Vec::new();
            session
                .scan(&self.history, 0, u64::MAX, |_, row| {
                    seen.push((get(row, 0), get(row, 8)))
                })
                .await
                .unwrap();
            seen.sort_unstable();
            assert_eq!(seen, lines, "lines of history");
            found
        })
    }
}

/// One client, to be run by one thread.
pub struct Client {
    session: Session,
    accounts: Arc<Table>,
    ledger: Arc<Table>,
    history: Arc<Table>,
    lines: Vec<RowId>,
    me: usize,
    last: u64,
}

impl Client {
    /// Commits `count` transactions, some after a roll-back, counting into `acknowledged`; ends early at an error.
    pub fn run(&mut self, count: u64, acknowledged: &AtomicU64) -> Result<()> {
        block_on(async {
            for _ in 0..count {
                let number = self.last + 1;
                if number.is_multiple_of(5) {
                    self.transact(number).await?;
                    self.roll_back_in_the_end().await?;
                    assert!(!self.session.in_transaction());
                }
                let line = self.transact(number).await?;
                while let Err(error) = self.session.commit().await {
                    let again = matches!(error, KernelError::UnreadableBlock { .. })
                        && self.session.in_transaction();
                    if !again {
                        return Err(error);
                    }
                }
                self.last = number;
                acknowledged.store(number, Ordering::Release);
                self.lines.push(line);
                if self.lines.len() as u64 > LINES_KEPT {
                    self.lines.remove(0);
                }
            }
            Ok(())
        })
    }

    /// One transaction up to its commit. A deadlock, a lock timeout or a read that fails rolls back and tries again.
    /// Returns the new line.
    async fn transact(&mut self, number: u64) -> Result<RowId> {
        loop {
            match self.attempt(number).await {
                Err(
                    KernelError::Deadlock { .. }
                    | KernelError::LockTimeout { .. }
                    | KernelError::UnreadableBlock { .. },
                ) => {
                    self.roll_back_in_the_end().await?;
                }
                result => return result,
            }
        }
    }

    async fn roll_back_in_the_end(&mut self) -> Result<()> {
        loop {
            match self.session.rollback().await {
                Err(KernelError::UnreadableBlock { .. }) => assert!(self.session.in_transaction()),
                result => return result,
            }
        }
    }

    async fn attempt(&mut self, number: u64) -> Result<RowId> {
        let (session, me) = (&mut self.session, self.me);
        let Effects {
            from,
            to,
            points,
            moved,
        } = effects(me, number);
        let (from, to) = (self.accounts.row_id(from), self.accounts.row_id(to));
        // In steps, so that whoever reads uncommitted bytes sees halves that do not make a whole.
        session
            .update_row(from, 0..8, |bytes| add(bytes, -moved))
            .await?;
        session
            .update_row(from, 16..24, |bytes| add(bytes, -points))
            .await?;
        session
            .update_row(to, 16..24, |bytes| add(bytes, points))
            .await?;
        session
            .update_row(from, 8..16, |bytes| add(bytes, moved))
            .await?;
        let mut line = [0xAB; ROW_BYTES];
        line[..8].copy_from_slice(&(me as i64).to_le_bytes());
        line[8..16].copy_from_slice(&(number as i64).to_le_bytes());
        let line = session.insert_row(&self.history, &line).await?;
        if self.lines.len() as u64 == LINES_KEPT {
            session.delete_row(&self.history, self.lines[0]).await?;
        }
        let set = |bytes: &mut [u8]| bytes.copy_from_slice(&number.to_le_bytes());
        session
            .update_row(self.ledger.row_id(me as u64), 0..8, set)
            .await?;
        Ok(line)
    }
}

/// The longest that anything here takes. Durable writes of many tests may share a slow disk, and a hang does not end.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs `body` on a thread and panics when it has not ended in time: a hang is a failure, not a hung test.
pub fn watched(name: String, body: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        body();
        let _ = sender.send(());
    });
    match receiver.recv_timeout(LIMIT) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("{name} hangs"),
        _ => {
            if let Err(panic) = thread.join() {
                eprintln!("in {name}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}
