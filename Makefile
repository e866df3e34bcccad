# Two commands matter:
#
#   make lab     create .venv, install the course, open JupyterLab at its first page
#   make test    create .venv, run linters, type checker, tests and notebooks
#
# Both do only what is not done yet. Works with GNU make 3.81 (macOS), so: no .ONESHELL, no grouped targets.

VENV ?= .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
ARGS ?=
PORT ?=
# Test processes. More than a few cost more to start than they save.
JOBS ?= 2
# Where the shell asks for no bytecode, each kernel and each command of a test would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# The stamps live inside the environment: who deletes .venv deletes them too.
VENV_STAMP := $(VENV)/.stamp-venv
TEST_STAMP := $(VENV)/.stamp-test
LAB_STAMP := $(VENV)/.stamp-lab
# Its extras come on top of those two: a learner needs no test tools, and a tester no JupyterLab.
BROWSER_STAMP := $(VENV)/.stamp-browser
SITE_STAMP := $(VENV)/.stamp-site
BUNDLE_STAMP := $(VENV)/.stamp-bundle

# Prints cuda12, cuda13 or nothing. -P: the modules beside the doctor are not to shadow Python's own.
CUPY_EXTRA_HERE := $(PY) -P asyncgpu_course/doctor.py --cupy-extra
PIP := $(PY) -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help lab update site deck bundle venv test test-full test-lab note quick lint format notebooks notebooks-build nbgrader doctor profile wheel clean

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile
	@echo "Also: make update (the newest course; your work is kept), make lint, make format, make quick (tests without the slow ones), make notebooks,"
	@echo "make test-full (also what rests on files that did not change), make test-lab (the course in a browser), make notebooks-build (from course/), make nbgrader (for instructors),"
	@echo "make site (build/site), make deck, make bundle, make venv, make doctor, make profile (Nsight Systems), make wheel, make clean."
	@echo "PYTHON=/path/to/python picks the interpreter, CUPY_EXTRA=cuda12, cuda13 or none the CuPy."

$(VENV_STAMP):
	@python="$$(PYTHON='$(PYTHON)' sh tools/find_python.sh)" || exit 1; \
	echo "Creating $(VENV) with $$("$$python" --version) ..."; \
	"$$python" -m venv $(VENV)
	@$(PIP) install --upgrade pip
	@touch $@

$(TEST_STAMP): $(VENV_STAMP) pyproject.toml
	@extra="$$($(CUPY_EXTRA_HERE))" || exit 1; \
	echo "Installing the package and its test tools ($(VENV), extras: test$${extra:+,$$extra}) ..."; \
	$(PIP) install --editable ".[test$${extra:+,$$extra}]"
	@touch $@

$(LAB_STAMP): $(VENV_STAMP) pyproject.toml
	@extra="$$($(CUPY_EXTRA_HERE))" || exit 1; \
	echo "Installing the course ($(VENV), extras: lab$${extra:+,$$extra}): some 44 MB, a minute or two in silence ..."; \
	$(PIP) install --editable ".[lab$${extra:+,$$extra}]"
	@touch $@

$(BROWSER_STAMP): $(TEST_STAMP) $(LAB_STAMP)
	@echo "Installing what drives a browser ($(VENV), extras: lab,test,browser) ..."
	@$(PIP) install --editable ".[lab,test,browser]"
	@touch $@

$(SITE_STAMP): $(VENV_STAMP) pyproject.toml
	@echo "Installing what builds the site ($(VENV), extra: site) ..."
	@$(PIP) install --editable ".[site]"
	@touch $@

$(BUNDLE_STAMP): $(VENV_STAMP) pyproject.toml
	@$(PIP) install --editable ".[bundle]"
	@touch $@

venv: $(TEST_STAMP)

lab: $(LAB_STAMP)
	$(PY) -m asyncgpu_course start $(if $(PORT),--port=$(PORT)) $(ARGS)

# The newest course. Pages that somebody has worked in are kept in my-work, as they are.
update: $(LAB_STAMP)
	$(PY) -m asyncgpu_course start --update $(ARGS)

lint: $(TEST_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(PY) tools/build_notebooks.py --check
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/pyright --pythonpath $(PY)

format: $(TEST_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(PY) tools/build_notebooks.py

# The ceiling for one cell is 60 s. Notebooks and tests in one run keep all processes busy to the end. Kernels start with
# tests/kernel_startup, which forbids what a browser lacks, and what a page tells of its guesses is told and held to its
# truths.
PYTEST := ASYNCGPU_TELL=1 IPYTHONDIR="$(CURDIR)/tests/kernel_startup" $(BIN)/pytest -n $(JOBS) --dist worksteal
NBMAKE := --nbmake --nbmake-timeout=60

test: lint
	$(PYTEST) $(NBMAKE) $(ARGS) tests notebooks

# Also all wrong answers, the solutions, and what rests on files that did not change: see tests/full_runs.py.
test-full: lint
	$(PYTEST) $(NBMAKE) $(ARGS) --full tests notebooks solutions

# What each page says, after a change that is meant to alter it: read the difference.
note: $(TEST_STAMP)
	$(PYTEST) $(NBMAKE) $(ARGS) --note tests/told.py notebooks

# In the system's Chromium or Chrome, without a window. One process: there is one JupyterLab for all tests.
test-lab: $(BROWSER_STAMP)
	$(BIN)/pytest -m lab -rs $(ARGS) tests/lab
	@echo "Screenshots to look at: build/lab"

quick: $(TEST_STAMP)
	$(PYTEST) -m "not slow" $(ARGS) tests

# From their sources in course/.
notebooks-build: $(TEST_STAMP)
	$(PY) tools/build_notebooks.py

# Runs every chapter, and makes build/site of them, the docs and the docstrings, with slides and a JupyterLite.
site: $(SITE_STAMP)
	$(PY) tools/build_site.py $(ARGS)

# Slides for ninety minutes: build/deck/index.html.
deck: $(SITE_STAMP)
	$(PY) tools/build_deck.py build/deck $(ARGS)

# For a room without a network: wheels, notebooks, instructions. ARGS="--python 3.12" for the room's Python.
bundle: $(BUNDLE_STAMP) $(SITE_STAMP)
	$(PY) tools/bundle.py $(ARGS)

# For instructors: see docs/instructors.md.
nbgrader: $(TEST_STAMP)
	$(PY) tools/export_nbgrader.py $(ARGS)

notebooks: $(TEST_STAMP)
	$(PYTEST) $(NBMAKE) $(ARGS) notebooks solutions

doctor: $(TEST_STAMP)
	@$(PY) -m asyncgpu_course doctor $(ARGS)

# Runs the MLP under Nsight Systems, and says what the profile shows. Needs a GPU and nsys; says so where they are missing.
profile: $(TEST_STAMP)
	@$(PY) -m asyncgpu_tutor profile $(ARGS)

wheel: $(TEST_STAMP)
	$(PY) -m build --wheel --outdir dist .
	$(PY) -m build --wheel --outdir dist simgpu

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
