//! See `bodies/guard.rs`.
#![no_main]

#[allow(dead_code)] // The beginnings are the tests'.
#[path = "../bodies/guard.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));
