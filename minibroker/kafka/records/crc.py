"""CRC-32C, the checksum of format v2 batches and of producer snapshots.

Only this module imports the `crc32c` package (hardware instructions, about 27 GB/s). Called for
every produced batch, before its bytes may reach the log.

The package's `__init__` asks `importlib.metadata` for its own version, which takes 40 ms and more:
a third of the time the broker has to start. So the extension module inside the package is loaded by
itself; a package that is laid out in another way is imported as usual. Where there is none, Python
computes the checksum, slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from typing import Final, cast

Crc32c = Callable[..., int]


def _load_extension() -> Crc32c | None:
    """Return the C function of `crc32c._crc32c` without running the package; None where there is
    none."""
    package = PathFinder.find_spec("crc32c")
    if package is None or package.submodule_search_locations is None:
        return None
    spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        return None
    module = spec.loader.create_module(spec)
    if module is None:
        return None
    spec.loader.exec_module(module)
    return cast("Crc32c | None", getattr(module, "crc32c", None))


def _import_package() -> Crc32c:
    try:
        from crc32c import crc32c as function  # noqa: PLC0415  the slow way, only when needed
    except ModuleNotFoundError:
        from minibroker.kafka.records import crc_table  # noqa: PLC0415

        return crc_table.crc32c
    return cast("Crc32c", function)


crc32c: Final[Crc32c] = _load_extension() or _import_package()
"""CRC-32C of a contiguous buffer, 0 to 2**32 - 1; a second argument: that of what comes before."""
IS_SLOW: Final = getattr(crc32c, "__module__", "") == "minibroker.kafka.records.crc_table"
"""True where the package is missing."""
