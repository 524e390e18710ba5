//! Copying extents between disks of the group: making copies equal after a crash, moving.

use std::sync::Arc;

use crate::device::IoError;
use crate::disk_group::disk::disk_io;
use crate::disk_group::error::DiskGroupError;
use crate::disk_group::extents::map::{ExtentMap, UnitPlace};
use crate::disk_group::mounted::core::Core;
use crate::disk_group::mounted::members::Member;

/// Bytes read and written at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Where a copy of an extent is.
pub(crate) type Copy = (Arc<Member>, UnitPlace);

/// A disk that failed while an extent was copied.
pub(crate) struct FailedCopy {
    pub(crate) member: Arc<Member>,
    pub(crate) error: IoError,
}

/// Copies `bytes` bytes to all of `to`. Not yet on stable storage when it returns, unless `durable`.
pub(crate) async fn copy(
    from: &Copy,
    to: &[Copy],
    bytes: u64,
    durable: bool,
) -> Result<(), FailedCopy> {
    let failed = |member: &Arc<Member>| {
        let member = Arc::clone(member);
        move |error| FailedCopy { member, error }
    };
    let piece_bytes = bytes.min(PIECE_BYTES);
    for at in (0..bytes).step_by(piece_bytes as usize) {
        let (source, place) = from;
        let offset = source.byte_of(*place) + at;
        let read = disk_io::read(&source.device, offset, piece_bytes as usize).await;
        let hold = read.map_err(failed(source))?;
        let hold = hold.share(piece_bytes as usize);
        let mut under_way = Vec::new();
        for (member, place) in to {
            let from = hold.part(0, hold.len());
            let write =
                disk_io::begin_write(&member.device, member.byte_of(*place) + at, from, durable);
            under_way.push((member, write));
        }
        for (member, write) in under_way {
            write.await.result.map_err(failed(member))?;
        }
    }
    Ok(())
}

impl Core {
    /// Makes the attached copies of an extent equal to the first. A disk that fails meanwhile is taken offline. The
    /// extent must not be written meanwhile. Errors: that would lose data.
    pub(crate) async fn equalise(
        &self,
        map: &ExtentMap,
        number: usize,
    ) -> Result<(), DiskGroupError> {
        let extent = &map.extents()[number];
        loop {
            let members = self.members.load_full();
            let copies: Vec<Copy> = members
                .attached(extent)
                .map(|(member, place)| (Arc::clone(member), place))
                .collect();
            let Some((from, to)) = copies.split_first() else {
                return self.check_mounted();
            };
            match copy(from, to, map.shape.extent_bytes(number), false).await {
                Ok(()) => {
                    extent.set_diverged(false);
                    return Ok(());
                }
                Err(failed) => self
                    .take_offline(&failed.member)
                    .await
                    .map_err(|refused| self.invalid(format!("{}; {refused}", failed.error)))?,
            }
        }
    }
}
