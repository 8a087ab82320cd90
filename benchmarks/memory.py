"""The most memory that the processes of a benchmark hold at once."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Final

import psutil

_EVERY_S: Final = 0.1


class Memory:
    """Looks at the processes below this one while it is open."""

    def __init__(self, kind_of: Callable[[psutil.Process], str | None]) -> None:
        """`kind_of` names the kind of a process; None: it does not count."""
        self.most: Counter[str] = Counter()
        """Kind → the most bytes that its processes held at once."""
        self._kind_of = kind_of
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        process = psutil.Process()
        while not self._over.wait(_EVERY_S):
            sums: Counter[str] = Counter()
            for child in process.children(recursive=True):
                try:
                    kind = self._kind_of(child)
                    if kind is not None:
                        sums[kind] += child.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            self.most |= sums
