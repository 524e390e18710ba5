//! What goes wrong with a database under test. Its kind decides what follows; its words are for people.

use std::fmt;
use std::io;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use spindle_io::disk_group::DiskGroupError;
use spindle_io::real::FileError;
use spindle_io::{Fault, IoError};
use spindle_kernel::KernelError;
use spindle_layout::LayoutError;
use spindle_system::memory::MemoryError;
use spindle_system::own_group::Refused;
use spindle_workload::driver::ClientError;
use spindle_workload::{CheckError, SessionError};

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The database is not installed, too old, or cannot lie there: its layouts are left out.
    Unavailable,
    /// It does not take a setting or an access path: its layouts are left out.
    RefusedSetting,
    /// It has no such setting, or no version of it takes this value: a mistake in the experiment.
    MisspeltSetting,
    /// A device or a file system is full.
    NoRoom,
    /// The system does not let this user do it.
    NotPermitted,
    /// A server, or a connection to it, ended by itself.
    ServerGone,
    /// Something that clients were promised is not there, or is damaged.
    LostRows,
    /// The person wants the run to stop.
    Interrupted,
    /// What else the machine did at that moment spoiled it. Another try may do.
    Disturbed,
    /// Something else.
    Failed,
}

/// Why a database could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineError {
    kind: ErrorKind,
    words: String,
}

impl EngineError {
    /// Of that kind, in these words.
    pub fn new(kind: ErrorKind, words: impl Into<String>) -> EngineError {
        let words = words.into();
        EngineError { kind, words }
    }

    /// In these words, of what is of no other kind.
    pub fn other(words: impl Into<String>) -> EngineError {
        EngineError::new(ErrorKind::Failed, words)
    }

    /// It cannot be used here.
    pub fn unavailable(words: impl Into<String>) -> EngineError {
        EngineError::new(ErrorKind::Unavailable, words)
    }

    /// It does not take a setting, or an access path.
    pub fn refused(words: impl Into<String>) -> EngineError {
        EngineError::new(ErrorKind::RefusedSetting, words)
    }

    /// A setting that it does not have, or a value that it does not accept.
    pub fn misspelt(words: impl Into<String>) -> EngineError {
        EngineError::new(ErrorKind::MisspeltSetting, words)
    }

    /// What was attempted, and why it failed.
    pub fn failed(what: impl fmt::Display, reason: impl Cause) -> EngineError {
        EngineError::new(reason.kind(), format!("{what}: {reason}"))
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for EngineError {}

/// Why something failed: words, and where they come from something that knows more, their kind.
pub trait Cause: fmt::Display {
    /// What kind of thing went wrong.
    fn kind(&self) -> ErrorKind {
        ErrorKind::Failed
    }
}

impl Cause for &str {}

impl Cause for String {}

impl Cause for EngineError {
    fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl<C: Cause> Cause for &C {
    fn kind(&self) -> ErrorKind {
        (**self).kind()
    }
}

impl Cause for io::Error {
    fn kind(&self) -> ErrorKind {
        match io::Error::kind(self) {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoRoom,
            io::ErrorKind::PermissionDenied => ErrorKind::NotPermitted,
            _ => ErrorKind::Failed,
        }
    }
}

impl Cause for Errno {
    fn kind(&self) -> ErrorKind {
        Cause::kind(&io::Error::from(*self))
    }
}

impl Cause for FileError {
    fn kind(&self) -> ErrorKind {
        match self {
            FileError::NoSpace { .. } => ErrorKind::NoRoom,
            FileError::System { source, .. } => Cause::kind(source),
            _ => ErrorKind::Failed,
        }
    }
}

impl Cause for DiskGroupError {
    fn kind(&self) -> ErrorKind {
        match self {
            DiskGroupError::NoSpace { .. } => ErrorKind::NoRoom,
            _ => ErrorKind::Failed,
        }
    }
}

impl Cause for Refused {
    fn kind(&self) -> ErrorKind {
        Cause::kind(&self.source)
    }
}

impl Cause for MemoryError {
    fn kind(&self) -> ErrorKind {
        match self {
            MemoryError::Refused { source, .. } => Cause::kind(source),
            MemoryError::InUse { .. } | MemoryError::StillHolds { .. } => ErrorKind::Failed,
        }
    }
}

impl Cause for SessionError {
    fn kind(&self) -> ErrorKind {
        match self {
            lost if lost.is_lost() => ErrorKind::ServerGone,
            SessionError::NoRoom(_) => ErrorKind::NoRoom,
            SessionError::Retry(_)
            | SessionError::Deadlock(_)
            | SessionError::Refused(_)
            | SessionError::Lost(_)
            | SessionError::Rejected { .. }
            | SessionError::Failed(_) => ErrorKind::Failed,
        }
    }
}

impl Cause for rusqlite::Error {
    fn kind(&self) -> ErrorKind {
        match self.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => ErrorKind::NoRoom,
            Some(rusqlite::ErrorCode::PermissionDenied) => ErrorKind::NotPermitted,
            _ => ErrorKind::Failed,
        }
    }
}

impl Cause for KernelError {
    fn kind(&self) -> ErrorKind {
        match self {
            KernelError::LoadInterrupted => ErrorKind::Interrupted,
            KernelError::DamagedBlock { .. }
            | KernelError::DamagedTable { .. }
            | KernelError::DamagedIndex { .. } => ErrorKind::LostRows,
            other => of_fault(other.fault()),
        }
    }
}

impl Cause for IoError {
    fn kind(&self) -> ErrorKind {
        of_fault(self.fault)
    }
}

fn of_fault(fault: Fault) -> ErrorKind {
    match fault {
        Fault::NoRoom => ErrorKind::NoRoom,
        Fault::Other => ErrorKind::Failed,
    }
}

impl Cause for LayoutError {
    fn kind(&self) -> ErrorKind {
        match self {
            LayoutError::Interrupted => ErrorKind::Interrupted,
            LayoutError::NotEnoughSpace { .. }
            | LayoutError::NoRoomOnDevices { .. }
            | LayoutError::NoRoomInGroup { .. } => ErrorKind::NoRoom,
            LayoutError::File(error) => Cause::kind(error),
            LayoutError::Io(error) => Cause::kind(error),
            LayoutError::DiskGroup(error) => Cause::kind(&**error),
            LayoutError::System { source, .. } | LayoutError::NotWritable { source, .. } => {
                Cause::kind(source)
            }
            _ => ErrorKind::Failed,
        }
    }
}

impl From<SessionError> for EngineError {
    fn from(error: SessionError) -> EngineError {
        EngineError::new(Cause::kind(&error), error.to_string())
    }
}

impl From<CheckError> for EngineError {
    fn from(error: CheckError) -> EngineError {
        match error {
            CheckError::Unread(error) => error.into(),
            CheckError::Lost(what) => EngineError::new(ErrorKind::LostRows, what),
        }
    }
}

impl From<ClientError> for EngineError {
    fn from(error: ClientError) -> EngineError {
        let kind = match &error {
            ClientError::Failed(error) => Cause::kind(error),
            ClientError::Panicked => ErrorKind::Failed,
        };
        EngineError::new(kind, error.to_string())
    }
}

impl From<IoError> for EngineError {
    fn from(error: IoError) -> EngineError {
        EngineError::new(Cause::kind(&error), error.to_string())
    }
}

impl From<KernelError> for EngineError {
    fn from(error: KernelError) -> EngineError {
        EngineError::new(Cause::kind(&error), error.to_string())
    }
}

impl From<LayoutError> for EngineError {
    fn from(error: LayoutError) -> EngineError {
        EngineError::new(Cause::kind(&error), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn what_failed_keeps_the_kind_of_its_reason() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let failed = EngineError::failed("making the log", full());
        assert_eq!(failed.kind(), ErrorKind::NoRoom);
        assert_eq!(failed.to_string(), format!("making the log: {}", full()));
        let again = EngineError::failed("starting the server", &failed);
        assert_eq!(again.kind(), ErrorKind::NoRoom);
        let on_disk = LayoutError::System {
            action: "write",
            path: PathBuf::from("/data"),
            source: full(),
        };
        assert_eq!(EngineError::from(on_disk).kind(), ErrorKind::NoRoom);
        let lost = SessionError::Lost("reset by peer".to_owned());
        assert_eq!(EngineError::from(lost).kind(), ErrorKind::ServerGone);
        let lost = SessionError::Lost("reset by peer".to_owned());
        let client = ClientError::Failed(lost.clone());
        assert_eq!(EngineError::from(client).kind(), ErrorKind::ServerGone);
        let unread = CheckError::Unread(lost);
        assert_eq!(EngineError::from(unread).kind(), ErrorKind::ServerGone);
        let missing = CheckError::Lost("a row".to_owned());
        assert_eq!(EngineError::from(missing).kind(), ErrorKind::LostRows);
        let refused = SessionError::Refused("no such table".to_owned());
        assert_eq!(EngineError::from(refused).kind(), ErrorKind::Failed);
        let aborted = KernelError::Aborted {
            reason: "DBW0: No space left on device".to_owned(),
            fault: Fault::NoRoom,
        };
        assert_eq!(EngineError::from(aborted).kind(), ErrorKind::NoRoom);
        let interrupted = KernelError::LoadInterrupted;
        assert_eq!(
            EngineError::from(interrupted).kind(),
            ErrorKind::Interrupted
        );
    }
}
