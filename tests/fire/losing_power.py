"""`python -m tests.fire.losing_power serve …`: a minibroker whose machine loses power at SIGUSR1.

Everything that was not synced is gone from its directory then, or all but a part (`FaultyFiles`);
the process ends. How much stays is random.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, NoReturn

import minibroker.broker.storage.files
from tests.support.faulty_files import FaultyFiles, keep_everything, keep_nothing

Keep = Callable[[int], int]
"""How many of so many bytes, or names, stay."""
EXIT_CODE: Final = 86
CALLS: Final = (
    "open_to_read",
    "pread",
    "map",
    "size_at",
    "list_files",
    "pwritev",
    "truncate",
    "sync",
    "open",
    "sync_directory",
    "replace",
    "link",
    "remove",
    "make_directory",
    "remove_directory",
)


class LosingFiles(FaultyFiles):
    """Files of several threads, one call at a time; none after the power cut."""

    __slots__ = ("alone",)

    def __init__(self, root: str) -> None:
        self.alone = threading.RLock()
        super().__init__(root)


def _locked(name: str) -> Callable[..., Any]:
    plain = getattr(FaultyFiles, name)

    def call(self: LosingFiles, *arguments: Any, **options: Any) -> Any:
        with self.alone:
            return plain(self, *arguments, **options)

    return call


for _name in CALLS:
    setattr(LosingFiles, _name, _locked(_name))


def lose_power(files: LosingFiles, keep: Keep, keep_names: Keep) -> NoReturn:
    """Restore what the disk has, and end the process."""
    files.alone.acquire()  # no call of another thread ends any more
    files.power_cut(keep, keep_names)
    os._exit(EXIT_CODE)


def part_of(dice: random.Random) -> Keep:
    """Return how much of what is not synced the disk has all the same: nothing, all, or a part."""
    return dice.choice([keep_nothing, keep_everything, lambda count: dice.randrange(count + 1)])


def main() -> int:
    """Serve as `minibroker` does."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    root = sys.argv[sys.argv.index("--data-dir") + 1]
    os.makedirs(root, exist_ok=True)  # noqa: PTH103  as the files of the broker
    files = LosingFiles(root)
    minibroker.broker.storage.files.REAL_FILES = files  # type: ignore[misc]

    def wait() -> None:
        signal.sigwait({signal.SIGUSR1})
        dice = random.Random()
        lose_power(files, part_of(dice), part_of(dice))

    threading.Thread(target=wait, daemon=True).start()
    from minibroker.cli import main as serve  # noqa: PLC0415  it takes the files above

    return serve()


if __name__ == "__main__":
    sys.exit(main())
