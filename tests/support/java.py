"""Java on this machine: whether it can run Apache Kafka, and how a class is started.

The jars come from `make java` (build/jars). What is missing is said in one sentence: tests that
need it fail with that sentence, they never skip.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JARS = ROOT / "build" / "jars"
CLASSES = ROOT / "build" / "classes"
SOURCES = ROOT / "tests" / "support" / "java"

KAFKA_39 = JARS / "kafka-3.9.1"
KAFKA_44 = JARS / "kafka-4.4.0"
TOOLS_43 = JARS / "kafka-tools-4.3.1"
STREAMS_39 = JARS / "kafka-streams-3.9.1"
JUNIT_5 = JARS / "junit-5.13.4"
SPARK_CONNECTOR = JARS / "spark-connector-4.2.0"

OLDEST_JAVA = 17
TOOL_SECONDS = 200

# Small and quick to start: one compiler tier, the simplest collector, a bounded heap.
JVM_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

SPARK_OPTIONS = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss4m -Djdk.lang.Process.launchMechanism=VFORK"
)
"""VFORK: Hadoop starts `readlink` and `chmod` thirty times for each batch of a stream, and Java
puts a program of its own in between unless it is told otherwise."""
SPARK_OPTIONS_VARIABLE = "SPARK_SUBMIT_OPTS"
"""Where Spark's own start script looks for such options."""

INSTALL = "(Debian: apt install openjdk-17-jdk-headless maven)"


@functools.cache
def missing_java() -> str | None:
    """One sentence naming what to install, or None when Java and the jars are here."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        return f"Java {OLDEST_JAVA} is not installed: install it and Maven {INSTALL}"
    answer = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    if found is None or int(found.group(1)) < OLDEST_JAVA:
        version = found.group(1) if found else "unknown"
        return (
            f"Java {OLDEST_JAVA} or newer is needed and {version} was found; install it {INSTALL}"
        )
    for jars in (KAFKA_39, KAFKA_44, TOOLS_43, STREAMS_39, SPARK_CONNECTOR):
        if not (jars / ".done").exists():
            return f"build/jars/{jars.name} is missing: run make java, which needs Maven {INSTALL}"
    return None


def java_command(
    jars: Path,
    main_class: str,
    *arguments: str,
    options: tuple[str, ...] = (),
    classes: Path | None = None,
) -> list[str]:
    """The command line that runs `main_class` with every jar of `jars`, and `classes` before."""
    class_path = f"{jars}/*" if classes is None else f"{classes}:{jars}/*"
    return ["java", *JVM_OPTIONS, *options, "-cp", class_path, main_class, *arguments]


@functools.cache
def compiled(name: str, jars: Path = KAFKA_44) -> Path:
    """Directory with the class files of `name`.java, made when the source is newer."""
    source = SOURCES / f"{name}.java"
    directory = CLASSES / name
    made = directory / f"{name}.class"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        directory.mkdir(parents=True, exist_ok=True)
        command = ["javac", "-cp", f"{jars}/*", "-d", str(directory), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return directory


def run_java(
    jars: Path,
    main_class: str,
    *arguments: str,
    timeout_s: float = TOOL_SECONDS,
    classes: Path | None = None,
    with_errors: bool = True,
) -> str:
    """Run to the end and return what it printed: both streams, or stdout alone.

    Raises:
        AssertionError: the exit code was not 0; carries the output.
    """
    log4j = f"-Dlog4j.configuration=file:{SOURCES / 'tools.log4j.properties'}"
    done = subprocess.run(
        java_command(jars, main_class, *arguments, options=(log4j,), classes=classes),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if with_errors else subprocess.PIPE,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    said = done.stdout[-4000:] + (done.stderr or "")[-4000:]
    assert done.returncode == 0, f"{main_class} ended with {done.returncode}:\n{said}"
    return done.stdout
