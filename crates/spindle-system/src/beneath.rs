//! What lies beneath a path, from its file system down to the devices, as far as it decides what a flush is worth:
//! mount options, write caches, and whether a flush at the top arrives at the bottom. It only looks; what follows for a
//! database is in `spindle_engines::promise`. Sources: proc_pid_mountinfo(5), Linux
//! Documentation/ABI/stable/sysfs-block, Documentation/admin-guide/{ext4,xfs}.rst,
//! Documentation/block/writeback_cache_control.rst.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::mounts::{Mount, mount_of, mounts};
use super::node::number_of_name;
use super::{DeviceNumber, SystemTree, names, text};

/// Deeper stacks than this are not followed: a loop in what the kernel shows must end.
const DEPTH_MAX: u32 = 16;
/// ext4 commits its journal this often by default (ext4.rst, `commit`); btrfs its transactions (btrfs(5), `commit`).
const EXT4_COMMIT_MS: u64 = 5_000;
const BTRFS_COMMIT_MS: u64 = 30_000;
/// What the kernel shows where there is no process.
const NO_TASK: &str = "<none>";
/// What the kernel writes behind the name of a file that was removed.
const REMOVED: &str = " (deleted)";

/// A file system or a device that bytes pass on their way down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layer {
    /// A mounted file system.
    FileSystem(FileSystemLayer),
    /// A block device.
    Device(DeviceLayer),
    /// Something that cannot be looked at, and why.
    Hidden(String),
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystemLayer {
    /// Type, such as `ext4`.
    pub kind: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Options of the mount and of the file system.
    pub options: Vec<String>,
    /// Whether it has a journal; `None` when it does not say.
    pub has_journal: Option<bool>,
    /// How often it makes metadata durable by itself, milliseconds; `None` when it does not say.
    pub commit_interval_ms: Option<u64>,
    /// Whether a flush at the top makes this file system flush: not so beneath a loop device without a write cache.
    pub is_flushed: bool,
    /// Whether nothing is known to lie beneath it.
    pub is_lowest: bool,
}

/// What a device says of its write cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteCache {
    /// A cache that loses its content when the power goes, unless it is flushed.
    WriteBack,
    /// None that needs a flush.
    WriteThrough,
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceLayer {
    /// The kernel's name: `sdb`, `loop0`, `zram0`; the disk's for a partition.
    pub name: String,
    /// Its number; `None` when the kernel does not tell.
    pub number: Option<DeviceNumber>,
    /// The number of its partition, when what lies above is on one of them alone.
    pub partition: Option<DeviceNumber>,
    /// The file of a loop device, unless it was removed.
    pub backing_file: Option<PathBuf>,
    /// As the kernel treats it: with a write-back cache it is sent flushes. `None` when the kernel does not tell.
    pub write_cache: Option<WriteCache>,
    /// As the hardware says, where the kernel shows that apart (SCSI).
    pub hardware_cache: Option<WriteCache>,
    /// Whether it is the kernel's own device for tests of SCSI, which is memory (Documentation/scsi/scsi_debug).
    pub is_scsi_debug: bool,
    /// Largest write that the device never tears, bytes; 0 when it promises none.
    pub atomic_write_bytes: u64,
    /// Whether a flush at the top is handed down to this device.
    pub is_flushed: bool,
    /// Whether nothing is known to lie beneath it.
    pub is_lowest: bool,
}

impl FileSystemLayer {
    /// Whether an option is set, as it stands: `nobarrier`, `data=writeback`.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|set| set == option)
    }

    /// The value of an option such as `upperdir=/up`.
    pub fn value_of(&self, key: &str) -> Option<&str> {
        value_of(&self.options, key)
    }

    /// The option with which it sends its device no flushes (Documentation/admin-guide/ext4.rst, btrfs(5), f2fs.rst).
    pub fn no_barrier(&self) -> Option<&'static str> {
        let f2fs = (self.kind == "f2fs").then_some("fsync_mode=nobarrier");
        let options = ["nobarrier", "barrier=0"].into_iter().chain(f2fs);
        options.into_iter().find(|option| self.has(option))
    }

    /// Whether its flushes make nothing durable until it is told to (f2fs.rst, `checkpoint=disable[:%u[%]]`).
    pub fn is_without_checkpoints(&self) -> bool {
        let is_disabled = |option: &String| option.starts_with("checkpoint=disable");
        self.kind == "f2fs" && self.options.iter().any(is_disabled)
    }

    /// The option with which an overlay flushes nothing (Documentation/filesystems/overlayfs.rst).
    pub fn is_volatile(&self) -> Option<&'static str> {
        let options = ["volatile", "fsync=volatile"];
        let found = options.into_iter().find(|option| self.has(option));
        found.filter(|_| self.kind == "overlay")
    }

    /// Whether its files are memory.
    pub fn is_memory(&self) -> bool {
        ["tmpfs", "ramfs", "hugetlbfs", "devtmpfs"].contains(&self.kind.as_str())
    }

    /// Whether another machine, or the host of this one, keeps its files.
    pub fn is_remote(&self) -> bool {
        let kinds = [
            "nfs",
            "nfs4",
            "cifs",
            "smb3",
            "9p",
            "virtiofs",
            "ceph",
            "glusterfs",
        ];
        kinds.contains(&self.kind.as_str())
    }

    /// Whether a process answers for it, which does with a flush what it likes.
    pub fn is_fuse(&self) -> bool {
        self.kind.starts_with("fuse")
    }
}

impl DeviceLayer {
    /// Whether it is memory, compressed or not, or keeps nothing at all.
    pub fn is_memory(&self) -> bool {
        let names = ["zram", "ram", "nullb"];
        self.is_scsi_debug || names.into_iter().any(|name| self.is_numbered(name))
    }

    /// Whether its name is this one with a number, such as `nbd0`.
    pub fn is_numbered(&self, name: &str) -> bool {
        let number = self.name.strip_prefix(name);
        number
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    }
}

/// The value of `key=value` among options.
fn value_of<'a>(options: &'a [String], key: &str) -> Option<&'a str> {
    let mut options = options.iter();
    options.find_map(|option| option.strip_prefix(key)?.strip_prefix('='))
}

/// All that lies beneath a path, from the top down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beneath {
    /// The layers; one of several devices follows after the other.
    pub layers: Vec<Layer>,
    /// Age at which the kernel writes dirty pages by itself, at most, milliseconds; `None` when it does not.
    pub write_back_ms: Option<u64>,
}

impl Beneath {
    /// What lies beneath a file, a directory or a block device.
    pub fn of(tree: &SystemTree, path: &Path) -> Beneath {
        let mut walk = Walk {
            tree,
            mounts: mounts(tree).unwrap_or_default(),
            layers: Vec::new(),
        };
        walk.path(path, true, 0);
        Beneath {
            layers: walk.layers,
            write_back_ms: write_back_ms(tree),
        }
    }

    /// The file systems on the way.
    pub fn file_systems(&self) -> impl Iterator<Item = &FileSystemLayer> {
        self.layers.iter().filter_map(|layer| match layer {
            Layer::FileSystem(layer) => Some(layer),
            _ => None,
        })
    }

    /// The devices on the way.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceLayer> {
        self.layers.iter().filter_map(|layer| match layer {
            Layer::Device(layer) => Some(layer),
            _ => None,
        })
    }
}

/// The age at which dirty pages are written, and the time between looks for them
/// (Documentation/admin-guide/sysctl/vm.rst).
fn write_back_ms(tree: &SystemTree) -> Option<u64> {
    let centiseconds =
        |name: &str| -> Option<u64> { text(&tree.proc.join("sys/vm").join(name))?.parse().ok() };
    let look = centiseconds("dirty_writeback_centisecs").filter(|every| *every > 0)?;
    Some((centiseconds("dirty_expire_centisecs")? + look) * 10)
}

struct Walk<'a> {
    tree: &'a SystemTree,
    mounts: Vec<Mount>,
    layers: Vec<Layer>,
}

impl Walk<'_> {
    fn hidden(&mut self, what: impl Into<String>) {
        self.layers.push(Layer::Hidden(what.into()));
    }

    fn path(&mut self, path: &Path, is_flushed: bool, depth: u32) {
        let found = fs::metadata(path);
        let Ok(found) = found else {
            return self.hidden(format!("{} cannot be looked at", path.display()));
        };
        if depth > DEPTH_MAX {
            return self.hidden(format!("{} lies too deep", path.display()));
        }
        if found.file_type().is_block_device() {
            let number = DeviceNumber::of_stat(found.rdev());
            return self.device(number, is_flushed, depth);
        }
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        // A mount may be hidden by a later one of a directory above it: the number of the path tells which counts.
        let number = DeviceNumber::of_stat(found.dev());
        match mount_of(&self.mounts, &real, Some(number)).cloned() {
            Some(mount) => self.file_system(&mount, is_flushed, depth),
            None => self.hidden(format!("no mount is known for {}", real.display())),
        }
    }

    fn file_system(&mut self, mount: &Mount, is_flushed: bool, depth: u32) {
        let options: Vec<String> = mount.options.split(',').map(str::to_owned).collect();
        let device = self.device_of(mount);
        let name = device.and_then(|number| self.name_of(number));
        let commit_ms = value_of(&options, "commit").and_then(|text| text.parse::<u64>().ok());
        let commit_ms = commit_ms.filter(|seconds| *seconds > 0);
        let commit_ms = commit_ms.and_then(|seconds| seconds.checked_mul(1000));
        let journal_task = name.as_ref().and_then(|name| self.ext4_journal_task(name));
        let (has_journal, commit_interval_ms) = match mount.kind.as_str() {
            "ext3" | "ext4" => {
                let has_journal = journal_task.as_ref().map(|task| task != NO_TASK);
                let interval_ms = Some(commit_ms.unwrap_or(EXT4_COMMIT_MS));
                // Without a journal nothing is committed.
                (
                    has_journal,
                    interval_ms.filter(|_| has_journal != Some(false)),
                )
            }
            "btrfs" => (None, Some(commit_ms.unwrap_or(BTRFS_COMMIT_MS))),
            "xfs" => (Some(true), self.xfs_commit_ms()),
            _ => (None, None),
        };
        let upper = value_of(&options, "upperdir").map(str::to_owned);
        let beside: Vec<String> = match mount.kind.as_str() {
            "ext3" | "ext4" => self.ext4_journal_device(journal_task).into_iter().collect(),
            "xfs" => xfs_devices_beside(&options),
            _ => Vec::new(),
        };
        self.layers.push(Layer::FileSystem(FileSystemLayer {
            kind: mount.kind.clone(),
            mount_point: mount.mount_point.clone(),
            options,
            has_journal,
            commit_interval_ms,
            is_flushed,
            is_lowest: device.is_none() && upper.is_none(),
        }));
        match (device, upper) {
            (Some(_), _) if mount.kind == "btrfs" => self.btrfs(mount, is_flushed, depth),
            (Some(number), _) => self.device(number, is_flushed, depth),
            (None, Some(upper)) => self.path(Path::new(&upper), is_flushed, depth + 1),
            (None, None) => {}
        }
        for name in beside {
            match self.number_of(&name) {
                Some(number) => self.device(number, is_flushed, depth),
                None => self.hidden(format!("device {name} is not shown by the kernel")),
            }
        }
    }

    /// The device a file system is on; the one that was mounted, where files have another number (btrfs).
    fn device_of(&self, mount: &Mount) -> Option<DeviceNumber> {
        if !mount.device.is_anonymous() {
            return Some(mount.device);
        }
        let source = fs::metadata(&mount.source).ok()?;
        let is_device = source.file_type().is_block_device();
        is_device.then(|| DeviceNumber::of_stat(source.rdev()))
    }

    /// btrfs names one of its devices in the mount table.
    fn btrfs(&mut self, mount: &Mount, is_flushed: bool, depth: u32) {
        let named = self.device_of(mount);
        let name = named.and_then(|number| self.name_of(number));
        let top = self.tree.sys.join("fs/btrfs");
        let members = names(&top)
            .into_iter()
            .map(|id| names(&top.join(id).join("devices")))
            .find(|members| name.as_ref().is_some_and(|name| members.contains(name)));
        let numbers: Vec<DeviceNumber> = members
            .into_iter()
            .flatten()
            .filter_map(|member| self.number_of(&member))
            .collect();
        let numbers = if numbers.is_empty() {
            named.into_iter().collect()
        } else {
            numbers
        };
        for number in numbers {
            self.device(number, is_flushed, depth);
        }
    }

    fn directory(&self, number: DeviceNumber) -> Option<PathBuf> {
        fs::canonicalize(self.tree.sys.join("dev/block").join(number.to_string())).ok()
    }

    fn name_of(&self, number: DeviceNumber) -> Option<String> {
        Some(self.directory(number)?.file_name()?.to_str()?.to_owned())
    }

    fn device(&mut self, number: DeviceNumber, is_flushed: bool, depth: u32) {
        let Some(mut directory) = self.directory(number).filter(|_| depth <= DEPTH_MAX) else {
            return self.hidden(format!("device {number} is not shown by the kernel"));
        };
        let is_partition = directory.join("partition").exists();
        if is_partition {
            directory.pop();
        }
        let name = directory
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let says = |file: &str| text(&directory.join(file));
        let write_cache = says("queue/write_cache").and_then(|cache| cache_of(&cache));
        let hardware = directory.join("device/scsi_disk");
        let hardware_cache = names(&hardware)
            .iter()
            .find_map(|disk| cache_of(&text(&hardware.join(disk).join("cache_type"))?));
        let atomic = says("queue/atomic_write_unit_max_bytes");
        let backing_file = says("loop/backing_file");
        let slaves = names(&directory.join("slaves"));
        let is_there = |file: &&String| !file.ends_with(REMOVED);
        self.layers.push(Layer::Device(DeviceLayer {
            name,
            number: says("dev").and_then(|number| number.parse().ok()),
            partition: is_partition.then_some(number),
            backing_file: backing_file.as_ref().filter(is_there).map(PathBuf::from),
            write_cache,
            hardware_cache,
            is_scsi_debug: says("device/model").as_deref() == Some("scsi_debug"),
            atomic_write_bytes: atomic.and_then(|bytes| bytes.parse().ok()).unwrap_or(0),
            is_flushed,
            is_lowest: backing_file.is_none() && slaves.is_empty(),
        }));
        // A stacked device that is taken to have no cache is sent no flush, and hands none down.
        let hands_down = is_flushed && write_cache != Some(WriteCache::WriteThrough);
        if let Some(file) = backing_file {
            match file.strip_suffix(REMOVED) {
                Some(gone) => self.hidden(format!("the loop device's file {gone} was removed")),
                None => self.path(Path::new(&file), hands_down, depth + 1),
            }
        }
        for below in slaves {
            let number = text(&directory.join("slaves").join(&below).join("dev"));
            match number.and_then(|number| number.parse().ok()) {
                Some(number) => self.device(number, hands_down, depth + 1),
                None => self.hidden(format!("device {below} is not shown by the kernel")),
            }
        }
    }

    /// The number of the process that writes the journal, as the kernel shows it; [`NO_TASK`] without a journal.
    fn ext4_journal_task(&self, name: &str) -> Option<String> {
        let directory = self.tree.sys.join("fs/ext4").join(name);
        text(&directory.join("journal_task"))
    }

    /// The device of a journal that lies on another one. The process is called after it; after the file system's own
    /// device and the number of an inode otherwise (Linux, fs/jbd2/journal.c).
    fn ext4_journal_device(&self, task: Option<String>) -> Option<String> {
        let called = text(&self.tree.proc.join(task?).join("comm"))?;
        let name = called.strip_prefix("jbd2/")?;
        self.number_of(name).map(|_| name.to_owned())
    }

    fn number_of(&self, name: &str) -> Option<DeviceNumber> {
        number_of_name(self.tree, name)
    }

    fn xfs_commit_ms(&self) -> Option<u64> {
        let every = text(&self.tree.proc.join("sys/fs/xfs/xfssyncd_centisecs"))?;
        Some(every.parse::<u64>().ok()? * 10)
    }
}

/// The kernel's names of the devices that XFS has beside its own: the log's, and that of real-time files (xfs(5)).
fn xfs_devices_beside(options: &[String]) -> Vec<String> {
    let paths = ["logdev", "rtdev"].map(|key| value_of(options, key));
    let name_of = |path: &str| {
        let real = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
        let name = real.strip_prefix("/dev").unwrap_or(&real).to_str()?;
        // A slash in a name is written so.
        Some(name.replace('/', "!"))
    };
    paths.into_iter().flatten().filter_map(name_of).collect()
}

/// `write back`, `write through`; SCSI adds `, no read (daft)`.
fn cache_of(says: &str) -> Option<WriteCache> {
    if says.starts_with("write back") {
        Some(WriteCache::WriteBack)
    } else if says.starts_with("write through") || says == "none" {
        Some(WriteCache::WriteThrough)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of `/proc` and `/sys` with the mounts and devices given.
    struct Fixture(tempfile::TempDir);

    impl Fixture {
        fn new(mounts: &str) -> Fixture {
            let fixture = Fixture(tempfile::tempdir().unwrap());
            fixture.write("proc/self/mountinfo", mounts);
            fixture.write("proc/sys/vm/dirty_expire_centisecs", "3000\n");
            fixture.write("proc/sys/vm/dirty_writeback_centisecs", "500\n");
            fixture
        }

        fn write(&self, file: &str, content: &str) {
            let path = self.0.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        fn device(&self, number: &str, name: &str, cache: &str) {
            self.write(&format!("sys/block/{name}/queue/write_cache"), cache);
            self.write(&format!("sys/block/{name}/dev"), number);
            self.write(&format!("sys/class/block/{name}/dev"), number);
            let link = self.0.path().join("sys/dev/block").join(number);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            let to = self.0.path().join("sys/block").join(name);
            std::os::unix::fs::symlink(to, link).unwrap();
        }

        fn tree(&self) -> SystemTree {
            SystemTree {
                proc: self.0.path().join("proc"),
                sys: self.0.path().join("sys"),
                ..SystemTree::default()
            }
        }

        fn beneath(&self, path: &str) -> Beneath {
            Beneath::of(&self.tree(), Path::new(path))
        }
    }

    fn line(number: &str, point: &str, kind: &str, options: &str) -> String {
        format!("30 27 {number} / {point} rw - {kind} none rw,{options}\n")
    }

    #[test]
    fn a_mount_that_another_one_hides_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap();
        let number = DeviceNumber::of_stat(fs::metadata(&real).unwrap().dev());
        let point = |path: &Path| path.to_str().unwrap().to_owned();
        let hidden = line("7:99", &point(&real), "ext4", "relatime");
        let above = line(
            &number.to_string(),
            &point(real.parent().unwrap()),
            "tmpfs",
            "size=1g",
        );
        let beneath = Fixture::new(&format!("{hidden}{above}")).beneath(&point(&real));
        assert_eq!(beneath.file_systems().next().unwrap().kind, "tmpfs");
    }

    #[test]
    fn a_file_system_tells_its_options_and_its_journal() {
        let fixture = Fixture::new(&line("8:1", "/", "ext4", "nobarrier,commit=60"));
        fixture.device("8:1", "sda", "write back");
        for (task, has_journal, interval_ms) in
            [("1234\n", true, Some(60_000)), ("<none>\n", false, None)]
        {
            fixture.write("sys/fs/ext4/sda/journal_task", task);
            let beneath = fixture.beneath("/");
            let file_system = beneath.file_systems().next().unwrap();
            assert!(file_system.has("nobarrier") && !file_system.has("barrier"));
            assert_eq!(file_system.has_journal, Some(has_journal));
            assert_eq!(file_system.commit_interval_ms, interval_ms);
        }
        let beneath = fixture.beneath("/");
        let device = beneath.devices().next().unwrap();
        assert_eq!(device.write_cache, Some(WriteCache::WriteBack));
        assert!(device.is_flushed);
        assert_eq!(beneath.write_back_ms, Some(35_000));
    }

    #[test]
    fn a_log_on_another_device_lies_beneath_too() {
        let names = |fixture: &Fixture| -> Vec<String> {
            let beneath = fixture.beneath("/");
            let names = beneath.devices().map(|device| device.name.clone());
            names.collect()
        };
        let fixture = Fixture::new(&line("8:1", "/", "xfs", "logdev=/dev/sdy,rtdev=/dev/sdx"));
        fixture.device("8:1", "sda", "write back");
        fixture.device("8:2", "sdx", "write back");
        fixture.device("8:3", "sdy", "write through");
        assert_eq!(names(&fixture), ["sda", "sdy", "sdx"]);
        for (called, wanted) in [
            ("jbd2/sdy", ["sda", "sdy"].as_slice()),
            ("jbd2/dm-8", &["sda", "dm-8"]),
            ("jbd2/sda-8", &["sda"]),
        ] {
            let fixture = Fixture::new(&line("8:1", "/", "ext4", ""));
            fixture.device("8:1", "sda", "write back");
            fixture.device("8:3", "sdy", "write back");
            fixture.device("8:4", "dm-8", "write back");
            fixture.write("sys/fs/ext4/sda/journal_task", "71\n");
            fixture.write("proc/71/comm", &format!("{called}\n"));
            assert_eq!(names(&fixture), wanted, "{called}");
        }
        let fixture = Fixture::new(&line("8:1", "/", "xfs", "logdev=/dev/sdy"));
        fixture.device("8:1", "sda", "write back");
        let hidden = Layer::Hidden("device sdy is not shown by the kernel".to_owned());
        assert_eq!(fixture.beneath("/").layers.last(), Some(&hidden));
    }

    #[test]
    fn what_lies_on_a_partition_tells_which() {
        let fixture = Fixture::new("");
        fixture.device("8:0", "sda", "write back");
        fixture.write("sys/block/sda/sda2/partition", "2");
        fixture.write("sys/block/sda/sda2/dev", "8:2");
        let (sys, tree) = (fixture.0.path().join("sys"), fixture.tree());
        std::os::unix::fs::symlink(sys.join("block/sda/sda2"), sys.join("dev/block/8:2")).unwrap();
        let mut walk = Walk {
            tree: &tree,
            mounts: Vec::new(),
            layers: Vec::new(),
        };
        walk.device(DeviceNumber { major: 8, minor: 2 }, true, 0);
        walk.device(DeviceNumber { major: 8, minor: 0 }, true, 0);
        let beneath = Beneath {
            layers: walk.layers,
            write_back_ms: None,
        };
        let found: Vec<_> = beneath
            .devices()
            .map(|device| {
                (
                    device.name.as_str(),
                    device.partition.map(|number| number.minor),
                )
            })
            .collect();
        assert_eq!(found, [("sda", Some(2)), ("sda", None)]);
    }

    #[test]
    fn a_loop_device_without_a_cache_hands_no_flush_down() {
        for (cache, is_flushed) in [("write back", true), ("write through", false)] {
            let fixture =
                Fixture::new(&(line("8:1", "/", "xfs", "") + &line("7:0", "/proc", "ext4", "")));
            fixture.device("8:1", "sda", "write back");
            fixture.device("7:0", "loop0", cache);
            fixture.write("sys/block/loop0/loop/backing_file", "/bin\n");
            let beneath = fixture.beneath("/proc/self");
            let flushed: Vec<bool> = beneath.devices().map(|device| device.is_flushed).collect();
            assert_eq!(flushed, [true, is_flushed], "{cache}");
            let kinds: Vec<_> = beneath.file_systems().map(|of| of.is_flushed).collect();
            assert_eq!(kinds, [true, is_flushed], "{cache}");
        }
    }

    #[test]
    fn what_cannot_be_looked_at_is_said() {
        let fixture = Fixture::new(&line("0:30", "/", "overlay", "upperdir=/no/such/directory"));
        assert_eq!(
            fixture.beneath("/").layers.last(),
            Some(&Layer::Hidden(
                "/no/such/directory cannot be looked at".to_owned()
            ))
        );
        let fixture = Fixture::new(&line("8:1", "/", "ext4", ""));
        assert_eq!(
            fixture.beneath("/").layers.last(),
            Some(&Layer::Hidden(
                "device 8:1 is not shown by the kernel".to_owned()
            ))
        );
    }

    #[test]
    fn a_disk_that_is_taken_to_have_no_cache_may_have_one() {
        let fixture = Fixture::new(&line("8:1", "/", "ext4", ""));
        fixture.device("8:1", "sda", "write through");
        fixture.write(
            "sys/block/sda/device/scsi_disk/0:0:0:0/cache_type",
            "write back\n",
        );
        let beneath = fixture.beneath("/");
        let device = beneath.devices().next().unwrap();
        assert_eq!(device.write_cache, Some(WriteCache::WriteThrough));
        assert_eq!(device.hardware_cache, Some(WriteCache::WriteBack));
    }
    #[test]
    fn the_kernels_disk_for_tests_is_memory() {
        let fixture = Fixture::new(&line("8:1", "/", "ext4", ""));
        fixture.device("8:1", "sda", "write back");
        fixture.write("sys/block/sda/device/model", "scsi_debug      \n");
        let beneath = fixture.beneath("/");
        assert!(beneath.devices().next().unwrap().is_memory());
        fixture.write("sys/block/sda/device/model", "Samsung SSD 870\n");
        let beneath = fixture.beneath("/");
        assert!(!beneath.devices().next().unwrap().is_memory());
    }
}
