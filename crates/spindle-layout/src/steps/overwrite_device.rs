//! Bringing a device into a known state before it is used: all blocks told to be free (discard), or all blocks written
//! with data that do not compress, once or more. The first MiB of a device that bears the run's stamp stays as it is.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::error::{DeviceName, StepError};
use super::workshop::Workshop;
use crate::guard::EDGE_BYTES;
use crate::guard::stamp::is_stamped;

/// Written in pieces of this size.
const PIECE_BYTES: u64 = 4 << 20;

/// Written data are synced after this much, so that memory does not fill with them.
const SYNC_EVERY_BYTES: u64 = 256 << 20;

/// Discards and overwrites a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverwriteDevice {
    /// Its name among the devices.
    pub device: DeviceName,
    /// Whether all its blocks are discarded first.
    pub discard: bool,
    /// How often every block is written.
    pub passes: u32,
    /// Its size.
    pub size_bytes: u64,
}

impl fmt::Display for OverwriteDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = match self.passes {
            1 => "once".to_owned(),
            passes => format!("{passes} times"),
        };
        match (self.discard, self.passes) {
            (true, 0) => write!(f, "discard all blocks of {}", self.device),
            (true, _) => write!(
                f,
                "discard all blocks of {}, then overwrite it {times}",
                self.device
            ),
            (false, _) => write!(f, "overwrite {} {times}", self.device),
        }
    }
}

impl OverwriteDevice {
    pub(super) fn written_bytes(&self) -> u64 {
        self.size_bytes * u64::from(self.passes)
    }

    pub(super) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
        let taken = workshop.take(&self.device)?;
        let start_bytes = match is_stamped(taken.file())
            .map_err(|error| StepError::system("read", taken.path(), error))?
        {
            true => EDGE_BYTES,
            false => 0,
        };
        let file = workshop.to_write(&self.device, &taken)?;
        if self.discard {
            // Force: we have the device ourselves.
            let from = start_bytes.to_string();
            let arguments = ["--force", "--offset", &from, "/dev/stdin"];
            let tools = &workshop.site.tools;
            tools.run_on("blkdiscard", &arguments, &file)?;
        }
        let size_bytes = taken.state().size_bytes;
        let written = (0..self.passes)
            .try_for_each(|pass| overwrite(&file, start_bytes..size_bytes, u64::from(pass)));
        written.map_err(|error| StepError::system("overwrite", taken.path(), error))?;
        workshop.taken.insert(self.device.clone(), taken);
        Ok(())
    }
}

fn overwrite(file: &File, bytes: Range<u64>, seed: u64) -> io::Result<()> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut piece = vec![0; PIECE_BYTES as usize];
    let mut offset = bytes.start;
    let mut unsynced_bytes = 0;
    while offset < bytes.end {
        let length = PIECE_BYTES.min(bytes.end - offset);
        random.fill_bytes(&mut piece[..length as usize]);
        file.write_all_at(&piece[..length as usize], offset)?;
        offset += length;
        unsynced_bytes += length;
        if unsynced_bytes >= SYNC_EVERY_BYTES {
            file.sync_data()?;
            unsynced_bytes = 0;
        }
    }
    file.sync_all()
}
