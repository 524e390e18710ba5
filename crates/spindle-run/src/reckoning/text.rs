//! Estimates as people read them.

/// About so long: `45 s`, `12 min`, `3.5 h`.
pub(super) fn about_time(ms: u64) -> String {
    let seconds = ms.div_ceil(1000);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_short() {
        let times = [1, 119_000, 121_000, 9_000_000].map(about_time);
        assert_eq!(times, ["1 s", "119 s", "3 min", "2.5 h"]);
    }
}
