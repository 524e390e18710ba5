# The commands of this project. `make demo` and `make test` are all a newcomer needs.

SHELL := /bin/bash

.PHONY: build demo test test-all test-vm powercut powercut-short sqlite-devices interleavings sanitize soak soak-verdicts fuzz lint \
	lint-sqlite-devices bench bench-long pictures dist test-dist docs clean

build:
	cargo build --release --locked -p spindle

# Asks which of three ways of doing I/O is fastest where you stand: a dozen lines, the answer last, a run directory under
# runs/. At most 90 seconds after the build, whose files go to the disk first: they would be measured beside the trials.
# examples/quickstart.toml asks the same of six.
demo: build
	@sync
	$${CARGO_TARGET_DIR:-target}/release/spindle try . --time 45s

# The tests. A test that needs root, something this machine lacks, or much time is skipped with a reason and counted as
# skipped. With SPINDLE_REQUIRE=all no test is skipped: it runs, or it fails.
test:
	scripts/setup
	scripts/test --workspace --locked --lib --bins --tests

# The tests with every case of the long ones, and the longer proofs: histories of the simulated world in a debug and a release
# build, SQLite on devices, threads under the model checker, and beside these power cuts in the virtual machine, which keep
# one processor busy. SPINDLE_THOROUGH=4, as in .ci/run, takes one case of four of the long tests.
test-all:
	mkdir -p target && rm -f target/traces
	SPINDLE_THOROUGH=$${SPINDLE_THOROUGH:-1} SPINDLE_TRACES=$(CURDIR)/target/traces $(MAKE) test
	SPINDLE_TRACES=$(CURDIR)/target/traces \
		scripts/test --release --locked -p spindle-kernel --test all -- --nocapture one_seed_is_one_history
	$(MAKE) -j2 --output-sync=line powercut-short sqlite-devices interleavings POWERCUT=--if-able

# What needs a kernel with device-mapper, in a virtual machine: volumes, slow devices and partitions, runs on them, limits by
# control groups of version 2, disks whose host ignores flushes, and the short form of the power cuts. Takes half an hour, as
# qemu emulates the processor.
test-vm:
	scripts/setup vm
	for tests in "spindle-layout volumes" "spindle on_volumes --disk 4G" "spindle limits --scratch 2G"; do \
		set -- $$tests; crate=$$1; name=$$2; shift 2; \
		scripts/test-vm --time-limit 1800 --disk 160M --disk 160M --disk 160M --disk 160M "$$@" \
			"$$(scripts/test-program $$crate)" $$name:: --include-ignored --skip child --test-threads=1 --nocapture || exit; \
	done
	scripts/test-vm --time-limit 1800 --scratch 2G "$$(scripts/test-program spindle-layout lib)" \
		turned_paths::a_device_of_a_volume --include-ignored --nocapture
	cd crates/spindle && "$$(../../scripts/test-program spindle)" guest_disks --include-ignored --nocapture
	$(MAKE) powercut-short

# Power cuts of raw and ext4, recorded in the virtual machine. The program is built as
# the tests build it: for itself alone it would get other features of its libraries, and be compiled anew.
powercut-short:
	cargo test --workspace --locked --lib --bins --tests --no-run
	rm -rf target/powercut-short
	scripts/power-cut $(POWERCUT) target/debug/spindle crates/spindle/tests/power_cut/short.toml \
		target/powercut-short --cuts 20
	rm -rf target/powercut-short

# What every kind of layout keeps when the power goes, into docs/powercut.md; about seventeen minutes on two busy
# cores. Stop it as you like: it goes on where it was, but for a recording that was stopped.
powercut: build
	scripts/setup vm
	scripts/power-cut target/release/spindle examples/power-cut.toml target/powercut --cuts 200 \
		--document docs/powercut.md
	rm -rf target/powercut

# A million simulated crashes, then a thousand kills of runs that make layouts, and power cuts of disk groups. Stop it as you
# like: it goes on where it was. Options: make soak ARGS='--budget 20m', for each of the two. Without options also verdicts,
# thirty kills of each server under load, and the answers of TPC-H at scale 1.
soak:
	cargo run --release --locked -p spindle-kernel --example soak -- $(ARGS)
	scripts/soak-layouts $(ARGS)
	$(if $(ARGS),,$(MAKE) soak-verdicts)
	$(if $(ARGS),,SPINDLE_KILLS=30 cargo test --release --locked -p spindle-engines \
		--test all -- --nocapture killed)
	$(if $(ARGS),,$(if $(LIBCLANG),SPINDLE_KILLS=30 cargo test --release --locked -p spindle-engines \
		--features sqlite-devices --test all -- --nocapture sqlite_devices::killed,$(NO_LIBCLANG)))
	$(if $(ARGS),,cargo test --release --locked -p spindle-engines --test all -- --ignored scale_1)

# Verdicts of small real runs whose truth is known, into docs/soak-verdicts.md; some hours. Stop it
# as you like: it goes on where it was. Options: make soak-verdicts ARGS='--minutes 20'.
soak-verdicts:
	cargo run --release --locked -p spindle --example soak-verdicts -- $(ARGS)

# SQLite on raw devices and in disk groups, a feature that needs libclang where it is built.
LIBCLANG = $(or $(LIBCLANG_PATH),$(firstword $(wildcard $(addsuffix /libclang.so,/usr/lib/llvm-*/lib /usr/lib64 /usr/lib /usr/lib/*))))
NO_LIBCLANG = @echo 'skipped: SQLite on raw devices: libclang is missing (Debian: libclang-dev)'
sqlite-devices:
	$(if $(LIBCLANG),scripts/test --locked -p spindle-engines --features sqlite-devices --lib --test all -- sqlite,$(NO_LIBCLANG))

# The targets of fuzz/ by libFuzzer, five minutes each. Needs a nightly toolchain and cargo-fuzz.
fuzz:
	scripts/fuzz 300

# Threads of the real code in thousands of orders of their steps, by the model checker shuttle.
interleavings:
	scripts/test --locked -p spindle-io -p spindle-kernel --features shuttle --lib -- interleavings

# The tests with real threads under ThreadSanitizer and AddressSanitizer. Needs a nightly toolchain; a few minutes.
sanitize:
	scripts/sanitize

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p spindle-io -p spindle-kernel --features shuttle --lib --tests --locked -- -D warnings
	$(MAKE) lint-sqlite-devices

lint-sqlite-devices:
	$(if $(LIBCLANG),cargo clippy -p spindle-engines --features sqlite-devices --lib --tests --locked -- -D warnings,$(NO_LIBCLANG))

# Figures of speed, each beside its peer in the same run; some fifty minutes, 10 GB of disk. Not part of the tests. The part in
# the virtual machine needs `scripts/setup vm`, and says so. Peers that are no package are used where they are found: go-tpc
# and tpchgen-cli on the path, BenchBase in the directory that BENCHBASE names, HammerDB's source in the one that HAMMERDB names (and
# Debian's tcl and libpgtcl).
# `make bench CHECK=--check` fails when a goal is missed.
bench:
	scripts/setup
	cargo bench --locked -p spindle-engines --bench speed -- $(CHECK)
	cargo bench --locked -p spindle-calibrate --bench speed -- $(CHECK)
	cargo bench --locked -p spindle-workload --bench tpch --bench schedule
	cargo test --release --locked -p spindle --test all -- --ignored --nocapture time_of_a_large_run

# The pictures of a report's page for the eye, into target/pictures. Needs chromium.
pictures:
	mkdir -p target/pictures
	SPINDLE_PICTURES=$(CURDIR)/target/pictures cargo test --locked -p spindle --test all -- --ignored pictures

# A bulk load of a hundred million rows beside one of ten million: an hour or more, 60 GB of disk.
bench-long:
	cargo bench --locked -p spindle-engines --bench speed -- junk_long $(CHECK)

# Packages for others, into target/dist/packages: archive, .deb, .rpm, container images, checksums; some twenty minutes. As
# root on Debian, for the images.
dist:
	scripts/setup dist
	scripts/packages/build --images

# What `make dist` made, installed and tried in bare systems.
test-dist:
	scripts/packages/test

# README and docs/ as a book, into target/docs/book. Installs mdBook there the first time.
docs:
	scripts/book

clean:
	cargo clean
