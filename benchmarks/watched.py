"""Runs a module as `python -m` does and watches its main thread from SIGUSR2 on.

Called as `python -m benchmarks.watched TOOL OUT -m MODULE ARGUMENT…`; OUT is written when the
module ends. Waiting for the signal keeps the start-up out of the picture. TOOL is one of

- `sample`: at every tick of the process's CPU time (1 to 4 ms, as the kernel is built) it gets
  SIGPROF, and the handler counts the Python stack it interrupted. A signal waits for the next byte
  code, so a long call into C counts for the line that made it.
- `cprofile`: every call is counted and timed.
"""

import cProfile
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Protocol

_INTERVAL_S = 0.001
_DEPTH = 40


class Watch(Protocol):
    """A way to watch the main thread."""

    def begin(self) -> None:
        """Called in the main thread, from a signal handler."""

    def end(self, output: Path) -> None:
        """Stop watching and write what was seen."""


class Sampler:
    """Counts stacks at the ticks of the CPU clock."""

    def __init__(self) -> None:
        self._stacks: Counter[str] = Counter()

    def begin(self) -> None:
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL_S, _INTERVAL_S)

    def end(self, output: Path) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        stacks = self._stacks.items()
        output.write_text("".join(f"{count} {stack}\n" for stack, count in stacks))

    def _sample(self, _number: int, frame: FrameType | None) -> None:
        self._stacks[_folded(frame)] += 1


class CallCounter:
    """cProfile."""

    def __init__(self) -> None:
        self._profile = cProfile.Profile()

    def begin(self) -> None:
        self._profile.enable()

    def end(self, output: Path) -> None:
        self._profile.disable()
        self._profile.dump_stats(str(output))


def main() -> None:
    """Take our own arguments off the command line, run the module, write what was seen."""
    tool, output, module = sys.argv[1], Path(sys.argv[2]), sys.argv[4]
    sys.argv = sys.argv[4:]
    watch: Watch = Sampler() if tool == "sample" else CallCounter()
    signal.signal(signal.SIGUSR2, lambda _number, _frame: watch.begin())
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        watch.end(output)


def _folded(frame: FrameType | None) -> str:
    """Return the stack that ends in `frame`, outermost first, as `file:function:line;…`."""
    frames: list[str] = []
    while frame is not None and len(frames) < _DEPTH:
        code = frame.f_code
        file = "/".join(Path(code.co_filename).parts[-2:])
        frames.append(f"{file}:{code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return ";".join(reversed(frames))


if __name__ == "__main__":
    main()
