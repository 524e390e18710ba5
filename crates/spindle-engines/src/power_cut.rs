//! The embedded database through a power cut. While it runs, [`AcknowledgedCommits`] hear of every commit before the
//! client does anything else ([`start_noted_clients`]); after the cut, [`survey`] says what became of what was
//! promised. The program records with the one and judges with the other; so do tests, on their own devices.

use std::sync::{Arc, Mutex, MutexGuard};

use spindle_io::{Arena, BlockDevice, Env, Submission, read_blocks};
use spindle_kernel::{BlockAddress, block};
use spindle_workload::driver::{Behaviour, Running};
use spindle_workload::{
    Acknowledged, ClientSession, RowOperation, SessionError, TableShare, Workload, driver,
};

use crate::engine::EngineFuture;
use crate::kernel::{KernelEngine, KernelSettings, Shutdown, Storage, datafiles};
use crate::{EngineError, ErrorKind};

/// Where in a ledger's row the number of the client's last transaction is.
const NUMBER: usize = 8;

/// Called with the numbers of all clients after each acknowledged commit.
type Witness = Box<dyn Fn(&[u64]) -> Result<(), EngineError> + Send + Sync>;

/// What clients have been promised: for each the number of its last changing transaction whose commit returned.
pub struct AcknowledgedCommits {
    acknowledged: Mutex<Vec<u64>>,
    witness: Witness,
}

impl AcknowledgedCommits {
    /// Nothing is promised yet. `witness` writes down what is, before the client continues.
    pub fn new(
        clients: usize,
        witness: impl Fn(&[u64]) -> Result<(), EngineError> + Send + Sync + 'static,
    ) -> Arc<AcknowledgedCommits> {
        Arc::new(AcknowledgedCommits {
            acknowledged: Mutex::new(vec![0; clients]),
            witness: Box::new(witness),
        })
    }

    /// Writes down what is promised so far. Errors: the witness's.
    pub fn note(&self) -> Result<(), EngineError> {
        (self.witness)(&self.numbers())
    }

    fn add(&self, client: usize) -> Result<(), EngineError> {
        let mut numbers = self.numbers();
        numbers[client] += 1;
        (self.witness)(&numbers)
    }

    fn numbers(&self) -> MutexGuard<'_, Vec<u64>> {
        self.acknowledged.lock().expect("no witness panics")
    }
}

/// A session whose commits are noted.
struct Noted<S> {
    session: S,
    ledger: Arc<AcknowledgedCommits>,
    ledger_table: usize,
    /// The client whose entry in the database's ledger the transaction has changed.
    client: Option<usize>,
}

impl<S> Noted<S> {
    /// Notes the commits of `session`; `workload` says which table its ledger is.
    fn new(session: S, ledger: &Arc<AcknowledgedCommits>, workload: &dyn Workload) -> Noted<S> {
        Noted {
            session,
            ledger: Arc::clone(ledger),
            ledger_table: ledger_table(workload),
            client: None,
        }
    }
}

/// Starts clients whose commits are noted.
pub fn start_noted_clients(
    engine: &Arc<KernelEngine>,
    env: &Arc<dyn Env>,
    workload: &Arc<dyn Workload>,
    behaviour: Behaviour,
    promised: Arc<AcknowledgedCommits>,
) -> Running {
    let (connect, of) = (engine.connector(), Arc::clone(workload));
    driver::start(env, workload, &engine.tables(), behaviour, move || {
        Noted::new(connect(), &promised, &*of)
    })
}

/// Which of a workload's tables is its ledger.
fn ledger_table(workload: &dyn Workload) -> usize {
    let tables = workload.tables();
    let ledger = tables.iter().position(|table| table.name == "ledger");
    ledger.expect("every workload has a ledger")
}

impl<S: ClientSession> ClientSession for Noted<S> {
    async fn execute(&mut self, step: &RowOperation) -> Result<(), SessionError> {
        if let RowOperation::Update { table, row, .. } = step
            && *table == self.ledger_table
        {
            self.client = Some(*row as usize);
        }
        self.session.execute(step).await
    }

    async fn commit(&mut self) -> Result<(), SessionError> {
        self.session.commit().await?;
        match self.client.take() {
            Some(client) => {
                let noted = self.ledger.add(client);
                noted.map_err(|error| SessionError::Failed(error.to_string()))
            }
            None => Ok(()),
        }
    }

    async fn rollback(&mut self) -> Result<(), SessionError> {
        self.client = None;
        self.session.rollback().await
    }

    async fn visit(
        &mut self,
        table: usize,
        share: TableShare,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), SessionError> {
        self.session.visit(table, share, visit).await
    }
}

/// What a database must have after a power cut, and may have.
#[derive(Debug, Clone, Copy)]
pub struct Promises<'a> {
    /// For each client the number of its last transaction that had been acknowledged before the cut.
    pub acknowledged: &'a [u64],
    /// For each client the number of the last that was ever acknowledged; one more may have been committed with no
    /// client left to hear of it.
    pub in_the_end: &'a [u64],
}

/// What was found after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PowerCutSurvey {
    /// Transactions that had been acknowledged and are gone.
    pub lost: u64,
    /// Blocks of datafiles that the cut left torn.
    pub torn_blocks: u64,
    /// Bytes of redo rolled forward.
    pub redo_bytes: u64,
    /// Transactions rolled back.
    pub rolled_back: u64,
}

/// Why a database did not survive a power cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// It does not start.
    #[error("recovery failed: {0}")]
    NotRecovered(String),
    /// It starts, and serves what no transaction made, or breaks off.
    #[error("after recovery: {0}")]
    Wrong(String),
}

impl Broken {
    /// A database that did not start after a power cut, for this reason.
    ///
    /// # Errors
    /// The reason itself, when it is this machine's, which says nothing of the database.
    pub fn not_recovered(reason: EngineError) -> Result<Broken, EngineError> {
        of_database(reason).map(Broken::NotRecovered)
    }

    fn wrong(reason: EngineError) -> Result<Broken, EngineError> {
        of_database(reason).map(Broken::Wrong)
    }
}

/// What a reason says of the database, unless it is this machine's.
fn of_database(reason: EngineError) -> Result<String, EngineError> {
    match reason.kind() {
        ErrorKind::LostRows | ErrorKind::ServerGone | ErrorKind::Failed => Ok(reason.to_string()),
        ErrorKind::NoRoom
        | ErrorKind::NotPermitted
        | ErrorKind::Unavailable
        | ErrorKind::RefusedSetting
        | ErrorKind::MisspeltSetting
        | ErrorKind::Interrupted
        | ErrorKind::Disturbed => Err(reason),
    }
}

/// Recovers the database on `storage` after a power cut, compares it with what was promised, and shuts it down; the
/// inner error: it did not survive.
///
/// # Errors
/// This machine's, such as no room: then nothing is known of the database.
pub fn survey<'a>(
    env: &'a Arc<dyn Env>,
    storage: &'a Storage,
    settings: &'a KernelSettings,
    workload: &'a dyn Workload,
    promises: Promises<'a>,
) -> EngineFuture<'a, Result<Result<PowerCutSurvey, Broken>, EngineError>> {
    Box::pin(async move {
        let torn_blocks = match torn_blocks(storage, settings.block_bytes).await {
            Ok(torn_blocks) => torn_blocks,
            Err(error) => return Broken::not_recovered(error).map(Err),
        };
        let engine = match KernelEngine::start_on(env, storage, settings, workload).await {
            Ok(engine) => Arc::new(engine),
            Err(error) => return Broken::not_recovered(error).map(Err),
        };
        let compared = compare(&engine, workload, promises).await;
        let recovery = engine.recovery();
        let how = match compared {
            Ok(_) => Shutdown::Normal,
            Err(_) => Shutdown::Abort,
        };
        let engine = Arc::into_inner(engine).expect("its only session has ended");
        let stopped = engine.stop(how).await;
        match compared.and_then(|lost| stopped.map(|_| lost)) {
            Ok(lost) => Ok(Ok(PowerCutSurvey {
                lost,
                torn_blocks,
                redo_bytes: recovery.redo_bytes,
                rolled_back: recovery.rolled_back as u64,
            })),
            Err(error) => Broken::wrong(error).map(Err),
        }
    })
}

/// Reads every row, and returns how many acknowledged transactions are gone. All rows must be from whole transactions
/// that were begun.
async fn compare(
    engine: &Arc<KernelEngine>,
    workload: &dyn Workload,
    promises: Promises<'_>,
) -> Result<u64, EngineError> {
    let acknowledged = promises.acknowledged;
    let mut session = engine.connector()();
    let mut found = vec![0; acknowledged.len()];
    let entry = &mut |row: &[u8]| {
        let number = |at: usize| u64::from_le_bytes(row[at..at + 8].try_into().expect("8 bytes"));
        if let Some(found) = found.get_mut(number(0) as usize) {
            *found = number(NUMBER);
        }
    };
    let visited = session
        .visit(ledger_table(workload), TableShare::WHOLE, entry)
        .await;
    visited?;
    for (client, (found, last)) in found.iter().zip(promises.in_the_end).enumerate() {
        if *found > last + 1 {
            return Err(EngineError::new(
                ErrorKind::LostRows,
                format!("client {client} has {found} transactions, and came to {last} only"),
            ));
        }
    }
    let promised = found.iter().copied().map(Acknowledged::up_to);
    driver::check(&mut session, workload, promised.collect()).await?;
    let pairs = found.iter().zip(acknowledged);
    Ok(pairs
        .map(|(found, promised)| promised.saturating_sub(*found))
        .sum())
}

/// How many blocks of the datafiles are neither whole nor blank.
async fn torn_blocks(storage: &Storage, block_bytes: usize) -> Result<u64, EngineError> {
    let arena = Arena::new(block_bytes, 1)
        .map_err(|error| EngineError::failed("taking memory for a block", error))?;
    let mut torn = 0;
    for (file, device) in datafiles(storage).enumerate() {
        let blocks = device.limits().capacity_bytes / block_bytes as u64;
        for block in 0..blocks {
            let address = BlockAddress {
                file: file as u16,
                block: block as u32,
            };
            torn += u64::from(is_torn(&**device, &arena, address).await?);
        }
    }
    Ok(torn)
}

async fn is_torn(
    device: &dyn BlockDevice,
    arena: &Arc<Arena>,
    address: BlockAddress,
) -> Result<bool, EngineError> {
    let frame = arena.allocate().expect("the arena has its frame");
    let hold = frame.try_write_hold().expect("the frame is nobody else's");
    let offset = u64::from(address.block) * arena.frame_bytes() as u64;
    let holds = read_blocks(device, offset, vec![hold], Submission::Alone).await?;
    let bytes = &holds[0][..];
    let is_blank = bytes.iter().all(|byte| *byte == 0);
    Ok(!is_blank && block::verify(bytes, address).is_err())
}
