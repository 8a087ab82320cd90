"""The verbs, in the order of the help. A new one is one line in `VERBS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.pipeline.verbs import archive, compare, copy, inspect, lag, maintain, replay, rollup
from minibroker.pipeline.verbs.archive import ArchivePlan
from minibroker.pipeline.verbs.copy import CopyPlan
from minibroker.pipeline.verbs.replay import ReplayPlan
from minibroker.pipeline.verbs.rollup import RollupPlan

if TYPE_CHECKING:
    from minibroker.pipeline.verbs.declaration import Verb

VERBS: Final[dict[str, Verb]] = {
    verb.name: verb
    for verb in (
        archive.VERB,
        replay.VERB,
        copy.VERB,
        rollup.VERB,
        maintain.VERB,
        inspect.VERB,
        compare.VERB,
        lag.VERB,
    )
}

StreamPlan = ArchivePlan | ReplayPlan | RollupPlan | CopyPlan
"""A plan of a job that reports batches."""


def verb_of(plan: object) -> Verb:
    """Return the verb of a plan."""
    return next(verb for verb in VERBS.values() if isinstance(plan, verb.plan))
