//! Why a file is no result of fio's, in words. [`super::document`] and [`super::results`] find it.

/// Why a file is no result of fio's.
#[derive(Debug, thiserror::Error)]
pub enum FioError {
    /// It is no JSON, or JSON of something else.
    #[error(
        "it is not a result of fio ({0}): write one with fio --output-format=json --output=FILE JOBFILE"
    )]
    NotFio(String),
    /// It has no job.
    #[error("fio measured nothing: there is no job in it")]
    NoJobs,
    /// It has no job with figures to tell.
    #[error("fio measured nothing that can be told: {0}; let it run a job that reads or writes")]
    NothingTold(String),
    /// A job of it failed.
    #[error("job {job} of fio failed with error {code}: its figures are not to be compared")]
    Failed {
        /// Its name.
        job: String,
        /// `errno`.
        code: i64,
    },
    /// A job with requests does not say how long they took.
    #[error(
        "job {job} of fio has requests and no {field}: let fio measure again, without disable_lat and gtod_reduce"
    )]
    NoTimes {
        /// Its name.
        job: String,
        /// What is missing, as fio calls it.
        field: String,
    },
    /// A figure that no device has.
    #[error(
        "job {job} of fio has a {field} of {value:?}, which no device has ({least:?} to {most:?}): let fio measure it again"
    )]
    Absurd {
        /// Its name.
        job: String,
        /// The figure, as fio calls it.
        field: String,
        /// What fio says.
        value: f64,
        /// The least that is believed.
        least: f64,
        /// The most that is believed.
        most: f64,
    },
}
