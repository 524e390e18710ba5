# The commands of this project. `make demo` and `make test` are all a newcomer needs.

SHELL := /bin/bash

.PHONY: build demo test test-vm interleavings sanitize soak lint bench clean

build:
	cargo build --release --locked -p spindle

# Runs the quickstart experiment where you stand: six access paths, a table, a verdict, a run directory under runs/.
demo: build
	./target/release/spindle run examples/quickstart.toml

# Every test. Tests that need root, or a tool that is missing, say so in one line and do nothing. At last, the simulated
# world's histories are compared between a debug and a release build.
test:
	scripts/setup
	mkdir -p target && rm -f target/traces
	SPINDLE_TRACES=$(CURDIR)/target/traces cargo test --workspace --locked
	SPINDLE_TRACES=$(CURDIR)/target/traces \
		cargo test --release --locked -p spindle-kernel --test drawn -- --nocapture one_seed_is_one_history
	$(MAKE) interleavings

# Volumes and partitions on a kernel that has device-mapper, in a virtual machine: about five minutes, as qemu emulates the
# processor. Says in one line what is missing, and does nothing then.
test-vm:
	scripts/setup vm
	scripts/test-vm

# A million simulated crashes. Stop it as you like: it goes on where it was. Options: make soak ARGS='--budget 20m'.
soak:
	cargo run --release --locked -p spindle-kernel --example soak -- $(ARGS)

# Threads of the real code in thousands of orders of their steps, by the model checker shuttle. Part of the tests.
interleavings:
	cargo test --locked -p spindle-io -p spindle-kernel --features shuttle --lib interleavings

# The tests with real threads under ThreadSanitizer and AddressSanitizer. Needs a nightly toolchain; a few minutes.
sanitize:
	scripts/sanitize

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p spindle-io -p spindle-kernel --features shuttle --lib --tests --locked -- -D warnings

# Figures of speed, each beside its peer in the same run; about five minutes, 3 GB of disk. Not part of the tests.
# `make bench CHECK=--check` fails when a goal is missed.
bench:
	scripts/setup bench
	cargo bench --locked -p spindle-engines --bench speed -- $(CHECK)

clean:
	cargo clean
