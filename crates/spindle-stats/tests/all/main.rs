//! The tests of this crate that need more than one of its modules, in one program: it is built and linked once.

mod change_points;
mod covariate;
mod effects;
mod few_rounds;
mod levels;
mod machine;
mod rate_search;
mod reference;
mod runs;
mod sequential;
mod steady_state;
mod study;
mod unpaired;
