//! SQLite's database on a raw device or in a disk group. It is made and loaded in a file of the same name; the file's
//! bytes are then put there, and in the data directory stands a node of the device where the file would, or a file that
//! says where it is in its group. A database found so is opened through `vfs`, which is built with the feature
//! `sqlite-devices`.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use spindle_io::real::facts::{DirectIo, direct_io};
use spindle_io::real::{Caching, Method};
use spindle_layout::{KnownDevice, RawDevice, RawFile, TreeDirectories, place_of};
use spindle_text::quantity::size;

use super::elsewhere::{Elsewhere, not_built};
use super::vfs;
use crate::EngineError;
use crate::sql::{InDiskGroup, OnRawDevices, ServerRequest};

/// SQLite's own, when nothing is said of it.
const PAGE_BYTES: u32 = 4096;
const PAGE_SIZE: &str = "page_size";
const MIB: u64 = 1 << 20;

fn no(reason: impl Into<String>) -> EngineError {
    EngineError::unavailable(reason.into())
}

/// Where the database at this path lies; `None`: it is a file.
///
/// # Errors
/// `Failed`: the path cannot be looked at, or is a device's that was not examined.
pub(super) fn elsewhere(
    directories: &TreeDirectories,
    path: &Path,
) -> Result<Option<Elsewhere>, EngineError> {
    let mut devices = directories.devices.iter();
    if let Some(device) = devices.find(|device| device.path() == path) {
        return Ok(Some(Elsewhere::Device(device.clone())));
    }
    let found = std::fs::symlink_metadata(path);
    if found.is_ok_and(|found| found.file_type().is_block_device()) {
        let reason = "it is a device that was not examined";
        return Err(EngineError::failed("opening the database", reason));
    }
    let place = place_of(path);
    let place = place.map_err(|error| EngineError::failed("opening the database", error))?;
    Ok(place.map(Elsewhere::Group))
}

/// What is asked of SQLite when its database, the file `name`, lies on a raw device.
///
/// # Errors
/// `Unavailable`: the program was built without it, or settings and devices do not suit it.
pub(super) fn on_raw_devices(
    request: &ServerRequest,
    devices: &[RawDevice],
    name: &str,
) -> Result<OnRawDevices, EngineError> {
    if !vfs::IS_BUILT {
        return Err(not_built());
    }
    let [device] = devices else {
        return Err(no(format!(
            "SQLite's database is one file, and the layout has {} raw devices for it: leave one, or make a volume of them \
             (volume = {{ }})",
            devices.len()
        )));
    };
    suits_devices(request)?;
    page_size_suits(request, device.path())?;
    let notes = vec![note(name, &format!("on {}", device.called().display()))];
    Ok(OnRawDevices {
        request: without_io(request),
        files: vec![RawFile {
            name: name.to_owned(),
            // As long as the device: see `vfs`.
            bytes: device.bytes,
            device: device.clone(),
        }],
        bytes: request.data_bytes,
        notes,
    })
}

/// What is asked of SQLite when its database, the file `name`, lies in a disk group; it takes `bytes` there, about.
///
/// # Errors
/// As [`on_raw_devices`].
pub(super) fn in_disk_group(
    request: &ServerRequest,
    disks: &[KnownDevice],
    name: &str,
    bytes: u64,
) -> Result<InDiskGroup, EngineError> {
    if !vfs::IS_BUILT {
        return Err(not_built());
    }
    suits_devices(request)?;
    for disk in disks {
        page_size_suits(request, disk.path())?;
    }
    let bytes = (bytes + MIB).next_multiple_of(MIB);
    let place = format!("in the disk group, where it has {}", size(bytes));
    Ok(InDiskGroup {
        request: without_io(request),
        files: vec![(name.to_owned(), bytes)],
        notes: vec![note(name, &place)],
    })
}

/// What there is to say of it is said: devices are direct, one call at a time.
fn without_io(request: &ServerRequest) -> ServerRequest {
    ServerRequest {
        io: None,
        database: None,
        ..request.clone()
    }
}

fn note(name: &str, place: &str) -> String {
    format!(
        "{name} is {place}, direct, through a VFS of Spindle's own; its journal or log and temporary files are in the file system, \
         through SQLite's. In files SQLite reads through the page cache, here it has its own caches only"
    )
}

fn suits_devices(request: &ServerRequest) -> Result<(), EngineError> {
    let io = request.io;
    if io.is_some_and(|io| io.caching == Some(Caching::Buffered)) {
        return Err(no(
            "caching = \"buffered\", and raw devices and disk groups are never buffered: leave it out for this layout",
        ));
    }
    let method = io.and_then(|io| io.method);
    if method.is_some_and(|method| method != Method::Sync) {
        return Err(no(
            "SQLite asks for one page after the other and waits for each: method can be \"sync\" only",
        ));
    }
    let value_of = |name: &str| request.settings.get(name).map(|value| value.to_lowercase());
    if value_of("mmap_size").is_some_and(|bytes| bytes != "0") {
        return Err(no(
            "mmap_size is set, and what lies on devices is read and not mapped: set it to 0, or leave it out",
        ));
    }
    match value_of("synchronous").as_deref() {
        Some("extra") => Err(no(
            "synchronous = extra flushes the directory of a journal that was removed, of which the VFS for devices is not \
             told: choose \"full\" for all layouts",
        )),
        _ => Ok(()),
    }
}

/// A page is written whole, so that it can be no smaller than what the device writes.
fn page_size_suits(request: &ServerRequest, device: &Path) -> Result<(), EngineError> {
    let page_bytes = match request.settings.get(PAGE_SIZE) {
        Some(bytes) => bytes.parse().unwrap_or(PAGE_BYTES),
        None => PAGE_BYTES,
    };
    match direct_io(device) {
        Ok(DirectIo::Aligned {
            offset_alignment_bytes: block_bytes,
            ..
        }) if page_bytes < block_bytes => Err(no(format!(
            "{PAGE_SIZE} = {page_bytes}, and {} writes blocks of {block_bytes} bytes: set it to {block_bytes} or more for all layouts",
            device.display()
        ))),
        Ok(DirectIo::NotSupported { reason }) => Err(no(format!("{}: {reason}", device.display()))),
        Ok(_) => Ok(()),
        Err(error) => Err(no(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sql::ServerIo;

    fn request(settings: &[(&str, &str)], io: Option<ServerIo>) -> ServerRequest {
        let settings = settings.iter();
        ServerRequest {
            settings: settings
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect::<BTreeMap<_, _>>(),
            bin_dir: None,
            buffer_cache_bytes: 1 << 20,
            data_bytes: 1 << 20,
            clients: 2,
            io,
            database: None,
        }
    }

    /// A file that stands for a device.
    fn device(file: &tempfile::NamedTempFile) -> RawDevice {
        file.as_file().set_len(8 << 20).unwrap();
        RawDevice::look(file.path(), 8 << 20).unwrap()
    }

    fn told(request: &ServerRequest, devices: &[RawDevice]) -> String {
        let refused = on_raw_devices(request, devices, "spindle.db");
        refused.unwrap_err().to_string()
    }

    #[cfg(not(feature = "sqlite-devices"))]
    #[test]
    fn a_program_built_without_it_says_how_to_build_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let told = told(&request(&[], None), &[device(&file)]);
        assert!(
            told.contains("--features sqlite-devices") && told.contains("libclang-dev"),
            "{told}"
        );
    }

    #[cfg(feature = "sqlite-devices")]
    #[test]
    fn the_database_takes_the_device() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let io = ServerIo {
            caching: Some(Caching::Direct),
            method: Some(Method::Sync),
            slaves: 0,
        };
        let settings = [("page_size", "8192"), ("mmap_size", "0")];
        let asked = request(&settings, Some(io));
        let on = on_raw_devices(&asked, &[device(&file)], "spindle.db").unwrap();
        assert_eq!((on.request.io, on.request.settings), (None, asked.settings));
        assert_eq!(
            (on.files[0].name.as_str(), on.files[0].bytes),
            ("spindle.db", 8 << 20)
        );
        assert!(on.notes[0].contains("spindle.db is on"), "{:?}", on.notes);
    }

    #[cfg(feature = "sqlite-devices")]
    #[test]
    fn what_a_raw_device_cannot_have_is_refused_with_the_way_out() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let device = device(&file);
        let one = [device.clone()];
        let io = |caching, method| {
            Some(ServerIo {
                caching,
                method,
                slaves: 8,
            })
        };
        let refused = |settings: &[(&str, &str)], io| told(&request(settings, io), &one);
        assert!(refused(&[], io(Some(Caching::Buffered), None)).contains("never buffered"));
        let slaves = Some(Method::Slaves);
        assert!(refused(&[], io(None, slaves)).contains("\"sync\" only"));
        assert!(refused(&[("mmap_size", "4096")], None).contains("set it to 0"));
        assert!(refused(&[("synchronous", "Extra")], None).contains("choose \"full\""));
        let two = told(&request(&[], None), &[device.clone(), device]);
        assert!(two.contains("one file"), "{two}");
    }
}
