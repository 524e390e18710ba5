//! A file of a group as a `BlockDevice`. A request that lies within one extent (or fine stripe) is looked up and handed
//! to the disk as it is: no latch, no wait, and for one copy or a read no allocation. Whatever else there is goes
//! another way: a request that crosses a border (`pieces`), one that has to wait because its extent is being moved or
//! its first write must be noted in the change map ([`GroupFile::patiently`]), one that fails (`mend`,
//! `mirrored_write`).

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use crate::device::{
    BlockDevice, Completer, Completion, Fault, Follower, IoError, IoFailure, IoOutcome, Limits,
    Operation, Request,
};
use crate::disk_group::extents::map::{Access, Extent, ExtentMap, UnitPlace};
use crate::disk_group::extents::striping::{STRIPE_BYTES, Spot, Striping};
use crate::disk_group::file::mirrored_write::MirroredWrite;
use crate::disk_group::file::pieces;
use crate::disk_group::mounted::core::Core;
use crate::disk_group::mounted::members::Member;
use crate::disk_group::planted::{Planted, has_planted};
use crate::env::Env;
use crate::sync;
use crate::sync::atomic::{AtomicBool, Ordering};

/// An open file of a group.
pub(crate) struct GroupFile {
    me: Weak<GroupFile>,
    pub(crate) core: Arc<Core>,
    /// `+GROUP/file`, for messages.
    name: String,
    limits: Limits,
    pub(crate) map: Arc<ExtentMap>,
    /// A write was lost, and its caller was told.
    pub(crate) has_lost_writes: AtomicBool,
    /// Of a file that is being made: its space, given back if it never is.
    pub(crate) reserved: sync::Latch<Option<Vec<(UnitPlace, u32)>>>,
}

/// Disk number and byte of the file, as the mark of a read that was handed on.
fn mark_of(disk: u16, at: u64) -> u64 {
    u64::from(disk) << 48 | at
}

impl GroupFile {
    pub(crate) fn new(core: &Arc<Core>, name: &str, map: &Arc<ExtentMap>) -> Arc<GroupFile> {
        let members = core.members.load();
        let of = |one: fn(&Limits) -> u32| {
            members
                .all()
                .map(move |member| one(&member.device.limits()))
        };
        let atomic = of(|limits| limits.atomic_write_bytes).min().unwrap_or(512);
        let within = match map.shape.striping {
            Striping::Coarse => core.au_bytes,
            Striping::Fine => STRIPE_BYTES,
        };
        let limits = Limits {
            capacity_bytes: map.shape.bytes,
            alignment_bytes: of(|limits| limits.alignment_bytes).max().unwrap_or(512),
            atomic_write_bytes: u64::from(atomic).min(within) as u32,
        };
        Arc::new_cyclic(|me| GroupFile {
            me: Weak::clone(me),
            core: Arc::clone(core),
            name: format!("+{}/{name}", core.name),
            limits,
            map: Arc::clone(map),
            has_lost_writes: AtomicBool::new(false),
            reserved: sync::Latch::new(None),
        })
    }

    pub(crate) fn arc(&self) -> Arc<GroupFile> {
        self.me.upgrade().expect("whoever calls holds it")
    }

    pub(crate) fn extent(&self, spot: Spot) -> &Extent {
        &self.map.extents()[spot.extent]
    }

    /// Where a byte lies.
    #[inline]
    pub(crate) fn locate(&self, at: u64) -> Spot {
        let mut spot = self.map.shape.locate(at);
        let width = self.map.shape.width as usize;
        if has_planted(Planted::StripeOffByOne) && width > 1 && spot.extent.is_multiple_of(width) {
            spot.extent += 1;
        }
        spot
    }

    pub(crate) fn error(
        &self,
        operation: &Operation,
        at: u64,
        bytes: usize,
        reason: String,
    ) -> IoError {
        IoError::from(IoFailure {
            device: self.name.clone(),
            operation: operation.name(),
            offset: at,
            bytes,
            reason,
            fault: Fault::Other,
        })
    }

    /// An I/O that ended with an error of the file's own.
    pub(crate) fn refused(&self, at: u64, operation: Operation, reason: String) -> IoOutcome {
        let bytes = operation.bytes();
        IoOutcome {
            result: Err(self.error(&operation, at, bytes, reason)),
            operation,
        }
    }

    /// Why no copy of an extent can be used.
    pub(crate) fn nothing_to_use(&self, spot: Spot) -> String {
        if let Err(error) = self.core.check_mounted() {
            return error.to_string();
        }
        let disks: Vec<String> = self
            .extent(spot)
            .places()
            .map(|place| place.disk.to_string())
            .collect();
        format!(
            "no copy of extent {} is on a disk that is online (disks {} of group {})",
            spot.extent,
            disks.join(", "),
            self.core.name
        )
    }

    fn read_piece(&self, spot: Spot, request: Request) -> Completion {
        if !self.map.try_enter(spot.extent, Access::Read) {
            return self.later(request);
        }
        let members = self.core.members.load();
        let Some((member, place)) = members.to_read(self.extent(spot)) else {
            self.map.leave(spot.extent, Access::Read);
            let reason = self.nothing_to_use(spot);
            return Completion::ready(self.refused(request.offset, request.operation, reason));
        };
        self.hand_on(spot, Access::Read, member, place, request)
    }

    /// Has a disk carry a request out that was counted in.
    #[inline]
    fn hand_on(
        &self,
        spot: Spot,
        access: Access,
        member: &Member,
        place: UnitPlace,
        mut request: Request,
    ) -> Completion {
        let mark = mark_of(place.disk, request.offset);
        request.offset = member.byte_of(place) + spot.offset;
        match member.device.submit(request).already() {
            Ok(outcome) if outcome.result.is_ok() => {
                self.map.leave(spot.extent, access);
                Completion::ready(outcome)
            }
            Ok(outcome) => {
                let (completer, completion) = Completion::pending();
                self.arc().ended(mark, outcome, completer);
                completion
            }
            Err(under_way) => under_way.followed_by(self.arc(), mark),
        }
    }

    fn write_piece(&self, spot: Spot, request: Request) -> Completion {
        if !self.map.try_enter(spot.extent, Access::Write) {
            return self.later(request);
        }
        if self.map.copies() > 1 && !self.is_marked(spot) {
            self.map.leave(spot.extent, Access::Write);
            return self.later(request);
        }
        self.write_entered(spot, request)
    }

    /// Whether the change map says that the extent is written. Notes that it is.
    fn is_marked(&self, spot: Spot) -> bool {
        let members = self.core.members.load();
        let mut marked = true;
        for (member, place) in members.attached(self.extent(spot)) {
            member.map.touch(place.au);
            marked &= member.map.is_set(place.au);
        }
        marked
    }

    /// Writes all copies; the write has been counted in, and noted in the change map if it must be.
    fn write_entered(&self, spot: Spot, request: Request) -> Completion {
        if self.map.copies() > 1 {
            return MirroredWrite::submit(self.arc(), spot, request);
        }
        let members = self.core.members.load();
        let Some((member, place)) = members.attached(self.extent(spot)).next() else {
            self.map.leave(spot.extent, Access::Write);
            let reason = self.nothing_to_use(spot);
            return Completion::ready(self.refused(request.offset, request.operation, reason));
        };
        self.hand_on(spot, Access::Write, member, place, request)
    }

    /// Whether what was read from a disk may be passed on: it may have lost writes while the read was under way.
    fn is_believed(&self, spot: Spot, disk: u16) -> bool {
        let members = self.core.members.load();
        let chosen = members.to_read(self.extent(spot));
        let is_suspect = members.get(disk).is_none_or(|member| member.is_suspect);
        !is_suspect || chosen.is_some_and(|(member, _)| member.disk == disk)
    }

    /// An I/O that has to wait before it can begin.
    fn later(&self, request: Request) -> Completion {
        let file = self.arc();
        self.in_steps(async move { file.patiently(request).await })
    }

    async fn patiently(self: Arc<GroupFile>, request: Request) -> IoOutcome {
        let spot = self.locate(request.offset);
        let access = match request.operation {
            Operation::Read(_) => {
                // Reads are kept out only for a moment.
                self.map.enter(spot.extent, Access::Read).await;
                self.map.leave(spot.extent, Access::Read);
                return self.read_piece(spot, request).await;
            }
            _ => Access::Write,
        };
        loop {
            self.map.enter(spot.extent, access).await;
            if self.map.copies() == 1 || self.is_marked(spot) {
                return self.write_entered(spot, request).await;
            }
            let places: Vec<UnitPlace> = self.extent(spot).places().collect();
            let marked = self.core.mark(&places).await;
            self.map.leave(spot.extent, access);
            if let Err(error) = marked {
                return self.refused(request.offset, request.operation, error.to_string());
            }
        }
    }

    /// An I/O of several steps, which continue even when no caller waits for them.
    pub(crate) fn in_steps(
        &self,
        steps: impl Future<Output = IoOutcome> + Send + 'static,
    ) -> Completion {
        Completion::of_steps(Box::pin(GoesOn {
            steps: Some(Box::pin(steps)),
            env: Arc::clone(&self.core.env),
        }))
    }

    fn flush(&self, request: Request) -> Completion {
        let file = self.arc();
        self.in_steps(async move {
            let flushed = file.core.flush_disks().await;
            let result = flushed.and_then(|()| file.check_copies());
            let operation = request.operation;
            IoOutcome {
                result: result.map_err(|error| file.error(&operation, 0, 0, error.to_string())),
                operation,
            }
        })
    }

    /// A file without a mirror has nothing to fall back on when its disk has gone with what was to be flushed.
    fn check_copies(&self) -> Result<(), crate::disk_group::DiskGroupError> {
        let members = self.core.members.load();
        for (number, extent) in self.map.extents().iter().enumerate() {
            if members.to_read(extent).is_none() {
                let spot = Spot {
                    extent: number,
                    offset: 0,
                    left: 0,
                };
                return Err(self.core.invalid(self.nothing_to_use(spot)));
            }
        }
        Ok(())
    }

    /// Why a request cannot be carried out at all.
    fn refusal(&self, request: &Request, bytes: usize) -> Option<String> {
        let end = request.offset.checked_add(bytes as u64);
        if end.is_none_or(|end| end > self.limits.capacity_bytes) {
            return Some(format!(
                "past the end: it holds {} bytes",
                self.limits.capacity_bytes
            ));
        }
        match request.operation {
            Operation::Write { atomic: true, .. }
                if bytes > self.limits.atomic_write_bytes as usize =>
            {
                Some(format!(
                    "at most {} bytes are written untorn",
                    self.limits.atomic_write_bytes
                ))
            }
            _ => None,
        }
    }
}

impl BlockDevice for GroupFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> Limits {
        self.limits.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        sync::assert_no_latch_held();
        if matches!(request.operation, Operation::Flush) {
            return self.flush(request);
        }
        let bytes = request.bytes();
        if let Some(reason) = self.refusal(&request, bytes) {
            return Completion::ready(self.refused(request.offset, request.operation, reason));
        }
        if bytes == 0 {
            return Completion::ready(IoOutcome {
                result: Ok(()),
                operation: request.operation,
            });
        }
        let spot = self.locate(request.offset);
        if bytes as u64 > spot.left {
            return pieces::submit(self, request);
        }
        match request.operation {
            Operation::Read(_) => self.read_piece(spot, request),
            _ => self.write_piece(spot, request),
        }
    }
}

impl Follower for GroupFile {
    /// A read, or the write of an only copy, has ended on its disk.
    fn ended(self: Arc<Self>, mark: u64, outcome: IoOutcome, to: Completer) {
        let (disk, at) = ((mark >> 48) as u16, mark & ((1 << 48) - 1));
        let spot = self.locate(at);
        let is_read = matches!(outcome.operation, Operation::Read(_));
        let access = if is_read { Access::Read } else { Access::Write };
        self.map.leave(spot.extent, access);
        let has_mirror = is_read && self.map.copies() > 1;
        let error = match outcome.result {
            Ok(()) if has_mirror && !self.is_believed(spot, disk) => self.error(
                &outcome.operation,
                at,
                0,
                format!("disk {disk} failed meanwhile"),
            ),
            Ok(()) => return to.complete(outcome),
            Err(error) => error,
        };
        if has_mirror {
            let env = Arc::clone(&self.core.env);
            let steps = async move {
                to.complete(
                    self.read_elsewhere(at, outcome.operation, disk, error)
                        .await,
                );
            };
            env.spawn("disk group", Box::new(move || Box::pin(steps)));
            return;
        }
        if !is_read {
            self.has_lost_writes.store(true, Ordering::Relaxed);
        }
        to.complete(self.refused(at, outcome.operation, error.to_string()));
    }
}

impl Drop for GroupFile {
    fn drop(&mut self) {
        let Some(reserved) = self.reserved.lock().take() else {
            return;
        };
        let mut book = self.core.book.lock();
        for (place, aus) in reserved {
            book.space.free(place, aus);
        }
    }
}

/// Steps of an I/O; dropped before their end, they become a separate process.
struct GoesOn {
    steps: Option<Pin<Box<dyn Future<Output = IoOutcome> + Send>>>,
    env: Arc<dyn Env>,
}

impl Future for GoesOn {
    type Output = IoOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<IoOutcome> {
        let steps = self.steps.as_mut().expect("a completion is awaited once");
        let polled = steps.as_mut().poll(context);
        if polled.is_ready() {
            self.steps = None;
        }
        polled
    }
}

impl Drop for GoesOn {
    fn drop(&mut self) {
        if let Some(steps) = self.steps.take() {
            let rest = async move { drop(steps.await) };
            self.env
                .spawn("disk group", Box::new(move || Box::pin(rest)));
        }
    }
}
