//! The smallest file system in user space that a calibration can be led through: one file, kept in a file beneath,
//! whose flushes are passed on or not. It speaks the kernel's protocol itself (Linux include/uapi/linux/fuse.h, 7.31).

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::io::FdFlags;

/// Large enough for a header and a write of 128 KiB.
const MESSAGE_BYTES: usize = 256 << 10;
/// The operations that may be delayed.
const READ: u32 = 15;
const FSYNC: u32 = 20;
/// Direct reads of one process may be under way together (FUSE_ASYNC_READ, FUSE_ASYNC_DIO), so many at once.
const TOGETHER: u32 = 1 | 1 << 15;
const TOGETHER_MAX: u16 = 256;
const ROOT: u64 = 1;
const FILE: u64 = 2;

/// Whether a flush is carried out: its number, from 1, and whether it is `fdatasync` and not `fsync`.
pub(crate) type PassesOn = fn(u64, bool) -> bool;

/// What is answered late.
#[derive(Clone, Copy)]
pub(crate) enum Late {
    Reads,
    Flushes,
}

/// A mounted server; it goes with this.
pub(crate) struct FuseServer {
    mount_point: PathBuf,
    serves: Option<JoinHandle<()>>,
}

impl FuseServer {
    /// Mounts it at a directory; its file lies in `beneath`. Needs root.
    pub(crate) fn mount(mount_point: &Path, beneath: &Path, passes_on: PassesOn) -> FuseServer {
        let serving = move |device, kept: &File| serve(device, kept, passes_on);
        FuseServer::serving(mount_point, beneath, serving)
    }

    /// The same with flushes passed on, and each operation of a kind answered after `latency`, however many are under
    /// way.
    pub(crate) fn mount_delayed(
        mount_point: &Path,
        beneath: &Path,
        late: Late,
        latency: Duration,
    ) -> FuseServer {
        let serving = move |device, kept: &File| serve_delayed(device, kept, late, latency);
        FuseServer::serving(mount_point, beneath, serving)
    }

    fn serving(
        mount_point: &Path,
        beneath: &Path,
        serve: impl FnOnce(File, &File) + Send + 'static,
    ) -> FuseServer {
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .unwrap();
        // The tool that mounts is to inherit it.
        rustix::io::fcntl_setfd(&device, FdFlags::empty()).unwrap();
        let number = device.as_raw_fd();
        let options = format!("fd={number},rootmode=40000,user_id=0,group_id=0");
        let status = Command::new("mount")
            .args([
                "--internal-only",
                "--types",
                "fuse.planted",
                "--options",
                &options,
                "planted",
            ])
            .arg(mount_point)
            .status()
            .unwrap();
        assert!(status.success(), "a FUSE file system cannot be mounted");
        rustix::io::fcntl_setfd(&device, FdFlags::CLOEXEC).unwrap();
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true);
        let kept = options.open(beneath.join("kept")).unwrap();
        let serves = std::thread::spawn(move || serve(device, &kept));
        FuseServer {
            mount_point: mount_point.to_owned(),
            serves: Some(serves),
        }
    }
}

impl Drop for FuseServer {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(&self.mount_point)
            .status();
        if let Some(serves) = self.serves.take() {
            let _ = serves.join();
        }
    }
}

/// Answers until the file system is unmounted.
fn serve(mut device: File, kept: &File, passes_on: PassesOn) {
    let mut message = vec![0; MESSAGE_BYTES];
    let mut flushes = 0;
    let mut is_passed_on = |is_of_data: bool| {
        flushes += 1;
        passes_on(flushes, is_of_data)
    };
    loop {
        match device.read(&mut message) {
            Ok(length) => {
                if let Some(answer) = answer(&message[..length], kept, &mut is_passed_on) {
                    let _ = device.write_all(&answer);
                }
            }
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) => {
                return;
            }
            Err(_) => {}
        }
    }
}

/// The same; each operation that is late has a thread that answers it when its time has come.
fn serve_delayed(mut device: File, kept: &File, late: Late, latency: Duration) {
    // Of this thread, and of those that it starts. Who may not do that is as late as others.
    let _ = rustix::process::nice(-20);
    let mut message = vec![0; MESSAGE_BYTES];
    std::thread::scope(|scope| {
        loop {
            match device.read(&mut message) {
                Ok(length) => {
                    let due = Instant::now() + latency;
                    let Some(answer) = answer(&message[..length], kept, &mut |_| true) else {
                        continue;
                    };
                    let operation = u32::from_ne_bytes(message[4..8].try_into().unwrap());
                    let is_late = match late {
                        Late::Reads => operation == READ,
                        Late::Flushes => operation == FSYNC,
                    };
                    let mut device = device.try_clone().unwrap();
                    if is_late {
                        scope.spawn(move || {
                            std::thread::sleep(due.saturating_duration_since(Instant::now()));
                            let _ = device.write_all(&answer);
                        });
                    } else {
                        let _ = device.write_all(&answer);
                    }
                }
                Err(error)
                    if error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) =>
                {
                    return;
                }
                Err(_) => {}
            }
        }
    });
}

/// What is sent back; `None` for messages that want no answer.
fn answer(
    message: &[u8],
    kept: &File,
    is_passed_on: &mut dyn FnMut(bool) -> bool,
) -> Option<Vec<u8>> {
    let u32_at = |at: usize| u32::from_ne_bytes(message[at..at + 4].try_into().unwrap());
    let u64_at = |at: usize| u64::from_ne_bytes(message[at..at + 8].try_into().unwrap());
    let (operation, unique, node) = (u32_at(4), u64_at(8), u64_at(16));
    let opened = || vec![0; 16];
    let body: Result<Vec<u8>, rustix::io::Errno> = match operation {
        1 => Err(rustix::io::Errno::NOENT), // LOOKUP
        2 | 36 | 42 => return None,         // FORGET, INTERRUPT, BATCH_FORGET
        3 => Ok(attributes(node, kept)),    // GETATTR
        4 => {
            // SETATTR, of which only the size is obeyed (FATTR_SIZE)
            if u32_at(40) & 8 != 0 {
                kept.set_len(u64_at(56)).unwrap();
            }
            Ok(attributes(node, kept))
        }
        14 | 27 => Ok(opened()), // OPEN, OPENDIR
        READ => {
            let mut data = vec![0; u32_at(56) as usize];
            let length = kept.read_at(&mut data, u64_at(48)).unwrap();
            data.truncate(length);
            Ok(data)
        }
        16 => {
            // WRITE
            let length = u32_at(56);
            kept.write_all_at(&message[80..80 + length as usize], u64_at(48))
                .unwrap();
            Ok([length.to_ne_bytes(), [0; 4]].concat())
        }
        17 => Ok(space()), // STATFS
        FSYNC => {
            if is_passed_on(u32_at(48) & 1 != 0) {
                kept.sync_data().unwrap();
            }
            Ok(Vec::new())
        }
        10 | 18 | 25 | 29 => Ok(Vec::new()), // UNLINK, RELEASE, FLUSH, RELEASEDIR
        26 => Ok(greeting()),                // INIT
        35 => Ok([entry(kept), opened()].concat()), // CREATE
        _ => Err(rustix::io::Errno::NOSYS),
    };
    let (error, body) = match body {
        Ok(body) => (0, body),
        Err(error) => (-error.raw_os_error(), Vec::new()),
    };
    let length = (16 + body.len()) as u32;
    let header = [
        &length.to_ne_bytes()[..],
        &error.to_ne_bytes(),
        &unique.to_ne_bytes(),
    ]
    .concat();
    Some([header, body].concat())
}

fn greeting() -> Vec<u8> {
    let mut out = vec![0; 64];
    let mut put = |at: usize, value: u32| out[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    put(0, 7);
    put(4, 31);
    put(8, 128 << 10);
    put(12, TOGETHER);
    put(16, u32::from(TOGETHER_MAX) | u32::from(TOGETHER_MAX) << 16);
    put(20, 128 << 10);
    put(24, 1);
    out
}

fn space() -> Vec<u8> {
    let mut out = vec![0; 80];
    for at in [0, 8, 16, 24, 32] {
        out[at..at + 8].copy_from_slice(&(1_u64 << 20).to_ne_bytes());
    }
    for (at, value) in [(40, 4096_u32), (44, 255), (48, 4096)] {
        out[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    out
}

/// `struct fuse_attr`.
fn attribute(node: u64, kept: &File) -> Vec<u8> {
    let mut out = vec![0; 88];
    let (mode, bytes) = match node {
        ROOT => (0o040_755_u32, 0),
        _ => (0o100_600, kept.metadata().unwrap().len()),
    };
    for (at, value) in [(0, node), (8, bytes), (16, bytes / 512)] {
        out[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }
    for (at, value) in [(60, mode), (64, 1), (80, 4096)] {
        out[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    out
}

fn attributes(node: u64, kept: &File) -> Vec<u8> {
    [vec![0; 16], attribute(node, kept)].concat()
}

fn entry(kept: &File) -> Vec<u8> {
    // Its name need not be looked up again for a while.
    let node = [FILE, 1, 3600].map(u64::to_ne_bytes).concat();
    [node, vec![0; 16], attribute(FILE, kept)].concat()
}
