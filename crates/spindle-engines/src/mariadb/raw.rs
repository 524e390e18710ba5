//! InnoDB's system tablespace on raw devices: each of its files is a device, and all tables are in it
//! (https://dev.mysql.com/doc/refman/8.0/en/innodb-system-tablespace.html#innodb-raw-devices). A database is made and
//! loaded with files of the same names and sizes; their bytes are then put on the devices, whose nodes stand in the
//! data directory where the files would. So a device is never made a new datafile (`newraw`): a server that finds one
//! under the name of a datafile is started with `raw` behind its size.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileTypeExt;

use spindle_io::real::Caching;
use spindle_layout::{LayoutError, RawDevice, RawFile, TreeDirectories};
use spindle_text::quantity::{size_free, size_needed};

use super::settings::plain;
use crate::EngineError;
use crate::sql::{OnRawDevices, ServerIo, ServerRequest};

pub(super) const DATA_FILE_PATH: &str = "innodb_data_file_path";
const FILE_PER_TABLE: &str = "innodb_file_per_table";
const FLUSH_METHOD: &str = "innodb_flush_method";
const DATA_FILE_BUFFERING: &str = "innodb_data_file_buffering";
const MIB: u64 = 1 << 20;
/// InnoDB demands 5 MiB of the first file (MariaDB 10.11 writes 12 MiB by default).
const FILE_MIN_BYTES: u64 = 12 * MIB;

/// What is asked of a server whose system tablespace lies on these devices; `bytes` is what it must hold when the
/// experiment says nothing of it.
///
/// # Errors
/// `Unavailable`: settings that say otherwise, or devices that are too small.
pub(super) fn on_raw_devices(
    request: &ServerRequest,
    devices: &[RawDevice],
    bytes: u64,
) -> Result<OnRawDevices, EngineError> {
    let mut request = request.clone();
    one_tablespace(&mut request.settings)?;
    unbuffered(&mut request)?;
    let list = match value_of(&request.settings, DATA_FILE_PATH) {
        Some(list) => list.to_owned(),
        None => equal_files(devices.len() as u64, bytes),
    };
    let files = parse(&list)?;
    if files.len() != devices.len() {
        return Err(no(format!(
            "{DATA_FILE_PATH} names {} files, and the layout has {} raw devices: each file needs its own device",
            files.len(),
            devices.len()
        )));
    }
    let files: Vec<RawFile> = files
        .into_iter()
        .zip(devices)
        .map(|((name, bytes), device)| RawFile {
            name,
            bytes,
            device: device.clone(),
        })
        .collect();
    if let Some(file) = files.iter().find(|file| file.bytes > file.device.bytes) {
        return Err(no(format!(
            "{} has {}, and {} of InnoDB's system tablespace takes {} of it: choose a larger device, a smaller \
             database size, or set {DATA_FILE_PATH}, such as \"ibdata1:500M\"",
            file.device.called().display(),
            size_free(file.device.bytes),
            file.name,
            size_needed(file.bytes)
        )));
    }
    add(&mut request.settings, DATA_FILE_PATH, &list);
    let notes = vec![format!(
        "all tables are in InnoDB's system tablespace, and so is undo unless innodb_undo_tablespaces says otherwise: {}; a \
         layout with files is like this one with {FILE_PER_TABLE} = OFF and {DATA_FILE_PATH} = {list}",
        placed(&files)
    )];
    Ok(OnRawDevices {
        request,
        bytes: files.iter().map(|file| file.bytes).sum(),
        files,
        notes,
    })
}

fn placed(files: &[RawFile]) -> String {
    let each = files
        .iter()
        .map(|file| format!("{} on {}", file.name, file.device.called().display()));
    each.collect::<Vec<_>>().join(", ")
}

/// A list of datafiles with `raw` behind those whose names are nodes of block devices in the data directory.
///
/// # Errors
/// `Failed`: one of them was not examined.
pub(super) fn with_raw_marked(
    list: &str,
    directories: &TreeDirectories,
) -> Result<String, EngineError> {
    let mark = |file: &str| {
        let name = file.split(':').next().unwrap_or_default();
        let path = directories.data.join(name);
        if directories.devices.iter().any(|known| known.path() == path) {
            return Ok(format!("{file}raw"));
        }
        let found = std::fs::symlink_metadata(&path);
        match found.is_ok_and(|found| found.file_type().is_block_device()) {
            true => Err(EngineError::failed(
                format!("the datafile {}", path.display()),
                "it is a device that was not examined",
            )),
            false => Ok(file.to_owned()),
        }
    };
    let files: Result<Vec<String>, EngineError> = list.split(';').map(mark).collect();
    Ok(files?.join(";"))
}

/// Opens the devices of datafiles, for reading: as long as they are open, their numbers cannot pass to others, and the
/// server finds those that were looked at.
///
/// # Errors
/// `Failed`: a node leads to another device.
pub(super) fn hold(directories: &TreeDirectories) -> Result<Vec<File>, EngineError> {
    let devices = directories.devices.iter();
    let held = devices.map(|device| device.open_file(OpenOptions::new().read(true)));
    let held: Result<Vec<File>, LayoutError> = held.collect();
    held.map_err(|error| EngineError::failed("opening a datafile's device", error))
}

fn no(reason: String) -> EngineError {
    EngineError::unavailable(reason)
}

fn value_of<'a>(settings: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    let mut settings = settings.iter();
    let found = settings.find(|(own, _)| plain(own) == name);
    found.map(|(_, value)| value.as_str())
}

/// As the experiment says, if it says anything.
fn add(settings: &mut BTreeMap<String, String>, name: &str, value: &str) {
    if value_of(settings, name).is_none() {
        settings.insert(name.to_owned(), value.to_owned());
    }
}

/// Tables have no separate files.
fn one_tablespace(settings: &mut BTreeMap<String, String>) -> Result<(), EngineError> {
    let is_off = |value: &str| matches!(value.to_lowercase().as_str(), "0" | "off" | "false");
    match value_of(settings, FILE_PER_TABLE) {
        Some(value) if !is_off(value) => Err(no(format!(
            "{FILE_PER_TABLE} = {value}, and only the system tablespace can lie on raw devices: set it to OFF for all layouts"
        ))),
        _ => {
            add(settings, FILE_PER_TABLE, "OFF");
            Ok(())
        }
    }
}

/// The page cache has no part in it.
fn unbuffered(request: &mut ServerRequest) -> Result<(), EngineError> {
    let flush_method = value_of(&request.settings, FLUSH_METHOD);
    let buffering = value_of(&request.settings, DATA_FILE_BUFFERING);
    let is_direct = |value: &str| {
        let value = value.to_uppercase();
        value == "O_DIRECT" || value == "O_DIRECT_NO_FSYNC"
    };
    let is_on = |value: &str| matches!(value.to_lowercase().as_str(), "1" | "on" | "true");
    let buffered = match (flush_method, buffering) {
        (Some(method), _) if !is_direct(method) => Some(format!("{FLUSH_METHOD} = {method}")),
        (_, Some(value)) if is_on(value) => Some(format!("{DATA_FILE_BUFFERING} = {value}")),
        _ if request
            .io
            .is_some_and(|io| io.caching == Some(Caching::Buffered)) =>
        {
            Some("caching = \"buffered\"".to_owned())
        }
        _ => None,
    };
    if let Some(buffered) = buffered {
        return Err(no(format!(
            "{buffered}, and raw devices are never buffered: leave it out for this layout"
        )));
    }
    if flush_method.is_none() && buffering.is_none() {
        request.io = Some(ServerIo {
            caching: Some(Caching::Direct),
            method: request.io.and_then(|io| io.method),
            slaves: request.io.map_or(0, |io| io.slaves),
        });
    }
    Ok(())
}

/// A file of equal size for each device, this many bytes together.
fn equal_files(count: u64, bytes: u64) -> String {
    let each = bytes.div_ceil(count.max(1)).max(FILE_MIN_BYTES);
    let files = (1..=count).map(|number| format!("ibdata{number}:{}M", each.div_ceil(MIB)));
    files.collect::<Vec<_>>().join(";")
}

/// Names and sizes of a list such as `ibdata1:500M;ibdata2:1G`.
fn parse(list: &str) -> Result<Vec<(String, u64)>, EngineError> {
    let one = |file: &str| {
        let (name, size) = file.split_once(':')?;
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        let is_name = name.bytes().all(is_letter) && !name.starts_with('.') && !name.is_empty();
        let digits = size.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let unit = match size[digits.len()..].to_uppercase().as_str() {
            "G" => MIB << 10,
            "M" => MIB,
            "K" => 1 << 10,
            "" => 1,
            _ => return None,
        };
        let bytes = digits.parse::<u64>().ok()?.checked_mul(unit)?;
        (is_name && bytes > 0 && bytes.is_multiple_of(MIB)).then(|| (name.to_owned(), bytes))
    };
    let files: Option<Vec<(String, u64)>> = list.split(';').map(one).collect();
    files.ok_or_else(|| {
        no(format!(
            "{DATA_FILE_PATH} = {list:?}: on raw devices it is a list of names and sizes in whole MiB, one for each device, such \
             as \"ibdata1:500M;ibdata2:500M\", without autoextend: a device does not grow"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(settings: &[(&str, &str)], caching: Option<Caching>) -> ServerRequest {
        let settings = settings.iter();
        ServerRequest {
            settings: settings
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            bin_dir: None,
            buffer_cache_bytes: 64 * MIB,
            data_bytes: 100 * MIB,
            clients: 8,
            io: caching.map(|caching| ServerIo {
                caching: Some(caching),
                method: None,
                slaves: 0,
            }),
            database: None,
        }
    }

    fn devices(sizes: &[u64]) -> Vec<RawDevice> {
        let numbered = sizes.iter().enumerate();
        numbered
            .map(|(number, mib)| RawDevice::reckoned(format!("/dev/raw{number}").into(), mib * MIB))
            .collect()
    }

    #[test]
    fn the_tablespace_is_dealt_out_to_the_devices() {
        let on = on_raw_devices(&request(&[], None), &devices(&[64, 64]), 101 * MIB).unwrap();
        let value = |name| value_of(&on.request.settings, name);
        assert_eq!(value(DATA_FILE_PATH), Some("ibdata1:51M;ibdata2:51M"));
        assert_eq!(value(FILE_PER_TABLE), Some("OFF"));
        assert_eq!(on.request.io.unwrap().caching, Some(Caching::Direct));
        assert_eq!(on.files[1].name, "ibdata2");
        assert_eq!(on.files[1].device.path(), std::path::Path::new("/dev/raw1"));
        assert!(
            on.notes[0].contains("ibdata2 on /dev/raw1"),
            "{:?}",
            on.notes
        );
    }

    #[test]
    fn what_the_experiment_says_of_it_counts() {
        let settings = [
            ("innodb-data-file-path", "a:1G;b:2048K"),
            ("innodb_file_per_table", "off"),
            ("innodb_flush_method", "O_DIRECT_NO_FSYNC"),
        ];
        let on = on_raw_devices(&request(&settings, None), &devices(&[1024, 2]), MIB).unwrap();
        assert_eq!(
            value_of(&on.request.settings, DATA_FILE_PATH),
            Some("a:1G;b:2048K")
        );
        assert_eq!((on.files[0].bytes, on.files[1].bytes), (MIB << 10, 2 * MIB));
        assert_eq!(on.request.io, None);
        assert_eq!(on.request.settings.len(), 3);
    }

    #[test]
    fn what_raw_devices_cannot_have_is_refused_with_the_way_out() {
        let told = |settings: &[(&str, &str)], direct, sizes: &[u64]| {
            let asked = request(settings, direct);
            let refused = on_raw_devices(&asked, &devices(sizes), 100 * MIB);
            refused.unwrap_err().to_string()
        };
        let path = |list| [(DATA_FILE_PATH, list)];
        assert!(told(&[(FILE_PER_TABLE, "ON")], None, &[200]).contains("set it to OFF"));
        assert!(told(&[(FLUSH_METHOD, "fsync")], None, &[200]).contains("never buffered"));
        assert!(told(&[(DATA_FILE_BUFFERING, "ON")], None, &[200]).contains("never buffered"));
        assert!(told(&[], Some(Caching::Buffered), &[200]).contains("never buffered"));
        assert!(told(&[], None, &[99]).contains("choose a larger device"));
        assert!(told(&path("a:50M"), None, &[200, 200]).contains("2 raw devices"));
        for list in [
            "a:12M:autoextend",
            "a:12Mraw",
            "/dev/sda:12M",
            "..:12M",
            "a:1025K",
            "a:M",
            "a",
        ] {
            let told = told(&path(list), None, &[200]);
            assert!(told.contains("whole MiB"), "{list}: {told}");
        }
    }

    #[test]
    fn only_nodes_of_devices_are_raw() {
        let directory = tempfile::tempdir().unwrap();
        let list = "ibdata1:12M;ibdata2:12M:autoextend";
        let directories = TreeDirectories::within(|_| directory.path().to_owned());
        directories.make().unwrap();
        std::fs::write(directories.data.join("ibdata1"), "x").unwrap();
        assert_eq!(with_raw_marked(list, &directories).unwrap(), list);
    }
}
