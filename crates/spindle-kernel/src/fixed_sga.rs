//! The fixed SGA: what every part of an instance stands on, whatever it does: the world, the settings, the devices, the
//! counters, and whether the instance can continue. Oracle's has the same name and purpose (Concepts, "Fixed SGA").
//! Parts of the SGA are given this much of it and no more; code that needs several parts has [`crate::sga::Sga`].

use std::sync::{Arc, Weak};

use spindle_io::sync::atomic::{AtomicBool, Ordering};
use spindle_io::sync::{Latch, Semaphore};
use spindle_io::{BlockDevice, Env, Fault, Request};

use crate::buggify::{Buggify, Switch};
use crate::error::{KernelError, Result};
use crate::invariant::are_checked;
use crate::settings::{KernelSettings, PlantedFault};
use crate::statistics::Statistics;
use crate::storage::Storage;
use crate::wait_event::WaitEvents;

/// All who wait for anything of an instance.
pub(crate) trait Waiters: Send + Sync {
    /// Wakes them, to learn that the instance has failed or stops.
    fn wake_all(&self);
}

/// Whether the instance can continue.
pub(crate) struct Health {
    failed: AtomicBool,
    stopping: AtomicBool,
    first_failure: Latch<Option<(String, Fault)>>,
    waiters: Weak<dyn Waiters>,
}

impl Health {
    fn new(waiters: Weak<dyn Waiters>) -> Health {
        Health {
            failed: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            first_failure: Latch::default(),
            waiters,
        }
    }

    /// Error when the instance has failed or stops.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_stopping() {
            Err(self.why())
        } else {
            Ok(())
        }
    }

    /// Error when the instance has failed.
    pub(crate) fn check_failed(&self) -> Result<()> {
        if self.failed.load(Ordering::Acquire) {
            Err(self.why())
        } else {
            Ok(())
        }
    }

    /// True when the processes shall end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire) || self.failed.load(Ordering::Acquire)
    }

    /// Why not.
    pub(crate) fn why(&self) -> KernelError {
        match &*self.first_failure.lock() {
            Some((reason, fault)) => KernelError::Aborted {
                reason: reason.clone(),
                fault: *fault,
            },
            None => KernelError::ShuttingDown,
        }
    }

    /// The instance stops: everyone who waits gets an error.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake_all();
    }

    fn fail(&self, reason: String, fault: Fault) {
        self.first_failure.lock().get_or_insert((reason, fault));
        self.failed.store(true, Ordering::Release);
        self.wake_all();
    }

    fn wake_all(&self) {
        if let Some(waiters) = self.waiters.upgrade() {
            waiters.wake_all();
        }
    }
}

/// What every part of an instance stands on.
pub(crate) struct FixedSga {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) settings: KernelSettings,
    pub(crate) storage: Storage,
    pub(crate) waits: WaitEvents,
    pub(crate) statistics: Statistics,
    pub(crate) health: Health,
    pub(crate) buggify: Buggify,
    /// One flush of the datafiles at a time.
    flush_turn: Semaphore,
}

impl FixedSga {
    /// Of an instance in this world, on these devices; `waiters` are woken when it fails or stops.
    pub(crate) fn new(
        env: &Arc<dyn Env>,
        storage: &Storage,
        settings: &KernelSettings,
        waiters: Weak<dyn Waiters>,
    ) -> FixedSga {
        FixedSga {
            env: Arc::clone(env),
            settings: settings.clone(),
            storage: storage.clone(),
            waits: WaitEvents::default(),
            statistics: Statistics::default(),
            health: Health::new(waiters),
            buggify: Buggify::new(&**env, settings.switches),
            flush_turn: Semaphore::new(1),
        }
    }

    /// The instance cannot keep its promises any longer: everyone who waits gets an error.
    pub(crate) fn fail(&self, reason: String) {
        self.health.fail(reason, Fault::Other);
    }

    /// The same, for an error that was met at `place`.
    pub(crate) fn fail_by(&self, place: &str, error: &KernelError) {
        self.health.fail(format!("{place}{error}"), error.fault());
    }

    /// A rare pause, when its switch is on.
    pub(crate) async fn pause(&self, switch: Switch) {
        self.buggify.pause(&*self.env, switch).await;
    }

    /// A process, or a session in its stead, could not do its work.
    pub(crate) fn process_failed(&self, process: &str, error: &KernelError) {
        // Work given up because the instance stops is no failure.
        if *error != KernelError::ShuttingDown {
            self.fail_by(&format!("{process}: "), error);
        }
    }

    /// Makes every completed write to a datafile durable. A failure fails the instance: the system tells of it once,
    /// and the next flush may succeed although the bytes are lost. So flushes take turns: one that overlaps with a
    /// failed one would succeed before the failure is known, and a checkpoint would count on it.
    pub(crate) async fn flush_datafiles(&self) -> Result<()> {
        self.flush(self.storage.datafiles()).await
    }

    /// Makes every completed write to these datafiles durable, as [`FixedSga::flush_datafiles`].
    pub(crate) async fn flush(
        &self,
        datafiles: impl Iterator<Item = &Arc<dyn BlockDevice>>,
    ) -> Result<()> {
        let turn = self.flush_turn.acquire().await;
        let _turn = turn.expect("the semaphore is never closed");
        self.health.check_failed()?;
        let ignored = self.settings.has_planted(PlantedFault::FlushErrorIgnored);
        for device in datafiles {
            if let Err(error) = device.submit(Request::flush()).await.result
                && !ignored
            {
                let error = error.into();
                self.fail_by("", &error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Fails the instance unless `holds` says yes; `otherwise` says what is wrong.
    #[inline]
    pub(crate) fn require(
        &self,
        holds: impl FnOnce() -> bool,
        otherwise: impl FnOnce() -> String,
    ) -> Result<()> {
        if !are_checked() || holds() {
            return Ok(());
        }
        Err(self.is_broken(otherwise()))
    }

    /// Fails the instance if something was found broken.
    pub(crate) fn require_none(&self, broken: Option<String>) -> Result<()> {
        broken.map_or(Ok(()), |what| Err(self.is_broken(what)))
    }

    #[cold]
    fn is_broken(&self, what: String) -> KernelError {
        self.fail(format!("the database found itself broken: {what}"));
        self.health.why()
    }
}
