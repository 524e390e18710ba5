# The commands of this project. `make demo` and `make test` are all a newcomer needs.

SHELL := /bin/bash

.PHONY: build demo test interleavings sanitize lint bench clean

build:
	cargo build --release --locked -p spindle

# Runs the quickstart experiment where you stand: six access paths, a table, a verdict, a run directory under runs/.
demo: build
	./target/release/spindle run examples/quickstart.toml

# Every test. Tests that need root, or a tool that is missing, say so in one line and do nothing.
test:
	scripts/setup
	cargo test --workspace --locked
	$(MAKE) interleavings

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
