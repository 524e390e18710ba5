//! Why the system gives no io_uring.

use std::io;

use super::unavailable::NoRing;

/// Why there is no ring, given the system's answer.
pub(crate) fn why_refused(error: &io::Error) -> NoRing {
    let disabled =
        std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    refusal(error, disabled.trim())
}

/// The reason behind an error of `io_uring_setup`; `disabled` is the value of kernel.io_uring_disabled (Linux 6.6,
/// Documentation/admin-guide/sysctl/kernel.rst), empty where there is none.
fn refusal(error: &io::Error, disabled: &str) -> NoRing {
    match (error.raw_os_error(), disabled) {
        (Some(libc::EPERM), "1") => NoRing::ForPrivileged,
        (Some(libc::EPERM), "2") => NoRing::SwitchedOff,
        (Some(libc::EPERM | libc::EACCES), _) => NoRing::Refused,
        (Some(libc::ENOSYS), _) => NoRing::Unknown,
        (Some(libc::ENOMEM), _) => NoRing::NoMemory(error.to_string()),
        _ => NoRing::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_ring_has_a_reason_for_people() {
        let told =
            |errno, disabled| refusal(&io::Error::from_raw_os_error(errno), disabled).to_string();
        assert!(told(libc::EPERM, "2").contains("kernel.io_uring_disabled is 2"));
        assert!(told(libc::EPERM, "1").contains("kernel.io_uring_disabled is 1"));
        assert!(told(libc::EPERM, "0").contains("seccomp"));
        assert!(told(libc::ENOSYS, "").contains("Linux 5.13"));
        assert!(told(libc::ENOMEM, "0").contains("ulimit -l"));
        assert!(told(libc::EMFILE, "0").contains("Too many open files"));
    }
}
