//! A watch over files and device nodes, for tests of what is never written to.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// How often paths were written to, or closed by a program that had them open for writing.
#[derive(Debug)]
pub struct Watch(OwnedFd);

impl Watch {
    /// Begins to watch these.
    ///
    /// # Panics
    /// When the system gives no watch, or a path is not there.
    pub fn new(paths: &[&Path]) -> Watch {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("a watch");
        for path in paths {
            let what = WatchFlags::CLOSE_WRITE | WatchFlags::MODIFY;
            inotify::add_watch(&watch, *path, what).expect("a path to watch");
        }
        Watch(watch)
    }

    /// How often since this was asked last.
    pub fn count(&self) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.0, &mut buffer);
        let mut count = 0;
        while let Ok(event) = events.next() {
            count += usize::from(event.events() != ReadFlags::IGNORED);
        }
        count
    }

    /// Whether there is a time of three when `act` passes with no writer of these paths. The `losetup --find` of
    /// another test may open a loop device that was taken a moment before it; nothing does so three times.
    ///
    /// # Panics
    /// As [`new`](Watch::new) does.
    pub fn sees_none(paths: &[&Path], mut act: impl FnMut()) -> bool {
        (0..3).any(|_| {
            let watch = Watch::new(paths);
            act();
            watch.count() == 0
        })
    }
}
