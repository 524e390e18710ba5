//! See `bodies/kernel_blocks.rs`.
#![no_main]

#[allow(dead_code)] // The beginnings are the tests'.
#[path = "../bodies/kernel_blocks.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));
