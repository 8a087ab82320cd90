"""The tests that may be skipped in CI, where CI=true: none, except for the reasons below.

A skip names a program that the machine lacks. In CI every program must be there, so there a skip is
a failure: without that, a client that is not installed any more would go untested for months.
"""

from __future__ import annotations

import os

CI_VARIABLE = "CI"

ALLOWED = {
    "no Kerberos: ": "only root installs it: .ci/run does, or says that it cannot",
    "no C compiler: ": "only root installs it: .ci/run does, or says that it cannot",
    "runs on the pure package only: ": "the mark `pure` says why; the pure package runs it",
    "Kafka 4 takes no segment.bytes below 1 MiB": "true of every machine: 3.9.1 judges the case",
}
"""Start of the reason of a skip → why it is allowed."""


def fault_of(reason: str) -> str | None:
    """Return why a skip with this reason fails the run, or None where it may be.

    `reason` is what pytest shows, with or without its `Skipped: ` in front.
    """
    if os.environ.get(CI_VARIABLE, "").lower() not in {"true", "1"}:
        return None
    bare = reason.removeprefix("Skipped: ")
    if bare.startswith(tuple(ALLOWED)):
        return None
    return f"skipped where {CI_VARIABLE}=true: {bare}\nmend it, or allow it in {__name__}.ALLOWED"
