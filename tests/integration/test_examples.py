"""The projects in `examples/`, each run as its users would: in a directory and a process of its
own, with nothing of this suite.

Java, Go and Node show the protocol for every language, in some twenty lines each (imports and
closing brackets not counted): start the process, wait for its ready file, talk to the control API,
use a client. Where a tool chain is missing its example is named as not run.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.build_files import BUILD, required
from tests.support.examples import EXAMPLES, copy_of, python_project, run
from tests.support.groups import NODE_MODULES, SARAMA_MEMBER
from tests.support.java import JUNIT_5, KAFKA_44, class_path

FRAMEWORKS = dict.fromkeys(
    (
        "faststream",
        "taskiq",
        "django_outbox",
        "opentelemetry",
        "two_plugins",
        "testcontainers/python",
        "clients/python",
    ),
    "examples-venv",
)
"""Project → the environment below build/ with its framework."""
if os.environ.get("MINIBROKER_EXAMPLES") == "1":  # make examples
    FRAMEWORKS["airflow"] = "examples-airflow"
CLIENTS = BUILD / "example-clients"
"""The needs of the generators of `examples/clients`."""
QUICK_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
LOOP_SCOPE = "asyncio_default_fixture_loop_scope=function"
IMPORT_WARNING = "ignore::DeprecationWarning"  # kafka-python's, while it is imported


def skip_without(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"not run: {program} is not installed")


@pytest.mark.parametrize("project", ["orders_service", "dead_letters", "windowed_counter"])
def test_a_project_in_python(project: str, tmp_path: Path) -> None:
    directory = copy_of(project, tmp_path)
    options = ["-W", "error", "-W", IMPORT_WARNING, "-o", LOOP_SCOPE, "--timeout", "500"]
    output = run([sys.executable, "-m", "pytest", *options], directory)
    assert " passed" in output
    assert "skipped" not in output


@pytest.mark.parametrize("project", FRAMEWORKS)
def test_a_framework_in_python(project: str, tmp_path: Path) -> None:
    """One has another plugin with fixtures of the same names, which skips its own test."""
    directory, python = python_project(project, FRAMEWORKS[project], tmp_path)
    other_plugin = [] if project == "two_plugins" else ["-p", "no:kafka_broker"]
    options = ["-rs", "-o", LOOP_SCOPE, "--timeout", "500", *other_plugin]
    output = run([str(python), "-m", "pytest", *options], directory)
    assert " passed" in output
    assert output.count("SKIPPED") == output.count("Tests requiring a Kafka broker are not enabled")


@pytest.mark.java
def test_the_protocol_in_java(tmp_path: Path) -> None:
    """Runs with JUnit 5."""
    path = class_path(KAFKA_44, JUNIT_5, classes=tmp_path)
    source = str(EXAMPLES / "java" / "OrdersTest.java")
    run(["javac", "-cp", path, "-d", str(tmp_path), source], tmp_path)
    junit = ["org.junit.platform.console.ConsoleLauncher", "execute", "--select-class"]
    output = run(["java", *QUICK_JAVA.split(), "-cp", path, *junit, "OrdersTest"], tmp_path)
    assert "1 tests successful" in output


@pytest.mark.java
@pytest.mark.parametrize("project", ["spring", "testcontainers/java", "clients/java"])
def test_a_project_of_maven(project: str, tmp_path: Path) -> None:
    required(BUILD / "maven" / project / ".done")
    directory = copy_of(project, tmp_path)
    output = run(["mvn", "--offline", "--batch-mode", "test"], directory, MAVEN_OPTS=QUICK_JAVA)
    assert "Failures: 0, Errors: 0, Skipped: 0" in output


def test_the_protocol_in_go(tmp_path: Path) -> None:
    skip_without("go")
    required(SARAMA_MEMBER)  # with it came the modules of the example
    directory = copy_of("go", tmp_path)
    assert "--- PASS: Test" in run(["go", "test", "-vet=off", "-v", "."], directory)


def test_the_protocol_in_node(tmp_path: Path) -> None:
    skip_without("node")
    required(NODE_MODULES.parent / ".done")
    directory = copy_of("node", tmp_path)
    command = ["node", "--test", "orders.test.js"]
    assert "# pass 1" in run(command, directory, NODE_PATH=str(NODE_MODULES))


def test_a_client_in_go(tmp_path: Path) -> None:
    skip_without("go")
    required(CLIENTS / "go" / ".done")
    directory = copy_of("clients/go", tmp_path)
    run(["go", "generate", "./..."], directory)
    assert "--- PASS: Test" in run(["go", "test", "-vet=off", "-v", "."], directory)


def test_a_client_in_typescript(tmp_path: Path) -> None:
    skip_without("npm")
    packages = required(CLIENTS / "typescript" / ".done").parent
    directory = copy_of("clients/typescript", tmp_path)
    (directory / "node_modules").symlink_to(packages / "node_modules")
    assert "# pass 1" in run(["npm", "test"], directory)
