//! What libraries, file systems and devices make of a flush.

use std::path::PathBuf;

use spindle_system::beneath::{Beneath, DeviceLayer, FileSystemLayer, Layer, WriteCache};

use super::table::{
    BTRFS_DEFAULT, BTRFS_NO_BARRIER, DEVICE_FLUSHED, DEVICE_HARDWARE_CACHE, DEVICE_MEMORY,
    DEVICE_NETWORK, DEVICE_NO_CACHE, DEVICE_NOT_FLUSHED, DEVICE_UNKNOWN, EXT4_JOURNALED,
    EXT4_NO_BARRIER, EXT4_NO_JOURNAL, EXT4_WRITEBACK, F2FS_DEFAULT, F2FS_NO_BARRIER,
    F2FS_NO_CHECKPOINT, FILE_SYSTEM_UNKNOWN, IN_MEMORY, LIBRARIES_HIDDEN, LIBRARY_ANSWERS,
    LIBRARY_EATS, NETWORK, OVERLAY_DEFAULT, OVERLAY_VOLATILE, STORAGE_FOREIGN, XFS_DEFAULT,
    XFS_NO_BARRIER, ZFS_SYNC,
};
use super::{Promise, PromiseLine, Reason};

/// What lies beneath the files of a database that a commit needs: data, redo, undo, indexes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitStorage {
    /// One for each place of files; none for an existing server.
    pub places: Vec<Beneath>,
    /// What stands between the database and the kernel.
    pub between: Vec<Between>,
}

/// A library that may answer for the kernel when the database flushes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Between {
    /// It defines functions that flush.
    Library(PathBuf),
    /// The libraries of this process may not be looked at.
    Hidden(u32),
}

impl CommitStorage {
    /// What it keeps of what was flushed.
    pub fn promise(&self) -> Promise {
        if self.places.is_empty() {
            return Promise::of(vec![Reason::of(&STORAGE_FOREIGN, "storage")]);
        }
        let places = self.places.iter().map(|place| {
            let reasons = place.layers.iter().map(reason_of).collect();
            Promise::of(reasons)
        });
        let beneath = places
            .reduce(Promise::and)
            .expect("there is a place, as was just seen");
        beneath.with(self.between.iter().map(reason_between).collect())
    }

    /// The age that unflushed bytes of a file may reach, milliseconds; `None` when nothing writes them back, or it is
    /// unknown.
    pub fn write_back_ms(&self) -> Option<u64> {
        let ages = self.places.iter().map(|place| place.write_back_ms);
        let pages_ms = ages.collect::<Option<Vec<u64>>>()?.into_iter().max()?;
        Some(pages_ms + self.commit_interval_ms()?)
    }

    /// The age that a change of a directory may reach without a flush, milliseconds; `None` when it is unknown.
    pub fn commit_interval_ms(&self) -> Option<u64> {
        let top = self
            .places
            .iter()
            .filter_map(|place| Some((place, place.file_systems().next()?)));
        // Without a journal it is written back as pages of files are.
        let intervals = top.map(|(place, of)| match of.has_journal {
            Some(false) => place.write_back_ms,
            _ => of.commit_interval_ms,
        });
        intervals.collect::<Option<Vec<u64>>>()?.into_iter().max()
    }

    /// Whether a file system writes whole pages or nothing.
    pub(super) fn is_zfs(&self) -> bool {
        !self.places.is_empty()
            && self.places.iter().all(|place| {
                place
                    .file_systems()
                    .next()
                    .is_some_and(|of| of.kind == "zfs")
            })
    }

    /// The largest write that no device tears, bytes; 0 when one promises none.
    pub(super) fn atomic_write_bytes(&self) -> u64 {
        let devices = self.places.iter().flat_map(Beneath::devices);
        devices
            .map(|device| device.atomic_write_bytes)
            .min()
            .unwrap_or(0)
    }

    /// Whether a device has a cache that needs flushes; `None` when one does not tell.
    pub(super) fn has_volatile_cache(&self) -> Option<bool> {
        let devices: Vec<&DeviceLayer> = self.places.iter().flat_map(Beneath::devices).collect();
        let is_volatile = |device: &&DeviceLayer| {
            [device.write_cache, device.hardware_cache].contains(&Some(WriteCache::WriteBack))
        };
        if devices.iter().any(is_volatile) {
            return Some(true);
        }
        let is_known = |device: &&DeviceLayer| device.write_cache.is_some();
        (!devices.is_empty() && devices.iter().all(is_known)).then_some(false)
    }
}

fn reason_between(between: &Between) -> Reason {
    match between {
        Between::Library(path) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let line = match name.starts_with("libeatmydata") {
                true => &LIBRARY_EATS,
                false => &LIBRARY_ANSWERS,
            };
            Reason::of(line, path.display().to_string())
        }
        Between::Hidden(process) => Reason::of(&LIBRARIES_HIDDEN, format!("process {process}")),
    }
}

fn reason_of(layer: &Layer) -> Reason {
    match layer {
        Layer::FileSystem(of) => {
            let line = of_file_system(of);
            Reason::of(line, named(of, line))
        }
        Layer::Device(of) => Reason::of(of_device(of), of.name.clone()),
        Layer::Hidden(what) => Reason::of(&DEVICE_UNKNOWN, what.clone()),
    }
}

/// `ext4 on /data`, with the option that decides.
fn named(of: &FileSystemLayer, line: &PromiseLine) -> String {
    let option = of.no_barrier().or_else(|| of.is_volatile());
    let option = option.map_or_else(String::new, |option| format!(" ({option})"));
    let journal = match std::ptr::eq(line, &EXT4_NO_JOURNAL) && of.kind != "ext2" {
        true => " without a journal",
        false => "",
    };
    format!(
        "{}{journal}{option} on {}",
        of.kind,
        of.mount_point.display()
    )
}

fn of_file_system(of: &FileSystemLayer) -> &'static PromiseLine {
    let no_barrier = of.no_barrier().is_some();
    if !of.is_flushed {
        return &DEVICE_NOT_FLUSHED;
    }
    match of.kind.as_str() {
        "ext3" | "ext4" if no_barrier => &EXT4_NO_BARRIER,
        "ext3" | "ext4" if of.has_journal == Some(false) => &EXT4_NO_JOURNAL,
        "ext3" | "ext4" if of.has("data=writeback") => &EXT4_WRITEBACK,
        "ext3" | "ext4" => &EXT4_JOURNALED,
        "ext2" => &EXT4_NO_JOURNAL,
        "xfs" if no_barrier => &XFS_NO_BARRIER,
        "xfs" => &XFS_DEFAULT,
        "btrfs" if no_barrier => &BTRFS_NO_BARRIER,
        "btrfs" => &BTRFS_DEFAULT,
        "f2fs" if no_barrier => &F2FS_NO_BARRIER,
        "f2fs" if of.is_without_checkpoints() => &F2FS_NO_CHECKPOINT,
        "f2fs" => &F2FS_DEFAULT,
        _ if of.is_memory() => &IN_MEMORY,
        "overlay" if of.is_volatile().is_some() => &OVERLAY_VOLATILE,
        "overlay" => &OVERLAY_DEFAULT,
        _ if of.is_remote() || of.is_fuse() => &NETWORK,
        "zfs" => &ZFS_SYNC,
        _ => &FILE_SYSTEM_UNKNOWN,
    }
}

fn of_device(of: &DeviceLayer) -> &'static PromiseLine {
    if of.is_memory() {
        return &DEVICE_MEMORY;
    }
    match (of.write_cache, of.hardware_cache) {
        (Some(WriteCache::WriteThrough), Some(WriteCache::WriteBack)) => &DEVICE_HARDWARE_CACHE,
        (Some(WriteCache::WriteBack), _) if !of.is_flushed => &DEVICE_NOT_FLUSHED,
        (Some(WriteCache::WriteBack), _) => &DEVICE_FLUSHED,
        (Some(WriteCache::WriteThrough), _) if of.is_numbered("nbd") => &DEVICE_NETWORK,
        (Some(WriteCache::WriteThrough), _) => &DEVICE_NO_CACHE,
        (None, _) => &DEVICE_UNKNOWN,
    }
}
