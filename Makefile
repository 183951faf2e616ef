# One environment, .venv, made from the lock in requirements/. `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.installed
ARGS ?=

# The packages are installed uncompiled, and every process would compile them again if it might not keep the result.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install alfworld train test lint format lock clean

# A PYTHON given by the user that is not the environment's version makes the environment anew.
ifneq ($(origin PYTHON),file)
ifneq ($(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null),$(shell sed -n 's/^version = \([0-9]*\.[0-9]*\).*/\1/p' $(VENV)/pyvenv.cfg 2>/dev/null))
.PHONY: $(READY)
endif
endif

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-15s %s\n", $$1, $$2 }'
	@echo 'PYTHON=python3.12 picks the interpreter; ARGS="..." is passed on to train.py or pytest.'

install: $(READY) ## make .venv and install the lock and this project into it

$(READY): requirements/cpu.txt requirements/models.txt requirements/install.sh setup.cfg pyproject.toml
	@sh requirements/install.sh "$(PYTHON)" $(VENV)

# fast-downward-textworld's build calls plain `python`, so the environment's comes first on the path.
alfworld: $(READY) ## add ALFWorld's engine to the environment (compiles its planner: a C++ compiler, minutes)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m pip install --no-deps -r requirements/alfworld.txt

train: $(READY) ## install if need be, train the quickstart, evaluate it
	$(PY) train.py $(ARGS)
	$(PY) eval.py
	@echo
	@echo 'Results: $(VENV)/bin/tensorboard --logdir runs'
	@find runs -name results.md -exec ls -t {} + | sed -n '1s/^/         /p'
	@echo 'To go on by hand: . $(VENV)/bin/activate, then python train.py --help, python eval.py --help'

test: $(READY) ## install if need be, run the whole test suite
	$(PY) -m pytest $(ARGS)

# eval.py is checked as text: beside the package eval/, mypy cannot take both under one name.
lint: $(READY) ## check style and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy -p data -p memory -p rollout -p lightning_modules -p eval -p tests -m train -m requirements.preflight
	$(PY) -m mypy -c "$$(cat eval.py)"

format: $(READY) ## rewrite the code in the house style
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

lock: $(READY) ## resolve requirements/cpu.in anew into requirements/cpu.txt
	$(PY) -m pip install --quiet uv
	cd requirements && ../$(PY) -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-build \
		--no-header --annotation-style line --overrides overrides.txt --output-file cpu.txt cpu.in

clean: ## remove .venv and the tools' caches; runs/ stays
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
