//! Waiting for clients: until they have done what a test wants to see, however busy the machine is.

use std::time::{Duration, Instant};

use spindle_workload::driver::Running;

/// The longest time without one more commit.
const STANDSTILL: Duration = Duration::from_secs(120);

/// Waits until the clients have committed this many transactions, or have ended.
///
/// # Panics
/// If one of them fails, or nothing more is committed for two minutes.
pub fn wait_for(running: &Running, transactions: u64) {
    let (mut seen, mut since) = (running.committed(), Instant::now());
    while seen < transactions && !running.is_finished() {
        assert_eq!(running.failure(), None);
        std::thread::sleep(Duration::from_millis(5));
        let committed = running.committed();
        if committed > seen {
            (seen, since) = (committed, Instant::now());
        }
        assert!(
            since.elapsed() < STANDSTILL,
            "{seen} of {transactions} transactions, and no more"
        );
    }
}
