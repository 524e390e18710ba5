//! `spindle diskgroup`: disk groups made, shown, changed and checked by hand, on block devices and files. What is said
//! to people is returned; `cli` prints it. Nothing that holds data becomes a disk unless it is named after `--erase`. A
//! group that is in use elsewhere is not changed, and one that is shown or checked is not written to (`disks`).

mod disks;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use spindle_io::Env;
use spindle_io::disk_group::{
    CheckReport, DiskGroup, DiskGroupError, DiskGroupOptions, GoOn, GroupDescription, GroupView,
    MountOptions, Redundancy,
};
use spindle_io::real::{FileError, RealEnv, block_on};
use spindle_layout::LayoutError;
use spindle_layout::guard::Refusal;
use spindle_layout::steps::StepError;

use spindle_text::quantity::{parse_size, size};
use spindle_text::word::Word;

use disks::{NewlyOpened, SeenDisks, TakenDisks, must_differ};

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
        #[arg(long, value_parser = size_of_word, default_value = "4MiB", value_name = "SIZE")]
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
    /// Mount even if missing disks may have newer metadata.
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
    #[arg(long, value_parser = size_of_word, value_name = "SIZE")]
    size: Option<u64>,
    /// A path among these whose data may be LOST; without it, only what is empty is taken.
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

fn size_of_word(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| format!("`{text}` is not a size; write 64MiB, 1GiB, ..."))
}

/// What is said, and whether all is well.
pub struct DiskGroupAnswer {
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
    #[error("{} is not empty: it contains {content}, which would be lost; to use it all the same, add --erase {}", path.display(), path.display())]
    NotEmpty {
        /// The path.
        path: PathBuf,
        /// What is on it.
        content: String,
    },
    /// A device, or one that came to be another.
    #[error(transparent)]
    Device(#[from] LayoutError),
    /// What a disk held cannot be erased.
    #[error("{0}; no disk group was written")]
    NotEmptied(StepError),
    /// One disk under two names.
    #[error("{}: give each disk once", given_twice(first, second))]
    GivenTwice {
        /// One path.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A group that another changed while it was looked at, or one that is damaged.
    #[error("{error}; it is in use ({users}) and may have changed while it was read: try again")]
    WhileInUse {
        /// What was found.
        error: Box<DiskGroupError>,
        /// Who uses it.
        users: String,
    },
    /// A file that is not there.
    #[error("{} does not exist: give --size to have it made", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
    },
    /// The person asked for it.
    #[error("interrupted; nothing was made")]
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

impl CommandError {
    /// Whether the command line is wrong, and nothing was done.
    pub fn is_of_command_line(&self) -> bool {
        match self {
            CommandError::GivenTwice { .. } | CommandError::NoFile { .. } => true,
            CommandError::Refused(refusal) => {
                matches!(refusal, Refusal::NoStorage { .. } | Refusal::Missing { .. })
            }
            _ => false,
        }
    }
}

fn given_twice(first: &Path, second: &Path) -> String {
    match first == second {
        true => format!("{} is given twice", first.display()),
        false => format!(
            "{} and {} are the same file or device",
            first.display(),
            second.display()
        ),
    }
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

impl From<StepError> for CommandError {
    /// A refusal is told as one.
    fn from(error: StepError) -> CommandError {
        match error {
            StepError::Refused(refusal) => refusal.into(),
            other => CommandError::NotEmptied(other),
        }
    }
}

impl DiskGroupCommand {
    /// Files that the command makes.
    pub fn files_to_make(&self) -> Vec<PathBuf> {
        let (DiskGroupCommand::Create { new, .. } | DiskGroupCommand::Add { new, .. }) = self
        else {
            return Vec::new();
        };
        new.paths().filter(|path| !path.exists()).collect()
    }
}

/// Does what was asked; once `interrupted`, it ends after the extents that are under way, and leaves no file that is
/// not a disk.
pub fn carry_out(
    command: DiskGroupCommand,
    interrupted: &Arc<AtomicBool>,
) -> Result<DiskGroupAnswer, CommandError> {
    let env: Arc<dyn Env> = RealEnv::new(1);
    block_on(answer(&env, command, interrupted))
}

async fn answer(
    env: &Arc<dyn Env>,
    command: DiskGroupCommand,
    interrupted: &Arc<AtomicBool>,
) -> Result<DiskGroupAnswer, CommandError> {
    let go_on: GoOn = {
        let interrupted = Arc::clone(interrupted);
        Arc::new(move || !interrupted.load(Ordering::Relaxed))
    };
    let (mounted, mut text) = match command {
        DiskGroupCommand::Show { group } => return view(env, &group, None).await,
        DiskGroupCommand::Check { group } => return view(env, &group, Some(&go_on)).await,
        DiskGroupCommand::Create {
            name,
            new,
            redundancy,
            allocation_unit,
        } => {
            let options = options(redundancy, allocation_unit)?;
            let mounted = create(env, &name, &new, options, interrupted).await?;
            (mounted, String::new())
        }
        DiskGroupCommand::Rebalance { group, power } => {
            let mounted = mount(env, &group).await?;
            let text = rebalance(&mounted.group, power.power, &go_on).await?;
            (mounted, text)
        }
        DiskGroupCommand::Add { group, new, power } => {
            must_differ(group.disks.iter().cloned().chain(new.paths()))?;
            let mut mounted = mount(env, &group).await?;
            if let Err(error) = add(&mut mounted, &new, interrupted).await {
                // The first error is the one to tell.
                let _ = mounted.group.dismount().await;
                return Err(error);
            }
            let text = rebalance(&mounted.group, power.power, &go_on).await?;
            (mounted, text)
        }
        DiskGroupCommand::Drop { disk, group, power } => {
            let mounted = mount(env, &group).await?;
            mounted.group.drop_disk(&disk).await?;
            let text = rebalance(&mounted.group, power.power, &go_on).await?;
            (mounted, text)
        }
    };
    text += &describe(mounted.group.describe());
    let dismounted = mounted.group.dismount().await;
    if let Err(error) = &dismounted {
        let _ = writeln!(text, "{error}");
    }
    Ok(DiskGroupAnswer {
        text,
        is_well: dismounted.is_ok(),
        unseen: mounted.taken.unseen,
        is_interrupted: !go_on(),
    })
}

fn mount_options(group: &Group) -> MountOptions {
    MountOptions {
        force: group.force,
        preferred_failure_group: None,
    }
}

/// A group that is to be changed, held exclusively as long as this lives.
struct Mounted {
    group: DiskGroup,
    taken: TakenDisks,
}

async fn mount(env: &Arc<dyn Env>, group: &Group) -> Result<Mounted, CommandError> {
    let taken = TakenDisks::take(&group.disks)?;
    let group = DiskGroup::mount_with(env, &taken.devices, &mount_options(group)).await?;
    Ok(Mounted { group, taken })
}

/// Shows a group, or checks it, without a write.
async fn view(
    env: &Arc<dyn Env>,
    group: &Group,
    check_while: Option<&GoOn>,
) -> Result<DiskGroupAnswer, CommandError> {
    let seen = SeenDisks::see(&group.disks)?;
    if check_while.is_some() {
        // Copies that are being written differ.
        seen.must_be_unused()?;
    }
    let opened = GroupView::open(env, &seen.devices, &mount_options(group)).await;
    let view = opened.map_err(|error| seen.explain(error))?;
    let mut answer = DiskGroupAnswer {
        text: String::new(),
        is_well: true,
        unseen: None,
        is_interrupted: false,
    };
    if let Some(users) = seen.users() {
        let _ = writeln!(
            answer.text,
            "in use: {users}; what follows may change at any moment"
        );
    } else if let unequal @ 1.. = view.unequal_extents() {
        let _ = writeln!(
            answer.text,
            "{unequal} mirrored extents were being written when the group was last used: their copies may differ; its \
             next mount makes them equal, such as: spindle diskgroup rebalance"
        );
    }
    if let Some(go_on) = check_while {
        let report = view.check_while(&**go_on).await?;
        answer.text += &checked(&report);
        answer.is_well = report.findings.is_empty();
        answer.is_interrupted = !go_on();
        answer.unseen = seen.unseen;
    }
    if answer.is_well {
        answer.text += &describe(view.describe());
    }
    Ok(answer)
}

async fn create(
    env: &Arc<dyn Env>,
    name: &str,
    new: &NewDisks,
    options: DiskGroupOptions,
    interrupted: &AtomicBool,
) -> Result<Mounted, CommandError> {
    must_differ(new.paths())?;
    let mut opened = NewlyOpened::open(name, 0, new, interrupted)?;
    DiskGroup::check_new(name, &opened.disks, &options)?;
    opened.empty(new)?;
    let disks = std::mem::take(&mut opened.disks);
    let group = DiskGroup::create(env, name, disks, options).await?;
    Ok(Mounted {
        group,
        taken: opened.keep(),
    })
}

/// Adds disks to a group.
async fn add(
    mounted: &mut Mounted,
    new: &NewDisks,
    interrupted: &AtomicBool,
) -> Result<(), CommandError> {
    let group = &mounted.group;
    let disks = group.describe().disks;
    let first = disks.last().map_or(0, |disk| disk.number + 1);
    let mut opened = NewlyOpened::open(group.name(), first, new, interrupted)?;
    group.check_added(&opened.disks)?;
    opened.empty(new)?;
    group.add_disks(std::mem::take(&mut opened.disks)).await?;
    mounted.taken.append(opened.keep());
    Ok(())
}

fn options(
    redundancy: Redundancy,
    allocation_unit_bytes: u64,
) -> Result<DiskGroupOptions, CommandError> {
    let identity =
        spindle_run::layout_targets::draw_identity().map_err(|source| CommandError::System {
            action: "draw an identity from /dev/urandom".to_owned(),
            source,
        })?;
    Ok(DiskGroupOptions {
        allocation_unit_bytes,
        redundancy,
        identity: Some(identity),
    })
}

async fn rebalance(group: &DiskGroup, power: u32, go_on: &GoOn) -> Result<String, CommandError> {
    let done = group.rebalance_while(power, go_on).await?;
    let mut text = format!("{} extents moved, {}\n", done.extents, size(done.bytes));
    if done.disks_removed > 0 {
        let _ = writeln!(text, "{} disk(s) have left the group", done.disks_removed);
    }
    Ok(text)
}

fn checked(report: &CheckReport) -> String {
    let mut text = format!(
        "{} extents compared, {} read\n",
        report.extents,
        size(report.bytes)
    );
    for finding in &report.findings {
        let _ = writeln!(text, "{finding}");
    }
    text
}

fn describe(group: GroupDescription) -> String {
    let mut text = format!(
        "disk group {} ({}), {} redundancy, allocation unit {}\n",
        group.name,
        group.id,
        group.redundancy.as_str(),
        size(group.allocation_unit_bytes)
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
            size(disk.capacity_bytes),
            size(disk.used_bytes),
            size(disk.free_bytes),
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
            size(file.bytes),
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
mod tests;
