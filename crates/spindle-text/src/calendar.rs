//! Days of the calendar as numbers, to read and write dates. After Howard Hinnant, "chrono-Compatible Low-Level Date
//! Algorithms". Any crate may call it.

/// Days from 1 January 1970 to a day (`days_from_civil`).
pub fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The year, month and day this many days from 1 January 1970 (`civil_from_days`).
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree() {
        for (day, date) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (8035, (1992, 1, 1)),
            (10_561, (1998, 12, 1)),
            (19_782, (2024, 2, 29)),
            (19_783, (2024, 3, 1)),
        ] {
            assert_eq!(date_of(day), date);
            assert_eq!(days_since_1970(date.0, date.1, date.2), day);
        }
        assert!((-200_000..200_000).all(|day| {
            let (year, month, of_month) = date_of(day);
            days_since_1970(year, month, of_month) == day
        }));
    }
}
