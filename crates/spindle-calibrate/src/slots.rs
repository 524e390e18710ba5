//! One thread that keeps a number of requests under way: as soon as one is answered, the next takes its place.
//! A place whose request has ended is found by its own waker, so that a thread with hundreds of them looks at those
//! alone that have news.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_io::real::{Method, block_on};
use spindle_io::{
    Arena, BlockDevice, Completion, Frame, Operation, Request, Submission, WriteHold,
};

use crate::draw::{Draw, fresh_seed, stamp};
use crate::error::CalibrateError;
use crate::observe::{Ended, Tally};
use crate::ring_slots;
use crate::unit::Unit;

/// How requests get to what they are held on.
#[derive(Clone, Copy)]
pub(crate) enum RequestPath<'a> {
    /// A device takes them as it does the database's.
    Device(&'a dyn BlockDevice),
    /// Each thread has its own ring on the files of a unit; and whether its buffers are registered.
    Rings(&'a Unit, bool),
}

impl<'a> RequestPath<'a> {
    /// How requests under way together get to a unit: with `async`, in rings that nothing else uses.
    pub(crate) fn to(unit: &'a Unit) -> RequestPath<'a> {
        match unit.files()[0].method() {
            Method::Async => RequestPath::Rings(unit, true),
            _ => RequestPath::Device(unit),
        }
    }

    /// All that can be asked for.
    pub(crate) fn capacity_bytes(self) -> u64 {
        match self {
            RequestPath::Device(device) => device.limits().capacity_bytes,
            RequestPath::Rings(unit, _) => unit.limits().capacity_bytes,
        }
    }

    /// Keeps `depth` requests under way from the calling thread, with buffers of `arena`, counted in lane `lane` of the
    /// tally, until it is told to stop and all have ended. Tells all others to stop when one fails.
    ///
    /// # Errors
    /// The system refuses a ring, or a request failed.
    pub(crate) fn keep(
        self,
        (arena, depth): (&Arc<Arena>, u32),
        draw: Draw<'_>,
        counted: (&Tally, usize),
        stop: &AtomicBool,
    ) -> Result<(), CalibrateError> {
        let kept = match self {
            RequestPath::Device(device) => {
                let slots = Slots::new(device, arena, depth as usize, draw, counted, stop);
                block_on(slots)
            }
            RequestPath::Rings(unit, has_fixed) => {
                ring_slots::keep(unit, has_fixed, (arena, depth), draw, counted, stop)
            }
        };
        kept.inspect_err(|_| stop.store(true, Ordering::Relaxed))
    }
}

/// The places of one thread; ends when it is told to stop and every request has been answered.
struct Slots<'a> {
    device: &'a dyn BlockDevice,
    draw: Draw<'a>,
    tally: &'a Tally,
    lane: usize,
    stop: &'a AtomicBool,
    ready: Arc<Ready>,
    places: Vec<Slot>,
    /// Places with news that are looked at.
    turn: Vec<usize>,
    /// What ended and is not in the tally yet.
    ended: Ended,
    under_way: usize,
    /// Requests that wrote.
    written: u64,
}

struct Slot {
    frame: Frame,
    /// Its buffer while no request has it, in the vector that the last read had.
    buffer: Vec<WriteHold>,
    request: Option<(Completion, Instant)>,
    waker: Waker,
}

/// Places whose requests have news.
#[derive(Default)]
struct Ready {
    news: Mutex<News>,
}

#[derive(Default)]
struct News {
    places: Vec<usize>,
    thread: Option<Waker>,
}

struct PlaceWaker {
    ready: Arc<Ready>,
    place: usize,
}

impl Wake for PlaceWaker {
    fn wake(self: Arc<Self>) {
        let mut news = self.ready.lock();
        news.places.push(self.place);
        let thread = news.thread.take();
        drop(news);
        if let Some(thread) = thread {
            thread.wake();
        }
    }
}

impl Ready {
    fn lock(&self) -> std::sync::MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Slots<'a> {
    /// `depth` places with buffers of `arena`, counted in lane `lane` of the tally.
    fn new(
        device: &'a dyn BlockDevice,
        arena: &Arc<Arena>,
        depth: usize,
        draw: Draw<'a>,
        (tally, lane): (&'a Tally, usize),
        stop: &'a AtomicBool,
    ) -> Slots<'a> {
        let ready = Arc::new(Ready::default());
        ready.lock().places = (0..depth).collect();
        let place = |place| {
            let frame = arena.allocate().expect("a frame for each place");
            if let Some(mut bytes) = frame.try_write() {
                // What is written before anything was read does not compress.
                seeded_rng(fresh_seed(), lane as u64).fill_bytes(&mut bytes);
            }
            Slot {
                buffer: Vec::from_iter(frame.try_write_hold()),
                frame,
                request: None,
                waker: Waker::from(Arc::new(PlaceWaker {
                    ready: Arc::clone(&ready),
                    place,
                })),
            }
        };
        Slots {
            device,
            draw,
            tally,
            lane,
            stop,
            places: (0..depth).map(place).collect(),
            turn: Vec::new(),
            ended: Ended::default(),
            ready,
            under_way: 0,
            written: 0,
        }
    }

    /// Continues with one place until its request is under way, or it is to stop. `now` is when its news came; a
    /// request that ends within its submission sets it. So the clock is read once for all requests that ended together.
    fn advance(&mut self, index: usize, now: &mut Instant) -> Result<(), CalibrateError> {
        let place = &mut self.places[index];
        let mut has_waited = true;
        loop {
            if let Some((completion, began)) = &mut place.request {
                let mut context = Context::from_waker(&place.waker);
                let Poll::Ready(outcome) = Pin::new(completion).poll(&mut context) else {
                    return Ok(());
                };
                if !has_waited {
                    *now = Instant::now();
                }
                let latency = now.duration_since(*began);
                place.request = None;
                self.under_way -= 1;
                outcome.result.map_err(CalibrateError::Request)?;
                place.buffer = match outcome.operation {
                    Operation::Read(holds) => {
                        self.ended.reads.push(latency);
                        holds
                    }
                    written => {
                        self.ended.writes.push(latency);
                        drop(written);
                        Vec::from_iter(place.frame.try_write_hold())
                    }
                };
                if !has_waited {
                    self.tally.take_in(self.lane, &mut self.ended);
                }
            }
            if place.buffer.is_empty() || self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let buffer = std::mem::take(&mut place.buffer);
            let next = (self.draw)();
            let request = match next.is_write {
                false => Request::read(next.offset, buffer, Submission::Batched),
                true => {
                    self.written += 1;
                    write(next.offset, buffer, [self.lane as u64, self.written])
                }
            };
            place.request = Some((self.device.submit(request), *now));
            self.under_way += 1;
            has_waited = false;
        }
    }
}

/// A write of what the buffer holds, made unlike all others by a number of the thread and one of its request.
fn write(offset: u64, mut buffer: Vec<WriteHold>, numbers: [u64; 2]) -> Request {
    buffer.iter_mut().for_each(|hold| stamp(hold, numbers));
    let shared = buffer.into_iter().map(|hold| {
        let length = hold.len();
        hold.share(length)
    });
    Request::write(offset, shared.collect(), false, Submission::Batched)
}

impl Future for Slots<'_> {
    type Output = Result<(), CalibrateError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            this.turn.clear();
            {
                let mut news = this.ready.lock();
                if news.places.is_empty() {
                    news.thread = Some(context.waker().clone());
                }
                std::mem::swap(&mut news.places, &mut this.turn);
            }
            if this.turn.is_empty() {
                let is_over = this.under_way == 0 && this.stop.load(Ordering::Relaxed);
                return match is_over {
                    true => Poll::Ready(Ok(())),
                    false => Poll::Pending,
                };
            }
            let mut now = Instant::now();
            for at in 0..this.turn.len() {
                if let Err(error) = this.advance(this.turn[at], &mut now) {
                    return Poll::Ready(Err(error));
                }
            }
            this.tally.take_in(this.lane, &mut this.ended);
        }
    }
}
