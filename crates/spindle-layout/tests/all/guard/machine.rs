//! A machine in a temporary directory: the parts of `/proc`, `/sys` and `/dev` that the guard reads, made from short
//! lines.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use spindle_layout::guard::{DeviceState, GuardSurvey, Refusal};
use spindle_system::DeviceNumber;
use spindle_system::SystemTree;
use spindle_system::mounts::TableError;

/// A described machine, removed when dropped.
pub struct Machine {
    root: tempfile::TempDir,
    next_sequence: u32,
    next_start: BTreeMap<String, u64>,
    mapped_tables: String,
}

impl Machine {
    /// One with a disk `sda`, which holds the root file system and swap.
    pub fn new() -> Machine {
        let mut machine = Machine {
            root: tempfile::tempdir().unwrap(),
            next_sequence: 1,
            next_start: BTreeMap::new(),
            mapped_tables: String::new(),
        };
        for line in [
            "disk sda 8:0 1000000",
            "part sda sda1 8:1 900000",
            "part sda sda2 8:2 90000",
            "mount 8:1 / ext4 /dev/sda1",
            "swap /dev/sda2",
        ] {
            machine.add(line);
        }
        machine
    }

    pub fn tree(&self) -> SystemTree {
        SystemTree::below(&self.path(""))
    }

    /// What the machine looks like now.
    pub fn survey(&self) -> Result<GuardSurvey, TableError> {
        GuardSurvey::with_tables(&self.tree(), &self.mapped_tables)
    }

    /// What the guard is told of a device.
    pub fn state(&self, number: &str, path: &Path) -> Result<DeviceState, Refusal> {
        let survey = self.survey().map_err(|error| Refusal::Unknown {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        DeviceState::of(&self.tree(), &survey, number.parse().unwrap(), path)
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn append(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        writeln!(file, "{text}").unwrap();
    }

    fn link(&self, at: &str, target: &str) {
        let at = self.path(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(target, at).unwrap();
    }

    /// Adds what one line says; the words are explained at the head of `fixtures.txt`.
    pub fn add(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split(' ').collect();
        match (word, words.as_slice()) {
            ("disk", [name, number, sectors]) => {
                let sequence = self.next_sequence;
                self.next_sequence += 1;
                self.node(&format!("sys/devices/{name}"), name, number, sectors);
                self.write(&format!("sys/devices/{name}/diskseq"), sequence.to_string());
                self.link(&format!("sys/block/{name}"), &format!("../devices/{name}"));
            }
            ("part", [disk, name, number, sectors]) => {
                self.node(&format!("sys/devices/{disk}/{name}"), name, number, sectors);
                self.write(&format!("sys/devices/{disk}/{name}/partition"), "1\n");
                let start = self.next_start.entry((*disk).to_owned()).or_insert(2048);
                let first = *start;
                *start += sectors.parse::<u64>().unwrap_or(0);
                self.write(
                    &format!("sys/devices/{disk}/{name}/start"),
                    first.to_string(),
                );
            }
            ("above", [name, number, sectors, slaves @ ..]) => {
                self.add(&format!("disk {name} {number} {sectors}"));
                for slave in slaves {
                    self.write(
                        &format!(
                            "sys/devices/{name}/slaves/{}",
                            slave.rsplit('/').next().unwrap()
                        ),
                        "",
                    );
                    self.write(&format!("sys/devices/{slave}/holders/{name}"), "");
                }
            }
            ("mapped", [name, number, sectors, mapped_name, slaves @ ..]) => {
                self.add(
                    format!("above {name} {number} {sectors} {}", slaves.join(" ")).trim_end(),
                );
                self.write(&format!("sys/devices/{name}/dm/name"), mapped_name);
            }
            ("table", _) => {
                self.mapped_tables += rest;
                self.mapped_tables.push('\n');
            }
            ("file", [path]) => self.write(path, ""),
            ("open", [pid, program, number, flags, path]) => {
                self.process(pid, program);
                self.link(&format!("proc/{pid}/fd/{number}"), &self.meant(path));
                self.write(
                    &format!("proc/{pid}/fdinfo/{number}"),
                    format!("pos:\t0\nflags:\t{flags}\n"),
                );
            }
            ("thread", [pid, program, thread, path]) => {
                self.process(pid, program);
                self.link(&format!("proc/{pid}/task/{thread}/fd/3"), &self.meant(path));
            }
            ("map", [pid, program, path]) => {
                self.process(pid, program);
                self.append(
                    &format!("proc/{pid}/maps"),
                    "00400000-00452000 rw-s 00000000 00:06 77 /gone",
                );
                self.link(
                    &format!("proc/{pid}/map_files/400000-452000"),
                    &self.meant(path),
                );
            }
            ("ring", [pid, program, path]) => {
                self.process(pid, program);
                self.write(
                    &format!("proc/{pid}/fdinfo/7"),
                    format!("pos:\t0\nUserFiles:\t1\n    0: {path}\n"),
                );
                self.link(&format!("proc/{pid}/fd/7"), "anon_inode:[io_uring]");
            }
            ("link", [at, target]) => self.link(at, target),
            ("lock", [pid, path]) => {
                let metadata = fs::metadata(self.meant(path)).unwrap();
                let device = DeviceNumber::of_stat(metadata.dev());
                let (major, minor, inode) = (device.major, device.minor, metadata.ino());
                self.append(
                    "proc/locks",
                    &format!(
                        "1: POSIX  ADVISORY  WRITE {pid} {major:02x}:{minor:02x}:{inode} 0 EOF"
                    ),
                );
            }
            ("othermount", [pid, number, at, kind, source]) => self.append(
                &format!("proc/{pid}/mountinfo"),
                &format!("30 1 {number} / {at} rw,relatime shared:1 - {kind} {source} rw"),
            ),
            ("holder", [device, by]) => {
                self.write(&format!("sys/devices/{device}/holders/{by}"), "")
            }
            ("set", [file, value @ ..]) => {
                self.write(&format!("sys/devices/{file}"), value.join(" "))
            }
            ("byid", [name, device]) => self.link(
                &format!("dev/disk/by-id/{name}"),
                &format!("../../{device}"),
            ),
            ("devlink", [name, target]) => self.link(&format!("dev/{name}"), target),
            ("mount", [number, at, kind, source]) => self.append(
                "proc/self/mountinfo",
                &format!("30 1 {number} / {at} rw,relatime shared:1 - {kind} {source} rw"),
            ),
            ("swap", [path]) => {
                let path = match path.starts_with('/') {
                    true => (*path).to_owned(),
                    false => self.meant(path),
                };
                self.append("proc/swaps", &format!("{path}  partition\t4194300\t0\t-2"));
            }
            ("loop", [name, number, file, range @ ..]) => {
                let [offset, sectors] = range else {
                    return self.add(&format!("{line} 0 2048"));
                };
                self.node(&format!("sys/devices/{name}"), name, number, sectors);
                self.write(
                    &format!("sys/devices/{name}/loop/backing_file"),
                    self.meant(file),
                );
                self.write(&format!("sys/devices/{name}/loop/offset"), offset);
                self.write(&format!("sys/devices/{name}/loop/sizelimit"), "0");
                self.link(&format!("sys/block/{name}"), &format!("../devices/{name}"));
            }
            ("btrfs", [id, device]) => {
                self.write(&format!("sys/fs/btrfs/{id}/devices/{device}"), "")
            }
            ("line", [file, text @ ..]) => self.append(file, &text.join(" ")),
            ("without", [path]) => {
                let path = self.path(path);
                let removed = if path.is_dir() {
                    fs::remove_dir_all(path)
                } else {
                    fs::remove_file(path)
                };
                removed.unwrap();
            }
            _ => panic!("no such word: {line:?}"),
        }
    }

    /// Paths that do not begin with a slash are files of the machine; `/dev` is its own, too.
    fn meant(&self, path: &str) -> String {
        match path.strip_prefix("/dev/") {
            Some(name) => self.path("dev").join(name).display().to_string(),
            None if path.starts_with('/') => path.to_owned(),
            None => self.path(path).display().to_string(),
        }
    }

    fn process(&self, pid: &str, program: &str) {
        self.write(&format!("proc/{pid}/comm"), format!("{program}\n"));
        self.write(&format!("proc/{pid}/cmdline"), program);
        self.append(
            &format!("proc/{pid}/maps"),
            "00100000-00152000 r-xp 00000000 00:00 0",
        );
        fs::create_dir_all(self.path(&format!("proc/{pid}/fd"))).unwrap();
    }

    fn node(&self, directory: &str, name: &str, number: &str, sectors: &str) {
        self.write(&format!("{directory}/size"), format!("{sectors}\n"));
        self.write(&format!("{directory}/ro"), "0\n");
        self.write(&format!("{directory}/dev"), format!("{number}\n"));
        self.write(&format!("dev/{name}"), "");
        let target = directory.replacen("sys/", "../../", 1);
        self.link(&format!("sys/dev/block/{number}"), &target);
    }
}
