//! The same points by `fio`, for who doubts the figures: a job file of them ([`job`]), what fio found ([`results`]),
//! and both side by side ([`beside`]). A [`point`] has one name in all three, which is the name of its job.

mod beside;
mod job;
mod point;
mod results;

pub use job::job_file;
pub use results::{FioError, FioPoint, FioResults};
