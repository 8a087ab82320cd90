"""The verbs, in the order of the help. A new one is one line in `VERBS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.pipeline.verbs.archive import plan as archive
from minibroker.pipeline.verbs.archive.plan import ArchivePlan
from minibroker.pipeline.verbs.compare import plan as compare
from minibroker.pipeline.verbs.copy import plan as copy
from minibroker.pipeline.verbs.copy.plan import CopyPlan
from minibroker.pipeline.verbs.inspect import plan as inspect
from minibroker.pipeline.verbs.lag import plan as lag
from minibroker.pipeline.verbs.maintain import plan as maintain
from minibroker.pipeline.verbs.replay import plan as replay
from minibroker.pipeline.verbs.replay.plan import ReplayPlan
from minibroker.pipeline.verbs.rollup import plan as rollup
from minibroker.pipeline.verbs.rollup.plan import RollupPlan

if TYPE_CHECKING:
    from minibroker.pipeline.options.declaration import Verb

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
