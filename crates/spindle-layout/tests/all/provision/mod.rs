//! Layouts made on real parts, as root: loop devices, partitions, file systems, mounts. What the machine has of them is
//! noted before and after, and must be the same, whether a run ends in order, fails, or is killed.

mod beneath;
mod devices;
mod emptiness;
mod failing;
mod in_use;
mod killed;
mod making;
mod nodes;
mod not_ours;
mod reflink;
mod scene;
mod theirs;
