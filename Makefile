# `make` lists what there is. Everything runs from a fresh checkout; `setup` comes by itself.
SHELL  := /bin/bash
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DUMP   := examples/kafka-4.3.1-failover
OUT    ?= demo-out
PACKAGES := groupscope analytics jobs reports schemas
RELEASE ?= 4.4.0
SEED    ?= 1
SECONDS_OF_ACTS ?= 90
PROCESSES ?= 2
FUZZ_SECONDS ?= 60
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Containers often set it, and then every process compiles all that it imports: nothing was kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

##@ Use

.PHONY: setup
setup: $(READY) ## make .venv with groupscope in it (needs Python >= 3.11 and Java >= 17)

$(READY): requirements/setup.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "groupscope needs Python 3.11 or newer, and '$(PYTHON)' is not: say which is, as in: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m jobs.spark.java
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (a minute or two the first time)..."
	@$(PIP) install --require-hashes -r requirements/setup.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@# Pip does this unless it is told not to, and nobody does it for these sources.
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib $(PACKAGES) >/dev/null || true
	@echo "Keeping Spark's classes, so that commands start sooner..."
	@$(BIN)/python -m jobs.spark.class_archive $(DUMP)
	@touch $(READY)
	@echo "Ready: $(BIN)/groupscope --help"

.PHONY: demo
demo: setup ## run inspect, decode and audit on the bundled dump of a real failover
	@examples/demo.sh $(BIN)/groupscope $(DUMP) $(OUT)

##@ Check

# Each process takes whole modules, in the order that tests/conftest.py puts them in.
SHARED_OUT := -n $(PROCESSES) --dist loadfile --no-loadscope-reorder

.PHONY: test
test: lint typecheck ## everything that must pass: lint, types, layers, all quick tests
	$(BIN)/python -m pytest -m "not long and not maven" $(SHARED_OUT) $(ARGS)

.PHONY: test-long
test-long: setup ## the tests that take long or need Maven
	$(BIN)/python -m pytest -m "long or maven" --as-for-large $(ARGS)

.PHONY: test-cluster
test-cluster: setup ## a Standalone cluster whose workers, Python and driver die; Spark Connect
	$(BIN)/python -m pytest tests/cluster tests/spark/test_connect.py $(ARGS)

.PHONY: test-brokers
test-brokers: setup ## hold ours against a broker after random acts: RELEASE, SEED, SECONDS_OF_ACTS (needs Maven)
	$(BIN)/python -m tests.brokers --release $(RELEASE) --seed $(SEED) --seconds $(SECONDS_OF_ACTS) $(ARGS)

.PHONY: lint
lint: setup ## style and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

.PHONY: typecheck
typecheck: setup ## types, strictly
	$(BIN)/mypy

.PHONY: format
format: setup ## put the sources into shape
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

.PHONY: fuzz
fuzz: $(VENV)/.fuzz-ready ## feed readers, decoders and questions mutated bytes, each for FUZZ_SECONDS (60)
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest -m fuzz $(ARGS)

.PHONY: guides
guides: setup ## run the commands of all guides, and write what they print now (minutes)
	$(BIN)/python docs/render_guides.py

.PHONY: docs
docs: setup ## write the pages of tables, rules and gaps anew from the schemas
	$(BIN)/python docs/render_tables.py
	$(BIN)/python docs/render_findings.py
	$(BIN)/python docs/render_gaps.py

##@ Measure

.PHONY: bench
bench: $(VENV)/.bench-ready ## medians against a plain loop, kafka-python and Spark's own copy
	$(BIN)/python -m benchmarks $(ARGS)

.PHONY: bench-peers
bench-peers: $(VENV)/.bench-ready ## the same against Kafka's own tools (needs Maven)
	$(BIN)/python -m benchmarks --peers $(ARGS)

.PHONY: size
size: $(READY) ## how much code there is, and how many files a question takes to read
	@$(BIN)/python -m benchmarks.code_size
	@$(BIN)/python -m benchmarks.files_to_an_answer

$(VENV)/.bench-ready: requirements/bench.txt $(READY)
	@$(PIP) install --require-hashes -r $<
	@touch $@

$(VENV)/.fuzz-ready: requirements/fuzz.txt $(READY)
	@$(PIP) install --require-hashes -r $<
	@touch $@

##@ Ship

.PHONY: wheel
wheel: setup ## dist/groupscope-*.whl
	@$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

.PHONY: zip
zip: wheel ## dist/groupscope.zip, for spark-submit --py-files
	@cp "$$(ls -t dist/groupscope-*.whl | head -n 1)" dist/groupscope.zip
	@ls dist/groupscope.zip

# Of the last commit, whatever else lies here; the same commit is the same bytes.
.PHONY: release
release: setup ## dist/release: wheel, source archive, zip, pins, bill of materials, SHA256SUMS
	@$(BIN)/python -m release dist/release

WORKER := dist/worker

# Whatever is unpacked of it runs where $(PYTHON) lies in the same place.
.PHONY: worker
worker: requirements/worker.txt requirements/worker-snapshot.txt ## dist/worker.tar.gz, what executors need, for spark-submit --archives
	@rm -rf $(WORKER) && mkdir -p dist && $(PYTHON) -m venv $(WORKER)
	@$(WORKER)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes $(^:%=-r %)
	@tar -czf $(WORKER).tar.gz -C $(WORKER) .
	@ls $(WORKER).tar.gz

.PHONY: lock
lock: ## pin again what pyproject.toml asks for (needs uv)
	uv pip compile pyproject.toml --extra test $(LOCKED) -o requirements/setup.txt
	uv pip compile pyproject.toml $(LOCKED) $(OF_PROGRAM) -o requirements/runtime.txt
	uv pip compile pyproject.toml $(LOCKED) $(OF_WORKERS) -o requirements/worker.txt
	uv pip compile requirements/worker-snapshot.in $(LOCKED) $(OF_PROGRAM) -o requirements/worker-snapshot.txt
	uv pip compile requirements/bench.in $(LOCKED) -o requirements/bench.txt
	uv pip compile requirements/fuzz.in $(LOCKED) -o requirements/fuzz.txt

# Hashes and no hosts: the lock says what, the reader's pip says from where.
LOCKED := --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
          --custom-compile-command "make lock" --quiet
# The same pins without what tests need.
OF_PROGRAM := --constraint requirements/setup.txt
# Spark brings its own Python.
OF_WORKERS := $(OF_PROGRAM) --no-emit-package pyspark --no-emit-package py4j

.PHONY: clean
clean: ## remove what builds and runs left (not .venv)
	rm -rf build dist *.egg-info $(OUT) .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

.PHONY: help
help:
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
