//! How the database is changed: the one path by which blocks change, and on it how a transaction begins, ends and is
//! undone; the maps of free space; and the trees of index blocks. Sessions, PMON and recovery come here.

pub(crate) mod blocks;
pub(crate) mod roll_back;
pub(crate) mod space;
pub(crate) mod transaction;
pub(crate) mod tree;
