"""`python -m benchmarks.profile_broker PATH`: what minibroker spends its time on under one load.

PATH is `raw-1`, `raw-5`, `raw-50` (one-record Produce requests in flight), `offsets-1` …
(OffsetCommit requests in flight), `produce-100`, `produce-1000`, `produce-10000`
(ProducerPerformance), `fetch-100` … (the assigned consumer on a topic produced before), or `idle`.

The broker runs as the command line starts it; `--tool` says how it is watched:

- `sample` (default): the broker notes its main thread's Python stack at every tick of its CPU
  time. Costs little, sees lines; time in C counts for the line that called it.
- `cprofile`: counts every call. Exact counts, but small functions look dearer than they are.
- `perf`: the kernel's sampler, native symbols only: what uvloop, libc and the kernel take.
"""

import argparse
import os
import pstats
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import wire
from benchmarks.children import Child
from benchmarks.metrics import IN_FLIGHT, LOAD_SIZES_BYTES
from benchmarks.peers import START_PATIENCE_S, Minibroker
from benchmarks.plan import FULL
from benchmarks.rows import groups, load, raw
from tests.support.build_files import ROOT
from tests.support.processes import free_port

_TOPIC = "bench-profile"
_GROUP = "bench-profile"
_PATHS = (
    "idle",
    *(f"{kind}-{count}" for kind in ("raw", "offsets") for count in IN_FLIGHT),
    *(f"{kind}-{size}" for kind in ("produce", "fetch") for size in LOAD_SIZES_BYTES),
)


def main() -> int:
    """Start the broker under the tool, drive the load, stop it and print the costs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("path", choices=_PATHS)
    parser.add_argument("--tool", choices=("sample", "cprofile", "perf"), default="sample")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of the raw, offsets and idle paths"
    )
    parser.add_argument("--share", type=float, default=0.5, help="of the full run's load size")
    parser.add_argument("--top", type=int, default=40, help="lines of each list (default 40)")
    options = parser.parse_args()
    if options.tool == "perf" and shutil.which("perf") is None:
        parser.error("no perf: install linux-perf")
    with tempfile.TemporaryDirectory(prefix="minibroker-profile-") as name:
        directory = Path(name)
        profile = directory / "profile"
        port = free_port()
        child = _start(directory, port, options.tool, profile)
        try:
            prepare, drive = _path(options, directory, port)
            prepare()
            watch = _watch(options.tool, child, profile)
            before_s = child.cpu_seconds()
            work_text = drive()
            print(f"{work_text}; the broker used {child.cpu_seconds() - before_s:.2f} CPU s")
            watch()
        finally:
            child.stop()
        _report(options.tool, profile, options.top)
    return 0


def _start(directory: Path, port: int, tool: str, profile: Path) -> Child:
    flags = [] if tool == "perf" else ["-m", "benchmarks.watched", tool, str(profile)]
    command = Minibroker.command(directory, port, python_flags=flags)
    environment = {"PYTHONPATH": str(ROOT)}
    child = Child(command, output=directory / "output.log", environment=environment)
    try:
        wire.wait_for_metadata(port, timeout_s=START_PATIENCE_S, check=child.check)
    except BaseException:
        child.kill()
        raise
    return child


def _path(
    options: argparse.Namespace, directory: Path, port: int
) -> tuple[Callable[[], object], Callable[[], str]]:
    """Return the work before the watch (creating, filling), and the load with its result."""
    kind, _, number = options.path.partition("-")
    if kind == "idle":
        return (lambda: None), (lambda: _idle(options.seconds))
    connection = wire.Connection(port)
    if kind == "offsets":
        groups.make_topic(connection)
        groups.wait_for_coordinator(connection, _GROUP)
        committer = groups.CommitClient(connection, _GROUP)
        return (lambda: committer.run(int(number), 0.5)), (
            lambda: _commit(committer, int(number), options.seconds)
        )
    wire.create_topic(connection, _TOPIC)
    if kind == "raw":
        client = raw.RawClient(connection, _TOPIC, wire.one_record_batch(b"x" * 100))
        return (lambda: client.run(int(number), 0.5)), (
            lambda: _raw(client, int(number), options.seconds)
        )
    size_bytes = int(number)
    full = dict(zip(LOAD_SIZES_BYTES, FULL.load_counts, strict=True))[size_bytes]
    count = max(1, int(full * options.share))
    bootstrap = f"127.0.0.1:{port}"
    produce = load.producer_command(bootstrap, _TOPIC, size_bytes, count)
    if kind == "produce":
        return (lambda: None), (lambda: f"{load.parse_producer(_run(produce)):,.0f} records/s")
    fetch = load.assigned_consumer_command(bootstrap, _TOPIC, count)
    return (lambda: _run(produce)), (lambda: f"{load.parse_assigned(_run(fetch)):,.0f} MB/s")


def _idle(duration_s: float) -> str:
    signal.sigtimedwait((), duration_s)
    return f"idle for {duration_s:g} s"


def _raw(client: raw.RawClient, in_flight: int, duration_s: float) -> str:
    burst = client.run(in_flight, duration_s)
    return f"{burst.requests_per_s:,.0f} requests/s, client {burst.client_share:.0%} of a core"


def _commit(client: groups.CommitClient, in_flight: int, duration_s: float) -> str:
    count, elapsed_s = client.run(in_flight, duration_s)
    return f"{count / elapsed_s:,.0f} commits/s"


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def _watch(tool: str, child: Child, profile: Path) -> Callable[[], None]:
    """Begin to watch only now, after the start; returns what ends it."""
    if tool != "perf":
        os.kill(child.pid, signal.SIGUSR2)
    if tool != "perf":
        return lambda: None
    command = ["perf", "record", "-e", "cpu-clock", "-F", "999", "-o", str(profile)]
    recorder = subprocess.Popen([*command, "-p", str(child.pid)], stderr=subprocess.DEVNULL)

    def end() -> None:
        recorder.send_signal(signal.SIGINT)
        recorder.wait()

    return end


def _report(tool: str, profile: Path, top: int) -> None:
    if tool == "cprofile":
        statistics = pstats.Stats(str(profile))
        statistics.strip_dirs().sort_stats("tottime").print_stats(top)
    elif tool == "perf":
        command = ["perf", "report", "-i", str(profile), "--stdio", "--no-children"]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        lines = [line for line in report.splitlines() if line and not line.startswith("#")]
        print("\n".join(lines[:top]))
    else:
        print(summary(profile.read_text().splitlines(), top))


def summary(stacks: Sequence[str], top: int) -> str:
    """Return the dearest functions, alone and with their callees, and lines out of sampled stacks.

    A stack is one line `count frame;frame;…`, outermost first, a frame `file:function:line`.
    The frames that every stack has, from main to the event loop, are left out.
    """
    total, lines, own, inclusive = 0, Counter[str](), Counter[str](), Counter[str]()
    for stack in stacks:
        count, _, text = stack.partition(" ")
        frames = text.split(";")
        functions = [frame.rpartition(":")[0] for frame in frames]
        total += int(count)
        lines[frames[-1]] += int(count)
        own[functions[-1]] += int(count)
        for function in set(functions):
            inclusive[function] += int(count)
    inclusive = Counter({name: count for name, count in inclusive.items() if count < total})
    parts = [f"{total} samples"]
    for title, counter in (
        ("own time by function", own),
        ("time with callees", inclusive),
        ("own time by line", lines),
    ):
        parts.append(f"\n{title}:")
        parts += [f"  {count / total:6.1%}  {name}" for name, count in counter.most_common(top)]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
