//! The methods of real devices (`sync`, `slaves`, `async`) in the simulated world: what becomes of batched requests. As
//! on real files, a request submitted alone is the process's own in every case.

use std::collections::VecDeque;
use std::sync::Arc;

use spindle_io::device::Completer;
use spindle_io::env::LocalFuture;
use spindle_io::sim::SimDisk;
use spindle_io::sync::{Latch, Semaphore};
use spindle_io::{BlockDevice, Completion, Env, Limits, Request, Submission};

/// How batched requests are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Within the call, so that the process sees no time pass.
    Sync,
    /// By this many I/O slaves of each device.
    Slaves(usize),
    /// All under way together.
    Async,
}

impl Method {
    /// The disk as a device of this method.
    pub fn device(self, env: &Arc<dyn Env>, disk: &Arc<SimDisk>) -> Arc<dyn BlockDevice> {
        let disk = Arc::clone(disk);
        match self {
            Method::Async => disk,
            Method::Sync => Arc::new(SyncDevice(disk)),
            Method::Slaves(slaves) => Arc::new(SlavesDevice::new(env, disk, slaves)),
        }
    }
}

struct SyncDevice(Arc<SimDisk>);

impl BlockDevice for SyncDevice {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn submit(&self, request: Request) -> Completion {
        match request.submission {
            Submission::Alone => self.0.submit(request),
            Submission::Batched => self.0.submit_at_once(request),
        }
    }
}

struct Queue {
    requests: Latch<VecDeque<(Request, Completer)>>,
    /// A permit for each request.
    waiting: Semaphore,
}

struct SlavesDevice {
    disk: Arc<SimDisk>,
    queue: Arc<Queue>,
}

impl SlavesDevice {
    fn new(env: &Arc<dyn Env>, disk: Arc<SimDisk>, slaves: usize) -> SlavesDevice {
        let queue = Arc::new(Queue {
            requests: Latch::default(),
            waiting: Semaphore::new(0),
        });
        for number in 0..slaves {
            let (disk, queue) = (Arc::clone(&disk), Arc::clone(&queue));
            let slave = Box::new(move || Box::pin(serve(disk, queue)) as LocalFuture);
            env.spawn(&format!("ioslave{number}"), slave);
        }
        SlavesDevice { disk, queue }
    }
}

/// A slave: one request after the other.
async fn serve(disk: Arc<SimDisk>, queue: Arc<Queue>) {
    loop {
        let permit = queue.waiting.acquire().await;
        permit.expect("the semaphore is never closed").forget();
        let next = queue.requests.lock().pop_front();
        let (request, completer) = next.expect("one request for each permit");
        completer.complete(disk.submit(request).await);
    }
}

impl BlockDevice for SlavesDevice {
    fn name(&self) -> &str {
        self.disk.name()
    }

    fn limits(&self) -> Limits {
        self.disk.limits()
    }

    fn submit(&self, request: Request) -> Completion {
        if request.submission == Submission::Alone {
            return self.disk.submit(request);
        }
        let (completer, completion) = Completion::pending();
        self.queue.requests.lock().push_back((request, completer));
        self.queue.waiting.add_permits(1);
        completion
    }
}
