//! What follows when something goes wrong in a run: decided here, by the kind of the error, and nowhere else. The
//! runner and the databases ask, and carry out what is answered.

use spindle_engines::{EngineError, ErrorKind};
use spindle_text::plain::sentence;

use crate::database_error::DatabaseError;

/// What follows when a trial broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterTrial {
    /// It is measured again, while it has tries left; else it has failed.
    Again,
    /// It has failed, and the other cases continue.
    Failed,
    /// The run ends; a later process resumes it.
    RunEnds,
}

/// What follows when a trial broke off for this reason.
pub(crate) fn after_trial(reason: &EngineError) -> AfterTrial {
    match reason.kind() {
        ErrorKind::Interrupted => AfterTrial::RunEnds,
        ErrorKind::Disturbed => AfterTrial::Again,
        ErrorKind::Unavailable
        | ErrorKind::RefusedSetting
        | ErrorKind::MisspeltSetting
        | ErrorKind::NoRoom
        | ErrorKind::NotPermitted
        | ErrorKind::ServerGone
        | ErrorKind::LostRows
        | ErrorKind::Failed => AfterTrial::Failed,
    }
}

/// Why a trial failed, with what to do next where its reason does not say so.
pub(crate) fn told(reason: &EngineError) -> String {
    match reason.kind() {
        ErrorKind::NoRoom => format!(
            "{} Make room there and go on with `spindle resume`, or begin again with a smaller database.size",
            sentence(&reason.to_string())
        ),
        _ => reason.to_string(),
    }
}

/// What follows when a layout, or its database, cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterLayout {
    /// The others continue without it.
    LeftOut,
    /// The run ends.
    RunEnds,
}

/// What follows when a look at a layout, or a try of it, found this.
pub(crate) fn after_look(reason: &EngineError) -> AfterLayout {
    match reason.kind() {
        ErrorKind::Interrupted => AfterLayout::RunEnds,
        _ => AfterLayout::LeftOut,
    }
}

/// What follows when a database cannot be made or put back. `is_alone` says that what failed may be the layout's own:
/// a device that Spindle made its storage of, or a server that another layout does not ask.
pub(crate) fn after_database(reason: &DatabaseError, is_alone: bool) -> AfterLayout {
    match reason {
        // Without a ledger nothing may be made.
        DatabaseError::Ledger(_) => AfterLayout::RunEnds,
        _ if reason.kind() == ErrorKind::Interrupted => AfterLayout::RunEnds,
        _ if is_alone => AfterLayout::LeftOut,
        _ => AfterLayout::RunEnds,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use spindle_layout::LayoutError;

    use super::*;

    #[test]
    fn a_trial_is_tried_again_for_what_passes_only() {
        let after = |kind| after_trial(&EngineError::new(kind, "so"));
        assert_eq!(after(ErrorKind::Disturbed), AfterTrial::Again);
        assert_eq!(after(ErrorKind::Interrupted), AfterTrial::RunEnds);
        for kind in [
            ErrorKind::NoRoom,
            ErrorKind::ServerGone,
            ErrorKind::LostRows,
        ] {
            assert_eq!(after(kind), AfterTrial::Failed, "{kind:?}");
        }
    }

    #[test]
    fn a_full_device_is_told_with_what_to_do() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let full = EngineError::failed("client 3", full);
        assert!(told(&full).contains("spindle resume"), "{}", told(&full));
        let other = EngineError::other("no such table");
        assert_eq!(told(&other), "no such table");
    }

    #[test]
    fn what_all_layouts_need_ends_the_run() {
        let unread = DatabaseError::from(LayoutError::System {
            action: "read",
            path: PathBuf::from("/data"),
            source: io::Error::from(io::ErrorKind::Other),
        });
        assert_eq!(after_database(&unread, true), AfterLayout::LeftOut);
        assert_eq!(after_database(&unread, false), AfterLayout::RunEnds);
        let interrupted = DatabaseError::from(LayoutError::Interrupted);
        assert_eq!(after_database(&interrupted, true), AfterLayout::RunEnds);
    }
}
