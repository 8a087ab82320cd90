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
SOURCES = ROOT / "tests" / "support" / "java"

KAFKA_39 = JARS / "kafka-3.9.1"
KAFKA_44 = JARS / "kafka-4.4.0"
TOOLS_43 = JARS / "kafka-tools-4.3.1"

OLDEST_JAVA = 17
TOOL_SECONDS = 100

# Small and quick to start: one compiler tier, the simplest collector, a bounded heap.
JVM_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

INSTALL = "(Debian: apt install openjdk-17-jdk-headless maven)"


@functools.cache
def missing_java() -> str | None:
    """One sentence naming what to install, or None when Java and the jars are here."""
    if shutil.which("java") is None:
        return f"Java {OLDEST_JAVA} is not installed: install it and Maven {INSTALL}"
    answer = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    if found is None or int(found.group(1)) < OLDEST_JAVA:
        version = found.group(1) if found else "unknown"
        return (
            f"Java {OLDEST_JAVA} or newer is needed and {version} was found; install it {INSTALL}"
        )
    for jars in (KAFKA_39, KAFKA_44, TOOLS_43):
        if not (jars / ".done").exists():
            return f"build/jars/{jars.name} is missing: run make java, which needs Maven {INSTALL}"
    return None


def java_command(
    jars: Path, main_class: str, *arguments: str, options: tuple[str, ...] = ()
) -> list[str]:
    """The command line that runs `main_class` (or a single .java file) with every jar of `jars`."""
    return ["java", *JVM_OPTIONS, *options, "-cp", f"{jars}/*", main_class, *arguments]


def run_java(
    jars: Path,
    main_class: str,
    *arguments: str,
    timeout_s: float = TOOL_SECONDS,
    stdin: str | None = None,
) -> str:
    """Run to the end and return what it printed (both streams).

    Raises:
        AssertionError: the exit code was not 0; carries the output.
    """
    log4j = f"-Dlog4j.configuration=file:{SOURCES / 'tools.log4j.properties'}"
    done = subprocess.run(
        java_command(jars, main_class, *arguments, options=(log4j,)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
        input=stdin,
    )
    assert done.returncode == 0, (
        f"{main_class} ended with {done.returncode}:\n{done.stdout[-6000:]}"
    )
    return done.stdout
