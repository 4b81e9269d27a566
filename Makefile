# Everything here is also one plain command; see README.md.
BIN := .venv/bin

.PHONY: setup demo test audit explore clients versions superset lint format lock bench

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	python3 -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e '.[test,lint]'
	touch $@

demo: setup
	$(BIN)/noisegate demo

test: setup
	$(BIN)/pytest -n auto

audit: setup
	$(BIN)/pytest -n auto --maxschedchunk 1 -m long

explore: setup
	NOISEGATE_EXPLORE=1 NOISEGATE_EXAMPLES=2000 $(BIN)/pytest -n auto tests/properties

clients: setup
	$(BIN)/python -m tests.clients

versions: setup
	$(BIN)/python -m tests.versions

superset: setup
	$(BIN)/pytest -m superset tests/superset

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: setup
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench.bounds
	$(BIN)/python -m tests.bench.bars

lock:
	rm -rf build/lock && python3 -m venv build/lock
	build/lock/bin/pip install -q '.[test,lint,clients]'
	(sed -n '/^#/p' constraints.txt; build/lock/bin/pip freeze | grep -v '^noisegate') > build/constraints.txt
	mv build/constraints.txt constraints.txt
