//! SMCO: gives segments that grow their next extents before sessions lack them, as Oracle's space management
//! coordinator does. An extent is written and flushed before it counts, which takes milliseconds.

use std::sync::Arc;

use crate::sga::Sga;

/// The space management coordinator process.
pub(crate) async fn run(sga: Arc<Sga>) {
    let waits = sga.waits.register();
    while !sga.health.is_stopping() {
        match sga.extents_ahead.next() {
            // Whoever comes to lack the extent asks again, and is told what went wrong.
            Some(ahead) => drop(ahead.give(&sga, &waits).await),
            None => sga.extents_ahead.smco.notified().await,
        }
    }
}
