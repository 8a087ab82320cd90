"""Records what Apicurio's registry says of each pair: `make registry-calls`.

python -m tests.compat_registry.record
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.compat_registry.pairs import pairs
from tests.compat_registry.verdicts import title, verdict, write
from tests.support.registry import Registry


def main() -> None:
    """Start a registry, ask it, and write what it said."""
    with tempfile.TemporaryDirectory() as directory:
        registry = Registry(Path(directory))
        registry.start()
        try:
            registry.wait()
            write({title(pair): verdict(registry.url, pair) for pair in pairs()})
        finally:
            registry.stop()


if __name__ == "__main__":
    main()
