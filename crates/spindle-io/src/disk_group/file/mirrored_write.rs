//! One write to all copies of an extent. It is acknowledged when every attached copy has it. When some failed, at least
//! one must have it, and the disks that failed must be offline in the metadata, durably: then what they hold can never
//! be read.

use std::sync::Arc;

use crate::device::{
    Completer, Completion, Follower, IoError, IoOutcome, Operation, Request, Submission,
};
use crate::disk_group::extents::map::Access;
use crate::disk_group::extents::striping::Spot;
use crate::disk_group::file::group_file::GroupFile;
use crate::disk_group::mounted::members::Member;
use crate::disk_group::planted::{Planted, has_planted};
use crate::sync::Latch;
use crate::sync::atomic::Ordering;

/// A write under way to several disks.
pub(crate) struct MirroredWrite {
    file: Arc<GroupFile>,
    spot: Spot,
    at: u64,
    left: Latch<Left>,
}

struct Left {
    copies: usize,
    good: Vec<Arc<Member>>,
    failed: Vec<(Arc<Member>, IoError)>,
    members: Vec<Option<Arc<Member>>>,
    end: Option<(Operation, Completer)>,
}

impl MirroredWrite {
    /// Starts the write on every attached copy. It has been counted in.
    pub(crate) fn submit(file: Arc<GroupFile>, spot: Spot, request: Request) -> Completion {
        let members = file.core.members.load();
        let mut targets: Vec<_> = members
            .attached(file.extent(spot))
            .map(|(member, place)| (Arc::clone(member), member.byte_of(place) + spot.offset))
            .collect();
        drop(members);
        if targets.is_empty() {
            file.map.leave(spot.extent, Access::Write);
            let reason = file.nothing_to_use(spot);
            return Completion::ready(file.refused(request.offset, request.operation, reason));
        }
        if has_planted(Planted::MirrorNotWritten) {
            targets.truncate(1);
        }
        let copies: Vec<Request> = targets
            .iter()
            .map(|(_, at)| copy_of(&request, *at))
            .collect();
        let (completer, completion) = Completion::pending();
        let write = Arc::new(MirroredWrite {
            file,
            spot,
            at: request.offset,
            left: Latch::new(Left {
                copies: copies.len(),
                good: Vec::with_capacity(copies.len()),
                failed: Vec::new(),
                members: targets
                    .iter()
                    .map(|(member, _)| Some(Arc::clone(member)))
                    .collect(),
                end: Some((request.operation, completer)),
            }),
        });
        for (copy, ((member, _), request)) in targets.iter().zip(copies).enumerate() {
            match member.device.submit(request).already() {
                Ok(outcome) => write.note(copy, outcome.result),
                // The waiting caller is told by the end of the whole.
                Err(under_way) => {
                    let whole: Arc<MirroredWrite> = Arc::clone(&write);
                    drop(under_way.followed_by(whole, copy as u64));
                }
            }
        }
        completion
    }

    /// One copy has ended.
    fn note(self: &Arc<Self>, copy: usize, result: Result<(), IoError>) {
        let ended = {
            let mut left = self.left.lock();
            let member = left.members[copy].take().expect("a copy ends once");
            match result {
                Ok(()) => left.good.push(member),
                Err(error) => {
                    self.file.core.suspect(&member);
                    left.failed.push((member, error));
                }
            }
            left.copies -= 1;
            if left.copies > 0 {
                return;
            }
            let (good, failed) = (
                std::mem::take(&mut left.good),
                std::mem::take(&mut left.failed),
            );
            let (operation, completer) = left.end.take().expect("the last copy ends once");
            (good, failed, operation, completer)
        };
        let (good, failed, operation, completer) = ended;
        if failed.is_empty() {
            self.file.map.leave(self.spot.extent, Access::Write);
            return completer.complete(IoOutcome {
                result: Ok(()),
                operation,
            });
        }
        let (write, env) = (Arc::clone(self), Arc::clone(&self.file.core.env));
        let steps = async move {
            let result = write.settle(good, failed, &operation).await;
            write.file.map.leave(write.spot.extent, Access::Write);
            completer.complete(IoOutcome { result, operation });
        };
        env.spawn("disk group", Box::new(move || Box::pin(steps)));
    }

    /// What becomes of a write that failed on some disks.
    async fn settle(
        &self,
        good: Vec<Arc<Member>>,
        failed: Vec<(Arc<Member>, IoError)>,
        operation: &Operation,
    ) -> Result<(), IoError> {
        let file = &self.file;
        let mut reason = failed[0].1.to_string();
        let mut is_settled = !good.is_empty();
        if is_settled {
            for (member, error) in &failed {
                if has_planted(Planted::AcknowledgesBeforeOffline) {
                    let (core, member) = (Arc::clone(&file.core), Arc::clone(member));
                    let later = async move { drop(core.take_offline(&member).await) };
                    file.core
                        .env
                        .spawn("disk group", Box::new(move || Box::pin(later)));
                    continue;
                }
                if let Err(refused) = file.core.take_offline(member).await {
                    reason = format!("{error}; {refused}");
                    is_settled = false;
                }
            }
        }
        let members = file.core.members.load_full();
        let counts = |member: &Arc<Member>| {
            let attached = members.get(member.disk);
            attached.is_some_and(|other| Arc::ptr_eq(&other.device, &member.device))
        };
        if is_settled && good.iter().any(counts) {
            return Ok(());
        }
        file.has_lost_writes.store(true, Ordering::Relaxed);
        file.extent(self.spot).set_diverged(true);
        let bytes = operation.bytes();
        Err(file.error(operation, self.at, bytes, reason))
    }
}

impl Follower for MirroredWrite {
    fn ended(self: Arc<Self>, mark: u64, outcome: IoOutcome, _to: Completer) {
        self.note(mark as usize, outcome.result);
    }
}

/// The same bytes for another place.
fn copy_of(request: &Request, at: u64) -> Request {
    let Operation::Write {
        from,
        durable,
        atomic,
    } = &request.operation
    else {
        unreachable!("a write has copies")
    };
    let from = from.iter().map(|hold| hold.part(0, hold.len())).collect();
    let copy = Request::write(at, from, *durable, Submission::Batched);
    if *atomic { copy.atomic() } else { copy }
}
