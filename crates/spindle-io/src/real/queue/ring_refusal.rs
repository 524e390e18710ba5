//! Why the system gives no io_uring, in words.

use std::io;

/// Why there is no ring, given the system's answer.
pub(crate) fn why_refused(error: &io::Error) -> String {
    let disabled =
        std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    refusal(error, disabled.trim())
}

/// The reason behind an error of `io_uring_setup`; `disabled` is the value of kernel.io_uring_disabled (Linux 6.6,
/// Documentation/admin-guide/sysctl/kernel.rst), empty where there is none.
fn refusal(error: &io::Error, disabled: &str) -> String {
    match (error.raw_os_error(), disabled) {
        (Some(libc::EPERM), "1") => "io_uring is for privileged processes here: kernel.io_uring_disabled is 1 (set it to 0, \
                                     or join the group in kernel.io_uring_group)"
            .to_owned(),
        (Some(libc::EPERM), "2") => {
            "io_uring is switched off here: kernel.io_uring_disabled is 2 (set it to 0)".to_owned()
        }
        (Some(libc::EPERM | libc::EACCES), _) => {
            "io_uring is refused, probably by a seccomp filter, as container runtimes set (allow the io_uring system \
             calls in its profile)"
                .to_owned()
        }
        (Some(libc::ENOSYS), _) => {
            "io_uring is unknown to this kernel, or hidden by a seccomp filter (Linux 5.13 or later is needed)".to_owned()
        }
        (Some(libc::ENOMEM), _) => {
            format!("io_uring gets no memory: {error} (rings may count as locked memory; see ulimit -l)")
        }
        _ => format!("io_uring cannot be used: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_ring_has_a_reason_for_people() {
        let told = |errno, disabled| refusal(&io::Error::from_raw_os_error(errno), disabled);
        assert!(told(libc::EPERM, "2").contains("kernel.io_uring_disabled is 2"));
        assert!(told(libc::EPERM, "1").contains("kernel.io_uring_disabled is 1"));
        assert!(told(libc::EPERM, "0").contains("seccomp"));
        assert!(told(libc::ENOSYS, "").contains("Linux 5.13"));
        assert!(told(libc::ENOMEM, "0").contains("ulimit -l"));
        assert!(told(libc::EMFILE, "0").contains("Too many open files"));
    }
}
