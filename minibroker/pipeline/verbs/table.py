"""The verbs of `minibroker pipeline`: every room beside this module has a `plan` with a `VERB`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.cli.declaration import VerbGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.pipeline.options.declaration import PipelineVerb


def _verbs_of_rooms() -> Iterator[PipelineVerb]:
    for plan in Path(__file__).parent.glob("*/plan.py"):
        yield import_module(f"{__package__}.{plan.parent.name}.plan").VERB


VERBS: Final[dict[str, PipelineVerb]] = {
    verb.name: verb for verb in sorted(_verbs_of_rooms(), key=lambda verb: verb.rank)
}
"""Name → verb, in the order of the help."""

VERB: Final = VerbGroup(
    command="minibroker pipeline",
    does="topics into files and back with Apache Spark, on this machine or on a cluster",
    sections={"": {name: f"{__package__}.{name}.plan" for name in VERBS}},
    notes="""
`minibroker pipeline VERB --help` explains the flags. Works with minibroker and with any Kafka.
Needs: pip install 'minibroker[pipeline]', and Java 17 or newer.
""",
    shows_examples=True,
)
