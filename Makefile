# What developers type. `make run` and `make test` need nothing prepared: each target makes ready what it needs, once.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# Builds survive a fresh clone: the next one takes minutes, not a quarter of an hour.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pie-build/target
export PYTHONDONTWRITEBYTECODE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := build/stamps
CARGO := cargo

RUST_SOURCES := $(shell find rust -name '*.rs' -not -path '*/target/*' -o -name Cargo.toml -path 'rust/*') Cargo.toml Cargo.lock
WIT := $(shell find wit -name '*.wit')

.PHONY: help run test lint bench gpu ray fuzz wheel clean setup build guests lock test-rust test-python test-js

help: ## Lists the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 14

run: build guests ## Builds all and runs the examples in Python, TypeScript and Rust.
	$(BIN)/python tools/run_examples.py

test: lint test-rust test-js test-python ## Runs the linters and every test.

lint: build $(STAMPS)/test-requirements js/inferlet/node_modules js/client/node_modules ## Runs the linters and the type checkers.
	$(CARGO) fmt --check
	for manifest in rust/js-runtime rust/runtime-builder tools/wit_json examples/rust tests/guests asv_benchmarks/guests; do $(CARGO) fmt --check --manifest-path $$manifest/Cargo.toml --all || exit; done
	$(CARGO) clippy --release --workspace --all-targets --quiet -- -D warnings
	$(CARGO) clippy --release --package pie-fuzz --features operations --quiet -- -D warnings
	$(BIN)/python tools/gen_errors.py --check
	$(BIN)/python tools/gen_config_docs.py --check
	$(BIN)/python tools/gen_driver_docs.py --check
	$(BIN)/python tools/gen_stats.py --check
	$(BIN)/python tools/gen_cuda_calls.py --check
	$(BIN)/python tools/gen_js_bridge.py --check
	$(BIN)/python tools/gen_surface.py --check
	$(BIN)/python tools/gen_guides.py --check
	$(BIN)/python tools/gen_sdk_reference.py --check
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/python_bindings.py
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest pie._engine --mypy-config-file pyproject.toml
	$(BIN)/lint-imports
	cd js/inferlet && npm run --silent check
	cd js/client && npm run --silent check

# Some are tested by themselves: the features of their dependencies would have wasmtime compiled a second time.
test-rust: setup
	$(CARGO) test --release --workspace --exclude pie-python --exclude inferlet --exclude inferlet-macros --exclude pie-interleavings --quiet
	$(CARGO) test --release -p inferlet -p inferlet-macros -p pie-interleavings --quiet

test-js: js/inferlet/node_modules js/client/node_modules
	cd js/inferlet && npm test --silent
	cd js/client && npm test --silent

# Two processes run them. What fails there is run once more by itself: a test that leans on an idle machine shows as one
# that failed and then passed, and is to be mended.
test-python: build guests $(STAMPS)/js-client $(STAMPS)/test-requirements
	$(BIN)/python -m pytest -n 2 --dist loadfile || $(BIN)/python -m pytest --last-failed --last-failed-no-failures none

bench: build guests $(STAMPS)/bench-requirements ## Runs the benchmarks (a quarter of an hour) and writes docs/benchmarks.md; ROWS=Tax runs one.
	$(CARGO) bench --profile release -p pie-core -p pie-text -p pie-host -p pie-server --no-run --quiet
	cd asv_benchmarks && ../$(BIN)/asv machine --yes >/dev/null && \
	../$(BIN)/asv run --environment existing:../$(BIN)/python --dry-run --show-stderr $(if $(ROWS),--bench '^[a-z]+\.$(ROWS)\.')
	$(BIN)/python tools/write_benchmarks.py

gpu: build $(STAMPS)/test-requirements ## Tries the cuda back end on a GPU, writes docs/benchmarks-gpu.md; PARTS="kernels speed" runs some, WHEELS=DIR has the packages.
	$(BIN)/python -m pip install --quiet $(if $(WHEELS),--no-index --find-links $(WHEELS)) 'flashinfer-python>=0.7.2,<0.8' 'xgrammar>=0.2.8,<0.3'
	$(BIN)/python -m tools.cuda_signatures --check
	$(BIN)/python tests/gpu/__main__.py $(PARTS)

ray: build guests $(STAMPS)/test-requirements ## Tests replicas of an engine on a Ray of this machine (installs ray, 80 MB).
	$(BIN)/python -m pip install --quiet 'ray>=2.52'
	$(BIN)/python -m pytest -q tests/ray/replicas.py

fuzz: setup ## Runs the fuzzers, a minute each; TARGETS=packed runs one, SECONDS=600 longer, KEEP=1 keeps inputs.
	$(BIN)/python tools/fuzz.py $(TARGETS) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(KEEP),--keep)

wheel: build js/inferlet/node_modules ## Builds the wheel, and the npm package of the types, into dist/.
	$(BIN)/maturin build --release --strip --out dist --interpreter $(BIN)/python
	cd js/inferlet && npm run --silent build && npm pack --silent --ignore-scripts --pack-destination ../../dist
	ls -l dist/*.whl dist/inferlet-*.tgz

setup: $(STAMPS)/toolchain ## Makes the tool chain ready.

build: $(STAMPS)/prefault ## Builds the engine and the language runtimes into the virtual environment.

guests: setup ## Builds the Rust examples and the programs of the tests.
	$(BIN)/python tools/build_guests.py

lock: ## Writes the requirement locks anew.
	$(BIN)/python tools/lock.py

clean: ## Removes what was built in this folder.
	rm -rf build dist $(VENV) js/inferlet/node_modules js/inferlet/dist js/client/node_modules js/client/dist python/pie/_engine*.so python/pie/runtimes/*.wasm python/pie/bakery/_sdk

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMPS)/build-requirements: requirements/build.txt | $(BIN)/python
	@mkdir -p $(STAMPS)
	@echo "Installing the packages that building needs"
	$(BIN)/python -m pip install --quiet -r $<
	@touch $@

$(STAMPS)/test-requirements: requirements/test.txt $(STAMPS)/build-requirements
	@echo "Installing the packages that testing needs (torch is large: a minute or two)"
	$(BIN)/python -m pip install --quiet -r $<
	@touch $@

$(STAMPS)/bench-requirements: requirements/bench.txt $(STAMPS)/build-requirements
	$(BIN)/python -m pip install --quiet -r $<
	@touch $@

$(STAMPS)/toolchain: $(wildcard tools/toolchain/*.py python/pie/bakery/toolchain/*.py) $(STAMPS)/build-requirements
	$(BIN)/python -m tools.toolchain
	@touch $@

$(STAMPS)/python-runtime: $(WIT) $(shell find python/inferlet -name '*.py') tools/build_python_runtime.py $(STAMPS)/toolchain
	$(BIN)/python tools/build_python_runtime.py
	@touch $@

$(STAMPS)/js-runtime: $(WIT) $(shell find js/inferlet/src rust/js-runtime rust/runtime-builder -type f -not -path '*/target/*' 2>/dev/null) tools/build_js_runtime.py js/inferlet/node_modules $(STAMPS)/toolchain
	$(BIN)/python tools/build_js_runtime.py
	@touch $@

$(STAMPS)/sdk: $(WIT) $(wildcard js/inferlet/testing.*) $(shell find js/inferlet/src rust/inferlet rust/inferlet-macros -type f) Cargo.toml examples/rust/Cargo.lock tools/build_sdk.py js/inferlet/node_modules $(STAMPS)/build-requirements
	$(BIN)/python tools/build_sdk.py
	@touch $@

$(STAMPS)/engine: $(RUST_SOURCES) pyproject.toml $(STAMPS)/python-runtime $(STAMPS)/js-runtime $(STAMPS)/sdk
	@echo "Building the engine (minutes the first time)"
	PIP_QUIET=1 $(BIN)/maturin develop --release --quiet
	@touch $@

# An engine has to run the runtimes for it, so it comes behind the engine.
$(STAMPS)/prefault: $(STAMPS)/engine tools/prefault.py
	$(BIN)/python tools/prefault.py
	@touch $@

$(STAMPS)/js-client: $(wildcard js/client/src/*.ts) js/client/tsconfig.json js/client/node_modules
	@mkdir -p $(STAMPS)
	cd js/client && npm run --silent build
	@touch $@

js/inferlet/node_modules: js/inferlet/package.json js/inferlet/package-lock.json
	cd js/inferlet && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

js/client/node_modules: js/client/package.json js/client/package-lock.json
	cd js/client && npm ci --no-audit --no-fund --loglevel=error
	@touch $@
