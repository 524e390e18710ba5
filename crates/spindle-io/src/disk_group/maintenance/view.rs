//! Looking at a group that may be another's: its metadata read and its copies compared, and nothing written. What a
//! mount would mend is told instead.

use std::sync::Arc;

use crate::device::BlockDevice;
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::maintenance::check::CheckReport;
use crate::disk_group::mount::{Assembled, assemble, may_differ};
use crate::disk_group::{DiskGroup, GroupDescription, MountOptions};
use crate::env::Env;

/// A group that is looked at, and not mounted.
pub struct GroupView {
    /// Whatever of it writes is out of reach.
    group: DiskGroup,
}

impl GroupView {
    /// Looks at the group whose disks these are: they need not be open for writing. Errors: as [`DiskGroup::mount`].
    pub async fn open(
        env: &Arc<dyn Env>,
        devices: &[Arc<dyn BlockDevice>],
        options: &MountOptions,
    ) -> Result<GroupView, DiskGroupError> {
        let assembled: Assembled = assemble(devices, options).await?;
        let group = DiskGroup {
            core: assembled.into_core(env),
        };
        Ok(GroupView { group })
    }

    /// As [`DiskGroup::describe`].
    pub fn describe(&self) -> GroupDescription {
        self.group.describe()
    }

    /// Mirrored extents whose copies may differ, because writes to them had not ended when the group was last used. A
    /// mount makes them equal.
    pub fn unequal_extents(&self) -> usize {
        may_differ(&self.group.core).len()
    }

    /// As [`DiskGroup::check_while`].
    pub async fn check_while(
        &self,
        go_on: &(dyn Fn() -> bool + Send + Sync),
    ) -> Result<CheckReport, DiskGroupError> {
        self.group.check_while(go_on).await
    }
}
