//! The rules of the house, as tests: what `CONTRIBUTING.md` says about lengths, layers, dependencies and words fails
//! the build when it is broken. `sources` reads the tree; each other module holds one kind of rule and the exceptions
//! known today, which may become fewer and never more.

mod additions;
mod bans;
mod circles;
mod dependencies;
mod errors;
mod impossible;
mod lacks;
mod layers;
mod links;
mod literals;
mod names;
mod prose;
mod sizes;
mod sources;
mod twins;
mod unreached;
mod uses;
mod words;
