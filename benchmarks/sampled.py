"""Runs a module as `python -m` does and samples its main thread.

Called as `python -m benchmarks.sampled OUT -m MODULE ARGUMENT…`. SIGUSR2 starts the clock: from
then on every millisecond of CPU time the kernel sends SIGPROF, and the handler counts the Python
stack it interrupted. The counts go to OUT when the module ends. A signal waits for the next byte
code, so a long call into C counts for the line that made it.
"""

import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

_INTERVAL_S = 0.001
_DEPTH = 40


def main() -> None:
    """Take our own arguments off the command line, run the module, write the stacks."""
    output, module = Path(sys.argv[1]), sys.argv[3]
    sys.argv = sys.argv[3:]
    stacks: Counter[str] = Counter()

    def sample(_number: int, frame: FrameType | None) -> None:
        stacks[_folded(frame)] += 1

    def begin(_number: int, _frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL_S, _INTERVAL_S)

    signal.signal(signal.SIGPROF, sample)
    signal.signal(signal.SIGUSR2, begin)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        output.write_text("".join(f"{count} {stack}\n" for stack, count in stacks.items()))


def _folded(frame: FrameType | None) -> str:
    """The stack that ends in `frame`, outermost first."""
    frames: list[str] = []
    while frame is not None and len(frames) < _DEPTH:
        code = frame.f_code
        file = "/".join(Path(code.co_filename).parts[-2:])
        frames.append(f"{file}:{code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return ";".join(reversed(frames))


if __name__ == "__main__":
    main()
