//! Numbers that are written as a range with a step.

use std::ops::RangeInclusive;

/// Numbers of a range with a step, at most.
pub(super) const NUMBERS_MAX: usize = 100;

/// `20..200 step 20`: numbers from the first to the last, both of which are in `range`.
pub(super) struct Stepped {
    first: u32,
    last: u32,
    step: u32,
}

impl Stepped {
    /// `None` when it is written otherwise or has no numbers.
    pub(super) fn of(text: &str, range: &RangeInclusive<u32>) -> Option<Stepped> {
        let (ends, step) = text.split_once(" step ")?;
        let (first, last) = ends.split_once("..")?;
        let number = |text: &str| text.trim().parse::<u32>().ok();
        let (first, last, step) = (number(first)?, number(last)?, number(step)?);
        let is_one = first <= last && step > 0 && range.contains(&first) && range.contains(&last);
        is_one.then_some(Stepped { first, last, step })
    }

    /// All of them.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        (self.first..=self.last).step_by(self.step as usize)
    }

    /// What may stand there instead, where there are too many.
    pub(super) fn allowed(&self) -> String {
        let (first, last) = (self.first, self.last);
        let step = (last - first).div_ceil(NUMBERS_MAX as u32 - 1);
        format!("at most {NUMBERS_MAX} levels, as \"{first}..{last} step {step}\" has")
    }
}
