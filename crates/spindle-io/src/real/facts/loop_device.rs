//! What a loop device stands for, by inode: `/sys` tells a path only, which may mean another file by now, or nothing in
//! this mount namespace.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `LOOP_GET_STATUS64` (linux/loop.h).
const GET_STATUS: libc::c_ulong = 0x4C05;

/// `struct loop_info64` (linux/loop.h).
#[repr(C)]
struct Status {
    device: u64,
    inode: u64,
    special_device: u64,
    offset: u64,
    size_limit: u64,
    number_and_key_type: [u32; 3],
    flags: u32,
    names_and_key: [u8; 160],
    init: [u64; 2],
}

const _: () = assert!(size_of::<Status>() == 232);

/// The file or block device behind a loop device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopTarget {
    /// `st_dev` of the backing file.
    pub device: u64,
    /// `st_ino` of the backing file.
    pub inode: u64,
    /// `st_rdev` when the backing file is the node of a block device, else 0.
    pub special_device: u64,
}

/// Asks an open loop device what it stands for. Errors: it is no loop device, or no file is attached (`ENXIO`).
pub fn loop_target(device: &File) -> io::Result<LoopTarget> {
    let mut status = std::mem::MaybeUninit::<Status>::zeroed();
    // SAFETY: the kernel writes at most `size_of::<Status>()` bytes, and keeps no pointer.
    let answer = unsafe { libc::ioctl(device.as_raw_fd(), GET_STATUS as _, status.as_mut_ptr()) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all zeros is a valid value, and the kernel wrote plain numbers and bytes.
    let status = unsafe { status.assume_init() };
    Ok(LoopTarget {
        device: status.device,
        inode: status.inode,
        special_device: status.special_device,
    })
}
