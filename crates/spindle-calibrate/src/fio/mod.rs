//! The same points by `fio`, for who doubts the figures: a job file of them ([`job`]), what fio found ([`results`], in
//! the shapes of [`document`], or an [`error`]), and both side by side ([`beside`]), where their [`options`] are the
//! same. A [`point`] has one name in all of them, which is the name of its job. A [`table`] keeps foreign names short.

mod beside;
mod document;
mod error;
mod job;
mod options;
mod point;
mod results;
mod table;

pub use error::FioError;
pub use job::job_file;
pub use results::{FioPoint, FioResults};
pub(crate) use table::aligned;
