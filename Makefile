# Each target does its own set-up: it needs only Python 3.11 or newer, make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
DEV := $(VENV)/dev

.PHONY: demo test programs docs lint coverage bench clean

demo: $(READY)
	$(BIN)/comorb demo

test: $(DEV) programs
	$(BIN)/python -m pytest

# The tests start a PostgreSQL server, a browser and Spark; as root what is missing is installed.
programs:
	@command -v chromium >/dev/null 2>&1 || wanted=chromium; \
	command -v java >/dev/null 2>&1 || wanted="$$wanted default-jre-headless"; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 \
	  || wanted="$$wanted postgresql"; \
	[ -z "$$wanted" ] || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
	  && apt-get update -qq \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$wanted >/dev/null; } \
	|| echo "can't install $$wanted here: the tests that need them are skipped"

# The pages that are made from the code: the command line's, and the map of the modules.
docs: $(DEV)
	$(BIN)/python -m comorb.cli.reference > docs/cli.md
	$(BIN)/python docs/modules.py

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: $(DEV)
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -m "not compiled" tests/model
	$(BIN)/coverage report

bench: $(DEV)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) results

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "comorb needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(DEV): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all]' --group dev
	touch $@
