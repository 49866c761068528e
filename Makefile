# Every target makes what it needs, says what it does, and works a second time at once.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# compiled modules are why a second run starts at once
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test clients-test histories hazards mutate soak conformance differential kills check pyright format bench bench-peers docs real lock schemas clean

help: ## what can be made
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements/dev.txt pyproject.toml operators/pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "fairlead needs Python 3.11 or newer, and '$(PYTHON)' is not there: install it or say PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "fairlead needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1): say PYTHON=/path/to/a/newer/python3"; exit 1; }
	@echo "making the environment in $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV) || { echo "could not make $(VENV): is Python's venv module installed (Debian: python3-venv)?"; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt || { echo "could not install the pinned packages of requirements/dev.txt: is there a network, and a compiler if your platform has no wheels?"; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . -e operators
	@touch $@

demo: $(STAMP) ## run the systems on the embedded server, old way against new
	@$(BIN)/fairlead demo

test: $(STAMP) ## run the tests, on a real API server too where make real has been run; ARGS="-k name" for some
	@$(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

conformance: $(STAMP) ## replay recorded requests of a real API server on the embedded one; ARGS=--restart restarts it before each
	@$(BIN)/python tests/conformance/replay.py $(ARGS)

kills: $(STAMP) ## kill -9 a server with --data during writes, 100 times
	@FAIRLEAD_KILLS=100 $(BIN)/python -m pytest -q -s --timeout 1800 tests/server/storage/durable/test_kill.py

CLIENTS := $(VENV)/clients
$(CLIENTS)/.installed: $(STAMP) requirements/clients.txt
	@echo "installing other people's clients in $(CLIENTS) (once)"
	@$(PYTHON) -m venv $(CLIENTS)
	@$(CLIENTS)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/clients.txt || { echo "could not install the pinned packages of requirements/clients.txt: is there a network?"; exit 1; }
	@touch $@

clients-test: $(CLIENTS)/.installed ## kubectl, Python and Go clients of other people against the embedded server
	@! command -v go >/dev/null || (cd tests/clients/go && go build -o /dev/null .)
	@FAIRLEAD_REQUIRE_CLIENTS=1 $(BIN)/python -m pytest tests/clients $(ARGS)

N    ?= 500
SEED ?= 0
differential: $(STAMP) ## random histories on a real server and on the embedded one: make differential N=1000 SEED=7
	@$(BIN)/python -m tests.differential.run -n $(N) --seed $(SEED) $(if $(RESULTS),--results $(RESULTS))

histories: $(STAMP) ## random histories of our writes and foreign ones, drawn by chance: make histories N=5000 SEED=7
	@FAIRLEAD_HISTORIES=$(N) $(BIN)/python -m pytest -q -s --timeout 0 --hypothesis-profile=explore --hypothesis-seed=$(SEED) tests/writes/test_histories.py $(ARGS)

hazards: $(STAMP) ## the ways writes go wrong: the naive write and ours, on each server
	@$(BIN)/python scripts/hazards.py

mutate: $(STAMP) ## remove each guard of the writes singly and see a test fail
	@$(BIN)/python scripts/mutation/run.py --generic 24 --table docs/evidence/guards.md

soak: $(STAMP) ## ten minutes of churn and faults: does anything pile up? MINUTES=1 for less
	@$(BIN)/python scripts/soak.py --minutes $(or $(MINUTES),10)

check: $(STAMP) ## format, lint, types, layers
	@echo "ruff format" && $(BIN)/ruff format --check --quiet .
	@echo "ruff check" && $(BIN)/ruff check --quiet .
	@echo "mypy --strict" && $(BIN)/mypy
	@echo "import-linter" && $(BIN)/lint-imports

PYRIGHT := $(VENV)/pyright
$(PYRIGHT)/.installed: $(STAMP)
	@command -v npm >/dev/null || { echo "make pyright needs npm: https://nodejs.org"; exit 1; }
	@npm install --silent --no-audit --no-fund --prefix $(PYRIGHT) pyright@1.1.414
	@touch $@

pyright: $(PYRIGHT)/.installed ## check the types of docs/examples with pyright as well
	@$(BIN)/python -m pytest -q tests/project/test_public_api.py $(ARGS)

real: ## build a real kube-apiserver, once, for the other half of the tests
	@scripts/real/build

PEERS := $(VENV)/peers
$(PEERS)/.installed: $(STAMP) requirements/peers.txt
	@echo "installing what fairlead is measured against in $(PEERS) (once)"
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/peers.txt || { echo "could not install the pinned packages of requirements/peers.txt: is there a network?"; exit 1; }
	@touch $@

bench-peers: $(PEERS)/.installed ## install what fairlead is measured against, for make bench

bench: $(PEERS)/.installed ## measure everything and write docs/benchmarks.md; QUICK=1 for smaller numbers
	@$(BIN)/python bench/run.py $(if $(QUICK),--quick)

DOCS := $(VENV)/.docs
$(DOCS): $(STAMP) requirements/docs.txt
	@echo "installing what builds the site (once)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/docs.txt || { echo "could not install the pinned packages of requirements/docs.txt: is there a network?"; exit 1; }
	@touch $@

docs: $(DOCS) ## build the documentation into site/; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "site/index.html is there"

format: $(STAMP) ## put the code into shape
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --fix --quiet .

lock: ## pin the development dependencies anew, with hashes
	@command -v uv >/dev/null || { echo "make lock needs uv: pip install uv"; exit 1; }
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --extra cel -o requirements/dev.txt pyproject.toml requirements/dev.in
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -c requirements/dev.txt -o requirements/docs.txt requirements/docs.in
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -o requirements/clients.txt requirements/clients.in
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -o requirements/peers.txt requirements/peers.in
	@echo "requirements/*.txt are pinned anew"

schemas: ## regenerate the schemas of the built-in kinds: make schemas SERVER=https://127.0.0.1:PORT TOKEN=T
	@command -v go >/dev/null || { echo "make schemas needs Go: https://go.dev/dl"; exit 1; }
	@[ -n "$(SERVER)" ] || { echo "make schemas reads discovery from a running kube-apiserver: say SERVER=https://127.0.0.1:PORT TOKEN=T"; exit 1; }
	@cd scripts/schemas && go run . -server "$(SERVER)" -token "$(TOKEN)" > builtin.json
	@mv scripts/schemas/builtin.json src/fairlead/server/schema/builtin.json && echo "src/fairlead/server/schema/builtin.json is regenerated"

clean: ## remove what the targets made
	@rm -rf $(VENV) dist build site .mypy_cache .ruff_cache .import_linter_cache .hypothesis
