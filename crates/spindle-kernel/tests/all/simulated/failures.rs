//! I/Os that fail, each of a whole story of a database: a start after a crash, clients, a new table, an extent, a
//! checkpoint, a shutdown. What must hold then: whoever asked for a failed read gets an error and everything else goes
//! on; a failed write or flush aborts the instance; and what was acknowledged is there after the next start.

use std::sync::Arc;

use spindle_io::env::LocalFuture;
use spindle_io::sim::{FailedIo, IoFault, IoKind, Lasts, PowerCut, Stop, World};
use spindle_io::sync::{Latch, timeout};
use spindle_io::{Env, Join};
use spindle_kernel::{Instance, KernelError, KernelSettings, RowId, Session, Shutdown, Storage};

use super::crashes::{FIRST, crash_points};
use super::{
    Acknowledged, Disks, Images, SESSIONS, Scenario, check, get, recover_and_check, transact,
};

/// Rows of the new table, each of which fills a block, and all of them an extent.
const WIDE_ROWS: u64 = 512;
const WIDE_ROW_BYTES: usize = 1500;
/// What a client tries before it gives up.
const TRIES: usize = 3;
/// Nothing takes this long in virtual time, unless it hangs.
const PATIENCE_NS: u64 = 3_600_000_000_000;

/// Where the story begins.
pub struct Beginning {
    scenario: Scenario,
    images: Images,
    /// By session, the first transaction to make.
    first: [u64; SESSIONS],
}

/// A database that was crashed in the middle of transactions, so that recovery has to roll forward and back.
pub fn crashed(scenario: Scenario) -> Beginning {
    let healthy = Scenario {
        planted: None,
        ..scenario
    };
    let points = crash_points(healthy).unwrap();
    let late = points.iter().skip(points.len() / 2);
    let mut beginnings = late.map(|point| {
        let images = point.after(PowerCut::Damage(1));
        let (found, _) = recover_and_check(healthy, &images, point.promised).unwrap();
        Beginning {
            scenario: Scenario {
                transactions: 2,
                ..scenario
            },
            images,
            first: found.map(|last| last + FIRST[0]),
        }
    });
    let busy = beginnings.find(|beginning| {
        let (redo_bytes, rolled_back) = beginning.tell(None, None).unwrap().story.recovered;
        redo_bytes > 0 && rolled_back > 0
    });
    busy.expect("some crash leaves something to roll back")
}

/// What came of a story.
#[derive(Default)]
pub struct Story {
    /// The first start's error; a second one followed.
    first_start: Option<KernelError>,
    second_start: Option<KernelError>,
    /// The start rolled this many bytes forward and transactions back.
    recovered: (u64, usize),
    /// Errors of reads that clients were told of.
    unreadable: Vec<KernelError>,
    /// Why clients gave up.
    gave_up: Vec<KernelError>,
    /// Why the instance had failed when they had ended.
    failure: Option<KernelError>,
    shutdown: Option<KernelError>,
    /// The new table was acknowledged, and the row that took an extent.
    created: bool,
    extended: Option<RowId>,
}

type Told = Arc<Latch<Story>>;

/// Carries a step out again and again while a block cannot be read.
macro_rules! insist {
    ($told:expr, $step:expr) => {{
        let mut tries = 0;
        loop {
            match $step.await {
                Err(error @ KernelError::UnreadableBlock { .. }) if tries < TRIES => {
                    tries += 1;
                    $told.lock().unreadable.push(error);
                }
                result => break result,
            }
        }
    }};
}

/// Makes a transaction, from its beginning again while a block cannot be read.
async fn insist_on(
    instance: &Instance,
    session: &mut Session,
    (scenario, me, number): (Scenario, usize, u64),
    told: &Told,
) -> Result<(), KernelError> {
    let mut tries = 0;
    loop {
        match transact(instance, session, scenario, me, number).await {
            Err(error @ KernelError::UnreadableBlock { .. }) if tries < TRIES => {
                tries += 1;
                told.lock().unreadable.push(error);
                insist!(told, session.rollback())?;
            }
            done => return done,
        }
    }
}

async fn client(
    instance: Arc<Instance>,
    scenario: Scenario,
    me: usize,
    first: u64,
    promises: Acknowledged,
    told: Told,
) {
    let mut session = instance.session();
    for number in first..first + scenario.transactions {
        let outcome = async {
            if me == 0 {
                // One that is given up, for a roll-back.
                insist_on(&instance, &mut session, (scenario, me, number), &told).await?;
                insist!(told, session.rollback())?;
            }
            insist_on(&instance, &mut session, (scenario, me, number), &told).await?;
            insist!(told, session.commit())
        };
        if let Err(error) = outcome.await {
            told.lock().gave_up.push(error);
            return;
        }
        promises.lock()[me] = number;
    }
}

/// Makes a table whose extent is full, adds a row to it, and asks for a checkpoint.
async fn builder(instance: &Instance, told: &Told) -> Result<(), KernelError> {
    let fill = |number: u64, row: &mut Vec<u8>| row[..8].copy_from_slice(&number.to_le_bytes());
    let table = instance
        .create_table("wide", WIDE_ROW_BYTES, WIDE_ROWS, fill)
        .await?;
    told.lock().created = true;
    let mut session = instance.session();
    let mut row = [7; WIDE_ROW_BYTES];
    row[..8].copy_from_slice(&WIDE_ROWS.to_le_bytes());
    let added = insist!(told, session.insert_row(&table, &row))?;
    insist!(told, session.commit())?;
    told.lock().extended = Some(added);
    instance.checkpoint().await
}

async fn story(
    env: Arc<dyn Env>,
    storage: Storage,
    settings: KernelSettings,
    beginning: (Scenario, [u64; SESSIONS]),
    promises: Acknowledged,
    told: Told,
) {
    let instance = match Instance::startup(&env, &storage, &settings).await {
        Ok(instance) => instance,
        Err(error) => {
            told.lock().first_start = Some(error);
            match Instance::startup(&env, &storage, &settings).await {
                Ok(instance) => instance,
                Err(error) => {
                    told.lock().second_start = Some(error);
                    return;
                }
            }
        }
    };
    let report = instance.recovery();
    told.lock().recovered = (report.redo_bytes, report.rolled_back);
    let instance = Arc::new(instance);
    let (scenario, first) = beginning;
    let mut joins: Vec<Join> = Vec::new();
    for (me, first) in first.into_iter().enumerate().take(scenario.sessions) {
        let (instance, promises) = (Arc::clone(&instance), Arc::clone(&promises));
        let told = Arc::clone(&told);
        let start = Box::new(move || {
            Box::pin(client(instance, scenario, me, first, promises, told)) as LocalFuture
        });
        joins.push(env.spawn(&format!("client{me}"), start));
    }
    if let Err(error) = builder(&instance, &told).await {
        told.lock().gave_up.push(error);
    }
    for join in joins {
        join.ended().await.unwrap();
    }
    let failure = instance.failure();
    let how = match failure {
        None => Shutdown::Normal,
        Some(_) => Shutdown::Abort,
    };
    told.lock().failure = failure;
    let stopped = Arc::into_inner(instance).unwrap().shutdown(how).await;
    told.lock().shutdown = stopped.err();
}

/// What should not have happened.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Those who live in the story were told something else than what failed.
    Told(String),
    /// Something acknowledged was not there afterwards, or something else was.
    Lost(String),
}

/// A story told to its end, and the world it happened in.
struct Ended {
    world: World,
    disks: Disks,
    promised: [u64; SESSIONS],
    story: Story,
}

impl Beginning {
    fn settings(&self) -> KernelSettings {
        self.scenario.settings()
    }

    /// Tells the story, with an I/O that fails, and up to an I/O at which the power is cut.
    fn tell(&self, fault: Option<IoFault>, cut_at: Option<u64>) -> Result<Ended, String> {
        let mut world = World::new(self.scenario.seed);
        let env: Arc<dyn Env> = world.env();
        let disks = Disks::new(&world, self.scenario, &self.images);
        if let Some(fault) = fault {
            world.fail_io(fault);
        }
        if let Some(io) = cut_at {
            world.cut_power_at_io(io);
        }
        let before = self.first.map(|first| first - 1);
        let promises: Acknowledged = Arc::new(Latch::new(before));
        let told = Told::default();
        let (clock, beginning) = (Arc::clone(&env), (self.scenario, self.first));
        let all = story(
            env,
            disks.storage(self.scenario),
            self.settings(),
            beginning,
            Arc::clone(&promises),
            Arc::clone(&told),
        );
        let ended = world.run(async move { timeout(&*clock, PATIENCE_NS, all).await });
        match ended {
            Ok(Ok(())) | Err(Stop::PowerCut { .. }) => {}
            Ok(Err(_)) => return Err("it hangs".to_string()),
            Err(stop) => return Err(stop.to_string()),
        }
        let story = std::mem::take(&mut *told.lock());
        let promised = *promises.lock();
        Ok(Ended {
            world,
            disks,
            promised,
            story,
        })
    }

    /// I/Os of the story when none fails.
    pub fn ios(&self) -> u64 {
        let Ended { world, story, .. } = self.tell(None, None).unwrap();
        assert!(story.shutdown.is_none() && story.gave_up.is_empty());
        assert!(story.created && story.extended.is_some());
        world.io_count()
    }

    /// Tells the story with an I/O that fails. Returns what failed, or what should not have happened.
    pub fn fail(&self, fault: IoFault) -> Result<FailedIo, Wrong> {
        let mut ended = self.tell(Some(fault), None).map_err(Wrong::Told)?;
        let failed = ended.world.failed_io();
        let failed = failed.ok_or_else(|| Wrong::Told("nothing failed".to_string()))?;
        // First: a lost commit says more than an abort that did not come.
        self.check_cuts(&ended, fault)?;
        check_told(&ended.story, self, ended.promised, fault.lasts, failed).map_err(Wrong::Told)?;
        if fault.lasts == Lasts::Once {
            self.start_again(&mut ended)
                .map_err(|loss| Wrong::Lost(format!("started again: {loss}")))?;
            self.check_images(&ended.disks.after(PowerCut::LoseAll), &ended)
                .map_err(|loss| Wrong::Lost(format!("started again, then LoseAll: {loss}")))?;
        }
        Ok(failed)
    }

    /// Tells the story up to a power cut some I/Os after the one that fails.
    pub fn fail_and_cut(&self, fault: IoFault, ios_after: u64) -> Result<(), Wrong> {
        let cut_at = Some(fault.io + ios_after);
        let ended = self.tell(Some(fault), cut_at).map_err(Wrong::Told)?;
        self.check_cuts(&ended, fault)
    }

    fn check_cuts(&self, ended: &Ended, fault: IoFault) -> Result<(), Wrong> {
        let damage = PowerCut::Damage(fault.io);
        for cut in [PowerCut::LoseAll, PowerCut::KeepAll, damage] {
            self.check_images(&ended.disks.after(cut), ended)
                .map_err(|loss| Wrong::Lost(format!("{cut:?}: {loss}")))?;
        }
        Ok(())
    }

    /// Recovers on healthy disks and looks at everything that was acknowledged.
    fn check_images(&self, images: &Images, ended: &Ended) -> Result<(), String> {
        let mut world = World::new(self.scenario.seed ^ 0xC0FFEE);
        let disks = Disks::new(&world, self.scenario, images);
        self.check_disks(&mut world, &disks, ended.promised, &ended.story)
    }

    /// Starts on the very disks, which know of the failure and have not lost their power since.
    fn start_again(&self, ended: &mut Ended) -> Result<(), String> {
        self.check_disks(&mut ended.world, &ended.disks, ended.promised, &ended.story)
    }

    fn check_disks(
        &self,
        world: &mut World,
        disks: &Disks,
        promised: [u64; SESSIONS],
        story: &Story,
    ) -> Result<(), String> {
        let (env, storage, settings) = (world.env(), disks.storage(self.scenario), self.settings());
        let (scenario, created, extended) = (self.scenario, story.created, story.extended);
        let looked = world.run(async move {
            let words = |error: KernelError| error.to_string();
            let env: Arc<dyn Env> = env;
            let instance = Instance::startup(&env, &storage, &settings)
                .await
                .map_err(words)?;
            check(&instance, scenario, promised).await?;
            check_wide(&instance, created, extended).await?;
            instance.shutdown(Shutdown::Normal).await.map_err(words)
        });
        looked.map_err(|stop| stop.to_string())?
    }
}

async fn check_wide(
    instance: &Instance,
    created: bool,
    extended: Option<RowId>,
) -> Result<(), String> {
    let Ok(table) = instance.table("wide") else {
        let lost = "the new table was acknowledged and is gone".to_string();
        return if created { Err(lost) } else { Ok(()) };
    };
    let mut session = instance.session();
    let mut wrong = None;
    let mut seen = 0;
    let all = session.scan(&table, 0, WIDE_ROWS, |row, bytes| {
        if get(bytes, 0) != seen {
            wrong.get_or_insert(row);
        }
        seen += 1;
    });
    all.await.map_err(|error| error.to_string())?;
    if wrong.is_some() || seen != WIDE_ROWS as i64 {
        return Err(format!(
            "the new table has {seen} rows, the first wrong one at {wrong:?}"
        ));
    }
    if let Some(row) = extended {
        let number = session.read_row(row, |bytes| get(bytes, 0)).await;
        if number != Ok(WIDE_ROWS as i64) {
            return Err(format!("the row of the new extent: {number:?}"));
        }
    }
    Ok(())
}

fn names(error: &KernelError, failed: FailedIo) -> Result<(), String> {
    let words = error.to_string();
    if words.contains(&format!("disk{}: ", failed.disk)) {
        Ok(())
    } else {
        Err(format!("disk{} failed, but: {words}", failed.disk))
    }
}

/// Compares what those who live in the story were told with what failed.
fn check_told(
    story: &Story,
    beginning: &Beginning,
    promised: [u64; SESSIONS],
    lasts: Lasts,
    failed: FailedIo,
) -> Result<(), String> {
    if let Some(error) = &story.first_start {
        names(error, failed)?;
        return match (&story.second_start, lasts) {
            (Some(error), Lasts::Once) => Err(format!("the second start, too: {error}")),
            (Some(error), Lasts::ForEver) => names(error, failed),
            (None, _) => went_well(story, beginning, promised, lasts),
        };
    }
    if failed.kind == IoKind::Read {
        if story.unreadable.is_empty() && lasts == Lasts::Once {
            return Err("a read failed and nobody was told".to_string());
        }
        for error in story.unreadable.iter().chain(&story.gave_up) {
            names(error, failed)?;
        }
        return went_well(story, beginning, promised, lasts);
    }
    match (&story.failure, &story.shutdown) {
        (Some(error @ KernelError::Aborted { .. }), _) => names(error, failed),
        (None, Some(error)) => names(error, failed),
        other => Err(format!("a write or a flush failed, and then: {other:?}")),
    }
}

/// Nothing but what cannot be read for ever is missing.
fn went_well(
    story: &Story,
    beginning: &Beginning,
    promised: [u64; SESSIONS],
    lasts: Lasts,
) -> Result<(), String> {
    if let Some(error) = story.failure.as_ref().or(story.shutdown.as_ref()) {
        return Err(format!("the instance failed: {error}"));
    }
    let all = beginning.scenario.promised_after(beginning.first);
    let complete = promised == all && story.extended.is_some() && story.gave_up.is_empty();
    if lasts == Lasts::Once && !complete {
        return Err(format!("not all was done: {:?}", story.gave_up));
    }
    Ok(())
}
