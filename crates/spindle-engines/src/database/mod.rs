//! The three kinds of databases under test, each an [`crate::engine::Engine`]: the embedded one in files, a server that
//! Spindle starts in directories, a server that runs already in a schema. Runs and trials use them; nothing here does.

mod kernel;
mod remote;
mod server;

pub use kernel::{BlockImage, KernelDatabase};
pub use remote::{LoadedSchema, RemoteDatabase, RemoteImage};
pub use server::ServerDatabase;
