"""How this package runs: its hot modules compiled to extension modules, or as plain Python.

A compiled wheel has the same modules and gives the same answers; `docs/how-to/install.md` says who
gets which. `minibroker version` and `minibroker status` tell it.
"""

from __future__ import annotations

from importlib.machinery import ExtensionFileLoader
from importlib.util import find_spec
from typing import Final

from minibroker import __version__

_HOT_MODULE: Final = "minibroker.kafka.records.batch"
"""One of them: a wheel has all of them compiled, or none."""


def package_kind() -> str:
    """Return "compiled" or "pure": how Python loads the hot modules here."""
    spec = find_spec(_HOT_MODULE)
    is_compiled = spec is not None and isinstance(spec.loader, ExtensionFileLoader)
    return "compiled" if is_compiled else "pure"


def package_version() -> str:
    """Return the version and the kind of the package, for people: `0.1.0 (pure)`."""
    return f"{__version__} ({package_kind()})"
