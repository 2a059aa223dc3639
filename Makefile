# make train   set up .venv, train an agent on `smoke` and compare it with every heuristic on unseen seeds
# make test    the default test suite
# make lint    ruff and mypy
# make slow    tests that take minutes
# make soak    a million random steps with invariants on
#
# PIP_FLAGS goes to pip. PyPI's torch for Linux is the large CUDA build; the CPU build comes with
#   make train PIP_FLAGS="--extra-index-url https://download.pytorch.org/whl/cpu"

SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(PIP_FLAGS)
JOBS ?= 2
SCENARIO ?= smoke
STEPS ?= 60000
RUN ?= runs/$(SCENARIO)

.PHONY: setup setup-train train test slow lint soak clean

setup: $(VENV)/.hetenv-dev
setup-train: $(VENV)/.hetenv-train

$(VENV)/.hetenv-dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[dev]"
	touch $@

$(VENV)/.hetenv-train: $(VENV)/.hetenv-dev
	$(BIN)/python -c "import torch" 2>/dev/null || $(PIP) torch==2.13.0
	$(PIP) -e ".[dev,train]"
	touch $@

train: $(VENV)/.hetenv-train
	$(BIN)/python train_agents.py --scenario $(SCENARIO) --algo maskable_ppo --steps $(STEPS) --seed 0 --out $(RUN) \
		$(if $(wildcard $(RUN)/checkpoint),--resume)

test: $(VENV)/.hetenv-train
	$(BIN)/hetenv warmup
	$(BIN)/python -m pytest -m "not slow" -n $(JOBS) --durations 10

slow: $(VENV)/.hetenv-train
	$(BIN)/python -m pytest -m slow -n $(JOBS) --durations 10

lint: $(VENV)/.hetenv-train
	$(BIN)/ruff check .
	$(BIN)/mypy --strict hetenv
	$(BIN)/python -m pytest tests/test_layers.py

soak: $(VENV)/.hetenv-train
	HETENV_SOAK_STEPS=1000000 $(BIN)/python -m pytest -m soak -n $(JOBS) --durations 5 tests/test_soak.py

clean:
	rm -rf build dist *.egg-info
