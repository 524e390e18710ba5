//! What follows a read that failed on a mirrored file: the other copies are asked, and the bad one is rewritten in
//! place from a good one, and read again. A disk that cannot be mended so is taken offline, if the group can spare it
//! (OSTMG 12.1, "Read failures").

use std::sync::Arc;

use crate::device::{IoError, IoOutcome, Operation, Request, Submission};
use crate::disk_group::disk::disk_io;
use crate::disk_group::disk::format::BLOCK_BYTES;
use crate::disk_group::extents::map::Access;
use crate::disk_group::extents::striping::Spot;
use crate::disk_group::file::group_file::GroupFile;
use crate::disk_group::mounted::members::Member;

impl GroupFile {
    /// Reads from the other copies what could not be read from `disk`.
    pub(crate) async fn read_elsewhere(
        &self,
        at: u64,
        mut operation: Operation,
        disk: u16,
        error: IoError,
    ) -> IoOutcome {
        let spot = self.locate(at);
        let bytes = operation.bytes();
        let mut bad = vec![disk];
        let mut reasons = vec![error.to_string()];
        self.map.enter(spot.extent, Access::Read).await;
        let found = loop {
            let members = self.core.members.load_full();
            let mut others: Vec<_> = members
                .attached(self.extent(spot))
                .filter(|(member, _)| !bad.contains(&member.disk))
                .collect();
            others.sort_by_key(|(member, _)| member.is_suspect);
            let Some((member, place)) = others.first() else {
                break false;
            };
            let request = Request {
                offset: member.byte_of(*place) + spot.offset,
                operation,
                submission: Submission::Batched,
            };
            let outcome = member.device.submit(request).await;
            operation = outcome.operation;
            match outcome.result {
                Ok(()) => break true,
                Err(error) => {
                    bad.push(member.disk);
                    reasons.push(error.to_string());
                }
            }
        };
        self.map.leave(spot.extent, Access::Read);
        if !found {
            return self.refused(at, operation, reasons.join("; "));
        }
        for disk in bad {
            self.mend(spot, bytes as u64, disk).await;
        }
        IoOutcome {
            result: Ok(()),
            operation,
        }
    }

    /// Rewrites part of the copy on `disk`, or takes the disk offline.
    async fn mend(&self, spot: Spot, bytes: u64, disk: u16) {
        let members = self.core.members.load_full();
        let attached = members.get(disk);
        let Some(member) = attached.filter(|member| !member.is_suspect) else {
            return;
        };
        let mended = {
            let _locked = self.map.lock_writes(spot.extent).await;
            self.rewrite(spot, bytes, member).await
        };
        if !mended {
            // Where the group cannot spare the disk, its other copies are still worth having.
            let _ = self.core.take_offline(member).await;
        }
    }

    async fn rewrite(&self, spot: Spot, bytes: u64, member: &Arc<Member>) -> bool {
        let members = self.core.members.load_full();
        let is_source =
            |other: &&(&Arc<Member>, _)| !other.0.is_suspect && other.0.disk != member.disk;
        let copies: Vec<_> = members.attached(self.extent(spot)).collect();
        let bad = copies.iter().find(|(other, _)| other.disk == member.disk);
        let (Some((source, from)), Some((_, to))) = (copies.iter().find(is_source), bad) else {
            return true;
        };
        let block = BLOCK_BYTES as u64;
        let first = spot.offset / block * block;
        let length = ((spot.offset + bytes).next_multiple_of(block) - first) as usize;
        let good = disk_io::read(&source.device, source.byte_of(*from) + first, length).await;
        let Ok(good) = good else {
            return true;
        };
        let at = member.byte_of(*to) + first;
        let wrote = disk_io::write(&member.device, at, &good[..length]).await;
        wrote.is_ok() && disk_io::read(&member.device, at, length).await.is_ok()
    }
}
