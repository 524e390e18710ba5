//! What a person can do when the system refuses a file: the words after the system's own.

use std::io::{Error, ErrorKind};

/// The system's answer and what to do about it, where that is known: `Permission denied (os error 13): run as its owner
/// or as root`. No full stop follows.
pub fn with_remedy(error: &Error) -> String {
    let remedy = match error.raw_os_error() {
        Some(NOT_PERMITTED) => Some(
            "only root may, unless a container, a control group or an attribute of the file forbids it",
        ),
        _ => remedy(error.kind()),
    };
    match remedy {
        Some(remedy) => format!("{error}: {remedy}"),
        None => error.to_string(),
    }
}

/// `EPERM` (linux/errno-base.h): forbidden to every user, where `EACCES` says that another user may.
const NOT_PERMITTED: i32 = 1;

fn remedy(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::PermissionDenied => Some("run as its owner or as root"),
        ErrorKind::StorageFull => Some("free some room, or name another file system"),
        ErrorKind::QuotaExceeded => {
            Some("your quota is used up: free some room, or name another file system")
        }
        ErrorKind::ReadOnlyFilesystem => {
            Some("name a directory on a file system that can be written")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_advised_and_the_systems_words_stay() {
        let denied = Error::from_raw_os_error(13);
        let said = with_remedy(&denied);
        assert_eq!(
            said,
            "Permission denied (os error 13): run as its owner or as root"
        );
        assert_eq!(
            with_remedy(&Error::from_raw_os_error(1)),
            "Operation not permitted (os error 1): only root may, unless a container, a control group or an attribute of the file forbids it"
        );
        let of_the_system = Error::from_raw_os_error(5);
        assert_eq!(with_remedy(&of_the_system), of_the_system.to_string());
    }
}
