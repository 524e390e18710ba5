//! Estimates as people read them.

use spindle_text::quantity::{GIB, KIB, MIB};

/// About this many bytes: `1.3 GiB`, `64 MiB`.
pub(super) fn about_size(bytes: u64) -> String {
    match bytes {
        GIB.. => {
            let tenths = (bytes * 10).div_ceil(GIB);
            match tenths % 10 {
                0 => format!("{} GiB", tenths / 10),
                rest => format!("{}.{rest} GiB", tenths / 10),
            }
        }
        MIB.. => format!("{} MiB", bytes.div_ceil(MIB)),
        _ => format!("{} KiB", bytes.div_ceil(KIB)),
    }
}

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
        let sizes = [4096, 3 * MIB + 1, GIB, GIB + GIB / 4, 24 * GIB].map(about_size);
        assert_eq!(sizes, ["4 KiB", "4 MiB", "1 GiB", "1.3 GiB", "24 GiB"]);
        let times = [1, 119_000, 121_000, 9_000_000].map(about_time);
        assert_eq!(times, ["1 s", "119 s", "3 min", "2.5 h"]);
    }
}
