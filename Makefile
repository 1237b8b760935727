PYTHON ?= python3
BIN := .venv/bin
SMOKE := build/smoke

.PHONY: demo serve test quick coverage lint dev docs screenshots notebooks package smoke clean

demo: .venv/.installed
	$(BIN)/closecall demo --out runs/demo
	$(BIN)/closecall compare --dataset digits --preset quick --out runs/comparison

serve: .venv/.installed-web
	$(BIN)/closecall serve

test: .venv/.installed-dev lint
	$(BIN)/pytest -n 2 -q

quick: .venv/.installed-dev
	$(BIN)/pytest -n 2 -q -m "not slow"

# Slower than the tests alone, so it is not part of `make test`; without the tests that kill processes after so
# many seconds, since tracing makes those too slow.
coverage: .venv/.installed-dev
	$(BIN)/pytest -n 2 -q --cov --cov-report=term --ignore tests/batches/test_faults.py

lint: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks scripts
	$(BIN)/lint-imports

dev: .venv/.installed-dev

docs: .venv/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# What the README and docs/serve.md show of the page, photographed by its tests.
screenshots: .venv/.installed-dev
	CLOSECALL_SCREENSHOTS=docs/images $(BIN)/pytest -q tests/web/test_flows.py tests/web/test_looks.py

# The examples as GitHub shows them: executed anew, with what they print and draw.
notebooks: .venv/.installed-dev
	$(BIN)/python scripts/run_notebooks.py examples/*.ipynb

package: .venv/.installed-dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation

# Both archives in an environment that has nothing but what pip brings along for them.
smoke: package
	rm -rf $(SMOKE)
	$(PYTHON) -m venv $(SMOKE)
	$(SMOKE)/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	$(SMOKE)/bin/python scripts/smoke.py
	$(SMOKE)/bin/python -m pip install --quiet --force-reinstall --no-deps dist/*.tar.gz
	$(SMOKE)/bin/python scripts/smoke.py

clean:
	rm -rf .venv build dist runs site .coverage .coverage.*

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

.venv/.installed-web: .venv/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[web]"
	touch $@

.venv/.installed-dev: .venv/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,web,scip,gurobi,cplex,scale,parquet]"
	touch $@

.venv/.installed-docs: .venv/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@
