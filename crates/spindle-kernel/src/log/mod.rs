//! The redo log: what a record says, the buffer that sessions put records into, and the files that LGWR writes them to.
//! The writer itself is in [`crate::processes::lgwr`], the reader in [`crate::recovery`].

pub(crate) mod buffer;
pub(crate) mod files;
pub(crate) mod marks;
pub mod redo;
pub(crate) mod room;
