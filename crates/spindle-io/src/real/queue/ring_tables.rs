//! What a ring has registered with the kernel: files, so that an I/O need not look one up and count its users, and
//! memory, so that an I/O need not find and pin its pages. Both tables belong to one ring and one thread.
#![allow(unsafe_code)]

use std::io;
use std::sync::{Arc, Weak};

use io_uring::Submitter;

use super::ring_config::RingConfig;
use super::unavailable::NotRegistered;
use crate::arena::Arena;
use crate::real::facts;
use crate::real::file::open_files::{Identity, closed_count, is_open};

/// Registered files a ring has room for; identified files beyond it are used unregistered.
const FILE_SLOTS: usize = 256;

/// Registered pieces of memory a ring has room for.
const BUFFER_SLOTS: u16 = 64;

/// A fixed buffer of io_uring is at most 1 GiB long.
const PIECE_LIMIT_BYTES: usize = 1 << 30;

/// The files a ring has registered, by the index of their identity.
#[derive(Default)]
pub(crate) struct Files {
    /// Generation of the file in each place, 0 for none; no place at all until the table is registered.
    generations: Vec<u64>,
    closed_seen: u64,
}

impl Files {
    /// The file's place in the table, where it is put when necessary.
    pub(crate) fn place(
        &mut self,
        submitter: &Submitter<'_>,
        identity: Identity,
        fd: i32,
    ) -> Result<u32, NotRegistered> {
        let index = identity.index as usize;
        if self.generations.get(index) == Some(&identity.generation) {
            return Ok(identity.index);
        }
        if index >= FILE_SLOTS {
            return Err(NotRegistered::TooManyFiles(FILE_SLOTS));
        }
        if self.generations.is_empty() {
            submitter
                .register_files(&[-1; FILE_SLOTS])
                .map_err(|error| NotRegistered::Files(error.to_string()))?;
            self.generations = vec![0; FILE_SLOTS];
        }
        submitter
            .register_files_update(identity.index, &[fd])
            .map_err(|error| NotRegistered::File(error.to_string()))?;
        self.generations[index] = identity.generation;
        Ok(identity.index)
    }

    /// Takes files that have been closed out of the table, which keeps them open inside the kernel.
    pub(crate) fn forget_closed(&mut self, submitter: &Submitter<'_>) {
        let closed = closed_count();
        if self.closed_seen == closed {
            return;
        }
        self.closed_seen = closed;
        for (index, generation) in (0u32..).zip(&mut self.generations) {
            if *generation != 0
                && !is_open(Identity {
                    index,
                    generation: *generation,
                })
            {
                // Should this fail, the file stays open until the ring is closed, and its place is not used again.
                if submitter.register_files_update(index, &[-1]).is_ok() {
                    *generation = 0;
                }
            }
        }
    }
}

/// The memory a ring has registered.
#[derive(Default)]
pub(crate) struct Buffers {
    pieces: Vec<Piece>,
    configs: Vec<Weak<RingConfig>>,
    table: bool,
}

struct Piece {
    start: usize,
    end: usize,
    slot: u16,
    config: *const RingConfig,
    /// The kernel keeps using these pages: another arena must not get the addresses.
    _arena: Arc<Arena>,
}

impl Buffers {
    /// Registers the arenas of `config` unless that was tried before; tells the config how it went.
    pub(crate) fn admit(&mut self, submitter: &Submitter<'_>, config: &Arc<RingConfig>) {
        if self
            .configs
            .iter()
            .any(|seen| seen.as_ptr() == Arc::as_ptr(config))
        {
            return;
        }
        self.forget_dropped(submitter);
        self.configs.push(Arc::downgrade(config));
        let answer = config
            .arenas()
            .iter()
            .try_for_each(|arena| self.register(submitter, config, arena));
        if answer.is_err() {
            self.forget(submitter, |piece| piece.config == Arc::as_ptr(config));
        }
        config.note_fixed(answer.map_err(|error| not_registered(config, &error)));
    }

    /// The registered piece in which the memory lies.
    pub(crate) fn find(&self, memory: &libc::iovec) -> Option<u16> {
        let start = memory.iov_base as usize;
        let end = start + memory.iov_len;
        self.pieces
            .iter()
            .find(|piece| piece.start <= start && end <= piece.end)
            .map(|piece| piece.slot)
    }

    /// Lets go of memory whose config is gone.
    pub(crate) fn forget_dropped(&mut self, submitter: &Submitter<'_>) {
        let gone = |config: &Weak<RingConfig>| config.strong_count() == 0;
        if self.configs.iter().any(gone) {
            let dropped: Vec<_> = self
                .configs
                .iter()
                .filter(|config| gone(config))
                .map(Weak::as_ptr)
                .collect();
            self.forget(submitter, |piece| dropped.contains(&piece.config));
            self.configs.retain(|config| !gone(config));
        }
    }

    fn register(
        &mut self,
        submitter: &Submitter<'_>,
        config: &Arc<RingConfig>,
        arena: &Arc<Arena>,
    ) -> io::Result<()> {
        if !self.table {
            submitter.register_buffers_sparse(BUFFER_SLOTS.into())?;
            self.table = true;
        }
        let (base, length) = arena.region();
        let base = base.as_ptr() as usize;
        // Cut between frames, so that no frame lies in two pieces.
        let piece_bytes = PIECE_LIMIT_BYTES / arena.frame_bytes() * arena.frame_bytes();
        for offset in (0..length).step_by(piece_bytes) {
            let (start, end) = (base + offset, base + (offset + piece_bytes).min(length));
            let slot =
                (0..BUFFER_SLOTS).find(|slot| self.pieces.iter().all(|piece| piece.slot != *slot));
            let slot = slot.ok_or_else(|| {
                io::Error::other(format!("more than {BUFFER_SLOTS} pieces of memory"))
            })?;
            let vector = libc::iovec {
                iov_base: start as *mut libc::c_void,
                iov_len: end - start,
            };
            // SAFETY: the piece lies in the arena's mapping, which the entry made below keeps mapped until the slot is
            // cleared or the ring closed.
            unsafe { submitter.register_buffers_update(slot.into(), &[vector], None)? };
            let (config, _arena) = (Arc::as_ptr(config), Arc::clone(arena));
            self.pieces.push(Piece {
                start,
                end,
                slot,
                config,
                _arena,
            });
        }
        Ok(())
    }

    fn forget(&mut self, submitter: &Submitter<'_>, which: impl Fn(&Piece) -> bool) {
        const NOTHING: libc::iovec = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        self.pieces.retain(|piece| {
            // SAFETY: an empty vector refers to no memory; it clears the slot. Should that fail, the piece stays.
            !which(piece)
                || unsafe { submitter.register_buffers_update(piece.slot.into(), &[NOTHING], None) }
                    .is_err()
        });
    }
}

fn not_registered(config: &RingConfig, error: &io::Error) -> NotRegistered {
    let bytes: usize = config.arenas().iter().map(|arena| arena.region().1).sum();
    NotRegistered::Memory {
        bytes: bytes as u64,
        reason: error.to_string(),
        limit_bytes: facts::locked_memory_limit_bytes(),
    }
}
