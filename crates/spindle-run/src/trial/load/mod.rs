//! The clients of a trial: all in this process, or spread over load machines. [`counts`] is what either says of them,
//! [`words`] what this side and a load machine say to each other, [`machine`] this side's hold on one, [`spread`] all
//! of them together, [`worker`] the program there, [`behind`] which of them falls behind. Only the measurement of a
//! trial has a load.

pub mod behind;
pub mod clients;
pub mod counts;
pub mod machine;
pub mod spread;
pub mod words;
pub mod worker;
