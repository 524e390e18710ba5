//! The embedded database.

use spindle_kernel::{Commit, KernelSettings, TornBlocks};

use super::table::{KERNEL_NOT_ATOMIC, KERNEL_NOWAIT, KERNEL_WAIT};
use super::{CommitStorage, Promise, Reason};

/// What these settings keep. Redo and checkpoints are flushed with either `write_sync`, and blocks are never torn by
/// `images` and `double_write`.
pub fn promise(settings: &KernelSettings, storage: &CommitStorage) -> Promise {
    let mut reasons = vec![match settings.instance.commit {
        Commit::Wait => Reason::of(&KERNEL_WAIT, "commit = \"wait\""),
        Commit::NoWait => Reason::of(&KERNEL_NOWAIT, "commit = \"nowait\""),
    }];
    let covers = storage.atomic_write_bytes() >= settings.block_bytes as u64;
    if settings.instance.torn_blocks == TornBlocks::Atomic && !covers {
        reasons.push(Reason::of(&KERNEL_NOT_ATOMIC, "torn_blocks = \"atomic\""));
    }
    Promise::of(reasons).and(storage.promise())
}
