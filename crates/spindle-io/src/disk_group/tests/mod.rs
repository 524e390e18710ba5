//! Groups in the simulated world. A story is told once; at many of its I/Os it is noted what the disks would be after a
//! power cut, and what the clients had been promised. Then each of these ends is mounted and compared. A story returns
//! what it found wrong, so that planted bugs can be demanded to be found.

mod basics;
mod crashes;
mod failures;
mod membership;

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;

use super::planted::{self, Planted, plant};
use super::*;
use crate::arena::Arena;
use crate::device::{BlockDevice, IoError, Operation, Request, Submission};
use crate::env::Env;
use crate::sim::{DiskImage, DiskMoment, DiskTiming, PowerCut, SimDisk, World};
use crate::sync::Latch;

pub(super) const MIB: u64 = 1 << 20;
pub(super) const BLOCK: u64 = 4096;
const SECTOR: usize = 512;

/// A world with disks.
pub(super) struct Room {
    pub(super) world: World,
    pub(super) disks: Vec<Arc<SimDisk>>,
}

impl Room {
    pub(super) fn new(seed: u64, images: Vec<DiskImage>) -> Room {
        let world = World::new(seed);
        let disk =
            |(number, image)| SimDisk::new(world.env(), number, image, 512, DiskTiming::default());
        let disks = (0..).zip(images).map(disk).collect();
        Room { world, disks }
    }

    pub(super) fn blank(seed: u64, disks: usize, mib: u64) -> Room {
        Room::new(seed, vec![DiskImage::zeroed((mib * MIB) as usize); disks])
    }

    pub(super) fn env(&self) -> Arc<dyn Env> {
        self.world.env()
    }

    pub(super) fn devices(&self) -> Vec<Arc<dyn BlockDevice>> {
        self.disks
            .iter()
            .map(|disk| Arc::clone(disk) as Arc<dyn BlockDevice>)
            .collect()
    }

    /// The disks as members: `d0`, `d1`, ..., each a failure group.
    pub(super) fn members(&self) -> Vec<Disk> {
        let member = |(number, device)| Disk {
            name: format!("d{number}"),
            failure_group: None,
            device,
        };
        self.devices().into_iter().enumerate().map(member).collect()
    }

    pub(super) fn run<T: 'static>(&mut self, story: impl Future<Output = T> + 'static) -> T {
        self.world.run(story).unwrap()
    }

    pub(super) fn images(&self, cut: PowerCut) -> Vec<DiskImage> {
        self.disks
            .iter()
            .map(|disk| disk.image_after(cut))
            .collect()
    }
}

pub(super) fn options(redundancy: Redundancy) -> DiskGroupOptions {
    DiskGroupOptions {
        allocation_unit_bytes: MIB,
        redundancy,
        identity: None,
    }
}

/// The sectors of a block's version; version 0 is zero.
fn stamp(block: u64, version: u64, bytes: &mut [u8]) {
    for (number, sector) in bytes.chunks_exact_mut(SECTOR).enumerate() {
        sector.fill(0);
        if version > 0 {
            let words = [block + 1, version, number as u64];
            for (field, word) in sector.chunks_exact_mut(8).zip(words) {
                field.copy_from_slice(&word.to_le_bytes());
            }
            sector[SECTOR - 1] = version as u8;
        }
    }
}

pub(super) async fn write(
    file: &Arc<dyn BlockDevice>,
    block: u64,
    version: u64,
    durable: bool,
) -> Result<(), IoError> {
    let arena = Arena::new(BLOCK as usize, 1).unwrap();
    let mut hold = arena.allocate().unwrap().try_write_hold().unwrap();
    stamp(block, version, &mut hold);
    let from = vec![hold.share(BLOCK as usize)];
    let request = Request::write(block * BLOCK, from, durable, Submission::Batched);
    file.submit(request).await.result
}

/// The version of each sector of a block; `Err` with words for bytes that no version has.
pub(super) async fn read(
    file: &Arc<dyn BlockDevice>,
    block: u64,
) -> Result<Result<Vec<u64>, String>, IoError> {
    let arena = Arena::new(BLOCK as usize, 1).unwrap();
    let hold = arena.allocate().unwrap().try_write_hold().unwrap();
    let outcome = file
        .submit(Request::read(block * BLOCK, vec![hold], Submission::Alone))
        .await;
    outcome.result?;
    let Operation::Read(into) = outcome.operation else {
        panic!("a read comes back as a read")
    };
    let word =
        |sector: &[u8], at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().unwrap());
    let (mut versions, mut expected) = (Vec::new(), vec![0; BLOCK as usize]);
    for sector in into[0].chunks_exact(SECTOR) {
        versions.push(word(sector, 8));
    }
    for (number, version) in versions.iter().enumerate() {
        let mut whole = vec![0; BLOCK as usize];
        stamp(block, *version, &mut whole);
        let range = number * SECTOR..(number + 1) * SECTOR;
        expected[range.clone()].copy_from_slice(&whole[range]);
    }
    if expected[..] != into[0][..] {
        return Ok(Err(format!(
            "block {block} holds what was never written there (it says block {})",
            word(&into[0], 0)
        )));
    }
    Ok(Ok(versions))
}

/// What clients know of one block.
#[derive(Clone, Debug)]
struct Known {
    /// Versions that a crash may leave, sector by sector.
    allowed: Vec<u64>,
    /// What a read finds now; unknown while it is written, and after a failure.
    latest: Option<u64>,
}

impl Default for Known {
    fn default() -> Known {
        Known {
            allowed: vec![0],
            latest: Some(0),
        }
    }
}

/// What clients have been promised.
#[derive(Clone, Default)]
pub(super) struct Promised {
    blocks: BTreeMap<(String, u64), Known>,
    pub(super) wrong: Vec<String>,
    pub(super) refused: u64,
    pub(super) writes: u64,
}

pub(super) type Model = Arc<Latch<Promised>>;

/// A client that writes and reads blocks of its own.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) file: Arc<dyn BlockDevice>,
    pub(super) name: String,
    /// Its first block, and the step to the next.
    pub(super) first: u64,
    pub(super) step: u64,
    pub(super) blocks: u64,
    pub(super) model: Model,
    /// Whether each write is durable; else it flushes now and then.
    pub(super) durable: bool,
}

impl Client {
    fn update(&self, block: u64, change: impl FnOnce(&mut Known)) {
        let mut model = self.model.lock();
        change(model.blocks.entry((self.name.clone(), block)).or_default());
    }

    fn wrong(&self, what: String) {
        self.model.lock().wrong.push(what);
    }

    fn refused(&self) {
        self.model.lock().refused += 1;
    }

    async fn write(&self, block: u64, version: u64) {
        self.update(block, |known| {
            known.allowed.push(version);
            known.latest = None;
        });
        match write(&self.file, block, version, self.durable).await {
            Ok(()) => {
                self.model.lock().writes += 1;
                self.update(block, |known| {
                    known.latest = Some(version);
                    if self.durable {
                        known.allowed = vec![version];
                    }
                });
            }
            Err(_) => self.refused(),
        }
    }

    async fn read(&self, block: u64) {
        match read(&self.file, block).await {
            Err(_) => self.refused(),
            Ok(Err(words)) => self.wrong(words),
            Ok(Ok(versions)) => {
                let mut expected = None;
                self.update(block, |known| expected = known.latest);
                let expected =
                    expected.filter(|latest| versions.iter().any(|version| version != latest));
                if let Some(latest) = expected {
                    self.wrong(format!(
                        "{} block {block}: read {versions:?}, written {latest}",
                        self.name
                    ));
                }
            }
        }
    }

    async fn flush(&self) {
        match self.file.submit(Request::flush()).await.result {
            Err(_) => self.refused(),
            Ok(()) => {
                for number in 0..self.blocks {
                    self.update(self.first + number * self.step, |known| {
                        if let Some(latest) = known.latest {
                            known.allowed = vec![latest];
                        }
                    });
                }
            }
        }
    }

    /// Works for this many steps.
    pub(super) async fn work(&self, chance: &mut Xoshiro256PlusPlus, steps: u64) {
        for _ in 0..steps {
            let block = self.first + chance.next_u64() % self.blocks * self.step;
            match chance.next_u64() % 10 {
                0..=5 => self.write(block, chance.next_u64() >> 1 | 1).await,
                6 if !self.durable => self.flush().await,
                _ => self.read(block).await,
            }
        }
    }
}

/// Starts clients on a file and returns what they end with.
pub(super) fn start(
    env: &Arc<dyn Env>,
    file: &Arc<dyn BlockDevice>,
    name: &str,
    model: &Model,
    steps: u64,
) -> Vec<crate::Join> {
    let total = file.limits().capacity_bytes / BLOCK;
    let client = |number: u64| {
        let client = Client {
            file: Arc::clone(file),
            name: name.to_owned(),
            first: number * 7,
            step: total / 13,
            blocks: 12,
            model: Arc::clone(model),
            durable: number.is_multiple_of(2),
        };
        let mut chance = env.rng(number);
        env.spawn(
            "client",
            Box::new(move || Box::pin(async move { client.work(&mut chance, steps).await })),
        )
    };
    (0..4).map(client).collect()
}

pub(super) async fn ended(joins: Vec<crate::Join>) {
    for join in joins {
        join.ended().await.unwrap();
    }
}

/// One end of a story: what the disks were at one of its I/Os, and what had been promised.
pub(super) struct End {
    io: u64,
    moments: Vec<DiskMoment>,
    promised: Promised,
}

/// Of the ends of a story, and of the stories of a kind, only a sample is judged: all of them in the soak
/// (`scripts/soak-layouts`), and where a planted bug is to be found.
pub(super) fn one_in() -> u64 {
    let all = std::env::var_os("SPINDLE_SOAK").is_some() || planted::is_any();
    if all { 1 } else { 4 }
}

/// Notes the ends of a story from now on, every `stride` I/Os, or fewer: see [`one_in`].
pub(super) fn watch_some(room: &Room, model: &Model, stride: u64) -> Arc<Latch<Vec<End>>> {
    watch(room, model, stride.saturating_mul(one_in()))
}

/// Notes the ends of a story from now on, every `stride` I/Os.
pub(super) fn watch(room: &Room, model: &Model, stride: u64) -> Arc<Latch<Vec<End>>> {
    let ends: Arc<Latch<Vec<End>>> = Arc::default();
    let (into, disks, model) = (Arc::clone(&ends), room.disks.clone(), Arc::clone(model));
    room.world.observe_io(move |io| {
        if io.is_multiple_of(stride) {
            let end = End {
                io,
                moments: disks.iter().map(|disk| disk.moment()).collect(),
                promised: model.lock().clone(),
            };
            into.lock().push(end);
        }
    });
    ends
}

/// The ends noted so far.
pub(super) fn noted(ends: &Latch<Vec<End>>) -> Vec<End> {
    std::mem::take(&mut ends.lock())
}

/// Mounts every end, after three kinds of power cut; the first thing that is wrong.
pub(super) fn judge(ends: &[End], force: bool) -> Option<String> {
    for end in ends {
        for cut in [
            PowerCut::Damage(end.io),
            PowerCut::LoseAll,
            PowerCut::KeepAll,
        ] {
            let images = end
                .moments
                .iter()
                .map(|moment| moment.image_after(cut))
                .collect();
            if let Some(wrong) = judge_end(images, &end.promised, force) {
                return Some(format!("after {cut:?} at I/O {}: {wrong}", end.io));
            }
        }
    }
    None
}

/// Mounts what a crash left: every block must be as promised, and every copy equal.
pub(super) fn judge_end(
    images: Vec<DiskImage>,
    promised: &Promised,
    force: bool,
) -> Option<String> {
    let mut room = Room::new(5, images);
    let (env, devices, promised) = (room.env(), room.devices(), promised.clone());
    room.run(async move {
        let options = MountOptions {
            force,
            preferred_failure_group: None,
        };
        let group = match DiskGroup::mount_with(&env, &devices, &options).await {
            Ok(group) => group,
            Err(error) => return Some(format!("the group does not mount: {error}")),
        };
        let wrong = judge_group(&group, &promised).await;
        if wrong.is_some() {
            return wrong;
        }
        group.dismount().await.err().map(|error| error.to_string())
    })
}

/// As [`judge_end`], of a mounted group.
pub(super) async fn judge_group(group: &DiskGroup, promised: &Promised) -> Option<String> {
    let report = match group.check().await {
        Ok(report) => report,
        Err(error) => return Some(format!("the check: {error}")),
    };
    let serious = |finding: &&GroupFinding| !matches!(finding, GroupFinding::Missing { .. });
    if let Some(finding) = report.findings.iter().find(serious) {
        return Some(format!("the check finds: {finding}"));
    }
    let mut files: BTreeMap<String, Arc<dyn BlockDevice>> = BTreeMap::new();
    for ((name, block), known) in &promised.blocks {
        let file = match files.get(name) {
            Some(file) => Arc::clone(file),
            None => match group.open_file(name) {
                Ok(file) => file,
                Err(error) => return Some(format!("a file is lost: {error}")),
            },
        };
        files.insert(name.clone(), Arc::clone(&file));
        let versions = match read(&file, *block).await {
            Err(error) => return Some(format!("a block is lost: {error}")),
            Ok(Err(words)) => return Some(words),
            Ok(Ok(versions)) => versions,
        };
        if versions
            .iter()
            .any(|version| !known.allowed.contains(version))
        {
            return Some(format!(
                "{name} block {block}: {versions:?}, promised {:?}",
                known.allowed
            ));
        }
    }
    None
}

/// Tells a story with a bug planted, which it must find.
pub(super) fn must_find(planted: Planted, story: impl Fn(u64) -> Option<String>) {
    plant(Some(planted));
    let found = (1..=4).find_map(story);
    plant(None);
    assert!(found.is_some(), "{planted:?} was not found");
}

/// A group of the room's disks with one file.
pub(super) async fn with_file(
    env: &Arc<dyn Env>,
    disks: Vec<Disk>,
    redundancy: Redundancy,
    mib: u64,
    striping: Striping,
) -> DiskGroup {
    let group = DiskGroup::create(env, "data", disks, options(redundancy))
        .await
        .unwrap();
    let template = Template {
        striping,
        redundancy: None,
    };
    let creation = group
        .begin_file("users", mib * MIB, template)
        .await
        .unwrap();
    creation.commit().await.unwrap();
    group
}
