# Each target does its own set-up: it needs only Python 3.11 or newer, make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: demo test programs lint coverage bench clean

demo: $(READY)
	$(BIN)/comorb demo

test: $(READY) programs
	$(BIN)/python -m pytest

# The tests start a PostgreSQL server and a browser; as root these are installed when missing.
programs:
	@command -v chromium >/dev/null 2>&1 || wanted=chromium; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 \
	  || wanted="$$wanted postgresql"; \
	[ -z "$$wanted" ] || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
	  && apt-get update -qq \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$wanted >/dev/null; } \
	|| echo "can't install $$wanted here: the tests that need them are skipped"

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -m "not compiled" tests/model
	$(BIN)/coverage report

bench: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) results

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "comorb needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev
	touch $@
