# Each target does its own set-up: it needs only Python 3.11 or newer, make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
DEV := $(VENV)/dev
TRIAL := $(VENV)/trial
AGAIN := $(VENV)/again
NODE := node_modules/ready
# A package is installed only as a file whose hash is in requirements/; nothing is fetched to build it.
LOCKED := -m pip install --quiet --no-build-isolation --require-hashes
ALONE := -m pip install --quiet --no-build-isolation --no-deps
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-header --no-emit-index-url
PYTHONS := python3.11 python3.12 python3.13 python3.14
FAST := tests/model tests/records tests/profiles tests/runs tests/views tests/cli tests/web tests/test_package.py tests/test_sklearn.py tests/test_storage.py

SUITE := pytest -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: demo test cluster-test programs matrix dist docs lock sbom lint lint-page coverage bench torture clean

demo: $(READY)
	$(BIN)/comorb demo

# Bytecode is made first, as the tests start many processes and may not be allowed to keep it.
test: $(DEV) programs
	$(BIN)/python -m compileall -q src
	$(if $(MEASURE),$(BIN)/coverage erase)
	$(BIN)/$(if $(MEASURE),coverage run,python) -m $(SUITE)

# The contract of the engines, also on Spark with a master and two workers, and on Spark Connect there.
cluster-test: $(DEV) programs
	COMORB_CLUSTERS=yes $(BIN)/python -m pytest tests/engines

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
	  && $$home/bin/python $(LOCKED) -r requirements/build.txt \
	  && $$home/bin/python $(LOCKED) -r requirements/test.txt \
	  && $$home/bin/python $(ALONE) --editable . \
	  && $$home/bin/python -m pytest $(FAST) || failed="$$failed $$python"; \
	done; \
	[ -z "$$absent" ] || echo "not here, so not tried:$$absent"; \
	[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# The wheel and the source archive, built again from that archive to the same bytes, at another place
# and for other rights; the wheel does the demo in an environment of its own.
dist: export SOURCE_DATE_EPOCH := 1580601600
dist: $(DEV)
	rm -rf dist/*.whl dist/*.tar.gz $(TRIAL) $(AGAIN)
	$(BIN)/hatchling build -d dist
	mkdir -p $(AGAIN)
	tar -xzf dist/*.tar.gz -C $(AGAIN) --strip-components=1
	rm $(AGAIN)/PKG-INFO
	umask 077; cd $(AGAIN) && $(CURDIR)/$(BIN)/hatchling build -d dist
	for file in dist/*.whl dist/*.tar.gz; do cmp $$file $(AGAIN)/$$file || exit 1; done
	$(BIN)/python -m pip hash dist/*.whl dist/*.tar.gz
	$(PYTHON) -m venv $(TRIAL)
	$(TRIAL)/bin/python $(LOCKED) -r requirements/build.txt
	$(TRIAL)/bin/python $(LOCKED) -r requirements/runtime.txt
	$(TRIAL)/bin/python $(ALONE) dist/*.whl
	cd $(TRIAL) && bin/comorb demo && test -s comorb-demo/report.html

# The pages that are made from the code: the command line's, and the map of the modules; then the
# site of all pages, in site/, with tutorials run and links checked.
docs: $(DEV)
	$(BIN)/python docs/commands.py > docs/cli.md
	$(BIN)/python docs/modules.py
	$(BIN)/python docs/build.py

# The newest versions of what pyproject.toml asks for, with the hash of every file of each.
lock: $(DEV)
	$(LOCK) --upgrade --extra all --group dev pyproject.toml -o requirements/dev.txt
	$(LOCK) -c requirements/dev.txt pyproject.toml -o requirements/runtime.txt
	$(LOCK) -c requirements/dev.txt --group test pyproject.toml -o requirements/test.txt
	$(LOCK) -c requirements/dev.txt --upgrade --group build -o requirements/build.txt

# What a plain install is made of, as CycloneDX.
sbom: $(READY)
	$(BIN)/python requirements/bill.py dist/sbom.json

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) lint-page

# The JavaScript of the report and the explorer: rules, format and types; nothing is built or shipped.
ifeq ($(shell command -v npm),)
lint-page:
	@echo "npm is not here: the JavaScript of the pages is not checked"
else
lint-page: $(NODE)
	npm run --silent lint
endif

# What `make test MEASURE=yes` ran of the package, and of the numeric core once more with its loops not
# compiled, so that they count; held to bounds.
coverage: $(DEV)
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -n 2 -m "not compiled" tests/model
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	mkdir -p results
	$(BIN)/coverage json --quiet -o results/coverage.json
	$(BIN)/python -m tests.check_coverage results/coverage.json

bench: $(DEV)
	$(BIN)/python -m benchmarks

# The long attacks; Atheris, which some of them are guided by, is not to be had for every Python.
torture: $(DEV)
	$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet --no-deps atheris \
	  || echo "Atheris can't be installed here: nothing is guided by coverage"
	$(BIN)/python -m torture

clean:
	rm -rf $(VENV) dist results node_modules

$(READY): pyproject.toml requirements/build.txt requirements/runtime.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "comorb needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(LOCKED) -r requirements/build.txt
	$(BIN)/python $(LOCKED) -r requirements/runtime.txt
	$(BIN)/python $(ALONE) --editable .
	touch $@

$(NODE): package.json package-lock.json .npmrc
	npm ci --no-audit --no-fund
	touch $@

$(DEV): $(READY) requirements/dev.txt
	$(BIN)/python $(LOCKED) -r requirements/dev.txt
	touch $@
