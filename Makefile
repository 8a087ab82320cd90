# The two commands a user needs: `make run` and `make test`. Everything else they make themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LISTEN ?= 127.0.0.1:9092

KIO_OLD := build/kio-0.5.0
KIO_NEW := build/kio-0.6.5

.PHONY: help run test lint format bench smoke generate clean
.DEFAULT_GOAL := help

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(VENV)/.runtime ## serve on $(LISTEN), data in ./minibroker-data
	$(BIN)/minibroker serve --listen $(LISTEN)

test: $(VENV)/.test $(KIO_OLD)/.done $(KIO_NEW)/.done java ## run every test
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.test ## format check, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.test ## rewrite the sources in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: $(VENV)/.test ## protocol_specs/ → minibroker/protocol/
	$(BIN)/python -m minibroker.codegen

$(VENV)/.runtime: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $(VENV)/.runtime $@

# Two ages of one foreign codec: 0.5.0 knows every old version, 0.6.5 the newest ones.
build/kio-%/.done: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target $(@D) kio==$*
	touch $@

clean: ## remove what was made (not the data directory)
	rm -rf $(VENV) build dist
