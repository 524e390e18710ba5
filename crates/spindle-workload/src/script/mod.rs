//! Workloads from files in the language of `pgbench`, PostgreSQL's own benchmark: statements, and commands that set
//! variables, branch, sleep and keep answers. `scanner` cuts a file into pieces, `lexer` and `expression` read
//! expressions, `function` and `random` calculate as pgbench does, `program` makes steps of it all, `reached` knows
//! which have a turn, `makes` what statements make, `beyond` what they may not touch, also in what `bodies` finds
//! within them, `elsewhere` finds named and `server_wide` knows, `client` takes the steps on a connection, `own_data`
//! loads tables, `answers` checks, and `workload` is the kind of workload that the experiment file names.

mod answers;
pub(crate) mod beyond;
mod bodies;
mod client;
mod elsewhere;
mod expression;
mod function;
mod lexer;
mod makes;
mod mistake;
pub(crate) mod own_data;
mod places;
mod program;
mod random;
mod reached;
mod scanner;
mod server_wide;
#[cfg(test)]
mod tests;
mod value;
mod workload;

pub use beyond::leaves_database;
pub use workload::ScriptSettings;
