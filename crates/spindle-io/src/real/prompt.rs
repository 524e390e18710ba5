//! Threads that others wait for and that compute little run soon after they are woken. LGWR and I/O slaves are such.

#![allow(unsafe_code)]

/// The time slice to ask for, nanoseconds: the shortest that Linux gives (0.1 ms to 100 ms, sched_setattr(2)).
const SLICE_NS: u64 = 100_000;

/// Asks for short time slices for the calling thread. Linux 6.12 and later let such a thread go first when it is woken
/// (EEVDF: its deadline is near), for no larger a share of the processors. Earlier ones take no notice. Where the
/// system refuses, nothing changes; threads of other scheduling policies are left alone.
pub(super) fn be_prompt() {
    let Some(mut attributes) = attributes() else {
        return;
    };
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.sched_runtime = SLICE_NS;
    // SAFETY: the structure is ours, and the kernel only reads it; thread 0 is the calling one. It needs no right, as
    // neither policy nor nice value changes.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0_u32) };
}

/// How the calling thread is scheduled; `None` where the system does not tell.
fn attributes() -> Option<libc::sched_attr> {
    // SAFETY: all zeros are a valid `sched_attr`, which has numbers only.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let (place, bytes) = (&raw mut attributes, size_of::<libc::sched_attr>() as u32);
    // SAFETY: the structure is ours and `bytes` long; thread 0 is the calling one.
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, place, bytes, 0_u32) };
    (read == 0).then_some(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_short_slices_and_keeps_all_else() {
        let thread = std::thread::spawn(|| {
            let before = attributes().unwrap();
            be_prompt();
            (before, attributes().unwrap())
        });
        let (before, after) = thread.join().unwrap();
        // Kernels that know no slices of threads say 0.
        let knows_slices = before.sched_runtime > 0;
        let expected = if knows_slices { SLICE_NS } else { 0 };
        assert_eq!(after.sched_runtime, expected);
        assert_eq!(after.sched_nice, before.sched_nice);
        assert_eq!(after.sched_policy, before.sched_policy);
    }

    #[test]
    fn a_thread_of_another_policy_is_left_alone() {
        let thread = std::thread::spawn(|| {
            let mut batch = attributes().unwrap();
            batch.sched_policy = libc::SCHED_BATCH as u32;
            // SAFETY: as in `be_prompt`; any thread may become one of this policy.
            let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const batch, 0_u32) };
            assert_eq!(set, 0);
            let before = attributes().unwrap();
            be_prompt();
            (before.sched_runtime, attributes().unwrap())
        });
        let (runtime_before, after) = thread.join().unwrap();
        assert_eq!(after.sched_policy, libc::SCHED_BATCH as u32);
        assert_eq!(after.sched_runtime, runtime_before);
    }
}
