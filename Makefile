# Kernelmill: `make` lists what one can do.
VENV   ?= .venv
PYTHON ?= python3
CORES  ?= all
# Tests at once: more than the cores of a small machine, because many wait for processes that they start.
WORKERS ?= 3
# A file, or a class in it, stays with one worker, so that what its tests share is made once.
SHARED := --dist loadscope --no-loadscope-reorder
SLOW   ?= slow and not alone and not postgres and not slurm
BIN    := $(VENV)/bin
MATMUL := kernel=matmul workload=llama3_8b_prefill optimization=pipelining
export PATH := $(abspath $(BIN)):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help run test test-all test-postgres test-slurm docs lint format ui report machine-code bench faults lock clean distclean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# uv leaves it to the first import to compile a module.
run ui report: export PYTHONDONTWRITEBYTECODE :=
run: $(VENV)/.run  ## set up, run the default experiment, print the winners, the report's path and how to open the UI
	@kernelmill run experiment=default
	@echo "make ui opens MLflow;  . $(VENV)/bin/activate  makes kernelmill a command of this shell"

# What fails while other tests run is run again by itself, and that result counts: load disturbs what waits for time.
AGAIN = || python -m pytest -q -o cache_dir="$$own" --last-failed --last-failed-no-failures none

# What runs alone comes first: it measures the machine's ceilings undisturbed, and the others find them. Only files
# that say `alone` are collected for it. The processes that tests start take compiled sources from one another.
ALONE = $$(grep -rl --include='test_*.py' 'mark\.alone' tests | sort)
test test-all: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.dev  ## the tests (a few minutes)
	@own=$$(mktemp -d) && trap 'rm -rf "$$own"' EXIT && \
	export KERNELMILL_TEST_CACHE="$${KERNELMILL_TEST_CACHE:-$$own}" && \
	python -m pytest -q -m "alone and not slow" $(ALONE) && \
	{ python -m pytest -q -o cache_dir="$$own" -n $(WORKERS) $(SHARED) \
	  -m "not slow and not alone and not postgres and not slurm" $(AGAIN); }

test-slurm: $(VENV)/.dev  ## the tests on a Slurm of their own, installed where it can be (five minutes)
	@python -m pytest -q -m slurm tests/execution/cluster

test-all: test  ## those and the slow ones, which only deepen coverage: all but PostgreSQL and Slurm
	@own=$$(mktemp -d) && trap 'rm -rf "$$own"' EXIT && \
	export KERNELMILL_TEST_CACHE="$${KERNELMILL_TEST_CACHE:-$$own}" && \
	python -m pytest -q -m "alone and slow" $(ALONE) && \
	{ python -m pytest -q -o cache_dir="$$own" -n $(WORKERS) $(SHARED) \
	  -m "$(SLOW)" $(AGAIN); }

test-postgres: $(VENV)/.dev  ## four writers into a PostgreSQL that the test starts (installs Debian's package where it may)
	@python .ci/install.py postgres
	@python -m pytest -q -m postgres tests/track

# The generator announces its successor on each build; the site is pinned to this one.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/.docs  ## the documentation site, build/site/index.html; fails on a dead link
	@mkdocs build --strict --quiet && echo "docs     build/site/index.html"

lint: $(VENV)/.dev  ## style, types, layers, workflow
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	snakefmt --check Snakefile workflows
	snakemake --lint

format: $(VENV)/.dev  ## let the formatters write
	ruff format .
	ruff check --fix .
	snakefmt Snakefile workflows

ui: $(VENV)/.run  ## the MLflow UI on loopback
	@kernelmill ui

report: $(VENV)/.run  ## (re)make the report of the default experiment
	@snakemake --cores $(CORES) report

machine-code: $(VENV)/.run  ## docs/results/machine_code.md afresh: one matmul's code for every target
	@snakemake --cores $(CORES) compile --config overrides=experiment=machine_code
	@kernelmill code report kernel=matmul workload=llama3_8b_prefill default=true \
		--diff "hardware=h200 $(MATMUL) num_stages=1" "hardware=h200 $(MATMUL) num_stages=3" \
		--made-by "make machine-code" --out docs/results/machine_code.md

bench: $(VENV)/.dev  ## what the pipeline itself costs: docs/results/overhead.md (half an hour on a quiet machine)
	@python -m tests.benchmarks.overhead

faults: $(VENV)/.dev  ## 200 injected faults, and what came of them (an hour)
	@python -m tests.faults --out docs/results/faults.md

lock: $(VENV)/.dev  ## write requirements.lock from this environment (make it afresh first)
	@{ head -n 2 requirements.lock; python -m pip freeze --exclude-editable | sed 's/+cpu//'; } > $(VENV)/lock
	@mv $(VENV)/lock requirements.lock

clean:  ## remove everything that was made under artifacts/
	@find artifacts -mindepth 1 -maxdepth 1 ! -name README.md -exec rm -rf {} +
	@rm -rf .snakemake

distclean: clean  ## and the environment
	@rm -rf $(VENV) *.egg-info

# The environment, made again when what it is made from changes.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Kernelmill needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + ": make PYTHON=/path/to/a/newer/python3 $(MAKECMDGOALS)")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml requirements.lock .ci/install.py | $(VENV)/bin/python
	@echo "Installing the pinned environment into $(VENV) …"
	@python .ci/install.py
	@touch $@

$(VENV)/.dev: pyproject.toml requirements.lock | $(VENV)/.run
	@echo "Installing the tools for development into $(VENV) …"
	@python .ci/install.py dev
	@touch $@

$(VENV)/.docs: pyproject.toml requirements.lock | $(VENV)/.run
	@echo "Installing the documentation generator into $(VENV) …"
	@python .ci/install.py docs
	@touch $@
