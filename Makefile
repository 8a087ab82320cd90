# The two commands a user needs: `make run` and `make test`. Everything else they make themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LISTEN ?= 127.0.0.1:9092

KIO_OLD := build/kio-0.5.0
KIO_NEW := build/kio-0.6.5
KAFKA_PYTHON_OLD := build/kafka-python-2.0.2

# Apache Kafka in directories of jars: the peers of the differential tests, the Java client, the tools, Streams, and
# Spark's own Kafka connector.
JARS := build/jars
JAR_SETS := kafka-3.9.1 kafka-4.0.1 kafka-4.4.0 kafka-tools-4.3.1 kafka-streams-3.9.1 junit-5.13.4 spark-connector-4.2.0 spring-registry-4.2.0
MVN := $(shell command -v mvn)
# Spark's classes as Java maps them, since the tests start Spark a dozen times; without it they only take longer.
SPARK_CLASSES := build/spark-classes.jsa

# Another schema registry with Confluent's API: the tests compare its answers.
APICURIO_VERSION := 3.0.9
APICURIO := build/apicurio-$(APICURIO_VERSION)/.done

# The wheels that the image is made of; the tests make its files from them, without Docker.
IMAGE_WHEELS := build/image-wheels

# The compiled wheel, and an environment and a copy of the tests for it.
COMPILED := build/compiled

# Clients of other languages, each fetched where its tool chain is; without it its tests are named as not run.
NODE_MODULES := build/node/.done
SARAMA_MEMBER := build/sarama-member
SECURED_CLIENT := build/secured-client
NUMBERED_CLIENT := build/numbered-client
REGISTRY_CLIENT := build/registry-client
# The frameworks of the examples in Python, in an environment of their own: some want older clients than the tests.
EXAMPLES := build/examples-venv
# The examples that Maven tests, with what it needs for that in its own store; then it works without the network.
EXAMPLES_OF_MAVEN := spring testcontainers/java clients/java
EXAMPLE_REQUIREMENTS := $(filter-out examples/airflow/%,$(sort $(wildcard examples/*/requirements.txt examples/*/*/requirements.txt)))
# Airflow takes 300 MB and versions of its own.
AIRFLOW := build/examples-airflow
# The generators of examples/clients, and what their clients need.
CLIENTS := build/example-clients
# What `docker compose` reads its files with.
COMPOSE_READER := build/compose-go/cmd
# Reads .github/workflows.
ACTIONLINT := build/actionlint
OTHER_CLIENTS := $(if $(shell command -v npm),kafkajs $(CLIENTS)/typescript/.done) $(if $(shell command -v go),$(CLIENTS)/go/.done sarama secured-client numbered-client registry-client compose-reader actionlint)

# Python keeps what it compiled, whatever the environment says: the tests start hundreds of brokers.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help run quick matrix coverage examples nightly dist compiled compiled-test wheels docs test fuzz crash simulation fire pipeline-fire standalone situations late-kafka move outgrow secure-move client-suites proxy-suites lint format bench bench-diff waits pictures release-dialogues smoke console-tail java registry registry-calls kerberos kafkajs sarama secured-client numbered-client registry-client compose-reader actionlint generate clean
.DEFAULT_GOAL := help

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

run: $(VENV)/.runtime ## serve on 127.0.0.1:9092 (LISTEN=HOST:PORT: there), data in ./minibroker-data
	$(BIN)/minibroker serve --listen $(LISTEN)

# In CI a failed test leaves a page of its brokers; the workflows keep them.
FAILED_TESTS := $(if $(CI),--kafka-report build/failed-tests)

# What needs neither Java nor a fetched peer: for each commit. Between two edits: ARGS= of `make test`.
quick: $(VENV)/.test ## unit tests, lint and types, without Java, two minutes on two cores
	$(BIN)/python -m pytest tests/unit tests/meta tests/scenario -m 'not java and not slow' -n 2 --dist loadfile $(FAILED_TESTS) $(ARGS)

# The environments stand in build/. A version that is not installed is named.
PYTHONS ?= 3.11 3.12 3.13 3.14
matrix: ## make quick with each Python that is here, from 3.11 to 3.14 (PYTHONS='3.12 3.13': these)
	@failed=; for version in $(PYTHONS); do \
	  if ! python$$version -c '' 2>/dev/null; then echo "make matrix: no python$$version here"; continue; fi; \
	  echo "make matrix: Python $$version"; \
	  $(MAKE) quick VENV=build/python-$$version PYTHON=python$$version || failed="$$failed $$version"; \
	done; \
	if [ -n "$$failed" ]; then echo "make matrix: failed with Python$$failed"; exit 1; fi

# Processes that are killed leave nothing.
COVERED = tests/unit tests/scenario tests/golden tests/property -m 'not java and not slow'
coverage: $(VENV)/.test ## the lines that quick tests run, as a table and in build/coverage/html (ARGS=…: these tests)
	rm -rf build/coverage
	mkdir -p build/coverage
	$(BIN)/python -m coverage run -m pytest -n 2 --dist loadfile $(if $(strip $(ARGS)),$(ARGS),$(COVERED))
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage html --quiet
	$(BIN)/python -m coverage report

# Three processes on two cores: most tests wait for a broker, and half of the processes at most run
# Spark (tests/support/schedule.py). With ARGS nothing is fetched beforehand: a test that misses
# something has it made (tests/support/build_files.py).
KERBEROS := $(if $(shell command -v krb5-config),$(VENV)/.kerberos)
TESTED_WITH := $(KERBEROS) $(KIO_OLD)/.done $(KIO_NEW)/.done $(KAFKA_PYTHON_OLD)/.done $(IMAGE_WHEELS)/.done $(if $(KERBEROS),$(IMAGE_WHEELS)/.kerberos) $(EXAMPLES)/.done java $(if $(MVN),$(SPARK_CLASSES) registry) $(OTHER_CLIENTS)
THIS_MAKE := $(MAKE)
test: $(VENV)/.test $(if $(strip $(ARGS)),,$(TESTED_WITH)) ## run every test (ARGS='tests/unit -k x': these)
ifeq ($(strip $(ARGS)),)
	$(BIN)/python -m pytest -n 3 --dist loadfile $(FAILED_TESTS)
else
	MINIBROKER_MAKE=$(THIS_MAKE) $(BIN)/python -m pytest $(ARGS)
endif

# FRAMES: how many; SEED: of an earlier run, to have it again.
FRAMES ?= 1000000
fuzz: $(VENV)/.test ## 1,000,000 hostile frames of every API and version, new ones each time, 20 minutes (FRAMES=N, SEED=N)
	@seed="$(SEED)"; seed=$${seed:-$$($(BIN)/python -c 'import secrets; print(secrets.randbits(32))')}; \
	echo "make fuzz: SEED=$$seed"; \
	MINIBROKER_FUZZ_FRAMES=$(FRAMES) MINIBROKER_FUZZ_SEED=$$seed MINIBROKER_FUZZ_EXAMPLES=5000 \
	  $(BIN)/python -m pytest tests/fuzz --timeout 0 --hypothesis-profile explore --hypothesis-seed $$seed $(ARGS)

crash: $(VENV)/.test java $(if $(shell command -v go),numbered-client) ## 500 kills -9 and 500 power cuts under load, 500 kills while topics are deleted and for each client, 40 minutes
	MINIBROKER_CRASHES=500 $(BIN)/python -m pytest tests/crash --timeout 0 $(ARGS)

# Each seed is one run; the name of a test that fails has its seed.
SCHEDULES ?= 2000
FIRST ?= 0
simulation: $(VENV)/.test ## three or four brokers on simulated time: 2,000 schedules of faults, 15 minutes (SCHEDULES=N FIRST=SEED)
	MINIBROKER_SCHEDULES=$(SCHEDULES) MINIBROKER_SCHEDULES_FIRST=$(FIRST) $(BIN)/python -m pytest tests/simulation -n 2 $(ARGS)

# KILLS: how many a test; by default as many as the lines say.
fire: $(VENV)/.test java ## exactly once while a broker alone, one of three, one Kafka among them, or its power fails 50 times, 50 minutes (KILLS=N)
	MINIBROKER_FIRE_KILLS=$(or $(KILLS),50) MINIBROKER_FIRE_CLUSTER_KILLS=$(or $(KILLS),50) $(BIN)/python -m pytest tests/fire $(ARGS)

pipeline-fire: $(VENV)/.test java $(if $(MVN),$(SPARK_CLASSES)) ## the pipeline's jobs, brokers and workers killed 50 times each, an hour (KILLS=N)
	MINIBROKER_PIPELINE_KILLS=$(or $(KILLS),50) $(BIN)/python -m pytest tests/pipeline -k killed_anywhere $(ARGS)

console-tail: $(VENV)/.test ## the console follows 100,000 records a second for 20 s: its memory, its nodes, the broker's loop
	MINIBROKER_TAIL_SECONDS=20 $(BIN)/python -m pytest --log-cli-level INFO tests/browser/test_console_tail.py $(ARGS)

standalone: $(VENV)/.test java $(if $(MVN),$(SPARK_CLASSES)) ## the pipeline's jobs on a master and two workers of Spark, with Pythons of their own, 5 minutes
	MINIBROKER_STANDALONE=1 $(BIN)/python -m pytest tests/pipeline/test_standalone.py $(ARGS)

situations: $(VENV)/.test java ## every situation of three brokers on three Kafkas and on mixed clusters too, 15 minutes
	MINIBROKER_KAFKA_CLUSTER=1 $(BIN)/python -m pytest tests/compat_cluster $(ARGS)

LATE_MS ?= 400
LATE_TESTS = $(shell grep -rlE 'kafka_(39|44|address)|new_kafka|KafkaPeer|KraftKafka' tests/integration tests/compat \
  tests/outgrowing tests/pipeline --include='test_*.py')
late-kafka: $(VENV)/.test java ## tests beside Kafkas that learn of each change of a topic, setting or ACL late, 25 minutes (LATE_MS=N)
	MINIBROKER_LATE_METADATA_MS=$(LATE_MS) $(BIN)/python -m pytest $(or $(ARGS),$(LATE_TESTS))

move: $(VENV)/.test java ## three minibrokers become Kafka 3.9 and come back under load; older protocols, 15 minutes
	MINIBROKER_MOVES=1 $(BIN)/python -m pytest tests/compat_cluster/test_move.py \
	  tests/compat_cluster/test_older_protocols.py $(ARGS)

# ROUNDS: how often Kafka takes over and gives back, of each release.
ROUNDS ?= 10
outgrow: $(VENV)/.test java ## Kafka 3.9, 4.0 and 4.4 with KRaft take over and give back ten times, 40 minutes (ROUNDS=N, KILLS=N)
	MINIBROKER_OUTGROW_ROUNDS=$(ROUNDS) MINIBROKER_OUTGROW_KILLS=$(or $(KILLS),40) $(BIN)/python -m pytest tests/outgrowing --timeout 3600 $(ARGS)

secure-move: $(VENV)/.test java ## three minibrokers become secure under load; secured clusters of both kinds of brokers, 10 minutes
	MINIBROKER_SECURE_MOVE=1 $(BIN)/python -m pytest tests/compat_cluster/test_secure_move.py \
	  tests/compat_cluster/test_secured_mixed.py tests/compat_cluster/test_secured_proxy.py $(ARGS)

# The sources of clients with their own suites; they need git, npm and Go, and the network.
KAFKAJS_REPOSITORY ?= https://github.com/tulios/kafkajs
KAFKAJS_COMMIT := 55b0b416308b9e597a5a6b97b0a6fd6b846255dc
SARAMA_VERSION := v1.61.1
SUITES := build/suites
FRANZ_GO_VERSION := v1.22.3
AIOKAFKA_REPOSITORY ?= https://github.com/aio-libs/aiokafka
AIOKAFKA_VERSION := v0.14.0
client-suites: $(VENV)/.test java $(SUITES)/kafkajs/.done $(SUITES)/sarama/.done $(SUITES)/server ## the own suites of kafkajs and sarama on three and five minibrokers, 12 minutes
	MINIBROKER_CLIENT_SUITES=1 $(BIN)/python -m pytest tests/clients $(ARGS)

proxy-suites: $(VENV)/.test java $(SUITES)/franz-go/.done $(SUITES)/aiokafka/.done ## the own suites of aiokafka and franz-go directly and through the proxy, as a table (ARGS='--suite aiokafka --kafka 4.3.1': these)
	$(BIN)/python -m tests.clients.proxy_suites $(ARGS)

# Its helpers name the ports of its containers.
$(SUITES)/kafkajs/.done:
	rm -rf $(@D)
	git clone --quiet $(KAFKAJS_REPOSITORY) $(@D)
	git -C $(@D) checkout --quiet $(KAFKAJS_COMMIT)
	sed -i.before -e 's/:9092`/:$${process.env.MINIBROKER_PORT_0}`/g' -e 's/:9095`/:$${process.env.MINIBROKER_PORT_1}`/' \
	  -e 's/:9098`/:$${process.env.MINIBROKER_PORT_2}`/' -e 's/port: 9092/port: Number(process.env.MINIBROKER_PORT_0)/' \
	  $(@D)/testHelpers/index.js
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(@D)
	touch $@

$(SUITES)/sarama/.done:
	rm -rf $(@D)
	mkdir -p $(SUITES)
	cp -R "$$(cd tests/support/go && go mod download -json github.com/IBM/sarama@$(SARAMA_VERSION) \
	  | sed -n 's/^\t"Dir": "\(.*\)",$$/\1/p')" $(@D)
	chmod -R u+w $(@D)
	touch $@

$(SUITES)/aiokafka/.done:
	rm -rf $(@D)
	git clone --quiet --depth 1 --branch $(AIOKAFKA_VERSION) $(AIOKAFKA_REPOSITORY) $(@D)
	touch $@

# Its settings have a login for the tests of logins only.
$(SUITES)/franz-go/.done:
	rm -rf $(@D)
	mkdir -p $(SUITES)
	cp -R "$$(cd $(SUITES) && go mod download -json github.com/twmb/franz-go@$(FRANZ_GO_VERSION) \
	  | sed -n 's/^\t"Dir": "\(.*\)",$$/\1/p')" $(@D)
	chmod -R u+w $(@D)
	sed -i.before 's/opts = append(opts, DialTLSConfig(testCert))/&; if saslScram != nil { opts = append(opts, SASL(saslScram)) }/' \
	  $(@D)/pkg/kgo/helpers_test.go
	cd $(@D)/pkg/kgo && go test -c -o ../../kgo.test .
	touch $@

$(SUITES)/server:
	GOBIN=$(abspath $(@D)) go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0

# One that fails does not keep the others from running; `make fuzz` prints its seed.
nightly: ## crash, simulation, fire, pipeline-fire, situations, move and fuzz with a new seed, three and a half hours
	$(MAKE) --keep-going crash simulation fire pipeline-fire situations move fuzz

dist: $(VENV)/.test ## source archive and wheel in dist/; the wheel tried in an empty environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m tests.support.installed dist/*.whl

# The tests of the rules of a broker; those of the repository itself are about sources.
COMPILED_TESTS = tests/unit tests/property tests/fuzz tests/golden tests/compat
compiled: $(COMPILED)/.wheel ## the wheel with compiled hot modules, in build/compiled/wheels; needs a C compiler, a minute

compiled-test: $(COMPILED)/.wheel $(if $(strip $(ARGS)),,$(KIO_OLD)/.done $(KIO_NEW)/.done java $(OTHER_CLIENTS)) ## unit, property, fuzz and differential tests on the compiled wheel, 25 minutes (ARGS=…: these tests)
	$(BIN)/python -m tests.support.compiled $(COMPILED)/wheels/minibroker-*.whl $(COMPILED)
	cd $(COMPILED)/tree && env -u PYTHONPATH ../environment/bin/python -m pytest -n 3 --dist loadfile $(if $(strip $(ARGS)),$(ARGS),$(COMPILED_TESTS))

wheels: $(VENV)/.test ## which dependencies have a wheel for each system and Python, asked of the package index, 5 minutes
	$(BIN)/python -m tests.support.wheels

lint: $(VENV)/.test ## format check, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.test ## rewrite the sources in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: $(VENV)/.test ## protocol_specs/ → minibroker/kafka/protocol/; verbs and control API → docs/reference
	$(BIN)/python -m protocol_specs.codegen
	$(BIN)/python -m minibroker.cli.reference docs/reference/command-line.md
	$(BIN)/python -m minibroker.control.description

$(VENV)/.runtime: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[uvloop,regex]'
	touch $@

$(VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $(VENV)/.runtime $@

# Built from its source, with libkrb5-dev, so it is no part of .test. Its speed does not matter to the tests.
$(VENV)/.kerberos: $(VENV)/.test
	CFLAGS=-O0 $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[kerberos]' && touch $@ || \
	  echo "make kerberos: gssapi could not be built, so the tests of Kerberos are not run" >&2

kerberos: $(VENV)/.kerberos ## what the tests of Kerberos need in Python (Debian: apt install libkrb5-dev)

# Two ages of one foreign codec: 0.5.0 knows every old version, 0.6.5 the newest ones.
build/kio-%/.done: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target $(@D) kio==$*
	touch $@

# The last kafka-python that speaks as clients of Kafka 0.8 to 0.10 did, with the codecs that it wants for that.
build/kafka-python-%/.done: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(@D) \
	  kafka-python==$* xxhash python-snappy
	touch $@

$(IMAGE_WHEELS)/.done: $(VENV)/.test
	rm -rf $(@D)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --wheel-dir $(@D) '.[uvloop,regex,control,registry,security]' 'hatchling>=1.25'
	rm -f $(@D)/minibroker-*
	touch $@

# The image has it always; the tests have it where libkrb5 can be built with (Debian: libkrb5-dev).
$(IMAGE_WHEELS)/.kerberos: $(IMAGE_WHEELS)/.done
	CFLAGS=-O0 $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --wheel-dir $(@D) 'gssapi>=1.9'
	touch $@

EXAMPLES_INSTALL = -m pip install --quiet --disable-pip-version-check --editable '.[testing]' --editable '.[control]' pytest-timeout

# What compiles stands in .test, so nothing is fetched. The hook writes nothing into the sources.
$(COMPILED)/.wheel: .ci/compiled_wheel.py $(shell find minibroker -name '*.py') $(VENV)/.test
	rm -rf $(@D)/wheels
	HATCH_BUILD_HOOK_ENABLE_CUSTOM=1 $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps \
	  --no-build-isolation --wheel-dir $(@D)/wheels .
	touch $@

$(EXAMPLES)/.done: pyproject.toml $(EXAMPLE_REQUIREMENTS)
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(EXAMPLES_INSTALL) $(EXAMPLE_REQUIREMENTS:%=--requirement %)
	touch $@

$(AIRFLOW)/.done: pyproject.toml examples/airflow/requirements.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(EXAMPLES_INSTALL) --requirement examples/airflow/requirements.txt
	touch $@

examples: $(VENV)/.test $(EXAMPLES)/.done $(AIRFLOW)/.done java $(OTHER_CLIENTS) ## every project of examples/, with Airflow, 5 minutes
	MINIBROKER_EXAMPLES=1 $(BIN)/python -m pytest tests/integration/test_examples.py $(ARGS)

# Without Java or Go the brokers that need them are named in the table as not measured.
bench: $(VENV)/.test ## side by side with Apache Kafka and kfake, 15 minutes (ARGS=--quick: less)
	-$(MAKE) java
	$(BIN)/python -m benchmarks $(ARGS)

# Fetched for these recordings alone; the tests read what is recorded.
RECORDED_RELEASES := kafka-0.11.0.3 kafka-1.1.1 kafka-2.8.2 kafka-3.9.1
release-dialogues: $(VENV)/.test $(RECORDED_RELEASES:%=$(JARS)/%/.done) ## record anew how Kafka 0.11 to 3.9 answer, for serve --as
	$(BIN)/python -m tests.golden.record_releases $(ARGS)

# In turns, so that the machine's speed cancels out. ARGS='--rounds 9 --rows raw': more, or less.
# ARGS=--instructions: counted by valgrind, in 2 minutes, also beside other work.
bench-diff: $(VENV)/.test ## the broker of this checkout beside another commit's, 20 minutes (BASE=COMMIT, ARGS='--rows raw,start': these)
	$(BIN)/python -m benchmarks.diff $(BASE) $(ARGS)

pictures: $(VENV)/.test ## record anew the conversations in docs/how-to/pictures, with real clients
	$(BIN)/python -m tests.support.pictures

docs: $(VENV)/.test ## the pages of docs/ as a site, in build/docs
	$(BIN)/python -m docs.site.pages build/docs
	$(BIN)/zensical build --strict --config-file build/docs/mkdocs.yml
	@echo build/docs/site/index.html

# A consumer that starts at the end of a topic; the test writes behind kafka.wait_for_group.
RUNS ?= 1000
waits: $(VENV)/.test java ## 1,000 runs of each client: a record that is written behind wait_for_group is read, 15 minutes (RUNS=N)
	MINIBROKER_WAITS=$(RUNS) $(BIN)/python -m pytest tests/integration/test_waits.py $(ARGS)

smoke: $(VENV)/.test java ## 10,000 records through every client, across a stop, a kill and a restart
	$(BIN)/python -m tests.support.smoke $(ARGS)

ifeq ($(MVN),)
java:
	@echo "make java: no Maven here, so the tests marked java will fail; install Java 17 and Maven (Debian: apt install openjdk-17-jdk-headless maven)" >&2
else
java: $(JAR_SETS:%=$(JARS)/%/.done) $(EXAMPLES_OF_MAVEN:%=build/maven/%/.done) ## fetch the jars of Apache Kafka that the tests run
endif

# Fetched beside and moved when whole: an interrupted fetch leaves no half directory.
$(JARS)/%/.done: tests/support/java/%/pom.xml
	rm -rf $(@D) $(@D).part
	$(MVN) --quiet --batch-mode --file $< org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies \
	  -DoutputDirectory=$(abspath $(@D)).part
	mv $(@D).part $(@D)
	touch $@

# No test has this name: Maven generates clients, compiles the example and fetches what runs its tests.
build/maven/%/.done: examples/%/pom.xml minibroker/control/openapi.json
	rm -rf $(@D)
	mkdir -p $(dir $(@D)) build/maven/clients
	cp minibroker/control/openapi.json build/maven/clients
	cp -R examples/$* $(@D)
	$(MVN) --quiet --batch-mode --file $(@D)/pom.xml test '-Dtest=*#none' -Dsurefire.failIfNoSpecifiedTests=false
	touch $@

$(CLIENTS)/typescript/.done: examples/clients/typescript/package.json examples/clients/typescript/package-lock.json
	rm -rf $(@D) $(@D).part
	mkdir -p $(@D).part
	cp $^ $(@D).part
	npm ci --silent --prefix $(@D).part
	mv $(@D).part $(@D)
	touch $@

# The modules and the generator go to Go's own stores.
$(CLIENTS)/go/.done: examples/clients/go/go.mod examples/clients/go/go.sum
	cd $(<D) && go mod download && go tool oapi-codegen -version >/dev/null
	mkdir -p $(@D)
	touch $@

registry-calls: $(VENV)/.test $(APICURIO) ## ask Apicurio's registry again what it says of 125 changes of schemas, 1 minute
	$(BIN)/python -m tests.compat_registry.record

registry: $(APICURIO) ## fetch the other schema registry, which the tests ask beside minibroker's

# The artifact is an archive of the jars.
$(APICURIO):
	rm -rf $(@D) $(@D).part
	mkdir -p $(@D).part
	$(MVN) --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:2.8:copy \
	  -Dartifact=io.apicurio:apicurio-registry-app:$(APICURIO_VERSION):tar.gz:all -DoutputDirectory=$(abspath $(@D)).part
	tar -xzf $(@D).part/*.tar.gz -C $(@D).part
	rm $(@D).part/*.tar.gz
	mv $(@D).part $(@D)
	touch $@

$(SPARK_CLASSES): tests/pipeline/spark_classes.py $(VENV)/.test
	rm -f $@ $@.part
	mkdir -p $(@D)
	$(BIN)/python -m tests.pipeline.spark_classes $@.part >$@.log 2>&1 || { cat $@.log; exit 1; }
	mv $@.part $@

kafkajs: $(NODE_MODULES) ## fetch the clients that the tests run with Node

$(NODE_MODULES): tests/support/node/package.json tests/support/node/package-lock.json
	rm -rf $(@D) $(@D).part
	mkdir -p $(@D).part
	cp $^ $(@D).part
	npm ci --silent --prefix $(@D).part
	mv $(@D).part $(@D)
	touch $@

sarama: $(SARAMA_MEMBER) ## build the member of groups that the tests run, in Go

$(SARAMA_MEMBER): tests/support/go/main.go tests/support/go/go.mod tests/support/go/go.sum
	cd $(<D) && go build -o $(abspath $@) .

secured-client: $(SECURED_CLIENT) ## build sarama and franz-go as clients that log in, for the tests

$(SECURED_CLIENT): $(wildcard tests/support/go/secured/*.go) tests/support/go/go.mod tests/support/go/go.sum
	cd tests/support/go && go build -o $(abspath $@) ./secured

numbered-client: $(NUMBERED_CLIENT) ## build franz-go as an idempotent producer, for the tests of crashes

$(NUMBERED_CLIENT): tests/support/go/numbered/main.go tests/support/go/go.mod tests/support/go/go.sum
	cd tests/support/go && go build -o $(abspath $@) ./numbered

registry-client: $(REGISTRY_CLIENT) ## build franz-go as a client of schema registries, for the tests

$(REGISTRY_CLIENT): tests/support/go/registry/main.go tests/support/go/go.mod tests/support/go/go.sum
	cd tests/support/go && go build -o $(abspath $@) ./registry

compose-reader: $(COMPOSE_READER) ## fetch what reads docker-compose.yml in the tests

$(COMPOSE_READER):
	GOBIN=$(abspath $(@D)) go install github.com/compose-spec/compose-go/v2/cmd@v2.16.2

actionlint: $(ACTIONLINT) ## fetch what reads the workflows in the tests

$(ACTIONLINT):
	GOBIN=$(abspath $(@D)) go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

clean: ## remove what was made (not the data directory)
	rm -rf $(VENV) build dist
