//! The clock of another machine in terms of this one's, as NTP reads it: by round trips. A question leaves at one time
//! and its answer arrives at another; the other clock was read at an unknown moment in between. So the clocks differ by
//! that reading less the middle of the trip, give or take half of the trip. The shortest trip is the most accurate (D.
//! L. Mills, RFC 5905, sections 8 and 10).

use serde::{Deserialize, Serialize};

/// A question and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// When it was asked, by this machine's clock.
    pub asked_ns: u64,
    /// What the other clock said.
    pub there_ns: u64,
    /// When the answer was back, by this machine's clock.
    pub back_ns: u64,
}

/// How far the other clock was ahead of this one at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// The moment, by the other clock.
    pub there_ns: u64,
    /// How far ahead; negative when it was behind.
    pub ahead_ns: i64,
    /// It is accurate to within this.
    pub uncertainty_ns: u64,
}

impl ClockReading {
    /// By the shortest of some trips; `None` without any.
    pub fn of(trips: &[RoundTrip]) -> Option<ClockReading> {
        let length_ns = |trip: &&RoundTrip| trip.back_ns.saturating_sub(trip.asked_ns);
        let best = trips.iter().min_by_key(length_ns)?;
        let middle_ns = best.asked_ns.midpoint(best.back_ns);
        Some(ClockReading {
            there_ns: best.there_ns,
            ahead_ns: best.there_ns.wrapping_sub(middle_ns) as i64,
            uncertainty_ns: length_ns(&best).div_ceil(2),
        })
    }
}

/// Another clock between two readings of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockLine {
    /// The first reading.
    pub first: ClockReading,
    /// The last.
    pub last: ClockReading,
}

impl ClockLine {
    /// What this machine's clock said when the other one said that. Between the readings a clock that runs faster or
    /// slower is taken to do so evenly.
    pub fn here_ns(&self, there_ns: u64) -> u64 {
        let between = self.last.there_ns.saturating_sub(self.first.there_ns);
        let passed = there_ns.saturating_sub(self.first.there_ns).min(between);
        let share = match between {
            0 => 0.0,
            between => passed as f64 / between as f64,
        };
        let gained_ns = (self.drift_ns() as f64 * share) as i64;
        let ahead_ns = self.first.ahead_ns.saturating_add(gained_ns);
        there_ns.wrapping_sub(ahead_ns as u64)
    }

    /// How much further ahead the other clock was in the end.
    pub fn drift_ns(&self) -> i64 {
        self.last.ahead_ns.saturating_sub(self.first.ahead_ns)
    }

    /// Times are accurate to within this.
    pub fn uncertainty_ns(&self) -> u64 {
        self.first.uncertainty_ns.max(self.last.uncertainty_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that is ahead by so much and gains 50 of a million, asked over a way that takes so long there and back.
    fn trip(asked_ns: u64, ahead_ns: i64, (there, back): (u64, u64)) -> RoundTrip {
        let read_ns = asked_ns + there;
        let gained = (read_ns / 20_000) as i64;
        RoundTrip {
            asked_ns,
            there_ns: read_ns.wrapping_add_signed(ahead_ns + gained),
            back_ns: read_ns + back,
        }
    }

    #[test]
    fn the_shortest_trip_tells_and_says_how_far_it_may_be_wrong() {
        for ahead_ns in [-7_000_000_000, 0, 5_000_000_000_000] {
            let ways = [
                (90_000, 10_000),
                (400_000, 900_000),
                (30_000, 50_000),
                (2_000_000, 1_000),
            ];
            let trips: Vec<RoundTrip> = ways
                .iter()
                .enumerate()
                .map(|(at, way)| trip(10_000_000_000 + at as u64 * 10_000_000, ahead_ns, *way))
                .collect();
            let reading = ClockReading::of(&trips).expect("there are trips");
            assert_eq!(reading.uncertainty_ns, 40_000);
            let true_ns = ahead_ns + 10_020_030_000 / 20_000;
            assert!((reading.ahead_ns - true_ns).unsigned_abs() <= 40_000);
        }
        assert_eq!(ClockReading::of(&[]), None);
    }

    #[test]
    fn a_clock_that_gains_is_followed_between_two_readings() {
        let ahead_ns = -3_000_000_000;
        let way = (100_000, 100_000);
        let read = |at_ns| ClockReading::of(&[trip(at_ns, ahead_ns, way)]).unwrap();
        let line = ClockLine {
            first: read(10_000_000_000),
            last: read(70_000_000_000),
        };
        // 50 of a million in a minute.
        assert_eq!(line.drift_ns(), 3_000_000);
        assert_eq!(line.uncertainty_ns(), 100_000);
        for here_ns in [10_000_000_000, 40_000_000_000, 70_000_000_000_u64] {
            let there_ns = here_ns.wrapping_add_signed(ahead_ns + (here_ns / 20_000) as i64);
            let error_ns = line.here_ns(there_ns).abs_diff(here_ns);
            assert!(error_ns < 20_000, "{here_ns}: {error_ns}");
            // What takes both readings for one is wrong by the drift.
            let still = ClockLine {
                last: line.first,
                ..line
            };
            let error_ns = still.here_ns(there_ns).abs_diff(here_ns);
            assert_eq!(error_ns > 1_000_000, here_ns > 30_000_000_000, "{error_ns}");
        }
    }
}
