# Everything a developer types. `make demo` and `make test` set up .venv first, from nothing but Python.
PYTHON ?= python3
PIP_OPTIONS ?=
VENV := .venv
BIN := $(VENV)/bin
REPCL := $(BIN)/repcl
export HF_HUB_OFFLINE ?= 1

.PHONY: help demo compare docs test test-slow fuzz mutants speed check format evidence results notebooks screenshots lock clean

help:  ## Show what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/.ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_OPTIONS) $$(grep '^torch==' requirements.lock)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_OPTIONS) -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_OPTIONS) --no-deps --editable .
	touch $@

demo: $(VENV)/.ready  ## Teach the bundled support desk in two steps; writes runs/demo/report.html
	$(REPCL) demo

compare: $(VENV)/.ready  ## Compare six methods on the bundled desk, task by task (takes minutes)
	@echo "Six methods learn 30 intents in 10 tasks: 4 to 7 minutes of processor time. Stop it and resume as you like."
	$(REPCL) bench --benchmark demo --method repcl --method fea --method sequential --method joint \
		--method instant --method refit --memory-per-class 3 --out runs/compare

test: $(VENV)/.ready  ## Run the default test suite
	$(BIN)/python -m pytest -n auto

test-slow: $(VENV)/.ready  ## Run the tests that take minutes
	$(BIN)/python -m pytest -m slow

fuzz: $(VENV)/.ready  ## Feed a hundred thousand generated files to every reader
	$(BIN)/python -m pytest -m slow tests/fuzz

mutants: $(VENV)/.ready  ## Put small faults into the code and see whether the tests notice; resumes
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python benchmarks/mutants.py

speed: $(VENV)/.ready  ## Measure how fast learning and answering are, and write docs/speed.md; a quarter of an hour
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python docs/make_speed.py

check: $(VENV)/.ready  ## Lint, format check, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready  ## Format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

evidence: $(VENV)/.ready  ## Make the long runs behind the page of results, two at a time (days; resumes)
	$(BIN)/python benchmarks/evidence.py tables --workers 2

results: $(VENV)/.ready  ## Write the pages of results and of other tools from their templates and the stored results
	$(BIN)/python docs/make_results.py
	$(BIN)/python docs/make_peers.py

docs: $(VENV)/.ready  ## Build the documentation site into site/; broken links are errors
	$(BIN)/python docs/make_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

notebooks: $(VENV)/.ready  ## Run the notebooks in examples/ and store what they print and draw
	$(BIN)/python docs/make_notebooks.py

screenshots: $(VENV)/.ready  ## Take pictures of every view of the page; needs Chromium
	PYTHONPATH=. $(BIN)/python docs/make_screenshots.py

lock: $(VENV)/.ready  ## Write requirements.lock from what is installed
	$(BIN)/python -m pip freeze --exclude-editable | sed -E "s|^torch(==[0-9.]+)\+cpu$$|torch\1|; s|^torch @.*|torch==2.13.0|" | sort -f > requirements.lock

clean:  ## Remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache mutants
