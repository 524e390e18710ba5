//! Nothing can be faster than the device it writes to. Flushes of a target beside those in a control directory, on the
//! disk beneath: in turns, and the slowest turn of the one with the fastest of the other, so that a load that comes and
//! goes makes no liar of anybody.

use crate::result::Control;

/// Turns of each.
pub(crate) const TURNS: usize = 3;
/// A flush that is acknowledged so many times sooner, in every turn, cannot have reached the same disk.
const SUSPECT_TIMES: f64 = 3.0;

/// What the turns say: pairs of median times of a flush, of the target and of the control, microseconds.
pub(crate) fn judge(path: String, turns: Vec<(f64, f64)>) -> Control {
    let slowest_us = turns.iter().map(|turn| turn.0).fold(0.0, f64::max);
    let fastest_us = turns
        .iter()
        .map(|turn| turn.1)
        .fold(f64::INFINITY, f64::min);
    // A flush that does nothing takes less than the clock tells.
    let times_sooner = fastest_us / slowest_us.max(0.1);
    let is_suspect = times_sooner >= SUSPECT_TIMES;
    let says = match is_suspect {
        true => format!(
            "acknowledges a flush {times_sooner:.0} times sooner than {path}: if that is the disk beneath it, do not trust \
             it with commits"
        ),
        false => format!("acknowledges a flush not clearly sooner than {path}"),
    };
    Control {
        path,
        times_sooner,
        is_suspect,
        says,
        turns_us: turns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_sooner_in_every_turn_is_suspect() {
        let suspect = |turns: &[(f64, f64)]| judge("disk".to_owned(), turns.to_vec()).is_suspect;
        assert!(suspect(&[(2.0, 90.0), (3.0, 2000.0), (2.0, 95.0)]));
        assert!(!suspect(&[(90.0, 2700.0), (91.0, 90.0), (88.0, 92.0)]));
        assert!(!suspect(&[(90.0, 100.0)]));
    }
}
