//! Devices and files that a person makes disks of a disk group: emptied as a run empties what it claims, just before
//! the group is written on them. `spindle diskgroup` calls this, after its last look at what the group is to be.

use std::fs::OpenOptions;
use std::sync::Arc;

use spindle_system::SystemTree;

use super::claim_device::{erase, forget_partitions};
use super::error::StepError;
use crate::guard::stamp::unstamp;
use crate::guard::{FileUses, Guard, Permit, TakenDevice, Want};
use crate::tool::Tools;

/// Empties a device that was taken, if it may be erased: no signature stays, and the kernel forgets its partitions. Of
/// one that counts as empty the stamp or mark of a run goes, so that the group is not taken for that run's.
///
/// # Errors
/// The device is another one by now, in use, or bears what it did not. Or the system's.
pub fn empty_device(taken: TakenDevice, want: &Want<'_>) -> Result<TakenDevice, StepError> {
    let (tree, tools) = (SystemTree::default(), Tools::new());
    let guard = Guard::new(&tree, &tools);
    guard.check_again(&taken, want)?;
    let file = taken.to_write(None);
    let file = file.map_err(|error| StepError::system("write to", taken.path(), error))?;
    let Permit::Erase { .. } = taken.permit() else {
        unstamp(&file, taken.state().size_bytes)
            .map_err(|error| StepError::system("zero the mark on", taken.path(), error))?;
        return Ok(taken);
    };
    let held = Arc::clone(taken.held());
    erase(&file, taken.state().size_bytes, taken.path(), &tools)?;
    // The kernel reads the partition table again only when no process holds the disk exclusively.
    drop((file, taken));
    forget_partitions(&held, &tree, &tools)?;
    Ok(guard.take(&held)?)
}

/// Empties the very file that was looked at, which may hold data.
///
/// # Errors
/// It is in use, or its path leads to another file by now. Or the system's.
pub fn empty_file(seen: &FileUses) -> Result<(), StepError> {
    let (tree, tools) = (SystemTree::default(), Tools::new());
    let path = seen.device.called();
    Guard::new(&tree, &tools).look_at_file(path, true)?;
    let mut options = OpenOptions::new();
    let file = seen.device.open_file(options.read(true).write(true))?;
    let bytes = file.metadata().map(|metadata| metadata.len());
    let bytes = bytes.map_err(|error| StepError::system("examine", path, error))?;
    erase(&file, bytes, path, &tools)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    use super::*;
    use crate::guard::EDGE_BYTES;
    use crate::tool::argument;

    const SIZE: u64 = 32 << 20;

    /// A loop device that goes when its test ends, however it ends.
    struct Attached(String);

    impl Drop for Attached {
        fn drop(&mut self) {
            let _ = Tools::new().run("losetup", &["--detach", &self.0]);
        }
    }

    #[test]
    fn the_mark_of_a_run_goes_from_a_device_that_counts_as_empty() {
        if !spindle_harness::is_root_or_skip("makes a loop device") {
            return;
        }
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.as_file().set_len(SIZE).unwrap();
        file.as_file().write_all_at(&[7; 5000], 3 << 20).unwrap();
        let (tree, tools) = (SystemTree::default(), Tools::new());
        let arguments = ["--find", "--show", argument(file.path())];
        let printed = tools.run("losetup", &arguments).unwrap();
        let attached = Attached(printed.trim().to_owned());
        let path = attached.0.clone();
        let erase = [path.clone()];
        let of = |erase| Want {
            path: Path::new(&path),
            least_bytes: 0,
            erase,
        };
        let guard = Guard::new(&tree, &tools);
        let taken = guard.claim(&of(&erase)).unwrap();
        let file = taken.to_write(None).unwrap();
        guard.leave_mark(&file, taken.state()).unwrap();
        drop(taken);
        let taken = guard.claim(&of(&[])).unwrap();
        let mark = |device: &File| {
            let mut bytes = [0; 8];
            device.read_exact_at(&mut bytes, EDGE_BYTES - 4096).unwrap();
            bytes
        };
        assert_eq!(&mark(taken.file()), b"SPNDLEFT");
        let emptied = empty_device(taken, &of(&[])).unwrap();
        assert_eq!(mark(emptied.file()), [0; 8]);
    }
}
