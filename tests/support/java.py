"""Java on this machine: whether it can run Apache Kafka, and how a class is started.

The jars come from `make java` (build/jars), one directory for each set. If something is missing,
tests that need it fail with one sentence; they never skip.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.support.build_files import BUILD, ROOT, MissingError, alone, required

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

JARS = BUILD / "jars"
CLASSES = BUILD / "classes"
SOURCES = ROOT / "tests" / "support" / "java"

KAFKA_39 = JARS / "kafka-3.9.1"
KAFKA_40 = JARS / "kafka-4.0.1"
KAFKA_44 = JARS / "kafka-4.4.0"
TOOLS_43 = JARS / "kafka-tools-4.3.1"
STREAMS_39 = JARS / "kafka-streams-3.9.1"
JUNIT_5 = JARS / "junit-5.13.4"
SPARK_CONNECTOR = JARS / "spark-connector-4.2.0"
SPRING_REGISTRY = JARS / "spring-registry-4.2.0"

OLDEST_JAVA = 17
TOOL_SECONDS = 500

# Small and quick to start: one compiler tier, the simplest collector, a bounded heap.
JVM_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

SPARK_OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss4m -Djdk.lang.Process.launchMechanism=VFORK"
)
"""Options of Spark's Java; VFORK starts programs directly.

Hadoop starts `readlink` and `chmod` thirty times for each batch of a stream, and by default Java
puts a program of its own in between.
"""
SPARK_OPTIONS_VARIABLE = "SPARK_SUBMIT_OPTS"
"""The variable with such options for Spark's own start script."""

INSTALL = "(Debian: apt install openjdk-17-jdk-headless maven)"


@functools.cache
def missing_java() -> str | None:
    """Return one sentence that names what to install, or None when Java is here."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        return f"Java {OLDEST_JAVA} is not installed: install it and Maven {INSTALL}"
    answer = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    if match is None or int(match.group(1)) < OLDEST_JAVA:
        version = match.group(1) if match else "unknown"
        return (
            f"Java {OLDEST_JAVA} or newer is needed and {version} was found; install it {INSTALL}"
        )
    return None


def class_path(*sets: Path, classes: Path | None = None) -> str:
    """Return every jar of these sets, `classes` before them, as Java takes it.

    Raises:
        MissingError: a set is missing; names make's target.
    """
    for jars in sets:
        required(jars / ".done")
    directories = [] if classes is None else [str(classes)]
    return ":".join([*directories, *(f"{jars}/*" for jars in sets)])


def java_command(
    jars: Path,
    main_class: str,
    *arguments: str,
    options: Sequence[str] = (),
    classes: Path | None = None,
    jvm: Sequence[str] = JVM_OPTIONS,
) -> list[str]:
    """Return the command line that runs `main_class` with every jar of `jars`, `classes` before.

    `jvm`: heap and collector, instead of those of tests. Raises MissingError.
    """
    path = class_path(jars, classes=classes)
    return ["java", *jvm, *options, "-cp", path, main_class, *arguments]


def log_option(name: str) -> str:
    """Return the option that makes Kafka's log go to stderr: all of `broker`, `tools` warnings."""
    return f"-Dlog4j.configuration=file:{SOURCES / f'{name}.log4j.properties'}"


@functools.cache
def compiled(name: str, jars: Path = KAFKA_44, sources: Path = SOURCES) -> Path:
    """Return the directory with the class files of `name`.java, made when the source is newer.

    Raises:
        MissingError: no Java compiler, no jars, or it does not compile; says why.
    """
    sentence = missing_java()
    if sentence is not None:
        raise MissingError(sentence)
    source = sources / f"{name}.java"
    directory = CLASSES / name
    class_file = directory / f"{name}.class"
    command = ["javac", "-cp", class_path(jars), "-d", str(directory), str(source)]
    with alone():
        if not class_file.exists() or class_file.stat().st_mtime < source.stat().st_mtime:
            directory.mkdir(parents=True, exist_ok=True)
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise MissingError(f"{name}.java does not compile: {done.stderr}")
    return directory


def run_java(
    jars: Path,
    main_class: str,
    *arguments: str,
    timeout_s: float = TOOL_SECONDS,
    classes: Path | None = None,
    with_errors: bool = True,
    stdin: str | None = None,
) -> str:
    """Run to the end and return what it printed: both streams, or stdout alone. `stdin`: its input.

    Raises:
        AssertionError: the exit code was not 0; carries the output.
    """
    done = subprocess.run(
        java_command(jars, main_class, *arguments, options=[log_option("tools")], classes=classes),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if with_errors else subprocess.PIPE,
        text=True,
        input=stdin,
        timeout=timeout_s,
        check=False,
    )
    output = done.stdout[-4000:] + (done.stderr or "")[-4000:]
    assert done.returncode == 0, f"{main_class} ended with {done.returncode}:\n{output}"
    return done.stdout
