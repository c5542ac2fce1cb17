# Two commands matter: `make demo` and `make test`. Both build .venv first where it is needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt
INPUTS := setup.py setup.cfg package.xml constraints.txt
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint docs bench clean

help:
	@echo 'make demo    the whole loop over real ROS 2 with the simulated arm'
	@echo 'make test    all tests'
	@echo 'make lint    ruff and mypy'
	@echo 'make docs    the manual, as HTML in docs/_build/html'
	@echo 'make bench   every benchmark, one table each'
	@echo 'make clean   removes $(VENV) and caches'

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python $(INPUTS)
	$(PIP) --editable '.[ros,sim,plot,bag]'
	@touch $@

$(VENV)/.test: $(VENV)/bin/python $(INPUTS)
	$(PIP) --editable '.[ros,sim,plot,bag,docs,test]'
	@touch $@

$(VENV)/.lint: $(VENV)/bin/python $(INPUTS)
	$(PIP) --editable '.[lint]'
	@touch $@

$(VENV)/.docs: $(VENV)/bin/python $(INPUTS)
	$(PIP) --editable '.[ros,sim,plot,bag,docs]'
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/robotid demo

test: $(VENV)/.test
	$(BIN)/python -m pytest

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

lint: $(VENV)/.lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy robotid_ros

bench: $(VENV)/.test
	@for file in benchmark/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
