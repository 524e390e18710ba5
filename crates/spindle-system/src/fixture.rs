//! A small tree that stands in for `/proc`, `/sys` and `/etc` in this folder's tests.

// A described machine is made for tests alone.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::SystemTree;

impl SystemTree {
    /// A fixture: `proc`, `sys`, `dev`, `etc` and `modules` below `root`.
    pub fn below(root: &Path) -> SystemTree {
        SystemTree {
            proc: root.join("proc"),
            sys: root.join("sys"),
            dev: root.join("dev"),
            etc: root.join("etc"),
            modules: root.join("modules"),
        }
    }

    /// The same with another directory for `/proc`.
    pub fn with_proc(self, proc: PathBuf) -> SystemTree {
        SystemTree { proc, ..self }
    }

    /// The same with another directory for `/sys`.
    pub fn with_sys(self, sys: PathBuf) -> SystemTree {
        SystemTree { sys, ..self }
    }
}

/// A fixture tree, removed when dropped.
pub struct Fixture {
    root: tempfile::TempDir,
}

impl Fixture {
    /// A tree without any file.
    pub fn empty() -> Fixture {
        Fixture {
            root: tempfile::tempdir().expect("temporary directory"),
        }
    }

    /// A tree with these files: path from the root (`proc/stat`) and text.
    pub fn with(files: &[(&str, &str)]) -> Fixture {
        let fixture = Fixture::empty();
        for (path, text) in files {
            fixture.write(path, text);
        }
        fixture
    }

    /// Where a file of the tree is.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// Writes a file and the directories it needs; an existing file keeps its inode.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directory");
        fs::write(path, text).expect("file");
    }

    /// Makes a directory with everything above it.
    pub fn directory(&self, path: &str) {
        fs::create_dir_all(self.path(path)).expect("directory");
    }

    /// Makes `at` a symbolic link to the tree's `target`.
    pub fn link(&self, at: &str, target: &str) {
        let at = self.path(at);
        fs::create_dir_all(at.parent().expect("a parent")).expect("directory");
        symlink(self.path(target), at).expect("link");
    }

    /// The text of a file of the tree.
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        fs::read_to_string(self.root.path().join(path)).expect("file")
    }

    /// The tree as the code under test sees it.
    pub fn files(&self) -> SystemTree {
        SystemTree {
            proc: self.path("proc"),
            sys: self.path("sys"),
            etc: self.path("etc"),
            ..SystemTree::default()
        }
    }
}
