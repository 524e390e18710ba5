//! One thread that keeps a number of requests under way in its own ring, as `slots` does on any device, at a
//! fraction of the cost for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use spindle_io::Arena;
use spindle_io::env::seeded_rng;
use spindle_io::real::{BareRing, FileDevice, RingRequest};

use rand_core::RngCore;

use crate::draw::{Draw, fresh_seed, stamp};
use crate::error::CalibrateError;
use crate::observe::{Ended, Tally};
use crate::unit::Unit;

/// Keeps `depth` requests under way with buffers of `arena`, counted in lane `lane` of the tally, until it is told to
/// stop and all have ended.
///
/// # Errors
/// The system refuses a ring, or a request failed.
pub(crate) fn keep(
    unit: &Unit,
    has_fixed: bool,
    (arena, depth): (&Arc<Arena>, u32),
    mut draw: Draw<'_>,
    (tally, lane): (&Tally, usize),
    stop: &AtomicBool,
) -> Result<(), CalibrateError> {
    let files: Vec<&FileDevice> = unit.files().iter().collect();
    let buffer = |_| {
        let frame = arena.allocate().expect("a frame for each place");
        let mut hold = frame.try_write_hold().expect("a new frame is free");
        // What is written before anything was read does not compress.
        seeded_rng(fresh_seed(), lane as u64).fill_bytes(&mut hold);
        hold
    };
    let mut ring = BareRing::new(&files, (0..depth).map(buffer).collect(), has_fixed)?;
    let mut began = vec![(Instant::now(), false); depth as usize];
    let mut idle: Vec<u32> = (0..depth).collect();
    let (mut ended, mut written) = (Ended::default(), 0);
    loop {
        // One look at the clock for all that ended together: they end now, and the next ones begin.
        let now = Instant::now();
        if !stop.load(Ordering::Relaxed) {
            for &place in &idle {
                let next = draw();
                if next.is_write {
                    written += 1;
                    stamp(ring.bytes(place), [lane as u64, written]);
                }
                let (file, offset) = unit.locate(next.offset);
                let asked = RingRequest {
                    file,
                    offset,
                    is_write: next.is_write,
                };
                ring.begin(place, asked).map_err(CalibrateError::Request)?;
                began[place as usize] = (now, next.is_write);
            }
        }
        if ring.under_way() == 0 {
            return Ok(());
        }
        ring.wait(&mut idle).map_err(CalibrateError::Request)?;
        let now = Instant::now();
        for &place in &idle {
            let (began, is_write) = began[place as usize];
            match is_write {
                true => ended.writes.push(now.duration_since(began)),
                false => ended.reads.push(now.duration_since(began)),
            }
        }
        tally.take_in(lane, &mut ended);
    }
}
