# Everything happens in .venv, which the first target that needs it sets up.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-slow campaign lint bench docs clean

demo: $(STAMP)
	$(BIN)/pictopic demo

test: lint
	$(BIN)/pytest -m "not slow" -n auto --dist loadfile

test-slow: $(STAMP)
	$(BIN)/pytest -m slow $(TESTS)

# Robustness at full size: hours, never in CI.  Goes on where it was stopped; docs/robustness.md says what it does.
KILLS ?= 1000
DAMAGED ?= 2000
FILES ?= 10000
ROUNDS ?= 500
SOAK ?= 600
SEED ?= 0
campaign: $(STAMP)
	$(BIN)/python -m tests.campaigns --kills $(KILLS) --damaged $(DAMAGED) --files $(FILES) --rounds $(ROUNDS) \
	    --soak $(SOAK) --seed $(SEED) --out build/campaigns/seed-$(SEED)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/vulture

# One JSON line a figure.  DATA=DIR adds the figures on real pictures; how good the models are says `pictopic reproduce`.
bench: $(STAMP)
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA))

docs: $(STAMP)
	$(BIN)/pdoc --docformat numpy --output-directory build/docs pictopic '!pictopic.kernels'

clean:
	rm -rf $(VENV) build

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)
