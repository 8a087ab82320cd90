"""The modules that a process imports, as `python -X importtime` names them."""

from __future__ import annotations

import re


def names_in(output: str) -> set[str]:
    """Return the modules that lines of `-X importtime` name."""
    return set(re.findall(r"^import time: .*\| +(\S+)$", output, re.MULTILINE))
