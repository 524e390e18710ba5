//! What each client's time goes to, without a gap: a client is in a transaction, or thinking, or has nothing due, or is
//! away, or between two of these. Two looks at all clients say how much of each there was in the time between,
//! including what a transaction that began before had to it, and one that has not ended yet. A client that waits for
//! its turn all the time therefore counts with all of its time, though it never ends a transaction.

use serde::{Deserialize, Serialize};

/// What a client is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// It carries out a transaction.
    Transaction(Open),
    /// It pauses, as it was told to: the person at its terminal keys a transaction in, or thinks.
    Thinking,
    /// It waits until the next transaction is due.
    Idle,
    /// It connects, pauses with all others, or has ended.
    Away,
    /// It draws its next transaction.
    Between,
}

/// A transaction under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    pub kind: usize,
    /// When it was to begin: in a closed loop, when it began.
    pub due_ns: u64,
}

/// Time of clients in nanoseconds, all together, by what they did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimeSpent {
    /// In transactions of each kind, tries and rollbacks included, whatever became of them.
    pub in_transactions_ns: Vec<u64>,
    /// That part of it which is not of clients, but of the processes that carry out what clients have put off. All else
    /// that these do is left out.
    pub deferred_ns: u64,
    /// Not of clients but of transactions: due, and no client free. 0 in a closed loop.
    pub queued_ns: u64,
    /// Keying in and thinking.
    pub thinking_ns: u64,
    /// Nothing was due.
    pub idle_ns: u64,
    /// Connecting, pausing with all others, or ended.
    pub away_ns: u64,
    /// Between: the driver's own work.
    pub between_ns: u64,
}

impl TimeSpent {
    /// None yet.
    pub fn none(kinds: usize) -> TimeSpent {
        TimeSpent {
            in_transactions_ns: vec![0; kinds],
            ..TimeSpent::default()
        }
    }

    /// In transactions of all kinds.
    pub fn in_transactions(&self) -> u64 {
        self.in_transactions_ns.iter().sum()
    }

    /// What came after an earlier look. Looks go from client to client, so one that is counted in a moment of the other
    /// may be ahead by nanoseconds.
    pub fn since(&self, before: &TimeSpent) -> TimeSpent {
        let kinds = self.in_transactions_ns.iter();
        let kinds = kinds.zip(&before.in_transactions_ns);
        TimeSpent {
            in_transactions_ns: kinds.map(|(now, then)| now.saturating_sub(*then)).collect(),
            deferred_ns: self.deferred_ns.saturating_sub(before.deferred_ns),
            queued_ns: self.queued_ns.saturating_sub(before.queued_ns),
            thinking_ns: self.thinking_ns.saturating_sub(before.thinking_ns),
            idle_ns: self.idle_ns.saturating_sub(before.idle_ns),
            away_ns: self.away_ns.saturating_sub(before.away_ns),
            between_ns: self.between_ns.saturating_sub(before.between_ns),
        }
    }

    /// That of a process that carries out what clients have put off: none of a client's.
    pub(super) fn into_deferred(self) -> TimeSpent {
        TimeSpent {
            deferred_ns: self.in_transactions(),
            in_transactions_ns: self.in_transactions_ns,
            ..TimeSpent::default()
        }
    }

    /// Adds that of others.
    pub fn add(&mut self, other: &TimeSpent) {
        let kinds = self.in_transactions_ns.iter_mut();
        for (sum, more) in kinds.zip(&other.in_transactions_ns) {
            *sum += more;
        }
        self.deferred_ns += other.deferred_ns;
        self.queued_ns += other.queued_ns;
        self.thinking_ns += other.thinking_ns;
        self.idle_ns += other.idle_ns;
        self.away_ns += other.away_ns;
        self.between_ns += other.between_ns;
    }

    fn place_of(&mut self, doing: Doing) -> &mut u64 {
        match doing {
            Doing::Transaction(open) => &mut self.in_transactions_ns[open.kind],
            Doing::Thinking => &mut self.thinking_ns,
            Doing::Idle => &mut self.idle_ns,
            Doing::Away => &mut self.away_ns,
            Doing::Between => &mut self.between_ns,
        }
    }
}

/// The clock of one client.
pub(super) struct ClientClock {
    doing: Doing,
    since_ns: u64,
    spent: TimeSpent,
}

impl ClientClock {
    /// A client that is about to connect.
    pub fn new(now_ns: u64, kinds: usize) -> ClientClock {
        ClientClock {
            doing: Doing::Away,
            since_ns: now_ns,
            spent: TimeSpent::none(kinds),
        }
    }

    /// From now on it does something else.
    pub fn turn_to(&mut self, doing: Doing, now_ns: u64) {
        *self.spent.place_of(self.doing) += now_ns.saturating_sub(self.since_ns);
        (self.doing, self.since_ns) = (doing, now_ns);
    }

    /// All of its time until now.
    pub fn spent(&self, now_ns: u64) -> TimeSpent {
        let mut spent = self.spent.clone();
        *spent.place_of(self.doing) += now_ns.saturating_sub(self.since_ns);
        spent
    }

    /// The transaction that it is in.
    pub fn open(&self) -> Option<Open> {
        match self.doing {
            Doing::Transaction(open) => Some(open),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_moment_is_left_out_or_counted_twice() {
        let mut clock = ClientClock::new(100, 2);
        let open = |kind| Doing::Transaction(Open { kind, due_ns: 0 });
        let story = [
            (110, Doing::Between),
            (111, open(1)),
            (141, Doing::Thinking),
            (146, Doing::Between),
            (147, Doing::Idle),
            (160, open(0)),
        ];
        for (now_ns, doing) in story {
            let before = clock.spent(now_ns);
            clock.turn_to(doing, now_ns);
            assert_eq!(clock.spent(now_ns), before);
        }
        let spent = clock.spent(200);
        let expected = TimeSpent {
            in_transactions_ns: vec![40, 30],
            deferred_ns: 0,
            queued_ns: 0,
            thinking_ns: 5,
            idle_ns: 13,
            away_ns: 10,
            between_ns: 2,
        };
        assert_eq!(spent, expected);
        let later = clock.spent(230).since(&spent);
        assert_eq!((later.in_transactions(), later.away_ns), (30, 0));
        let deferred = clock.spent(230).into_deferred();
        assert_eq!(
            (deferred.in_transactions(), deferred.deferred_ns),
            (100, 100)
        );
        assert_eq!((deferred.idle_ns, deferred.thinking_ns), (0, 0));
    }
}
