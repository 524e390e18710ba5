//! Pauses within transactions, as recordings and scripts have them. Clients of SQL have threads, and wait on these; one
//! that pauses when all are to stop continues at once. [`super::SqlWork`] and its connections come here.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use spindle_io::sync::Latch;

/// The pauses of a workload's clients.
pub struct Pauses {
    /// One for each client, let go to end its pauses; `None`: they have ended.
    clients: Latch<Option<Vec<Sender<()>>>>,
}

impl Default for Pauses {
    fn default() -> Pauses {
        Pauses {
            clients: Latch::new(Some(Vec::new())),
        }
    }
}

impl Pauses {
    /// Those of one more client.
    pub fn of_client(&self) -> Pause {
        let (sender, receiver) = channel();
        if let Some(clients) = &mut *self.clients.lock() {
            clients.push(sender);
        }
        Pause(receiver)
    }

    /// Ends all, those to come as well.
    pub fn end(&self) {
        self.clients.lock().take();
    }
}

/// The pauses of one client.
pub struct Pause(Receiver<()>);

impl Pause {
    /// Waits, but not beyond the end of all pauses.
    pub fn wait(&self, time: Duration) {
        // Nothing is ever sent: it comes back when the time is over, or the sender is gone.
        if !time.is_zero() {
            let _ = self.0.recv_timeout(time);
        }
    }
}
