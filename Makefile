# Each target does its own set-up: it needs only Python 3.11 or newer, make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
DEV := $(VENV)/dev
TRIAL := $(VENV)/trial
PYTHONS := python3.11 python3.12 python3.13 python3.14
FAST := tests/model tests/records tests/insight tests/cli tests/web tests/test_package.py tests/test_sklearn.py tests/test_storage.py

.PHONY: demo test programs matrix dist docs lint coverage bench clean

demo: $(READY)
	$(BIN)/comorb demo

test: $(DEV) programs
	$(BIN)/python -m pytest -n 2 --dist loadfile

# The tests start a PostgreSQL server, a browser and Spark; as root what is missing is installed.
programs:
	@wanted=; \
	command -v chromium >/dev/null 2>&1 || wanted="$$wanted chromium"; \
	command -v java >/dev/null 2>&1 || wanted="$$wanted default-jre-headless"; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 \
	  || wanted="$$wanted postgresql"; \
	[ -n "$$wanted" ] || exit 0; \
	[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
	  && echo "The tests need programs that are not here; apt-get will install:$$wanted" \
	  && apt-get update -qq \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$wanted >/dev/null \
	|| echo "can't install$$wanted here: the tests that need them are skipped"

# The fast tests on every Python that is here, each with the plain install.
matrix:
	@absent=; failed=; \
	for python in $(PYTHONS); do \
	  $$python --version 2>/dev/null || { absent="$$absent $$python"; continue; }; \
	  home=$(VENV)/matrix/$$python; \
	  { test -x $$home/bin/python || $$python -m venv $$home; } \
	  && $$home/bin/python -m pip install --quiet --upgrade 'pip>=25.1' \
	  && $$home/bin/python -m pip install --quiet --constraint constraints.txt --editable . --group test \
	  && $$home/bin/python -m pytest $(FAST) || failed="$$failed $$python"; \
	done; \
	[ -z "$$absent" ] || echo "not here, so not tried:$$absent"; \
	[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# The wheel and the source archive; the wheel does the demo in an environment of its own.
dist: $(DEV)
	rm -rf dist $(TRIAL)
	$(BIN)/hatchling build -d dist
	$(PYTHON) -m venv $(TRIAL)
	$(TRIAL)/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	cd $(TRIAL) && bin/comorb demo && test -s comorb-demo/report.html

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
	rm -rf $(VENV) dist results

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "comorb needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(DEV): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all]' --group dev
	touch $@
