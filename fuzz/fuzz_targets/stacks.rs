//! See `bodies/stacks.rs`.
#![no_main]

#[path = "../bodies/stacks.rs"]
mod body;
#[allow(dead_code)] // Other tests describe more.
#[path = "../../crates/spindle-layout/tests/all/guard/machine.rs"]
mod machine;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::run(bytes);
});
