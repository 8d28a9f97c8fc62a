# Everything that a person does here. `make help` lists it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
RUN ?= runs/quick
SFT ?= runs/sft
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock

.PHONY: help tables test sft servers lab check bench lock
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

tables: $(VENV)/.run ## the main job: 12 chats of the embedded model, gated, judged, Tables 7-11, report (RUN=runs/quick)
	$(BIN)/anthrolab notebooks 02 03 04 --run $(RUN)

test: $(VENV)/.dev ## all tests (PYTEST="-k name" for some)
	$(BIN)/python -m pytest $(PYTEST)

sft: $(VENV)/.train ## fine-tune Gemma 3 270M on the gold dialogues, benchmark it beside its base (SFT=runs/sft); 1 h, 8 GB of memory
	$(BIN)/anthrolab sft data --out $(SFT)/data --held-out-cases 12
	$(BIN)/anthrolab sft train --data $(SFT)/data --out $(SFT)/tuned --limit 600 --set token_budget=6000 --set accumulation=1
	$(BIN)/anthrolab sft export $(SFT)/tuned
	$(BIN)/anthrolab sft add-system gemma-3-270m-sft --gguf $(SFT)/tuned/tuned.gguf --partner gemma-3-270m --systems $(SFT)/systems.yaml
	$(BIN)/anthrolab sft contract --system gemma-3-270m-sft --systems $(SFT)/systems.yaml --data $(SFT)/data/held_out.jsonl --out $(SFT)/contract --limit 200
	for name in gemma-3-270m gemma-3-270m-sft; do \
	  $(BIN)/anthrolab run --system $$name --systems $(SFT)/systems.yaml --cases 12 --max-messages 24 --window 12 --run $(SFT)/runs/$$name && \
	  $(BIN)/anthrolab judge $(SFT)/runs/$$name --judge rules || exit; \
	done
	$(BIN)/anthrolab report $(SFT)/runs/gemma-3-270m $(SFT)/runs/gemma-3-270m-sft --out reports/sft

servers: $(VENV)/.run ## real servers for the contract tests: SmolLM2 as GGUF, vLLM's CPU build in an environment of its own; 4 GB
	$(BIN)/python -m tests.setup_servers

lab: $(VENV)/.run ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=. notebooks/02_self_chat.ipynb

check: $(VENV)/.dev ## ruff, types, cards, notebook hygiene
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/anthrolab cards check data
	$(BIN)/python -m pytest -q tests/test_notebooks.py tests/test_frame.py

bench: $(VENV)/.dev ## speed of tables, gate, engine, explorer and reward, as ratios in one run (Inspect AI comes into .servers, 0.4 GB)
	$(BIN)/python -m benchmarks.bench_tables
	$(BIN)/python -m benchmarks.bench_gate
	$(BIN)/python -m benchmarks.setup_inspect
	$(BIN)/python -m benchmarks.bench_engine
	$(BIN)/python -m benchmarks.bench_explorer
	$(BIN)/python -m benchmarks.bench_reward
	$(BIN)/python -m benchmarks.bench_weights

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
