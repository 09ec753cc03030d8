# Two commands matter: `make demo` and `make test`. Both create the environment they need.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python -m
export PYTHON
BENCH_VENV ?= .venv-bench
BENCHMARKS = $(PYTHON) benchmarks/environments.py $(BENCH_VENV) && $(BENCH_VENV)/torch/bin/python benchmarks/run.py --environments $(BENCH_VENV)
# Tests compile the same programmes in many processes; the folder goes with the environment.
COMPILED = JAX_COMPILATION_CACHE_DIR=$(abspath $(VENV))/compiled JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0.2

.PHONY: demo test test-slow test-deployment gpu-check bench bench-quick lint types check clean help

help:            ## this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## +/\t/'

demo: $(VENV)/.installed  ## train four methods on real data; table and report in runs/demo
	$(VENV)/bin/fedhedge demo

test: $(VENV)/.installed-dev  ## the tests, on two cores
	$(COMPILED) $(RUN) pytest -n 2 --dist loadfile

test-slow: $(VENV)/.installed-dev  ## the statistical and long tests
	$(COMPILED) $(RUN) pytest -n 2 -m slow

test-deployment: $(VENV)/.installed-flower  ## the tests that start the processes of a federation, a few minutes
	$(COMPILED) $(RUN) pytest -n 2 --dist loadfile -m "deployment or not slow" tests/deployment

lint: $(VENV)/.installed-dev  ## ruff: rules and format
	$(RUN) ruff check .
	$(RUN) ruff format --check .

types: $(VENV)/.installed-dev  ## mypy, strict, on the package
	$(RUN) mypy

check: lint types test  ## all that a change must pass

gpu-check: $(VENV)/.installed  ## on a machine with a GPU: the CPU's results, and the time of Table I on CIFAR-10 (8 min)
	$(VENV)/bin/python scripts/gpu_check.py

bench:           ## every benchmark, against peers in environments of their own (25 min); BENCH="rounds cnn" for some
	$(BENCHMARKS) --out runs/bench $(BENCH)

bench-quick:     ## a smoke test of the benchmarks, whose numbers mean nothing (10 min)
	$(BENCHMARKS) --quick --out runs/bench-quick $(BENCH)

clean:           ## remove the environment and caches, not the runs
	rm -rf $(VENV) $(BENCH_VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.installed: pyproject.toml scripts/environment.sh
	sh scripts/environment.sh $(VENV)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml scripts/environment.sh
	sh scripts/environment.sh $(VENV) dev
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-flower: pyproject.toml scripts/environment.sh
	sh scripts/environment.sh $(VENV) dev,flower
	@touch $@ $(VENV)/.installed-dev $(VENV)/.installed
