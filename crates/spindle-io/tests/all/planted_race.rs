//! A data race on purpose, by which `scripts/sanitize` knows that ThreadSanitizer would see one.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;

struct Unprotected(UnsafeCell<u64>);

// SAFETY: not at all; that is the point.
unsafe impl Sync for Unprotected {}

#[test]
#[ignore = "must be reported as a race: scripts/sanitize"]
fn two_threads_add_without_a_latch() {
    let sum = Unprotected(UnsafeCell::new(0));
    let (first, second) = (&sum, &sum);
    let add = |sum: &Unprotected| {
        for _ in 0..1_000 {
            // SAFETY: none, see above.
            unsafe { *sum.0.get() += 1 };
        }
    };
    std::thread::scope(|scope| {
        let threads = [
            scope.spawn(move || add(first)),
            scope.spawn(move || add(second)),
        ];
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}
