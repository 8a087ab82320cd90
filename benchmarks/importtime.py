"""`python -m benchmarks.importtime`: where minibroker's time from process start to serving goes.

Runs the real command line under `-X importtime` until its first Metadata answer, then prints the
modules that cost most by themselves, the sums by package, and the time to the first answer of runs
without the flag (which itself costs some 10 %).
"""

import argparse
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import wire
from benchmarks.children import Child
from benchmarks.peers import START_PATIENCE_S, Minibroker
from tests.support.processes import free_port

_LINE = re.compile(r"^import time:\s+(\d+) \|\s+(\d+) \|( *)(\S+)$", re.MULTILINE)


class Import(NamedTuple):
    """One imported module: its own and its total time, and how deep it stands."""

    module: str
    own_us: int
    total_us: int
    depth: int


def parse(output: str) -> list[Import]:
    """Return the lines of `-X importtime` in the order in which the imports ended."""
    return [
        Import(name, int(own_us), int(total_us), (len(indent) - 1) // 2)
        for own_us, total_us, indent, name in _LINE.findall(output)
    ]


def by_package(imports: Sequence[Import]) -> Counter[str]:
    """Microseconds by top-level package; our own by sub-package."""
    sums: Counter[str] = Counter()
    for module in imports:
        parts = module.module.split(".")
        sums[".".join(parts[: 3 if parts[0] == "minibroker" else 1])] += module.own_us
    return sums


def start_once(python_flags: Sequence[str] = ()) -> tuple[float, str]:
    """Start the broker on an empty directory; milliseconds to its first answer, and its output."""
    with tempfile.TemporaryDirectory(prefix="minibroker-start-") as name:
        directory, port = Path(name), free_port()
        command = Minibroker.command(directory, port, python_flags=python_flags)
        child = Child(command, output=directory / "output.log")
        try:
            answered_at = wire.wait_for_metadata(
                port, timeout_s=START_PATIENCE_S, check=child.check
            )
        finally:
            child.kill()
        return (answered_at - child.started_at) * 1000, child.log_path.read_text(errors="replace")


def interpreter_ms(code: str) -> float:
    """Milliseconds that a Python process takes for `code`."""
    with tempfile.TemporaryDirectory(prefix="minibroker-start-") as name:
        child = Child([sys.executable, "-c", code], output=Path(name) / "output.log")
        child.wait(START_PATIENCE_S)
        return (time.perf_counter() - child.started_at) * 1000


def main() -> int:
    """Print the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--top", type=int, default=30, help="modules to list (default 30)")
    parser.add_argument("--repeats", type=int, default=9, help="starts to time (default 9)")
    options = parser.parse_args()
    start_once()  # writes the byte code and warms the page cache
    times_ms = [start_once()[0] for _ in range(options.repeats)]
    floor_ms = [interpreter_ms("pass") for _ in range(options.repeats)]
    loop_ms = [interpreter_ms("import asyncio, uvloop") for _ in range(options.repeats)]
    imports = parse(start_once(["-X", "importtime"])[1])
    total_ms = sum(module.own_us for module in imports) / 1000
    print(f"first Metadata answer: median {statistics.median(times_ms):.0f} ms, ", end="")
    print(f"best {min(times_ms):.0f} ms of {options.repeats}")
    print(f"  python -c pass: {statistics.median(floor_ms):.0f} ms", end="")
    print(f"; import asyncio, uvloop: {statistics.median(loop_ms):.0f} ms")
    print(f"{len(imports)} modules imported in {total_ms:.0f} ms (with the flag's own cost)\n")
    print("by package, ms:")
    for package, own_us in by_package(imports).most_common(options.top):
        print(f"  {own_us / 1000:7.2f}  {package}")
    print("\nby module, own ms and total ms with what it imports:")
    for module in sorted(imports, key=lambda item: -item.own_us)[: options.top]:
        print(f"  {module.own_us / 1000:7.2f} {module.total_us / 1000:8.2f}  {module.module}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
