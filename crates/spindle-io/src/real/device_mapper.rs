//! Messages to devices of device-mapper, as `dmsetup message` sends them, without a process for each. The code that
//! records a log of writes marks it this way.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `DM_TARGET_MSG`: `_IOWR(0xfd, 14, struct dm_ioctl)` (linux/dm-ioctl.h).
const TARGET_MESSAGE: libc::c_ulong = 0xC138_FD0E;
/// The version of the interface, unchanged since Linux 2.6.
const VERSION: [u32; 3] = [4, 0, 0];
const NAME_BYTES: usize = 128;
const TEXT_BYTES: usize = 512;

/// `struct dm_ioctl`, and behind it `struct dm_target_msg` with its text (linux/dm-ioctl.h).
#[repr(C)]
struct Message {
    version: [u32; 3],
    data_bytes: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event_number: u32,
    padding: u32,
    device: u64,
    name: [u8; NAME_BYTES],
    uuid: [u8; 129],
    data: [u8; 7],
    sector: u64,
    text: [u8; TEXT_BYTES],
}

const _: () = assert!(std::mem::offset_of!(Message, sector) == 312);

/// Sends messages to device-mapper's devices.
#[derive(Debug)]
pub struct MapperMessages(File);

impl MapperMessages {
    /// Opens device-mapper's control device. Errors: there is none, or no right to it.
    pub fn open() -> io::Result<MapperMessages> {
        let mut options = File::options();
        let control = options.read(true).write(true).open("/dev/mapper/control");
        Ok(MapperMessages(control?))
    }

    /// Sends `text` to the first target of the device called `name`. Errors: there is no such device, its target does
    /// not understand the message, or name or text is too long (127 and 511 bytes).
    pub fn send(&self, name: &str, text: &str) -> io::Result<()> {
        let mut message = Message {
            version: VERSION,
            data_bytes: size_of::<Message>() as u32,
            data_start: std::mem::offset_of!(Message, sector) as u32,
            target_count: 0,
            open_count: 0,
            flags: 0,
            event_number: 0,
            padding: 0,
            device: 0,
            name: ended_by_zero(name)?,
            uuid: [0; 129],
            data: [0; 7],
            sector: 0,
            text: ended_by_zero(text)?,
        };
        // SAFETY: the kernel reads and writes `data_bytes` bytes, which is the size of `message`, and keeps no pointer.
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), TARGET_MESSAGE, &raw mut message) };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

fn ended_by_zero<const BYTES: usize>(text: &str) -> io::Result<[u8; BYTES]> {
    if text.len() >= BYTES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = [0; BYTES];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    Ok(bytes)
}
