# Everything a developer runs. `make` alone lists the targets.

PYTHON ?=
ARGS ?=
KEEP ?=
BIN := .venv/bin
# Where it is set, every command that a test starts compiles this package anew: a second of a core each time.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-unit soak lint format bench matrix screenshots clean

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo '  PYTHON=…        the interpreter to make .venv with (3.10 or newer)'
	@echo '  ARGS=…          more arguments for pytest, the demo or the benchmark'

setup: ## .venv, Java if there is none, the jars, the compiled loops; does only what is missing
	@scripts/setup.sh '$(PYTHON)'

demo: setup ## replicate between two real clusters and compare every record; KEEP=1 leaves them running
	@$(BIN)/python -m srm_spark.demo.run $(if $(filter-out 0,$(KEEP)),--keep) $(ARGS)

test: setup ## what every change must pass
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow' $(ARGS)

test-all: setup ## all tests: faults, platforms, hand-over and notebooks, too
	@$(BIN)/python -m pytest -n 3 --dist worksteal $(ARGS)

test-unit: setup ## the tests that start neither a JVM nor a broker
	@$(BIN)/python -m pytest tests/unit $(ARGS)

soak: setup ## random faults under load for half an hour; ARGS="--minutes 5 --mode exactly-once --seed 7"
	@$(BIN)/python -m tests.soak.run $(ARGS)

lint: setup ## check style, types and the direction of imports; changes nothing
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.lint.wordings
	@$(BIN)/python -m tests.lint.seams

format: setup ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

bench: setup ## our flow against MirrorMaker 2 on the same brokers; ARGS="--only lz4,1kb,latency --page docs/benchmarks.md", --quick
	@$(BIN)/python -m srm_spark.bench $(ARGS)

matrix: setup ## tests of each kind under every Spark, each with a Python of its own; ARGS="--spark 3.5 --page"
	@$(BIN)/python -m tests.matrix.run $(ARGS)

screenshots: setup ## draw the pages of the service for docs/pictures, by chromium; ARGS=folder
	@$(BIN)/python -m tests.browser.pictures $(ARGS)

clean: ## remove .venv and what was built; the jars stay in .cache
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis spark-warehouse
