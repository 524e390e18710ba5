//! What storage can do by itself, before there is a database: its most requests per second, most bytes per second and
//! least latency, each with the point where it was reached. [`Target`] says what is measured and makes a file where one
//! is needed; a point is a load held until it is steady; the knee of a curve is found by doubling the depth;
//! [`calibrate()`] does all of it within a time budget, and [`Calibration`] is what comes of it, with [`text::render`]
//! for people. Only the program calls this crate. It prints nothing.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

mod below;
mod budget;
mod cache;
mod calibrate;
mod claims;
mod cloud;
mod commits;
mod coverage;
mod draw;
mod error;
mod figures;
mod files;
pub mod fio;
mod flush;
mod honesty;
mod mix;
mod need;
mod observe;
mod open_loop;
mod orion;
mod point;
mod read_so_far;
mod result;
mod ring_slots;
mod search;
mod settings;
mod slots;
#[doc(hidden)]
pub mod speed;
mod target;
pub mod text;
mod turns;
mod unit;
mod witness;
mod work;

pub use calibrate::{calibrate, calibrate_devices};
pub use claims::run_name;
pub use cloud::{Bought, Cloud, CloudFacts, CloudVolume};
pub use commits::{Burst, Commits, GroupCommits};
pub use coverage::Coverage;
pub use error::CalibrateError;
pub use figures::{
    Cached, CutShort, DeviceShare, DurableBy, Extreme, FellTo, Flushed, Point, TargetKind, Trust,
    What, WriteFigures,
};
pub use files::files;
pub use need::{Need, NoNeed, latency_us};
pub use orion::{LargeType, Orion, OrionMatrix, Run};
pub use result::{
    CacheFinding, Calibration, Control, DemandAnswer, FioComparison, FioComparisonRow, FioLeftOut,
    Held, Honesty, Judged, MatrixPoint, MatrixResult, NotJudged, PathCurve, RatePoint, TargetFacts,
};
pub use settings::{AskedCaching, CalibrationSettings, MAX_LATENCY_US};
pub use target::{ReadyTarget, Target};
pub use unit::{STRIPE_BYTES, Simulate};
