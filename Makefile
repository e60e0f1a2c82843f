# Everything a fresh Debian 12 with Python 3.11, pip and make needs; nothing outside this folder is
# touched. `make demo` installs what the program needs, `make test` what development needs as well.

PYTHON ?= python3
BIN := .venv/bin
# The new environment needs no pip of its own (so no python3-venv package): the system's installs.
PIP := $(PYTHON) -m pip --python $(BIN)/python --disable-pip-version-check --no-input
RUNTIME := aiohttp aiohappyeyeballs aiosignal attrs frozenlist idna multidict propcache yarl \
  click pyyaml nvidia-ml-py grpcio protobuf typing-extensions editables hatchling packaging pathspec pluggy trove-classifiers
BENCH := highspy numpy

.PHONY: demo test test-slow check bench docs pins clean

demo: .venv/runtime
	@$(BIN)/partita plan --from examples || test $$? -eq 1
	@echo
	@echo "That was: $(BIN)/partita plan --from examples   (more: $(BIN)/partita --help, README.md)"

test: test-fast test-slow test-kubernetes

# The agent as a process, and 10,200 things that can happen to a node; test-fast tries 100 of them.
test-slow: .venv/development
	$(BIN)/pytest -n auto -m "slow and not kubernetes"
	PARTITA_TEST_EFFORT=100 $(BIN)/pytest -n auto tests/agent/test_histories.py

check: .venv/development
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check
	$(BIN)/python tools/generate_wire.py --check

bench: .venv/bench
	$(BIN)/python -m bench.planner
	$(BIN)/python -m bench.agent

docs: .venv/development
	$(BIN)/python docs/generate.py
	$(BIN)/python tools/generate_wire.py

# Exact versions with hashes, for every group of pyproject.toml, and no download addresses.
pins: .venv/development
	$(PIP) install -q pip-tools
	$(BIN)/python -c "$$PINS" > .venv/pins.in
	cd .venv && bin/pip-compile -q --generate-hashes --allow-unsafe --strip-extras --no-header \
	  --no-annotate --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --upgrade \
	  -o ../constraints.txt pins.in

define PINS
import tomllib
project = tomllib.load(open('pyproject.toml', 'rb'))
print(*project['project']['dependencies'], *project['build-system']['requires'], sep='\n')
groups = project['dependency-groups'].values()
print(*[item for group in groups for item in group if isinstance(item, str)], sep='\n')
endef
export PINS

clean:
	rm -rf .venv

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "partita needs Python 3.11 or later; say which: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv --without-pip .venv

# One installation rule for three sets of pinned packages; a set is a list of names in constraints.txt.
define pinned
	awk -v names=" $(1) " '/^[a-z0-9]/ { split($$0, p, "=="); keep = index(names, " " p[1] " ") } keep' \
	  constraints.txt > .venv/pins.txt
	$(PIP) install -q --require-hashes --no-deps -r .venv/pins.txt
endef

.venv/runtime: .venv/bin/python constraints.txt pyproject.toml
	@echo "installing partita into .venv (once)"
	@$(call pinned,$(RUNTIME))
	@$(PIP) install -q --no-deps --no-build-isolation --check-build-dependencies -e .
	@touch $@

.venv/development: .venv/runtime constraints.txt
	@echo "installing the development tools into .venv (once)"
	@$(call pinned,$(filter-out $(BENCH),$(shell sed -n 's/^\([a-z0-9-]*\)==.*/\1/p' constraints.txt)))
	@touch $@

.venv/bench: .venv/runtime constraints.txt
	@$(call pinned,$(BENCH))
	@touch $@

include testbed/testbed.mk
