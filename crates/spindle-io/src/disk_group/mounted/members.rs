//! The disks of a mounted group as an I/O sees them: which are attached, and which copy to read. The list is
//! replaced as a whole when something changes, and read without a latch.

use std::sync::Arc;

use crate::disk_group::disk::disk_io::Device;
use crate::disk_group::disk::format::DiskLayout;
use crate::disk_group::extents::map::{Extent, UnitPlace};
use crate::disk_group::mounted::change_map::ChangeMap;

/// An attached disk.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) disk: u16,
    pub(crate) name: String,
    pub(crate) failure_group: String,
    pub(crate) device: Device,
    pub(crate) layout: DiskLayout,
    /// A write or a flush of it has failed, and it has not been decided what follows: read only where there is no other
    /// copy.
    pub(crate) is_suspect: bool,
    /// Read rather than others.
    pub(crate) is_preferred: bool,
    pub(crate) map: Arc<ChangeMap>,
}

impl Member {
    /// First byte of a place on the device.
    #[inline]
    pub(crate) fn byte_of(&self, place: UnitPlace) -> u64 {
        u64::from(place.au) * self.layout.au_bytes
    }
}

/// The attached disks by their number.
#[derive(Clone, Default)]
pub(crate) struct Members(Vec<Option<Arc<Member>>>);

impl Members {
    #[inline]
    pub(crate) fn get(&self, disk: u16) -> Option<&Arc<Member>> {
        self.0.get(usize::from(disk))?.as_ref()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.0.iter().flatten()
    }

    pub(crate) fn set(&mut self, member: Member) {
        let place = usize::from(member.disk);
        if self.0.len() <= place {
            self.0.resize(place + 1, None);
        }
        self.0[place] = Some(Arc::new(member));
    }

    pub(crate) fn remove(&mut self, disk: u16) {
        if let Some(place) = self.0.get_mut(usize::from(disk)) {
            *place = None;
        }
    }

    /// The copy of an extent to read: one of the preferred failure group, else the first; one on a suspect disk only if
    /// there is no other.
    #[inline]
    pub(crate) fn to_read<'a>(
        &'a self,
        extent: &'a Extent,
    ) -> Option<(&'a Arc<Member>, UnitPlace)> {
        let mut best: Option<(&Arc<Member>, UnitPlace)> = None;
        for (member, place) in self.attached(extent) {
            let rank = |member: &Member| (!member.is_suspect, member.is_preferred);
            if best.is_none_or(|(other, _)| rank(member) > rank(other)) {
                best = Some((member, place));
            }
        }
        best
    }

    /// The copies of an extent that are on attached disks.
    #[inline]
    pub(crate) fn attached<'a>(
        &'a self,
        extent: &'a Extent,
    ) -> impl Iterator<Item = (&'a Arc<Member>, UnitPlace)> {
        let of = |place: UnitPlace| Some((self.get(place.disk)?, place));
        extent.places().filter_map(of)
    }
}
