//! Random I/Os of one size to any device, by one client or several: what they reach, and what they cost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_io::real::block_on;
use spindle_io::real::facts::ProcessorTime;
use spindle_io::{Arena, BlockDevice, Operation, ReadHold, Request, Submission, WriteHold};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Read,
    Write,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "reads",
            Kind::Write => "writes",
        }
    }
}

/// What clients do; each has one I/O under way.
#[derive(Clone, Copy)]
pub struct Load {
    pub kind: Kind,
    pub block_bytes: u64,
    pub clients: u64,
    /// `Alone`: the client makes its own blocking call. `Batched`: the device's method does.
    pub submission: Submission,
    /// The I/Os lie in the first bytes, this many.
    pub within_bytes: u64,
}

/// What they reached.
#[derive(Clone, Copy)]
pub struct Reached {
    /// I/Os per second of all clients.
    pub per_second: f64,
    /// Processor time of one I/O, of the whole process, nanoseconds.
    pub cpu_ns: f64,
}

impl Load {
    /// Lets the clients work for so long.
    pub fn run(self, device: &Arc<dyn BlockDevice>, measure: Duration) -> Reached {
        let (began, cpu_before) = (Instant::now(), ProcessorTime::now());
        let count: u64 = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..self.clients)
                .map(|client| scope.spawn(move || self.client(client, device, began, measure)))
                .collect();
            let counts = clients.into_iter().map(|client| client.join());
            counts.map(|count| count.expect("no I/O fails")).sum()
        });
        let cpu = (ProcessorTime::now() - cpu_before).total();
        Reached {
            per_second: count as f64 / began.elapsed().as_secs_f64(),
            cpu_ns: cpu.as_secs_f64() * 1e9 / count as f64,
        }
    }

    fn client(
        self,
        client: u64,
        device: &Arc<dyn BlockDevice>,
        began: Instant,
        measure: Duration,
    ) -> u64 {
        /// Between two looks at the clock, of clients that are fast.
        const BATCH: u64 = 4096;
        let batch = if self.clients == 1 { BATCH } else { 1 };
        let mut buffer = Buffer::new(self.kind, self.block_bytes);
        let mut chance = seeded_rng(3, client);
        let blocks = self.within_bytes / self.block_bytes;
        let mut count = 0;
        while began.elapsed() < measure {
            for _ in 0..batch {
                let offset = chance.next_u64() % blocks * self.block_bytes;
                buffer.go(&**device, offset, self.submission);
            }
            count += batch;
        }
        count
    }
}

/// One block of memory that goes to the device and comes back.
struct Buffer {
    kind: Kind,
    into: Vec<WriteHold>,
    from: Vec<ReadHold>,
}

impl Buffer {
    fn new(kind: Kind, block_bytes: u64) -> Buffer {
        let arena = Arena::new(block_bytes as usize, 1).expect("memory for a block");
        let frame = arena.allocate().expect("the arena has a frame");
        let mut hold = frame.try_write_hold().expect("the frame is ours");
        seeded_rng(4, 0).fill_bytes(&mut hold);
        let mut buffer = Buffer {
            kind,
            into: Vec::new(),
            from: Vec::new(),
        };
        match kind {
            Kind::Read => buffer.into.push(hold),
            Kind::Write => buffer.from.push(hold.share(block_bytes as usize)),
        }
        buffer
    }

    fn go(&mut self, device: &dyn BlockDevice, offset: u64, submission: Submission) {
        let request = match self.kind {
            Kind::Read => Request::read(offset, std::mem::take(&mut self.into), submission),
            Kind::Write => {
                Request::write(offset, std::mem::take(&mut self.from), false, submission)
            }
        };
        let ended = device.submit(request).already();
        let outcome = ended.unwrap_or_else(block_on);
        outcome.result.expect("the device does not fail");
        match outcome.operation {
            Operation::Read(back) => self.into = back,
            Operation::Write { from: back, .. } => self.from = back,
            Operation::Flush => unreachable!("nothing is flushed here"),
        }
    }
}
