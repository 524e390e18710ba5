//! Random numbers of the kernel's (random(4)), of which unique names are made.

use super::SystemTree;
use super::mounts::{TableError, unreadable};

impl SystemTree {
    /// A random number that no other has, as the kernel writes it. Errors: [`TableError::Unreadable`].
    pub fn random_uuid(&self) -> Result<String, TableError> {
        let path = self.proc.join("sys/kernel/random/uuid");
        let read = std::fs::read_to_string(&path);
        let text = read.map_err(|error| unreadable(path, &error))?;
        Ok(text.trim().to_owned())
    }
}
