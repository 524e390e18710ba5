//! Which files a database has: their sizes ([`DatabaseShape`]), the names they bear, and where they are
//! ([`DatabaseFiles`]). A file is known by its name (`control`, `redo1`, `undo`, `data1`, `double_write`), which stays
//! the same in the golden copy and in every image.

use serde::{Deserialize, Serialize};
use spindle_text::quantity::{size, size_exact};

use crate::error::LayoutError;
use crate::place::Place;

/// Sizes of a database's files. Databases of one shape, loaded alike, share one golden copy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DatabaseShape {
    /// Size of a database block: 2, 4, 8, 16 or 32 KiB. Every file is a whole number of blocks.
    pub block_bytes: u64,
    /// Size of the control file.
    pub control_bytes: u64,
    /// Size of each redo log file.
    pub redo_bytes: Vec<u64>,
    /// Size of the undo tablespace's datafile.
    pub undo_bytes: u64,
    /// Size of each datafile of the data tablespace.
    pub data_bytes: Vec<u64>,
    /// Size of the file of the double write areas; 0 when there is none.
    #[serde(default)]
    pub double_write_bytes: u64,
    /// Size of each tempfile of the temporary tablespace; none where no query needs it.
    #[serde(default)]
    pub temp_bytes: Vec<u64>,
}

impl DatabaseShape {
    /// Size of all files together.
    pub fn total_bytes(&self) -> u64 {
        self.files().iter().map(|file| file.bytes).sum()
    }

    /// All files: control, redo, undo, data, double write, temp.
    pub(crate) fn files(&self) -> Vec<ShapeFile> {
        let numbered = |kind, sizes: &[u64]| -> Vec<ShapeFile> {
            (1..)
                .zip(sizes)
                .map(|(number, bytes)| ShapeFile::new(kind, number, *bytes))
                .collect()
        };
        let mut files = vec![ShapeFile::new(FileKind::Control, 1, self.control_bytes)];
        files.extend(numbered(FileKind::Redo, &self.redo_bytes));
        files.push(ShapeFile::new(FileKind::Undo, 1, self.undo_bytes));
        files.extend(numbered(FileKind::Data, &self.data_bytes));
        if self.double_write_bytes > 0 {
            let bytes = self.double_write_bytes;
            files.push(ShapeFile::new(FileKind::DoubleWrite, 1, bytes));
        }
        files.extend(numbered(FileKind::Temp, &self.temp_bytes));
        files
    }

    /// Errors: [`LayoutError::BadShape`].
    pub(crate) fn check(&self) -> Result<(), LayoutError> {
        let bad = |reason| Err(LayoutError::BadShape { reason });
        let block_bytes = self.block_bytes;
        if !block_bytes.is_power_of_two() || !(2048..=32768).contains(&block_bytes) {
            return bad(format!(
                "a block has 2, 4, 8, 16 or 32 KiB, not {}",
                size(block_bytes)
            ));
        }
        if self.redo_bytes.is_empty() || self.data_bytes.is_empty() {
            return bad("at least one redo log file and one datafile are needed".to_owned());
        }
        match self
            .files()
            .iter()
            .find(|file| file.bytes == 0 || !file.bytes.is_multiple_of(block_bytes))
        {
            Some(file) => bad(format!(
                "{} has {}, which is not a whole number of blocks of {}",
                file.name(),
                size_exact(file.bytes),
                size(block_bytes)
            )),
            None => Ok(()),
        }
    }
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Control,
    Redo,
    Undo,
    Data,
    DoubleWrite,
    Temp,
}

/// One file of a [`DatabaseShape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShapeFile {
    pub(crate) kind: FileKind,
    number: u32,
    pub(crate) bytes: u64,
}

impl ShapeFile {
    fn new(kind: FileKind, number: u32, bytes: u64) -> ShapeFile {
        ShapeFile {
            kind,
            number,
            bytes,
        }
    }

    /// The name it is known by.
    pub(crate) fn name(&self) -> String {
        name(self.kind, self.number)
    }

    /// The name it has on a file system, with the suffixes Oracle's manuals use.
    pub(crate) fn file_name(&self) -> String {
        let suffix = match self.kind {
            FileKind::Control => "ctl",
            FileKind::Redo => "log",
            FileKind::Undo | FileKind::Data | FileKind::DoubleWrite | FileKind::Temp => "dbf",
        };
        format!("{}.{suffix}", self.name())
    }
}

fn name(kind: FileKind, number: u32) -> String {
    match kind {
        FileKind::Control => "control".to_owned(),
        FileKind::Redo => format!("redo{number}"),
        FileKind::Undo => "undo".to_owned(),
        FileKind::Data => format!("data{number}"),
        FileKind::DoubleWrite => "double_write".to_owned(),
        FileKind::Temp => format!("temp{number}"),
    }
}

/// Whether Spindle makes files of this name: those of a [`DatabaseShape`], their hidden names while an ODM creation is
/// under way on a file system without nameless files, and what a probe of direct I/O may leave there when it is killed.
pub(crate) fn is_known_file_name(name: &str) -> bool {
    let is_number = |text: &str| {
        !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if let Some(process) = name.strip_prefix(".direct-probe-") {
        return is_number(process);
    }
    let visible = match name.strip_prefix('.') {
        Some(hidden) => match hidden.split_once(".creating-") {
            Some((visible, process)) if is_number(process) => visible,
            _ => return false,
        },
        None => name,
    };
    let numbered = |prefix, suffix| {
        visible
            .strip_prefix(prefix)
            .and_then(|rest| rest.strip_suffix(suffix))
            .is_some_and(is_number)
    };
    matches!(visible, "control.ctl" | "undo.dbf" | "double_write.dbf")
        || numbered("redo", ".log")
        || numbered("data", ".dbf")
        || numbered("temp", ".dbf")
}

/// Which file manager makes the files of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileManager {
    /// Files are made under their names and written from front to back through the page cache.
    Plain,
    /// Oracle's disk manager: preallocated, initialised, invisible until committed. The file system must take direct
    /// I/O.
    Odm,
}

/// The files of a database by what they are for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DatabaseFiles {
    /// The control file.
    pub control: Place,
    /// The redo log files, in order.
    pub redo: Vec<Place>,
    /// The undo tablespace's datafile.
    pub undo: Place,
    /// The data tablespace's datafiles, in order.
    pub data: Vec<Place>,
    /// The file of the double write areas, if there is one.
    #[serde(default)]
    pub double_write: Option<Place>,
    /// The tempfiles, in order.
    #[serde(default)]
    pub temp: Vec<Place>,
}

impl DatabaseFiles {
    /// The files of a shape, each where `place` says. Errors: the first of `place`.
    pub(crate) fn of<E>(
        shape: &DatabaseShape,
        mut place: impl FnMut(&ShapeFile) -> Result<Place, E>,
    ) -> Result<DatabaseFiles, E> {
        let mut of_kind: [Vec<Place>; 6] = Default::default();
        for file in shape.files() {
            of_kind[file.kind as usize].push(place(&file)?);
        }
        let [mut control, redo, mut undo, data, mut double_write, temp] = of_kind;
        Ok(DatabaseFiles {
            control: control.remove(0),
            redo,
            undo: undo.remove(0),
            data,
            double_write: double_write.pop(),
            temp,
        })
    }

    /// Whether no file of it lies on a file system.
    pub fn is_raw(&self) -> bool {
        let mut files = self.named().into_iter();
        files.all(|(_, place)| !matches!(place, Place::File(_)))
    }

    /// Every file with the name it is known by (`control`, `redo1`, `undo`, `data1`, `double_write`, `temp1`), in that
    /// order.
    pub fn named(&self) -> Vec<(String, &Place)> {
        let group = |kind, places| {
            (1..)
                .zip(places)
                .map(move |(number, place)| (name(kind, number), place))
        };
        let one = std::slice::from_ref;
        group(FileKind::Control, one(&self.control))
            .chain(group(FileKind::Redo, &self.redo))
            .chain(group(FileKind::Undo, one(&self.undo)))
            .chain(group(FileKind::Data, &self.data))
            .chain(group(FileKind::DoubleWrite, self.double_write.as_slice()))
            .chain(group(FileKind::Temp, &self.temp))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::placement::{Placement, PlacementTarget, RawSpace};

    fn shape() -> DatabaseShape {
        DatabaseShape {
            block_bytes: 8192,
            control_bytes: 1 << 20,
            redo_bytes: vec![1 << 20; 2],
            undo_bytes: 1 << 20,
            data_bytes: vec![2 << 20; 12],
            double_write_bytes: 1 << 20,
            temp_bytes: vec![1 << 20; 2],
        }
    }

    #[test]
    fn every_file_has_one_name_everywhere() {
        let placement = Placement {
            redo: PlacementTarget::Directory(PathBuf::from("/redo")),
            ..Placement::in_directory(Path::new("/u01"))
        };
        let mut space = RawSpace::default();
        let files = DatabaseFiles::place(&shape(), &placement, &mut space).unwrap();
        let named = files.named();
        let names: Vec<_> = shape().files().iter().map(ShapeFile::name).collect();
        assert_eq!(
            named.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            names.iter().collect::<Vec<_>>()
        );
        assert_eq!(names[..5], ["control", "redo1", "redo2", "undo", "data1"]);
        assert_eq!(named[2].1.path(), Path::new("/redo/redo2.log"));
        assert_eq!(files.data[11].path(), Path::new("/u01/data12.dbf"));
        assert_eq!(names[16..], ["double_write", "temp1", "temp2"]);
        for (_, place) in &named {
            let name = place.path().file_name().unwrap().to_str().unwrap();
            assert!(is_known_file_name(name), "{name}");
            assert!(is_known_file_name(&format!(".{name}.creating-42")));
        }
        assert_eq!(shape().total_bytes(), 31 << 20);
    }

    #[test]
    fn files_of_others_are_not_known() {
        for name in [
            "",
            ".",
            "data.dbf",
            "data0.dbf",
            "data01.dbf",
            "data1.dbf.old",
            "mydata1.dbf",
            "data-1.dbf",
            "redo1.dbf",
            "control1.ctl",
            ".data1.dbf",
            ".data1.dbf.creating-",
            ".notes.creating-7",
            ".direct-probe-",
            "SPINDLE-DATA",
        ] {
            assert!(!is_known_file_name(name), "{name}");
        }
    }

    #[test]
    fn sizes_that_are_no_whole_blocks_are_named() {
        let mut odd = shape();
        odd.redo_bytes[1] += 512;
        let told = odd.check().unwrap_err().to_string();
        let wanted = "redo2 has 1,049,088 bytes, which is not a whole number of blocks of 8 KiB";
        assert!(told.contains(wanted), "{told}");
        let block = DatabaseShape {
            block_bytes: 512,
            ..shape()
        };
        assert!(block.check().unwrap_err().to_string().contains("32 KiB"));
        assert!(shape().check().is_ok());
    }
}
