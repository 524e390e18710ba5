//! A machine in a temporary directory: the parts of `/proc`, `/sys` and `/dev` that the guard reads, made from short lines.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use spindle_layout::SystemTree;

/// A described machine, removed when dropped.
pub struct Machine {
    root: tempfile::TempDir,
    next_sequence: u32,
}

impl Machine {
    /// One with a disk `sda`, which holds the root file system and swap.
    pub fn new() -> Machine {
        let mut machine = Machine {
            root: tempfile::tempdir().unwrap(),
            next_sequence: 1,
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
        SystemTree {
            proc: self.path("proc"),
            sys: self.path("sys"),
            dev: self.path("dev"),
            modules: self.path("modules"),
        }
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
            }
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
                self.append("proc/swaps", &format!("{path}  partition\t4194300\t0\t-2"));
            }
            ("loop", [name, number, file]) => {
                self.node(&format!("sys/devices/{name}"), name, number, "2048");
                self.write(&format!("sys/devices/{name}/loop/backing_file"), file);
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

    fn node(&self, directory: &str, name: &str, number: &str, sectors: &str) {
        self.write(&format!("{directory}/size"), format!("{sectors}\n"));
        self.write(&format!("{directory}/ro"), "0\n");
        self.write(&format!("{directory}/dev"), format!("{number}\n"));
        self.write(&format!("dev/{name}"), "");
        let target = directory.replacen("sys/", "../../", 1);
        self.link(&format!("sys/dev/block/{number}"), &target);
    }
}
