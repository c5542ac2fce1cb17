# Two commands matter: `make demo` and `make test`. Both build .venv first where it is needed.
PYTHON ?= python3
SHELL := bash
.SHELLFLAGS := -o pipefail -c
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt
INPUTS := setup.py setup.cfg package.xml constraints.txt
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# Where it is set, each of the hundreds of processes that tests start compiles all that it imports: 2.4 s in place of 0.9.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-nodes test-core mutants coverage test-matrix lint audit docs bench clean

help:
	@echo 'make demo         the whole loop over real ROS 2 with the simulated arm'
	@echo 'make test         the quick tests, three in five, in some four minutes'
	@echo 'make test-slow    the others: whole identifications, whole runs of nodes'
	@echo 'make lint         ruff and mypy'
	@echo 'make mutants      deliberate faults, one by one: does a test notice?'
	@echo 'make audit        known weaknesses of what is installed with the package; needs the network, before a release'
	@echo 'make coverage     all tests once more, and which branches no test takes'
	@echo 'make test-matrix  all tests on the oldest and newest numpy, scipy, Python and ROS 2 that are supported'
	@echo 'make docs         the manual, as HTML in docs/_build/html'
	@echo 'make bench        every figure beside its anchor, measured in the same run: one table'
	@echo 'make clean        removes $(VENV) and caches'

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python $(INPUTS)
	$(PIP) --editable '.[ros,sim,web,bag]'
	@touch $@

$(VENV)/.test: $(VENV)/bin/python $(INPUTS)
	$(PIP) --editable '.[ros,sim,web,bag,csv,fleet,docs,test]'
	@touch $@

$(VENV)/.lint: $(VENV)/bin/python $(INPUTS)
	$(PIP) --editable '.[lint]'
	@touch $@

$(VENV)/.docs: $(VENV)/bin/python $(INPUTS)
	$(PIP) --editable '.[ros,sim,web,bag,docs]'
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/robotid demo

# At the same time: those that run nodes, which mostly wait, and, at a lower priority, those that compute, which take what
# is left of the processor. Those that stop an arm in motion ask how fast it ever was, and run one by one. What takes long
# comes first, so that no process is left with it at the end.
NODE_PROCESSES ?= 3
CORE_PROCESSES ?= 2
PYTEST := $(BIN)/python -m pytest --durations 15
SPREAD := --dist loadfile --no-loadscope-reorder --numprocesses
NODE_FILES = $(filter-out test/excitation/%,$(shell grep -l 'mark\.ros' test/*/test_*.py))
NODES_FIRST := $(patsubst %,test/%.py,nodes/test_chain_selection demo/test_demo nodes/test_chain_bees \
	nodes/test_chain_node nodes/test_recorder_node nodes/test_identification_node calibration/test_calibration_live)
CORE_FIRST := $(patsubst %,test/%.py,identification/test_identification_setup execution/test_execution_faults \
	identification/test_identification_plausibility package/test_docs_blocks report/test_report_page \
	identification/test_identification_estimators identification/test_identification_any_arm \
	identification/test_identification_er16 identification/test_identification_damage commands/test_cli \
	identification/test_identification_drives excitation/test_excitation_optimizer friction/test_friction_strokes \
	free_floating/test_free_floating_design dynamics/test_dynamics_minimal_model package/test_docs_build \
	execution/test_execution_run calibration/test_calibration_estimate fleet/test_fleet)
# Which of both groups: `make test-slow` runs what is marked slow, a test function that takes seconds.
WHICH ?= not slow
LOG = $(VENV)/test-$(subst not slow,quick,$(WHICH))
test: $(VENV)/.test
	@echo 'two groups of tests; each is printed when it has ended'
	@rm -f $(LOG)-*.log
	@$(MAKE) --no-print-directory --jobs=2 --keep-going --output-sync=target test-nodes test-core || \
	{ echo 'what failed, of all that stands above:'; grep -Eh '^(FAILED|ERROR) ' $(LOG)-*.log; exit 1; }

test-slow:
	@$(MAKE) --no-print-directory test WHICH=slow

test-nodes: $(VENV)/.test
	@failed=0; $(PYTEST) -m 'ros and ($(WHICH))' test/excitation 2>&1 | tee $(LOG)-excitation.log || failed=1; \
	$(PYTEST) $(SPREAD) $(NODE_PROCESSES) -m 'ros and ($(WHICH))' $(NODES_FIRST) \
	$(filter-out $(NODES_FIRST),$(NODE_FILES)) 2>&1 | tee $(LOG)-nodes.log && exit $$failed

test-core: $(VENV)/.test
	@nice -n 10 $(PYTEST) $(SPREAD) $(CORE_PROCESSES) -m 'not ros and ($(WHICH))' $(CORE_FIRST) \
	$(filter-out $(CORE_FIRST),$(wildcard test/*/test_*.py)) 2>&1 | tee $(LOG)-core.log

# Some of them: make mutants MUTANTS='--only execution/'
MUTANTS ?=
mutants: $(VENV)/.test
	$(BIN)/python -m test.mutants $(MUTANTS)

$(VENV)/.coverage-extra: $(VENV)/.test
	$(PIP) --editable '.[coverage]'
	@touch $@

# The node processes count too, which makes this slower than `make test` and `make test-slow`. COVERAGE_HTML=1 writes htmlcov/ as well.
coverage: $(VENV)/.coverage-extra
	rm -f .coverage .coverage.*
	$(BIN)/python -m coverage run -m pytest
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report
	$(if $(COVERAGE_HTML),$(BIN)/python -m coverage html --quiet)

.venv-nox/bin/nox:
	$(PYTHON) -m venv .venv-nox
	.venv-nox/bin/python -m pip install --disable-pip-version-check --quiet 'nox>=2024.10'

# One session: make test-matrix SESSION='--session noble -- -k friction'
test-matrix: .venv-nox/bin/nox
	.venv-nox/bin/nox $(SESSION)

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

lint: $(VENV)/.lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy robotid_ros

# Asks the databases of PyPI and OSV; fails if a package has a known weakness, or if they cannot be reached.
.venv-audit/bin/pip-audit:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --disable-pip-version-check --quiet 'pip-audit>=2.10'

audit: $(VENV)/.demo .venv-audit/bin/pip-audit
	.venv-audit/bin/pip-audit --strict --path $(wildcard $(VENV)/lib/python*/site-packages) --skip-editable

# What others do is measured in an environment of its own, in the same run. BENCH='--quick --only dynamics' and the like.
ANCHORS ?= .venv-anchors
BENCH ?=

$(ANCHORS)/.done: benchmark/anchors/requirements.txt constraints.txt
	$(PYTHON) -m venv $(ANCHORS)
	$(ANCHORS)/bin/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt \
		--requirement benchmark/anchors/requirements.txt
	@touch $@

bench: $(VENV)/.test $(ANCHORS)/.done
	ROBOTID_ANCHORS=$(ANCHORS)/bin/python $(BIN)/python -m benchmark $(BENCH)

clean:
	rm -rf $(VENV) $(ANCHORS) .venv-audit .venv-nox .venv-matrix .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* htmlcov build dist *.egg-info
