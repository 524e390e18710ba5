//! Processes that leave others little of a processor.

use std::process::{Child, Command, Stdio};

/// So many take nearly all of it from a process of the lowest priority.
pub const BURNERS: usize = 8;

/// Processes that keep the first processor busy; they end with this.
pub struct Burners(Vec<Child>);

impl Burners {
    pub fn start(count: usize) -> Burners {
        let burn = |_| {
            Command::new("taskset")
                .args(["-c", "0", "sh", "-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .unwrap()
        };
        Burners((0..count).map(burn).collect())
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        for burner in &mut self.0 {
            let _ = burner.kill();
            let _ = burner.wait();
        }
    }
}
