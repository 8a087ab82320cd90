"""`serve --seed`: seeds that are loaded at the first start, before the broker is ready.

A later start finds records in their topics, and leaves them out. A start that ends while it loads
leaves a file in the data directory, so that the next one does not take a part of a seed for all of
it.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import StorageError
from minibroker.seeds.errors import LoadedBeforeError, SeedError
from minibroker.seeds.load import staged_load, used_topics

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from minibroker.broker.app import Broker

logger = logging.getLogger(__name__)

UNFINISHED: Final = "minibroker-seed-unfinished"
"""Name of the file that tells of a load under way, in the first log directory."""


async def load_seeds(seeds: Sequence[str], brokers: Sequence[Broker], directory: Path) -> None:
    """Load the seeds whose topics have no records, and whose groups have no offsets.

    Args:
        seeds: files and directories, in their order; one may add to topics of those before it.
        brokers: the brokers of this process, started.

    Raises SeedError, StorageError, and as `seeds.load.load`.
    """
    mark = directory / UNFINISHED
    if mark.exists():
        raise SeedError(
            f"--seed: a start was ended while it loaded a seed, so some of its records may be "
            f"missing in {directory}: begin with another --data-dir, or, to keep what is there, "
            f"remove {mark}"
        )
    in_use: set[str] = set()
    try:
        for seed in seeds:
            try:
                in_use |= await _load_first(seed, brokers, mark, in_use)
            except LoadedBeforeError as error:
                logger.info("%s is not loaded: %s", seed, error)
    except SeedError as error:
        raise SeedError(f"--seed {error}") from None


async def _load_first(
    seed: str, brokers: Sequence[Broker], mark: Path, in_use: set[str]
) -> set[str]:
    """Load a seed; return its topics and groups that are new.

    Args:
        seed: a file or a directory.
        brokers: as of `load_seeds`.
        mark: exists while records are written.
        in_use: topics and groups of seeds before it.

    Raises the errors of `load_seeds`, and LoadedBeforeError.
    """
    start_s = time.monotonic()
    used = used_topics(brokers) - in_use
    async with staged_load(seed, brokers, used_topics=used) as loading:
        await loading.check_groups(in_use)
        _mark(mark, seed)
        loaded = await loading.run()
        mark.unlink()  # noqa: ASYNC240  as each start writes some files
    logger.info(
        "loaded %s: %d records of %d topics, offsets of %d groups, in %.1f s",
        seed,
        sum(loaded.records.values()),
        len(loaded.records.keys() | loaded.topics),
        len(loaded.groups),
        time.monotonic() - start_s,
    )
    return {*loaded.records, *loaded.groups}


def _mark(mark: Path, seed: str) -> None:
    try:
        mark.write_text(f"{seed}\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{mark} cannot be written: {error.strerror}") from error
