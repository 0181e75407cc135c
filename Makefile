# Two commands on a fresh machine with Python 3.11+ and make:
#   make demo   runs the main job offline on the embedded default
#   make test   runs all tests, installing whatever they need
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
EXTRAS := all
DEMO_STORE := $(VENV)/demo-knowledge-base

.PHONY: demo test tools check format bench bench-citations bench-load bench-quality bench-peers mutations serve docs site sbom package check-install clean

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Kept needs Python 3.11 or newer; set PYTHON=python3.12, say"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Kept and what it needs into $(VENV) …"
	@$(PIP) install --upgrade "pip>=24.1"
	@$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.developing: $(VENV)/.installed
	@echo "installing what the tests need …"
	@$(PIP) install --constraint constraints.txt --group dev --editable ".[$(EXTRAS)]"
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/kept demo --store $(DEMO_STORE)

test: $(VENV)/.developing tools
	@$(BIN)/kept models install
	@$(BIN)/python -m pytest --numprocesses auto $(PYTEST_ARGS)

# Tests that need a browser or strace are skipped where neither is nor can be installed.
tools:
	@sh tests/install-package.sh chromium "the tests of the pages" "$$KEPT_CHROMIUM" \
		chromium chromium-browser google-chrome google-chrome-stable
	@sh tests/install-package.sh strace "the tests of being offline" strace

check: $(VENV)/.developing
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.developing
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(VENV)/.developing
	@$(BIN)/kept models install
	@$(BIN)/python benchmarks/run.py

bench-citations: $(VENV)/.developing
	@$(BIN)/kept models install
	@$(BIN)/python benchmarks/citations.py

bench-load: $(VENV)/.developing
	@$(BIN)/kept models install
	@$(BIN)/python benchmarks/load.py

bench-quality: $(VENV)/.developing
	@$(BIN)/kept models install
	@$(BIN)/python benchmarks/quality.py

bench-peers: $(VENV)/.developing
	@$(BIN)/kept models install
	@$(BIN)/python benchmarks/speed.py

mutations: $(VENV)/.developing
	@$(BIN)/python benchmarks/mutations.py

serve: $(VENV)/.installed
	@$(BIN)/kept serve

docs: $(VENV)/.developing
	@$(BIN)/python docs/generate.py

site: $(VENV)/.developing
	@$(BIN)/python docs/build_site.py

package: $(VENV)/.developing
	@$(BIN)/python -m hatchling build

# The README's commands in clean environments, with the real package index.
check-install: $(VENV)/.developing
	@$(BIN)/python packaging/check_install.py

sbom: $(VENV)/.developing
	@$(BIN)/python packaging/sbom.py dist

clean:
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build site
