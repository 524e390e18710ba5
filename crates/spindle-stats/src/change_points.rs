//! Where a history of runs changed its level: binary segmentation by the likelihood ratio of a shift in the mean of
//! normal values, which is the largest two-sample t over all places (K. J. Worsley, "On the likelihood ratio test for a
//! shift in location of normal populations", Journal of the American Statistical Association 74, 1979).
//!
//! Apart from single shifts, episodes are looked for: a level that came and went. A place or an episode counts as a
//! change when chance would give so large a t anywhere in the segment seldom enough (Bonferroni over all of them). A
//! segment has the share of the 5 % that it has of the runs. Flat segments share no run, so together they are called
//! changed in 5 of 100 histories at most, however many other changes there are.

use crate::interval::quantile;
use crate::unpaired::log_moments;
use crate::{Side, StatsError};

/// The fewest runs of a level: one run that differs may be an accident, and the next will tell.
const LEVEL_MIN: usize = 2;
/// The fewest runs of an episode: in a long history two accidents come one after the other by chance.
const EPISODE_MIN: usize = 3;
/// The fewest runs in which a change can be found.
pub const HISTORY_MIN: usize = 2 * LEVEL_MIN;
/// How often changes are moved to better places at most; each pass either settles or moves one.
const PASSES_MAX: usize = 20;
/// The chance that a flat history is called changed, that of all histories together.
const ERROR_CHANCE: f64 = 0.05;
/// Squares of logarithms that equal values may have because sums lose figures.
const LOST_BY_SUMS: f64 = 1e-20;

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value of the new level.
    pub at: usize,
    /// Geometric mean of the new level over that of the old one.
    pub ratio: f64,
    /// Its interval, as wide as the search for the place asks: it would hold for any place that could have been chosen.
    pub ci95: (f64, f64),
}

/// A history in levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// The changes, in order of time.
    pub changes: Vec<ChangePoint>,
    /// Standard deviation of the logarithm of a value about its level, 0.02 is about 2 %; `None` where each level would
    /// have a single value.
    pub noise: Option<f64>,
}

/// The levels of a history: `values` above zero in order of time, each that of a run. One of this many `histories` that
/// are looked at together.
///
/// # Errors
/// [`StatsError::NoValues`] without values, [`StatsError::NotPositive`] for a value that is zero, negative, infinite or
/// not a number.
pub fn change_points(values: &[f64], histories: u32) -> Result<Levels, StatsError> {
    log_moments(values, Side::A)?;
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let history = History {
        error_chance: ERROR_CHANCE / f64::from(histories.max(1)),
        logs: &logs,
    };
    let mut places = Vec::new();
    history.divide(0, logs.len(), &mut places);
    history.settle(&mut places);
    Ok(history.levels(&places))
}

struct History<'a> {
    /// The chance that a flat history is called changed.
    error_chance: f64,
    logs: &'a [f64],
}

/// The best place for a change in a segment, or for an episode: where it begins and ends.
struct Split {
    places: Vec<usize>,
    /// The squares that it takes, over those that chance would take; above 1 it is significant.
    excess: f64,
}

impl History<'_> {
    /// Adds the changes from `begin` to `end`, in order.
    fn divide(&self, begin: usize, end: usize, places: &mut Vec<usize>) {
        let Some(segment) = Segment::of(self.logs, begin, end) else {
            return;
        };
        // Each of the two kinds has half of the chance.
        let share = self.share(end - begin) / 2.0;
        let (shift, episode) = (segment.best_shift(share), segment.best_episode(share));
        let best = if shift.excess >= episode.excess {
            shift
        } else {
            episode
        };
        if best.excess <= 1.0 {
            return;
        }
        let mut from = begin;
        for place in best.places {
            self.divide(from, place, places);
            places.push(place);
            from = place;
        }
        self.divide(from, end, places);
    }

    /// Looks again for the place of each change between its neighbours, and drops those that are none any more (J.
    /// Bai, "Estimating multiple breaks one at a time", Econometric Theory 13, 1997).
    fn settle(&self, places: &mut Vec<usize>) {
        for _ in 0..PASSES_MAX {
            let before = places.clone();
            let mut index = 0;
            while index < places.len() {
                let begin = if index == 0 { 0 } else { places[index - 1] };
                let end = places.get(index + 1).copied().unwrap_or(self.logs.len());
                let segment = Segment::of(self.logs, begin, end);
                let shift = segment.map(|segment| segment.best_shift(self.share(end - begin)));
                match shift.filter(|shift| shift.excess > 1.0) {
                    Some(shift) => {
                        places[index] = shift.places[0];
                        index += 1;
                    }
                    None => {
                        places.remove(index);
                    }
                }
            }
            if *places == before {
                return;
            }
        }
    }

    /// The chance of error of a segment of this many runs.
    fn share(&self, runs: usize) -> f64 {
        self.error_chance * runs as f64 / self.logs.len() as f64
    }

    fn levels(&self, places: &[usize]) -> Levels {
        let mut ends = places.to_vec();
        ends.push(self.logs.len());
        let mut begin = 0;
        let mut levels = Vec::new();
        let mut squares = 0.0;
        for end in ends {
            let values = &self.logs[begin..end];
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            squares += values
                .iter()
                .map(|value| (value - mean).powi(2))
                .sum::<f64>();
            levels.push((begin, values.len(), mean));
            begin = end;
        }
        let freedom = self.logs.len() - levels.len();
        let noise = (freedom > 0).then(|| (squares / freedom as f64).sqrt());
        let changes = levels.windows(2).map(|pair| {
            let ((_, before, old), (at, after, new)) = (pair[0], pair[1]);
            let error = noise.unwrap_or(0.0) * (1.0 / before as f64 + 1.0 / after as f64).sqrt();
            let share = self.error_chance / 2.0 / shifts(before + after);
            let half_width = quantile(freedom as u32 + 1, 1.0 - share) * error;
            let logarithm = new - old;
            ChangePoint {
                at,
                ratio: logarithm.exp(),
                ci95: (
                    (logarithm - half_width).exp(),
                    (logarithm + half_width).exp(),
                ),
            }
        });
        Levels {
            changes: changes.collect(),
            noise,
        }
    }
}

/// A part of a history that may be changed.
struct Segment {
    begin: usize,
    /// Sums of the values' distances from their mean, up to each place.
    sums: Vec<f64>,
    /// Sum of their squares.
    squares: f64,
}

impl Segment {
    /// `None` where the segment is too short for a change.
    fn of(logs: &[f64], begin: usize, end: usize) -> Option<Segment> {
        let values = &logs[begin..end];
        if values.len() < HISTORY_MIN {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let mut sums = vec![0.0];
        let mut squares = 0.0;
        for value in values {
            let distance = value - mean;
            sums.push(sums[sums.len() - 1] + distance);
            squares += distance * distance;
        }
        Some(Segment {
            begin,
            sums,
            squares,
        })
    }

    fn count(&self) -> usize {
        self.sums.len() - 1
    }

    /// The place with the largest t.
    fn best_shift(&self, error_chance: f64) -> Split {
        let places = LEVEL_MIN..=self.count() - LEVEL_MIN;
        let taken = places.map(|place| (self.taken(0, place), vec![place]));
        self.best(taken, error_chance / shifts(self.count()))
    }

    /// The stretch with the largest t beside what is before and after it (A. Olshen and others, "Circular binary
    /// segmentation", Biostatistics 5, 2004): a loss that was mended is in no single place a large change.
    fn best_episode(&self, error_chance: f64) -> Split {
        let last = self.count() - LEVEL_MIN;
        let stretches = (LEVEL_MIN..last).flat_map(|begin| {
            let ends = begin + EPISODE_MIN..=last;
            ends.map(move |end| (begin, end))
        });
        let count = stretches.clone().count().max(1) as f64;
        let taken = stretches.map(|(begin, end)| (self.taken(begin, end), vec![begin, end]));
        self.best(taken, error_chance / count)
    }

    /// The squares that a separate level takes for the values from `begin` to `end`; t grows with it.
    fn taken(&self, begin: usize, end: usize) -> f64 {
        let inside = (end - begin) as f64;
        let outside = self.count() as f64 - inside;
        let sum = self.sums[end] - self.sums[begin];
        sum * sum * (1.0 / inside + 1.0 / outside)
    }

    fn best(&self, taken: impl Iterator<Item = (f64, Vec<usize>)>, error_chance: f64) -> Split {
        let best = taken.max_by(|a, b| a.0.total_cmp(&b.0));
        let (taken, places) = best.unwrap_or_default();
        let count = self.count();
        let rest = (self.squares - taken).max(0.0) / (count - 2) as f64;
        let wanted = quantile(count as u32 - 1, 1.0 - error_chance / 2.0).powi(2) * rest;
        let excess = match taken > LOST_BY_SUMS {
            true if wanted > 0.0 => taken / wanted,
            true => f64::INFINITY,
            false => 0.0,
        };
        Split {
            places: places.into_iter().map(|place| self.begin + place).collect(),
            excess,
        }
    }
}

/// At how many places a segment of this many runs can shift.
fn shifts(runs: usize) -> f64 {
    (runs + 1 - HISTORY_MIN) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(values: &[f64]) -> Vec<usize> {
        let found = change_points(values, 1).unwrap().changes;
        found.iter().map(|change| change.at).collect()
    }

    #[test]
    fn clear_steps_are_found_where_they_are() {
        let step = [100.0, 101.0, 99.5, 100.2, 90.0, 90.5, 89.7, 90.1];
        assert_eq!(places_of(&step), [4]);
        let found = change_points(&step, 1).unwrap();
        let (change, noise) = (found.changes[0], found.noise.unwrap());
        assert!((change.ratio - 0.9).abs() < 0.005, "{change:?}");
        assert!(change.ci95.0 < 0.9 && 0.9 < change.ci95.1 && change.ci95.1 < 1.0);
        assert!((0.002..0.01).contains(&noise), "{noise}");
        let steps = [
            100.0, 101.0, 99.5, 80.0, 80.5, 79.7, 80.1, 99.0, 100.0, 101.0, 100.0,
        ];
        assert_eq!(places_of(&steps), [3, 7]);
    }

    #[test]
    fn flat_and_short_histories_have_no_change() {
        assert_eq!(places_of(&[7.0; 12]), [] as [usize; 0]);
        assert_eq!(places_of(&[100.0, 50.0, 50.0]), [] as [usize; 0]);
        let accident = [100.0, 101.0, 99.5, 100.2, 99.0, 100.5, 99.7, 80.0];
        assert_eq!(places_of(&accident), [] as [usize; 0], "the last run alone");
        assert_eq!(change_points(&[5.0], 1).unwrap().noise, None);
    }

    #[test]
    fn values_without_noise_have_changes_of_no_width() {
        let found = change_points(&[2.0, 2.0, 2.0, 4.0, 4.0, 4.0], 1).unwrap();
        assert_eq!(found.changes.len(), 1);
        let change = found.changes[0];
        assert!((change.ratio - 2.0).abs() < 1e-12 && change.ci95.1 - change.ci95.0 < 1e-9);
    }

    #[test]
    fn many_histories_ask_for_more_each() {
        let step = [100.0, 101.0, 99.5, 100.2, 97.0, 97.5, 96.7, 97.1];
        assert_eq!(change_points(&step, 1).unwrap().changes.len(), 1);
        assert_eq!(change_points(&step, 10_000).unwrap().changes.len(), 0);
    }

    #[test]
    fn what_has_no_logarithm_is_refused() {
        assert_eq!(change_points(&[], 1), Err(StatsError::NoValues));
        let wrong = change_points(&[1.0, 0.0], 1);
        assert!(matches!(
            wrong,
            Err(StatsError::NotPositive { index: 1, .. })
        ));
    }
}
