//! `spindle diskgroup`: disk groups made, shown, changed and checked by hand, on block devices and files. What is said
//! to people is returned; `cli` prints it. Nothing that holds data becomes a disk unless it is named after `--erase`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use spindle_io::disk_group::{
    Disk, DiskGroup, DiskGroupError, GoOn, MountOptions, Options, Redundancy,
};
use spindle_io::real::create::OdmCreation;
use spindle_io::real::facts::{self, DirectProbe};
use spindle_io::real::{Caching, FileError, Queue, RealEnv, block_on};
use spindle_io::{BlockDevice, Env};
use spindle_layout::guard::{Guard, Refusal, TakenDevice, Want};
use spindle_layout::tool::Tools;
use spindle_layout::{KnownDevice, LayoutError};
use spindle_system::Storage;
use spindle_system::SystemTree;

use spindle_text::quantity::{parse_size, size_text};
use spindle_text::word::Word;

/// What to do with a disk group.
#[derive(Subcommand)]
pub enum DiskGroupCommand {
    /// Make a group of block devices and files.
    #[command(
        after_help = "Example:\n  spindle diskgroup create data --redundancy normal --size 1GiB a.disk:left b.disk:right"
    )]
    Create {
        /// The group's name.
        name: String,
        #[command(flatten)]
        new: NewDisks,
        /// Copies of each extent.
        #[arg(long, value_parser = word::<Redundancy>(), default_value = "external")]
        redundancy: Redundancy,
        /// Allocation unit: 1, 2, 4, 8, 16, 32 or 64 MiB.
        #[arg(long, value_parser = size, default_value = "4MiB", value_name = "SIZE")]
        allocation_unit: u64,
    },
    /// Show a group: its disks and files, and where the files lie.
    Show {
        #[command(flatten)]
        group: Group,
    },
    /// Add disks to a group and spread its files over them.
    Add {
        #[command(flatten)]
        group: Group,
        #[command(flatten)]
        new: NewDisks,
        #[command(flatten)]
        power: Power,
    },
    /// Empty a disk and take it out of its group.
    Drop {
        /// The disk's name in the group, as `show` shows it.
        disk: String,
        #[command(flatten)]
        group: Group,
        #[command(flatten)]
        power: Power,
    },
    /// Spread every file evenly over the disks.
    Rebalance {
        #[command(flatten)]
        group: Group,
        #[command(flatten)]
        power: Power,
    },
    /// Compare all copies of every extent, and the metadata of all disks. Ends with 1 when something is wrong.
    Check {
        #[command(flatten)]
        group: Group,
    },
}

/// The disks of a group that is there.
#[derive(Args)]
pub struct Group {
    /// A disk of the group, a block device or a file; give all of them.
    #[arg(long = "disk", value_name = "PATH", required = true)]
    disks: Vec<PathBuf>,
    /// Mount although the disks that are missing may have newer metadata.
    #[arg(long)]
    force: bool,
}

/// Disks that join.
#[derive(Args)]
pub struct NewDisks {
    /// A block device or file, and the failure group it belongs to (alone, if none is given).
    #[arg(value_name = "PATH[:FAILURE_GROUP]", required = true)]
    new: Vec<String>,
    /// Files that do not exist are made of this size.
    #[arg(long, value_parser = size, value_name = "SIZE")]
    size: Option<u64>,
    /// A path among these whose data are lost; without it, only what is empty is taken.
    #[arg(long, value_name = "PATH")]
    erase: Vec<PathBuf>,
}

/// How fast extents are moved.
#[derive(Args)]
pub struct Power {
    /// Extents moved at the same time, 0 (none) to 11.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    power: u32,
}

/// Takes a word on the command line.
fn word<W: Word + Send + Sync>() -> impl TypedValueParser<Value = W> {
    let words = W::ALLOWED.iter().zip(W::SAYS);
    let possible = words
        .map(|((word, _), says)| PossibleValue::new(*word).help(says.trim().trim_end_matches('.')));
    PossibleValuesParser::new(possible).map(|word| W::of_word(&word).expect("a possible value"))
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| format!("`{text}` is no size; write 64MiB, 1GiB, ..."))
}

/// What is said, and whether all is well.
pub struct Answer {
    /// For standard output.
    pub text: String,
    /// Whether the check found nothing.
    pub is_well: bool,
    /// What could not be looked at, for standard error.
    pub unseen: Option<String>,
    /// Whether it ended early because that was asked for.
    pub is_interrupted: bool,
}

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The group.
    #[error(transparent)]
    Group(#[from] DiskGroupError),
    /// A file or device.
    #[error(transparent)]
    File(#[from] FileError),
    /// A block device or file that must not be written to.
    #[error(transparent)]
    Refused(Refusal),
    /// A disk that may hold data.
    #[error("{} is not empty: it bears {content}, which would be lost; to use it all the same, add --erase {}", path.display(), path.display())]
    NotEmpty {
        /// The path.
        path: PathBuf,
        /// What is on it.
        content: String,
    },
    /// A device, or one that came to be another.
    #[error(transparent)]
    Device(#[from] LayoutError),
    /// A file that is not there.
    #[error("{} does not exist: give --size to have it made", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
    },
    /// The person asked for it.
    #[error("interrupted")]
    Interrupted,
    /// The system.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// The system's words.
        source: std::io::Error,
    },
}

impl From<Refusal> for CommandError {
    /// What an experiment says in `erase`, this command is told by an option.
    fn from(refusal: Refusal) -> CommandError {
        match refusal {
            Refusal::NotEmpty { path, content, .. } => CommandError::NotEmpty { path, content },
            other => CommandError::Refused(other),
        }
    }
}

/// A disk holds metadata and a few allocation units at the least.
const LEAST_DEVICE_BYTES: u64 = 16 << 20;

impl DiskGroupCommand {
    /// Files that the command makes.
    pub fn files_to_make(&self) -> Vec<PathBuf> {
        let (DiskGroupCommand::Create { new, .. } | DiskGroupCommand::Add { new, .. }) = self
        else {
            return Vec::new();
        };
        let paths = new.new.iter().map(|text| split(text).0);
        paths.filter(|path| !path.exists()).collect()
    }
}

/// Does what was asked; once `interrupted`, it ends after the extents that are under way, and leaves no file that is
/// not a disk.
pub fn carry_out(
    command: DiskGroupCommand,
    interrupted: &Arc<AtomicBool>,
) -> Result<Answer, CommandError> {
    let env: Arc<dyn Env> = RealEnv::new(1);
    block_on(answer(&env, command, interrupted))
}

async fn answer(
    env: &Arc<dyn Env>,
    command: DiskGroupCommand,
    interrupted: &Arc<AtomicBool>,
) -> Result<Answer, CommandError> {
    let go_on: GoOn = {
        let interrupted = Arc::clone(interrupted);
        Arc::new(move || !interrupted.load(Ordering::Relaxed))
    };
    let mut unseen = None;
    let (group, mut text, mut is_well) = match command {
        DiskGroupCommand::Create {
            name,
            new,
            redundancy,
            allocation_unit,
        } => {
            let options = options(redundancy, allocation_unit)?;
            let (group, not_seen) = create(env, &name, &new, options, interrupted).await?;
            unseen = not_seen;
            (group, String::new(), true)
        }
        DiskGroupCommand::Show { group } => (mount(env, &group).await?, String::new(), true),
        DiskGroupCommand::Rebalance { group, power } => {
            let group = mount(env, &group).await?;
            let text = rebalance(&group, power.power, &go_on).await?;
            (group, text, true)
        }
        DiskGroupCommand::Add { group, new, power } => {
            let group = mount(env, &group).await?;
            unseen = match add(&group, &new, interrupted).await {
                Ok(unseen) => unseen,
                Err(error) => {
                    // The first error is the one to tell.
                    let _ = group.dismount().await;
                    return Err(error);
                }
            };
            let text = rebalance(&group, power.power, &go_on).await?;
            (group, text, true)
        }
        DiskGroupCommand::Drop { disk, group, power } => {
            let group = mount(env, &group).await?;
            group.drop_disk(&disk).await?;
            let text = rebalance(&group, power.power, &go_on).await?;
            (group, text, true)
        }
        DiskGroupCommand::Check { group } => {
            let group = mount(env, &group).await?;
            let (text, is_well) = check(&group, &*go_on).await?;
            (group, text, is_well)
        }
    };
    if is_well {
        text += &describe(&group);
    }
    if let Err(error) = group.dismount().await {
        is_well = false;
        let _ = writeln!(text, "{error}");
    }
    Ok(Answer {
        text,
        is_well,
        unseen,
        is_interrupted: !go_on(),
    })
}

fn caching_of(path: &Path) -> Result<Caching, FileError> {
    Ok(match facts::direct_probe(path)? {
        DirectProbe::Direct => Caching::Direct,
        DirectProbe::NotDirect { .. } => Caching::Buffered,
    })
}

fn open(path: &Path) -> Result<Arc<dyn BlockDevice>, CommandError> {
    let device = KnownDevice::look(path)?;
    Ok(Arc::new(device.open(caching_of(path)?, Queue::sync())?))
}

async fn mount(env: &Arc<dyn Env>, group: &Group) -> Result<DiskGroup, CommandError> {
    let devices: Result<Vec<_>, _> = group.disks.iter().map(|path| open(path)).collect();
    let options = MountOptions {
        force: group.force,
        preferred_failure_group: None,
    };
    Ok(DiskGroup::mount_with(env, &devices?, &options).await?)
}

async fn create(
    env: &Arc<dyn Env>,
    name: &str,
    new: &NewDisks,
    options: Options,
    interrupted: &AtomicBool,
) -> Result<(DiskGroup, Option<String>), CommandError> {
    let mut opened = open_new(name, 0, new, interrupted)?;
    let disks = std::mem::take(&mut opened.disks);
    let group = DiskGroup::create(env, name, disks, options).await?;
    opened.made.clear();
    Ok((group, opened.unseen.take()))
}

/// Adds disks to a group. Returns what could not be looked at.
async fn add(
    group: &DiskGroup,
    new: &NewDisks,
    interrupted: &AtomicBool,
) -> Result<Option<String>, CommandError> {
    let disks = group.describe().disks;
    let first = disks.last().map_or(0, |disk| disk.number + 1);
    let mut opened = open_new(group.name(), first, new, interrupted)?;
    group.add_disks(std::mem::take(&mut opened.disks)).await?;
    opened.made.clear();
    Ok(opened.unseen.take())
}

fn options(redundancy: Redundancy, allocation_unit_bytes: u64) -> Result<Options, CommandError> {
    let identity =
        spindle_run::layout_targets::draw_identity().map_err(|source| CommandError::System {
            action: "draw an identity from /dev/urandom".to_owned(),
            source,
        })?;
    Ok(Options {
        allocation_unit_bytes,
        redundancy,
        identity: Some(identity),
    })
}

/// Disks that are to join, opened.
struct NewlyOpened {
    disks: Vec<Disk>,
    /// Block devices, which are nobody else's as long as these live.
    _taken: Vec<TakenDevice>,
    /// What could not be looked at.
    unseen: Option<String>,
    /// Files that were made and are no disks yet: they go with this.
    made: Vec<PathBuf>,
}

impl Drop for NewlyOpened {
    fn drop(&mut self) {
        for path in &self.made {
            // The error that led here is the one to tell.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A path, and the failure group behind it.
fn split(text: &str) -> (PathBuf, Option<String>) {
    match text.rsplit_once(':') {
        // Names below /dev/disk/by-path have colons of their own.
        Some((path, failure_group)) if !Path::new(text).exists() => {
            (PathBuf::from(path), Some(failure_group.to_owned()))
        }
        _ => (PathBuf::from(text), None),
    }
}

/// Opens devices and files that are to join, after a look at who uses them and what they hold.
fn open_new(
    group: &str,
    first: u16,
    new: &NewDisks,
    interrupted: &AtomicBool,
) -> Result<NewlyOpened, CommandError> {
    let mut opened = NewlyOpened {
        disks: Vec::new(),
        _taken: Vec::new(),
        unseen: None,
        made: Vec::new(),
    };
    for (number, text) in (first..).zip(&new.new) {
        let (path, failure_group) = split(text);
        if !path.exists() {
            let bytes = new
                .size
                .ok_or_else(|| CommandError::NoFile { path: path.clone() })?;
            let mut creation = OdmCreation::begin(&path, bytes)?;
            creation.fill(|_, piece| match interrupted.load(Ordering::Relaxed) {
                true => Err(CommandError::Interrupted),
                false => {
                    piece.fill(0);
                    Ok(())
                }
            })?;
            creation.commit()?;
            opened.made.push(path.clone());
        }
        let device = opened.take(&path, new)?;
        opened.disks.push(Disk {
            name: format!("{group}_{number:04}"),
            failure_group,
            device,
        });
    }
    Ok(opened)
}

impl NewlyOpened {
    /// Looks at a device or file and opens it: that which was looked at, and nothing else.
    fn take(&mut self, path: &Path, new: &NewDisks) -> Result<Arc<dyn BlockDevice>, CommandError> {
        let (tree, tools) = (SystemTree::default(), Tools::new());
        let guard = Guard::new(&tree, &tools);
        let erase: Vec<String> = new
            .erase
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let is_block_device = path
            .metadata()
            .is_ok_and(|metadata| matches!(Storage::of(&metadata), Some(Storage::Device(_))));
        if !is_block_device {
            let may_erase = new.erase.iter().any(|named| named == path);
            let looked = guard.look_at_file(path, may_erase)?;
            let device = looked.device.open(caching_of(path)?, Queue::sync())?;
            // Whoever opened it meanwhile is seen now.
            self.unseen = guard.look_at_file(path, may_erase)?.unseen;
            return Ok(Arc::new(device));
        }
        let taken = guard.claim(&Want {
            path,
            least_bytes: LEAST_DEVICE_BYTES,
            erase: &erase,
        })?;
        self.unseen = taken.state().unseen.clone();
        // The device that was examined, whatever its path means by now.
        let device = taken.held().known();
        let device = device.open(caching_of(device.path())?, Queue::sync())?;
        self._taken.push(taken);
        Ok(Arc::new(device))
    }
}

async fn rebalance(group: &DiskGroup, power: u32, go_on: &GoOn) -> Result<String, CommandError> {
    let done = group.rebalance_while(power, go_on).await?;
    let mut text = format!(
        "{} extents moved, {}\n",
        done.extents,
        size_text(done.bytes)
    );
    if done.disks_removed > 0 {
        let _ = writeln!(text, "{} disk(s) have left the group", done.disks_removed);
    }
    Ok(text)
}

async fn check(
    group: &DiskGroup,
    go_on: &(dyn Fn() -> bool + Send + Sync),
) -> Result<(String, bool), CommandError> {
    let report = group.check_while(go_on).await?;
    let mut text = format!(
        "{} extents compared, {} read\n",
        report.extents,
        size_text(report.bytes)
    );
    for finding in &report.findings {
        let _ = writeln!(text, "{finding}");
    }
    Ok((text, report.findings.is_empty()))
}

fn describe(group: &DiskGroup) -> String {
    let group = group.describe();
    let mut text = format!(
        "disk group {} ({}), {} redundancy, allocation unit {}\n",
        group.name,
        group.id,
        group.redundancy.as_str(),
        size_text(group.allocation_unit_bytes)
    );
    let mut disks = table(&[
        "disk",
        "failure group",
        "state",
        "size",
        "used",
        "free",
        "device",
    ]);
    for disk in &group.disks {
        disks.add_row([
            disk.name.clone(),
            disk.failure_group.clone(),
            disk.state.to_owned(),
            size_text(disk.capacity_bytes),
            size_text(disk.used_bytes),
            size_text(disk.free_bytes),
            disk.device.clone().unwrap_or_default(),
        ]);
    }
    let mut files = table(&[
        "file",
        "size",
        "striping",
        "redundancy",
        "extents",
        "allocation units by disk",
    ]);
    for file in &group.files {
        let units = file
            .allocation_units
            .iter()
            .map(|(disk, units)| format!("{disk}: {units}"));
        files.add_row([
            file.name.clone(),
            size_text(file.bytes),
            file.striping.to_string(),
            file.redundancy.as_str().to_owned(),
            file.extents.to_string(),
            units.collect::<Vec<_>>().join(", "),
        ]);
    }
    let _ = writeln!(text, "{disks}");
    if !group.files.is_empty() {
        let _ = writeln!(text, "{files}");
    }
    text
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: DiskGroupCommand,
    }

    fn said(line: &str) -> Result<Answer, String> {
        let words = std::iter::once("diskgroup").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        carry_out(line.command, &Arc::default()).map_err(|error| error.to_string())
    }

    fn text(line: &str) -> String {
        let answer = said(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(answer.is_well, "{line}: {}", answer.text);
        answer.text
    }

    #[test]
    fn a_group_is_made_shown_changed_and_checked() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let (a, b, c) = (path("a"), path("b"), path("c"));
        let made = text(&format!(
            "create data --redundancy normal --allocation-unit 1MiB --size 12MiB {a}:left {b}:right"
        ));
        assert!(
            made.contains("normal redundancy, allocation unit 1MiB"),
            "{made}"
        );
        assert!(made.contains("data_0001"), "{made}");
        let shown = text(&format!("show --disk {b} --disk {a}"));
        assert_eq!(shown, made);
        let added = text(&format!(
            "add --disk {a} --disk {b} --size 12MiB {c} --power 2"
        ));
        assert!(added.contains("data_0002"), "{added}");
        text(&format!("check --disk {a} --disk {b} --disk {c}"));
        let dropped = text(&format!("drop data_0000 --disk {a} --disk {b} --disk {c}"));
        assert!(
            dropped.starts_with("0 extents moved, 0B\n1 disk(s) have left"),
            "{dropped}"
        );
        let few = said(&format!("show --disk {b}")).err().unwrap();
        assert!(few.contains("missing data_0002"), "{few}");
        text(&format!("rebalance --disk {b} --disk {c}"));
    }

    #[test]
    fn what_holds_data_is_not_taken_unless_it_is_named() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("letters");
        let mut bytes = vec![0; 12 << 20];
        // Far from both ends.
        bytes[7_000_000] = 1;
        std::fs::write(&path, &bytes).unwrap();
        let name = path.display();
        let refused = said(&format!("create data --allocation-unit 1MiB {name}"))
            .err()
            .unwrap();
        assert!(
            refused.contains(&format!("add --erase {name}")),
            "{refused}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "nothing was written");
        text(&format!(
            "create data --allocation-unit 1MiB {name} --erase {name}"
        ));
        let again = said(&format!("create other --allocation-unit 1MiB {name}"));
        let again = again.err().unwrap();
        assert!(again.contains("of the Spindle disk group"), "{again}");
        let missing = said(&format!("create data {name}-not")).err().unwrap();
        assert!(missing.contains("give --size"), "{missing}");
    }

    #[test]
    fn a_file_that_a_process_has_open_is_not_taken_whatever_is_named() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("disk");
        std::fs::write(&path, vec![0; 12 << 20]).unwrap();
        // By another name of the same file.
        let link = directory.path().join("link");
        std::fs::hard_link(&path, &link).unwrap();
        let mut holder = std::process::Command::new("sleep")
            .arg("600")
            .stdin(std::fs::File::open(&link).unwrap())
            .spawn()
            .unwrap();
        let name = path.display();
        let refused = said(&format!(
            "create data --allocation-unit 1MiB {name} --erase {name}"
        ));
        holder.kill().unwrap();
        holder.wait().unwrap();
        let refused = refused.err().unwrap();
        assert!(
            refused.contains("is open for reading by sleep"),
            "{refused}"
        );
        assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 0));
        text(&format!("create data --allocation-unit 1MiB {name}"));
    }
}
