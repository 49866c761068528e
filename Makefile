# Every target installs what it needs first. The environment is created once and reused.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Compiled modules make the second run start faster.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test clients-test histories hazards mutate soak conformance differential kills check pyright format bench bench-peers docs real lock schemas clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z%-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements/dev.txt pyproject.toml operators/pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "fairlead needs Python 3.11 or newer, and '$(PYTHON)' was not found: install it or set PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "fairlead needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1): set PYTHON=/path/to/a/newer/python3"; exit 1; }
	@echo "creating the environment in $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV) || { echo "could not create $(VENV): is Python's venv module installed (Debian: python3-venv)?"; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt || { echo "could not install the pinned packages of requirements/dev.txt: is there a network, and a compiler if your platform has no wheels?"; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . -e operators
	@touch $@

demo: $(STAMP) ## run the reference systems on the embedded server, the old way and with fairlead
	@$(BIN)/fairlead demo

test: $(STAMP) ## run the tests, also on a real API server after make real; ARGS="-k name" selects tests
	@$(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

conformance: $(STAMP) ## replay recorded requests of a real API server on the embedded one; ARGS=--restart restarts it before each
	@$(BIN)/python tests/conformance/replay.py $(ARGS)

kills: $(STAMP) ## kill -9 a server with --data during writes, 100 times
	@FAIRLEAD_KILLS=100 $(BIN)/python -m pytest -q -s --timeout 1800 tests/server/storage/durable/test_kill.py

CLIENTS := $(VENV)/clients
$(CLIENTS)/.installed: $(STAMP) requirements/clients.txt
	@echo "installing third-party clients in $(CLIENTS) (once)"
	@$(PYTHON) -m venv $(CLIENTS)
	@$(CLIENTS)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/clients.txt || { echo "could not install the pinned packages of requirements/clients.txt: is there a network?"; exit 1; }
	@touch $@

clients-test: $(CLIENTS)/.installed ## run kubectl and third-party Python and Go clients against the embedded server
	@! command -v go >/dev/null || (cd tests/clients/go && go build -o /dev/null .)
	@FAIRLEAD_REQUIRE_CLIENTS=1 $(BIN)/python -m pytest tests/clients $(ARGS)

N    ?= 500
SEED ?= 0
differential: $(STAMP) ## run random requests on a real and on the embedded server and compare: make differential N=1000 SEED=7
	@$(BIN)/python -m tests.differential.run -n $(N) --seed $(SEED) $(if $(RESULTS),--results $(RESULTS))

histories: $(STAMP) ## run random sequences of our writes and those of other clients: make histories N=5000 SEED=7
	@FAIRLEAD_HISTORIES=$(N) $(BIN)/python -m pytest -q -s --timeout 0 --hypothesis-profile=explore --hypothesis-seed=$(SEED) tests/writes/test_histories.py $(ARGS)

hazards: $(STAMP) ## show how naive writes go wrong and how ours behave, on each server
	@$(BIN)/python scripts/hazards.py

mutate: $(STAMP) ## remove each guard of the writes alone and check that a test fails
	@$(BIN)/python scripts/mutation/run.py --generic 24 --table docs/evidence/guards.md

soak: $(STAMP) ## run ten minutes of churn and faults and look for leaks; MINUTES=1 runs one
	@$(BIN)/python scripts/soak.py --minutes $(or $(MINUTES),10)

check: $(STAMP) ## check format, lint, types and import layers
	@echo "ruff format" && $(BIN)/ruff format --check --quiet .
	@echo "ruff check" && $(BIN)/ruff check --quiet .
	@echo "mypy --strict" && $(BIN)/mypy
	@echo "import-linter" && $(BIN)/lint-imports

PYRIGHT := $(VENV)/pyright
$(PYRIGHT)/.installed: $(STAMP)
	@command -v npm >/dev/null || { echo "make pyright needs npm: https://nodejs.org"; exit 1; }
	@npm install --silent --no-audit --no-fund --prefix $(PYRIGHT) pyright@1.1.414
	@touch $@

pyright: $(PYRIGHT)/.installed ## check the types of docs/examples with pyright
	@$(BIN)/python -m pytest -q tests/project/test_public_api.py $(ARGS)

real: ## build a real kube-apiserver (once) for the tests that need one
	@scripts/real/build

suite-%: $(STAMP) ## run another project's tests on both servers: make suite-kube-rs (scripts/suites lists them)
	@$(BIN)/python scripts/suites/run.py $* $(if $(CHECKOUT),--checkout $(CHECKOUT)) $(if $(ONLY),--only $(ONLY))

PEERS := $(VENV)/peers
$(PEERS)/.installed: $(STAMP) requirements/peers.txt
	@echo "installing the frameworks that make bench compares with in $(PEERS) (once)"
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/peers.txt || { echo "could not install the pinned packages of requirements/peers.txt: is there a network?"; exit 1; }
	@touch $@

bench-peers: $(PEERS)/.installed ## install the frameworks that make bench compares with

bench: $(PEERS)/.installed ## run all benchmarks and write docs/benchmarks.md; QUICK=1 runs smaller ones
	@$(BIN)/python bench/run.py $(if $(QUICK),--quick)

DOCS := $(VENV)/.docs
$(DOCS): $(STAMP) requirements/docs.txt
	@echo "installing the documentation builder (once)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/docs.txt || { echo "could not install the pinned packages of requirements/docs.txt: is there a network?"; exit 1; }
	@touch $@

docs: $(DOCS) ## build the documentation in site/; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "built site/index.html"

format: $(STAMP) ## format the code and apply lint fixes
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --fix --quiet .

lock: ## update the pinned development dependencies and their hashes
	@command -v uv >/dev/null || { echo "make lock needs uv: pip install uv"; exit 1; }
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --extra cel --extra lint --extra otel -o requirements/dev.txt pyproject.toml requirements/dev.in
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -c requirements/dev.txt -o requirements/docs.txt requirements/docs.in
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -o requirements/clients.txt requirements/clients.in
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -o requirements/peers.txt requirements/peers.in
	@echo "updated requirements/*.txt"

schemas: ## regenerate the schemas of the built-in kinds: make schemas SERVER=https://127.0.0.1:PORT TOKEN=T
	@command -v go >/dev/null || { echo "make schemas needs Go: https://go.dev/dl"; exit 1; }
	@[ -n "$(SERVER)" ] || { echo "make schemas reads discovery from a running kube-apiserver: set SERVER=https://127.0.0.1:PORT TOKEN=T"; exit 1; }
	@cd scripts/schemas && go run . -server "$(SERVER)" -token "$(TOKEN)" > builtin.json
	@mv scripts/schemas/builtin.json src/fairlead/server/schema/builtin.json && echo "regenerated src/fairlead/server/schema/builtin.json"

clean: ## remove everything that the targets created
	@rm -rf $(VENV) dist build site .mypy_cache .ruff_cache .import_linter_cache .hypothesis
