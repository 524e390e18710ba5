//! What the kernel promises itself, looked at in every build. What is found broken is told as the instance's failure,
//! or as a panic where it cannot be told. Memory cannot be trusted any longer, and nothing of it may reach a datafile.
//!
//! | must hold | looked at |
//! | --- | --- |
//! | no block goes out before its redo | `dbwr`, at each write |
//! | a frame has one owner, or readers | `spindle_io::arena`, when it is let go |
//! | a change makes its block newer: the SCN goes up | `change`, at each change |
//! | a batch of redo continues where the last one ended, and fits its log file | `lgwr`, at each write |
//! | a log file is written again when recovery does not need it | `lgwr`, at each switch |
//! | a checkpoint moves on, over redo on stable storage | `checkpoint`, at each note of the position |
//! | a block is what its place says, inside and out | `cache::writing`, before each write |
//! | a buffer used for another block is clean, and not in use | `cache::shard`, at each reuse |
//! | pins, latches, row locks and room in the log buffer are given back | when a pin is let go, a session ends, the instance stops |
//!
//! What they cost together is measured by `invariants` in `make bench`.

/// Benches measure what the checks cost: with the feature `switchable`, which only they have, they can be left out.
#[cfg(feature = "switchable")]
pub static LEFT_OUT: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// True unless a bench leaves the checks out.
#[inline(always)]
pub(crate) fn are_checked() -> bool {
    #[cfg(feature = "switchable")]
    return !LEFT_OUT.load(std::sync::atomic::Ordering::Relaxed);
    #[cfg(not(feature = "switchable"))]
    true
}
