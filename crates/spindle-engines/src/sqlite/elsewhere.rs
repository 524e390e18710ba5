//! Where a database lies that is no file, for `vfs` to open it there.

use spindle_layout::{KnownDevice, Place};

use crate::EngineError;

/// What a program says that was built without the VFS.
pub(super) fn not_built() -> EngineError {
    let reason = "this program was built without SQLite on raw devices and in disk groups: install libclang (Debian: \
                  libclang-dev) and build it with `cargo build --release --locked -p spindle --features sqlite-devices`";
    EngineError::unavailable(reason.to_owned())
}

/// Where a database lies that is no file.
pub(super) enum Elsewhere {
    /// On the device whose node has its name.
    Device(
        #[cfg_attr(
            not(feature = "sqlite-devices"),
            expect(dead_code, reason = "for `vfs`")
        )]
        KnownDevice,
    ),
    /// In a disk group.
    Group(
        #[cfg_attr(
            not(feature = "sqlite-devices"),
            expect(dead_code, reason = "for `vfs`")
        )]
        Place,
    ),
}
