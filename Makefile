# make help says what there is. Everything is installed into .venv; nothing outside this folder is changed, except that
# `make test` may install Debian packages (see .ci/system-packages).

VENV := .venv
BIN := $(VENV)/bin
NOTEBOOKS := notebooks

.DEFAULT_GOAL := help
.PHONY: help demo lab test lint types layers tests browser-tests notebook-tests notebooks bench format clean
.DELETE_ON_ERROR:

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/lab.stamp ## Run the quickstart notebook on the scripted model and print what happens
	@$(BIN)/python .ci/demo.py

lab: $(VENV)/lab.stamp ## Open the notebooks in JupyterLab; options for it: make lab LAB_OPTIONS="--no-browser --port=9000"
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) --notebook-dir=$(NOTEBOOKS) $(LAB_OPTIONS) $(NOTEBOOKS)/01_quickstart.ipynb

test: $(VENV)/test.stamp ## Everything that CI checks
	@.ci/system-packages
	@$(MAKE) --no-print-directory lint types layers tests browser-tests notebook-tests

lint: $(VENV)/test.stamp ## Lint and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.stamp ## Types of the package
	$(BIN)/mypy --strict

layers: $(VENV)/test.stamp ## Which part may import which
	$(BIN)/lint-imports --no-logo --no-cache

tests: $(VENV)/test.stamp ## Unit and integration tests
	@.ci/node-peers
	$(BIN)/pytest tests/unit tests/integration tests/notebooks

browser-tests: $(VENV)/test.stamp ## Tests in Chromium, on JupyterLab and Notebook 7
	$(BIN)/pytest tests/e2e

notebook-tests: $(VENV)/test.stamp ## Run the notebooks again and compare every output with the one in the repository
	$(BIN)/pytest --nbval $(NOTEBOOKS)

notebooks: $(VENV)/test.stamp ## Run the notebooks again and store their outputs
	env -u OPENAI_API_KEY -u OPENAI_MODEL -u OPENAI_BASE_URL -u ZQ_MODEL -u ZQ_UNATTENDED \
	    $(BIN)/jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False $(NOTEBOOKS)/*.ipynb

bench: $(VENV)/test.stamp ## Benchmarks
	@for script in tests/bench/bench_*.py; do echo "== $$script"; PYTHONPATH=. $(BIN)/python $$script || exit 1; done

format: $(VENV)/test.stamp ## Format the code and sort the imports
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove everything that make has made
	rm -rf $(VENV) .demo build dist tests/peers/node_modules
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is as new as the pyproject.toml it was installed from. $(call install,EXTRA) says so before it starts: it is slow.
define install
@echo "Installing into $(VENV) (a few minutes the first time)…"
@[ -x $(BIN)/pip ] || .ci/make-venv $(VENV)
@$(BIN)/python -m pip install --quiet --editable '.[$(1)]'
endef

$(VENV)/lab.stamp: pyproject.toml
	$(call install,lab)
	@touch $@

$(VENV)/test.stamp: pyproject.toml
	$(call install,test)
	@touch $@ $(VENV)/lab.stamp
