//! What a finished run looks like on paper: `report.html`, one page that opens offline, and `report.md` for a pull request.
//!
//! Both are pure functions of a [`RunResult`](crate::result::RunResult) and the sampled throughput; they ask neither the
//! clock nor the machine, so the same journal gives the same pages. The columns of the comparison table are declared
//! once, in [`comparison`], for the terminal too. Why the pages are made this way: `docs/decisions/0004-report.md`.

mod chart;
pub mod comparison;
pub mod cost;
pub(crate) mod facts;
mod html;
mod markdown;
mod throughput;

pub use html::html;
pub use markdown::markdown;
