PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint clean

demo: .venv/.installed
	$(BIN)/closecall demo --out runs/demo
	$(BIN)/closecall compare --dataset digits --preset quick --out runs/comparison

test: .venv/.installed-dev lint
	$(BIN)/pytest -n 2 -q

lint: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks scripts
	$(BIN)/lint-imports

clean:
	rm -rf .venv build dist runs

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

.venv/.installed-dev: .venv/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,scip,gurobi,cplex]"
	touch $@
