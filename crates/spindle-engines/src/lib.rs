//! The databases under test, each behind the same face: made once, started on an access path, worked on through
//! sessions, counted, stopped. Today there is the embedded one; a further engine is one file here and one line in the
//! experiment's list of engines.

pub mod kernel;
pub mod power_cut;
