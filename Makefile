# The two commands a user needs: `make run` and `make test`. Everything else they make themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LISTEN ?= 127.0.0.1:9092

KIO_OLD := build/kio-0.5.0
KIO_NEW := build/kio-0.6.5
KAFKA_PYTHON_OLD := build/kafka-python-2.0.2

# Apache Kafka in three directories of jars: the peers of the differential tests, the Java client, the tools.
JARS := build/jars
JAR_SETS := kafka-3.9.1 kafka-4.4.0 kafka-tools-4.3.1
MVN := $(shell command -v mvn)

.PHONY: help run test lint format bench smoke java generate clean
.DEFAULT_GOAL := help

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(VENV)/.runtime ## serve on $(LISTEN), data in ./minibroker-data
	$(BIN)/minibroker serve --listen $(LISTEN)

test: $(VENV)/.test $(KIO_OLD)/.done $(KIO_NEW)/.done $(KAFKA_PYTHON_OLD)/.done java ## run every test
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

# The last kafka-python that speaks as clients of Kafka 0.8 to 0.10 did, with the codecs that it wants for that.
build/kafka-python-%/.done: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) \
	  kafka-python==$* xxhash python-snappy
	touch $@

# Without Java or Go the brokers that need them are named in the table as not measured.
bench: $(VENV)/.test ## side by side with Apache Kafka and kfake, 15 minutes (ARGS=--quick: less)
	-$(MAKE) java
	$(BIN)/python -m benchmarks $(ARGS)

smoke: $(VENV)/.test java ## 10,000 records through every client, across a stop, a kill and a restart
	$(BIN)/python -m tests.support.smoke $(ARGS)

ifeq ($(MVN),)
java:
	@echo "make java: no Maven here, so the tests marked java will fail; install Java 17 and Maven (Debian: apt install openjdk-17-jdk-headless maven)" >&2
else
java: $(JAR_SETS:%=$(JARS)/%/.done) ## fetch the jars of Apache Kafka that the tests run
endif

# Fetched beside and moved when whole: an interrupted fetch leaves no half directory.
$(JARS)/%/.done: tests/support/java/%/pom.xml
	rm -rf $(@D) $(@D).part
	$(MVN) --quiet --batch-mode --file $< org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies \
	  -DoutputDirectory=$(abspath $(@D)).part
	mv $(@D).part $(@D)
	touch $@

clean: ## remove what was made (not the data directory)
	rm -rf $(VENV) build dist
