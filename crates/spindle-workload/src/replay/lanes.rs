//! Which client does what sessions did: one that is free when the session begins, else the one that is free first.

use super::recording::SessionHead;

/// The sessions of each client, in their order.
pub(super) fn deal_out(sessions: &[SessionHead], clients: usize) -> Vec<Vec<usize>> {
    let mut lanes = vec![Vec::new(); clients.max(1)];
    let mut free_us = vec![0; lanes.len()];
    for (number, session) in sessions.iter().enumerate() {
        let is_free = |lane: &usize| free_us[*lane] <= session.from_us;
        let free = (0..lanes.len()).find(is_free);
        let first = || (0..lanes.len()).min_by_key(|lane| free_us[*lane]);
        let lane = free.or_else(first).unwrap_or(0);
        lanes[lane].push(number);
        free_us[lane] = free_us[lane].max(session.to_us);
    }
    lanes
}

/// Clients by which every session of a recording begins when it began; they stand in the order of their begins.
pub fn clients_at_once(sessions: &[SessionHead]) -> usize {
    let mut free_us: Vec<u64> = Vec::new();
    for session in sessions {
        let free = free_us
            .iter_mut()
            .find(|free_us| **free_us <= session.from_us);
        match free {
            Some(lane) => *lane = session.to_us,
            None => free_us.push(session.to_us),
        }
    }
    free_us.len()
}
