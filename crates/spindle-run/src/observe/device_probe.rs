//! How quick a device is at this moment, whatever database it carries: a fixed number of direct reads and durable
//! writes, one after the other, just before a trial. In a file system they go to a file without a name (`O_TMPFILE`)
//! that is filled first, so that no unwritten extent is read and nothing stays behind, whatever happens. On a raw
//! device only reads are made, of what the database holds there: nothing of it is ever written.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand_xoshiro::rand_core::RngCore;
use rustix::fs::{Mode, OFlags, open};
use spindle_io::env::seeded_rng;
use spindle_layout::KnownDevice;

use spindle_result::{DeviceProbe, ProbedTimes};

/// Length of a request, and what it is aligned to.
const REQUEST_BYTES: usize = 8192;
/// Requests that the file has room for.
const PLACES: u64 = 256;
/// Reads of one probe.
const READS: usize = 64;
/// Durable writes of one probe.
const WRITES: usize = 24;
/// Neither kind lasts longer than this.
const TIME_MAX: Duration = Duration::from_millis(200);
/// Fewer requests than this tell nothing.
const REQUESTS_MIN: usize = 4;

/// Where a probe goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probed {
    /// Its own file in this directory.
    Directory(PathBuf),
    /// Reads only, of this part of a device.
    Region {
        /// The device.
        device: KnownDevice,
        /// Where the part begins.
        first_byte: u64,
        /// Its size.
        bytes: u64,
    },
}

/// Probes the device beneath `data` with reads and the one beneath `redo` with writes; what cannot be used is `None`.
pub fn probe(data: &Probed, redo: &Probed) -> DeviceProbe {
    let began = Instant::now();
    let (read, write) = match (data, redo) {
        (Probed::Directory(data), Probed::Directory(redo)) if data == redo => {
            let filled = Filled::make(data);
            (
                filled.as_ref().ok().and_then(Filled::read),
                filled.as_ref().ok().and_then(Filled::write),
            )
        }
        _ => (reads_of(data), writes_of(redo)),
    };
    DeviceProbe {
        read,
        write,
        took_ms: began.elapsed().as_millis() as u64,
    }
}

fn reads_of(place: &Probed) -> Option<ProbedTimes> {
    match place {
        Probed::Directory(directory) => Filled::make(directory).ok()?.read(),
        Probed::Region {
            device,
            first_byte,
            bytes,
        } => {
            let mut options = OpenOptions::new();
            let options = options
                .read(true)
                .custom_flags(OFlags::DIRECT.bits() as i32);
            let file = device.open_file(options).ok()?;
            read_from(&file, *first_byte, bytes / REQUEST_BYTES as u64)
        }
    }
}

/// `None` where nothing may be written.
fn writes_of(place: &Probed) -> Option<ProbedTimes> {
    match place {
        Probed::Directory(directory) => Filled::make(directory).ok()?.write(),
        Probed::Region { .. } => None,
    }
}

/// A file without a name, full of data.
struct Filled {
    file: File,
}

impl Filled {
    fn make(directory: &Path) -> io::Result<Filled> {
        let flags =
            OFlags::TMPFILE | OFlags::RDWR | OFlags::DIRECT | OFlags::DSYNC | OFlags::CLOEXEC;
        let file = File::from(open(directory, flags, Mode::RUSR | Mode::WUSR)?);
        const FILL_BYTES: usize = 1 << 20;
        let mut buffer = Aligned::random(FILL_BYTES);
        let bytes = PLACES * REQUEST_BYTES as u64;
        for at in (0..bytes).step_by(FILL_BYTES) {
            file.write_all_at(buffer.bytes(), at)?;
        }
        Ok(Filled { file })
    }

    fn read(&self) -> Option<ProbedTimes> {
        read_from(&self.file, 0, PLACES)
    }

    fn write(&self) -> Option<ProbedTimes> {
        let mut buffer = Aligned::random(REQUEST_BYTES);
        timed(WRITES, 0, PLACES, |at| {
            self.file.write_all_at(buffer.bytes(), at)
        })
    }
}

fn read_from(file: &File, first_byte: u64, places: u64) -> Option<ProbedTimes> {
    let mut buffer = Aligned::random(REQUEST_BYTES);
    timed(READS, first_byte, places, |at| {
        file.read_exact_at(buffer.bytes(), at)
    })
}

/// Carries out requests at places that are the same in every probe, one after the other, and times each; `None` when
/// one fails, or there are too few.
fn timed(
    requests: usize,
    first_byte: u64,
    places: u64,
    mut request: impl FnMut(u64) -> io::Result<()>,
) -> Option<ProbedTimes> {
    let mut rng = seeded_rng(0, 0);
    let began = Instant::now();
    let mut times_us = Vec::with_capacity(requests);
    while places > 0 && times_us.len() < requests && began.elapsed() < TIME_MAX {
        let at = first_byte + rng.next_u64() % places * REQUEST_BYTES as u64;
        let begin = Instant::now();
        request(at).ok()?;
        times_us.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    times_of(times_us)
}

fn times_of(mut times_us: Vec<f64>) -> Option<ProbedTimes> {
    if times_us.len() < REQUESTS_MIN {
        return None;
    }
    times_us.sort_by(f64::total_cmp);
    Some(ProbedTimes {
        requests: times_us.len() as u64,
        median_us: times_us[times_us.len() / 2],
        mean_us: times_us.iter().sum::<f64>() / times_us.len() as f64,
    })
}

/// Memory that direct I/O takes.
struct Aligned {
    memory: Vec<u8>,
    first: usize,
    length: usize,
}

impl Aligned {
    const ALIGNMENT: usize = 4096;

    /// Filled with bytes that no device can compress or leave out.
    fn random(length: usize) -> Aligned {
        let mut memory = vec![0; length + Aligned::ALIGNMENT];
        seeded_rng(1, 0).fill_bytes(&mut memory);
        let first = memory.as_ptr().align_offset(Aligned::ALIGNMENT);
        Aligned {
            memory,
            first,
            length,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.first..][..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside the program: /tmp may be a tmpfs.
    fn directory() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    #[test]
    fn a_probe_of_a_directory_reads_and_writes_and_leaves_nothing() {
        let directory = directory();
        let place = Probed::Directory(directory.path().to_path_buf());
        let probe = probe(&place, &place);
        let (read, write) = (probe.read.expect("reads"), probe.write.expect("writes"));
        assert!(read.requests >= 4 && read.median_us > 0.0, "{read:?}");
        assert!(write.requests >= 4 && write.mean_us > 0.0, "{write:?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_device_is_read_and_never_written() {
        let directory = directory();
        let path = directory.path().join("device");
        let content: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let place = Probed::Region {
            device: KnownDevice::look(&path).unwrap(),
            first_byte: 65_536,
            bytes: 524_288,
        };
        let probe = probe(&place, &place);
        assert!(probe.read.is_some());
        assert_eq!(probe.write, None);
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }

    #[test]
    fn a_place_that_is_not_there_has_no_probe() {
        let place = Probed::Directory(PathBuf::from("/nonexistent"));
        let probe = probe(&place, &place);
        assert_eq!((probe.read, probe.write), (None, None));
    }
}
