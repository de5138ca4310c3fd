# The two commands are `make demo` and `make test`; each does the set-up it needs.
SHELL := /bin/sh
.DEFAULT_GOAL := help

AJUSTE := .venv/bin/ajuste
SYNCED := .venv/.synced
PLOTLY := src/ajuste/report/templates/plotly.min.js.gz
CATALOGUE := src/ajuste/catalogue/parsed.txt
PROGRAMS := packages/programs/src/ajuste_programs/parsed.txt

# For which machine the native programs are. Those for aarch64 are compiled here, and run elsewhere.
ARCH := x86_64
CROSS :=
TRIPLE := $(or $(filter x86_64 aarch64,$(ARCH)),$(error ARCH is $(ARCH); expected x86_64 or aarch64))-unknown-linux-gnu
ifeq ($(ARCH),aarch64)
export CARGO_BUILD_TARGET := $(TRIPLE)
export CROSS := aarch64-linux-gnu-
endif

# The same sources give the same programs for every user and in every directory: no path of this machine gets into them.
CARGO_HOME ?= $(HOME)/.cargo
CARGO := cargo --config "target.$(TRIPLE).rustflags=['--remap-path-prefix=$(CARGO_HOME)=/cargo', \
'--remap-path-prefix=$(CURDIR)=/ajuste']"
# ... and the same build for tests that call cargo themselves.
AS_BUILT := CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="--remap-path-prefix=$(CARGO_HOME)=/cargo \
--remap-path-prefix=$(CURDIR)=/ajuste"
TARGET := $(or $(CARGO_TARGET_DIR),target)
BUILT := $(TRIPLE)/release
# QEMU loads the lens: it is a library, and so not linked statically. RUSTFLAGS replace those of .cargo/config.toml: in a
# directory of its own, or else everything would be compiled again each time.
LENS := RUSTFLAGS="--remap-path-prefix=$(CARGO_HOME)=/cargo --remap-path-prefix=$(CURDIR)=/ajuste" cargo rustc --quiet \
--release --locked --target-dir $(TARGET)/lens --package ajuste-lens --lib --crate-type cdylib

.PHONY: help setup system native dist deb demo gallery test test-all test-quick coverage fuzz bench docs lint lint-python lint-words lint-rust format clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: system $(SYNCED) $(PLOTLY) $(CATALOGUE) $(PROGRAMS) native ## install what is missing, build, and leave .venv/bin/ajuste
	@.venv/bin/python -I -m compileall -q src packages

system:
	@setup/system run build rust
	@test $(ARCH) = x86_64 || setup/system $(ARCH)

$(SYNCED): uv.lock pyproject.toml $(wildcard packages/*/pyproject.toml) | system
	@test -x .venv/bin/python || python3 -I -m venv .venv
	@test -x .venv/bin/uv || .venv/bin/python -I -m pip install --quiet uv
	.venv/bin/uv sync --quiet --frozen --inexact --all-extras --compile-bytecode --python .venv/bin/python
	@touch $@

$(PLOTLY): $(SYNCED) setup/plots.py
	@.venv/bin/python setup/plots.py $@

$(CATALOGUE): $(SYNCED) setup/catalogue.py $(wildcard src/ajuste/catalogue/*.toml src/ajuste/catalogue/*/*.toml)
	@.venv/bin/python setup/catalogue.py $@

$(PROGRAMS): $(SYNCED) setup/catalogue.py $(wildcard packages/programs/src/ajuste_programs/*/*.toml)
	@.venv/bin/python setup/catalogue.py $@

native: | system
	@$(CARGO) --config "target.$(TRIPLE).linker='$(CURDIR)/setup/linker'" build --quiet --release --locked
	@setup/symbols $(TARGET)/$(BUILT)
	@$(LENS)
	@ln -f $(TARGET)/lens/$(BUILT)/libajuste_lens.so $(TARGET)/$(BUILT)/

# Two builds of one commit have the same bytes.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
DATED = SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH)
dist: setup ## the wheels in dist/, which install anywhere; ARCH=aarch64 adds one for ARM hosts
	@rm -rf $(if $(CROSS),dist/*_$(ARCH).whl,dist) target/share
	$(DATED) .venv/bin/python -m writing share
	$(DATED) $(if $(CROSS),AJUSTE_NATIVE=$(abspath $(TARGET))/$(BUILT)) .venv/bin/hatchling build --target wheel --directory dist
	@for package in packages/*/; do \
		(cd $$package && $(DATED) $(CURDIR)/.venv/bin/hatchling build --target wheel --directory $(CURDIR)/dist) || exit; done

deb: dist ## ... and a Debian package beside it, for the Debian that this machine has
	$(DATED) setup/deb

demo: setup ## does scheduler granularity matter? on a real 5.10 kernel, to a verdict and a report
	$(AJUSTE) run granularity
	@echo; echo 'See, compare and start runs in a browser: $(AJUSTE) serve'

# Which pages, such as `make gallery PAGES=nice-share`; none for all, which takes days.
PAGES :=
gallery: setup ## carry out every study of docs/gallery, and put figures, verdicts and pictures into its pages
	.venv/bin/python -m benchmarks.gallery $(PAGES)

# Two workers more than there are CPUs: some tests sleep (see tests/conftest.py), others wait for browsers and guests.
SIDE_BY_SIDE := -n $(shell expr $$(nproc) + 2) --dist loadgroup --no-loadscope-reorder

# Tests are compiled once, and not by every worker and process that they start, whatever the caller's environment says.
test test-all: export PYTHONDONTWRITEBYTECODE :=

# What `make lint` looks at, and tests need not.
WORDS := $(addprefix tests/docs/test_,prose.py names.py links.py generated.py)
NO_WORDS := $(addprefix --ignore=,$(WORDS))

# Packages are installed, and tests compiled for all workers, while cargo compiles.
RUST_TESTS = @setup/system kernel $(1) & packages=$$!; .venv/bin/pytest -q --collect-only $(NO_WORDS) >/dev/null & \
	collected=$$!; status=0; $(CARGO) test --quiet --locked --no-run || status=1; \
	wait $$collected; wait $$packages && [ $$status = 0 ] && $(CARGO) test --quiet --locked

test: setup ## each promise once, on real kernels and in a real browser too: at most ten minutes on two CPUs
	$(call RUST_TESTS,test)
	$(AS_BUILT) .venv/bin/pytest -q --durations=50 -m "not slow" $(SIDE_BY_SIDE) $(NO_WORDS)

test-all: setup ## every proof: all pages measured, all kernels, hostile guests, claims of studies, all browser sizes
	$(call RUST_TESTS,test test-all)
	$(AS_BUILT) AJUSTE_REPEATS=3 .venv/bin/pytest -q --durations=50 $(SIDE_BY_SIDE) $(NO_WORDS)

ROOMS := $(addprefix tests/,model catalogue design outputs study analysis report) packages/stats/tests

test-quick: setup ## the tests of the rooms that reach no machine: in about a minute, and nothing is changed
	.venv/bin/pytest -q -n auto -m "not slow and not vm and not browser and not network and not machine" $(ROOMS)

# Which tests, such as `make coverage TESTS=tests/model`; all of them with `make coverage TESTS=tests QUICK=`.
TESTS := tests
QUICK := -m "not slow and not vm and not browser and not network"

coverage: setup ## which lines and branches the tests that boot nothing do not reach: files under 95 %
	@rm -rf target/coverage; mkdir -p target/coverage
	@$(AS_BUILT) .venv/bin/coverage run -m pytest -q $(SIDE_BY_SIDE) $(QUICK) $(TESTS); status=$$?; \
	.venv/bin/coverage combine --quiet; \
	.venv/bin/coverage report --format=markdown --sort=cover --precision=1 | awk -F '|' 'NR <= 2 || $$7 + 0 < 95'; \
	exit $$status

fuzz: setup ## 100,000 hostile inputs for each reader of both languages, flipped bits and every fault of a disk for the store
	AJUSTE_FUZZ=100000 .venv/bin/pytest -q tests/outputs/test_hostile.py tests/test_hostile_input.py
	AJUSTE_FUZZ=100000 $(CARGO) test --quiet --locked --package ajuste-agent --test hostile
	AJUSTE_FUZZ=2000 .venv/bin/pytest -q tests/store/test_damage.py
	AJUSTE_EXAMPLES=2000 .venv/bin/pytest -q -o timeout=0 -m "not vm and not machine and not browser" $(ROOMS) tests/run
	AJUSTE_REPEATS=20 .venv/bin/pytest -q -o timeout=0 packages/guest/tests/executor -k "every_repeat"
	AJUSTE_DISK_ALL=1 .venv/bin/pytest -q -o timeout=0 tests/store/test_disk.py tests/agent/test_faults.py

bench: setup ## measure Ajuste beside its peers; tables here, JSON in benchmarks/results
	@setup/system bench kernel sched-ext
	.venv/bin/uv sync --quiet --frozen --inexact --group bench --python .venv/bin/python
	.venv/bin/python -m benchmarks

docs: setup ## the pages as a site, in target/site
	.venv/bin/uv sync --quiet --frozen --inexact --group docs --python .venv/bin/python
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet --strict

lint: setup lint-python lint-words lint-rust ## formatting, types, lints and words

lint-python:
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo

lint-words:
	.venv/bin/codespell docs src packages/*/src packages/*/README.md writing README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md
	.venv/bin/pytest -q $(WORDS)

lint-rust:
	@setup/system rust-lint
	cargo fmt --check
	$(CARGO) clippy --quiet --locked --all-targets -- -D warnings

format: setup ## format both languages
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .
	cargo fmt

clean: ## remove what was built here (not what was fetched: that is in AJUSTE_HOME)
	rm -rf .venv target .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
