# Everything here is also one plain command; see README.md.
BIN := .venv/bin

.PHONY: setup demo unit test test-all audit explore fuzz soak clients versions browser superset lint format docs package lock bench

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	python3 -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e '.[test,lint]'
	touch $@

demo: setup
	$(BIN)/noisegate demo

unit: setup
	$(BIN)/pytest -n auto --hypothesis-profile=quick -m "not database and not slow and not extended and not long and not superset and not clients and not too_old and not browser"

test: setup
	$(BIN)/pytest -n auto

test-all: setup test
	$(BIN)/pytest -n auto --maxschedchunk 1 -m "extended and not long and not superset and not clients and not too_old and not browser"

audit: setup
	$(BIN)/pytest -n auto --maxschedchunk 1 -m long

soak: setup
	$(BIN)/python -m tests.soak --minutes 60 --proxies 3 --ledger postgres

fuzz: setup
	$(BIN)/pip install -q -c constraints.txt -e '.[test,fuzz]'
	$(BIN)/python -m tests.fuzz wire --seconds 600
	$(BIN)/python -m tests.fuzz statements --seconds 3600

explore: setup
	NOISEGATE_EXPLORE=1 NOISEGATE_EXAMPLES=2000 $(BIN)/pytest -n auto tests/properties

clients: setup
	$(BIN)/python -m tests.clients

versions: setup
	$(BIN)/python -m tests.versions

browser: setup
	$(BIN)/pytest -m browser tests/browser

superset: setup
	$(BIN)/pytest -m superset tests/superset

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: setup
	$(BIN)/pip install -q -c constraints.txt -e '.[docs]'
	$(BIN)/python -m tests.site

package: setup
	$(BIN)/python -m build --outdir dist

format: setup
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: setup
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.latency
	$(BIN)/python -m tests.bench.planning
	$(BIN)/python -m tests.bench.inner
	$(BIN)/python -m tests.bench.bounds
	$(BIN)/python -m tests.bench.bars
	$(BIN)/python -m tests.bench.usefulness

lock:
	rm -rf build/lock && python3 -m venv build/lock
	build/lock/bin/pip install -q '.[test,lint,clients,docs]'
	(sed -n '/^#/p' constraints.txt; build/lock/bin/pip freeze | grep -v '^noisegate') > build/constraints.txt
	mv build/constraints.txt constraints.txt
	build/lock/bin/python docker/lock.py
	build/lock/bin/python docker/sbom.py
